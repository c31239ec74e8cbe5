//! What the op table takes, and values at which something changes.
#![allow(dead_code)] // No test uses all of it.

use half::{bf16, f16};
use interp::Data;
use uop::{Const, DType, Op};

/// The types that values have in memory.
pub(crate) const STORED: [DType; 13] = [
    DType::Bool,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];

/// Every op but WHERE on operands of `dtype`, with the type of its result.
pub(crate) fn ops_on(dtype: DType) -> Vec<(Op, DType)> {
    let compare = [Op::CmpNe, Op::CmpEq].map(|op| (op, DType::Bool));
    let mut ops = compare.to_vec();
    if dtype.is_number() {
        let same = [Op::Neg, Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Min];
        ops.extend(same.map(|op| (op, dtype)));
        ops.push((Op::CmpLt, DType::Bool));
    }
    if !dtype.is_float() {
        ops.extend([Op::And, Op::Or].map(|op| (op, dtype)));
    }
    ops.extend(STORED.map(|to| (Op::Cast, to)));
    ops
}

/// Those of `ops_on(dtype)` that a lowered program may have: a float of 16 bits is only converted,
/// from and to f32.
pub(crate) fn lowered_ops_on(dtype: DType) -> Vec<(Op, DType)> {
    let mut ops = ops_on(dtype);
    ops.retain(|&(op, to)| {
        let other = if dtype.is_half() { to } else { dtype };
        !dtype.is_half() && !to.is_half() || op == Op::Cast && (other == DType::F32 || to == dtype)
    });
    ops
}

/// How many operands `op` has.
pub(crate) fn arity(op: Op) -> usize {
    match op {
        Op::Neg | Op::Cast => 1,
        Op::Where => 3,
        _ => 2,
    }
}

/// Values of `dtype` at which something changes; the first is zero.
pub(crate) fn edges(dtype: DType) -> Vec<Const> {
    let all = match dtype {
        DType::Bool => vec![Const::Bool(false), Const::Bool(true)],
        _ if dtype.is_int() => integers(dtype),
        _ => floats(dtype),
    };
    let mut edges: Vec<Const> = Vec::new();
    for value in all {
        if !edges.contains(&value) {
            edges.push(value);
        }
    }
    edges
}

fn integers(dtype: DType) -> Vec<Const> {
    let (lo, hi) = dtype.int_range().expect("it has a size");
    let mut values = vec![0, 1, 2, 7, lo, lo + 1, hi, hi - 1];
    // The limits of the other integers, and of the integers that are exact as floats.
    for bits in [7, 8, 11, 15, 16, 24, 31, 32, 53, 63] {
        values.extend([(1 << bits) - 1, 1 << bits, (1 << bits) + 1]);
    }
    // Between two f16 or two bf16; between two f32, or two f64; next to a tie of bf16 or f32, so
    // close that it is one after rounding to f32 or f64.
    values.extend([2051, 257, 259, 65_519, 65_520, 0x00ff_ffff, 0x0100_0003, (1 << 53) + 3]);
    values.extend([(1 << 30) + (1 << 22) + 1, (1 << 40) + (1 << 32) + 1]);
    values.extend([(1 << 62) + (1 << 38) + 1, 0x7fff_ffbf_ffff_ffff, 0x5555_5555]);
    values.extend([0x0123_4567_89ab_cdef, (1 << 64) - (1 << 39), (1 << 64) - (1 << 10)]);
    let negative: Vec<i128> = values.iter().map(|value| -value).collect();
    values.extend(negative);
    values.retain(|&value| lo <= value && value <= hi);
    values.into_iter().map(Const::Int).collect()
}

