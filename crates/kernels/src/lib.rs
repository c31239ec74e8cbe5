//! The kernel library. Each kernel is an ordinary user of the builder: nothing below this crate
//! knows what an embedding is.
//!
//! Kernels have functions and structs of their own ([`zero()`], [`EmbeddingBwd`]); [`LIBRARY`] has
//! them all by name, for the command line.
#![forbid(unsafe_code)]

mod embedding;
mod library;
mod zero;

pub use embedding::{Axes, Embedding, EmbeddingBwd, KernelError, Length, OutOfRange, Tokens};
pub use library::{Entry, Kind, LIBRARY, Setting, Settings};
pub use zero::zero;
