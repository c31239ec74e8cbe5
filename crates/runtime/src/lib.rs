//! Buffers, devices, launches and threads.
//!
//! A [`Device`] compiles a kernel to a [`Compiled`]; [`Compiled::launch`] runs it on [`Buffer`]s,
//! which are views of the caller's memory. Invariants:
//!
//! - No graph, however malformed, makes a device panic: it is verified first.
//! - A launch checks all its arguments before it touches any, so nothing is undefined that was
//!   built without `unsafe`; a launch that fails its checks has changed nothing.
//! - The bits of a result do not depend on the number of threads, but for the order in which float
//!   atomics add.
//! - The process keeps the code of the last [`CACHED_KERNELS`] kernels, and nothing else. Which code
//!   a kernel gets depends on the kernel, the device and the machine, never on what came before.
//! - Nothing is printed, and nothing is read from the environment but the number of cores.
//!
//! ```
//! use runtime::{Buffer, Device, LaunchOptions};
//! use uop::{AxisType, DType, Kernel};
//!
//! let k = Kernel::new();
//! let y = k.param_mut("y", DType::F32, 4);
//! let x = k.param("x", DType::F32, 4);
//! let i = k.range(4, AxisType::Global);
//! let sum = x.at(i).load() * 2.0 + y.at(i).load();
//! let saxpy = Device::cpu().compile(&y.at(i).store(sum).end(i).sink("saxpy")?)?;
//!
//! let (mut y, x) = ([1.0_f32; 4], [1.0_f32, 2.0, 3.0, 4.0]);
//! let buffers = &mut [Buffer::from(&mut y), Buffer::from(&x)];
//! saxpy.launch(buffers, &LaunchOptions::default())?;
//! assert_eq!(y, [3.0, 5.0, 7.0, 9.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Views of memory and calls of machine code: in `buffer` and `compiled`, nowhere else.
#![allow(unsafe_code)]

mod buffer;
mod cache;
mod check;
mod compiled;
mod cost;
mod device;
mod error;
mod pool;
mod shard;

pub use buffer::{Buffer, Element};
pub use cache::CACHED_KERNELS;
pub use compiled::{Compiled, LaunchOptions, Launched};
pub use cost::Cost;
pub use device::{CompileStats, Device, UnknownDevice};
pub use error::{ArgumentError, CompileError, Error, LaunchError, LaunchErrorKind, ShardError};
pub use lower::{ProgramParam, ProgramVariable, Size};
pub use pool::MAX_THREADS;
pub use shard::{DEVICE_NUM, Sharded, shard};
