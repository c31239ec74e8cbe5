//! What the verifier has to say.

use thiserror::Error;

use crate::graph::Id;

/// Everything that is wrong with a graph, in ascending order of nodes; displayed, one a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", lines(.errors))]
pub struct VerifyErrors {
    /// The violations; at least one.
    pub errors: Vec<VerifyError>,
}

/// Each of `errors` on a line of its own.
pub(crate) fn lines<E: ToString>(errors: &[E]) -> String {
    errors.iter().map(E::to_string).collect::<Vec<String>>().join("\n")
}

/// One violation. Its message is written where the rule is checked: a graph that breaks a rule is
/// repaired by its author, who reads, and by no pass, which would need the parts.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{node}: {message}")]
pub struct VerifyError {
    /// Where it is.
    pub node: Id,
    /// Which rule is broken.
    pub kind: VerifyErrorKind,
    /// What was expected and what was found; nodes are named by id, as `%7`.
    pub message: String,
}

/// A rule that a node breaks. The documentation of [`crate::verify`](mod@crate::verify) states the
/// rules.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerifyErrorKind {
    /// The root is not a SINK.
    NotSink,
    /// There are too few or too many sources.
    Arity,
    /// The arg is of the wrong kind.
    WrongArg,
    /// A name is not an identifier.
    BadName,
    /// The value of a CONST is not one of its dtype.
    BadConst,
    /// A VARIABLE has no value.
    EmptyVariable,
    /// The elements of a buffer have no size.
    NotStorable,
    /// A SPECIAL has a dimension that no grid has.
    BadDimension,
    /// The operation of a CUSTOM does not exist for its dtype.
    UnknownCustom,
    /// A declaration breaks a rule.
    BadDeclaration,
    /// An ARGUMENT outside a body.
    StrayArgument,
    /// `assume_disjoint` is on a LOAD.
    DisjointLoad,
    /// The result of a CAST is no value.
    CastToVoid,

    /// A SPECIAL, or a THREAD range, before lowering.
    OnlyPlaced,
    /// An op that lowering removes.
    NotLowered,
    /// An access that is not known to be in bounds, after lowering.
    NotInbounds,

    /// A source is not of the sort that the op takes there.
    WrongOperand,
    /// The dtype of the node is not what the op table says.
    WrongResult,
    /// A source has the wrong dtype.
    WrongDType,
    /// Two operands differ in dtype.
    Mismatch,
    /// The op does not work on this dtype.
    NoArithmetic,

    /// A shape has too many axes.
    TooManyAxes,
    /// The length of an axis is neither a constant nor an expression of VARIABLEs.
    UnknownLength,
    /// The length of an axis is below 0.
    NegativeLength,
    /// A shape has too many elements.
    TooLarge,
    /// RESHAPE changes the number of elements.
    Reshape,
    /// INDEX has too few or too many indices.
    Axes,
    /// The number of points of the grid is not known.
    UnknownBound,
    /// A write to a read-only PARAM.
    ReadOnly,
    /// An atomic on a BUFFER.
    PrivateAtomic,

    /// Two RANGEs have one axis number.
    AxisReused,
    /// Two PARAMs have one slot.
    SlotReused,
    /// No PARAM has a slot, though one has a later one.
    SlotMissing,
    /// Two PARAMs have one name.
    NameReused,
    /// Two BUFFERs have one number.
    BufferReused,
    /// Two different CUSTOMs have one number.
    CustomReused,
    /// Two different declarations have one name.
    DeclarationReused,
    /// Two SPECIALs of one dimension have different extents.
    Extents,

    /// Too many ranges are open.
    TooDeep,
    /// END lists a range twice.
    ClosedTwice,
    /// END lists a range that its source does not depend on.
    NotOpen,
    /// A range is closed outside one whose bound needs it.
    BoundNeeds,
    /// A GLOBAL or THREAD range lies inside a serial one.
    GridInside,
    /// A range is open at the SINK.
    OpenAtSink,

    /// An effect lies under several ENDs of one range.
    TwoBinders,
    /// A parallel range of a kernel with BUFFERs is closed twice.
    SplitWorkItems,
    /// The region of an access lacks a range that encloses one of its ranges.
    NotInside,
    /// Two conflicting accesses of one element have no order.
    Unordered,
}
