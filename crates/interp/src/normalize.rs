//! The rewrites that S6 applies first, in code of their own: `lower` has its versions.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, ErrorKind};
use uop::{Access, Arg, Axis, Const, DType, Effect, Graph, Id, Node, Op, Regions};

/// A kernel on its way through the rewrites.
pub(crate) struct Kernel {
    pub(crate) graph: Graph,
    pub(crate) sink: Id,
    /// The kernel with the bodies of declared operations: the origins of `graph` are its nodes,
    /// each with an origin in the graph that was given.
    inlined: Graph,
}

impl Kernel {
    /// A copy of what `sink` depends on, with the bodies of declared operations in their place.
    pub(crate) fn new(graph: &Graph, sink: Id) -> Kernel {
        let (mut inlined, sink) = graph.canonical(sink);
        let sink = inline_bodies(&mut inlined, sink);
        let (graph, sink) = inlined.canonical(sink);
        Kernel { graph, sink, inlined }
    }

    /// The node of the given graph that `n` comes from: what messages name.
    pub(crate) fn origin(&self, n: Id) -> Id {
        self.inlined.origin(self.graph.origin(n))
    }

    /// What tells the copies of one effect from those of another.
    pub(crate) fn original(&self, n: Id) -> Id {
        self.graph.origin(n)
    }

    /// Replaces each VARIABLE by its value.
    pub(crate) fn bind_variables(&mut self, values: &[(&str, i64)]) -> Result<(), Error> {
        let mut error = None;
        self.sink = self.graph.rebuild(self.sink, |g, n, node| {
            let Arg::Variable(variable) = &node.arg else { return g.intern(node) };
            let uop::Variable { name, lo, hi } = &**variable;
            let found = values.iter().find(|(known, _)| *known == &**name).map(|&(_, value)| value);
            match found.filter(|value| (lo..=hi).contains(&value)) {
                Some(value) => g.index(value),
                None => {
                    let (name, lo, hi) = (name.clone(), *lo, *hi);
                    let kind = ErrorKind::Variable { name, lo, hi, found };
                    error.get_or_insert(kind.at(g.origin(n)));
                    g.intern(node)
                }
            }
        });
        error.map_or(Ok(()), Err)
    }

    /// A LOAD that is used once, as an arm of a WHERE, happens only if that arm is taken (S2).
    ///
    /// The condition must not depend on a range that the LOAD lacks: the LOAD would then be read
    /// once for each point of it instead of once.
    pub(crate) fn where_gates_load(&mut self) {
        let regions = Regions::of(&self.graph, self.sink);
        let mut uses = vec![0; self.graph.len()];
        for n in self.graph.reachable(self.sink) {
            for s in &self.graph[n].src {
                uses[s.index()] += 1;
            }
        }
        let gated = |g: &Graph, condition: Id, arm: Id| {
            g[arm].op == Op::Load
                && uses[arm.index()] == 1
                && is_subset(regions.open(condition), regions.open(arm))
        };
        self.sink = self.graph.rebuild(self.sink, |g, n, mut node| {
            if node.op != Op::Where {
                return g.intern(node);
            }
            // The condition may have a higher id than the LOAD, so the LOAD is gated here, where
            // both are rebuilt; nothing else uses it.
            let old = g[n].src.clone();
            for arm in [1, 2] {
                if !gated(g, old[0], old[arm]) {
                    continue;
                }
                let condition = node.src[0];
                let taken = if arm == 1 {
                    condition
                } else {
                    let no = g.constant(DType::Bool, Const::Bool(false));
                    g.op(Op::CmpEq, &[condition, no])
                };
                let mut load = g[node.src[arm]].clone();
                match load.src.get(1).copied() {
                    Some(gate) => load.src[1] = g.op(Op::And, &[gate, taken]),
                    None => load.src.push(taken),
                }
                node.src[arm] = g.intern_like(old[arm], load);
            }
            g.intern(node)
        });
    }

