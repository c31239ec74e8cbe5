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
//! (INDEX); or an *effect* (STORE, CUSTOM, GROUP, END). A RANGE is a value too. AFTER is what its
//! first source is, except that after a RANGE it is only a value. Regions, serial and parallel
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
//!    - `BadName`: the names of a SINK and of a PARAM are identifiers.
//!    - `BadConst`: the value of a CONST is one of its dtype.
//!    - `NotStorable`: the dtype of a PARAM or BUFFER has a size.
//!    - `BadDimension`: the dimension of a SPECIAL is 0, 1 or 2.
//!    - `UnknownCustom`: the operation of a CUSTOM exists for its dtype.
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
//!    - `UnknownLength`, `NegativeLength`: the length of an axis is a constant, 0 or more.
//!    - `TooLarge`: the product of the lengths, zeros left out, fits an i64 in bytes.
//!    - `Reshape`: RESHAPE keeps the number of elements.
//!    - `Axes`: INDEX has as many indices as there are axes.
//!    - `UnknownBound`: the bound of a GLOBAL or LOCAL range and the extent of a SPECIAL are
//!      constants.
//!    - `ReadOnly`: nothing writes to a read-only PARAM.
//!    - `PrivateAtomic`: no atomic works on a BUFFER.
//! 5. The graph as a whole.
//!    - `AxisReused`: no two RANGEs have one axis number.
//!    - `SlotReused`, `SlotMissing`, `NameReused`: the slots of the PARAMs are 0, 1, 2, … and their
//!      names differ. Only in graphs as built is none missing.
//!    - `BufferReused`, `CustomReused`: no two BUFFERs, and no two CUSTOMs, have one number.
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

use std::collections::HashMap;

use indexmap::IndexSet;
use smallvec::SmallVec;

use crate::custom::{Custom, CustomArg, Effect};
use crate::dtype::DType;
use crate::graph::{Arg, Axis, AxisType, Graph, Id, Node, Special};
use crate::op::{Arity, Op, ResultType};
use crate::region::Regions;

pub use error::{Operand, RangeName, Role, VerifyError, VerifyErrorKind, VerifyErrors};

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
    let mut verifier = Verifier {
        graph,
        sink,
        phase,
        nodes: graph.reachable(sink),
        facts: vec![Fact::default(); sink.index() + 1],
        malformed: false,
        errors: Vec::new(),
    };
    verifier.check();
    let mut errors = verifier.errors;
    if errors.is_empty() {
        return Ok(());
    }
    // A stable sort: the rules stay in order within a node.
    errors.sort_by_key(|error| error.node);
    Err(VerifyErrors { errors })
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
    /// The number of elements of a PARAM, BUFFER or RESHAPE, if its shape is legal.
    elements: Option<i128>,
}

struct Verifier<'g> {
    graph: &'g Graph,
    sink: Id,
    phase: Phase,
    /// What the sink depends on, ascending.
    nodes: Vec<Id>,
    facts: Vec<Fact>,
    /// Whether a node broke a rule without which there are no regions.
    malformed: bool,
    errors: Vec<VerifyError>,
}

impl<'g> Verifier<'g> {
    fn check(&mut self) {
        if self.graph[self.sink].op != Op::Sink {
            self.malformed(self.sink, VerifyErrorKind::NotSink { op: self.graph[self.sink].op });
        }
        for i in 0..self.nodes.len() {
            self.node(self.nodes[i]);
        }
        self.whole();
        if self.malformed || !self.depth() {
            return;
        }
        let regions = Regions::of(self.graph, self.sink);
        if self.ranges(&regions) {
            self.binders(&regions);
        }
        self.order(&regions);
    }

    fn error(&mut self, node: Id, kind: VerifyErrorKind) {
        self.errors.push(VerifyError { node, kind });
    }

    fn malformed(&mut self, node: Id, kind: VerifyErrorKind) {
        self.malformed = true;
        self.error(node, kind);
    }

    fn fact(&self, n: Id) -> Fact {
        self.facts[n.index()]
    }

    fn range(&self, id: Id) -> RangeName {
        let axis = self.graph[id].axis().expect("regions are computed of graphs with sound args");
        RangeName { id, axis }
    }

    /// The value of an integer CONST.
    fn constant(&self, n: Id) -> Option<i128> {
        let node = &self.graph[n];
        (node.op == Op::Const).then(|| node.constant()?.as_int()).flatten()
    }

