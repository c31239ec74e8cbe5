//! C and HIP as text, and as real compilers take it.
#![forbid(unsafe_code)]

mod builder;
mod errors;
mod fuzz;
mod golden;
mod hip;
mod names;
mod programs;
mod run;
#[path = "../../../../tests/support/mod.rs"]
mod support;