    /// Gives every END ranges of its own (S3): within its source, nodes with a shared range in
    /// their region are built again with a new one.
    pub(crate) fn unique_ranges(&mut self) {
        let nodes = self.graph.reachable(self.sink);
        let mut binders = vec![0; self.graph.len()];
        let mut used = BTreeSet::new();
        for &n in &nodes {
            let node = &self.graph[n];
            if node.op == Op::End {
                for r in &node.src[1..] {
                    binders[r.index()] += 1;
                }
            }
            used.extend(node.axis().map(|axis| axis.number));
        }
        if binders.iter().all(|&n| n < 2) {
            return;
        }
        let shared: Vec<Axis> =
            nodes.iter().filter(|n| binders[n.index()] > 1).map(|&n| self.graph.axis(n)).collect();
        let mut fresh = (0..=u32::MAX).filter(|number| !used.contains(number));
        self.sink = self.graph.rebuild(self.sink, |g, _, mut node| {
            if node.op == Op::End {
                for position in 1..node.src.len() {
                    let range = node.src[position];
                    // By axis, not by id: a range whose bound has changed is a new node.
                    let axis = g.axis(range);
                    if shared.contains(&axis) {
                        let number = fresh.next().expect("there are fewer nodes than numbers");
                        rename(g, &mut node, range, Axis { number, ..axis });
                    }
                }
            }
            g.intern(node)
        });
    }

    /// Drops what the rewrites have left behind, so that ids count from 0 without gaps.
    pub(crate) fn finish(self) -> Kernel {
        let (graph, sink) = self.graph.compact(self.sink);
        Kernel { graph, sink, ..self }
    }
}

/// Puts the body of each declared operation that has one in its place; what is malformed stays for
/// `check` to find. An access of a body has the gate, the flags and the ranges of the CUSTOM.
fn inline_bodies(graph: &mut Graph, sink: Id) -> Id {
    let mut bodies: BTreeMap<Id, Graph> = BTreeMap::new();
    let mut numbers = BTreeSet::new();
    for n in graph.reachable(sink) {
        let Arg::Custom { custom, number, .. } = &graph[n].arg else { continue };
        numbers.insert(*number);
        let Some(declaration) = custom.declaration().filter(|_| custom.check().is_ok()) else {
            continue;
        };
        let contract = declaration.contract();
        let most = contract.args.len() + usize::from(contract.effect != Effect::Pure);
        if (contract.args.len()..=most).contains(&graph[n].src.len())
            && graph[n].dtype == contract.result
        {
            bodies.extend(declaration.uops().map(|(body, _)| (n, body)));
        }
    }
    if bodies.is_empty() {
        return sink;
    }
    let regions = Regions::of(graph, sink);
    let mut fresh = (0..=u32::MAX).filter(|number| !numbers.contains(number));
    let mut rebuilt: BTreeMap<Id, Id> = BTreeMap::new();
    // By CUSTOM, the accesses of its body.
    let mut accesses: BTreeMap<Id, Vec<Id>> = BTreeMap::new();
    graph.rebuild(sink, |g, old, mut node| {
        let before = g[old].src.clone();
        let new = match bodies.get(&old) {
            Some(body) => {
                for (s, &before) in node.src.iter_mut().zip(&before) {
                    let more =
                        regions.open(old).iter().filter(|r| !regions.open(before).contains(r));
                    let more: Vec<Id> = more.filter_map(|r| rebuilt.get(r).copied()).collect();
                    *s = inside(g, *s, &more);
                }
                let (value, own) = copy_body(g, &node, body, || fresh.next().unwrap_or_default());
                accesses.insert(old, own);
                value
            }
            None => {
                let effects = match node.op {
                    Op::After => 1..before.len(),
                    Op::End | Op::Sink => 0..1,
                    Op::Group => 0..before.len(),
                    _ => 0..0,
                };
                let mut src = Vec::new();
                for (slot, (&s, custom)) in node.src.iter().zip(&before).enumerate() {
                    match accesses.get(custom) {
                        // A value that stands for what is done.
                        Some(own) if effects.contains(&slot) && g[*custom].dtype != DType::Void => {
                            let done = own.iter().copied();
                            let done = done.filter(|&n| node.op == Op::After || g[n].is_effect());
                            let done: Vec<Id> = done.collect();
                            match node.op {
                                Op::End | Op::Sink if !done.is_empty() => {
                                    src.push(g.op(Op::Group, &done));
                                }
                                _ => src.extend(done),
                            }
                        }
                        _ => src.push(s),
                    }
                }
                g.intern(Node { src: src.into_iter().collect(), ..node })
            }
        };
        rebuilt.insert(old, new);
        new
    })
}

