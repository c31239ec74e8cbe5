//! C by real compilers, run in a child process, against values computed here.

use half::{bf16, f16};
use interp::{Data, Element, alu};
use lower::Program;
use text::{C, emit};
use uop::{Const, DType, Op};

use crate::builder::Builder;
use crate::programs::{
    embedding_bwd, every_op, halves, histogram, launch, registers, saxpy, torture, wrapping,
};
use crate::support::cc;
use crate::support::edges::{
    STORED, arity, data, differ, differ_in_bits, edges, half_casts, lowered_ops_on,
};

/// Compiles `program` with every compiler, runs it on `inputs` in every mode, and compares all
/// buffers with `want`.
#[track_caller]
pub(crate) fn check(
    test: &str,
    program: &Program,
    inputs: &[Data],
    want: &[Data],
    differ: fn(&Data, &Data) -> Option<usize>,
) {
    for (param, data) in program.params.iter().zip(inputs) {
        assert_eq!(param.dtype, data.dtype(), "{}", param.name);
    }
    let bytes: Vec<Vec<u8>> = inputs.iter().map(|data| data.bytes().to_vec()).collect();
    for build in cc::builds(test, program) {
        for mode in cc::MODES {
            let out = build.run(mode, &[], &bytes);
            for ((param, want), out) in program.params.iter().zip(want).zip(&out) {
                let mut got = want.clone();
                got.bytes_mut().copy_from_slice(out);
                if let Some(i) = differ(&got, want) {
                    let (got, want) = (got.get(i), want.get(i));
                    panic!(
                        "{test}, {}, {mode}: {}[{i}] is {got} instead of {want} in\n{}",
                        build.label,
                        param.name,
                        emit(program, &C).expect("C has all of it")
                    );
                }
            }
        }
    }
}

fn of<T: Element>(values: impl IntoIterator<Item = T>) -> Data {
    Data::of(values.into_iter().collect())
}

#[test]
fn embedding_bwd_adds_rows() {
    let (n, v, d) = (200, 7, 24);
    // Small integers: the same sums in any order. Tokens outside the table are clipped.
    let token = |i: usize| [-5, 3, 0, 6, 9, 3, i32::MIN, i32::MAX][i % 8];
    let grad = |i: usize, j: usize| (i % 11) as f32 - j as f32;
    let mut sums = vec![1.0f32; v * d];
    for i in 0..n {
        for j in 0..d {
            sums[token(i).clamp(0, v as i32 - 1) as usize * d + j] += grad(i, j);
        }
    }
    let grads = of((0..n * d).map(|k| grad(k / d, k % d)));
    let tokens = of((0..n).map(token));
    check(
        "embedding_bwd",
        &embedding_bwd(false, n as u64, v as u64, d as u64),
        &[of(vec![1.0f32; v * d]), grads.clone(), tokens.clone()],
        &[of(sums), grads, tokens],
        differ_in_bits,
    );
}

#[test]
fn saxpy_is_gated_and_not_fused() {
    let n = 64;
    let x = |i: usize| 1.0 + i as f32 * f32::EPSILON;
    let y = |i: usize| -2.5 - i as f32 * 3.0 * f32::EPSILON;
    let mask = |i: usize| !i.is_multiple_of(3);
    let new = |i: usize| {
        if mask(i) { 2.5 * x(i) + y(i) } else { 2.5 * -0.0 + y(i) }
    };
    let sums = of((0..n).map(|i| if i % 2 == 0 { new(i) } else { y(i) }));
    let (x, mask) = (of((0..n).map(x)), of((0..n).map(mask)));
    let inputs = [of((0..n).map(y)), x.clone(), mask.clone()];
    let want = [sums, x, mask];
    check("saxpy", &saxpy(false, n as u64), &inputs, &want, differ_in_bits);
}

#[test]
fn histogram_counts() {
    let n = 10_000;
    let key = |i: i32| i.wrapping_mul(1_000_003);
    let mut counts = [5i32; 8];
    let mut total = i64::MAX;
    for i in 0..n {
        counts[(key(i) & 7) as usize] += 1;
        total = total.wrapping_add(key(i).into());
    }
    let keys = of((0..n).map(key));
    let inputs = [of([5; 8]), of([i64::MAX]), keys.clone()];
    let want = [of(counts), of([total]), keys];
    check("histogram", &histogram(false, n as u64), &inputs, &want, differ_in_bits);
}

