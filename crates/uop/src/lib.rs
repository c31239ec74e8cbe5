//! The UOp graph: ops, dtypes, builder, verifier and text form.
#![forbid(unsafe_code)]

pub mod custom;
pub mod dtype;
pub mod graph;
pub mod op;

pub use custom::{AtomicOp, Contract, Custom, CustomArg, Effect, atomic};
pub use dtype::{Const, DType};
pub use graph::{Access, Arg, Axis, AxisType, Graph, Id, Node, Param, Sources, Special};
pub use op::{Arity, Op, Property, ResultType};
