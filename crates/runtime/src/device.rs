//! The devices, in one table.

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jit::JitErrorKind;
use lower::{Caps, Launch, Program, ProgramParam, ProgramVariable, Size};
use thiserror::Error;
use uop::{Arg, BuildErrors, DType, Declaration, Kernel, KernelGraph, Phase, Val, print, verify};

use crate::buffer::Buffer;
use crate::cache::{Key, get_or_make};
use crate::compiled::{Code, Compiled, Executable, LaunchOptions, Launched};
use crate::cost::Cost;
use crate::error::{CompileError, Error};

/// A device of the table.
struct Entry {
    name: &'static str,
    about: &'static str,
    /// Whether its kernels may use atomics.
    atomics: bool,
    /// What it lowers for; `None` if it does not lower.
    caps: Option<Caps>,
    /// What its code depends on beside the kernel: the compiler, its options, the machine. `None` if
    /// no code is kept.
    target: Option<fn() -> &'static str>,
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
    atomics: true,
    caps: Some(jit::CAPS),
    target: Some(jit_target),
    code: |kernel, functions| {
        let (_, extent, code) = machine(kernel, functions)?;
        Ok(Code::Machine { code: Box::new(code), extent })
    },
};

static INTERP: Entry = Entry {
    name: "interp",
    about: "runs the graph as written and checks everything; slow",
    atomics: true,
    caps: None,
    // Its code is the author's graph, with the author's places, which errors of a launch name. A
    // graph that is equal has other places, and there is no work to save.
    target: None,
    code: |kernel, functions| {
        let functions = functions.oracle.clone();
        let options = interp::Options { functions, ..interp::Options::default() };
        interp::check(&kernel.graph, kernel.sink, &options).map_err(|error| {
            let message = kernel.message(error.node, &error.to_string());
            CompileError::Interp { error: Box::new(error), message }
        })?;
        Ok(Code::Graph(kernel.clone(), options.functions))
    },
};

static NULL: Entry = Entry {
    name: "null",
    about: "compiles machine code and runs nothing; counts launches, bytes and operations",
    atomics: true,
    caps: Some(jit::CAPS),
    target: Some(jit_target),
    code: |kernel, functions| {
        let (program, extent, _) = machine(kernel, functions)?;
        Ok(Code::Counted { program: Box::new(program), extent })
    },
};

static AMD: Entry = Entry {
    name: "amd",
    about: "writes HIP source for AMD GPUs; runs nothing",
    atomics: true,
    caps: Some(text::HIP.caps),
    target: Some(|| concat!("uopc ", env!("CARGO_PKG_VERSION"))),
    code: |kernel, _| {
        let program = lowered(kernel, &text::HIP.caps)?;
        Ok(Code::Source(text::emit(&program, &text::HIP)?))
    },
};

const JIT_OPTIONS: jit::Options = jit::Options { verify: false };

fn jit_target() -> &'static str {
    static TARGET: LazyLock<String> = LazyLock::new(|| jit::target(&JIT_OPTIONS));
    &TARGET
}

fn lowered(kernel: &KernelGraph, caps: &Caps) -> Result<Program, CompileError> {
    lower::lower(&kernel.graph, kernel.sink, caps).map_err(|error| {
        let message = kernel.message(error.node, &error.to_string());
        CompileError::Lower { error: Box::new(error), message }
    })
}

/// The program for this CPU, how many instances its outermost range has, and its code.
fn machine(
    kernel: &KernelGraph,
    functions: &Functions,
) -> Result<(Program, Size, jit::Code), CompileError> {
    let program = lowered(kernel, &jit::CAPS)?;
    let code = jit::compile_with(&program, &JIT_OPTIONS, &functions.machine).map_err(|error| {
        let calls = |name: &str| {
            kernel.graph.reachable(kernel.sink).into_iter().find(|&n| match &kernel.graph[n].arg {
                Arg::Custom { custom, .. } => {
                    custom.declaration().is_some_and(|it| it.name() == name)
                }
                _ => false,
            })
        };
        let node = match &error.kind {
            JitErrorKind::NoFunction { name } | JitErrorKind::Signature { name } => calls(name),
            _ => None,
        };
        let message = match node {
            Some(node) => kernel.message(node, &format!("{node}: {}", error.kind)),
            None => error.to_string(),
        };
        CompileError::Jit { error: Box::new(error), node, message }
    })?;
    let Launch::Range { extent } = program.launch.clone() else {
        unreachable!("lowering makes a grid only for caps with one")
    };
    Ok((program, extent, code))
}

