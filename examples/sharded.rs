//! The gradient of an embedding whose rows are spread over four devices, on real tokens.
//!
//! ```text
//! cargo run --release --example sharded
//! ```
//!
//! Every device reads all tokens and adds up those of its own rows. Prints who owns what, and checks
//! that the parts, one after the other, are what one device makes of it.

use std::error::Error;
use std::path::Path;

use ndarray::Array1;
use ndarray_npy::ReadNpyExt;
use uopc::kernels::EmbeddingBwd;
use uopc::runtime::{Sharded, shard};
use uopc::{Buffer, Device, LaunchOptions};

/// The length of a row.
const DIM: usize = 256;
/// How many devices there are.
const SHARDS: usize = 4;
/// The kernel takes up to so many tokens; how many, each launch states.
const MOST: i64 = 1 << 16;

fn main() -> Result<(), Box<dyn Error>> {
    let tokens = read("tokens.npy")?;
    let vocab = read("vocab_size.npy")?[0] as usize;
    println!(
        "{} tokens of the King James Bible, vocabulary {vocab}, dim {DIM}, on {SHARDS} devices\n",
        tokens.len()
    );
    // Multiples of 1/256 with few digits: every sum is exact, so every order gives the same bits.
    let grad_emb: Vec<f32> =
        (0..tokens.len() * DIM).map(|i| ((i * 7919 % 511) as f32 - 255.0) / 256.0).collect();
    let variables = &[("tokens", tokens.len() as i64)];
    let options = LaunchOptions { variables, threads: None };

    let whole = EmbeddingBwd::new(0..=MOST, DIM as i64, vocab as i64);
    let sharded = EmbeddingBwd { shards: SHARDS as i64, ..whole.clone() };
    let local = sharded.local_rows() as usize;
    // The last shard has room for more rows than it owns.
    let mut grad_weight = vec![0.0f32; SHARDS * local * DIM];
    let args = &mut [
        Sharded::Split(Buffer::from(&mut grad_weight)),
        Sharded::Shared(Buffer::from(&grad_emb)),
        Sharded::Shared(Buffer::from(&tokens)),
    ];
    let done = shard(&vec![Device::cpu(); SHARDS], &sharded.build()?, args, &options)?;

    println!("shard   rows           owns   tokens   time");
    for (number, launched) in done.iter().enumerate() {
        let rows = sharded.rows(number as i64);
        let got = tokens.iter().filter(|&&token| rows.contains(&token.into())).count();
        println!(
            "{number:5}   {:5} - {:5} {:6} {got:8}   {:.3} ms",
            rows.start,
            rows.end - 1,
            rows.end - rows.start,
            launched.time.as_secs_f64() * 1e3
        );
    }

    let mut want = vec![0.0f32; vocab * DIM];
    let buffers = &mut [(&mut want).into(), (&grad_emb).into(), (&tokens).into()];
    let launched = Device::cpu().compile(&whole.build()?)?.launch(buffers, &options)?;
    let time = launched.time.as_secs_f64() * 1e3;
    println!("  all   {:5} - {:5} {vocab:6} {:8}   {time:.3} ms", 0, vocab - 1, tokens.len());

    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    let (owned, spare) = grad_weight.split_at(vocab * DIM);
    if bits(owned) != bits(&want) || spare.iter().any(|&x| x != 0.0) {
        return Err("the shards disagree with the whole kernel".into());
    }
    println!("\nthe shards together are the whole kernel, bit for bit");
    Ok(())
}

/// Reads an array of `examples/data`.
fn read(name: &str) -> Result<Vec<i32>, Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name);
    let file =
        std::fs::File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Array1::<i32>::read_npy(std::io::BufReader::new(file))?.to_vec())
}
