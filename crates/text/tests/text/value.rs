//! Values, and what the op table says of them.

use uop::{Const, DType, Op};

/// A value of some type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Bool(bool),
    I32(i32),
    I64(i64),
    F32(f32),
}

use Value::{Bool, F32, I32, I64};

impl Value {
    pub(crate) fn constant(self) -> Const {
        match self {
            Bool(x) => Const::Bool(x),
            I32(x) => Const::Int(x.into()),
            I64(x) => Const::Int(x.into()),
            F32(x) => Const::from(x),
        }
    }

    /// Its bytes in memory.
    pub(crate) fn bytes(self) -> Vec<u8> {
        match self {
            Bool(x) => vec![x.into()],
            I32(x) => x.to_ne_bytes().to_vec(),
            I64(x) => x.to_ne_bytes().to_vec(),
            F32(x) => x.to_ne_bytes().to_vec(),
        }
    }

    /// The values in `bytes`.
    pub(crate) fn read(dtype: DType, bytes: &[u8]) -> Vec<Value> {
        bytes
            .chunks_exact(dtype.size().expect("it is stored"))
            .map(|b| match dtype {
                DType::Bool => {
                    assert!(b[0] < 2, "a bool is 0 or 1 in memory");
                    Bool(b[0] == 1)
                }
                DType::I32 => I32(i32::from_ne_bytes(b.try_into().expect("4 bytes"))),
                DType::I64 => I64(i64::from_ne_bytes(b.try_into().expect("8 bytes"))),
                DType::F32 => F32(f32::from_ne_bytes(b.try_into().expect("4 bytes"))),
                DType::Void | DType::Index => panic!("no {dtype} in memory"),
            })
            .collect()
    }

    /// Equal by bits.
    pub(crate) fn same_bits(self, other: Value) -> bool {
        match (self, other) {
            (F32(x), F32(y)) => x.to_bits() == y.to_bits(),
            (Bool(x), Bool(y)) => x == y,
            (I32(x), I32(y)) => x == y,
            (I64(x), I64(y)) => x == y,
            _ => false,
        }
    }

    /// Equal by bits, all NaNs being one.
    pub(crate) fn same(self, other: Value) -> bool {
        match (self, other) {
            (F32(x), F32(y)) if x.is_nan() => y.is_nan(),
            _ => self.same_bits(other),
        }
    }

    fn less(self, other: Value) -> bool {
        match (self, other) {
            (Bool(x), Bool(y)) => !x & y,
            (I32(x), I32(y)) => x < y,
            (I64(x), I64(y)) => x < y,
            (F32(x), F32(y)) => x < y,
            _ => panic!("{self:?} < {other:?}"),
        }
    }

    fn equal(self, other: Value) -> bool {
        match (self, other) {
            (F32(x), F32(y)) => x == y,
            _ => self.same_bits(other),
        }
    }

    fn cast(self, dtype: DType) -> Value {
        match (self, dtype) {
            (F32(x), DType::I32) => I32(x as i32),
            (F32(x), DType::I64) => I64(x as i64),
            (F32(x), DType::Bool) => Bool(x != 0.0),
            (F32(_), DType::F32) => self,
            (I32(x), DType::F32) => F32(x as f32),
            (I64(x), DType::F32) => F32(x as f32),
            (Bool(x), DType::F32) => F32(u8::from(x).into()),
            (Bool(x), _) => I64(x.into()).cast(dtype),
            (I32(x), _) => I64(x.into()).cast(dtype),
            (I64(x), DType::Bool) => Bool(x != 0),
            (I64(x), DType::I32) => I32(x as i32),
            (I64(_), DType::I64) => self,
            (_, DType::Void | DType::Index) => panic!("{self:?} as {dtype}"),
        }
    }
}