#[test]
fn registers_are_arrays() {
    let n = 30;
    let x = |i: usize, j: usize| (i * 5 + j) as f32 * 0.1 - 3.0;
    let w = [0.1f32, -0.7, 1.3, 2.0, 0.9];
    let sum = |i: usize| (0..5).fold(0.0, |sum, j| sum + x(i, j).max(0.0) * w[j]);
    let xs = of((0..n * 5).map(|k| x(k / 5, k % 5)));
    let (w, spare) = (of(w), of(vec![0.0f32; n]));
    let inputs = [of(vec![9.0f32; n]), xs.clone(), w.clone(), spare.clone()];
    let want = [of((0..n).map(sum)), xs, w, spare];
    check("registers", &registers(false, n as u64), &inputs, &want, differ_in_bits);
}

#[test]
fn torture_means_what_it_says() {
    let [x, y, z, t] = [1_000_003i32, -77, 12, 9];
    let [f, g, h] = [1.0f32 + f32::EPSILON, 1.0 - f32::EPSILON, -1.0];
    let [u, v, w] = [false, true, false];
    let want_ints = [
        x - (y - z),
        x - y - z,
        (x + y) * z,
        (x + y) * z,
        (x & y) | (z + 1),
        (x | y) & (z & t),
        t,
        i32::MIN,
        i32::MIN.wrapping_mul(x).wrapping_sub(1),
        x,
    ];
    let nan = f32::from_bits(0xffc0_1234);
    let want_floats = [f - (g - h), -(f * g) + h, f * g + h, nan];
    let want_bools = [(x < y) == (z < t), u && (v || w) || (f < g && v), (f < g) != v, false];
    let want_longs = [i64::MIN.wrapping_sub(x.into()), 1, (f * g) as i64];
    let operands = [of([x, y, z, t]), of([f, g, h]), of([u, v, w])];
    let outs = [of([0i32; 10]), of([0.0f32; 4]), of([false; 4]), of([0i64; 3])];
    let inputs = [&outs[..], &operands[..]].concat();
    let outs = [of(want_ints), of(want_floats), of(want_bools), of(want_longs)];
    let want = [&outs[..], &operands[..]].concat();
    check("torture", &torture(false), &inputs, &want, differ_in_bits);
}

#[test]
fn halves_are_computed_in_f32() {
    let x = [1.5f32, -2.0, 3.0, 256.0].map(bf16::from_f32);
    let w = [0.334f32, 7.0, 65_504.0, 0.1].map(f16::from_f32);
    let product = |(x, w): (&bf16, &f16)| bf16::from_f32(x.to_f32() * w.to_f32());
    let sum = |(x, w): (&bf16, &f16)| f16::from_f32(x.to_f32() + w.to_f32());
    let mut products: Vec<bf16> = x.iter().zip(&w).map(product).collect();
    let mut sums: Vec<f16> = x.iter().zip(&w).map(sum).collect();
    (products[1], sums[1]) = (bf16::from_f32(0.1), f16::from_f32(0.5));
    let inputs = [of([bf16::ZERO; 4]), of([f16::ZERO; 4]), of(x), of(w)];
    let want = [of(products), of(sums), of(x), of(w)];
    check("halves", &halves(false, 4), &inputs, &want, differ_in_bits);
}

#[test]
fn unsigned_integers_wrap() {
    let (x, scale) = ([0u8, 1, 77, 255], [1.0, -1.0, 1e-3, 1e9]);
    let words = [0, u64::MAX, 1 << 63, 12_345];
    let byte = |x: u8| x.wrapping_mul(3).wrapping_sub(x.wrapping_mul(x)).max(200);
    let word =
        |i: usize| u64::wrapping_mul(words[i], 0xd134_2543_de82_ef95).wrapping_sub(u64::from(x[i]));
    let new = [0, 1, 2, 3].map(word);
    let scaled = [0, 1, 2, 3].map(|i| (new[i] as f64 * scale[i]) as u64);
    let inputs = [of([0u8; 4]), of(words), of([0u64; 4]), of(x), of(scale)];
    let want = [of(x.map(byte)), of(new), of(scaled), of(x), of(scale)];
    check("unsigned", &wrapping(false, 4), &inputs, &want, differ_in_bits);
}

