//! Which graphs are legal.
//!
//! [`verify`] takes any graph, however malformed, and lists what is wrong with what a sink depends
//! on, by node. It repairs nothing. Passes, backends and the interpreter rely on what it lets
//! through; they may use `unreachable!("the verifier rejects …")` for the rest, and everything
//! that needs a proof (bounds of indices, races between points of parallel ranges, reads of
//! undefined storage) is decided elsewhere.
//!
//! # Terms
//!
//! An operand is a *value*; a *buffer* (PARAM, BUFFER) or a view of one (RESHAPE); an *address*
//! (INDEX); or an *effect* (STORE, CUSTOM, GROUP, END). A RANGE is a value too, and so is a CUSTOM
//! with a result. AFTER is what its first source is, except that after a RANGE it is only a value. Regions, serial and parallel
//! ranges, "outside" and "conflict" are those of docs/ir.md, S1 to S4.
//!
//! # Rules
//!
//! Each rule is a variant of [`VerifyErrorKind`]. They are checked in this order, and a node that
//! breaks one is not examined for what that makes meaningless.
//!
//! 1. Form, of each node.
//!    - `NotSink`: the root is a SINK.
//!    - `Arity`: there are as many sources as the op table says and, for a CUSTOM, as its contract
//!      says and a gate.
//!    - `WrongArg`: the arg is of the kind that the op takes.
//!    - `BadName`: the names of a SINK, a PARAM and a VARIABLE are identifiers.
//!    - `BadConst`: the value of a CONST is one of its dtype.
//!    - `EmptyVariable`: the bounds of a VARIABLE leave a value.
//!    - `NotStorable`: the dtype of a PARAM or BUFFER has a size.
//!    - `BadDimension`: the dimension of a SPECIAL is 0, 1 or 2.
//!    - `UnknownCustom`: the operation of a CUSTOM exists for its dtype.
//!    - `BadDeclaration`: what is declared is so by the rules of docs/ir.md.
//!    - `StrayArgument`: ARGUMENT occurs in the bodies of declarations only.
//!    - `DisjointLoad`: only what writes has `assume_disjoint`.
//!    - `CastToVoid`: CAST gives a value.
//! 2. Phase, of each node.
//!    - `OnlyPlaced`: SPECIAL and THREAD ranges occur in placed and lowered graphs only.
//!    - `NotLowered`: RESHAPE does not occur in lowered graphs.
//!    - `NotInbounds`: every access is marked `inbounds`, but for graphs as built.
//! 3. Operands, of each node.
//!    - `WrongOperand`: each source is of the sort that the op takes there. Arithmetic takes
//!      values; INDEX and RESHAPE a buffer or a view; LOAD, STORE and the pointers of a CUSTOM an
//!      address; GROUP effects; END an effect and RANGEs; SINK an effect. What AFTER waits for is
//!      an effect, a LOAD, a RANGE or the SPECIAL that it became, and nothing takes a SINK.
//!    - `WrongResult`: the dtype of the node is what the op table says.
//!    - `WrongDType`: lengths, bounds, extents and indices are `index`; gates and conditions are
//!      `bool`; what is stored, the alternative of a LOAD and the arguments of a CUSTOM have the
//!      dtype of the element.
//!    - `Mismatch`: ADD, SUB, MUL, MAX, MIN, AND, OR, comparisons and the arms of WHERE have
//!      operands of one dtype.
//!    - `NoArithmetic`: it is one the op works on: numbers; `bool` and sized integers for AND and
//!      OR; numbers and `bool` for CMPEQ and CMPNE.
//! 4. Shapes and memory, of each node.
//!    - `TooManyAxes`: a shape has at most [`MAX_AXES`] axes.
//!    - `UnknownLength`, `NegativeLength`: the length of an axis is 0 or more, and a *size*: a
//!      constant or, but for a BUFFER, made of constants and VARIABLEs by NEG, ADD, SUB, MUL, MAX
//!      and MIN.
//!    - `TooLarge`: the product of the greatest lengths, zeros left out, fits an i64 in bytes.
//!    - `Reshape`: RESHAPE keeps the number of elements: the constant factors of the lengths have
//!      one product, and the other factors are the same nodes.
//!    - `Axes`: INDEX has as many indices as there are axes; several elements in a row have one.
//!    - `UnknownBound`: the bound of a LOCAL range is a constant, that of a GLOBAL one a size; so
//!      are the extents of the SPECIALs that they become.
//!    - `ReadOnly`: nothing writes to a read-only PARAM.
//!    - `PrivateAtomic`: no atomic works on a BUFFER.
//! 5. The graph as a whole.
//!    - `AxisReused`: no two RANGEs have one axis number.
//!    - `SlotReused`, `SlotMissing`, `NameReused`: the slots of the PARAMs are 0, 1, 2, … and their
//!      names differ, also from those of the VARIABLEs. Only in graphs as built is none missing.
//!    - `BufferReused`, `CustomReused`: no two BUFFERs, and no two CUSTOMs that change memory, have
//!      one number.
//!    - `DeclarationReused`: no two different declarations have one name.
//!    - `Extents`: the SPECIALs of one dimension have one extent.
//! 6. Ranges; only if nothing broke `NotSink`, `Arity`, `WrongArg` or `WrongOperand`.
//!    - `TooDeep`: at most [`MAX_OPEN`] ranges are open at a node. Nothing below is checked if not.
//!    - `ClosedTwice`: END lists no range twice.
//!    - `NotOpen`: END lists what is open in its source.
//!    - `BoundNeeds`: it does not list a range that occurs in the bound of one that stays open, or
//!      that it lists outside that range.
//!    - `GridInside`: a GLOBAL or THREAD range is not inside a serial one.
//!    - `OpenAtSink`: no range is open at the SINK.
//! 7. Binders; only if nothing in 6 failed.
//!    - `TwoBinders`: for each of its ranges, a STORE or CUSTOM lies under one END.
//!    - `SplitWorkItems`: in a kernel with a BUFFER, which belongs to a work-item, a parallel range
//!      is closed by one END.
//!    - `NotInside`: the region of an access is closed upward. If one of its ranges is inside a
//!      range r, then r is in the region too: for a STORE or CUSTOM if r is serial, GLOBAL or
//!      THREAD, for a LOAD of storage that the kernel writes if r is serial. Otherwise it would
//!      happen again at each point of r although it has one instance for all of them. Of the
//!      binders of one range, two are looked at; there is one after `unique-ranges`.
//! 8. Order.
//!    - `Unordered`: of two accesses at one address that conflict, one depends on the other. What
//!      is seen without a proof: the addresses are of one storage, seen with one shape, and have
//!      the same nodes as indices, neither access has a gate (or is a LOAD that becomes gated, an
//!      arm of a WHERE), `assume_disjoint`, or a range with a constant bound below 1. An access is
//!      reported with one other at most; when the reported pairs are ordered, all are.
//!
//! # Cost
//!
//! Rules 1 to 7 take time linear in the number of sources, with [`MAX_OPEN`] as the factor. Rule 8
//! walks the nodes between such accesses once for every 64 of them. Nothing here recurses.

