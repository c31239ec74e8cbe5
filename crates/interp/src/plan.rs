//! A kernel laid out for evaluation.
//!
//! Terms: a *lane* of a node is a point of the LOCAL ranges in its region, in ascending id order,
//! row-major; a node without them has one lane. The *levels* of an END are its serial and GLOBAL
//! ranges, outermost first. Positions are ids: after `Kernel::finish` they count from 0.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uop::{
    Arg, AtomicOp, AxisType, Const, Custom, CustomArg, DType, Declaration, Effect, Id, Op, Order,
};

use crate::alu::{AluError, alu};
use crate::check::Class;
use crate::error::{Error, ErrorKind, Point};
use crate::functions::Functions;
use crate::normalize::Kernel;
use crate::shadow::Kind;

/// The most local points of a group.
const MAX_LANES: i128 = 1 << 16;
/// The most elements of all BUFFERs, those of every local point counted.
const MAX_CELLS: i128 = 1 << 24;

pub(crate) struct Plan {
    pub(crate) kernel: Kernel,
    pub(crate) order: Order,
    /// Every id, by position.
    pub(crate) ids: Vec<Id>,
    pub(crate) steps: Vec<Step>,
    pub(crate) params: Vec<Param>,
    pub(crate) buffers: Vec<Buffer>,
    /// The length of each LOCAL range, by position; 0 for every other node.
    extents: Vec<usize>,
}

/// How to evaluate a node.
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) dtype: DType,
    pub(crate) sources: Box<[Source]>,
    /// The ranges of its region, LOCAL ones excepted: when one has changed, so has the node.
    pub(crate) open: Box<[usize]>,
    pub(crate) lanes: usize,
    /// The serial ranges of its region whose bound differs between lanes.
    pub(crate) masks: Box<[Source]>,
}

/// A node seen from another.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) node: usize,
    lanes: Lanes,
}

/// Which lane of a source belongs to a lane of its user.
#[derive(Clone)]
enum Lanes {
    Same,
    First,
    Map(Box<[u32]>),
}

impl Source {
    pub(crate) fn lane(&self, lane: usize) -> usize {
        match &self.lanes {
            Lanes::Same => lane,
            Lanes::First => 0,
            Lanes::Map(map) => map[lane] as usize,
        }
    }
}

pub(crate) enum Action {
    /// Evaluating the sources is all there is to do.
    Nothing,
    Const(Const),
    /// Set by its END.
    Range,
    /// Each lane is its own value.
    Local,
    /// The element number of an address; -1 is out of bounds.
    Index(Box<[i128]>),
    /// The value of the first source.
    Move,
    Arithmetic(Op),
    Load(Site),
    Store(Site),
    Atomic(Site, AtomicOp),
    /// A declared operation without a body, and what it points to.
    Call(Arc<Declaration>, Kind, Box<[Site]>),
    Loop(Box<[Level]>),
}

/// One range of an END, or its body.
pub(crate) struct Level {
    /// What to evaluate on entry, the bound or the body last.
    pub(crate) before: Box<[usize]>,
    /// `None`: the body.
    pub(crate) range: Option<usize>,
    /// Whether its points come in a shuffled order.
    pub(crate) parallel: bool,
}

/// What an access touches.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) storage: Storage,
    /// Which source is the address.
    pub(crate) source: usize,
    /// How many elements in a row, of rows of this length.
    pub(crate) elements: i128,
    pub(crate) row: i128,
    /// Which source is the gate.
    pub(crate) gate: Option<usize>,
    pub(crate) inbounds: bool,
    pub(crate) waived: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Storage {
    Param(usize),
    Buffer(usize),
}

pub(crate) struct Param {
    pub(crate) node: Id,
    pub(crate) slot: u32,
    pub(crate) dtype: DType,
    pub(crate) len: i128,
    /// Whether two accesses of it can conflict.
    pub(crate) shadowed: bool,
}

/// Storage for one group.
pub(crate) struct Buffer {
    pub(crate) node: Id,
    /// For one local point.
    pub(crate) len: usize,
    pub(crate) lanes: usize,
}

impl Plan {
    pub(crate) fn new(kernel: Kernel) -> Result<Plan, Error> {
        let ids = kernel.graph.reachable(kernel.sink);
        let order = Order::of(&kernel.graph, kernel.sink);
        let mut plan = Plan {
            extents: vec![0; ids.len()],
            kernel,
            order,
            ids,
            steps: Vec::new(),
            params: Vec::new(),
            buffers: Vec::new(),
        };
        plan.binders()?;
        let lengths = plan.lengths()?;
        plan.storage(&lengths)?;
        plan.steps =
            (plan.ids.iter()).map(|&n| plan.step(n, &lengths)).collect::<Result<_, _>>()?;
        Ok(plan)
    }

