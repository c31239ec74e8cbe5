//! The embedding and its backward, against plain loops.
#![forbid(unsafe_code)]

mod support;

use support::{cc, hip, tools};
use uopc::kernels::{Axes, Embedding, EmbeddingBwd, KernelError, OutOfRange};
use uopc::{Buffer, Device, KernelGraph, LaunchOptions};

const DIMS: [usize; 7] = [1, 3, 64, 256, 257, 300, 768];

/// Tokens that are equal, repeated, spread, or out of range.
fn token_sets(vocab: usize) -> Vec<Vec<i32>> {
    let v = vocab as i32;
    let mixed = [0, v - 1, -1, v, i32::MIN, i32::MAX, v / 2, 0, 0, v - 1, 1, -v];
    vec![
        vec![],
        vec![v - 1],
        vec![-1],
        vec![v / 2; 40],
        mixed.repeat(3),
        (0..97).map(|i| i * 7919 % v).collect(),
    ]
}

/// The row that a token counts for.
fn row(token: i32, vocab: usize, out_of_range: OutOfRange) -> Option<usize> {
    let last = vocab as i64 - 1;
    let token = i64::from(token);
    match out_of_range {
        OutOfRange::Clip => Some(token.clamp(0, last) as usize),
        OutOfRange::Ignore => (0..=last).contains(&token).then_some(token as usize),
    }
}

/// Sums of rows in f64, serially.
fn reference(
    tokens: &[i32],
    grad: &[f32],
    start: &[f32],
    dim: usize,
    out_of_range: OutOfRange,
) -> Vec<f64> {
    let vocab = start.len() / dim;
    let mut sums: Vec<f64> = start.iter().map(|&x| x.into()).collect();
    for (&token, values) in tokens.iter().zip(grad.chunks_exact(dim)) {
        if let Some(row) = row(token, vocab, out_of_range) {
            for (sum, &value) in sums[row * dim..][..dim].iter_mut().zip(values) {
                *sum += f64::from(value);
            }
        }
    }
    sums
}

/// Numbers between -1 and 1 that look random: the high bits of a linear congruential generator
/// (Knuth's MMIX constants).
fn noise(n: usize) -> Vec<f32> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Small integers: sums are exact in any order.
fn integers(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 31 % 19) as f32 - 9.0).collect()
}

fn backward(
    device: &Device,
    kernel: &KernelGraph,
    start: &[f32],
    grad: &[f32],
    tokens: &[i32],
    threads: usize,
) -> Vec<f32> {
    let mut sums = start.to_vec();
    let compiled = device.compile(kernel).unwrap_or_else(|error| panic!("{error}"));
    let buffers = &mut [Buffer::from(&mut sums), grad.into(), tokens.into()];
    let options = LaunchOptions::threads(threads);
    compiled.launch(buffers, &options).unwrap_or_else(|error| panic!("{error}"));
    sums
}

