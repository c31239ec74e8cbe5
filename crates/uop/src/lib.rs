//! The UOp graph: ops, dtypes, builder, verifier and text form.
#![deny(unsafe_code)] // One constructor is `unsafe`: that of a template.

pub mod bounds;
pub mod build;
pub mod custom;
pub mod declare;
pub mod dtype;
pub mod graph;
pub mod op;
pub mod parse;
pub mod print;
pub mod region;
pub mod rewrite;
pub mod simplify;
pub mod verify;

pub use bounds::{Bounds, Interval};
pub use build::{
    BuildError, BuildErrorKind, BuildErrors, Indices, Kernel, KernelGraph, Operand, Val,
};
pub use custom::{AtomicOp, Contract, Custom, CustomArg, Effect, atomic};
pub use declare::{Declaration, DeclarationError};
pub use dtype::{Const, DType};
pub use graph::{Access, Arg, Axis, AxisType, Graph, Id, Node, Param, Sources, Special, Variable};
pub use op::{Arity, Op, Property, ResultType};
pub use parse::{ParseError, ParseErrors, Parsed, Place, Places, parse};
pub use print::print;
pub use region::{Instance, Order, Ranges, Regions, Relation, conflict};
pub use verify::{Phase, VerifyError, VerifyErrorKind, VerifyErrors, verify};
