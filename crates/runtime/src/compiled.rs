//! Kernels that are ready to run, and running them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use interp::Data;
use lower::{Program, ProgramParam, ProgramVariable, Size};
use uop::KernelGraph;

use crate::buffer::Buffer;
use crate::check::{argument, bind, check};
use crate::cost::{Cost, cost};
use crate::device::Device;
use crate::error::{ArgumentError, LaunchError, LaunchErrorKind};
use crate::pool::{default_threads, for_slices};

/// A kernel compiled for a device. Its code is shared with its clones, with what else was compiled
/// from an equal kernel, and with those that the process keeps
/// ([`CACHED_KERNELS`](crate::CACHED_KERNELS)); it is freed with the last of them.
#[derive(Clone)]
pub struct Compiled {
    device: Device,
    executable: Arc<Executable>,
    compile_time: Duration,
}

/// What a kernel compiles to, the same for equal kernels.
pub(crate) struct Executable {
    pub(crate) name: String,
    pub(crate) params: Vec<ProgramParam>,
    pub(crate) variables: Vec<ProgramVariable>,
    pub(crate) code: Code,
}

/// What a device makes of a kernel.
pub(crate) enum Code {
    /// Machine code that does a part of `0..extent`.
    Machine {
        code: Box<jit::Code>,
        /// Within i64, as `size-indices` counts it.
        extent: Size,
    },
    /// The kernel itself, to be interpreted.
    Graph(KernelGraph, interp::Functions),
    /// What is never run, but counted.
    Counted {
        program: Box<Program>,
        /// As above.
        extent: Size,
    },
    /// Source text for some other machine.
    Source(String),
}

/// How to launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchOptions<'a> {
    /// The value of each variable of the kernel, by name.
    pub variables: &'a [(&'a str, i64)],
    /// How many threads to use, at least 1; by default one for each core.
    ///
    /// The outermost parallel range is cut into as many contiguous slices of near-equal size, which
    /// run at the same time, also if there are more than cores. A range is never cut into more
    /// slices than it has instances, nor into more than [`MAX_THREADS`](crate::MAX_THREADS). With 1
    /// everything happens on the calling thread.
    pub threads: Option<usize>,
}

impl LaunchOptions<'_> {
    /// On this many threads.
    pub fn threads(threads: usize) -> LaunchOptions<'static> {
        LaunchOptions { threads: Some(threads), variables: &[] }
    }
}

/// What a launch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// From the end of the checks to the end of the last thread.
    pub time: Duration,
    /// How many threads ran a part; 0 if there was nothing to run.
    pub threads: usize,
    /// What it would have moved and computed. `None` if the device is not `null`, which alone
    /// counts; if it depends on what the buffers hold, as where the bound of a loop is loaded; if it
    /// is too much for a u64; or if loops whose bounds depend on one another make the counting
    /// itself too long.
    pub cost: Option<Cost>,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled")
            .field("device", &self.device)
            .field("name", &self.name())
            .field("params", &self.params())
            .finish_non_exhaustive()
    }
}

impl Compiled {
    pub(crate) fn new(
        device: Device,
        executable: Arc<Executable>,
        compile_time: Duration,
    ) -> Compiled {
        Compiled { device, executable, compile_time }
    }

    /// The device that it was compiled for.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The name of the kernel.
    pub fn name(&self) -> &str {
        &self.executable.name
    }

    /// What a launch takes, by slot.
    pub fn params(&self) -> &[ProgramParam] {
        &self.executable.params
    }

    /// What a launch states beside its buffers, by name.
    pub fn variables(&self) -> &[ProgramVariable] {
        &self.executable.variables
    }

    /// The lengths of the axes of each parameter, by slot, with these values of the variables.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the values.
    pub fn shapes(&self, variables: &[(&str, i64)]) -> Result<Vec<Vec<u64>>, LaunchError> {
        let fail = |errors| LaunchError { kernel: self.name().into(), errors };
        let values = bind(self.variables(), variables).map_err(fail)?;
        let shape = |(slot, param): (usize, &ProgramParam)| {
            param
                .shape_at(&values)
                .ok_or_else(|| fail(vec![argument(slot, param, ArgumentError::Overflow)]))
        };
        self.params().iter().enumerate().map(shape).collect()
    }

    /// How long it took from the graph to something that can be launched, in the call that returned
    /// this; little if the code was there already.
    pub fn compile_time(&self) -> Duration {
        self.compile_time
    }

    /// The source text, if that is what the device makes.
    pub fn source(&self) -> Option<&str> {
        match &self.executable.code {
            Code::Source(source) => Some(source),
            Code::Machine { .. } | Code::Graph(..) | Code::Counted { .. } => None,
        }
    }

    /// Whether a launch computes anything: `null` and what makes source do not.
    pub fn runs(&self) -> bool {
        matches!(self.executable.code, Code::Machine { .. } | Code::Graph(..))
    }

