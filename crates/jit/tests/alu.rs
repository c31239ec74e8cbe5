//! Every op on every type, on edge values, against Rust, by bits.
#![allow(unsafe_code)] // Running machine code.

mod common;

use common::{Builder, VERIFY, pointer, run};
use lower::Value;
use uop::{Const, DType, Op};

const TYPES: [DType; 4] = [DType::Bool, DType::I32, DType::I64, DType::F32];

/// Interesting values of `dtype`, as bits.
fn edges(dtype: DType) -> Vec<u64> {
    match dtype {
        DType::Bool => vec![0, 1],
        DType::I32 => [0, 1, -1, 2, 7, -8, 255, 256, 1 << 24, (1 << 24) + 1, -(1 << 24) - 1]
            .into_iter()
            .chain([i32::MAX, i32::MAX - 1, i32::MIN, i32::MIN + 1])
            .map(|x| u64::from(x as u32))
            .collect(),
        DType::I64 => [0, 1, -1, 3, -5, 1 << 24, (1 << 24) + 1, (1 << 53) + 1, 1 << 31, 1 << 32]
            .into_iter()
            .chain([i64::from(i32::MIN), (1 << 32) - 1, -(1 << 32) - 1, (1 << 40) + (1 << 16) + 1])
            .chain([i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1])
            .map(|x| x as u64)
            .collect(),
        DType::F32 => [
            0x0000_0000,
            0x8000_0000, // zeros
            0x0000_0001,
            0x8000_0001,
            0x007f_ffff,
            0x0080_0000, // subnormals and their end
            0x3f80_0000,
            0xbf80_0000,
            0x3f7f_ffff,
            0x3f00_0000,
            0x4020_0000,
            0xc020_0000, // 1, 2.5
            0x4eff_ffff,
            0x4f00_0000,
            0xcf00_0000,
            0xcf00_0001, // about 2^31
            0x5eff_ffff,
            0x5f00_0000,
            0xdf00_0000,
            0xdf00_0001, // about 2^63
            0x7f7f_ffff,
            0xff7f_ffff,
            0x7f80_0000,
            0xff80_0000, // the largest, infinities
            0x7fc0_0000,
            0xffc0_0000,
            0x7fc1_2345,
            0xffff_ffff, // quiet NaNs
            0x7f80_0001,
            0xffa5_5aa5, // signalling NaNs
        ]
        .to_vec(),
        DType::Void | DType::Index => vec![],
    }
}

fn constant(dtype: DType, bits: u64) -> Const {
    match dtype {
        DType::Bool => Const::Bool(bits != 0),
        DType::I32 => Const::Int(i128::from(bits as i32)),
        DType::I64 => Const::Int(i128::from(bits as i64)),
        DType::F32 => Const::F32(bits as u32),
        DType::Void | DType::Index => panic!("{dtype} has no machine constants"),
    }
}

/// The meaning of `op`, in Rust.
fn meaning(op: Op, from: DType, to: DType, x: &[u64]) -> u64 {
    let f = |i: usize| f32::from_bits(x[i] as u32);
    let i = |i: usize| match from {
        DType::I32 => i64::from(x[i] as i32),
        _ => x[i] as i64,
    };
    let float = |value: f32| u64::from(value.to_bits());
    let int = |value: i64| match from {
        DType::I32 => u64::from(value as u32),
        _ => value as u64,
    };
    let is_float = from == DType::F32;
    match op {
        Op::Neg if is_float => x[0] ^ (1 << 31),
        Op::Neg => int(i(0).wrapping_neg()),
        Op::Add if is_float => float(f(0) + f(1)),
        Op::Add => int(i(0).wrapping_add(i(1))),
        Op::Sub if is_float => float(f(0) - f(1)),
        Op::Sub => int(i(0).wrapping_sub(i(1))),
        Op::Mul if is_float => float(f(0) * f(1)),
        Op::Mul => int(i(0).wrapping_mul(i(1))),
        Op::Max if is_float => {
            if f(1) < f(0) {
                x[0]
            } else {
                x[1]
            }
        }
        Op::Max => {
            if i(1) < i(0) {
                x[0]
            } else {
                x[1]
            }
        }
        Op::Min if is_float => {
            if f(0) < f(1) {
                x[0]
            } else {
                x[1]
            }
        }
        Op::Min => {
            if i(0) < i(1) {
                x[0]
            } else {
                x[1]
            }
        }
        Op::And => x[0] & x[1],
        Op::Or => x[0] | x[1],
        Op::CmpLt if is_float => u64::from(f(0) < f(1)),
        Op::CmpLt => u64::from(i(0) < i(1)),
        Op::CmpNe if is_float => u64::from(f(0) != f(1)),
        Op::CmpNe => u64::from(i(0) != i(1)),
        Op::CmpEq if is_float => u64::from(f(0) == f(1)),
        Op::CmpEq => u64::from(i(0) == i(1)),
        Op::Where => {
            if x[0] != 0 {
                x[1]
            } else {
                x[2]
            }
        }
        Op::Cast => match (from, to) {
            (DType::F32, DType::Bool) => u64::from(f(0) != 0.0),
            (DType::F32, DType::I32) => u64::from(f(0) as i32 as u32),
            (DType::F32, DType::I64) => f(0) as i64 as u64,
            (_, DType::F32) if from != to => float(i(0) as f32),
            (_, DType::Bool) => u64::from(i(0) != 0),
            (_, DType::I32) => u64::from(i(0) as u32),
            (_, DType::I64) => i(0) as u64,
            _ => x[0],
        },
        op => panic!("{op} is not arithmetic"),
    }
}

