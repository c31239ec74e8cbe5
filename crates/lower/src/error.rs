//! Why a kernel is refused.

use std::fmt;

use thiserror::Error;
use uop::rewrite::OutOfFuel;
use uop::{Graph, Id, Interval};

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
    /// The length of an axis, or an extent of the launch, is too long an expression for a launch.
    #[error("the expression of a length or an extent is too long; make it a variable")]
    LongSize,
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
    /// The buffers of a work-item are too large together.
    #[error(
        "the buffers of a work-item take {bytes} bytes up to this one, the most is {limit}; use a parameter for what is larger"
    )]
    RegistersTooLarge {
        /// The bytes of this BUFFER and those before it.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A LOAD happens once for all points of a parallel range inside which it is, and what it reads
    /// is written there.
    #[error(
        "this load of `{buffer}` happens once for all points of the parallel range {range}, and {write} writes `{buffer}` in the same loops; no target can do that yet: read inside the range with after({range}), or split the kernel"
    )]
    OnceForAll {
        /// The name of the buffer.
        buffer: Box<str>,
        /// The parallel range.
        range: Id,
        /// The write.
        write: Id,
    },
    /// The value of an effect that happens once for all points of a parallel range is used at each.
    #[error(
        "this uses, at each point of the parallel range {range}, the value of an effect that happens once for all of them; no target can do that yet: do that inside the range with after({range}), or split the kernel"
    )]
    ValueForAll {
        /// The parallel range.
        range: Id,
    },
    /// An effect happens once per group, inside a local range without points.
    #[error(
        "this effect happens once for all points of {range}, which has none; close {range} around what uses it only"
    )]
    NoPoint {
        /// The parallel range.
        range: Id,
    },
    /// A work-item's BUFFER would have to live on through a serial loop around a parallel range that
    /// becomes a loop itself.
    #[error(
        "this buffer belongs to the work-items of {range}, which is inside the loop {around}; no target can keep one for each yet: close {range} outside {around}"
    )]
    OnePerPoint {
        /// The parallel range.
        range: Id,
        /// The serial range around it.
        around: Id,
    },
    /// An index leaves 64 bits.
    #[error("this index lies in {interval}, which leaves 64 bits; clip it first")]
    IndexTooWide {
        /// Where it lies.
        interval: Interval,
    },
    /// The rules of a pass undo one another: a fault of the compiler.
    #[error("{0}; this is a fault of the compiler, please report the kernel")]
    OutOfFuel(OutOfFuel),
    /// A declared operation that the target has no way to do.
    #[error("custom `{name}` has no body, and no template for {target}: add one of them")]
    NoDefinition {
        /// Its name.
        name: Box<str>,
        /// For what there is no template.
        target: &'static str,
    },
}

impl LowerErrorKind {
    /// This kind of error, of the node `n` of the graph in hand.
    pub(crate) fn at(self, graph: &Graph, n: Id) -> LowerError {
        LowerError { node: graph.origin(n), kind: self }
    }
}

fn cause(data: &Option<Id>) -> String {
    data.map_or(String::new(), |id| format!(", as that depends on {id}"))
}
