//! Why a kernel is refused.

use std::fmt;

use thiserror::Error;
use uop::rewrite::OutOfFuel;
use uop::{DType, Id};

/// A kernel is refused: the node, as the caller's graph numbers it, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{node}: {kind}")]
pub struct LowerError {
    /// The node at fault, in the graph that was given.
    pub node: Id,
    /// What is wrong.
    pub kind: LowerErrorKind,
}

/// Where an instance is: the value of each of its ranges, which are named as nodes of the graph
/// that was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point(pub Vec<(Id, i128)>);

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("its only instance");
        }
        for (i, (range, value)) in self.0.iter().enumerate() {
            write!(f, "{}{range} = {value}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// What can be wrong with a verified kernel.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LowerErrorKind {
    /// An access leaves its buffer, with a witness.
    #[error(
        "index {index} is out of bounds for axis {axis} of `{buffer}`, which has length {length}, at {point}; gate the access or correct the index"
    )]
    OutOfBounds {
        /// The name of the buffer.
        buffer: Box<str>,
        /// The axis, from 0.
        axis: usize,
        /// The offending index.
        index: i128,
        /// The length of the axis.
        length: i128,
        /// Where.
        point: Point,
    },
    /// Two accesses meet without an order, with a witness.
    #[error(
        "race on `{buffer}`: this access at {at} and {other} at {other_at} touch element [{element}] and nothing orders them; use an atomic, or order them with `after`"
    )]
    Race {
        /// The name of the buffer.
        buffer: Box<str>,
        /// Where this access is.
        at: Point,
        /// The other access.
        other: Id,
        /// Where the other is.
        other_at: Point,
        /// The element, one index per axis of the buffer's view.
        element: Box<str>,
    },
    /// Two accesses may meet without an order.
    #[error("possible race on `{buffer}`: cannot prove that this access and {other} never touch one element at different points{}; use an atomic, order them with `after`, or vouch for the store with `disjoint`", cause(.data))]
    MaybeRace {
        /// The name of the buffer.
        buffer: Box<str>,
        /// The other access; the same node if it races with itself.
        other: Id,
        /// The node whose value the proof would need, if there is one.
        data: Option<Id>,
    },
    /// A loop's bound depends on what only a launch knows.
    #[error("{what} must be a constant here, found {found}")]
    NotConstant {
        /// What is meant.
        what: &'static str,
        /// What stands there.
        found: Id,
    },
    /// A block of the grid is too large.
    #[error(
        "the local ranges make blocks of {items} work-items, the target takes {limit}; make a local range smaller"
    )]
    BlockTooLarge {
        /// The product of the local extents.
        items: u128,
        /// The target's limit.
        limit: u64,
    },
    /// The whole grid is too large.
    #[error(
        "the grid has {items} work-items in all, the target takes {limit}; make a global range a loop"
    )]
    GridTooLarge {
        /// The product of the global and local extents.
        items: u128,
        /// The target's limit.
        limit: u64,
    },
    /// An index leaves 64 bits.
    #[error("this index lies in {lo}..={hi}, which leaves 64 bits; clip it first")]
    IndexTooWide {
        /// The least value.
        lo: i128,
        /// The greatest value.
        hi: i128,
    },
    /// The rules of a pass undo one another: a fault of the compiler.
    #[error("{0}; this is a fault of the compiler, please report the kernel")]
    OutOfFuel(OutOfFuel),
    /// An op that no pass and no backend can take further.
    #[error("{what} of {dtype} cannot be lowered")]
    Unsupported {
        /// What it is.
        what: &'static str,
        /// On which type.
        dtype: DType,
    },
}

fn cause(data: &Option<Id>) -> String {
    match data {
        Some(id) => format!(", as that depends on {id}"),
        None => String::new(),
    }
}
