//! Why a program has no text in a dialect.

use std::fmt;

use lower::LaunchIndex;
use thiserror::Error;
use uop::{AtomicOp, DType, Op};

/// Everything that keeps a program from being written in a dialect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct EmitError {
    /// The program's name.
    pub kernel: String,
    /// The dialect's name.
    pub target: &'static str,
    /// What is wrong; never empty, each thing once.
    pub kinds: Vec<EmitErrorKind>,
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}: ", self.kernel, self.target)?;
        for (i, kind) in self.kinds.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{kind}")?;
        }
        Ok(())
    }
}

/// One thing that keeps a program from being written in a dialect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EmitErrorKind {
    /// The name of the kernel or of a parameter is not an ASCII identifier.
    #[error("{name:?} is not an identifier")]
    Name {
        /// The name.
        name: String,
    },
    /// The dialect needs a program with a grid, or one without.
    #[error("the target needs a program {}", if *.grid { "with a grid" } else { "without a grid" })]
    Launch {
        /// Whether it needs a grid.
        grid: bool,
    },
    /// An index that this kind of launch does not have.
    #[error("no index {index}")]
    Index {
        /// The index.
        index: LaunchIndex,
    },
    /// A value or an element of a type that the dialect cannot spell.
    #[error("no type {dtype}")]
    Type {
        /// The type.
        dtype: DType,
    },
    /// An op that is no arithmetic on operands of this type.
    #[error("no {op} on {dtype}")]
    Op {
        /// The op.
        op: Op,
        /// The type of its operands.
        dtype: DType,
    },
    /// A call of a declared operation that has no template for the dialect, or a malformed one.
    #[error("custom `{name}` has no template for this target: add one, or a body")]
    Template {
        /// The name of the operation.
        name: String,
    },
    /// An atomic that the dialect does not have.
    #[error("no atomic {} on {dtype}", .op.name())]
    Atomic {
        /// What is done to the element.
        op: AtomicOp,
        /// The type of the element.
        dtype: DType,
    },
}