/// The address `n` inside `ranges`; `n` itself if it is none.
fn inside(g: &mut Graph, n: Id, ranges: &[Id]) -> Id {
    let mut node = g[n].clone();
    match node.op {
        _ if ranges.is_empty() => n,
        Op::Index if !node.src.is_empty() => {
            let buffer: Vec<Id> = [&node.src[..1], ranges].concat();
            node.src[0] = g.op(Op::After, &buffer);
            g.intern(node)
        }
        Op::After if g.storage(n).is_some() => {
            node.src.extend_from_slice(ranges);
            g.intern(node)
        }
        _ => n,
    }
}

/// The value of `body` with the sources of the CUSTOM `node` for its arguments, and its accesses.
fn copy_body(
    g: &mut Graph,
    node: &Node,
    body: &Graph,
    mut fresh: impl FnMut() -> u32,
) -> (Id, Vec<Id>) {
    let gate = node.gate();
    let given = node.access().unwrap_or_default();
    let mut first = match node.arg {
        Arg::Custom { number, .. } => Some(number),
        _ => None,
    };
    let (mut copies, mut accesses): (Vec<Id>, Vec<Id>) = (Vec::new(), Vec::new());
    for n in (0..body.len()).map(|n| body.nth(n)) {
        let mut copy = body[n].clone();
        if let Arg::Argument { number, .. } = copy.arg {
            copies.push(node.src[number as usize]);
            continue;
        }
        copy.src.iter_mut().for_each(|s| *s = copies[s.index()]);
        if !copy.is_access() {
            copies.push(g.intern(copy));
            continue;
        }
        let waived = given.assume_disjoint && copy.is_effect();
        if let Arg::Access(access) | Arg::Custom { access, .. } = &mut copy.arg {
            *access = Access { assume_disjoint: waived, ..given };
        }
        if let Arg::Custom { number, .. } = &mut copy.arg {
            *number = first.take().unwrap_or_else(&mut fresh);
        }
        match (copy.gate_slot(), gate) {
            (Some(slot), Some(gate)) => copy.src[slot] = g.op(Op::And, &[copy.src[slot], gate]),
            (None, Some(gate)) => copy.src.push(gate),
            (_, None) => {}
        }
        let access = g.intern(copy);
        copies.push(access);
        accesses.push(access);
    }
    let value = copies[copies.len() - 1];
    match gate {
        Some(gate) if node.dtype != DType::Void => {
            let zero = g.constant(node.dtype, Const::zero(node.dtype));
            (g.op(Op::Where, &[gate, value, zero]), accesses)
        }
        _ => (value, accesses),
    }
}

/// Replaces `range` by one with `axis` in the sources of the END `end`, wherever it is open.
fn rename(g: &mut Graph, end: &mut Node, range: Id, axis: Axis) {
    let body = end.src[0];
    let last = end.src.iter().copied().max().unwrap_or(body);
    let mut new: Vec<Option<Id>> = vec![None; last.index() + 1];
    let roots = g.intern(Node::new(Op::Group, DType::Void, end.src.iter().copied()));
    for n in g.reachable(roots) {
        if n == roots {
            continue;
        }
        let mut node = g[n].clone();
        let bound_here = node.op == Op::End && node.src[1..].contains(&range);
        if n != range && (bound_here || node.src.iter().all(|s| new[s.index()].is_none())) {
            continue;
        }
        if n == range {
            node.arg = Arg::Range(axis);
        }
        for s in &mut node.src {
            *s = new[s.index()].unwrap_or(*s);
        }
        new[n.index()] = Some(g.intern_like(n, node));
    }
    for s in &mut end.src {
        *s = new[s.index()].unwrap_or(*s);
    }
}

fn is_subset(a: &[Id], b: &[Id]) -> bool {
    a.iter().all(|n| b.contains(n))
}