/// Every op of the table on every pair of edge values.
#[test]
fn every_op_on_edge_values() {
    for dtype in STORED {
        let edges = edges(dtype);
        let pairs: Vec<[Const; 2]> =
            edges.iter().flat_map(|&x| edges.iter().map(move |&y| [x, y])).collect();
        let column = |k: usize| pairs.iter().map(|pair| pair[k]).collect::<Vec<_>>();
        let mut want: Vec<Data> = Vec::new();
        for (op, result) in lowered_ops_on(dtype) {
            let value = |pair: &[Const; 2]| alu(op, result, &pair[..arity(op)]);
            let values: Result<Vec<_>, _> = pairs.iter().map(value).collect();
            want.push(data(result, &values.expect("the table has it")));
        }
        let picked: Vec<Const> = pairs.iter().enumerate().map(|(i, pair)| pair[i % 2]).collect();
        want.push(data(dtype, &picked));
        let zeros = |data: &Data| Data::zeros(data.dtype(), data.len()).expect("it is stored");
        let mut inputs: Vec<Data> = want.iter().map(zeros).collect();
        let conditions = of((0..pairs.len()).map(|i| i % 2 == 0));
        let operands = [data(dtype, &column(0)), data(dtype, &column(1)), conditions];
        inputs.extend(operands.clone());
        want.extend(operands);
        let program = every_op(dtype, pairs.len() as u64);
        check(&format!("every op on {dtype}"), &program, &inputs, &want, differ);
    }
}

#[test]
fn casts_of_halves() {
    for (from, to, values) in [DType::F16, DType::BF16].into_iter().flat_map(half_casts) {
        let n = values.len() as u64;
        let mut b = Builder::new("convert", launch(false, n));
        let out = b.param("out", to, &[n], true);
        let x = b.param("x", from, &[n], false);
        b.instances(|b, i| {
            let value = b.load(x, i);
            let value = b.cast(value, to);
            b.store(out, i, value);
        });
        let column = |k: usize| values.iter().map(|pair| pair[k]).collect::<Vec<_>>();
        let zeros = Data::zeros(to, values.len()).expect("it is stored");
        let [x, want] = [data(from, &column(0)), data(to, &column(1))];
        check("halves", &b.finish(), &[zeros, x.clone()], &[want, x], differ);
    }
}

/// NEG, WHERE, loads, stores and constants keep every bit of a NaN.
#[test]
fn moves_keep_bits() {
    let patterns = [0x7fc0_0000u32, 0xffc0_1234, 0x7fa0_0001, 0xff80_0001, 0x8000_0000, 1];
    let n = patterns.len();
    let mut b = Builder::new("moves", launch(false, 1));
    let [constant, moved, negated] =
        ["constant", "moved", "negated"].map(|name| b.param(name, DType::F32, &[n as u64], true));
    let x = b.param("x", DType::F32, &[n as u64], false);
    for (i, &bits) in patterns.iter().enumerate() {
        let i = b.i32(i as i32);
        let value = b.f32(f32::from_bits(bits));
        b.store(constant, i, value);
        let zero = b.i32(0);
        let yes = b.alu(Op::CmpEq, &[i, i]);
        let other = b.load(x, zero);
        let value = b.load_if(yes, x, i, other);
        let picked = b.alu(Op::Where, &[yes, value, other]);
        b.store(moved, i, picked);
        let value = b.alu(Op::Neg, &[value]);
        b.store(negated, i, value);
    }
    let x = of(patterns.map(f32::from_bits));
    let negated = of(patterns.map(|bits| f32::from_bits(bits ^ 1 << 31)));
    let inputs = [of(vec![0.0f32; n]), of(vec![0.0f32; n]), of(vec![0.0f32; n]), x.clone()];
    let want = [x.clone(), x.clone(), negated, x];
    check("moves", &b.finish(), &inputs, &want, differ_in_bits);
}

/// Compilers limit how deep brackets go.
#[test]
fn long_chains_are_cut() {
    let mut b = Builder::new("chain", launch(false, 1));
    let out = b.param("out", DType::I32, &[1], true);
    let [zero, one] = [b.i32(0), b.i32(1)];
    let mut x = b.load(out, zero);
    for _ in 0..20_000 {
        x = b.alu(Op::Sub, &[one, x]);
    }
    b.store(out, zero, x);
    let source = emit(&b.finish(), &C).expect("C has all of it");
    assert!(source.lines().all(|line| line.len() < 120));
}
