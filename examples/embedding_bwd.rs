//! The gradient of an embedding on real tokens, from graph to numbers.
//!
//! ```text
//! cargo run --release --example embedding_bwd
//! ```
//!
//! Prints the kernel, what it becomes in C and HIP, and how long it takes; checks the numbers
//! against a plain loop, and a part of them against the interpreter.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use ndarray::Array1;
use ndarray_npy::ReadNpyExt;
use uopc::kernels::{EmbeddingBwd, zero};
use uopc::{Buffer, Compiled, DType, Device, LaunchOptions, lower, text};

/// The length of a row.
const DIM: usize = 256;
/// How many tokens the interpreter does: a second or two.
const INTERPRETED: usize = 2048;
/// How many times each launch is timed.
const ROUNDS: usize = 15;

fn main() -> Result<(), Box<dyn Error>> {
    let tokens = read("tokens.npy")?;
    let vocab = read("vocab_size.npy")?[0] as usize;
    println!("{} tokens of the King James Bible, vocabulary {vocab}, dim {DIM}\n", tokens.len());

    // Multiples of 1/256 with few digits: every sum is exact, so every order gives the same bits.
    let grad_emb: Vec<f32> =
        (0..tokens.len() * DIM).map(|i| ((i * 7919 % 511) as f32 - 255.0) / 256.0).collect();

    let kernel = EmbeddingBwd::new(tokens.len() as i64, DIM as i64, vocab as i64).build()?;
    println!("== the kernel\n{kernel}");
    let program = lower::lower(&kernel.graph, kernel.sink, &text::C.caps)?;
    println!("== C\n{}", text::emit(&program, &text::C)?);
    let hip = Device::amd().compile(&kernel)?;
    println!("== HIP\n{}", hip.source().unwrap_or_default());

    let cpu = Device::cpu();
    let clear = cpu.compile(&zero((vocab * DIM) as i64, DType::F32)?)?;
    let scatter = cpu.compile(&kernel)?;
    let compile = (clear.compile_time() + scatter.compile_time()).as_secs_f64() * 1e3;
    println!("== run\ncompiled both kernels in {compile:.3} ms");

    let mut want = vec![0.0f32; vocab * DIM];
    for (&token, row) in tokens.iter().zip(grad_emb.chunks_exact(DIM)) {
        let token = (token.max(0) as usize).min(vocab - 1);
        for (sum, value) in want[token * DIM..][..DIM].iter_mut().zip(row) {
            *sum += value;
        }
    }

    // Read the tokens and the gradients, read and write a row of the sums for each token.
    let scatter_bytes = tokens.len() * 4 + tokens.len() * DIM * 4 * 3;
    let cores = std::thread::available_parallelism()?.get();
    let mut counts = vec![1];
    counts.extend((cores > 1).then_some(cores));
    let mut grad_weight = vec![1.0f32; vocab * DIM];
    for threads in counts {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let zeroed = launch(&clear, &mut [Buffer::from(&mut grad_weight)], threads)?;
            let buffers = &mut [(&mut grad_weight).into(), (&grad_emb).into(), (&tokens).into()];
            times.push((zeroed, launch(&scatter, buffers, threads)?));
            if grad_weight != want {
                return Err(format!("{threads} threads: wrong sums").into());
            }
        }
        let zeroed = median(times.iter().map(|t| t.0));
        let scattered = median(times.iter().map(|t| t.1));
        println!(
            "{threads} thread{}: zero {:.3} ms ({:.1} GB/s), embedding_bwd {:.3} ms ({:.1} GB/s); equal to the plain loop",
            if threads == 1 { "" } else { "s" },
            zeroed * 1e3,
            (vocab * DIM * 4) as f64 / zeroed / 1e9,
            scattered * 1e3,
            scatter_bytes as f64 / scattered / 1e9,
        );
    }

    let part = EmbeddingBwd::new(INTERPRETED as i64, DIM as i64, vocab as i64).build()?;
    let (grads, ids) = (&grad_emb[..INTERPRETED * DIM], &tokens[..INTERPRETED]);
    let mut results = Vec::new();
    for device in [Device::interp(), cpu] {
        let mut sums = vec![0.0f32; vocab * DIM];
        let time = launch(
            &device.compile(&part)?,
            &mut [(&mut sums).into(), grads.into(), ids.into()],
            1,
        )?;
        results.push((sums, time));
    }
    if results[0].0 != results[1].0 {
        return Err("the interpreter disagrees".into());
    }
    println!(
        "the first {INTERPRETED} tokens on the interpreter: {:.2} s, every access checked; equal to the JIT",
        results[0].1.as_secs_f64()
    );
    Ok(())
}

/// Reads an array of `examples/data`.
fn read(name: &str) -> Result<Vec<i32>, Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name);
    let file =
        std::fs::File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Array1::<i32>::read_npy(std::io::BufReader::new(file))?.to_vec())
}

fn launch(
    kernel: &Compiled,
    buffers: &mut [Buffer<'_>],
    threads: usize,
) -> Result<Duration, Box<dyn Error>> {
    Ok(kernel.launch(buffers, &LaunchOptions::threads(threads))?.time)
}

/// The middle one of some times, in seconds.
fn median(times: impl Iterator<Item = Duration>) -> f64 {
    let mut times: Vec<f64> = times.map(|time| time.as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
