//! Arithmetic (docs/ir.md, S7): the one place that says what the values of the table's ops are.

use half::{bf16, f16};
use thiserror::Error;
use uop::Const::{self, BF16, Bool, F16, F32, F64, Int};
use uop::{AtomicOp, DType, Op};

/// Why an operation has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AluError {
    /// The exact result, of dtype `index`, leaves `i128`.
    #[error("overflows")]
    Overflow,
    /// The op does not take these arguments, or does not give this dtype.
    #[error("arguments do not fit the op")]
    Type,
}

/// The value of an arithmetic op whose result has `dtype`. Integers among `args` are within the
/// range of their dtype; so is the result.
///
/// # Errors
///
/// `Overflow` only for `index`; `Type` never for what the verifier accepts.
pub fn alu(op: Op, dtype: DType, args: &[Const]) -> Result<Const, AluError> {
    let result = match op {
        Op::Neg => match *args {
            [Int(a)] => integer(dtype, a.overflowing_neg()),
            [F16(a)] => Ok(F16(a ^ 1 << 15)),
            [BF16(a)] => Ok(BF16(a ^ 1 << 15)),
            [F32(a)] => Ok(F32(a ^ 1 << 31)),
            [F64(a)] => Ok(F64(a ^ 1 << 63)),
            _ => Err(AluError::Type),
        },
        Op::Add => number(dtype, args, i128::overflowing_add, |a, b| a + b, |a, b| a + b),
        Op::Sub => number(dtype, args, i128::overflowing_sub, |a, b| a - b, |a, b| a - b),
        Op::Mul => number(dtype, args, i128::overflowing_mul, |a, b| a * b, |a, b| a * b),
        // The form matters: with a NaN, or zeros of two signs, it is the second.
        Op::Max => match *args {
            [a, _] if !matches!(a, Bool(_)) => {
                select(compare(args, |a, b| b < a, |a, b| b < a)?, args)
            }
            _ => Err(AluError::Type),
        },
        Op::Min => match *args {
            [a, _] if !matches!(a, Bool(_)) => {
                select(compare(args, |a, b| a < b, |a, b| a < b)?, args)
            }
            _ => Err(AluError::Type),
        },
        Op::And => bits(dtype, args, |a, b| a & b),
        Op::Or => bits(dtype, args, |a, b| a | b),
        Op::CmpLt => match *args {
            [a, _] if !matches!(a, Bool(_)) => compare(args, |a, b| a < b, |a, b| a < b).map(Bool),
            _ => Err(AluError::Type),
        },
        Op::CmpNe => compare(args, |a, b| a != b, |a, b| a != b).map(Bool),
        Op::CmpEq => compare(args, |a, b| a == b, |a, b| a == b).map(Bool),
        Op::Where => match *args {
            [Bool(condition), _, _] => select(condition, &args[1..]),
            _ => Err(AluError::Type),
        },
        Op::Cast => match *args {
            [a] => cast(dtype, a),
            _ => Err(AluError::Type),
        },
        Op::Param
        | Op::Buffer
        | Op::Const
        | Op::Variable
        | Op::Range
        | Op::Special
        | Op::Reshape
        | Op::Index
        | Op::Load
        | Op::Store
        | Op::Custom
        | Op::After
        | Op::Group
        | Op::End
        | Op::Sink => Err(AluError::Type),
    }?;
    if result.fits(dtype) { Ok(result) } else { Err(AluError::Type) }
}

/// What an element of `dtype` becomes by the atomic `op` with `values`, if it was `old`.
///
/// # Errors
///
/// `Type`, never for what the verifier accepts.
pub fn atomic(op: AtomicOp, dtype: DType, old: Const, values: &[Const]) -> Result<Const, AluError> {
    match (op, values) {
        (AtomicOp::Add, &[value]) => alu(Op::Add, dtype, &[old, value]),
        (AtomicOp::And, &[value]) => alu(Op::And, dtype, &[old, value]),
        (AtomicOp::Or, &[value]) => alu(Op::Or, dtype, &[old, value]),
        (AtomicOp::Xor, &[value]) => bits(dtype, &[old, value], |a, b| a ^ b),
        (AtomicOp::Max, &[value]) => Ok(extreme(true, old, value)),
        (AtomicOp::Min, &[value]) => Ok(extreme(false, old, value)),
        (AtomicOp::Exchange, &[value]) => Ok(value),
        (AtomicOp::Cas, &[expected, desired]) => Ok(if old == expected { desired } else { old }),
        _ => Err(AluError::Type),
    }
}

/// The maximum or the minimum of two numbers, of floats as IEEE 754-2019 has it.
fn extreme(maximum: bool, a: Const, b: Const) -> Const {
    let less = match (a.as_float(), b.as_float()) {
        (Some(x), _) if x.is_nan() => return a,
        (_, Some(y)) if y.is_nan() => return b,
        // It has -0.0 below +0.0.
        (Some(x), Some(y)) => x.total_cmp(&y).is_lt(),
        _ => a.as_int() < b.as_int(),
    };
    if less == maximum { b } else { a }
}

