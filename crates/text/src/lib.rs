//! C and HIP source from a [`Program`].
//!
//! [`emit`] is one pass over the program; a [`Dialect`] is a constant that states how a language
//! differs from [`C`]. Nothing is decided here: the text is a pure function of the program, the
//! same bytes every time, and its values are those that docs/ir.md defines.
#![forbid(unsafe_code)]

mod alu;
mod dialect;
mod emit;
mod error;
mod expr;
mod helpers;
mod names;
mod sections;

pub use dialect::{C, Dialect, HIP};
pub use emit::emit;
pub use error::{EmitError, EmitErrorKind};

use lower::Program;

/// The name of the function in the text of [`emit`] that a launch looks up: in C
/// `void NAME_range(void *const *buffers, const int64_t *variables, int64_t begin, int64_t end)`, in HIP the kernel itself.
///
/// It is the program's name, with underscores behind it where the language has other plans for
/// that word.
pub fn entry_name(program: &Program, dialect: &Dialect) -> String {
    let kernel = names::Names::default().kernel(&program.name);
    dialect.entry_name(&kernel)
}