mod error;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use indexmap::IndexSet;
use smallvec::SmallVec;

use crate::bounds::Bounds;
use crate::custom::{Custom, CustomArg, Effect};
use crate::declare::{Declaration, DeclarationError};
use crate::dtype::DType;
use crate::graph::{Arg, AxisType, Graph, Id, Node, Sources, Special};
use crate::op::{Arity, Op, ResultType};
use crate::region::{Ranges, Regions, conflict};

use VerifyErrorKind as Kind;
pub(crate) use error::lines;
pub use error::{VerifyError, VerifyErrorKind, VerifyErrors};

/// The largest number of axes of a shape.
pub const MAX_AXES: usize = 64;

/// The largest number of ranges that may be open at one node.
pub const MAX_OPEN: usize = 64;

/// How far a graph is on its way from its author to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// As its author wrote it.
    Built,
    /// Every access is marked in bounds. A parameter that is not needed may be gone.
    Proved,
    /// Where its parallel ranges run is decided.
    Placed,
    /// Ready to be linearized: addresses are flat, and `index` may have become i32 or i64.
    Lowered,
}

/// Checks everything that `sink` depends on against the rules of this module.
///
/// # Errors
///
/// Every violation.
///
/// # Panics
///
/// If `sink` is not a node of `graph`.
pub fn verify(graph: &Graph, sink: Id, phase: Phase) -> Result<(), VerifyErrors> {
    let nodes = &graph.reachable(sink);
    let mut verifier = Verifier::new(graph, sink, phase, nodes);
    verifier.check();
    let mut errors = verifier.errors;
    if errors.is_empty() {
        return Ok(());
    }
    // A stable sort: the rules stay in order within a node.
    errors.sort_by_key(|error| error.node);
    Err(VerifyErrors { errors })
}

/// Checks rules 1 to 4 on everything that `root`, the body of an operation with a `result`, depends
/// on, and that it is such a result or an effect.
pub(crate) fn body(graph: &Graph, root: Id, result: DType) -> Result<(), VerifyError> {
    let nodes = &graph.reachable(root);
    let mut verifier = Verifier::new(graph, root, Phase::Built, nodes);
    verifier.body = true;
    nodes.iter().for_each(|&n| verifier.node(n));
    let found = verifier.fact(root).operand;
    let dtype = graph[root].dtype;
    let wanted = if result == DType::Void { Operand::Effect } else { Operand::Value };
    if let Some(found) = found.filter(|&found| found != wanted || dtype != result) {
        let message = format!("the body is {found} of {dtype}, declared is {wanted} of {result}");
        verifier.error(root, Kind::WrongOperand, message);
    }
    verifier.errors.into_iter().next().map_or(Ok(()), Err)
}

/// What is wrong with the number of sources or the kind of the arg of `node`, if anything.
pub(crate) fn form(node: &Node) -> Result<(), (VerifyErrorKind, String)> {
    let (op, found) = (node.op, node.src.len());
    let check = |expected: Arity| {
        if expected.admits(found) {
            return Ok(());
        }
        let name = match &node.arg {
            Arg::Custom { custom, .. } => format!("{op} `{custom}`"),
            _ => op.to_string(),
        };
        let found = Arity::Fixed(found);
        Err((Kind::Arity, format!("{name} has {found}, expected {expected}")))
    };
    check(op.arity())?;
    let (found, expected) = (arg_name(&node.arg), op.arg());
    if found != expected {
        let message = format!("{op} has {found} as its arg, expected {expected}");
        return Err((Kind::WrongArg, message));
    }
    if let Arg::Custom { custom, .. } = &node.arg {
        let args = custom.contract().args.len();
        // What touches nothing needs no gate.
        let gate = usize::from(custom.effect() != Effect::Pure);
        check(if gate == 0 { Arity::Fixed(args) } else { Arity::Between(args, args + 1) })?;
    }
    Ok(())
}

/// What a node is to its users, and what they may want it to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operand {
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

/// What the users of a node need to know of it. It is empty for a node without a sound form.
#[derive(Clone, Copy, Default)]
struct Fact {
    operand: Option<Operand>,
    /// The PARAM or BUFFER under a buffer, a view or an address.
    storage: Option<Id>,
    /// The PARAM, BUFFER or RESHAPE that gives a buffer, a view or the buffer of an address its
    /// shape.
    view: Option<Id>,
    /// The INDEX under an address.
    index: Option<Id>,
    /// Whether it is a PARAM, BUFFER or RESHAPE with a legal shape.
    shaped: bool,
    /// Whether a launch knows it: an `index` of constants and VARIABLEs.
    is_size: bool,
}