fn floats(dtype: DType) -> Vec<Const> {
    let power = |exponent: i32| 2f64.powi(exponent);
    let mut values = vec![0.0, 1.0, 0.1, 0.5, 0.999, 1.5, 2.5, 3.0, 1e20];
    // The least subnormals and normals: f16, bf16, f32, f64; halves of them, and what is near.
    values.extend([power(-24), power(-25), power(-25) + power(-40), 3.0 * power(-25)]);
    values.extend([power(-14), power(-14) - power(-24), power(-14) - power(-25), power(-15)]);
    values.extend([power(-133), power(-134), 3.0 * power(-134), power(-126)]);
    values.extend([power(-126) - power(-134), power(-149), power(-150), 3.0 * power(-150)]);
    values.extend([power(-126) - power(-149), 1.1e-39, power(-1022), 5e-324]);
    values.extend([power(-1022) - 5e-324, power(-150) * 1.5]);
    // Ties to even, down and up, and what is so near to one that a rounding makes it one.
    for bits in [8, 11, 24] {
        let half = power(-bits);
        values.extend([1.0 + half, 1.0 + 3.0 * half, 1.0 - half / 2.0, 1.0 + half + power(-23)]);
        values.extend([1.0 + half + power(-40), 1.0 + half - power(-40), 1.0 + half + power(-52)]);
    }
    // The largest: f16, bf16, f32, and where each becomes infinite.
    values.extend([65_504.0, 65_519.996, 65_520.0, 65_535.0, 65_536.0, 65_519.999_999_9]);
    values.extend([power(128) - power(120), power(128) - power(119), f32::MAX.into()]);
    values.extend([power(128) - power(103), power(128), 1e300, f64::MAX, f64::INFINITY]);
    // Where a conversion to an integer starts to saturate.
    values.extend([127.0, 127.5, 128.0, 129.0, 255.0, 255.5, 256.0, 32_767.0, 32_767.5, 32_768.0]);
    values.extend([32_769.0, 16_777_216.0, 16_777_217.0]);
    for bits in [31, 32, 63, 64] {
        let limit = power(bits);
        values.extend([limit, limit - limit * power(-24), limit + limit * power(-23)]);
        values.extend([limit - limit * power(-53), limit + limit * power(-52), limit - 1.0]);
    }
    let mut floats: Vec<Const> = values
        .into_iter()
        .flat_map(|value| [value, -value])
        .map(|value| Const::float(dtype, value).expect("it is a float"))
        .collect();
    // NaNs, quiet and signalling.
    let nans: [u64; 5] = match dtype {
        DType::F16 => [0x7e00, 0xfe00, 0x7fff, 0x7c01, 0xfd55],
        DType::BF16 => [0x7fc0, 0xffc0, 0x7fff, 0x7f81, 0xffa5],
        DType::F32 => [0x7fc0_0000, 0xffc0_1234, 0x7fff_ffff, 0x7f80_0001, 0xffa5_5aa5],
        _ => [
            0x7ff8_0000_0000_0000,
            0xfff8_0000_0000_1234,
            0x7fff_ffff_ffff_ffff,
            0x7ff0_0000_0000_0001,
            0xfff5_5aa5_5aa5_5aa5,
        ],
    };
    floats.extend(nans.map(|bits| Const::float_bits(dtype, bits).expect("as many bits")));
    floats
}

/// Casts of a float of 16 bits, from it and to it, as the crate `half` has them: the type before and
/// after, and each value before and after. From it: all values. To it: what is around each value,
/// and around each tie between two; and each exponent of f32, with a few mantissas.
pub(crate) fn half_casts(dtype: DType) -> [(DType, DType, Vec<[Const; 2]>); 2] {
    type Functions = (fn(u16) -> Const, fn(u16) -> f32, fn(f32) -> u16);
    let (half, widen, narrow): Functions = match dtype {
        DType::F16 => {
            (Const::F16, |bits| f16::from_bits(bits).to_f32(), |x| f16::from_f32(x).to_bits())
        }
        _ => (Const::BF16, |bits| bf16::from_bits(bits).to_f32(), |x| bf16::from_f32(x).to_bits()),
    };
    let halves = 0..=u16::MAX;
    let wide = halves.clone().map(|bits| [half(bits), Const::from(widen(bits))]).collect();
    let middle = |bits: u16| {
        let [x, y] = [bits, bits.wrapping_add(1)].map(|bits| f64::from(widen(bits)));
        ((x + y) / 2.0) as f32
    };
    let mut singles: Vec<u32> = halves
        .flat_map(|bits| [widen(bits), middle(bits)])
        .flat_map(|x| [-1, 0, 1].map(|step| x.to_bits().wrapping_add_signed(step)))
        .collect();
    let mantissas = [0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0x40_0000, 0x7f_ffff];
    singles.extend((0..512).flat_map(|top: u32| mantissas.map(|bits| top << 23 | bits)));
    let narrow = |&bits: &u32| [Const::F32(bits), half(narrow(f32::from_bits(bits)))];
    [(dtype, DType::F32, wide), (DType::F32, dtype, singles.iter().map(narrow).collect())]
}

/// These elements of `dtype`.
pub(crate) fn data(dtype: DType, values: &[Const]) -> Data {
    let mut data = Data::zeros(dtype, values.len()).expect("it is stored");
    values.iter().enumerate().for_each(|(i, &value)| data.set(i, value));
    data
}

/// The first element whose bits differ.
pub(crate) fn differ_in_bits(x: &Data, y: &Data) -> Option<usize> {
    differ_where(x, y, |_| true)
}

/// The first element whose bits differ, all NaNs counting as one.
pub(crate) fn differ(x: &Data, y: &Data) -> Option<usize> {
    differ_where(x, y, |i| !(x.get(i).is_nan() && y.get(i).is_nan()))
}

fn differ_where(x: &Data, y: &Data, counts: impl Fn(usize) -> bool) -> Option<usize> {
    assert_eq!((x.dtype(), x.len()), (y.dtype(), y.len()));
    let size = x.dtype().size().expect("it is stored");
    let mut elements = x.bytes().chunks_exact(size).zip(y.bytes().chunks_exact(size)).enumerate();
    elements.find(|&(i, (x, y))| x != y && counts(i)).map(|(i, _)| i)
}
