//! `just bench`: from graph to callable, and the embedding backward against a plain loop.
//!
//! The shape is that of a large vocabulary: 16,384 tokens of 1,024 columns into 32,000 rows. Times
//! include zeroing the sums.

use std::sync::atomic::{AtomicI64, Ordering};

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use uopc::kernels::{EmbeddingBwd, zero};
use uopc::{Buffer, DType, Device, LaunchOptions, jit, lower};

const TOKENS: usize = 16_384;
const DIM: usize = 1_024;
const VOCAB: usize = 32_000;

fn main() {
    divan::main();
}

/// Uniform token ids, from a linear congruential generator (Knuth's MMIX constants).
fn tokens() -> Vec<i32> {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % VOCAB as u64) as i32
    };
    (0..TOKENS).map(|_| next()).collect()
}

/// What moves at least: the sums are zeroed, the rows read and written, the gradients and tokens
/// read.
fn bytes() -> BytesCount {
    BytesCount::new(4 * (VOCAB * DIM + 3 * TOKENS * DIM + TOKENS))
}

fn kernel() -> uopc::KernelGraph {
    EmbeddingBwd::new(TOKENS as i64, DIM as i64, VOCAB as i64).build().expect("it is a kernel")
}

#[divan::bench]
fn build_the_graph() -> uopc::KernelGraph {
    kernel()
}

#[divan::bench]
fn lower_for_the_cpu(bencher: Bencher<'_, '_>) {
    let kernel = kernel();
    bencher.bench_local(|| lower::lower(&kernel.graph, kernel.sink, &jit::CAPS));
}

/// A kernel that this process has not compiled yet: of one token more each time.
fn new_kernel() -> uopc::KernelGraph {
    static MORE: AtomicI64 = AtomicI64::new(TOKENS as i64 + 1);
    let tokens = MORE.fetch_add(1, Ordering::Relaxed);
    EmbeddingBwd::new(tokens, DIM as i64, VOCAB as i64).build().expect("it is a kernel")
}

#[divan::bench]
fn graph_to_callable(bencher: Bencher<'_, '_>) {
    let cpu = Device::cpu();
    let inputs = bencher.with_inputs(new_kernel);
    inputs.bench_local_refs(|kernel| cpu.compile(kernel).expect("it compiles"));
}

#[divan::bench]
fn graph_to_callable_again(bencher: Bencher<'_, '_>) {
    let (kernel, cpu) = (kernel(), Device::cpu());
    let _kept = cpu.compile(&kernel).expect("it compiles");
    bencher.bench_local(|| cpu.compile(&kernel).expect("it compiles"));
}

#[divan::bench]
fn graph_to_hip(bencher: Bencher<'_, '_>) {
    let amd = Device::amd();
    let inputs = bencher.with_inputs(new_kernel);
    inputs.bench_local_refs(|kernel| amd.compile(kernel).expect("it compiles"));
}

#[divan::bench(args = [1, 2], sample_count = 30)]
fn run_threads(bencher: Bencher<'_, '_>, threads: usize) {
    let cpu = Device::cpu();
    let clear = zero((VOCAB * DIM) as i64, DType::F32).expect("it is a kernel");
    let clear = cpu.compile(&clear).expect("it compiles");
    let scatter = cpu.compile(&kernel()).expect("it compiles");
    let (tokens, grad) = (tokens(), vec![0.5f32; TOKENS * DIM]);
    let mut sums = vec![1.0f32; VOCAB * DIM];
    let options = LaunchOptions::threads(threads);
    bencher.counter(bytes()).bench_local(|| {
        clear.launch(&mut [Buffer::from(&mut sums)], &options).expect("it runs");
        let buffers = &mut [(&mut sums).into(), (&grad).into(), (&tokens).into()];
        scatter.launch(buffers, &options).expect("it runs");
    });
}

#[divan::bench(sample_count = 30)]
fn run_plain_loop(bencher: Bencher<'_, '_>) {
    let (tokens, grad) = (tokens(), vec![0.5f32; TOKENS * DIM]);
    let mut sums = vec![1.0f32; VOCAB * DIM];
    bencher.counter(bytes()).bench_local(|| {
        sums.fill(0.0);
        for (&token, row) in tokens.iter().zip(grad.chunks_exact(DIM)) {
            for (sum, value) in sums[token as usize * DIM..][..DIM].iter_mut().zip(row) {
                *sum += value;
            }
        }
        black_box(&mut sums);
    });
}