/// An integer modulo 2^128, and whether it left `i128`, as a value of `dtype`: only `index` minds.
fn integer(dtype: DType, (value, overflows): (i128, bool)) -> Result<Const, AluError> {
    if overflows && dtype == DType::Index {
        return Err(AluError::Overflow);
    }
    Ok(Int(dtype.wrap(value)))
}

fn number(
    dtype: DType,
    args: &[Const],
    int: impl Fn(i128, i128) -> (i128, bool),
    single: impl Fn(f32, f32) -> f32,
    double: impl Fn(f64, f64) -> f64,
) -> Result<Const, AluError> {
    match *args {
        [Int(a), Int(b)] => integer(dtype, int(a, b)),
        [F64(a), F64(b)] => Ok(Const::from(double(f64::from_bits(a), f64::from_bits(b)))),
        // Of 16 bits: the operation of f32, rounded once more.
        [a, b] if same(a, b) => {
            let operands = a.as_float().zip(b.as_float()).ok_or(AluError::Type)?;
            // Both were floats of 32 bits or fewer.
            Ok(rounded(dtype, single(operands.0 as f32, operands.1 as f32)))
        }
        _ => Err(AluError::Type),
    }
}

/// Whether two constants are of one dtype, as far as they know theirs.
fn same(a: Const, b: Const) -> bool {
    std::mem::discriminant(&a) == std::mem::discriminant(&b)
}

/// The float of `dtype`, of 32 bits or fewer, nearest to `value`.
fn rounded(dtype: DType, value: f32) -> Const {
    match dtype {
        DType::F16 => F16(f16::from_f32(value).to_bits()),
        DType::BF16 => BF16(bf16::from_f32(value).to_bits()),
        _ => Const::from(value),
    }
}

fn bits(
    dtype: DType,
    args: &[Const],
    combine: impl Fn(i128, i128) -> i128,
) -> Result<Const, AluError> {
    match *args {
        [Bool(a), Bool(b)] => Ok(Bool(combine(a.into(), b.into()) != 0)),
        // `index` has no bits; sign extension commutes with both operations.
        [Int(a), Int(b)] if dtype != DType::Index => Ok(Int(combine(a, b))),
        _ => Err(AluError::Type),
    }
}

fn compare(
    args: &[Const],
    int: impl Fn(i128, i128) -> bool,
    float: impl Fn(f64, f64) -> bool,
) -> Result<bool, AluError> {
    match *args {
        [Bool(a), Bool(b)] => Ok(int(a.into(), b.into())),
        [Int(a), Int(b)] => Ok(int(a, b)),
        // A comparison is exact, so f64 serves for all.
        [a, b] if same(a, b) => {
            let (a, b) = a.as_float().zip(b.as_float()).ok_or(AluError::Type)?;
            Ok(float(a, b))
        }
        _ => Err(AluError::Type),
    }
}

/// One of two values as it is, the bits of a NaN included.
fn select(first: bool, args: &[Const]) -> Result<Const, AluError> {
    match *args {
        [a, b] => Ok(if first { a } else { b }),
        _ => Err(AluError::Type),
    }
}

fn cast(dtype: DType, value: Const) -> Result<Const, AluError> {
    // The casts of Rust truncate, saturate and turn NaN into 0, and round integers to the nearest
    // float, ties to even; every i128 is below the largest f32.
    let to_int = |x: i128| Ok(Int(dtype.wrap(x)));
    match (dtype, value) {
        (DType::Void, _) => Err(AluError::Type),
        (DType::Bool, Bool(a)) => Ok(Bool(a)),
        (DType::Bool, Int(a)) => Ok(Bool(a != 0)),
        (DType::Bool, a) => Ok(Bool(a.as_float() != Some(0.0))),
        (dtype, Bool(a)) if dtype.is_int() => to_int(a.into()),
        (dtype, Int(a)) if dtype.is_int() => to_int(a),
        (dtype, a) if dtype.is_int() => {
            let exact = a.as_float().ok_or(AluError::Type)? as i128;
            let (lo, hi) = dtype.int_range().unwrap_or((i128::MIN, i128::MAX));
            Ok(Int(exact.clamp(lo, hi)))
        }
        // What is of the dtype already keeps its bits.
        (dtype, a) if a.fits(dtype) => Ok(a),
        (DType::F64, Bool(a)) => Ok(Const::from(f64::from(u8::from(a)))),
        (DType::F64, Int(a)) => Ok(Const::from(a as f64)),
        (DType::F64, a) => a.as_float().map(Const::from).ok_or(AluError::Type),
        (dtype, Bool(a)) => Ok(rounded(dtype, f32::from(u8::from(a)))),
        (dtype, Int(a)) => Ok(rounded(dtype, a as f32)),
        (dtype, a) => Ok(rounded(dtype, a.as_float().ok_or(AluError::Type)? as f32)),
    }
}
