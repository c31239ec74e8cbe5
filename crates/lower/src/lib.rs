//! Named passes from a UOp graph to a Program of structured loops, and the proofs behind them.
#![forbid(unsafe_code)]

pub mod caps;
pub mod error;
pub mod passes;
pub mod pipeline;
pub mod program;
pub mod prove;

pub use caps::{Caps, GridLimits};
pub use error::{LowerError, LowerErrorKind, Point};
pub use pipeline::{PASSES, Pass, lower, lower_observed};
pub use program::{
    Address, CallArg, Expr, Launch, LaunchIndex, Program, ProgramParam, ProgramVariable,
    REGISTER_BYTES, Register, Size, Stmt, Storage, Value,
};
