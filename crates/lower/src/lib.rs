//! Named passes from a UOp graph to a Program of structured loops, and the proofs behind them.
#![forbid(unsafe_code)]

pub mod program;

pub use program::{
    Address, Expr, Launch, LaunchIndex, Program, ProgramParam, Register, Stmt, Storage, Value,
};