#[test]
fn backward_adds_each_row() {
    let (cpu, interp) = (Device::cpu(), Device::interp());
    for dim in DIMS {
        for vocab in [1, 5] {
            for tokens in token_sets(vocab) {
                for (axes, out_of_range) in [
                    (Axes::Gpu, OutOfRange::Clip),
                    (Axes::Cpu, OutOfRange::Clip),
                    (Axes::Gpu, OutOfRange::Ignore),
                ] {
                    let kernel = EmbeddingBwd {
                        axes,
                        out_of_range,
                        ..EmbeddingBwd::new(tokens.len() as i64, dim as i64, vocab as i64)
                    };
                    let kernel = kernel.build().unwrap_or_else(|error| panic!("{error}"));
                    let what = format!("dim {dim}, vocab {vocab}, {tokens:?}, {axes:?}");

                    let (start, grad) = (noise(vocab * dim), noise(tokens.len() * dim));
                    let want = reference(&tokens, &grad, &start, dim, out_of_range);
                    let serial = backward(&cpu, &kernel, &start, &grad, &tokens, 1);
                    let parallel = backward(&cpu, &kernel, &start, &grad, &tokens, 2);
                    for ((&want, &one), &two) in want.iter().zip(&serial).zip(&parallel) {
                        // Relative to what is added up: of numbers that cancel, the sum is small.
                        let allowed = 1e-5 * want.abs().max(1.0);
                        assert!((want - f64::from(one)).abs() <= allowed, "{what}: {want} {one}");
                        assert!((want - f64::from(two)).abs() <= allowed, "{what}: {want} {two}");
                    }
                    // With one thread the order is the interpreter's, unless that shuffles it.
                    let (start, grad) = (integers(vocab * dim), integers(tokens.len() * dim));
                    let want: Vec<f32> = reference(&tokens, &grad, &start, dim, out_of_range)
                        .iter()
                        .map(|&x| x as f32)
                        .collect();
                    for threads in [1, 2] {
                        let sums = backward(&cpu, &kernel, &start, &grad, &tokens, threads);
                        assert_eq!(sums, want, "{what}, {threads} threads");
                    }
                    if dim <= 300 {
                        let sums = backward(&interp, &kernel, &start, &grad, &tokens, 1);
                        assert_eq!(sums, want, "{what}, interpreter");
                    }
                }
            }
        }
    }
}

#[test]
fn c_gives_the_bits_of_the_jit() {
    for (dim, axes, out_of_range) in [
        (1, Axes::Gpu, OutOfRange::Clip),
        (64, Axes::Cpu, OutOfRange::Clip),
        (300, Axes::Gpu, OutOfRange::Ignore),
        (300, Axes::Cpu, OutOfRange::Clip),
    ] {
        let vocab = 5;
        let tokens = &token_sets(vocab)[4];
        let kernel = EmbeddingBwd {
            axes,
            out_of_range,
            ..EmbeddingBwd::new(tokens.len() as i64, dim as i64, vocab as i64)
        };
        let kernel = kernel.build().unwrap_or_else(|error| panic!("{error}"));
        let program = lower::lower(&kernel.graph, kernel.sink, &text::C.caps)
            .unwrap_or_else(|error| panic!("{error}"));
        let bytes = |values: &[f32]| values.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let ids: Vec<u8> = tokens.iter().flat_map(|x| x.to_ne_bytes()).collect();
        for build in cc::builds("embedding_bwd", &program) {
            let (start, grad) = (noise(vocab * dim), noise(tokens.len() * dim));
            let want: Vec<u8> = bytes(&backward(&Device::cpu(), &kernel, &start, &grad, tokens, 1));
            let inputs = [bytes(&start), bytes(&grad), ids.clone()];
            assert_eq!(build.run("whole", &[], &inputs)[0], want, "dim {dim}, {}", build.label);

            let (start, grad) = (integers(vocab * dim), integers(tokens.len() * dim));
            let want: Vec<u8> = bytes(&backward(&Device::cpu(), &kernel, &start, &grad, tokens, 1));
            let inputs = [bytes(&start), bytes(&grad), ids.clone()];
            assert_eq!(build.run("threads", &[], &inputs)[0], want, "dim {dim}, {}", build.label);
        }
    }
}

#[test]
fn hip_compiles_for_every_chip() {
    let Some(compiler) = tools::hip_compiler("embedding_bwd") else { return };
    for dim in [256, 300] {
        let kernel = EmbeddingBwd::new(16384, dim, 12830).build().expect("it is a kernel");
        let compiled = Device::amd().compile(&kernel).unwrap_or_else(|error| panic!("{error}"));
        let source = compiled.source().expect("amd writes source");
        let grid =
            format!("Launch exactly 16384 x {} x 1 blocks of 256 x 1 x 1", (dim + 255) / 256);
        assert!(source.contains(&grid), "{grid}: {source}");
        for chip in hip::CHIPS {
            let asm = hip::compile(compiler, source, chip, &[]);
            assert!(asm.contains("global_atomic"), "{chip}: {asm}");
        }
    }
}

