//! The devices, in one table.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use lower::{Caps, Launch, Program, ProgramParam};
use thiserror::Error;
use uop::{Arg, BuildErrors, DType, Declaration, Kernel, KernelGraph, Phase, Val, verify};

use crate::buffer::Buffer;
use crate::compiled::{Code, Compiled, LaunchOptions, Launched};
use crate::error::{CompileError, Error};

/// A device of the table.
struct Entry {
    name: &'static str,
    about: &'static str,
    /// What it lowers for; `None` if it does not lower.
    caps: Option<Caps>,
    /// The code of a verified kernel.
    code: fn(&KernelGraph, &Functions) -> Result<Code, CompileError>,
}

/// What declared operations without a body call.
#[derive(Clone, Default)]
struct Functions {
    /// From machine code.
    machine: jit::Functions,
    /// From the interpreter.
    oracle: interp::Functions,
}

/// Every device.
static DEVICES: [&Entry; 4] = [&CPU, &INTERP, &NULL, &AMD];

static CPU: Entry = Entry {
    name: "cpu",
    about: "runs machine code on this CPU, with threads",
    caps: Some(jit::CAPS),
    code: |kernel, functions| {
        let program = lowered(kernel, &jit::CAPS)?;
        let options = jit::Options::default();
        let code = Box::new(jit::compile_with(&program, &options, &functions.machine)?);
        Ok(Code::Machine { code, extent: extent(&program)? })
    },
};

static INTERP: Entry = Entry {
    name: "interp",
    about: "runs the graph as written and checks everything; slow",
    caps: None,
    code: |kernel, functions| {
        let functions = functions.oracle.clone();
        let options = interp::Options { functions, ..interp::Options::default() };
        interp::check(&kernel.graph, kernel.sink, &options).map_err(|error| {
            let message = kernel.message(error.node, &error.to_string());
            CompileError::Interp { error: Box::new(error), message }
        })?;
        Ok(Code::Graph(kernel.clone(), options))
    },
};

static NULL: Entry = Entry {
    name: "null",
    about: "compiles machine code and runs nothing; counts launches",
    caps: Some(jit::CAPS),
    code: |kernel, functions| (CPU.code)(kernel, functions).map(|_| Code::Nothing),
};

static AMD: Entry = Entry {
    name: "amd",
    about: "writes HIP source for AMD GPUs; runs nothing",
    caps: Some(text::HIP.caps),
    code: |kernel, _| {
        let program = lowered(kernel, &text::HIP.caps)?;
        Ok(Code::Source(text::emit(&program, &text::HIP)?))
    },
};

fn lowered(kernel: &KernelGraph, caps: &Caps) -> Result<Program, CompileError> {
    lower::lower(&kernel.graph, kernel.sink, caps).map_err(|error| {
        let message = kernel.message(error.node, &error.to_string());
        CompileError::Lower { error: Box::new(error), message }
    })
}

/// How many instances the outermost range has.
fn extent(program: &Program) -> Result<u64, CompileError> {
    match program.launch {
        // Machine code counts in i64.
        Launch::Range { extent } if i64::try_from(extent).is_ok() => Ok(extent),
        Launch::Range { extent } => Err(CompileError::Extent { extent }),
        Launch::Grid { .. } => unreachable!("lowering makes a grid only for caps with one"),
    }
}

/// The arguments of a verified kernel, by slot.
fn params(kernel: &KernelGraph) -> Vec<ProgramParam> {
    let KernelGraph { graph, sink, .. } = kernel;
    let length = |&n| graph.as_int(n).and_then(|length| u64::try_from(length).ok());
    let param = |n| {
        let Arg::Param(param) = &graph[n].arg else {
            unreachable!("the verifier rejects a param without a slot")
        };
        let shape = graph[n].src.iter().map(length).collect::<Option<_>>();
        ProgramParam {
            name: param.name.to_string(),
            dtype: graph[n].dtype,
            shape: shape.expect("the verifier rejects a length that is no constant, or negative"),
            mutable: param.mutable,
        }
    };
    graph.params(*sink).into_iter().map(param).collect()
}

/// Something that compiles kernels, and perhaps runs them. Clones are the same device.
#[derive(Clone)]
pub struct Device {
    entry: &'static Entry,
    functions: Functions,
    launches: Arc<AtomicU64>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.name())
    }
}

/// There is no device of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expected one of the devices {}, found `{name}`", names())]
pub struct UnknownDevice {
    /// The name.
    pub name: String,
}

fn names() -> String {
    DEVICES.map(|entry| entry.name).join(", ")
}

impl Device {
    /// Runs machine code on this CPU, with threads.
    pub fn cpu() -> Device {
        Device::new(&CPU)
    }

    /// Runs the graph as written and checks everything; slow. An access out of bounds is an error
    /// here, also where compiled code would skip it.
    pub fn interp() -> Device {
        Device::new(&INTERP)
    }

