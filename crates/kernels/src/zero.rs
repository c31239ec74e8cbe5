use uop::{AxisType, BuildErrors, DType, Kernel, KernelGraph};

/// `out[i] = 0`; `out` is `dtype[n]`, mutable.
///
/// # Errors
///
/// `n` below 0, or a `dtype` that has no zero in memory (`index`, `void`).
pub fn zero(n: i64, dtype: DType) -> Result<KernelGraph, BuildErrors> {
    let k = Kernel::new();
    let out = k.param_mut("out", dtype, n);
    let i = k.range(n, AxisType::Global);
    let zero = if dtype == DType::Bool { k.constant(dtype, false) } else { k.constant(dtype, 0) };
    out.at(i).store(zero).end(i).sink("zero")
}
