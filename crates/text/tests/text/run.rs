//! C by real compilers, run in a child process, against values computed here.

use lower::Program;
use text::{C, emit};
use uop::{DType, Op};

use crate::programs::{embedding_bwd, every_op, histogram, registers, saxpy, torture};
use crate::support::cc;
use crate::value::{STORED, Value, apply, edges, ops_on};

/// Compiles `program` with every compiler, runs it on `inputs` in every mode, and compares all
/// buffers with `want`.
#[track_caller]
pub(crate) fn check(
    test: &str,
    program: &Program,
    inputs: &[Vec<Value>],
    want: &[Vec<Value>],
    same: fn(Value, Value) -> bool,
) {
    let bytes = |values: &Vec<Value>| values.iter().flat_map(|v| v.bytes()).collect();
    let inputs: Vec<Vec<u8>> = inputs.iter().map(bytes).collect();
    for build in cc::builds(test, program) {
        for mode in cc::MODES {
            let out = build.run(mode, &inputs);
            for (slot, (param, want)) in program.params.iter().zip(want).enumerate() {
                let got = Value::read(param.dtype, &out[slot]);
                for (i, (&got, &want)) in got.iter().zip(want).enumerate() {
                    assert!(
                        same(want, got),
                        "{test}, {}, {mode}: {}[{i}] (slot {slot}) is {got:?} instead of {want:?} \
                         in\n{}",
                        build.label,
                        param.name,
                        emit(program, &C).expect("C has all of it")
                    );
                }
            }
        }
    }
}

fn floats(values: impl IntoIterator<Item = f32>) -> Vec<Value> {
    values.into_iter().map(Value::F32).collect()
}

fn ints(values: impl IntoIterator<Item = i32>) -> Vec<Value> {
    values.into_iter().map(Value::I32).collect()
}

fn bools(values: impl IntoIterator<Item = bool>) -> Vec<Value> {
    values.into_iter().map(Value::Bool).collect()
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
    let grads = floats((0..n * d).map(|k| grad(k / d, k % d)));
    let tokens = ints((0..n).map(token));
    check(
        "embedding_bwd",
        &embedding_bwd(false, n as u64, v as u64, d as u64),
        &[floats(vec![1.0; v * d]), grads.clone(), tokens.clone()],
        &[floats(sums), grads, tokens],
        Value::same_bits,
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
    let sums = floats((0..n).map(|i| if i % 2 == 0 { new(i) } else { y(i) }));
    let (x, mask) = (floats((0..n).map(x)), bools((0..n).map(mask)));
    let inputs = [floats((0..n).map(y)), x.clone(), mask.clone()];
    let want = [sums, x, mask];
    check("saxpy", &saxpy(false, n as u64), &inputs, &want, Value::same_bits);
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
    let keys = ints((0..n).map(key));
    let inputs = [ints([5; 8]), vec![Value::I64(i64::MAX)], keys.clone()];
    let want = [ints(counts), vec![Value::I64(total)], keys];
    check("histogram", &histogram(false, n as u64), &inputs, &want, Value::same_bits);
}

#[test]
fn registers_are_arrays() {
    let n = 30;
    let x = |i: usize, j: usize| (i * 5 + j) as f32 * 0.1 - 3.0;
    let w = [0.1f32, -0.7, 1.3, 2.0, 0.9];
    let sum = |i: usize| (0..5).fold(0.0, |sum, j| sum + x(i, j).max(0.0) * w[j]);
    let xs = floats((0..n * 5).map(|k| x(k / 5, k % 5)));
    let (w, spare) = (floats(w), floats(vec![0.0; n]));
    let inputs = [floats(vec![9.0; n]), xs.clone(), w.clone(), spare.clone()];
    let want = [floats((0..n).map(sum)), xs, w, spare];
    check("registers", &registers(false, n as u64), &inputs, &want, Value::same_bits);
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
    let want_bools = [(x < y) == (z < t), u && (v || w) || (f < g && v), f >= g && v, false];
    let want_longs = [i64::MIN.wrapping_sub(x.into()), 1, (f * g) as i64].map(Value::I64).to_vec();
    let operands = [ints([x, y, z, t]), floats([f, g, h]), bools([u, v, w])];
    let outs = [ints([0; 10]), floats([0.0; 4]), bools([false; 4]), vec![Value::I64(0); 3]];
    let inputs = [&outs[..], &operands[..]].concat();
    let outs = [ints(want_ints), floats(want_floats), bools(want_bools), want_longs];
    let want = [&outs[..], &operands[..]].concat();
    check("torture", &torture(false), &inputs, &want, Value::same_bits);
}

/// Every op of the table on every pair of edge values.
#[test]
fn every_op_on_edge_values() {
    for dtype in STORED {
        let edges = edges(dtype);
        let pairs: Vec<[Value; 2]> =
            edges.iter().flat_map(|&x| edges.iter().map(move |&y| [x, y])).collect();
        let n = pairs.len();
        let operands = [
            pairs.iter().map(|p| p[0]).collect(),
            pairs.iter().map(|p| p[1]).collect(),
            bools((0..n).map(|i| i % 2 == 0)),
        ];
        let mut inputs = Vec::new();
        let mut want = Vec::new();
        for (op, result) in ops_on(dtype) {
            inputs.push(vec![edges_zero(result); n]);
            let arity = if matches!(op, Op::Cast | Op::Neg) { 1 } else { 2 };
            want.push(pairs.iter().map(|p| apply(op, &p[..arity], result)).collect());
        }
        inputs.push(vec![edges_zero(dtype); n]);
        want.push(pairs.iter().enumerate().map(|(i, p)| p[i % 2]).collect());
        inputs.extend(operands.clone());
        want.extend(operands);
        check(
            &format!("every op on {dtype}"),
            &every_op(dtype, n as u64),
            &inputs,
            &want,
            Value::same,
        );
    }
}

/// The first edge value is zero.
pub(crate) fn edges_zero(dtype: DType) -> Value {
    edges(dtype)[0]
}

/// NEG, WHERE, loads, stores and constants keep every bit of a NaN.
#[test]
fn moves_keep_bits() {
    use crate::builder::Builder;
    use crate::programs::launch;
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
    let x = floats(patterns.map(f32::from_bits));
    let negated = floats(patterns.map(|bits| f32::from_bits(bits ^ 1 << 31)));
    let inputs = [floats(vec![0.0; n]), floats(vec![0.0; n]), floats(vec![0.0; n]), x.clone()];
    let want = [x.clone(), x.clone(), negated, x];
    check("moves", &b.finish(), &inputs, &want, Value::same_bits);
}

/// Compilers limit how deep brackets go.
#[test]
fn long_chains_are_cut() {
    use crate::builder::Builder;
    use crate::programs::launch;
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