    fn node(&mut self, n: Id) {
        let node = &self.graph[n];
        if !self.form(n, node) {
            return;
        }
        self.contents(n, node);
        self.phase(n, node);
        let first = node.src.first().map_or(Fact::default(), |&s| self.fact(s));
        let mut fact = Fact { operand: operand(node, first.operand), ..Fact::default() };
        match node.op {
            Op::Param | Op::Buffer => (fact.storage, fact.view) = (Some(n), Some(n)),
            Op::Reshape => (fact.storage, fact.view) = (first.storage, Some(n)),
            Op::Index => fact = Fact { index: Some(n), operand: fact.operand, ..first },
            Op::After => fact = Fact { operand: fact.operand, ..first },
            _ => {}
        }
        fact.elements = None;
        if self.operands(n, node) && self.dtypes(n, node) {
            if matches!(node.op, Op::Param | Op::Buffer | Op::Reshape) {
                fact.elements = self.shape(n, node);
            }
            self.memory(n, node);
        }
        self.facts[n.index()] = fact;
    }

    /// Arity and arg.
    fn form(&mut self, n: Id, node: &Node) -> bool {
        let (op, found) = (node.op, node.src.len());
        if !op.arity().admits(found) {
            self.malformed(n, VerifyErrorKind::Arity { op, expected: op.arity(), found });
            return false;
        }
        if arg_name(&node.arg) != arg_of(op) {
            self.malformed(n, VerifyErrorKind::WrongArg { op, found: arg_name(&node.arg) });
            return false;
        }
        if let Arg::Custom { custom, .. } = &node.arg {
            let args = custom.contract().args.len();
            let expected = Arity::Between(args, args + 1);
            if !expected.admits(found) {
                self.malformed(n, VerifyErrorKind::Arity { op, expected, found });
                return false;
            }
        }
        true
    }

    /// What the arg says, and the stated dtypes.
    fn contents(&mut self, n: Id, node: &Node) {
        let (op, dtype) = (node.op, node.dtype);
        match &node.arg {
            Arg::Sink(name) if !is_identifier(name) => {
                self.error(n, VerifyErrorKind::BadName { op, name: name.clone() });
            }
            Arg::Param(param) if !is_identifier(&param.name) => {
                self.error(n, VerifyErrorKind::BadName { op, name: param.name.clone() });
            }
            Arg::Const(value) if !value.fits(dtype) => {
                self.error(n, VerifyErrorKind::BadConst { value: *value, dtype });
            }
            Arg::Special(Special::Block(dimension) | Special::Item(dimension))
                if *dimension > 2 =>
            {
                self.error(n, VerifyErrorKind::BadDimension { dimension: *dimension });
            }
            Arg::Custom { custom, .. }
                if !Custom::all(custom.dtype()).any(|known| known == *custom) =>
            {
                self.error(n, VerifyErrorKind::UnknownCustom { custom: custom.clone() });
            }
            Arg::Access(access) if op == Op::Load && access.assume_disjoint => {
                self.error(n, VerifyErrorKind::DisjointLoad);
            }
            _ => {}
        }
        if matches!(op, Op::Param | Op::Buffer) && dtype.size().is_none() {
            self.error(n, VerifyErrorKind::NotStorable { op, dtype });
        }
        if op == Op::Cast && dtype == DType::Void {
            self.error(n, VerifyErrorKind::CastToVoid);
        }
    }

    fn phase(&mut self, n: Id, node: &Node) {
        let op = node.op;
        if self.phase < Phase::Placed {
            let thread = node.axis().filter(|axis| axis.kind == AxisType::Thread);
            if op == Op::Special || thread.is_some() {
                let axis = thread.map(|axis| axis.number);
                self.error(n, VerifyErrorKind::OnlyPlaced { axis });
            }
        }
        if self.phase >= Phase::Proved && node.access().is_some_and(|access| !access.inbounds) {
            self.error(n, VerifyErrorKind::NotInbounds { op });
        }
        if self.phase == Phase::Lowered && op == Op::Reshape {
            self.error(n, VerifyErrorKind::NotLowered { op });
        }
    }

