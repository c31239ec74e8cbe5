//! Arithmetic (docs/ir.md, S7): the one place that says what the values of the table's ops are.

use thiserror::Error;
use uop::Const::{self, Bool, F32, Int};
use uop::{DType, Op};

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
            [Int(a)] => integer(dtype, a.checked_neg()),
            [F32(a)] => Ok(F32(a ^ 1 << 31)),
            _ => Err(AluError::Type),
        },
        Op::Add => number(dtype, args, i128::checked_add, |a, b| a + b),
        Op::Sub => number(dtype, args, i128::checked_sub, |a, b| a - b),
        Op::Mul => number(dtype, args, i128::checked_mul, |a, b| a * b),
        // The form matters: with a NaN, or zeros of two signs, it is the second.
        Op::Max => match *args {
            [Int(_) | F32(_), _] => select(compare(args, |a, b| b < a, |a, b| b < a)?, args),
            _ => Err(AluError::Type),
        },
        Op::Min => match *args {
            [Int(_) | F32(_), _] => select(compare(args, |a, b| a < b, |a, b| a < b)?, args),
            _ => Err(AluError::Type),
        },
        Op::And => bits(dtype, args, |a, b| a & b),
        Op::Or => bits(dtype, args, |a, b| a | b),
        Op::CmpLt => match *args {
            [Int(_) | F32(_), _] => compare(args, |a, b| a < b, |a, b| a < b).map(Bool),
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

/// An exact integer as a value of `dtype`; `None` is beyond `i128`, which only `index` reaches.
fn integer(dtype: DType, exact: Option<i128>) -> Result<Const, AluError> {
    exact.map(|value| Int(dtype.wrap(value))).ok_or(AluError::Overflow)
}

fn number(
    dtype: DType,
    args: &[Const],
    int: impl Fn(i128, i128) -> Option<i128>,
    float: impl Fn(f32, f32) -> f32,
) -> Result<Const, AluError> {
    match *args {
        [Int(a), Int(b)] => integer(dtype, int(a, b)),
        [F32(a), F32(b)] => Ok(Const::from(float(f32::from_bits(a), f32::from_bits(b)))),
        _ => Err(AluError::Type),
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
    float: impl Fn(f32, f32) -> bool,
) -> Result<bool, AluError> {
    match *args {
        [Bool(a), Bool(b)] => Ok(int(a.into(), b.into())),
        [Int(a), Int(b)] => Ok(int(a, b)),
        [F32(a), F32(b)] => Ok(float(f32::from_bits(a), f32::from_bits(b))),
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
    Ok(match (dtype, value) {
        (DType::Void, _) => return Err(AluError::Type),
        (DType::Bool, Bool(a)) => Bool(a),
        (DType::Bool, Int(a)) => Bool(a != 0),
        (DType::Bool, F32(a)) => Bool(f32::from_bits(a) != 0.0),
        (DType::I32, F32(a)) => Int((f32::from_bits(a) as i32).into()),
        (DType::I64, F32(a)) => Int((f32::from_bits(a) as i64).into()),
        (DType::Index, F32(a)) => Int(f32::from_bits(a) as i128),
        (DType::I32 | DType::I64 | DType::Index, Bool(a)) => Int(a.into()),
        (DType::I32 | DType::I64 | DType::Index, Int(a)) => Int(dtype.wrap(a)),
        (DType::F32, Bool(a)) => Const::from(f32::from(u8::from(a))),
        (DType::F32, Int(a)) => Const::from(a as f32),
        (DType::F32, F32(a)) => F32(a),
    })
}
