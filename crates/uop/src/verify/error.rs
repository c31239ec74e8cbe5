//! What the verifier has to say.

use std::fmt;

use thiserror::Error;

use super::{MAX_AXES, MAX_OPEN, advice, arg_of, operands_of};
use crate::custom::Custom;
use crate::dtype::{Const, DType};
use crate::graph::{Axis, Id, Special};
use crate::op::{Arity, Op};

/// Everything that is wrong with a graph, in ascending order of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyErrors {
    /// The violations; at least one.
    pub errors: Vec<VerifyError>,
}

impl fmt::Display for VerifyErrors {
    /// One violation per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for VerifyErrors {}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{node}: {kind}")]
pub struct VerifyError {
    /// Where it is.
    pub node: Id,
    /// What it is.
    pub kind: VerifyErrorKind,
}

/// A rule that a node breaks, with what it needs to be explained. The module documentation states
/// the rules.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VerifyErrorKind {
    /// The root is not a SINK.
    #[error("the root is {op}, expected sink; close the kernel with sink")]
    NotSink {
        /// The op of the root.
        op: Op,
    },
    /// There are too few or too many sources.
    #[error("{op} has {found}, expected {expected}", found = Arity::Fixed(*found))]
    Arity {
        /// The op.
        op: Op,
        /// How many it takes.
        expected: Arity,
        /// How many there are.
        found: usize,
    },
    /// The arg is of the wrong kind.
    #[error("{op} has {found} as its arg, expected {}", arg_of(*op))]
    WrongArg {
        /// The op.
        op: Op,
        /// What its arg is, in words.
        found: &'static str,
    },
    /// A name is not an identifier.
    #[error("the name {name:?} of the {op} is not an identifier; use letters, digits and _")]
    BadName {
        /// SINK or PARAM.
        op: Op,
        /// The name.
        name: Box<str>,
    },
    /// The value of a CONST is not one of its dtype.
    #[error("{value} is not a value of {dtype}")]
    BadConst {
        /// The value.
        value: Const,
        /// The dtype.
        dtype: DType,
    },
    /// The elements of a buffer have no size.
    #[error("{op} of {dtype}, which has no size in memory; use bool or a sized number")]
    NotStorable {
        /// PARAM or BUFFER.
        op: Op,
        /// The dtype of its elements.
        dtype: DType,
    },
    /// A SPECIAL has a dimension that no grid has.
    #[error("dimension {dimension} of a grid, expected 0, 1 or 2")]
    BadDimension {
        /// The dimension.
        dimension: u8,
    },
    /// The operation of a CUSTOM does not exist for its dtype.
    #[error("{custom} does not work on {}", custom.dtype())]
    UnknownCustom {
        /// The operation.
        custom: Custom,
    },
    /// `assume_disjoint` is on a LOAD.
    #[error("load has assume_disjoint; put it on the store or custom that writes")]
    DisjointLoad,
    /// The result of a CAST is no value.
    #[error("cast to void, expected bool or a number")]
    CastToVoid,

