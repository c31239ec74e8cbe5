//! S7, value by value.

use interp::{AluError, alu};
use uop::Const::{self, Bool, F32, Int};
use uop::{DType, Op};

fn f(x: f32) -> Const {
    Const::from(x)
}

#[track_caller]
fn is(op: Op, dtype: DType, args: &[Const], want: Const) {
    assert_eq!(alu(op, dtype, args), Ok(want), "{op}.{dtype} {args:?}");
}

#[test]
fn integers_wrap() {
    let (min, max) = (Int(i32::MIN.into()), Int(i32::MAX.into()));
    is(Op::Add, DType::I32, &[max, Int(1)], min);
    is(Op::Sub, DType::I32, &[min, Int(1)], max);
    is(Op::Mul, DType::I32, &[Int(1 << 20), Int(1 << 12)], Int(0));
    is(Op::Neg, DType::I32, &[min], min);
    let min = Int(i64::MIN.into());
    is(Op::Neg, DType::I64, &[min], min);
    is(Op::Mul, DType::I64, &[min, min], Int(0));
    is(Op::Mul, DType::I64, &[min, Int(-1)], min);
    // The product itself leaves i128.
    let max = Int(u64::MAX.into());
    is(Op::Mul, DType::U64, &[max, max], Int(1));
}

#[test]
fn index_overflow_is_an_error() {
    let (min, max) = (Int(i128::MIN), Int(i128::MAX));
    for (op, args) in [
        (Op::Neg, vec![min]),
        (Op::Add, vec![max, Int(1)]),
        (Op::Sub, vec![min, Int(1)]),
        (Op::Mul, vec![max, Int(2)]),
    ] {
        assert_eq!(alu(op, DType::Index, &args), Err(AluError::Overflow), "{op}");
    }
    is(Op::Max, DType::Index, &[min, max], max);
}

#[test]
fn max_and_min_choose_by_one_comparison() {
    let nan = F32(0x7fc0_1234);
    is(Op::Max, DType::F32, &[nan, f(1.0)], f(1.0));
    is(Op::Max, DType::F32, &[f(1.0), nan], nan);
    is(Op::Min, DType::F32, &[nan, f(1.0)], f(1.0));
    is(Op::Min, DType::F32, &[f(1.0), nan], nan);
    for op in [Op::Max, Op::Min] {
        is(op, DType::F32, &[f(0.0), f(-0.0)], f(-0.0));
        is(op, DType::F32, &[f(-0.0), f(0.0)], f(0.0));
    }
    is(Op::Max, DType::I32, &[Int(-3), Int(2)], Int(2));
    is(Op::Min, DType::I32, &[Int(-3), Int(2)], Int(-3));
}

#[test]
fn floats() {
    is(Op::Neg, DType::F32, &[f(0.0)], f(-0.0));
    is(Op::Neg, DType::F32, &[F32(0x7fc0_0001)], F32(0xffc0_0001));
    is(Op::Add, DType::F32, &[f(-0.0), f(0.0)], f(0.0));
    is(Op::Sub, DType::F32, &[f(1e-45), f(0.0)], F32(1));
    is(Op::Mul, DType::F32, &[f(f32::MAX), f(2.0)], f(f32::INFINITY));
    is(Op::Mul, DType::F32, &[f(1e-30), f(1e-15)], F32(1));
}

#[test]
fn comparisons_with_nan_are_false_but_cmpne() {
    let nan = f(f32::NAN);
    is(Op::CmpLt, DType::Bool, &[nan, f(1.0)], Bool(false));
    is(Op::CmpLt, DType::Bool, &[f(1.0), nan], Bool(false));
    is(Op::CmpEq, DType::Bool, &[nan, nan], Bool(false));
    is(Op::CmpNe, DType::Bool, &[nan, nan], Bool(true));
    is(Op::CmpEq, DType::Bool, &[f(0.0), f(-0.0)], Bool(true));
    is(Op::CmpNe, DType::Bool, &[Bool(false), Bool(true)], Bool(true));
}

