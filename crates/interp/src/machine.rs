//! Evaluation (docs/ir.md, S6): one slot per node with a value for each lane, a stamp per range,
//! and an explicit stack.

use uop::{Const, CustomArg, DType, Declaration, Instance, Op};

use crate::alu::{AluError, alu, atomic};
use crate::data::Data;
use crate::error::{Error, ErrorKind};
use crate::functions::Argument;
use crate::plan::{Action, Level, Plan, Site, Step, Storage};
use crate::shadow::{Cell, Judge, Kind};
use crate::shuffle::{Random, Walk};
use crate::{Options, OutOfBounds};

pub(crate) struct Machine<'a> {
    plan: &'a Plan,
    options: &'a Options<'a>,
    params: &'a mut [Data],
    /// By node, the value in each lane; `None` where a serial range is at or above its bound.
    slots: Vec<Box<[Option<Const>]>>,
    /// By node, the time of its value; 0 is never.
    when: Vec<u64>,
    /// By node, for a range the time and the value since then.
    stamp: Vec<u64>,
    at: Vec<i128>,
    /// Counts the changes of ranges.
    clock: u64,
    /// The time at which this group began: the last change of a GLOBAL range.
    group: u64,
    /// The open levels, innermost last.
    walks: Vec<Walk>,
    /// By PARAM, empty if its accesses cannot conflict.
    shadows: Vec<Vec<Cell>>,
    buffers: Vec<Work>,
    random: Random,
    steps: u64,
    /// The point of the access at hand.
    point: Vec<i128>,
}

/// A BUFFER in the group at hand, all local points one after the other.
struct Work {
    when: u64,
    values: Vec<Option<Const>>,
    cells: Vec<Cell>,
}

enum Frame {
    /// Evaluate the sources of a node from `next` on, then the node.
    Node { n: usize, next: usize },
    /// Evaluate what comes before a level of an END from `next` on, then begin it.
    Enter { end: usize, level: usize, next: usize },
    /// Go to the next point of a level.
    Turn { end: usize, level: usize },
}

