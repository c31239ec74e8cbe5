use std::collections::{HashMap, HashSet};

use uop::{Arg, Axis, Graph, Id, Op, Regions};

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
    let mut root = root;
    while let Some((end, range)) = second_binder(graph, root) {
        root = rename(graph, root, end, range, &mut free);
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

/// Copies `end` and what lies under it where `range` is open, `range` itself included. The copies
/// of ranges get axis numbers that are `free`.
fn rename(
    graph: &mut Graph,
    root: Id,
    end: Id,
    range: Id,
    free: &mut impl Iterator<Item = u32>,
) -> Id {
    let regions = Regions::of(graph, root);
    let under: HashSet<Id> = graph.reachable(end).into_iter().collect();
    let mut copies: HashMap<Id, Id> = HashMap::new();
    graph.rebuild(root, |graph, old, node| {
        if !(old == end || under.contains(&old) && regions.open(old).contains(&range)) {
            return graph.intern(node);
        }
        let mut copy = node.clone();
        for s in &mut copy.src {
            *s = copies.get(s).copied().unwrap_or(*s);
        }
        if let Some(axis) = copy.axis() {
            let number = free.next().expect("a graph has fewer nodes than there are numbers");
            copy.arg = Arg::Range(Axis { number, ..axis });
        }
        let id = graph.intern(copy);
        copies.insert(old, id);
        if old == end { id } else { graph.intern(node) }
    })
}
