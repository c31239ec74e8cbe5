//! Machine code from a [`Program`], through Cranelift.
//!
//! [`compile`] takes a program with [`Launch::Range`](lower::Launch::Range) and gives a [`Code`],
//! which owns its memory and frees it when dropped. What the program means is settled in `lower`;
//! here each statement and op becomes the instructions that say the same, and whatever has none is
//! an error. Invariants:
//!
//! - Equal programs give equal CLIF and equal machine code, byte for byte, on one machine.
//! - The code traps nowhere, touches only the elements that the program names, and calls nothing but
//!   what a program without a body for it was given in [`Functions`]; its address is then in the
//!   code, which is of no use to another process ([`lower::Program::customs`] says so).
//! - Nothing depends on the environment of the process but the CPU's features.

#![allow(unsafe_code)] // Calling machine code and freeing it is what this crate is for.

mod code;
mod error;
mod functions;
mod translate;

pub use code::{Code, Options, clif, compile, compile_with, target};
pub use error::{JitError, JitErrorKind};
pub use functions::Functions;

use lower::Caps;
#[cfg(doc)]
use lower::Program;

/// What a program for this backend may use. Addresses are 64 bits wide: a narrower index costs an
/// extension at every access.
pub const CAPS: Caps = Caps { grid: None, narrow_index: false, templates: None, calls: true };