impl<'a> Machine<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        params: &'a mut [Data],
        options: &'a Options<'a>,
    ) -> Result<Machine<'a>, Error> {
        let mut shadows = Vec::new();
        for param in &plan.params {
            let fail = |kind: ErrorKind| Err(kind.at(plan.kernel.origin(param.node)));
            let slot = param.slot;
            let Some(data) = params.get(slot as usize) else {
                return fail(ErrorKind::MissingParam { slot, got: params.len() });
            };
            if data.dtype() != param.dtype {
                let (want, got) = (param.dtype, data.dtype());
                return fail(ErrorKind::ParamDType { slot, want, got });
            }
            if data.len() as i128 != param.len {
                let (want, got) = (param.len, data.len());
                return fail(ErrorKind::ParamLength { slot, want, got });
            }
            let mut cells = Vec::new();
            let len = if param.shadowed { data.len() } else { 0 };
            if cells.try_reserve_exact(len).is_err() {
                return fail(ErrorKind::TooLarge);
            }
            cells.resize(len, Cell::default());
            shadows.push(cells);
        }
        let work =
            |len| Work { when: 0, values: vec![None; len], cells: vec![Cell::default(); len] };
        let nodes = plan.ids.len();
        Ok(Machine {
            slots: plan.steps.iter().map(|step| vec![None; step.lanes].into()).collect(),
            when: vec![0; nodes],
            stamp: vec![0; nodes],
            at: vec![0; nodes],
            clock: 1,
            group: 1,
            walks: Vec::new(),
            shadows,
            buffers: plan.buffers.iter().map(|buffer| work(buffer.len * buffer.lanes)).collect(),
            random: Random(options.seed),
            steps: 0,
            point: Vec::new(),
            plan,
            options,
            params,
        })
    }

    /// Evaluates the SINK.
    pub(crate) fn run(mut self) -> Result<(), Error> {
        let mut stack = vec![Frame::Node { n: self.plan.kernel.sink.index(), next: 0 }];
        while let Some(frame) = stack.pop() {
            match frame {
                Frame::Node { n, next } => {
                    let step = &self.plan.steps[n];
                    let sources = &step.sources[next..];
                    if let Action::Loop(_) = step.action {
                        stack.push(Frame::Enter { end: n, level: 0, next: 0 });
                    } else if let Some(skip) = sources.iter().position(|s| !self.is_valid(s.node)) {
                        stack.push(Frame::Node { n, next: next + skip + 1 });
                        stack.push(Frame::Node { n: sources[skip].node, next: 0 });
                    } else {
                        self.compute(n, step)?;
                    }
                }
                Frame::Enter { end, level, next } => {
                    let Level { before, range, parallel } = &self.levels(end)[level];
                    if let Some(skip) = before[next..].iter().position(|&n| !self.is_valid(n)) {
                        stack.push(Frame::Enter { end, level, next: next + skip + 1 });
                        stack.push(Frame::Node { n: before[next + skip], next: 0 });
                    } else if let Some(range) = *range {
                        let bound = &self.slots[self.plan.steps[range].sources[0].node];
                        // The lanes whose bound is smaller wait for the last one.
                        let turns = bound.iter().flatten().filter_map(|b| b.as_int()).max();
                        let turns = turns.unwrap_or(0);
                        self.walks.push(if *parallel {
                            Walk::shuffled(turns, &mut self.random)
                        } else {
                            Walk::ascending(turns)
                        });
                        stack.push(Frame::Turn { end, level });
                    } else {
                        self.leave(&mut stack, end, level);
                    }
                }
                Frame::Turn { end, level } => {
                    self.count(end, 1)?;
                    let Level { range, parallel, .. } = self.levels(end)[level];
                    let range = range.expect("the body has no turns");
                    self.clock += 1;
                    self.stamp[range] = self.clock;
                    if parallel {
                        self.group = self.clock;
                    }
                    match self.walks.last_mut().and_then(Walk::next) {
                        Some(value) => {
                            self.set_range(range, value);
                            stack.push(Frame::Enter { end, level: level + 1, next: 0 });
                        }
                        None => {
                            self.walks.pop();
                            self.when[range] = 0;
                            self.leave(&mut stack, end, level);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn levels(&self, end: usize) -> &'a [Level] {
        match &self.plan.steps[end].action {
            Action::Loop(levels) => levels,
            _ => &[],
        }
    }

    /// Goes on after the last turn of `level`, or after the body.
    fn leave(&mut self, stack: &mut Vec<Frame>, end: usize, level: usize) {
        match level.checked_sub(1) {
            Some(level) => stack.push(Frame::Turn { end, level }),
            None => self.when[end] = self.clock,
        }
    }

    fn set_range(&mut self, range: usize, value: i128) {
        let bound = &self.plan.steps[range].sources[0];
        for lane in 0..self.slots[range].len() {
            let bound = self.slots[bound.node][bound.lane(lane)].and_then(Const::as_int);
            let below = bound.is_some_and(|bound| value < bound);
            self.slots[range][lane] = below.then_some(Const::Int(value));
        }
        self.at[range] = value;
        self.when[range] = self.clock;
    }

    /// Whether no range in the region of `n` has changed since it was evaluated.
    fn is_valid(&self, n: usize) -> bool {
        let when = self.when[n];
        when != 0 && self.plan.steps[n].open.iter().all(|&r| self.stamp[r] <= when)
    }

    fn count(&mut self, n: usize, steps: usize) -> Result<(), Error> {
        self.steps = self.steps.saturating_add(steps as u64);
        match self.options.steps {
            Some(limit) if self.steps > limit => Err(self.error(n, ErrorKind::Steps { limit })),
            _ => Ok(()),
        }
    }

    /// Evaluates `n`, whose sources have their values, in all lanes.
    fn compute(&mut self, n: usize, step: &'a Step) -> Result<(), Error> {
        self.count(n, step.lanes)?;
        match &step.action {
            Action::Nothing => {}
            Action::Store(site) => {
                self.effect(n, step, site, |m, element, lane| {
                    let value = m.operand(step, 1, lane);
                    m.access(n, site, element, lane, Kind::Write)?;
                    m.write(site, element, lane, value);
                    Ok(())
                })?;
            }
            Action::Atomic(site, op) => {
                let op = *op;
                if step.dtype != DType::Void {
                    for lane in 0..step.lanes {
                        let active = self.is_active(step, lane);
                        self.slots[n][lane] = active.then(|| Const::zero(step.dtype));
                    }
                }
                self.effect(n, step, site, |m, element, lane| {
                    let values = [1, op.values()].map(|source| m.operand(step, source, lane));
                    let dtype = m.dtype(site);
                    m.access(n, site, element, lane, Kind::Atomic(op, dtype))?;
                    let old = m.read(n, site, element, lane)?;
                    let new = atomic(op, dtype, old, &values[..op.values()]);
                    let new =
                        new.map_err(|_| m.error(n, ErrorKind::DType { op: Op::Custom, dtype }))?;
                    m.write(site, element, lane, new);
                    m.slots[n][lane] = Some(old);
                    Ok(())
                })?;
            }
            Action::Call(declaration, kind, sites) => {
                for lane in Walk::shuffled(step.lanes as i128, &mut self.random) {
                    let lane = lane as usize;
                    let active = self.is_active(step, lane);
                    let call = (&**declaration, *kind, &**sites);
                    let value = if active { Some(self.call(n, step, call, lane)?) } else { None };
                    self.slots[n][lane] = value;
                }
            }
            _ => self.lanes(n, step)?,
        }
        self.when[n] = self.clock;
        Ok(())
    }

    fn lanes(&mut self, n: usize, step: &Step) -> Result<(), Error> {
        for lane in 0..step.lanes {
            let active = self.is_active(step, lane);
            let value = if active { Some(self.value(n, step, lane)?) } else { None };
            self.slots[n][lane] = value;
        }
        Ok(())
    }

    /// Whether every serial range of the region of a node is below its bound in `lane`.
    fn is_active(&self, step: &Step, lane: usize) -> bool {
        step.masks.iter().all(|r| self.slots[r.node][r.lane(lane)].is_some())
    }

    fn operand(&self, step: &Step, source: usize, lane: usize) -> Const {
        let source = &step.sources[source];
        let value = self.slots[source.node][source.lane(lane)];
        // Its region is a part of that of its user, and so are its masks.
        value.expect("a source is evaluated wherever its user is")
    }

    fn value(&mut self, n: usize, step: &Step, lane: usize) -> Result<Const, Error> {
        match &step.action {
            Action::Const(value) => Ok(*value),
            Action::Range => {
                let range = self.plan.kernel.origin(self.plan.ids[n]);
                Err(self.error(n, ErrorKind::Unbound { range }))
            }
            Action::Local => Ok(Const::Int(lane as i128)),
            Action::Move => Ok(self.operand(step, 0, lane)),
            Action::Arithmetic(op) => match step.sources.len() {
                1 => self.alu(n, *op, step.dtype, &[self.operand(step, 0, lane)], lane),
                2 => {
                    let args = [0, 1].map(|i| self.operand(step, i, lane));
                    self.alu(n, *op, step.dtype, &args, lane)
                }
                _ => {
                    let args = [0, 1, 2].map(|i| self.operand(step, i, lane));
                    self.alu(n, *op, step.dtype, &args, lane)
                }
            },
            Action::Index(shape) => {
                let mut element: i128 = 0;
                for (axis, &length) in shape.iter().enumerate() {
                    match self.operand(step, axis + 1, lane) {
                        // Wraps only where another axis is empty, and so out of bounds.
                        Const::Int(index) if 0 <= index && index < length => {
                            element = element.wrapping_mul(length).wrapping_add(index);
                        }
                        _ => return Ok(Const::Int(-1)),
                    }
                }
                Ok(Const::Int(element))
            }
            Action::Load(site) => match self.element(n, step, site, lane)? {
                Some(element) => {
                    self.access(n, site, element, lane, Kind::Read)?;
                    self.read(n, site, element, lane)
                }
                None if step.sources.len() > 2 => Ok(self.operand(step, 2, lane)),
                None => Ok(Const::zero(step.dtype)),
            },
            Action::Nothing
            | Action::Store(_)
            | Action::Atomic(..)
            | Action::Call(..)
            | Action::Loop(_) => unreachable!("effects and storage have no value"),
        }
    }

    /// Calls the function of a declared operation. Without a result, or if it does not happen, its
    /// value is 0.
    fn call(
        &mut self,
        n: usize,
        step: &Step,
        (declaration, kind, sites): (&Declaration, Kind, &[Site]),
        lane: usize,
    ) -> Result<Const, Error> {
        let (contract, name) = (declaration.contract(), declaration.name());
        let nothing = Const::int(contract.result, 0).unwrap_or(Const::Bool(false));
        let mut first = Vec::new();
        for site in sites {
            match self.element(n, step, site, lane)? {
                Some(element) => first.push(element),
                None => return Ok(nothing),
            }
        }
        let mut args = Vec::new();
        let mut pointed = sites.iter().zip(&first);
        for (i, arg) in contract.args.iter().enumerate() {
            args.push(match arg {
                CustomArg::Value(_) => Argument::Value(self.operand(step, i, lane)),
                CustomArg::Pointer { dtype, .. } => {
                    let (site, &first) = pointed.next().expect("there is a site for each pointer");
                    let mut elements = Vec::new();
                    for element in first..first + site.elements as usize {
                        self.access(n, site, element, lane, kind)?;
                        let read = self.read(n, site, element, lane);
                        // What it writes it need not read.
                        let written = kind == Kind::Write;
                        elements.push(if written {
                            read.unwrap_or(Const::zero(*dtype))
                        } else {
                            read?
                        });
                    }
                    Argument::Elements(elements)
                }
            });
        }
        let lengths = args.clone();
        let function = self.options.functions.get(name).expect("the functions were checked");
        let result = function(&mut args);
        let mut right = match result {
            Some(value) => contract.result != DType::Void && value.fits(contract.result),
            None => contract.result == DType::Void,
        };
        for (i, (arg, before)) in args.iter().zip(&lengths).enumerate() {
            right &= match (arg, before) {
                (Argument::Elements(new), Argument::Elements(old)) => {
                    let dtype = contract.args[i].dtype();
                    new.len() == old.len() && new.iter().all(|value| value.fits(dtype))
                }
                (Argument::Value(_), Argument::Value(_)) => true,
                _ => false,
            };
        }
        if !right {
            return Err(self.error(n, ErrorKind::Function { name: name.to_string() }));
        }
        let elements = args.iter().filter_map(|arg| match arg {
            Argument::Elements(elements) => Some(elements),
            Argument::Value(_) => None,
        });
        for ((site, &first), elements) in sites.iter().zip(&first).zip(elements) {
            for (k, &value) in elements.iter().enumerate().filter(|_| contract.effect.changes()) {
                self.write(site, first + k, lane, value);
            }
        }
        Ok(result.unwrap_or(nothing))
    }

    fn alu(
        &self,
        n: usize,
        op: Op,
        dtype: DType,
        args: &[Const],
        lane: usize,
    ) -> Result<Const, Error> {
        alu(op, dtype, args).map_err(|error| {
            let kind = match error {
                AluError::Overflow => {
                    let mut point = Vec::new();
                    self.plan.point(self.plan.ids[n], lane, |r| self.at[r], &mut point);
                    ErrorKind::Overflow { point: self.plan.show(self.plan.ids[n], &point) }
                }
                AluError::Type => ErrorKind::DType { op, dtype },
            };
            self.error(n, kind)
        })
    }

    /// Does `f` with the element of each lane in which the access happens, in a shuffled order.
    fn effect(
        &mut self,
        n: usize,
        step: &Step,
        site: &Site,
        f: impl Fn(&mut Self, usize, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for lane in Walk::shuffled(step.lanes as i128, &mut self.random) {
            let lane = lane as usize;
            if self.is_active(step, lane)
                && let Some(element) = self.element(n, step, site, lane)?
            {
                f(self, element, lane)?;
            }
        }
        Ok(())
    }

    /// The element that an access touches; `None` if it does not happen.
    fn element(
        &self,
        n: usize,
        step: &Step,
        site: &Site,
        lane: usize,
    ) -> Result<Option<usize>, Error> {
        if let Some(gate) = site.gate
            && self.operand(step, gate, lane) == Const::Bool(false)
        {
            return Ok(None);
        }
        match self.operand(step, site.source, lane) {
            Const::Int(element)
                if element >= 0
                    && (site.elements == 1 || element % site.row + site.elements <= site.row) =>
            {
                Ok(Some(element as usize))
            }
            _ if self.options.out_of_bounds == OutOfBounds::Guard && !site.inbounds => Ok(None),
            _ => {
                let id = self.plan.ids[n];
                let value = |n: usize, lane: usize| self.slots[n][lane];
                let (axis, index, length) =
                    self.plan.outside(id, site, lane, value).unwrap_or_default();
                let mut point = Vec::new();
                self.plan.point(id, lane, |r| self.at[r], &mut point);
                let point = self.plan.show(id, &point);
                Err(self.error(n, ErrorKind::OutOfBounds { axis, index, length, point }))
            }
        }
    }

    /// Checks an access against the earlier ones of its element.
    fn access(
        &mut self,
        n: usize,
        site: &Site,
        element: usize,
        lane: usize,
        kind: Kind,
    ) -> Result<(), Error> {
        let plan = self.plan;
        let cell = match site.storage {
            Storage::Param(param) if plan.params[param].shadowed => {
                &mut self.shadows[param][element]
            }
            Storage::Param(_) => return Ok(()),
            Storage::Buffer(buffer) => {
                let work = &mut self.buffers[buffer];
                // Undefined again in each group.
                if work.when < self.group {
                    work.when = self.clock;
                    work.values.fill(None);
                    work.cells.fill(Cell::default());
                }
                &mut work.cells[lane * plan.buffers[buffer].len + element]
            }
        };
        let node = plan.ids[n];
        plan.point(node, lane, |r| self.at[r], &mut self.point);
        let waived = |other: uop::Id| {
            let other = plan.kernel.graph[other].access();
            site.waived || other.is_some_and(|access| access.assume_disjoint)
        };
        let judge = Judge { graph: &plan.kernel.graph, order: &plan.order };
        let instance = Instance { node, point: &self.point };
        let trust = self.options.trust_waivers;
        let Err(earlier) = judge.record(cell, kind, instance, |other| trust && waived(other))
        else {
            return Ok(());
        };
        let storage = match site.storage {
            Storage::Param(param) => plan.params[param].node,
            Storage::Buffer(buffer) => plan.buffers[buffer].node,
        };
        let buffer = plan.kernel.origin(storage);
        let point = plan.show(node, &self.point);
        let other = plan.kernel.origin(earlier.node);
        let other_point = plan.show(earlier.node, &earlier.point);
        let kind = if waived(earlier.node) {
            ErrorKind::NotDisjoint { buffer, element, point, other, other_point }
        } else {
            ErrorKind::Race { buffer, element, point, other, other_point }
        };
        Err(self.error(n, kind))
    }

    fn dtype(&self, site: &Site) -> DType {
        let node = match site.storage {
            Storage::Param(param) => self.plan.params[param].node,
            Storage::Buffer(buffer) => self.plan.buffers[buffer].node,
        };
        self.plan.kernel.graph[node].dtype
    }

    fn read(&self, n: usize, site: &Site, element: usize, lane: usize) -> Result<Const, Error> {
        match site.storage {
            Storage::Param(param) => {
                Ok(self.params[self.plan.params[param].slot as usize].get(element))
            }
            Storage::Buffer(buffer) => {
                let len = self.plan.buffers[buffer].len;
                self.buffers[buffer].values[lane * len + element].ok_or_else(|| {
                    let buffer = self.plan.kernel.origin(self.plan.buffers[buffer].node);
                    let point = self.plan.show(self.plan.ids[n], &self.point);
                    self.error(n, ErrorKind::Undefined { buffer, element, point })
                })
            }
        }
    }

    fn write(&mut self, site: &Site, element: usize, lane: usize, value: Const) {
        match site.storage {
            Storage::Param(param) => {
                self.params[self.plan.params[param].slot as usize].set(element, value);
            }
            Storage::Buffer(buffer) => {
                let len = self.plan.buffers[buffer].len;
                self.buffers[buffer].values[lane * len + element] = Some(value);
            }
        }
    }

    fn error(&self, n: usize, kind: ErrorKind) -> Error {
        kind.at(self.plan.kernel.origin(self.plan.ids[n]))
    }
}
