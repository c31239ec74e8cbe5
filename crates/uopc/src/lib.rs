//! A tiny compiler for compute kernels: one graph, the same bits on CPU, C and HIP.
//!
//! A kernel is a graph of UOps. It is written with operators ([`Kernel`], [`Val`]) or read from text
//! ([`parse()`]), verified, proved in bounds and free of races, and then run on the CPU through a JIT
//! ([`Device::cpu`]) or written as HIP for AMD GPUs ([`Device::amd`]). No C compiler is needed to
//! run one.
//!
//! ```
//! use uopc::{AxisType, Buffer, DType, Device, Kernel, LaunchOptions};
//!
//! // y[i] = 2 * x[i] + y[i]
//! let k = Kernel::new();
//! let y = k.param_mut("y", DType::F32, 4);
//! let x = k.param("x", DType::F32, 4);
//! let i = k.range(4, AxisType::Global);
//! let sum = x.at(i).load() * 2.0 + y.at(i).load();
//! let kernel = y.at(i).store(sum).end(i).sink("axpy")?;
//!
//! let compiled = Device::cpu().compile(&kernel)?;
//! let (mut y, x) = ([1.0f32; 4], [0.0f32, 1.0, 2.0, 3.0]);
//! compiled.launch(&mut [Buffer::from(&mut y), Buffer::from(&x)], &LaunchOptions::default())?;
//! assert_eq!(y, [1.0, 3.0, 5.0, 7.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The parts have crates of their own, re-exported here whole: [`uop`] (the graph), [`interp`] (the
//! oracle), [`lower`] (passes and proofs), [`text`] (C and HIP), [`jit`], [`runtime`] (devices and
//! launches) and [`kernels`] (the library).
#![forbid(unsafe_code)]

pub use interp;
pub use jit;
pub use kernels;
pub use lower;
pub use runtime;
pub use text;
pub use uop;

pub use runtime::{Buffer, Compiled, Device, LaunchOptions, Launched};
pub use uop::{AxisType, DType, Kernel, KernelGraph, Val, atomic, parse};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