#[test]
fn where_keeps_bits() {
    let (a, b) = (F32(0x7fa0_0001), F32(0xffff_ffff));
    is(Op::Where, DType::F32, &[Bool(true), a, b], a);
    is(Op::Where, DType::F32, &[Bool(false), a, b], b);
}

#[test]
fn bits_of_integers_and_booleans() {
    is(Op::And, DType::I32, &[Int(-2), Int(7)], Int(6));
    is(Op::Or, DType::I64, &[Int(i64::MIN.into()), Int(1)], Int(i128::from(i64::MIN) + 1));
    is(Op::And, DType::Bool, &[Bool(true), Bool(false)], Bool(false));
    is(Op::Or, DType::Bool, &[Bool(true), Bool(false)], Bool(true));
    assert_eq!(alu(Op::And, DType::Index, &[Int(1), Int(1)]), Err(AluError::Type));
}

#[test]
fn casts() {
    let cast = |dtype, x, want| is(Op::Cast, dtype, &[x], want);
    cast(DType::I32, f(-1.9), Int(-1));
    cast(DType::I32, f(1e20), Int(i32::MAX.into()));
    cast(DType::I64, f(f32::NEG_INFINITY), Int(i64::MIN.into()));
    cast(DType::I64, f(f32::NAN), Int(0));
    cast(DType::Index, f(-2.5), Int(-2));
    cast(DType::Index, f(1e30), Int(1e30f32 as i128));
    cast(DType::I32, Int(1 << 32 | 5), Int(5));
    cast(DType::I32, Int(i64::MIN.into()), Int(0));
    cast(DType::Index, Int(i64::MIN.into()), Int(i64::MIN.into()));
    cast(DType::F32, Int((1 << 24) + 1), f(16_777_216.0));
    cast(DType::F32, Int((1 << 24) + 3), f(16_777_220.0));
    cast(DType::F32, Bool(true), f(1.0));
    cast(DType::Bool, f(-0.0), Bool(false));
    cast(DType::Bool, f(f32::NAN), Bool(true));
    cast(DType::Bool, Int(-1), Bool(true));
    cast(DType::F32, F32(0x7fa0_0001), F32(0x7fa0_0001));
}

#[test]
fn what_does_not_fit_is_an_error() {
    for (op, dtype, args) in [
        (Op::Add, DType::F32, vec![Int(1), Int(2)]),
        (Op::Add, DType::I32, vec![f(1.0), f(2.0)]),
        (Op::Add, DType::I32, vec![Int(1)]),
        (Op::CmpLt, DType::Bool, vec![Bool(false), Bool(true)]),
        (Op::Max, DType::Bool, vec![Bool(true), Bool(true)]),
        (Op::Where, DType::I32, vec![Int(1), Int(2), Int(3)]),
        (Op::Where, DType::I32, vec![]),
        (Op::Cast, DType::Void, vec![Int(1)]),
        (Op::Load, DType::I32, vec![Int(1)]),
    ] {
        assert_eq!(alu(op, dtype, &args), Err(AluError::Type), "{op}.{dtype} {args:?}");
    }
}

/// Once, to nearest even, from the f32: no bit of that is lost on the way.
#[test]
fn halves_round_once() {
    for (dtype, last) in [(DType::F16, 1.0 / 1024.0), (DType::BF16, 1.0 / 128.0)] {
        let half = |value: f32| Const::float(dtype, value.into()).expect("it is a float");
        let (one, more) = (half(1.0), half(1.0 + last));
        is(Op::Cast, dtype, &[f(1.0 + last / 2.0)], one);
        is(Op::Cast, dtype, &[f(1.0 + last / 2.0 + f32::EPSILON)], more);
        is(Op::Cast, dtype, &[f(1.0 + last / 2.0 - f32::EPSILON)], one);
        // To f32 first, where it is a tie.
        is(Op::Cast, dtype, &[Const::from(1.0 + f64::from(last / 2.0) + 1e-12)], one);
        is(Op::Add, dtype, &[one, half(last / 2.0)], one);
        is(Op::Add, dtype, &[more, half(last / 2.0)], half(1.0 + 2.0 * last));
        is(Op::Add, dtype, &[one, half(last / 2.0 + last / 64.0)], more);
    }
}
