//! Small kernels.
#![allow(dead_code)] // Each test program uses a part of it.

use runtime::{Buffer, Compiled, Device, LaunchOptions, Launched};
use uop::{AxisType, BuildErrors, DType, Kernel, KernelGraph};

/// `out[i] = value`; `out` is i32[n] and mutable.
pub(crate) fn constant(value: i32, n: i64) -> KernelGraph {
    let k = Kernel::new();
    let out = k.param_mut("out", DType::I32, n);
    let i = k.range(n, AxisType::Global);
    out.at(i).store(value).end(i).sink("constant").expect("it is right")
}

/// `y[i] = 2·x[i] + y[i]`; `y` and `x` are f32[n], `y` is mutable.
pub(crate) fn saxpy(n: i64) -> KernelGraph {
    let k = Kernel::new();
    let y = k.param_mut("y", DType::F32, n);
    let x = k.param("x", DType::F32, n);
    let i = k.range(n, AxisType::Global);
    let sum = x.at(i).load() * 2.0 + y.at(i).load();
    y.at(i).store(sum).end(i).sink("saxpy").expect("it is right")
}

/// `table[clip(idx[i]), j] += grad[i, j]`, atomically; `table` is f32[v, d] and mutable, `grad` is
/// f32[n, d], `idx` is i32[n].
pub(crate) fn scatter(n: i64, d: i64, v: i64) -> KernelGraph {
    let k = Kernel::new();
    let table = k.param_mut("table", DType::F32, [v, d]);
    let grad = k.param("grad", DType::F32, [n, d]);
    let idx = k.param("idx", DType::I32, n);
    let (i, j) = (k.range(n, AxisType::Global), k.range(d, AxisType::Loop));
    let row = idx.at(i).load().clip(0, (v - 1) as i32).cast(DType::Index);
    let update = table.at([row, j]).atomic_add(grad.at([i, j]).load());
    update.end([i, j]).sink("scatter").expect("it is right")
}

/// `out[i] = table[idx[i]]`, where nothing is known of `idx`; `out` is i64[n] and mutable, `table`
/// is i64[v], `idx` is i32[n].
pub(crate) fn gather(n: i64, v: i64) -> KernelGraph {
    let k = Kernel::new();
    let out = k.param_mut("out", DType::I64, n);
    let table = k.param("table", DType::I64, v);
    let idx = k.param("idx", DType::I32, n);
    let i = k.range(n, AxisType::Global);
    let value = table.at(idx.at(i).load().cast(DType::Index)).load();
    out.at(i).store(value).end(i).sink("gather").expect("it is right")
}

/// `out[i] = x[i] < y[i]`; `out` is bool[n] and mutable, `x` and `y` are i32[n].
pub(crate) fn less(n: i64) -> Result<KernelGraph, BuildErrors> {
    let k = Kernel::new();
    let out = k.param_mut("out", DType::Bool, n);
    let x = k.param("x", DType::I32, n);
    let y = k.param("y", DType::I32, n);
    let i = k.range(n, AxisType::Global);
    out.at(i).store(x.at(i).load().lt(y.at(i).load())).end(i).sink("less")
}

#[track_caller]
pub(crate) fn compile(device: &Device, kernel: &KernelGraph) -> Compiled {
    let compiled = device.compile(kernel);
    compiled.unwrap_or_else(|error| panic!("{}: {error}", device.name()))
}

#[track_caller]
pub(crate) fn launch(kernel: &Compiled, buffers: &mut [Buffer<'_>], threads: usize) -> Launched {
    let threads = Some(threads);
    let launched = kernel.launch(buffers, &LaunchOptions { threads, variables: &[] });
    launched.unwrap_or_else(|error| panic!("{error}"))
}