    /// Runs the kernel on `buffers`, one for each parameter, and returns when it is done. The kernel is
    /// the same for all values of its variables: nothing is compiled again.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the arguments, before anything is touched. On `interp` also
    /// what the kernel did wrong; the buffers are left as they were.
    pub fn launch(
        &self,
        buffers: &mut [Buffer<'_>],
        options: &LaunchOptions<'_>,
    ) -> Result<Launched, LaunchError> {
        let values = self.check(buffers, options)?;
        self.run(buffers, options, &values)
    }

    /// Checks what is given to a launch and returns the values of the variables, by number.
    pub(crate) fn check(
        &self,
        buffers: &[Buffer<'_>],
        options: &LaunchOptions<'_>,
    ) -> Result<Vec<i64>, LaunchError> {
        let fail = |errors| LaunchError { kernel: self.name().into(), errors };
        if self.source().is_some() {
            let device = self.device.name();
            return Err(fail(vec![LaunchErrorKind::SourceOnly { device }]));
        }
        // Without its variables the lengths of buffers are not known.
        let values = bind(self.variables(), options.variables).map_err(fail)?;
        let mut errors = check(self.params(), &values, buffers, self.runs());
        if options.threads == Some(0) {
            errors.push(LaunchErrorKind::ZeroThreads);
        }
        if errors.is_empty() { Ok(values) } else { Err(fail(errors)) }
    }

    /// Runs the kernel on what [`check`](Compiled::check) has found right; `values` are what it
    /// returned.
    pub(crate) fn run(
        &self,
        buffers: &mut [Buffer<'_>],
        options: &LaunchOptions<'_>,
        values: &[i64],
    ) -> Result<Launched, LaunchError> {
        let Compiled { device, executable, .. } = self;
        let Executable { name, params, code, .. } = &**executable;
        let fail = |errors| LaunchError { kernel: name.clone(), errors };
        let start = Instant::now();
        let instances = |extent: &Size| extent.eval(values).expect("lowering keeps it within i64");
        let mut counted = None;
        let threads = match code {
            Code::Machine { code, extent } => {
                let pointers = Pointers(buffers.iter().map(Buffer::pointer).collect());
                let threads = options.threads.unwrap_or_else(default_threads);
                let run = |slice: Range<u64>| {
                    // SAFETY: the values are within the bounds of the variables, as `bind` has found.
                    // `check` has found that each buffer is what the parameter of its slot
                    // asks for, and has memory; these are the program's parameters, as lowering
                    // keeps them all. The buffers are borrowed mutably until all slices are done;
                    // the slices are disjoint parts of `0..extent`, which is within i64. What the
                    // program does is what `lower` promises of a verified kernel.
                    unsafe {
                        code.run(pointers.get(), values, slice.start as i64, slice.end as i64);
                    }
                };
                for_slices(instances(extent), threads, run)
                    .map_err(|reason| LaunchErrorKind::Threads { threads, reason })
            }
            Code::Graph(kernel, functions) => {
                let functions = functions.clone();
                let variables = options.variables;
                let options = interp::Options { variables, functions, ..Default::default() };
                interpret(kernel, &options, params, buffers).map(|()| 1).map_err(|error| {
                    let message = kernel.message(error.node, &error.to_string());
                    LaunchErrorKind::Interp { error, message }
                })
            }
            Code::Counted { program, extent } => {
                counted = cost(program, values, instances(extent));
                Ok(0)
            }
            Code::Source(_) => unreachable!("source was refused above"),
        };
        let threads = threads.map_err(|error| fail(vec![error]))?;
        let time = start.elapsed();
        device.count_launch(counted);
        Ok(Launched { time, threads, cost: counted })
    }
}

/// Runs `kernel` on copies of `buffers`, which `check` has found right, and copies back what it may
/// have written.
fn interpret(
    kernel: &KernelGraph,
    options: &interp::Options<'_>,
    params: &[ProgramParam],
    buffers: &mut [Buffer<'_>],
) -> Result<(), interp::Error> {
    let data = buffers.iter().map(Buffer::to_data).collect::<Option<Vec<Data>>>();
    // The verifier rejects a param that is never stored, so what is missing is memory.
    let too_large = interp::Error { node: kernel.sink, kind: interp::ErrorKind::TooLarge };
    let mut data = data.ok_or(too_large)?;
    interp::run(&kernel.graph, kernel.sink, &mut data, options)?;
    for ((buffer, data), param) in buffers.iter_mut().zip(&data).zip(params) {
        if param.mutable {
            buffer.set_data(data);
        }
    }
    Ok(())
}

/// The address of each buffer that machine code takes.
struct Pointers(Vec<*mut u8>);

// SAFETY: only addresses are shared; what is done with them is for the caller of the code to argue.
unsafe impl Sync for Pointers {}

impl Pointers {
    fn get(&self) -> &[*mut u8] {
        &self.0
    }
}