/// The arguments of a verified kernel: parameters by slot, variables by name. `None` if the length of
/// an axis is too long an expression.
fn signature(kernel: &KernelGraph) -> Option<(Vec<ProgramParam>, Vec<ProgramVariable>)> {
    let KernelGraph { graph, sink, .. } = kernel;
    let variables = graph.variables(*sink);
    let params = graph.params(*sink);
    let params = params.into_iter().map(|n| ProgramParam::of(graph, n, &variables));
    let of = |&n| ProgramVariable::of(graph, n, &jit::CAPS);
    Some((params.collect::<Option<_>>()?, variables.iter().map(of).collect()))
}

/// Something that compiles kernels, and perhaps runs them. Clones are the same device.
#[derive(Clone)]
pub struct Device {
    entry: &'static Entry,
    functions: Functions,
    done: Arc<Mutex<Done>>,
}

/// What a device and its clones have done.
struct Done {
    launches: u64,
    /// Of all launches; `None` if that of one is not known.
    cost: Option<Cost>,
    compiles: CompileStats,
}

/// What the compilations of a device and its clones did, as far as they succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileStats {
    /// How many found that an equal kernel had been compiled, and took that code.
    pub hits: u64,
    /// How many made the code anew. On `interp`, which keeps nothing, that is all of them.
    pub misses: u64,
    /// How long they took together, hits and misses.
    pub time: Duration,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.name())
    }
}

/// There is no device of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no device `{name}`; devices with atomics are {}", names_with_atomics())]
pub struct UnknownDevice {
    /// The name.
    pub name: String,
}

fn names_with_atomics() -> String {
    let names = DEVICES.into_iter().filter(|entry| entry.atomics).map(|entry| entry.name);
    names.collect::<Vec<&str>>().join(", ")
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

    /// Compiles as [`cpu`](Device::cpu), checks the arguments of launches, counts them and what they
    /// would do ([`cost`](Device::cost)), and runs nothing. It takes buffers without memory
    /// ([`Buffer::absent`]).
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
    /// [`UnknownDevice`] names those with atomics.
    pub fn from_name(name: &str) -> Result<Device, UnknownDevice> {
        let entry = DEVICES.into_iter().find(|entry| entry.name.eq_ignore_ascii_case(name));
        entry.map(Device::new).ok_or_else(|| UnknownDevice { name: name.to_string() })
    }

    fn new(entry: &'static Entry) -> Device {
        let compiles = CompileStats::default();
        let done = Done { launches: 0, cost: Some(Cost::default()), compiles };
        Device { entry, functions: Functions::default(), done: Arc::new(Mutex::new(done)) }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// What it does, in a few words.
    pub fn about(&self) -> &'static str {
        self.entry.about
    }

    /// Whether its kernels may use atomics.
    pub fn has_atomics(&self) -> bool {
        self.entry.atomics
    }

    /// What it lowers kernels for; `None` if it runs them as written.
    pub fn caps(&self) -> Option<Caps> {
        self.entry.caps
    }

    /// How many launches of this device and its clones have succeeded.
    pub fn launches(&self) -> u64 {
        self.done().launches
    }

    /// What these launches cost together, and that is nothing if there were none; `None` if the
    /// [cost](Launched::cost) of one is not known.
    pub fn cost(&self) -> Option<Cost> {
        self.done().cost
    }

    /// What the compilations of this device and its clones did.
    pub fn compile_stats(&self) -> CompileStats {
        self.done().compiles
    }

    pub(crate) fn count_launch(&self, cost: Option<Cost>) {
        let mut done = self.done();
        done.launches += 1;
        done.cost = done.cost.zip(cost).and_then(|(sum, cost)| sum.plus(cost));
    }

    fn done(&self) -> MutexGuard<'_, Done> {
        // Nothing panics while it is locked.
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// The code of an equal kernel that the process has compiled for such a device is used again,
    /// if it is one of the last [`CACHED_KERNELS`](crate::CACHED_KERNELS).
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
        let make = || {
            let code = (self.entry.code)(kernel, &self.functions)?;
            let (params, variables) = signature(kernel).ok_or(CompileError::Size)?;
            Ok::<_, CompileError>(Executable { name: name.to_string(), params, variables, code })
        };
        // What calls functions of the caller's lives no longer than they do.
        let target = self.entry.target.filter(|_| self.functions.machine.is_empty());
        let (executable, hit) = match target {
            Some(target) => {
                let (device, kernel) = (self.name(), print(graph, *sink));
                get_or_make(Key { device, target: target(), kernel }, make)?
            }
            None => (Arc::new(make()?), false),
        };
        let time = start.elapsed();
        let compiles = &mut self.done().compiles;
        *(if hit { &mut compiles.hits } else { &mut compiles.misses }) += 1;
        compiles.time += time;
        Ok(Compiled::new(self.clone(), executable, time))
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