    /// What each source is. Sources without a sound form pass.
    fn operands(&mut self, n: Id, node: &Node) -> bool {
        let op = node.op;
        let mut sound = true;
        for (slot, &source_id) in node.src.iter().enumerate() {
            let expected = expected_operand(node, slot);
            let Some(found) = self.fact(source_id).operand else {
                sound = false;
                continue;
            };
            let admitted = match expected {
                Operand::Value => matches!(found, Operand::Value | Operand::Range),
                Operand::Dependency => {
                    matches!(found, Operand::Effect | Operand::Range)
                        || matches!(self.graph[source_id].op, Op::Load | Op::Special)
                }
                Operand::Any => found != Operand::Sink,
                _ => found == expected,
            };
            if !admitted {
                sound = false;
                let kind = VerifyErrorKind::WrongOperand { op, slot, source_id, expected, found };
                self.malformed(n, kind);
            }
        }
        sound
    }

    /// The dtype of the node and of each source.
    fn dtypes(&mut self, n: Id, node: &Node) -> bool {
        let op = node.op;
        let dtype = |slot: usize| self.graph[node.src[slot]].dtype;
        let before = self.errors.len();
        let sized = self.phase == Phase::Lowered && node.dtype.is_index();
        let expected = match (op.result(), &node.arg) {
            (_, Arg::Custom { custom, .. }) => custom.contract().result,
            (ResultType::Stated, _) => node.dtype,
            (ResultType::SameAs(slot), _) => dtype(slot),
            (ResultType::Always(dtype), _) => dtype,
            (ResultType::Sized, _) if sized => node.dtype,
            (ResultType::Sized, _) => DType::Index,
        };
        if node.dtype != expected {
            self.error(n, VerifyErrorKind::WrongResult { op, expected, found: node.dtype });
        }
        let of = match (op, &node.arg) {
            (Op::Store, _) => dtype(0),
            (_, Arg::Custom { custom, .. }) => custom.dtype(),
            _ => expected,
        };
        for slot in 0..node.src.len() {
            let found = dtype(slot);
            let Some((role, mut expected)) = expected_dtype(node, slot, of) else { continue };
            if self.phase == Phase::Lowered {
                expected = match role {
                    Role::Bound | Role::Extent => node.dtype,
                    Role::Index if found.is_index() => found,
                    _ => expected,
                };
            }
            if found != expected {
                self.error(n, VerifyErrorKind::WrongDType { op, of, slot, role, expected, found });
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
                self.error(n, VerifyErrorKind::Mismatch { op, left, right });
            } else if !works_on(op, left) {
                self.error(n, VerifyErrorKind::NoArithmetic { op, found: left });
            }
        }
        self.errors.len() == before
    }

    /// The number of elements of a PARAM, BUFFER or RESHAPE, if its shape is legal.
    fn shape(&mut self, n: Id, node: &Node) -> Option<i128> {
        let (op, dtype) = (node.op, node.dtype);
        let lengths = lengths(node);
        if lengths.len() > MAX_AXES {
            self.error(n, VerifyErrorKind::TooManyAxes { op, found: lengths.len() });
            return None;
        }
        let before = self.errors.len();
        for (axis, &length) in lengths.iter().enumerate() {
            match self.constant(length) {
                None => self.error(n, VerifyErrorKind::UnknownLength { axis, length }),
                Some(length) if length < 0 => {
                    self.error(n, VerifyErrorKind::NegativeLength { axis, length });
                }
                Some(_) => {}
            }
        }
        if self.errors.len() > before {
            return None;
        }
        let shape = self.lengths_of(n);
        // Without the zeros, so that the strides of an empty buffer fit as well.
        let bytes = shape
            .iter()
            .filter(|&&length| length > 0)
            .try_fold(dtype.size()? as i128, |product, &length| product.checked_mul(length));
        if bytes.is_none_or(|bytes| bytes > i128::from(i64::MAX)) {
            self.error(n, VerifyErrorKind::TooLarge { shape, dtype });
            return None;
        }
        let elements = shape.iter().product();
        if op == Op::Reshape
            && let Some(view) = self.fact(node.src[0]).view
            && let Some(from_elements) = self.fact(view).elements
            && from_elements != elements
        {
            let from = self.lengths_of(view);
            let kind =
                VerifyErrorKind::Reshape { from, from_elements, to: shape, to_elements: elements };
            self.error(n, kind);
        }
        Some(elements)
    }

