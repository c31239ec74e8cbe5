//! Why a program has no machine code.

use std::fmt;

use uop::{AtomicOp, DType, Op};

use lower::REGISTER_BYTES;

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
    /// A value or an element has a type that no machine value has.
    #[error("no machine type for {0}")]
    Type(DType),
    /// An operation that is not defined on these types.
    #[error("no code for {op} from {} to {to}", List(from))]
    Alu {
        /// The operation.
        op: Op,
        /// The types of its operands.
        from: Vec<DType>,
        /// The type of its result.
        to: DType,
    },
    /// An atomic that is not defined on this type.
    #[error("no code for atomic {} on {dtype}", op.name())]
    Atomic {
        /// The operation.
        op: AtomicOp,
        /// The type of the element.
        dtype: DType,
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
    /// The program breaks an invariant of [`lower::program`], named here.
    #[error("malformed program: {0}")]
    Malformed(&'static str),
    /// Cranelift has no back end for this machine, or not with these settings.
    #[error("cranelift does not support this machine: {0}")]
    Host(String),
    /// Cranelift refused the code, or panicked over it: a bug here or there.
    #[error("cranelift: {0}")]
    Codegen(String),
}

struct List<'a>(&'a [DType]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, dtype) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{dtype}")?;
        }
        Ok(())
    }
}
