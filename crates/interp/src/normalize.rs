//! The two rewrites that S6 applies first, in code of their own: `lower` has its versions.

use std::collections::BTreeSet;

use crate::error::{Error, ErrorKind};
use uop::{Arg, Axis, Const, DType, Graph, Id, Node, Op, Regions};

/// A kernel on its way through the rewrites.
pub(crate) struct Kernel {
    pub(crate) graph: Graph,
    pub(crate) sink: Id,
}

impl Kernel {
    /// A copy of what `sink` depends on.
    pub(crate) fn new(graph: &Graph, sink: Id) -> Kernel {
        let (graph, sink) = graph.canonical(sink);
        Kernel { graph, sink }
    }

    /// The node of the given graph that `n` comes from: what messages name.
    pub(crate) fn origin(&self, n: Id) -> Id {
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
        Kernel { graph, sink }
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