    /// The lengths of a PARAM, BUFFER or RESHAPE, all constants.
    fn lengths_of(&self, n: Id) -> Vec<i128> {
        lengths(&self.graph[n]).iter().filter_map(|&length| self.constant(length)).collect()
    }

    /// Addresses, bounds of the grid, and what may be written.
    fn memory(&mut self, n: Id, node: &Node) {
        let op = node.op;
        match &node.arg {
            Arg::None if op == Op::Index => {
                let buffer = node.src[0];
                let Some(view) = self.fact(buffer).view else { return };
                let flat = self.phase == Phase::Lowered;
                let axes = if flat { 1 } else { lengths(&self.graph[view]).len() };
                let indices = node.src.len() - 1;
                if axes != indices {
                    self.error(n, VerifyErrorKind::Axes { buffer, axes, indices });
                }
            }
            Arg::Range(axis)
                if matches!(axis.kind, AxisType::Global | AxisType::Local)
                    && self.constant(node.src[0]).is_none() =>
            {
                let (axis, bound) = (Some(*axis), node.src[0]);
                self.error(n, VerifyErrorKind::UnknownBound { axis, bound });
            }
            Arg::Special(_) if self.constant(node.src[0]).is_none() => {
                self.error(n, VerifyErrorKind::UnknownBound { axis: None, bound: node.src[0] });
            }
            _ => {}
        }
        if !node.is_effect() {
            return;
        }
        for address in node.addresses() {
            let Some(storage) = self.fact(address).storage else { continue };
            match (&self.graph[storage].arg, &node.arg) {
                (Arg::Param(param), _) if !param.mutable => {
                    let name = param.name.clone();
                    self.error(n, VerifyErrorKind::ReadOnly { op, param: storage, name });
                }
                (Arg::Buffer(_), Arg::Custom { custom, .. }) => match custom.contract().effect {
                    Effect::Atomic(_) => {
                        let custom = custom.clone();
                        self.error(n, VerifyErrorKind::PrivateAtomic { custom, buffer: storage });
                    }
                },
                _ => {}
            }
        }
    }

    /// What is unique in a graph.
    fn whole(&mut self) {
        let graph = self.graph;
        let mut axes: HashMap<u32, Id> = HashMap::new();
        let mut slots: HashMap<u32, Id> = HashMap::new();
        let mut names: HashMap<&str, Id> = HashMap::new();
        let mut buffers: HashMap<u32, Id> = HashMap::new();
        let mut customs: HashMap<u32, Id> = HashMap::new();
        let mut specials: HashMap<Special, Id> = HashMap::new();
        let mut in_order: Vec<(u32, Id)> = Vec::new();
        for i in 0..self.nodes.len() {
            let n = self.nodes[i];
            if self.fact(n).operand.is_none() {
                continue;
            }
            match &graph[n].arg {
                Arg::Range(Axis { number, .. }) => {
                    let other = *axes.entry(*number).or_insert(n);
                    if other != n {
                        self.error(n, VerifyErrorKind::AxisReused { number: *number, other });
                    }
                }
                Arg::Param(param) => {
                    in_order.push((param.slot, n));
                    let other = *slots.entry(param.slot).or_insert(n);
                    if other != n {
                        self.error(n, VerifyErrorKind::SlotReused { slot: param.slot, other });
                    }
                    let other = *names.entry(&param.name).or_insert(n);
                    if other != n {
                        let name = param.name.clone();
                        self.error(n, VerifyErrorKind::NameReused { name, other });
                    }
                }
                Arg::Buffer(number) => {
                    let other = *buffers.entry(*number).or_insert(n);
                    if other != n {
                        self.error(n, VerifyErrorKind::BufferReused { number: *number, other });
                    }
                }
                Arg::Custom { number, .. } => {
                    let other = *customs.entry(*number).or_insert(n);
                    if other != n {
                        self.error(n, VerifyErrorKind::CustomReused { number: *number, other });
                    }
                }
                Arg::Special(special) => {
                    let other = *specials.entry(*special).or_insert(n);
                    if other != n {
                        self.error(n, VerifyErrorKind::Extents { special: *special, other });
                    }
                }
                _ => {}
            }
        }
        in_order.sort_unstable();
        let mut expected = 0;
        for (found, n) in in_order {
            if found > expected && self.phase == Phase::Built {
                self.error(n, VerifyErrorKind::SlotMissing { expected, found });
            }
            expected = found.saturating_add(1);
        }
    }