/// `op` on `args`.
pub(crate) fn apply(op: Op, args: &[Value], result: DType) -> Value {
    match (op, args) {
        (Op::Neg, &[I32(x)]) => I32(x.wrapping_neg()),
        (Op::Neg, &[I64(x)]) => I64(x.wrapping_neg()),
        (Op::Neg, &[F32(x)]) => F32(f32::from_bits(x.to_bits() ^ 1 << 31)),
        (Op::Add, &[I32(x), I32(y)]) => I32(x.wrapping_add(y)),
        (Op::Add, &[I64(x), I64(y)]) => I64(x.wrapping_add(y)),
        (Op::Add, &[F32(x), F32(y)]) => F32(x + y),
        (Op::Sub, &[I32(x), I32(y)]) => I32(x.wrapping_sub(y)),
        (Op::Sub, &[I64(x), I64(y)]) => I64(x.wrapping_sub(y)),
        (Op::Sub, &[F32(x), F32(y)]) => F32(x - y),
        (Op::Mul, &[I32(x), I32(y)]) => I32(x.wrapping_mul(y)),
        (Op::Mul, &[I64(x), I64(y)]) => I64(x.wrapping_mul(y)),
        (Op::Mul, &[F32(x), F32(y)]) => F32(x * y),
        (Op::Max, &[x, y]) => {
            if y.less(x) {
                x
            } else {
                y
            }
        }
        (Op::Min, &[x, y]) => {
            if x.less(y) {
                x
            } else {
                y
            }
        }
        (Op::And, &[Bool(x), Bool(y)]) => Bool(x & y),
        (Op::And, &[I32(x), I32(y)]) => I32(x & y),
        (Op::And, &[I64(x), I64(y)]) => I64(x & y),
        (Op::Or, &[Bool(x), Bool(y)]) => Bool(x | y),
        (Op::Or, &[I32(x), I32(y)]) => I32(x | y),
        (Op::Or, &[I64(x), I64(y)]) => I64(x | y),
        (Op::CmpLt, &[x, y]) => Bool(x.less(y)),
        (Op::CmpNe, &[x, y]) => Bool(!x.equal(y)),
        (Op::CmpEq, &[x, y]) => Bool(x.equal(y)),
        (Op::Where, &[Bool(cond), x, y]) => {
            if cond {
                x
            } else {
                y
            }
        }
        (Op::Cast, &[x]) => x.cast(result),
        _ => panic!("{op} on {args:?}"),
    }
}

/// Every op on operands of `dtype`, with the type of its result.
pub(crate) fn ops_on(dtype: DType) -> Vec<(Op, DType)> {
    let same: &[Op] = match dtype {
        DType::Bool => &[Op::Max, Op::Min, Op::And, Op::Or],
        DType::F32 => &[Op::Neg, Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Min],
        _ => &[Op::Neg, Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or],
    };
    let same = same.iter().map(|&op| (op, dtype));
    let compare = [Op::CmpLt, Op::CmpNe, Op::CmpEq].map(|op| (op, DType::Bool));
    let cast = STORED.map(|to| (Op::Cast, to));
    same.chain(compare).chain(cast).collect()
}

/// The types that values have in memory.
pub(crate) const STORED: [DType; 4] = [DType::Bool, DType::I32, DType::I64, DType::F32];

/// Values of `dtype` at which something changes.
pub(crate) fn edges(dtype: DType) -> Vec<Value> {
    match dtype {
        DType::Bool => vec![Bool(false), Bool(true)],
        DType::I32 => {
            [0, 1, -1, 2, 7, -3, i32::MIN, i32::MIN + 1, i32::MAX, 0x5555_5555, 16_777_217]
                .map(I32)
                .to_vec()
        }
        DType::I64 => [
            0,
            1,
            -1,
            3,
            i64::MIN,
            i64::MIN + 1,
            i64::MAX,
            1 << 31,
            -(1 << 31) - 1,
            16_777_217,
            (1 << 53) + 1,
            0x7fff_ffbf_ffff_ffff,
            0x0123_4567_89ab_cdef,
        ]
        .map(I64)
        .to_vec(),
        DType::F32 => [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -1.5,
            2.5,
            0.1,
            16_777_216.0,
            2_147_483_520.0,
            2_147_483_648.0,
            -2_147_483_648.0,
            -2_147_483_904.0,
            9.223_371e18,
            9.223_372e18,
            -9.223_372e18,
            -9.223_373e18,
            1e20,
            -1e20,
            f32::MAX,
            f32::MIN,
            f32::MIN_POSITIVE,
            1e-45,
            -1.1e-39,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            f32::from_bits(0xffc0_1234),
            f32::from_bits(0x7fa0_0001),
        ]
        .map(F32)
        .to_vec(),
        DType::Void | DType::Index => panic!("no values of {dtype}"),
    }
}
