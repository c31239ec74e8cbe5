use uop::{AxisType, DType, Kernel, KernelGraph};

use crate::embedding::{KernelError, check_bytes, check_size};

/// `out[i] = 0`; `out` is `dtype[n]`, mutable.
///
/// # Errors
///
/// `n` below 0 or of too many bytes, or a `dtype` that has no zero in memory (`index`, `void`).
pub fn zero(n: i64, dtype: DType) -> Result<KernelGraph, KernelError> {
    check_size("len", n, 0)?;
    check_bytes("out", dtype, &[n])?;
    let k = Kernel::new();
    let out = k.param_mut("out", dtype, n);
    let i = k.range(n, AxisType::Global);
    let zero = if dtype == DType::Bool { k.constant(dtype, false) } else { k.constant(dtype, 0) };
    Ok(out.at(i).store(zero).end(i).sink("zero")?)
}