    /// Whether no more than [`MAX_OPEN`] ranges are open anywhere, so that regions are small. The
    /// regions it counts are those of [`Regions`].
    fn depth(&mut self) -> bool {
        let graph = self.graph;
        let before = self.errors.len();
        let is_parallel = |n: Id| graph[n].axis().is_some_and(|axis| axis.kind.is_parallel());
        let parallel: Vec<Id> = self.nodes.iter().copied().filter(|&n| is_parallel(n)).collect();
        let mut open = vec![SmallVec::<[Id; 4]>::new(); self.sink.index() + 1];
        for i in 0..self.nodes.len() {
            let n = self.nodes[i];
            let node = &graph[n];
            let private = self.fact(n).storage.is_some_and(|b| graph[b].op == Op::Buffer);
            if node.op == Op::Index && private && parallel.len() > MAX_OPEN {
                self.error(n, VerifyErrorKind::TooDeep);
                continue;
            }
            let mut region = SmallVec::<[Id; 4]>::new();
            for s in &node.src {
                region.extend_from_slice(&open[s.index()]);
            }
            if node.op == Op::Range {
                region.push(n);
            }
            if node.op == Op::Index && private {
                region.extend_from_slice(&parallel);
            }
            region.sort_unstable();
            region.dedup();
            if region.len() > MAX_OPEN {
                // Its users start afresh, so that they are not reported too.
                self.error(n, VerifyErrorKind::TooDeep);
                continue;
            }
            if node.op == Op::End {
                region.retain(|r| !node.src[1..].contains(r));
            }
            open[n.index()] = region;
        }
        self.errors.len() == before
    }

    /// What each END closes, and what the SINK leaves open.
    fn ranges(&mut self, regions: &Regions) -> bool {
        let before = self.errors.len();
        for i in 0..self.nodes.len() {
            let n = self.nodes[i];
            let node = &self.graph[n];
            if node.op != Op::End {
                continue;
            }
            let (body, listed) = (node.src[0], &node.src[1..]);
            // Ascending, so that the whole list costs little however long it is.
            let mut sorted: SmallVec<[Id; 4]> = listed.iter().copied().collect();
            sorted.sort_unstable();
            let mut reported = None;
            for pair in sorted.windows(2) {
                if pair[0] == pair[1] && reported != Some(pair[0]) {
                    reported = Some(pair[0]);
                    self.error(n, VerifyErrorKind::ClosedTwice { range: self.range(pair[0]) });
                }
            }
            sorted.dedup();
            for &r in &sorted {
                if regions.open(body).binary_search(&r).is_err() {
                    self.error(n, VerifyErrorKind::NotOpen { range: self.range(r), body });
                }
            }
            let mut outside: SmallVec<[Id; 4]> = regions.open(n).iter().copied().collect();
            for &r in listed {
                if outside.contains(&r) {
                    continue;
                }
                let range = self.range(r);
                for &s in &outside {
                    if regions.open(s).binary_search(&r).is_ok() {
                        let other = self.range(s);
                        self.error(n, VerifyErrorKind::BoundNeeds { range, other });
                    }
                }
                let serial = outside.iter().find(|&&s| !self.range(s).axis.kind.is_parallel());
                if let (AxisType::Global | AxisType::Thread, Some(&s)) = (range.axis.kind, serial) {
                    let serial = self.range(s);
                    self.error(n, VerifyErrorKind::GridInside { range, serial });
                }
                outside.push(r);
            }
        }
        for &r in regions.open(self.sink) {
            self.error(self.sink, VerifyErrorKind::OpenAtSink { range: self.range(r) });
        }
        self.errors.len() == before
    }