    fn error(&self, n: Id, kind: ErrorKind) -> Error {
        kind.at(self.kernel.origin(n))
    }

    fn open(&self, n: Id) -> &[Id] {
        self.order.regions().open(n)
    }

    fn kind(&self, range: Id) -> AxisType {
        self.kernel.graph.axis(range).kind
    }

    fn is_local(&self, range: Id) -> bool {
        self.kind(range) == AxisType::Local
    }

    /// Checks what S1 and S3 ask of regions.
    fn binders(&self) -> Result<(), Error> {
        let graph = &self.kernel.graph;
        if let Some(&range) = self.open(self.kernel.sink).first() {
            let kind = ErrorKind::Unbound { range: self.kernel.origin(range) };
            return Err(self.error(self.kernel.sink, kind));
        }
        // By range, the ranges outside it, LOCAL ones excepted.
        let mut outside: Vec<Vec<Id>> = vec![Vec::new(); self.ids.len()];
        let mut effects = HashMap::new();
        for &n in &self.ids {
            let node = &graph[n];
            if node.op == Op::End {
                let mut outer = self.open(n).to_vec();
                outer.retain(|&r| !self.is_local(r));
                for &r in &node.src[1..] {
                    let serial = outer.iter().find(|&&s| self.kind(s) == AxisType::Loop);
                    if let (AxisType::Global, Some(&serial)) = (self.kind(r), serial) {
                        let (serial, parallel) =
                            (self.kernel.origin(serial), self.kernel.origin(r));
                        return Err(self.error(n, ErrorKind::SerialOutside { serial, parallel }));
                    }
                    outside[r.index()] = outer.clone();
                    // A range that the body does not depend on binds nothing.
                    if !self.is_local(r) && self.open(node.src[0]).contains(&r) {
                        outer.push(r);
                    }
                }
            }
            if node.is_effect() {
                match effects.entry(self.kernel.original(n)) {
                    Entry::Vacant(entry) => _ = entry.insert(n),
                    Entry::Occupied(_) => return Err(self.error(n, ErrorKind::TwoBinders)),
                }
            }
            if node.op == Op::Range
                && self.kind(n) == AxisType::Global
                && self.open(n).iter().any(|&r| self.is_local(r))
            {
                return Err(self.error(n, ErrorKind::Bound));
            }
        }
        let effects = self.ids.iter().filter(|&&n| graph[n].is_effect());
        let written: HashSet<Id> = effects
            .flat_map(|&n| graph[n].addresses())
            .filter_map(|address| graph.storage(address))
            .collect();
        for &n in self.ids.iter().filter(|&&n| graph[n].is_access()) {
            // Regions are closed upward: the loop over `inner` would come by the same instance at
            // each point of `outer`. It does no harm to read again what does not change.
            let effect = graph[n].is_effect();
            let changes = graph[n].addresses().iter().any(|&address| {
                graph.storage(address).is_some_and(|storage| written.contains(&storage))
            });
            let lacks = |r: &&Id| {
                let serial = self.kind(**r) == AxisType::Loop;
                (effect || serial && changes) && !self.open(n).contains(r)
            };
            for &inner in self.open(n) {
                if let Some(&outer) = outside[inner.index()].iter().find(lacks) {
                    let (outer, inner) = (self.kernel.origin(outer), self.kernel.origin(inner));
                    return Err(self.error(n, ErrorKind::Lacks { outer, inner }));
                }
            }
        }
        Ok(())
    }

    /// The values that lengths and LOCAL bounds are made of; fills `extents`.
    fn lengths(&mut self) -> Result<Vec<Option<Const>>, Error> {
        let mut values: Vec<Option<Const>> = vec![None; self.ids.len()];
        let mut lanes: i128 = 1;
        for &n in &self.ids {
            let node = &self.kernel.graph[n];
            if node.op == Op::Const {
                values[n.index()] = node.constant();
            } else if node.op.is_arithmetic() {
                let args: Option<Vec<Const>> = node.src.iter().map(|s| values[s.index()]).collect();
                let value = args.map(|args| alu(node.op, node.dtype, &args)).transpose();
                values[n.index()] = value.map_err(|e| self.error(n, alu_error(node, e)))?;
            } else if node.op == Op::Range && self.is_local(n) {
                let bound = values[node.src[0].index()].and_then(Const::as_int);
                let extent = bound.ok_or_else(|| self.error(n, ErrorKind::NotConstant))?.max(0);
                lanes = lanes.saturating_mul(extent.max(1));
                if lanes > MAX_LANES {
                    return Err(self.error(n, ErrorKind::TooLarge));
                }
                self.extents[n.index()] = extent as usize;
            }
        }
        Ok(values)
    }

