//! The kernel of design.md section 7 at its full size; at a small one without optimisation.

mod common;

use std::time::Instant;

use common::Kernel;
use interp::Options;
use uop::AxisType::{self, Global, Local, Loop};
use uop::{DType, Op};

const TOKENS: i64 = if cfg!(debug_assertions) { 200 } else { 15_625 };
const DIM: i64 = 128;
const BLOCK: i64 = 64;
const VOCAB: i64 = 1000;

/// `gw[clip(idx[i]), j] += ge[i, j]`; without atomics, the columns are parallel and i is serial.
fn embedding_backward(atomic: bool, inner: AxisType) -> (f64, Vec<f32>) {
    let mut k = Kernel::new();
    let gw = k.param(0, DType::F32, &[VOCAB, DIM]);
    let ge = k.param(1, DType::F32, &[TOKENS, DIM]);
    let idx = k.param(2, DType::I64, &[TOKENS]);
    let i = k.range(TOKENS, if atomic { Global } else { Loop });
    let outer = k.range(DIM / BLOCK, Global);
    let inner = k.range(BLOCK, inner);
    let token = k.load(idx, &[i]);
    let token = k.cast(token, DType::Index);
    let (zero, last, block) = (k.int(0), k.int(VOCAB - 1), k.int(BLOCK));
    let token = k.op(Op::Max, &[token, zero]);
    let token = k.op(Op::Min, &[token, last]);
    let j = k.op(Op::Mul, &[outer, block]);
    let j = k.op(Op::Add, &[j, inner]);
    let value = k.load(ge, &[i, j]);
    let end = if atomic {
        let add = k.atomic_add(gw, &[token, j], value);
        k.end(add, &[i, outer, inner])
    } else {
        let inside = k.after(gw, &[i]);
        let old = k.load(inside, &[token, j]);
        let sum = k.op(Op::Add, &[old, value]);
        let store = k.store(inside, &[token, j], sum);
        let end = k.end(store, &[i]);
        k.end(end, &[outer, inner])
    };
    // Small integers, so that the order of additions does not show.
    let grads: Vec<f32> = (0..TOKENS * DIM).map(|x| (x % 13) as f32).collect();
    let tokens: Vec<i64> = (0..TOKENS).map(|x| x * x % 1100 - 20).collect();
    let zeros = vec![0f32; (VOCAB * DIM) as usize];
    let params = vec![zeros.into(), grads.into(), tokens.into()];
    let start = Instant::now();
    let got = k.try_run(end, params, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let out: Vec<f32> = got[0].to_vec().expect("the dtype stays");
    (start.elapsed().as_secs_f64(), out.clone())
}

#[test]
fn every_way_to_accumulate_agrees() {
    let mut want = vec![0f32; (VOCAB * DIM) as usize];
    for i in 0..TOKENS {
        let token = (i * i % 1100 - 20).clamp(0, VOCAB - 1);
        for j in 0..DIM {
            want[(token * DIM + j) as usize] += ((i * DIM + j) % 13) as f32;
        }
    }
    for (atomic, inner) in [(true, Local), (true, Loop), (false, Local), (false, Global)] {
        let (seconds, got) = embedding_backward(atomic, inner);
        assert_eq!(got, want, "atomic {atomic}, {inner}");
        println!("atomic {atomic}, inner {inner}: {} instances, {seconds:.2} s", TOKENS * DIM);
    }
}