    /// A SPECIAL, or a THREAD range, before lowering.
    #[error("{} may occur in lowered graphs only; use a global or local range", match axis {
        Some(_) => "a thread range",
        None => "special",
    })]
    OnlyPlaced {
        /// The number of the axis; `None` if it is a SPECIAL.
        axis: Option<u32>,
    },
    /// An op that lowering removes.
    #[error("{op} in a lowered graph; lower it to index arithmetic")]
    NotLowered {
        /// The op.
        op: Op,
    },
    /// An access that is not known to be in bounds, after lowering.
    #[error("{op} is not marked inbounds in a lowered graph; prove it or gate it")]
    NotInbounds {
        /// LOAD, STORE or CUSTOM.
        op: Op,
    },

    /// A source is not of the sort that the op takes there.
    #[error("source {slot} of {op} is {source_id}, {found}, expected {expected}{}", advice(*expected, *found))]
    WrongOperand {
        /// The op.
        op: Op,
        /// Which source.
        slot: usize,
        /// The source.
        source_id: Id,
        /// What it should be.
        expected: Operand,
        /// What it is.
        found: Operand,
    },
    /// The dtype of the node is not what the op table says.
    #[error("{op} of {found}, expected {expected}")]
    WrongResult {
        /// The op.
        op: Op,
        /// What the op table says.
        expected: DType,
        /// What the node says.
        found: DType,
    },
    /// A source has the wrong dtype.
    #[error("{op} of {of} has {role} of {found}, expected {expected}")]
    WrongDType {
        /// The op.
        op: Op,
        /// The dtype of the element or of the node.
        of: DType,
        /// Which source.
        slot: usize,
        /// What that source is for.
        role: Role,
        /// The dtype it should have.
        expected: DType,
        /// The dtype it has.
        found: DType,
    },
    /// Two operands differ in dtype.
    #[error("{op} of {left} and {right}, expected equal dtypes; cast one")]
    Mismatch {
        /// The op.
        op: Op,
        /// The dtype of the first.
        left: DType,
        /// The dtype of the second.
        right: DType,
    },
    /// The op does not work on this dtype.
    #[error("{op} of operands of {found}, expected {}", operands_of(*op))]
    NoArithmetic {
        /// The op.
        op: Op,
        /// The dtype of its operands.
        found: DType,
    },

    /// A shape has too many axes.
    #[error("{op} has {found} axes, expected at most {MAX_AXES}")]
    TooManyAxes {
        /// PARAM, BUFFER or RESHAPE.
        op: Op,
        /// How many axes.
        found: usize,
    },
    /// The length of an axis is not a constant.
    #[error(
        "the length of axis {axis} is {length}, expected a constant; symbolic lengths are not supported yet"
    )]
    UnknownLength {
        /// The axis, from 0.
        axis: usize,
        /// Its length.
        length: Id,
    },
    /// The length of an axis is below 0.
    #[error("the length of axis {axis} is {length}, expected 0 or more")]
    NegativeLength {
        /// The axis, from 0.
        axis: usize,
        /// Its length.
        length: i128,
    },
    /// A shape has too many elements.
    #[error("{shape:?} of {dtype} is more than {} bytes", i64::MAX)]
    TooLarge {
        /// The lengths.
        shape: Vec<i128>,
        /// The dtype of the elements.
        dtype: DType,
    },
    /// RESHAPE changes the number of elements.
    #[error(
        "reshape of {from:?} ({from_elements} elements) to {to:?} ({to_elements} elements), expected as many"
    )]
    Reshape {
        /// The lengths before.
        from: Vec<i128>,
        /// Their product.
        from_elements: i128,
        /// The lengths after.
        to: Vec<i128>,
        /// Their product.
        to_elements: i128,
    },
    /// INDEX has too few or too many indices.
    #[error("the number of indices into {buffer} is {indices}, expected one per axis, {axes}")]
    Axes {
        /// The buffer or view.
        buffer: Id,
        /// How many axes it has.
        axes: usize,
        /// How many indices there are.
        indices: usize,
    },
    /// The number of points of the grid is not known.
    #[error("the {role} of {} is {bound}, expected a constant; symbolic ones are not supported yet", match axis {
        Some(axis) => format!("axis {} ({})", axis.number, axis.kind),
        None => "special".to_string(),
    }, role = if axis.is_some() { "bound" } else { "extent" })]
    UnknownBound {
        /// The axis; `None` if it is a SPECIAL.
        axis: Option<Axis>,
        /// The bound or extent.
        bound: Id,
    },
    /// A write to a read-only PARAM.
    #[error("{op} to param {name:?} ({param}), which is read-only; make it mutable")]
    ReadOnly {
        /// STORE or CUSTOM.
        op: Op,
        /// The PARAM.
        param: Id,
        /// Its name.
        name: Box<str>,
    },
    /// An atomic on a BUFFER.
    #[error("{custom} on buffer {buffer}, which is private to a work-item; use load and store")]
    PrivateAtomic {
        /// The operation.
        custom: Custom,
        /// The BUFFER.
        buffer: Id,
    },

    /// Two RANGEs have one axis number.
    #[error("axis {number} is also range {other}; give each range its own number")]
    AxisReused {
        /// The number.
        number: u32,
        /// The first RANGE that has it.
        other: Id,
    },
    /// Two PARAMs have one slot.
    #[error("slot {slot} is also param {other}; give each param its own slot")]
    SlotReused {
        /// The slot.
        slot: u32,
        /// The first PARAM that has it.
        other: Id,
    },
    /// No PARAM has a slot, though one has a later one.
    #[error("param has slot {found}, expected {expected}; number them from 0 without a gap")]
    SlotMissing {
        /// The first slot that is missing.
        expected: u32,
        /// The slot of this PARAM, the next that is there.
        found: u32,
    },
    /// Two PARAMs have one name.
    #[error("the name {name:?} is also that of param {other}; give each param its own name")]
    NameReused {
        /// The name.
        name: Box<str>,
        /// The first PARAM that has it.
        other: Id,
    },
    /// Two BUFFERs have one number.
    #[error(
        "buffer {number} is also {other}, with another shape or dtype; give each buffer its own number"
    )]
    BufferReused {
        /// The number.
        number: u32,
        /// The first BUFFER that has it.
        other: Id,
    },
    /// Two different CUSTOMs have one number.
    #[error("custom number {number} is also {other}; give each its own number, since each counts")]
    CustomReused {
        /// The number.
        number: u32,
        /// The first CUSTOM that has it.
        other: Id,
    },
    /// Two SPECIALs of one dimension have different extents.
    #[error("{special} is also {other}, with another extent; a grid has one extent per dimension")]
    Extents {
        /// The dimension.
        special: Special,
        /// The first SPECIAL that has it.
        other: Id,
    },

    /// Too many ranges are open.
    #[error("more than {MAX_OPEN} ranges are open; close some with end")]
    TooDeep,
    /// END lists a range twice.
    #[error("{range} is listed twice; list it once")]
    ClosedTwice {
        /// The range.
        range: RangeName,
    },
    /// END lists a range that its source does not depend on.
    #[error("{range} is not open in {body}; end what depends on it, or use after({id})", id = range.id)]
    NotOpen {
        /// The range.
        range: RangeName,
        /// The source.
        body: Id,
    },
    /// A range is closed outside one whose bound needs it.
    #[error(
        "{range} occurs in the bound of {other}, which is not inside it; close that one first, or list it later"
    )]
    BoundNeeds {
        /// The range that is closed.
        range: RangeName,
        /// The one whose bound needs it.
        other: RangeName,
    },
    /// A GLOBAL or THREAD range lies inside a serial one.
    #[error("{range} is inside {serial}; close global and thread ranges last")]
    GridInside {
        /// The GLOBAL or THREAD range.
        range: RangeName,
        /// The serial one.
        serial: RangeName,
    },
    /// A range is open at the SINK.
    #[error("{range} is still open at the sink; close it with end")]
    OpenAtSink {
        /// The range.
        range: RangeName,
    },

    /// An effect lies under several ENDs of one range.
    #[error("{op} lies under two ends of {range}, {} and {}; close it once, or store once for each", ends[0], ends[1])]
    TwoBinders {
        /// STORE or CUSTOM.
        op: Op,
        /// The range.
        range: RangeName,
        /// Two of them, in ascending order.
        ends: [Id; 2],
    },
    /// A parallel range of a kernel with BUFFERs is closed twice.
    #[error("parallel {range} is closed by {} and {}, but a kernel with a buffer has one set of work-items; close it once, around a group", ends[0], ends[1])]
    SplitWorkItems {
        /// The range.
        range: RangeName,
        /// Two ENDs, in ascending order.
        ends: [Id; 2],
    },
    /// The region of an access lacks a range that encloses one of its ranges.
    #[error("{op} of {storage}{} is inside {inside} but not inside {range}, which encloses that; use the buffer after({id})",
        if *op == Op::Load { ", which the kernel writes," } else { "" }, id = range.id)]
    NotInside {
        /// LOAD, STORE or CUSTOM.
        op: Op,
        /// The PARAM or BUFFER.
        storage: Id,
        /// The range that its region lacks.
        range: RangeName,
        /// The range of its region that is inside that.
        inside: RangeName,
    },
    /// Two conflicting accesses of one element have no order.
    #[error(
        "{op} and {other_op} {other} touch one element, and neither comes after the other; order them with after"
    )]
    Unordered {
        /// The op of this access.
        op: Op,
        /// The first access that it conflicts with.
        other: Id,
        /// The op of that.
        other_op: Op,
    },
}

