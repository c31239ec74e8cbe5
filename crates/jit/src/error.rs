//! Why a program has no machine code.

use lower::REGISTER_BYTES;
use lower::program::ProgramErrors;
use uop::{DType, Op};

/// Why the kernel `kernel` was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}`: {kind}")]
pub struct JitError {
    /// The name of the program.
    pub kernel: String,
    /// What is wrong with it.
    pub kind: JitErrorKind,
}

/// What is wrong with a program.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JitErrorKind {
    /// The program is for a grid of blocks, which a CPU does not have.
    #[error("a program for a grid cannot run on the CPU; lower it without one")]
    Grid,
    /// The register buffers are larger than [`REGISTER_BYTES`] together.
    #[error("the register buffers need more than {REGISTER_BYTES} bytes")]
    Registers,
    /// An operation that is not defined on these types.
    #[error("no code for {op} from {from} to {to}")]
    Alu {
        /// The operation.
        op: Op,
        /// The type of its operands.
        from: DType,
        /// The type of its result.
        to: DType,
    },
    /// A declared operation that has neither a body nor a function.
    #[error(
        "custom `{name}` has no body, and no function is registered for the CPU: add one of them"
    )]
    NoFunction {
        /// Its name.
        name: String,
    },
    /// A function was registered for an operation with this name that is declared otherwise.
    #[error(
        "the function for custom `{name}` was registered for another declaration: their arguments, result and effect must be equal"
    )]
    Signature {
        /// Its name.
        name: String,
    },
    /// The program breaks invariants of [`lower::program`].
    #[error("malformed program: {0}")]
    Malformed(#[from] ProgramErrors),
    /// Cranelift has no back end for this machine, or not with these settings.
    #[error("cranelift does not support this machine: {0}")]
    Host(String),
    /// Cranelift refused the code, or panicked over it: a bug here or there.
    #[error("cranelift: {0}")]
    Codegen(String),
}
