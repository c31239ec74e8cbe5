use std::collections::HashMap;

use uop::{Arg, Axis, Graph, Id, Op, Regions};

use crate::caps::Caps;
use crate::error::LowerError;

/// Gives each END ranges of its own: a range that several ENDs close is renamed in all but the
/// first, together with what lies under them (S3).
///
/// Takes and keeps `Phase::Built`; afterwards every range has one binder, which everything that
/// speaks of order relies on. Never fails.
pub fn split_ranges(graph: &mut Graph, root: Id, _: &Caps) -> Result<Id, LowerError> {
    let mut root = root;
    while let Some((end, range)) = second_binder(graph, root) {
        let fresh = fresh_range(graph, root, range);
        root = rename(graph, root, end, range, fresh);
    }
    Ok(root)
}

/// The first END that closes a range which an earlier one closed too, with that range.
fn second_binder(graph: &Graph, root: Id) -> Option<(Id, Id)> {
    let mut binder: HashMap<Id, Id> = HashMap::new();
    for n in graph.reachable(root).into_iter().filter(|&n| graph[n].op == Op::End) {
        for &r in &graph[n].src[1..] {
            if *binder.entry(r).or_insert(n) != n {
                return Some((n, r));
            }
        }
    }
    None
}

/// A range like `range` with the least axis number that is free.
fn fresh_range(graph: &mut Graph, root: Id, range: Id) -> Id {
    let axes = graph.reachable(root).into_iter().filter_map(|n| graph[n].axis());
    let number = axes.map(|axis| axis.number + 1).max().unwrap_or(0);
    let mut node = graph[range].clone();
    node.arg = Arg::Range(Axis { number, ..graph.axis(range) });
    graph.intern(node)
}

/// Replaces `range` by `fresh` in `end` and in what lies under it, where `range` is open.
fn rename(graph: &mut Graph, root: Id, end: Id, range: Id, fresh: Id) -> Id {
    let regions = Regions::of(graph, root);
    let mut renamed: HashMap<Id, Id> = HashMap::from([(range, fresh)]);
    for n in graph.reachable(end) {
        if n == range || !(n == end || regions.open(n).contains(&range)) {
            continue;
        }
        let mut node = graph[n].clone();
        for s in &mut node.src {
            *s = renamed.get(s).copied().unwrap_or(*s);
        }
        let id = graph.intern(node);
        renamed.insert(n, id);
    }
    let replacement = renamed[&end];
    graph.rebuild(
        root,
        |graph, old, node| {
            if old == end { replacement } else { graph.intern(node) }
        },
    )
}