struct Verifier<'g> {
    graph: &'g Graph,
    sink: Id,
    phase: Phase,
    /// What the sink depends on, ascending.
    nodes: &'g [Id],
    facts: Vec<Fact>,
    bounds: Bounds,
    /// Whether this is the body of a declaration.
    body: bool,
    errors: Vec<VerifyError>,
}

impl<'g> Verifier<'g> {
    fn new(graph: &'g Graph, sink: Id, phase: Phase, nodes: &'g [Id]) -> Verifier<'g> {
        let facts = vec![Fact::default(); sink.index() + 1];
        let (bounds, errors) = (Bounds::new(), Vec::new());
        Verifier { graph, sink, phase, nodes, facts, bounds, body: false, errors }
    }

    fn check(&mut self) {
        let op = self.graph[self.sink].op;
        if op != Op::Sink {
            let message = format!("the root is {op}, expected sink; close the kernel with sink");
            self.error(self.sink, Kind::NotSink, message);
        }
        for &n in self.nodes {
            self.node(n);
        }
        self.whole();
        let needed = [Kind::NotSink, Kind::Arity, Kind::WrongArg, Kind::WrongOperand];
        if self.errors.iter().any(|error| needed.contains(&error.kind)) {
            return;
        }
        match Regions::within(self.graph, self.sink, MAX_OPEN) {
            Ok(regions) => {
                if self.ranges(&regions) {
                    self.binders(&regions);
                }
                self.order(&regions);
            }
            Err(deep) => deep.into_iter().for_each(|n| {
                let message = format!("more than {MAX_OPEN} ranges are open; close some with end");
                self.error(n, Kind::TooDeep, message);
            }),
        }
    }

    fn error(&mut self, node: Id, kind: VerifyErrorKind, message: impl Into<String>) {
        self.errors.push(VerifyError { node, kind, message: message.into() });
    }

    fn fact(&self, n: Id) -> Fact {
        self.facts[n.index()]
    }

    fn node(&mut self, n: Id) {
        let node = &self.graph[n];
        if let Err((kind, message)) = form(node) {
            self.error(n, kind, message);
            return;
        }
        self.contents(n, node);
        self.phase(n, node);
        let first = node.src.first().map_or(Fact::default(), |&s| self.fact(s));
        let mut fact = match node.op {
            Op::Param | Op::Buffer => Fact { storage: Some(n), view: Some(n), ..Fact::default() },
            Op::Reshape => Fact { view: Some(n), ..first },
            Op::Index => Fact { index: Some(n), ..first },
            Op::After => first,
            _ => Fact::default(),
        };
        fact.operand = operand(node, first.operand);
        fact.shaped = false;
        fact.is_size = match node.op {
            Op::Const | Op::Variable => true,
            Op::Neg | Op::Add | Op::Sub | Op::Mul | Op::Max | Op::Min | Op::Cast => {
                node.src.iter().all(|&s| self.fact(s).is_size)
            }
            _ => false,
        } && node.dtype.is_index();
        if self.operands(n, node) && self.dtypes(n, node) {
            if matches!(node.op, Op::Param | Op::Buffer | Op::Reshape) {
                fact.shaped = self.shape(n, node).is_some();
            }
            self.memory(n, node);
        }
        self.facts[n.index()] = fact;
    }

    /// What the arg says, and the stated dtypes.
    fn contents(&mut self, n: Id, node: &Node) {
        let (op, dtype) = (node.op, node.dtype);
        let name = match &node.arg {
            Arg::Sink(name) => Some(name),
            Arg::Param(param) => Some(&param.name),
            Arg::Variable(variable) => Some(&variable.name),
            _ => None,
        };
        if let Some(name) = name.filter(|name| !is_identifier(name)) {
            let message = format!(
                "the name {name:?} of the {op} is not an identifier; use letters, digits and _"
            );
            self.error(n, Kind::BadName, message);
        }
        match &node.arg {
            Arg::Const(value) if !value.fits(dtype) => {
                self.error(n, Kind::BadConst, format!("{value} is not a value of {dtype}"));
            }
            Arg::Variable(variable) if variable.lo > variable.hi => {
                let (lo, hi) = (variable.lo, variable.hi);
                let message = format!("a variable from {lo} to {hi} has no value; swap the bounds");
                self.error(n, Kind::EmptyVariable, message);
            }
            Arg::Special(Special::Block(dimension) | Special::Item(dimension))
                if *dimension > 2 =>
            {
                let message = format!("dimension {dimension} of a grid, expected 0, 1 or 2");
                self.error(n, Kind::BadDimension, message);
            }
            Arg::Custom { custom: Custom::Declared(declaration), .. } => {
                if let Err(DeclarationError { node, message }) = declaration.check() {
                    // The names of the body are not those of this graph.
                    let place =
                        node.map_or(String::new(), |node| format!("node {node} of its body: "));
                    let message = message.replace('%', "node ");
                    let name = declaration.name();
                    let message = format!("the declaration of `{name}`: {place}{message}");
                    self.error(n, Kind::BadDeclaration, message);
                }
            }
            Arg::Custom { custom, .. } => {
                if let Err(error) = custom.check() {
                    let message = format!("no {custom} of {}; {}", custom.dtype(), error.message);
                    self.error(n, Kind::UnknownCustom, message);
                }
            }
            Arg::Argument { .. } if !self.body => {
                let message =
                    "argument in a kernel; it stands for one in the body of a declaration";
                self.error(n, Kind::StrayArgument, message);
            }
            _ => {}
        }
        if node.access().is_some_and(|access| access.assume_disjoint) && !node.is_effect() {
            let message =
                format!("{op} has assume_disjoint; put it on the store or custom that writes");
            self.error(n, Kind::DisjointLoad, message);
        }
        if matches!(op, Op::Param | Op::Buffer) && dtype.size().is_none() {
            let message =
                format!("{op} of {dtype}, which has no size in memory; use bool or a sized number");
            self.error(n, Kind::NotStorable, message);
        }
        if op == Op::Cast && dtype == DType::Void {
            let message = "cast to void, expected bool or a number";
            self.error(n, Kind::CastToVoid, message);
        }
    }

    fn phase(&mut self, n: Id, node: &Node) {
        let op = node.op;
        let placed = match node.arg {
            Arg::Special(_) => Some("special"),
            Arg::Range(axis) if axis.kind == AxisType::Thread => Some("a thread range"),
            _ => None,
        };
        if let Some(placed) = placed.filter(|_| self.phase < Phase::Placed) {
            let message =
                format!("{placed} may occur in lowered graphs only; use a global or local range");
            self.error(n, Kind::OnlyPlaced, message);
        }
        let unproved = || node.is_access() && node.access().is_some_and(|access| !access.inbounds);
        if self.phase >= Phase::Proved && unproved() {
            let message =
                format!("{op} is not marked inbounds in a lowered graph; prove it or gate it");
            self.error(n, Kind::NotInbounds, message);
        }
        if self.phase == Phase::Lowered && op == Op::Reshape {
            let message = format!("{op} in a lowered graph; lower it to index arithmetic");
            self.error(n, Kind::NotLowered, message);
        }
    }

    /// What each source is. Sources without a sound form pass.
    fn operands(&mut self, n: Id, node: &Node) -> bool {
        let op = node.op;
        let mut sound = true;
        for (slot, &s) in node.src.iter().enumerate() {
            let (expected, _) = takes(node, slot, node.dtype);
            let Some(found) = self.fact(s).operand else {
                sound = false;
                continue;
            };
            let source = &self.graph[s];
            let admitted = match expected {
                Operand::Value => matches!(found, Operand::Value | Operand::Range),
                Operand::Dependency => {
                    matches!(found, Operand::Effect | Operand::Range)
                        || source.op == Op::Special
                        || source.is_access()
                }
                // One with a result is a value that stands for its effect as well.
                Operand::Effect => found == expected || source.is_effect(),
                Operand::Any => found != Operand::Sink,
                _ => found == expected,
            };
            if !admitted {
                sound = false;
                let advice = advice(expected, found);
                let message =
                    format!("source {slot} of {op} is {s}, {found}, expected {expected}{advice}");
                self.error(n, Kind::WrongOperand, message);
            }
        }
        sound
    }

    /// The dtype of the node and of each source.
    fn dtypes(&mut self, n: Id, node: &Node) -> bool {
        let op = node.op;
        let dtype = |slot: usize| self.graph[node.src[slot]].dtype;
        let before = self.errors.len();
        let lowered = self.phase == Phase::Lowered;
        let stated = match &node.arg {
            Arg::Custom { custom, .. } => custom.contract().result,
            _ if op.result() != ResultType::Sized || lowered && node.dtype.is_index() => node.dtype,
            _ => DType::Index,
        };
        let expected = op.result().dtype(stated, dtype);
        if node.dtype != expected {
            let message = format!("{op} of {}, expected {expected}", node.dtype);
            self.error(n, Kind::WrongResult, message);
        }
        let of = match (op, &node.arg) {
            (Op::Store, _) => dtype(0),
            (_, Arg::Custom { custom, .. }) => custom.dtype(),
            _ => expected,
        };
        for slot in 0..node.src.len() {
            let found = dtype(slot);
            let (_, Some((role, expected))) = takes(node, slot, of) else { continue };
            let expected = match op {
                Op::Range | Op::Special if lowered => node.dtype,
                Op::Index if lowered && found.is_index() => found,
                _ => expected,
            };
            if found != expected {
                let whose = match &node.arg {
                    Arg::Custom { custom: custom @ Custom::Declared(_), .. } => custom.to_string(),
                    _ => format!("{op} of {of}"),
                };
                let message = format!("{whose} has {role} of {found}, expected {expected}");
                self.error(n, Kind::WrongDType, message);
            }
        }
        let pair = match op {
            Op::Neg => Some((0, 0)),
            Op::Where => Some((1, 2)),
            _ if op.is_arithmetic() && node.src.len() == 2 => Some((0, 1)),
            _ => None,
        };
        if let Some((left, right)) = pair.map(|(left, right)| (dtype(left), dtype(right))) {
            if left != right {
                let message =
                    format!("{op} of {left} and {right}, expected equal dtypes; cast one");
                self.error(n, Kind::Mismatch, message);
            } else if let (expected, false) = works_on(op, left) {
                let message = format!("{op} of operands of {left}, expected {expected}");
                self.error(n, Kind::NoArithmetic, message);
            }
        }
        self.errors.len() == before
    }

    /// Checks the shape of a PARAM, BUFFER or RESHAPE; `None` if there are errors.
    fn shape(&mut self, n: Id, node: &Node) -> Option<()> {
        let (op, dtype) = (node.op, node.dtype);
        let lengths = self.graph.shape(n)?;
        if lengths.len() > MAX_AXES {
            let message = format!("{op} has {} axes, expected at most {MAX_AXES}", lengths.len());
            self.error(n, Kind::TooManyAxes, message);
            return None;
        }
        let before = self.errors.len();
        // Without the zeros, so that the strides of an empty buffer fit as well.
        let mut bytes = Some(dtype.size()? as i128);
        for (axis, &id) in lengths.iter().enumerate() {
            let constant = self.graph.as_int(id).is_some();
            let what = format_args!("length of axis {axis}");
            if !self.is_size(n, Kind::UnknownLength, what, id, op == Op::Buffer) {
                continue;
            }
            let length = self.bounds.get(self.graph, id);
            if length.lo < 0 {
                let found =
                    if constant { length.lo.to_string() } else { format!("{id}, {length}") };
                let message = format!("the length of axis {axis} is {found}, expected 0 or more");
                self.error(n, Kind::NegativeLength, message);
            }
            bytes = bytes.and_then(|product| product.checked_mul(length.hi.max(1)));
        }
        if self.errors.len() > before {
            return None;
        }
        if bytes.is_none_or(|bytes| bytes > i128::from(i64::MAX)) {
            let shape = self.lengths(n);
            let message = format!("{shape} of {dtype} is more than {} bytes", i64::MAX);
            self.error(n, Kind::TooLarge, message);
            return None;
        }
        if op == Op::Reshape
            && let Some(view) = self.fact(node.src[0]).view.filter(|&v| self.fact(v).shaped)
            && let (before, elements) = (self.elements(view), self.elements(n))
            && before != elements
        {
            let counted = |(count, others): &(i128, Vec<Id>)| {
                let others: String = others.iter().map(|id| format!(" * {id}")).collect();
                format!("{count}{others} elements")
            };
            let message = format!(
                "reshape of {} ({}) to {} ({}), expected as many",
                self.lengths(view),
                counted(&before),
                self.lengths(n),
                counted(&elements),
            );
            self.error(n, Kind::Reshape, message);
        }
        Some(())
    }

    /// Checks that `id`, the `what` of `n`, is a constant or, if it is not `fixed`, a size.
    fn is_size(&mut self, n: Id, kind: Kind, what: impl fmt::Display, id: Id, fixed: bool) -> bool {
        let sound = self.graph.as_int(id).is_some() || !fixed && self.fact(id).is_size;
        if !sound {
            let or = if fixed { "" } else { " or an expression of variables" };
            self.error(n, kind, format!("the {what} is {id}, expected a constant{or}"));
        }
        sound
    }

    /// The number of elements of a shape without errors: a constant, and the other factors in
    /// ascending order.
    fn elements(&self, n: Id) -> (i128, Vec<Id>) {
        let (mut count, mut others) = (1i128, Vec::new());
        let mut todo = self.graph.shape(n).unwrap_or_default().to_vec();
        while let Some(factor) = todo.pop() {
            match (self.graph.as_int(factor), self.graph[factor].op) {
                (Some(0), _) => return (0, Vec::new()),
                // The product of the lengths fits, so what does not is no such product.
                (Some(value), _) => count = count.saturating_mul(value),
                (None, Op::Mul) => todo.extend_from_slice(&self.graph[factor].src),
                _ => others.push(factor),
            }
            if others.len() > MAX_AXES {
                break;
            }
        }
        others.sort_unstable();
        (count, others)
    }

    /// The lengths of a shape, for messages.
    fn lengths(&self, n: Id) -> String {
        let shape = self.graph.shape(n).unwrap_or_default().iter();
        let length = |&id: &Id| self.graph.as_int(id).map_or(id.to_string(), |n| n.to_string());
        format!("[{}]", shape.map(length).collect::<Vec<String>>().join(", "))
    }

    /// Addresses, bounds of the grid, and what may be written.
    fn memory(&mut self, n: Id, node: &Node) {
        let op = node.op;
        if op == Op::Index
            && let Some(shape) = self.fact(node.src[0]).view.and_then(|view| self.graph.shape(view))
        {
            let axes = if self.phase == Phase::Lowered { 1 } else { shape.len() };
            let (buffer, indices) = (node.src[0], node.src.len() - 1);
            if axes != indices {
                let found = format!("the number of indices into {buffer} is {indices}");
                self.error(n, Kind::Axes, format!("{found}, expected one per axis, {axes}"));
            }
        }
        match node.arg {
            Arg::Range(axis) if matches!(axis.kind, AxisType::Global | AxisType::Local) => {
                let bound = format_args!("bound of axis {} ({})", axis.number, axis.kind);
                let fixed = axis.kind == AxisType::Local;
                self.is_size(n, Kind::UnknownBound, bound, node.src[0], fixed);
            }
            Arg::Special(special) => {
                let fixed = matches!(special, Special::Item(_));
                self.is_size(n, Kind::UnknownBound, "extent of special", node.src[0], fixed);
            }
            _ => {}
        }
        for (address, elements) in node.pointers() {
            let view = self.fact(address).view.and_then(|view| self.graph.shape(view));
            if elements > 1 && view.is_some_and(<[Id]>::is_empty) {
                let message = format!(
                    "{op} points to {elements} elements in a row at {address}, whose view has no \
                     axis; reshape it"
                );
                self.error(n, Kind::Axes, message);
            }
            let written = self.fact(address).storage.filter(|_| node.is_effect());
            let Some(storage) = written else { continue };
            match (&self.graph[storage].arg, &node.arg) {
                (Arg::Param(param), _) if !param.mutable => {
                    let name = &param.name;
                    let message = format!(
                        "{op} to param {name:?} ({storage}), which is read-only; make it mutable"
                    );
                    self.error(n, Kind::ReadOnly, message);
                }
                (Arg::Buffer(_), Arg::Custom { custom, .. })
                    if matches!(custom.effect(), Effect::Atomic(_)) =>
                {
                    let message = format!(
                        "{custom} on buffer {storage}, which is private to a work-item; \
                         use load and store"
                    );
                    self.error(n, Kind::PrivateAtomic, message);
                }
                _ => {}
            }
        }
    }

    /// What is unique in a graph.
    fn whole(&mut self) {
        let (graph, lowered) = (self.graph, self.phase == Phase::Lowered);
        let mut first: HashMap<String, Id> = HashMap::new();
        let mut slots: Vec<(u32, Id)> = Vec::new();
        let mut declared: HashMap<&str, (&Arc<Declaration>, Id)> = HashMap::new();
        for &n in self.nodes {
            if self.fact(n).operand.is_none() {
                continue;
            }
            let mut unique = |kind, what: String, noun, advice| {
                let other = *first.entry(what.clone()).or_insert(n);
                if other != n {
                    self.error(n, kind, format!("{what} is also {noun}{other}{advice}"));
                }
            };
            match &graph[n].arg {
                Arg::Range(axis) => {
                    let axis = format!("axis {}", axis.number);
                    unique(Kind::AxisReused, axis, "range ", "; give each range its own number");
                }
                Arg::Param(param) => {
                    slots.push((param.slot, n));
                    let slot = format!("slot {}", param.slot);
                    unique(Kind::SlotReused, slot, "param ", "; give each param its own slot");
                    let name = format!("the name {:?}", param.name);
                    let noun = "that of param ";
                    unique(Kind::NameReused, name, noun, "; give each param its own name");
                }
                // Lowered, it may be there in two widths.
                Arg::Variable(variable) if !lowered => {
                    let name = format!("the name {:?}", variable.name);
                    unique(Kind::NameReused, name, "that of ", "; give each variable its own name");
                }
                Arg::Buffer(number) => {
                    let advice = ", with another shape or dtype; give each buffer its own number";
                    unique(Kind::BufferReused, format!("buffer {number}"), "", advice);
                }
                Arg::Custom { number, custom, .. } => {
                    if graph[n].is_effect() {
                        let number = format!("custom number {number}");
                        let advice = "; give each its own number, since each counts";
                        unique(Kind::CustomReused, number, "", advice);
                    }
                    if let Some(found) = custom.declaration() {
                        let (other, first) = *declared.entry(found.name()).or_insert((found, n));
                        if other != found {
                            let message = format!(
                                "`{}` is declared otherwise than for {first}; \
                                 give each its own name",
                                found.name()
                            );
                            self.error(n, Kind::DeclarationReused, message);
                        }
                    }
                }
                Arg::Special(special) if Special::ALL.contains(special) => {
                    let advice = ", with another extent; a grid has one extent per dimension";
                    unique(Kind::Extents, special.to_string(), "", advice);
                }
                _ => {}
            }
        }
        slots.sort_unstable();
        let mut expected = 0;
        for (found, n) in slots {
            if found > expected && self.phase == Phase::Built {
                let message = format!(
                    "param has slot {found}, expected {expected}; number them from 0 without a gap"
                );
                self.error(n, Kind::SlotMissing, message);
            }
            expected = found.saturating_add(1);
        }
    }

    /// A RANGE as messages name it.
    fn range(&self, r: Id) -> String {
        let axis = self.graph.axis(r);
        format!("range {r} (axis {}, {})", axis.number, axis.kind)
    }

    /// What each END closes, and what the SINK leaves open.
    fn ranges(&mut self, regions: &Regions) -> bool {
        let before = self.errors.len();
        for &n in self.nodes {
            let node = &self.graph[n];
            if node.op != Op::End {
                continue;
            }
            let (body, listed) = (node.src[0], &node.src[1..]);
            // Ascending, so that the whole list costs little however long it is.
            let mut sorted = Ranges::from_slice(listed);
            sorted.sort_unstable();
            for same in sorted.chunk_by(|a, b| a == b) {
                let r = same[0];
                if same.len() > 1 {
                    let message = format!("{} is listed twice; list it once", self.range(r));
                    self.error(n, Kind::ClosedTwice, message);
                }
                if regions.open(body).binary_search(&r).is_err() {
                    let message = format!(
                        "{} is not open in {body}; end what depends on it, or use after({r})",
                        self.range(r)
                    );
                    self.error(n, Kind::NotOpen, message);
                }
            }
            let mut outside = Ranges::from_slice(regions.open(n));
            for &r in listed {
                if outside.contains(&r) {
                    continue;
                }
                let inner = self.range(r);
                for &s in outside.iter().filter(|&&s| regions.open(s).binary_search(&r).is_ok()) {
                    let message = format!(
                        "{inner} occurs in the bound of {}, which is not inside it; \
                         close that one first, or list it later",
                        self.range(s)
                    );
                    self.error(n, Kind::BoundNeeds, message);
                }
                let kind = |r: Id| self.graph.axis(r).kind;
                let serial = outside.iter().find(|&&s| !kind(s).is_parallel());
                if let (AxisType::Global | AxisType::Thread, Some(&s)) = (kind(r), serial) {
                    let outer = self.range(s);
                    let message =
                        format!("{inner} is inside {outer}; close global and thread ranges last");
                    self.error(n, Kind::GridInside, message);
                }
                outside.push(r);
            }
        }
        for &r in regions.open(self.sink) {
            let message = format!("{} is still open at the sink; close it with end", self.range(r));
            self.error(self.sink, Kind::OpenAtSink, message);
        }
        self.errors.len() == before
    }

    /// Under which ENDs each access lies.
    fn binders(&mut self, regions: &Regions) {
        let graph = self.graph;
        // For each node and each range of its region, one END that closes it and another if there
        // are several.
        type Ends = SmallVec<[Id; 2]>;
        let mut binders = vec![SmallVec::<[Ends; 2]>::new(); self.sink.index() + 1];
        for &user in self.nodes.iter().rev() {
            let node = &graph[user];
            let own = std::mem::take(&mut binders[user.index()]);
            for &s in &node.src {
                let open = regions.open(s);
                let known = &mut binders[s.index()];
                known.resize(open.len(), Ends::new());
                for (r, known) in open.iter().zip(known) {
                    let closes = node.op == Op::End && node.src[1..].contains(r);
                    let outer = regions.open(user).binary_search(r).ok().filter(|_| !closes);
                    let outer = outer.and_then(|place| own.get(place)).into_iter().flatten();
                    for end in outer.copied().chain(closes.then_some(user)) {
                        if known.len() < 2 && !known.contains(&end) {
                            known.push(end);
                        }
                    }
                }
            }
            binders[user.index()] = own;
        }

        if self.nodes.iter().any(|&n| graph[n].op == Op::Buffer) {
            let mut closed: HashMap<Id, Id> = HashMap::new();
            for &end in self.nodes.iter().filter(|&&n| graph[n].op == Op::End) {
                for &r in graph[end].src[1..].iter().filter(|r| regions.parallel().contains(r)) {
                    if let Some(first) = closed.insert(r, end) {
                        let message = format!(
                            "parallel {} is closed by {first} and {end}, but a kernel with a \
                             buffer has one set of work-items; close it once, around a group",
                            self.range(r)
                        );
                        self.error(end, Kind::SplitWorkItems, message);
                    }
                }
            }
        }

        let effects = self.nodes.iter().filter(|&&n| graph[n].is_effect());
        let addresses = effects.flat_map(|&n| graph[n].addresses());
        let written: HashSet<Id> =
            addresses.filter_map(|address| self.fact(address).storage).collect();
        for &n in self.nodes.iter().filter(|&&n| graph[n].is_access()) {
            let node = &graph[n];
            let op = node.op;
            let storages = node.addresses().into_iter().filter_map(|a| self.fact(a).storage);
            let storage = storages.into_iter().find(|storage| written.contains(storage));
            let open = regions.open(n);
            let mut lacking = Ranges::new();
            for (&s, ends) in open.iter().zip(&binders[n.index()]) {
                if node.is_effect()
                    && let [one, other] = ends[..]
                {
                    let message = format!(
                        "{op} lies under two ends of {}, {} and {}; \
                         close it once, or store once for each",
                        self.range(s),
                        one.min(other),
                        one.max(other)
                    );
                    self.error(n, Kind::TwoBinders, message);
                    continue;
                }
                let Some(storage) = storage else { continue };
                for &end in ends {
                    let listed = graph[end].src[1..].iter().copied().take_while(|&r| r != s);
                    for r in regions.open(end).iter().copied().chain(listed) {
                        let matters = match graph.axis(r).kind {
                            AxisType::Loop => true,
                            AxisType::Global | AxisType::Thread => node.is_effect(),
                            // S4: without the LOCAL range it happens once per group.
                            AxisType::Local => false,
                        };
                        if matters && open.binary_search(&r).is_err() && !lacking.contains(&r) {
                            lacking.push(r);
                            let which = match op {
                                Op::Load => ", which the kernel writes,",
                                _ => "",
                            };
                            let message = format!(
                                "{op} of {storage}{which} is inside {} but not inside {}, \
                                 which encloses that; use the buffer after({r})",
                                self.range(s),
                                self.range(r)
                            );
                            self.error(n, Kind::NotInside, message);
                        }
                    }
                }
            }
        }
    }

    /// Conflicting accesses at one address.
    fn order(&mut self, regions: &Regions) {
        // Runs of accesses that do not conflict, ascending, by address. Each access of a run must
        // depend on each of the run before it; the rest follows.
        let mut runs: Vec<Vec<Id>> = Vec::new();
        // Each access of a run, with the number of the run after that.
        let mut checks: Vec<(Id, usize)> = Vec::new();
        let mut last: HashMap<Key, usize> = HashMap::new();
        for n in self.certain(regions) {
            for address in self.graph[n].addresses() {
                let Some(key) = self.key(address) else { continue };
                match last.get(&key).copied() {
                    Some(run) if !conflict(self.graph, n, runs[run][0]) => runs[run].push(n),
                    before => {
                        let before = before.map_or(&[][..], |run| &runs[run]);
                        checks.extend(before.iter().map(|&other| (other, runs.len())));
                        last.insert(key, runs.len());
                        runs.push(vec![n]);
                    }
                }
            }
        }

        checks.sort_unstable();
        let mut reach = vec![0u64; self.sink.index() + 1];
        let mut reported: IndexSet<Id> = IndexSet::new();
        for chunk in checks.chunks_mut(u64::BITS as usize) {
            let first = chunk[0].0;
            let end = chunk.iter().filter_map(|&(_, next)| runs[next].last()).max();
            let end = *end.expect("runs are not empty");
            // By the run that must depend on them: the pairs of one run are bits in a row.
            chunk.sort_unstable_by_key(|&(n, next)| (next, n));
            reach[first.index()..=end.index()].fill(0);
            for (bit, &(n, _)) in chunk.iter().enumerate() {
                reach[n.index()] |= 1 << bit;
            }
            // Which accesses of the chunk each node depends on.
            let from = self.nodes.partition_point(|&n| n < first);
            let to = self.nodes.partition_point(|&n| n <= end);
            for &n in &self.nodes[from..to] {
                let src = self.graph[n].src.iter().filter(|&&s| s >= first);
                reach[n.index()] = src.fold(reach[n.index()], |bits, s| bits | reach[s.index()]);
            }
            let mut bit = 0;
            for group in chunk.chunk_by(|a, b| a.1 == b.1) {
                let wanted = group.iter().zip(bit..).fold(0u64, |bits, (_, bit)| bits | 1 << bit);
                bit += group.len();
                for &n in &runs[group[0].1] {
                    let missing = wanted & !reach[n.index()];
                    if missing != 0 && reported.insert(n) {
                        let other = chunk[missing.trailing_zeros() as usize].0;
                        let (op, other_op) = (self.graph[n].op, self.graph[other].op);
                        let message = format!(
                            "{op} and {other_op} {other} touch one element, and neither comes \
                             after the other; order them with after"
                        );
                        self.error(n, Kind::Unordered, message);
                    }
                }
            }
        }
    }

    /// The accesses that happen for certain, if the bounds that are no constants are large enough.
    fn certain(&self, regions: &Regions) -> Vec<Id> {
        // LOADs that are anything but an arm of a WHERE: the others become gated.
        let mut plain = vec![false; self.sink.index() + 1];
        for &n in self.nodes {
            let node = &self.graph[n];
            for (slot, s) in node.src.iter().enumerate() {
                plain[s.index()] |= node.op != Op::Where || slot == 0;
            }
        }
        let runs = |r: &Id| self.graph.as_int(self.graph[*r].src[0]).is_none_or(|bound| bound > 0);
        let is_certain = |n: &Id| {
            let node = &self.graph[*n];
            let plain = node.is_effect() || node.is_access() && plain[n.index()];
            let waived = node.access().is_some_and(|access| access.assume_disjoint);
            plain && node.gate().is_none() && !waived && regions.open(*n).iter().all(runs)
        };
        self.nodes.iter().copied().filter(is_certain).collect()
    }

    /// The key of an address.
    fn key(&self, address: Id) -> Option<Key> {
        let fact = self.fact(address);
        let mut ids = Sources::from_slice(self.graph.shape(fact.view?)?);
        ids.extend_from_slice(&self.graph[fact.index?].src[1..]);
        Some((fact.storage?, ids))
    }
}