    /// Lists PARAMs and BUFFERs, and checks that a view has as many elements as what it views.
    fn storage(&mut self, values: &[Option<Const>]) -> Result<(), Error> {
        let mut cells: i128 = 0;
        for &n in &self.ids {
            let node = &self.kernel.graph[n];
            if !matches!(node.op, Op::Param | Op::Buffer | Op::Reshape) {
                continue;
            }
            let shape = self.shape(n, values);
            let len = elements(&shape).ok_or_else(|| self.error(n, ErrorKind::TooLarge))?;
            match &node.arg {
                Arg::Param(param) => self.params.push(Param {
                    node: n,
                    slot: param.slot,
                    dtype: node.dtype,
                    len,
                    shadowed: self.conflicts(n),
                }),
                Arg::Buffer(_) => {
                    let locals = self.locals_of(self.order.regions().parallel());
                    let lanes = self.lanes(&locals);
                    cells = len.saturating_mul(lanes as i128).saturating_add(cells);
                    if cells > MAX_CELLS {
                        return Err(self.error(n, ErrorKind::TooLarge));
                    }
                    self.buffers.push(Buffer { node: n, len: len as usize, lanes });
                }
                _ => {
                    let got = elements(&self.shape(node.src[0], values)).unwrap_or(0);
                    if len != got || shape.iter().any(|&length| length < 0) {
                        return Err(self.error(n, ErrorKind::Reshape { want: len, got }));
                    }
                }
            }
        }
        Ok(())
    }

    /// The axis lengths of a PARAM, a BUFFER or a view.
    fn shape(&self, n: Id, values: &[Option<Const>]) -> Vec<i128> {
        let shape = self.kernel.graph.shape(n).unwrap_or(&[]);
        shape.iter().map(|s| values[s.index()].and_then(Const::as_int).unwrap_or(0)).collect()
    }

    /// Whether two accesses of the PARAM can conflict.
    fn conflicts(&self, param: Id) -> bool {
        let graph = &self.kernel.graph;
        let mut kinds: Vec<Kind> = Vec::new();
        for &n in &self.ids {
            let node = &graph[n];
            for address in node.addresses() {
                if graph.storage(address) == Some(param) {
                    kinds.push(kind_of(node));
                }
            }
        }
        kinds.iter().any(|a| kinds.iter().any(|b| a.conflicts(*b)))
    }

    fn step(&self, n: Id, values: &[Option<Const>]) -> Result<Step, Error> {
        let graph = &self.kernel.graph;
        let node = &graph[n];
        let locals = self.locals_of(self.open(n));
        let action = match node.op {
            Op::Param | Op::Buffer | Op::Reshape | Op::Group | Op::Sink => Action::Nothing,
            Op::Const => Action::Const(node.constant().expect("a CONST carries its value")),
            Op::Range if self.is_local(n) => Action::Local,
            Op::Range => Action::Range,
            Op::Index => Action::Index(self.shape(node.src[0], values).into()),
            Op::After => match Class::of(graph, n) {
                Class::Value | Class::Fetch | Class::Address => Action::Move,
                Class::Storage | Class::Effect | Class::Sink => Action::Nothing,
            },
            Op::Load => Action::Load(self.site(n, 0, 1, values)),
            Op::Store => Action::Store(self.site(n, 0, 1, values)),
            Op::Custom => match &node.arg {
                Arg::Custom { custom: Custom::Declared(declaration), .. } => {
                    let args = declaration.contract().args.iter().enumerate();
                    let sites = args.filter_map(|(source, arg)| match *arg {
                        CustomArg::Pointer { elements, .. } => {
                            Some(self.site(n, source, elements.into(), values))
                        }
                        CustomArg::Value(_) => None,
                    });
                    Action::Call(Arc::clone(declaration), kind_of(node), sites.collect())
                }
                Arg::Custom { custom: Custom::Atomic { op, .. }, .. } => {
                    Action::Atomic(self.site(n, 0, 1, values), *op)
                }
                _ => unreachable!("check refuses a CUSTOM without an operation"),
            },
            Op::Argument => unreachable!("check refuses an ARGUMENT"),
            Op::End => Action::Loop(self.levels(n)),
            Op::Neg
            | Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Max
            | Op::Min
            | Op::And
            | Op::Or
            | Op::CmpLt
            | Op::CmpNe
            | Op::CmpEq
            | Op::Where
            | Op::Cast => Action::Arithmetic(node.op),
            Op::Special | Op::Variable => {
                return Err(self.error(n, ErrorKind::Lowered { op: node.op }));
            }
        };
        // END takes care of its sources itself.
        let sources = if node.op == Op::End { &[] } else { &node.src[..] };
        let serial = self.open(n).iter().copied().filter(|&r| !self.is_local(r));
        Ok(Step {
            action,
            dtype: node.dtype,
            sources: sources.iter().map(|&s| self.source(&locals, s)).collect(),
            open: serial.clone().map(Id::index).collect(),
            lanes: self.lanes(&locals),
            masks: serial
                .filter(|&r| r != n && !self.locals_of(self.open(r)).is_empty())
                .map(|r| self.source(&locals, r))
                .collect(),
        })
    }

