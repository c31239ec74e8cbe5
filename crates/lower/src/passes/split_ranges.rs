use std::collections::HashSet;

use uop::{Arg, Axis, Graph, Id, Node, Op};

use crate::caps::Caps;
use crate::error::LowerError;

/// Gives each END ranges of its own: a range that several ENDs close is renamed in all but the
/// first, together with what lies under them (S3).
///
/// Takes and keeps `Phase::Built`; afterwards every range has one binder, which everything that
/// speaks of order relies on. Never fails.
pub fn split_ranges(graph: &mut Graph, root: Id, _: &Caps) -> Result<Id, LowerError> {
    let axes = graph.reachable(root).into_iter().filter_map(|n| graph[n].axis());
    let used: HashSet<u32> = axes.map(|axis| axis.number).collect();
    let mut free = (0..=u32::MAX).filter(|number| !used.contains(number));
    let mut bound: HashSet<Id> = HashSet::new();
    Ok(graph.rebuild(root, |graph, _, mut node| {
        if node.op == Op::End {
            for position in 1..node.src.len() {
                let range = node.src[position];
                if !bound.insert(range) {
                    rename(graph, &mut node, range, &mut free);
                    bound.insert(node.src[position]);
                }
            }
        }
        graph.intern(node)
    }))
}

/// Copies what lies under the END `end` where `range` is open, `range` itself included. The copies
/// of ranges get axis numbers that are `free`.
fn rename(graph: &mut Graph, end: &mut Node, range: Id, free: &mut impl Iterator<Item = u32>) {
    let last = end.src.iter().copied().max().unwrap_or(range);
    let mut copies: Vec<Option<Id>> = vec![None; last.index() + 1];
    for n in under(graph, end, range) {
        // Open in `range` is what depends on it, but not through an END that closes it.
        let node = &graph[n];
        let closed = node.op == Op::End && node.src[1..].contains(&range);
        let open = !closed && node.src.iter().any(|s| copies[s.index()].is_some());
        if n != range && !open {
            continue;
        }
        let mut copy = node.clone();
        for s in &mut copy.src {
            *s = copies[s.index()].unwrap_or(*s);
        }
        if let Some(axis) = copy.axis() {
            let number = free.next().expect("a graph has fewer nodes than there are numbers");
            copy.arg = Arg::Range(Axis { number, ..axis });
        }
        copies[n.index()] = Some(graph.intern_like(n, copy));
    }
    for s in &mut end.src {
        *s = copies[s.index()].unwrap_or(*s);
    }
}

/// What `end` depends on from `range` on, in ascending order.
fn under(graph: &Graph, end: &Node, range: Id) -> Vec<Id> {
    let mut seen = HashSet::new();
    let mut todo = end.src.to_vec();
    while let Some(n) = todo.pop() {
        // What is older than the range does not depend on it.
        if n >= range && seen.insert(n) {
            todo.extend_from_slice(&graph[n].src);
        }
    }
    let mut nodes: Vec<Id> = seen.into_iter().collect();
    nodes.sort_unstable();
    nodes
}