#[test]
fn the_padding_row_gets_nothing() {
    let (dim, vocab) = (300, 5);
    let tokens = &token_sets(vocab)[4];
    for out_of_range in [OutOfRange::Clip, OutOfRange::Ignore] {
        for padding in 0..vocab {
            let kernel = EmbeddingBwd {
                out_of_range,
                padding_idx: Some(padding as i64),
                ..EmbeddingBwd::new(tokens.len() as i64, dim as i64, vocab as i64)
            };
            let kernel = kernel.build().unwrap_or_else(|error| panic!("{error}"));
            let (start, grad) = (integers(vocab * dim), integers(tokens.len() * dim));
            let mut want: Vec<f32> = reference(tokens, &grad, &start, dim, out_of_range)
                .iter()
                .map(|&x| x as f32)
                .collect();
            let row = padding * dim..(padding + 1) * dim;
            want[row.clone()].copy_from_slice(&start[row]);
            for (device, threads) in [(Device::cpu(), 2), (Device::interp(), 1)] {
                let sums = backward(&device, &kernel, &start, &grad, tokens, threads);
                assert_eq!(sums, want, "padding {padding}, {out_of_range:?}");
            }
        }
    }
    for padding in [-1, 5] {
        let kernel = EmbeddingBwd { padding_idx: Some(padding), ..EmbeddingBwd::new(4, 8, 5) };
        let error = kernel.build().expect_err("there is no such row").to_string();
        assert_eq!(error, format!("padding_idx must be a row, 0 to 4, found {padding}"));
    }
}

#[test]
fn forward_gathers_rows() {
    for dim in DIMS {
        for vocab in [1, 5] {
            for tokens in token_sets(vocab) {
                for out_of_range in [OutOfRange::Clip, OutOfRange::Ignore] {
                    let n = tokens.len();
                    let kernel = Embedding {
                        out_of_range,
                        ..Embedding::new(n as i64, dim as i64, vocab as i64)
                    };
                    let kernel = kernel.build().unwrap_or_else(|error| panic!("{error}"));
                    let weight = noise(vocab * dim);
                    let want: Vec<f32> = tokens
                        .iter()
                        .flat_map(|&token| match row(token, vocab, out_of_range) {
                            Some(row) => weight[row * dim..][..dim].to_vec(),
                            None => vec![0.0; dim],
                        })
                        .collect();
                    for (device, threads) in [(Device::cpu(), 2), (Device::interp(), 1)] {
                        let mut out = vec![9.0f32; n * dim];
                        let compiled =
                            device.compile(&kernel).unwrap_or_else(|error| panic!("{error}"));
                        let buffers = &mut [(&mut out).into(), (&weight).into(), (&tokens).into()];
                        let options = LaunchOptions::threads(threads);
                        compiled.launch(buffers, &options).unwrap_or_else(|e| panic!("{e}"));
                        assert_eq!(out, want, "dim {dim}, vocab {vocab}, {tokens:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    let message = |kernel: EmbeddingBwd| kernel.build().expect_err("it is wrong").to_string();
    let strict = EmbeddingBwd { strict: true, ..EmbeddingBwd::new(4, 300, 10) };
    let error = strict.build().expect_err("300 is no multiple of 256");
    assert!(matches!(error, KernelError::Indivisible { dim: 300, block: 256 }));
    assert_eq!(
        error.to_string(),
        "dim 300 is not divisible by the block of 256 columns; pad it, or drop strict"
    );
    assert!(EmbeddingBwd { strict: true, ..EmbeddingBwd::new(4, 512, 10) }.build().is_ok());
    assert!(EmbeddingBwd { strict: true, ..EmbeddingBwd::new(4, 100, 10) }.build().is_ok());
    assert_eq!(message(EmbeddingBwd::new(-1, 4, 4)), "tokens must be at least 0, found -1");
    assert_eq!(message(EmbeddingBwd::new(1, 0, 4)), "dim must be at least 1, found 0");
    assert_eq!(message(EmbeddingBwd::new(1, 4, 0)), "vocab must be at least 1, found 0");
    // Too large for memory, but an error all the same.
    assert!(EmbeddingBwd::new(i64::MAX, i64::MAX, 4).build().is_err());
}