    /// Compiles as [`cpu`](Device::cpu), checks the arguments of launches, counts them, and runs
    /// nothing.
    pub fn null() -> Device {
        Device::new(&NULL)
    }

    /// Writes HIP source for AMD GPUs. To run is an error that says what to do.
    pub fn amd() -> Device {
        Device::new(&AMD)
    }

    /// Every device, in the order of the documentation.
    pub fn all() -> impl Iterator<Item = Device> {
        DEVICES.into_iter().map(Device::new)
    }

    /// The device called `name`, in upper or lower case.
    ///
    /// # Errors
    ///
    /// [`UnknownDevice`] names those that exist.
    pub fn from_name(name: &str) -> Result<Device, UnknownDevice> {
        let entry = DEVICES.into_iter().find(|entry| entry.name.eq_ignore_ascii_case(name));
        entry.map(Device::new).ok_or_else(|| UnknownDevice { name: name.to_string() })
    }

    fn new(entry: &'static Entry) -> Device {
        Device { entry, functions: Functions::default(), launches: Arc::default() }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// What it does, in a few words.
    pub fn about(&self) -> &'static str {
        self.entry.about
    }

    /// What it lowers kernels for; `None` if it runs them as written.
    pub fn caps(&self) -> Option<Caps> {
        self.entry.caps
    }

    /// How many launches of this device and its clones have succeeded.
    pub fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    pub(crate) fn count_launch(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    /// This device, where machine code calls `function` for what is declared so and has no body.
    ///
    /// # Safety
    ///
    /// As [`jit::Functions::with`], for as long as this device, a clone of it or a kernel compiled
    /// by one lives.
    #[must_use]
    pub unsafe fn with_function(
        mut self,
        declaration: &Declaration,
        function: *const (),
    ) -> Device {
        // SAFETY: the promise is the caller's.
        self.functions.machine = unsafe { self.functions.machine.with(declaration, function) };
        self
    }

    /// This device, where the interpreter calls `function` for the declared operation `name`, if it
    /// has no body: see [`interp::Functions::with`].
    #[must_use]
    pub fn with_closure<F>(mut self, name: &str, function: F) -> Device
    where
        F: Fn(&mut [interp::Argument]) -> Option<uop::Const> + Send + Sync + 'static,
    {
        self.functions.oracle = self.functions.oracle.with(name, function);
        self
    }

    /// Makes `kernel` ready to be launched.
    ///
    /// # Errors
    ///
    /// See [`CompileError`]. Nothing is expected of the graph: it is verified here.
    pub fn compile(&self, kernel: &KernelGraph) -> Result<Compiled, CompileError> {
        let start = Instant::now();
        let KernelGraph { graph, sink, .. } = kernel;
        if sink.index() >= graph.len() {
            return Err(CompileError::NoSink { sink: sink.index(), nodes: graph.len() });
        }
        verify(graph, *sink, Phase::Built).map_err(|errors| {
            let messages = errors.errors.iter().map(|e| kernel.message(e.node, &e.to_string()));
            let message = messages.collect::<Vec<String>>().join("\n");
            CompileError::Verify { errors, message }
        })?;
        let Arg::Sink(name) = &graph[*sink].arg else {
            unreachable!("the verifier rejects a root that is no sink")
        };
        let params = params(kernel);
        let code = (self.entry.code)(kernel, &self.functions)?;
        let name = name.to_string();
        Ok(Compiled::new(self.clone(), name, params, code, start.elapsed()))
    }

    /// Builds, compiles and launches a kernel on `buffers`.
    ///
    /// `build` gets one parameter for each of them, `arg0`, `arg1`, …, of its dtype and shape,
    /// mutable if the buffer is. The kernel it returns must use them all.
    ///
    /// # Errors
    ///
    /// What is wrong with the kernel or the buffers.
    #[track_caller]
    pub fn custom_kernel<F>(&self, buffers: &mut [Buffer<'_>], build: F) -> Result<Launched, Error>
    where
        F: for<'k> FnOnce(&'k Kernel, &[Val<'k>]) -> Result<KernelGraph, BuildErrors>,
    {
        let k = Kernel::new();
        let mut params = Vec::with_capacity(buffers.len());
        // A closure would hide the caller's line.
        for (slot, buffer) in buffers.iter().enumerate() {
            let (name, dtype): (String, DType) = (format!("arg{slot}"), buffer.dtype());
            params.push(if buffer.is_mutable() {
                k.param_mut(&name, dtype, buffer.shape())
            } else {
                k.param(&name, dtype, buffer.shape())
            });
        }
        let compiled = self.compile(&build(&k, &params)?)?;
        Ok(compiled.launch(buffers, &LaunchOptions::default())?)
    }
}
