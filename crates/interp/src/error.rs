//! What can be wrong with a graph, its arguments or a run.

use std::fmt;

use thiserror::Error as ThisError;
use uop::{Arity, DType, Id, Op};

/// Why a graph was not run to its end. Ids are those of the graph that was given.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("{node}: {kind}")]
pub struct Error {
    /// Where it showed.
    pub node: Id,
    /// What is wrong.
    pub kind: ErrorKind,
}

/// What is wrong.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum ErrorKind {
    /// The root is no SINK of the graph, or there is a SINK below it.
    #[error("a kernel has one sink, at its root")]
    NotASink,
    /// It belongs to a lowered graph, which has no meaning of its own.
    #[error("{op} occurs only in lowered graphs")]
    Lowered {
        /// `special`, or `range` for a THREAD axis.
        op: Op,
    },
    /// The number of sources is wrong.
    #[error("{op} takes {want}, not {got}")]
    Arity {
        /// The op of the node.
        op: Op,
        /// What it takes.
        want: Arity,
        /// What it has.
        got: usize,
    },
    /// The number of indexes is not the number of axes.
    #[error("{got} indexes into {want} axes")]
    Rank {
        /// The number of axes.
        want: usize,
        /// The number of indexes.
        got: usize,
    },
    /// The arg is of another op, or its value does not fit.
    #[error("{op} cannot carry this arg")]
    Arg {
        /// The op of the node.
        op: Op,
    },
    /// The dtype is not what the op gives.
    #[error("{op} cannot be {dtype} here")]
    DType {
        /// The op of the node.
        op: Op,
        /// Its dtype.
        dtype: DType,
    },
    /// A source is of the wrong kind (value, address, storage, effect) or dtype.
    #[error("source {position} of {op} cannot be {source_id}")]
    Source {
        /// The op of the node.
        op: Op,
        /// Which source, from 0.
        position: usize,
        /// The source.
        source_id: Id,
    },
    /// An axis length, or the bound of a LOCAL range, does not follow from constants.
    #[error("a length must follow from constants")]
    NotConstant,
    /// The number of elements does not stay the same, or is not a number of elements.
    #[error("{got} elements seen as {want}")]
    Reshape {
        /// The elements of the view.
        want: i128,
        /// The elements of what it views.
        got: i128,
    },
    /// More elements or local points than the oracle is made for.
    #[error("too large for the oracle")]
    TooLarge,
    /// The kernel writes an argument that it declares read-only.
    #[error("writes {param}, which is read-only")]
    ReadOnly {
        /// The PARAM.
        param: Id,
    },
    /// A VARIABLE has no value, or one outside its bounds.
    #[error("variable `{name}` must be from {lo} to {hi}, found {}", value(*found))]
    Variable {
        /// Its name.
        name: Box<str>,
        /// Its least value.
        lo: i64,
        /// Its greatest value.
        hi: i64,
        /// The value given.
        found: Option<i64>,
    },
    /// Two PARAMs have one slot.
    #[error("slot {slot} is also that of {other}")]
    SlotTaken {
        /// The slot.
        slot: u32,
        /// The other PARAM.
        other: Id,
    },
    /// A range is used where nothing binds it.
    #[error("{range} is not bound here")]
    Unbound {
        /// The RANGE.
        range: Id,
    },
    /// An effect lies under two binders of one range.
    #[error("an effect lies under two ends that bind one range")]
    TwoBinders,
    /// The region of an access is not closed upward (S3).
    #[error("depends on {inner} and not on {outer}, which is outside it")]
    Lacks {
        /// The range that it lacks.
        outer: Id,
        /// The range that it has.
        inner: Id,
    },
    /// GLOBAL ranges are closed last.
    #[error("{serial} is serial and outside {parallel}, which is parallel")]
    SerialOutside {
        /// The LOOP range.
        serial: Id,
        /// The GLOBAL range.
        parallel: Id,
    },
    /// The bound of a GLOBAL range depends on a LOCAL one.
    #[error("the bound of a global range depends on a local one")]
    Bound,
    /// There are fewer arguments than slots.
    #[error("there is no argument for slot {slot}: {got} were given")]
    MissingParam {
        /// The slot.
        slot: u32,
        /// How many arguments there are.
        got: usize,
    },
    /// An argument has another dtype.
    #[error("argument {slot} is {got}, not {want}")]
    ParamDType {
        /// The slot.
        slot: u32,
        /// What the PARAM says.
        want: DType,
        /// What the argument is.
        got: DType,
    },
    /// An argument has another number of elements.
    #[error("argument {slot} has {got} elements, not {want}")]
    ParamLength {
        /// The slot.
        slot: u32,
        /// What the PARAM says.
        want: i128,
        /// What the argument has.
        got: usize,
    },
    /// A declared operation has neither a body nor a function.
    #[error(
        "custom `{name}` has no body, and no function is registered for the interpreter: add one of them"
    )]
    NoFunction {
        /// Its name.
        name: String,
    },
    /// A function returned what its operation is not declared to be, or changed the number or the
    /// types of the elements that it was given.
    #[error("the function for custom `{name}` gives other values than are declared")]
    Function {
        /// The name of the operation.
        name: String,
    },
    /// An index is outside its axis, and the gate is true.
    #[error("index {index} is out of bounds for axis {axis} of length {length}{point}")]
    OutOfBounds {
        /// Which index of the INDEX, from 0.
        axis: usize,
        /// Its value.
        index: i128,
        /// The length of the axis.
        length: i128,
        /// Where it happened.
        point: Point,
    },
    /// Two accesses conflict, and the first to run is not before the second. Also when S4 puts
    /// the second before the first, which shows a circle in the order.
    #[error("not ordered with {other}{other_point}, on element {element} of {buffer}{point}")]
    Race {
        /// The PARAM or BUFFER.
        buffer: Id,
        /// The element, counted in row-major order.
        element: usize,
        /// Where it happened.
        point: Point,
        /// The earlier access.
        other: Id,
        /// Where that happened.
        other_point: Point,
    },
    /// As `Race`, of an access that is marked `disjoint`.
    #[error(
        "marked `disjoint`, but touches element {element} of {buffer}{point}, as {other} does{other_point}; if indexes can repeat, use an atomic without `disjoint`"
    )]
    NotDisjoint {
        /// The PARAM or BUFFER.
        buffer: Id,
        /// The element, counted in row-major order.
        element: usize,
        /// Where it happened.
        point: Point,
        /// The earlier access.
        other: Id,
        /// Where that happened.
        other_point: Point,
    },
    /// An element of a BUFFER is read before it is written.
    #[error("reads element {element} of {buffer} before it is written{point}")]
    Undefined {
        /// The BUFFER.
        buffer: Id,
        /// The element, counted in row-major order.
        element: usize,
        /// Where it happened.
        point: Point,
    },
    /// A value of dtype `index` leaves `i128`.
    #[error("overflows{point}")]
    Overflow {
        /// Where it happened.
        point: Point,
    },
    /// The limit of the options is reached.
    #[error("more than {limit} steps")]
    Steps {
        /// The limit.
        limit: u64,
    },
}

fn value(found: Option<i64>) -> String {
    found.map_or("no value".into(), |found| found.to_string())
}

impl ErrorKind {
    pub(crate) fn at(self, node: Id) -> Error {
        Error { node, kind: self }
    }
}

/// The value of each open range, outermost first; prints as `, at %1 = 3, %2 = 0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point(pub Vec<(Id, i128)>);

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (range, value)) in self.0.iter().enumerate() {
            let start = if i == 0 { ", at " } else { ", " };
            write!(f, "{start}{range} = {value}")?;
        }
        Ok(())
    }
}