/// The little-endian elements of `dtype`, packed.
fn pack(dtype: DType, bits: &[u64]) -> Vec<u64> {
    let size = dtype.size().expect("it has a size");
    let mut bytes: Vec<u8> = bits.iter().flat_map(|x| x.to_le_bytes()[..size].to_vec()).collect();
    bytes.resize(bytes.len().next_multiple_of(8), 0xaa);
    let words = bytes.chunks_exact(8).map(|word| word.try_into().expect("it has 8 bytes"));
    words.map(u64::from_le_bytes).collect()
}

fn unpack(dtype: DType, words: &[u64]) -> Vec<u64> {
    let size = dtype.size().expect("it has a size");
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let wide = |chunk: &[u8]| chunk.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    bytes.chunks_exact(size).map(wide).collect()
}

/// `op` on every combination of edge values of `from`. Bit k of `constants` says that source k is a
/// constant in the program, where Cranelift may fold it, not an element.
fn check(op: Op, from: &[DType], to: DType, constants: u32) {
    let mut rows: Vec<Vec<u64>> = vec![vec![]];
    for &dtype in from {
        let grown = rows
            .iter()
            .flat_map(|row| edges(dtype).into_iter().map(move |x| [&row[..], &[x]].concat()));
        rows = grown.collect();
    }
    let len = rows.len() as u64;

    let mut b = Builder::new(op.name());
    let out = b.param(to, len, true);
    let sources: Vec<_> = from.iter().map(|&dtype| b.param(dtype, len, false)).collect();
    let source = |b: &mut Builder, k: usize, at: Value| b.load(from[k], sources[k], at);
    if constants == 0 {
        b.instances(|b, i| {
            let args: Vec<_> = (0..from.len()).map(|k| source(b, k, i)).collect();
            let result = b.alu(op, to, &args);
            b.store(out, i, result);
        });
    } else {
        for (at, row) in rows.iter().enumerate() {
            let at = b.int(at as i64);
            let arg = |b: &mut Builder, k: usize| match constants >> k & 1 {
                0 => source(b, k, at),
                _ => b.constant(from[k], constant(from[k], row[k])),
            };
            let args: Vec<_> = (0..from.len()).map(|k| arg(&mut b, k)).collect();
            let result = b.alu(op, to, &args);
            b.store(out, at, result);
        }
    }

    let column = |k: usize| rows.iter().map(|row| row[k]).collect::<Vec<_>>();
    let mut columns: Vec<_> = (0..from.len()).map(|k| pack(from[k], &column(k))).collect();
    let mut result = pack(to, &vec![0; rows.len()]);
    let mut buffers = vec![pointer(&mut result)];
    buffers.extend(columns.iter_mut().map(|column| pointer(column)));
    run(&b.compile(), &buffers, 0, len as i64);

    // What computes may give any NaN; what chooses or moves keeps its bits.
    let computes = matches!(op, Op::Add | Op::Sub | Op::Mul) && to == DType::F32;
    let nan = |bits: u64| computes && f32::from_bits(bits as u32).is_nan();
    for (row, got) in rows.iter().zip(unpack(to, &result)) {
        let want = meaning(op, *from.last().expect("it has sources"), to, row);
        assert!(
            got == want || nan(got) && nan(want),
            "{op} {from:?} -> {to}, constants {constants:b}: {row:x?} gave {got:x}, not {want:x}",
        );
    }
}

fn check_all(op: Op, from: &[DType], to: DType) {
    for constants in 0..1 << from.len() {
        check(op, from, to, constants);
    }
}

#[test]
fn arithmetic() {
    for dtype in [DType::I32, DType::I64, DType::F32] {
        check_all(Op::Neg, &[dtype], dtype);
        for op in [Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Min] {
            check_all(op, &[dtype; 2], dtype);
        }
    }
    for op in [Op::And, Op::Or] {
        for dtype in [DType::Bool, DType::I32, DType::I64] {
            check_all(op, &[dtype; 2], dtype);
        }
    }
}

#[test]
fn comparisons() {
    for op in [Op::CmpLt, Op::CmpNe, Op::CmpEq] {
        for dtype in TYPES {
            check_all(op, &[dtype; 2], DType::Bool);
        }
    }
}

#[test]
fn choice() {
    for dtype in TYPES {
        check_all(Op::Where, &[DType::Bool, dtype, dtype], dtype);
    }
}

#[test]
fn casts() {
    for from in TYPES {
        for to in TYPES {
            check_all(Op::Cast, &[from], to);
        }
    }
}

/// Whatever is not in the tests above is refused.
#[test]
fn everything_else_is_an_error() {
    let mut accepted = 0;
    for &op in Op::ALL {
        for to in TYPES {
            for first in TYPES {
                for rest in TYPES {
                    for count in 0..4 {
                        let mut b = Builder::new("refused");
                        let dtypes = [first, rest, rest];
                        let args: Vec<_> = dtypes[..count]
                            .iter()
                            .map(|&dtype| b.constant(dtype, Const::zero(dtype)))
                            .collect();
                        b.alu(op, to, &args);
                        accepted += usize::from(jit::compile(&b.finish(), &VERIFY).is_ok());
                    }
                }
            }
        }
    }
    // One source: `rest` is not looked at, so each counts 4 times.
    let (neg, cast) = (3 * 4, 4 * 4 * 4);
    let (arithmetic, logic, compare, choice) = (5 * 3, 2 * 3, 3 * 4, 4);
    assert_eq!(accepted, neg + cast + arithmetic + logic + compare + choice);
}
