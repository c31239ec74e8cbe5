//! Kernels that are ready to run, and running them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use interp::Data;
use lower::ProgramParam;
use uop::KernelGraph;

use crate::buffer::Buffer;
use crate::check::check;
use crate::device::Device;
use crate::error::{LaunchError, LaunchErrorKind};
use crate::pool::{default_threads, for_slices};

/// A kernel compiled for a device. Clones share it; its code is freed with the last of them.
#[derive(Clone)]
pub struct Compiled {
    inner: Arc<Inner>,
}

struct Inner {
    device: Device,
    name: String,
    params: Vec<ProgramParam>,
    code: Code,
    compile_time: Duration,
}

/// What a device makes of a kernel.
pub(crate) enum Code {
    /// Machine code that does a part of `0..extent`.
    Machine {
        code: Box<jit::Code>,
        /// Within i64.
        extent: u64,
    },
    /// The kernel itself, to be interpreted.
    Graph(KernelGraph, interp::Options),
    /// What is never run.
    Nothing,
    /// Source text for some other machine.
    Source(String),
}

/// How to launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchOptions {
    /// How many threads to use, at least 1; by default one for each core.
    ///
    /// The outermost parallel range is cut into as many contiguous slices of near-equal size, which
    /// run at the same time, also if there are more than cores. A range is never cut into more
    /// slices than it has instances, nor into more than [`MAX_THREADS`](crate::MAX_THREADS). With 1
    /// everything happens on the calling thread.
    pub threads: Option<usize>,
}

/// What a launch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// From the end of the checks to the end of the last thread.
    pub time: Duration,
    /// How many threads ran a part; 0 if there was nothing to run.
    pub threads: usize,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled")
            .field("device", &self.inner.device)
            .field("name", &self.inner.name)
            .field("params", &self.inner.params)
            .finish_non_exhaustive()
    }
}

impl Compiled {
    pub(crate) fn new(
        device: Device,
        name: String,
        params: Vec<ProgramParam>,
        code: Code,
        compile_time: Duration,
    ) -> Compiled {
        Compiled { inner: Arc::new(Inner { device, name, params, code, compile_time }) }
    }

    /// The device that it was compiled for.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// The name of the kernel.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// What a launch takes, by slot.
    pub fn params(&self) -> &[ProgramParam] {
        &self.inner.params
    }

    /// How long it took from the graph to something that can be launched.
    pub fn compile_time(&self) -> Duration {
        self.inner.compile_time
    }

    /// The source text, if that is what the device makes.
    pub fn source(&self) -> Option<&str> {
        match &self.inner.code {
            Code::Source(source) => Some(source),
            Code::Machine { .. } | Code::Graph(..) | Code::Nothing => None,
        }
    }

    /// Whether a launch computes anything: `null` and what makes source do not.
    pub fn runs(&self) -> bool {
        matches!(self.inner.code, Code::Machine { .. } | Code::Graph(..))
    }

    /// Runs the kernel on `buffers`, one for each parameter, and returns when it is done.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the arguments, before anything is touched. On `interp` also
    /// what the kernel did wrong; the buffers are left as they were.
    pub fn launch(
        &self,
        buffers: &mut [Buffer<'_>],
        options: &LaunchOptions,
    ) -> Result<Launched, LaunchError> {
        let Inner { device, name, params, code, .. } = &*self.inner;
        let fail = |errors| LaunchError { kernel: name.clone(), errors };
        if let Code::Source(_) = code {
            let device = device.name();
            return Err(fail(vec![LaunchErrorKind::SourceOnly { device }]));
        }
        let mut errors = check(params, buffers);
        if options.threads == Some(0) {
            errors.push(LaunchErrorKind::ZeroThreads);
        }
        if !errors.is_empty() {
            return Err(fail(errors));
        }

        let start = Instant::now();
        let threads = match code {
            Code::Machine { code, extent } => {
                let pointers = Pointers(buffers.iter().map(Buffer::pointer).collect());
                let threads = options.threads.unwrap_or_else(default_threads);
                let run = |slice: Range<u64>| {
                    // SAFETY: `check` has found that each buffer is what the parameter of its slot
                    // asks for, and these are the program's: lowering keeps them all. The buffers are borrowed mutably until all slices are done; the slices are
                    // disjoint parts of `0..extent`, which is within i64. What the program does
                    // is what `lower` promises of a verified kernel.
                    unsafe { code.run(pointers.get(), slice.start as i64, slice.end as i64) }
                };
                for_slices(*extent, threads, run)
                    .map_err(|reason| LaunchErrorKind::Threads { threads, reason })
            }
            Code::Graph(kernel, options) => {
                interpret(kernel, options, params, buffers).map(|()| 1).map_err(|error| {
                    let message = kernel.message(error.node, &error.to_string());
                    LaunchErrorKind::Interp { error, message }
                })
            }
            Code::Nothing => Ok(0),
            Code::Source(_) => unreachable!("source was refused above"),
        };
        let threads = threads.map_err(|error| fail(vec![error]))?;
        let time = start.elapsed();
        device.count_launch();
        Ok(Launched { time, threads })
    }
}

/// Runs `kernel` on copies of `buffers`, which `check` has found right, and copies back what it may
/// have written.
fn interpret(
    kernel: &KernelGraph,
    options: &interp::Options,
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
