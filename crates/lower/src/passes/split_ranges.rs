use std::collections::{BTreeSet, HashMap, HashSet};

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
    let mut copies: HashMap<Id, Id> = HashMap::new();
    // What is older than the range does not depend on it.
    let under: BTreeSet<Id> =
        end.src.iter().flat_map(|&s| graph.reachable(s)).filter(|&n| n >= range).collect();
    for n in under {
        // Open in `range` is what depends on it, but not through an END that closes it.
        let node = &graph[n];
        let closed = node.op == Op::End && node.src[1..].contains(&range);
        let open = !closed && node.src.iter().any(|s| copies.contains_key(s));
        if n != range && !open {
            continue;
        }
        let mut copy = node.clone();
        for s in &mut copy.src {
            *s = copies.get(s).copied().unwrap_or(*s);
        }
        if let Some(axis) = copy.axis() {
            let number = free.next().expect("a graph has fewer nodes than there are numbers");
            copy.arg = Arg::Range(Axis { number, ..axis });
        }
        copies.insert(n, graph.intern_like(n, copy));
    }
    for s in &mut end.src {
        *s = copies.get(s).copied().unwrap_or(*s);
    }
}