/// What a node is to its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A value.
    Value,
    /// A RANGE, which is a value as well.
    Range,
    /// A buffer, or a view of one.
    Buffer,
    /// An address.
    Address,
    /// An effect.
    Effect,
    /// A SINK, which nothing takes.
    Sink,
    /// Only expected: what AFTER waits for.
    Dependency,
    /// Only expected: anything but a SINK.
    Any,
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operand::Value => "a value",
            Operand::Range => "a range",
            Operand::Buffer => "a buffer or a view",
            Operand::Address => "an address",
            Operand::Effect => "an effect",
            Operand::Sink => "a sink",
            Operand::Dependency => "an effect, a load or a range",
            Operand::Any => "anything else",
        })
    }
}

/// What a source is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The length of an axis.
    Length,
    /// The bound of a RANGE.
    Bound,
    /// The extent of a SPECIAL.
    Extent,
    /// An index of INDEX.
    Index,
    /// What a CUSTOM points to.
    Pointer,
    /// What is stored, or an argument of a CUSTOM.
    Value,
    /// The gate of an access.
    Gate,
    /// What a LOAD gives when its gate is false.
    Alternative,
    /// The condition of WHERE.
    Condition,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Length => "a length",
            Role::Bound => "a bound",
            Role::Extent => "an extent",
            Role::Index => "an index",
            Role::Pointer => "a pointer",
            Role::Value => "a value",
            Role::Gate => "a gate",
            Role::Alternative => "an alternative",
            Role::Condition => "a condition",
        })
    }
}

/// A RANGE as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeName {
    /// The RANGE.
    pub id: Id,
    /// Its axis.
    pub axis: Axis,
}

impl fmt::Display for RangeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Axis { number, kind } = self.axis;
        write!(f, "range {} (axis {number}, {kind})", self.id)
    }
}