    /// The address that is source `source` of the access `n`.
    fn site(&self, n: Id, source: usize, elements: i128, values: &[Option<Const>]) -> Site {
        let graph = &self.kernel.graph;
        let node = &graph[n];
        let storage = graph.storage(node.src[source]);
        let storage = storage.expect("an address is in some storage");
        let param = self.params.iter().position(|param| param.node == storage);
        let buffer = self.buffers.iter().position(|buffer| buffer.node == storage);
        let access = node.access().unwrap_or_default();
        Site {
            storage: match (param, buffer) {
                (Some(position), _) => Storage::Param(position),
                (None, Some(position)) => Storage::Buffer(position),
                (None, None) => unreachable!("storage is a PARAM or a BUFFER"),
            },
            source,
            elements,
            row: self.shape(node.src[source], values).last().copied().unwrap_or(1),
            // The gate is the last source but for the alt of a LOAD.
            gate: node.gate().map(|_| if node.op == Op::Load { 1 } else { node.src.len() - 1 }),
            inbounds: access.inbounds,
            waived: access.assume_disjoint,
        }
    }

    /// The levels of an END. An access below it that lacks its ranges happens once, before the
    /// loop, even if the loop then makes no turn.
    fn levels(&self, end: Id) -> Box<[Level]> {
        let graph = &self.kernel.graph;
        let body = graph[end].src[0];
        let ranges: Vec<Id> = (graph[end].src[1..].iter().copied())
            .filter(|r| !self.is_local(*r) && self.open(body).contains(r))
            .collect();
        let outer: Vec<Id> = self.open(end).to_vec();
        // The level on entry to which a node can be evaluated, if no range but those outside is
        // open in it.
        let level = |n: Id| -> Option<usize> {
            let open = self.open(n);
            let known = |r: &Id| self.is_local(*r) || outer.contains(r) || ranges.contains(r);
            let position = ranges.iter().rposition(|r| open.contains(r));
            open.iter().all(known).then(|| position.map_or(0, |position| position + 1))
        };
        let mut before: Vec<Vec<Id>> = vec![Vec::new(); ranges.len() + 1];
        let mut seen = vec![false; self.ids.len()];
        let mut stack = vec![body];
        while let Some(n) = stack.pop() {
            let at = level(n);
            if at == Some(0) {
                continue;
            }
            for &s in &graph[n].src {
                if seen[s.index()] {
                    continue;
                }
                seen[s.index()] = true;
                if let Some(d) = level(s)
                    && Some(d) != at
                    && d < ranges.len()
                {
                    before[d].push(s);
                }
                stack.push(s);
            }
        }
        (before.into_iter().enumerate())
            .map(|(d, mut before)| {
                before.sort_unstable();
                let range = ranges.get(d).copied();
                before.push(range.map_or(body, |r| graph[r].src[0]));
                Level {
                    before: before.into_iter().map(Id::index).collect(),
                    range: range.map(Id::index),
                    parallel: range.is_some_and(|r| self.kind(r).is_parallel()),
                }
            })
            .collect()
    }

    /// Checks that there is a function for each declared operation without a body.
    pub(crate) fn functions(&self, functions: &Functions) -> Result<(), Error> {
        for &n in &self.ids {
            if let Action::Call(declaration, ..) = &self.steps[n.index()].action
                && functions.get(declaration.name()).is_none()
            {
                let name = declaration.name().to_string();
                return Err(self.error(n, ErrorKind::NoFunction { name }));
            }
        }
        Ok(())
    }

    /// The LOCAL ranges among `ranges`.
    fn locals_of(&self, ranges: &[Id]) -> Vec<Id> {
        ranges.iter().copied().filter(|&r| self.is_local(r)).collect()
    }

