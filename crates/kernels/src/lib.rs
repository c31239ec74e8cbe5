//! The kernel library. Each kernel is an ordinary user of the builder: nothing below this crate
//! knows what an embedding is.
#![forbid(unsafe_code)]

mod embedding;
mod zero;

pub use embedding::{Axes, Embedding, EmbeddingBwd, KernelError, OutOfRange};
pub use zero::zero;