    /// Under which ENDs each access lies.
    fn binders(&mut self, regions: &Regions) {
        let graph = self.graph;
        // For each node and each range of its region, one END that closes it and another if there
        // are several.
        let mut binders = vec![SmallVec::<[[Option<Id>; 2]; 2]>::new(); self.sink.index() + 1];
        for &user in self.nodes.iter().rev() {
            let node = &graph[user];
            let own = std::mem::take(&mut binders[user.index()]);
            for &s in &node.src {
                let open = regions.open(s);
                let known = &mut binders[s.index()];
                known.resize(open.len(), [None; 2]);
                for (r, known) in open.iter().zip(known) {
                    let more = if node.op == Op::End && node.src[1..].contains(r) {
                        [Some(user), None]
                    } else {
                        let place = regions.open(user).binary_search(r).ok();
                        place.and_then(|place| own.get(place)).copied().unwrap_or_default()
                    };
                    for end in more.into_iter().flatten() {
                        if known[0].is_none() {
                            known[0] = Some(end);
                        } else if known[0] != Some(end) && known[1].is_none() {
                            known[1] = Some(end);
                        }
                    }
                }
            }
            binders[user.index()] = own;
        }

        if self.nodes.iter().any(|&n| graph[n].op == Op::Buffer) {
            let mut closed: HashMap<Id, Id> = HashMap::new();
            let ends: Vec<Id> =
                self.nodes.iter().copied().filter(|&n| graph[n].op == Op::End).collect();
            for end in ends {
                for &r in graph[end].src[1..].iter().filter(|r| regions.parallel().contains(r)) {
                    if let Some(first) = closed.insert(r, end) {
                        let kind = VerifyErrorKind::SplitWorkItems {
                            range: self.range(r),
                            ends: [first, end],
                        };
                        self.error(end, kind);
                    }
                }
            }
        }

        let mut written = vec![false; self.sink.index() + 1];
        for &n in self.nodes.iter().filter(|&&n| graph[n].is_effect()) {
            for address in graph[n].addresses() {
                if let Some(storage) = self.fact(address).storage {
                    written[storage.index()] = true;
                }
            }
        }
        for i in 0..self.nodes.len() {
            let n = self.nodes[i];
            let node = &graph[n];
            if !node.is_access() {
                continue;
            }
            let op = node.op;
            let storage = node.addresses().first().and_then(|&address| self.fact(address).storage);
            let open = regions.open(n);
            if node.is_effect() {
                for (&r, ends) in open.iter().zip(&binders[n.index()]) {
                    if let [Some(one), Some(other)] = *ends {
                        let ends = [one.min(other), one.max(other)];
                        let range = self.range(r);
                        self.error(n, VerifyErrorKind::TwoBinders { op, range, ends });
                    }
                }
            }
            let Some(storage) = storage.filter(|storage| written[storage.index()]) else {
                continue;
            };
            let mut lacking = SmallVec::<[Id; 4]>::new();
            for (&s, ends) in open.iter().zip(&binders[n.index()]) {
                if node.is_effect() && ends[1].is_some() {
                    continue;
                }
                for &end in ends.iter().flatten() {
                    let listed = graph[end].src[1..].iter().copied().take_while(|&r| r != s);
                    for r in regions.open(end).iter().copied().chain(listed) {
                        let matters = match self.range(r).axis.kind {
                            AxisType::Loop => true,
                            AxisType::Global | AxisType::Thread => node.is_effect(),
                            // S4: without the LOCAL range it happens once per group.
                            AxisType::Local => false,
                        };
                        if matters && open.binary_search(&r).is_err() && !lacking.contains(&r) {
                            lacking.push(r);
                            let (range, inside) = (self.range(r), self.range(s));
                            self.error(
                                n,
                                VerifyErrorKind::NotInside { op, storage, range, inside },
                            );
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
        // The number of the run before each run.
        let mut previous: Vec<Option<usize>> = Vec::new();
        let mut last: HashMap<Key, (Mode, usize)> = HashMap::new();
        for (n, mode) in self.certain(regions) {
            for address in self.graph[n].addresses() {
                let Some(key) = self.key(address) else { continue };
                let before = last.get(&key).copied();
                match before {
                    Some((other, run)) if !mode.conflicts(other) => runs[run].push(n),
                    _ => {
                        last.insert(key, (mode, runs.len()));
                        runs.push(vec![n]);
                        previous.push(before.map(|(_, run)| run));
                    }
                }
            }
        }

        let mut checks: Vec<(Id, usize)> = Vec::new();
        for (next, before) in previous.iter().enumerate() {
            if let Some(before) = *before {
                checks.extend(runs[before].iter().map(|&n| (n, next)));
            }
        }
        checks.sort_unstable();
        let mut reach = vec![0u64; self.sink.index() + 1];
        let mut reported: IndexSet<Id> = IndexSet::new();
        for chunk in checks.chunks_mut(u64::BITS as usize) {
            let first = chunk[0].0;
            let end = chunk.iter().filter_map(|&(_, next)| runs[next].last()).max();
            let end = *end.expect("runs are not empty");
            // Which accesses of the chunk each node depends on.
            let from = self.nodes.partition_point(|&n| n < first);
            let to = self.nodes.partition_point(|&n| n <= end);
            let mut next_access = 0;
            for &n in &self.nodes[from..to] {
                let src = self.graph[n].src.iter().filter(|&&s| s >= first);
                let mut bits = src.fold(0, |bits, s| bits | reach[s.index()]);
                while next_access < chunk.len() && chunk[next_access].0 == n {
                    bits |= 1 << next_access;
                    next_access += 1;
                }
                reach[n.index()] = bits;
            }
            // Ascending in the number of the run, then in the access.
            let mut numbered: Vec<(usize, usize)> =
                chunk.iter().enumerate().map(|(bit, &(_, next))| (next, bit)).collect();
            numbered.sort_unstable();
            for group in numbered.chunk_by(|a, b| a.0 == b.0) {
                let wanted = group.iter().fold(0u64, |bits, &(_, bit)| bits | 1 << bit);
                for &n in &runs[group[0].0] {
                    let missing = wanted & !reach[n.index()];
                    if missing != 0 && reported.insert(n) {
                        let other = chunk[missing.trailing_zeros() as usize].0;
                        let (op, other_op) = (self.graph[n].op, self.graph[other].op);
                        self.error(n, VerifyErrorKind::Unordered { op, other, other_op });
                    }
                }
            }
        }
    }

    /// The accesses that happen for certain, if the bounds that are no constants are large enough.
    fn certain(&self, regions: &Regions) -> Vec<(Id, Mode<'g>)> {
        // LOADs that are anything but an arm of a WHERE: the others become gated.
        let mut plain = vec![false; self.sink.index() + 1];
        for &n in &self.nodes {
            let node = &self.graph[n];
            for (slot, s) in node.src.iter().enumerate() {
                plain[s.index()] |= node.op != Op::Where || slot == 0;
            }
        }
        let runs = |r: &Id| self.constant(self.graph[*r].src[0]).is_none_or(|bound| bound > 0);
        let mut certain = Vec::new();
        for &n in &self.nodes {
            let node = &self.graph[n];
            let mode = match (node.op, &node.arg) {
                (Op::Load, _) if plain[n.index()] => Mode::Read,
                (Op::Store, _) => Mode::Write,
                (Op::Custom, Arg::Custom { custom, .. }) => Mode::Custom(custom),
                _ => continue,
            };
            let waived = node.access().is_some_and(|access| access.assume_disjoint);
            if node.gate().is_none() && !waived && regions.open(n).iter().all(runs) {
                certain.push((n, mode));
            }
        }
        certain
    }

    /// The key of an address.
    fn key(&self, address: Id) -> Option<Key> {
        let fact = self.fact(address);
        let mut ids: SmallVec<[Id; 4]> = lengths(&self.graph[fact.view?]).iter().copied().collect();
        ids.extend_from_slice(&self.graph[fact.index?].src[1..]);
        Some((fact.storage?, ids))
    }
}

/// What two addresses have in common if they are equal at equal points: the storage, and the
/// lengths of its shape and the indices.
type Key = (Id, SmallVec<[Id; 4]>);

/// How an access touches its element.
#[derive(Clone, Copy, PartialEq)]
enum Mode<'g> {
    Read,
    Write,
    Custom(&'g Custom),
}

impl Mode<'_> {
    fn conflicts(self, other: Mode<'_>) -> bool {
        match (self, other) {
            (Mode::Read, Mode::Read) => false,
            (Mode::Custom(a), Mode::Custom(b)) => {
                match (a.contract().effect, b.contract().effect) {
                    (Effect::Atomic(kind), Effect::Atomic(other)) => {
                        kind != other || a.dtype() != b.dtype()
                    }
                }
            }
            _ => true,
        }
    }
}

/// The lengths of a PARAM, BUFFER or RESHAPE.
fn lengths(node: &Node) -> &[Id] {
    match node.op {
        Op::Reshape => &node.src[1..],
        _ => &node.src,
    }
}

fn is_identifier(name: &str) -> bool {
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
        Op::Custom if node.is_effect() => Operand::Effect,
        Op::Sink => Operand::Sink,
        Op::After => match first? {
            Operand::Range => Operand::Value,
            first => first,
        },
        _ => Operand::Value,
    })
}

/// What source `slot` of `node` has to be.
fn expected_operand(node: &Node, slot: usize) -> Operand {
    match (node.op, slot) {
        (Op::Reshape | Op::Index, 0) => Operand::Buffer,
        (Op::Load | Op::Store, 0) => Operand::Address,
        (Op::After, 0) => Operand::Any,
        (Op::After, _) => Operand::Dependency,
        (Op::End, 0) | (Op::Group | Op::Sink, _) => Operand::Effect,
        (Op::End, _) => Operand::Range,
        (Op::Custom, _) => match custom_arg(node, slot) {
            Some(CustomArg::Pointer(_)) => Operand::Address,
            Some(CustomArg::Value(_)) | None => Operand::Value,
        },
        _ => Operand::Value,
    }
}

/// What source `slot` of `node` is for and the dtype it has to have, if that is fixed; `of` is the
/// dtype of the element.
fn expected_dtype(node: &Node, slot: usize, of: DType) -> Option<(Role, DType)> {
    Some(match (node.op, slot) {
        (Op::Param | Op::Buffer, _) => (Role::Length, DType::Index),
        (Op::Reshape, 1..) => (Role::Length, DType::Index),
        (Op::Range, _) => (Role::Bound, DType::Index),
        (Op::Special, _) => (Role::Extent, DType::Index),
        (Op::Index, 1..) => (Role::Index, DType::Index),
        (Op::Load, 1) | (Op::Store, 2) => (Role::Gate, DType::Bool),
        (Op::Load, 2) => (Role::Alternative, of),
        (Op::Store, 1) => (Role::Value, of),
        (Op::Where, 0) => (Role::Condition, DType::Bool),
        (Op::Custom, _) => match custom_arg(node, slot) {
            Some(CustomArg::Pointer(dtype)) => (Role::Pointer, dtype),
            Some(CustomArg::Value(dtype)) => (Role::Value, dtype),
            None => (Role::Gate, DType::Bool),
        },
        _ => return None,
    })
}

/// The argument that source `slot` of a CUSTOM is; `None` for its gate.
fn custom_arg(node: &Node, slot: usize) -> Option<CustomArg> {
    match &node.arg {
        Arg::Custom { custom, .. } => custom.contract().args.get(slot).copied(),
        _ => None,
    }
}

/// Whether an op on operands of one dtype works on that one.
fn works_on(op: Op, dtype: DType) -> bool {
    match op {
        Op::And | Op::Or => dtype == DType::Bool || dtype.int_range().is_some(),
        Op::CmpEq | Op::CmpNe => dtype.is_number() || dtype == DType::Bool,
        Op::Where => dtype != DType::Void,
        _ => dtype.is_number(),
    }
}

/// The dtypes for which [`works_on`] holds.
fn operands_of(op: Op) -> &'static str {
    match op {
        Op::And | Op::Or => "bool or sized integers",
        Op::CmpEq | Op::CmpNe | Op::Where => "numbers or bool",
        _ => "numbers",
    }
}

/// The kind of arg that an op takes, as [`arg_name`] gives it.
fn arg_of(op: Op) -> &'static str {
    match op {
        Op::Param => "a param",
        Op::Buffer => "the number of a buffer",
        Op::Const => "a constant",
        Op::Range => "an axis",
        Op::Special => "a hardware index",
        Op::Load | Op::Store => "an access",
        Op::Custom => "an operation",
        Op::Sink => "the name of a kernel",
        Op::Reshape | Op::Index | Op::After | Op::Group | Op::End => "nothing",
        Op::Neg | Op::Add | Op::Sub | Op::Mul | Op::Max | Op::Min | Op::And | Op::Or => "nothing",
        Op::CmpLt | Op::CmpNe | Op::CmpEq | Op::Where | Op::Cast => "nothing",
    }
}

fn arg_name(arg: &Arg) -> &'static str {
    match arg {
        Arg::None => "nothing",
        Arg::Const(_) => "a constant",
        Arg::Param(_) => "a param",
        Arg::Buffer(_) => "the number of a buffer",
        Arg::Range(_) => "an axis",
        Arg::Special(_) => "a hardware index",
        Arg::Access(_) => "an access",
        Arg::Custom { .. } => "an operation",
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