    /// How many points `locals` have together.
    fn lanes(&self, locals: &[Id]) -> usize {
        locals.iter().map(|r| self.extents[r.index()]).product()
    }

    fn source(&self, locals: &[Id], s: Id) -> Source {
        let own = self.locals_of(self.open(s));
        let lanes = if own.is_empty() {
            Lanes::First
        } else if own == locals {
            Lanes::Same
        } else {
            let map = |lane| self.project(lane, locals, &own) as u32;
            Lanes::Map((0..self.lanes(locals)).map(map).collect())
        };
        Source { node: s.index(), lanes }
    }

    /// The lane among the points of `to` that belongs to `lane` among the points of `from`; 0 for
    /// a range that `from` lacks.
    fn project(&self, lane: usize, from: &[Id], to: &[Id]) -> usize {
        to.iter()
            .fold(0, |result, &r| result * self.extents[r.index()] + self.coordinate(lane, from, r))
    }

    /// The value of the LOCAL range `r` in `lane` among the points of `locals`.
    fn coordinate(&self, lane: usize, locals: &[Id], r: Id) -> usize {
        let Some(position) = locals.iter().position(|&l| l == r) else { return 0 };
        lane / self.lanes(&locals[position + 1..]) % self.extents[r.index()]
    }

    /// Puts the values of the open ranges of `n` in `point`, in the order of `Regions::open`.
    pub(crate) fn point(
        &self,
        n: Id,
        lane: usize,
        value: impl Fn(usize) -> i128,
        point: &mut Vec<i128>,
    ) {
        point.clear();
        let open = self.open(n);
        let mut stride = self.steps[n.index()].lanes;
        for &r in open {
            let extent = self.extents[r.index()];
            point.push(if self.is_local(r) {
                stride /= extent;
                (lane / stride % extent) as i128
            } else {
                value(r.index())
            });
        }
    }

    /// `point` of `n` as messages show it.
    pub(crate) fn show(&self, n: Id, point: &[i128]) -> Point {
        let open = self.open(n);
        let value = |r: Id| open.iter().zip(point).find(|(s, _)| **s == r).map_or(0, |(_, v)| *v);
        Point(self.order.nest(n).iter().map(|&r| (self.kernel.origin(r), value(r))).collect())
    }

    /// The axis, the index and the length at which the address of `access` is out of bounds, given
    /// the value of a node in a lane of its own.
    pub(crate) fn outside(
        &self,
        access: Id,
        site: &Site,
        lane: usize,
        value: impl Fn(usize, usize) -> Option<Const>,
    ) -> Option<(usize, i128, i128)> {
        let graph = &self.kernel.graph;
        let mut index = graph[access].src[site.source];
        while graph[index].op == Op::After {
            index = graph[index].src[0];
        }
        let Action::Index(shape) = &self.steps[index.index()].action else { return None };
        let locals = self.locals_of(self.open(access));
        graph[index].src[1..].iter().zip(shape).enumerate().find_map(|(axis, (&i, &length))| {
            let lane = self.project(lane, &locals, &self.locals_of(self.open(i)));
            let index = value(i.index(), lane)?.as_int()?;
            // Elements in a row are those of the last axis.
            let more = if axis + 1 == shape.len() && index >= 0 { site.elements - 1 } else { 0 };
            let index = index.saturating_add(more);
            (index < 0 || index >= length).then_some((axis, index, length))
        })
    }
}

/// How many elements a shape has. One empty axis leaves none, however long the others are.
fn elements(shape: &[i128]) -> Option<i128> {
    if shape.iter().any(|&length| length <= 0) {
        return Some(0);
    }
    shape.iter().try_fold(1, |product: i128, &length| product.checked_mul(length))
}

/// What an access does to memory.
fn kind_of(node: &uop::Node) -> Kind {
    match (node.op, &node.arg) {
        (Op::Load, _) => Kind::Read,
        (Op::Custom, Arg::Custom { custom, .. }) => match custom.effect() {
            Effect::Atomic(op) => Kind::Atomic(op, custom.dtype()),
            Effect::Writes => Kind::Write,
            Effect::Pure | Effect::Reads => Kind::Read,
        },
        _ => Kind::Write,
    }
}

/// What is wrong with an evaluation outside any range.
fn alu_error(node: &uop::Node, error: AluError) -> ErrorKind {
    match error {
        AluError::Overflow => ErrorKind::Overflow { point: Point::default() },
        AluError::Type => ErrorKind::DType { op: node.op, dtype: node.dtype },
    }
}