/// What two addresses have in common if they are equal at equal points: the storage, and the
/// lengths of its shape and the indices.
type Key = (Id, Sources);

/// Whether `name` is letters, digits and `_`, the first no digit.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What `node` is to its users; `first` is what its first source is.
fn operand(node: &Node, first: Option<Operand>) -> Option<Operand> {
    Some(match node.op {
        Op::Param | Op::Buffer | Op::Reshape => Operand::Buffer,
        Op::Index => Operand::Address,
        Op::Range => Operand::Range,
        Op::Store | Op::Group | Op::End => Operand::Effect,
        Op::Custom if node.dtype == DType::Void => Operand::Effect,
        Op::Argument if matches!(node.arg, Arg::Argument { pointer: true, .. }) => Operand::Address,
        Op::Sink => Operand::Sink,
        Op::After => match first? {
            Operand::Range => Operand::Value,
            first => first,
        },
        _ => Operand::Value,
    })
}

/// What source `slot` of `node` has to be and, if its dtype is fixed, what it is for and that dtype.
/// `of` is the dtype of the element.
fn takes(node: &Node, slot: usize, of: DType) -> (Operand, Option<(&'static str, DType)>) {
    let value = |role, dtype| (Operand::Value, Some((role, dtype)));
    if let Arg::Custom { custom, .. } = &node.arg {
        return match custom.contract().args.get(slot) {
            Some(CustomArg::Pointer { dtype, .. }) => {
                (Operand::Address, Some(("a pointer", *dtype)))
            }
            Some(CustomArg::Value(dtype)) => value("a value", *dtype),
            None => value("a gate", DType::Bool),
        };
    }
    match (node.op, slot) {
        (Op::Param | Op::Buffer, _) | (Op::Reshape, 1..) => value("a length", DType::Index),
        (Op::Range, _) => value("a bound", DType::Index),
        (Op::Special, _) => value("an extent", DType::Index),
        (Op::Index, 1..) => value("an index", DType::Index),
        (Op::Load, 1) | (Op::Store, 2) => value("a gate", DType::Bool),
        (Op::Load, 2) => value("an alternative", of),
        (Op::Store, 1) => value("a value", of),
        (Op::Where, 0) => value("a condition", DType::Bool),
        (Op::Reshape | Op::Index, 0) => (Operand::Buffer, None),
        (Op::Load | Op::Store, 0) => (Operand::Address, None),
        (Op::After, 0) => (Operand::Any, None),
        (Op::After, _) => (Operand::Dependency, None),
        (Op::End, 0) | (Op::Group | Op::Sink, _) => (Operand::Effect, None),
        (Op::End, _) => (Operand::Range, None),
        _ => (Operand::Value, None),
    }
}

/// The dtypes that an op on operands of one dtype works on, and whether `dtype` is one.
fn works_on(op: Op, dtype: DType) -> (&'static str, bool) {
    let number = dtype.is_number();
    match op {
        Op::And | Op::Or => {
            ("bool or sized integers", dtype == DType::Bool || dtype.int_range().is_some())
        }
        Op::CmpEq | Op::CmpNe | Op::Where => ("numbers or bool", number || dtype == DType::Bool),
        _ => ("numbers", number),
    }
}

/// What an arg is, as the op table says it.
fn arg_name(arg: &Arg) -> &'static str {
    match arg {
        Arg::None => "nothing",
        Arg::Const(_) => "a constant",
        Arg::Param(_) => "a param",
        Arg::Variable(_) => "a variable",
        Arg::Buffer(_) => "the number of a buffer",
        Arg::Range(_) => "an axis",
        Arg::Special(_) => "a hardware index",
        Arg::Access(_) => "an access",
        Arg::Custom { .. } => "an operation",
        Arg::Argument { .. } => "an argument",
        Arg::Sink(_) => "the name of a kernel",
    }
}

/// The way out, where there is an obvious one.
fn advice(expected: Operand, found: Operand) -> &'static str {
    match (expected, found) {
        (Operand::Value, Operand::Address) => "; load it",
        (Operand::Value, Operand::Buffer) => "; index it and load that",
        (Operand::Address, Operand::Buffer) => "; index it",
        (Operand::Effect, Operand::Buffer) => "; use the effect that it comes after",
        _ => "",
    }
}
