use std::collections::HashSet;

use uop::{Graph, Id, Op, Ranges, Regions};

use super::pin;
use crate::caps::Caps;
use crate::error::LowerError;

/// Makes the region of every access that memory order depends on explicit: its buffer comes AFTER
/// all the access's ranges. From here on an index may lose a range (`i * 0` is 0) and a parallel
/// range may become a loop, and the access still happens once per instance.
///
/// Concerns STORE, CUSTOM, and a LOAD of a BUFFER or of what the kernel writes. Takes and keeps
/// `Phase::Proved`. Never fails.
pub fn pin_accesses(graph: &mut Graph, root: Id, _: &Caps) -> Result<Id, LowerError> {
    let regions = Regions::of(graph, root);
    let written: HashSet<Id> = graph
        .reachable(root)
        .into_iter()
        .filter(|&n| graph[n].is_effect())
        .flat_map(|n| graph[n].addresses())
        .filter_map(|address| graph.storage(address))
        .chain(graph.reachable(root).into_iter().filter(|&n| graph[n].op == Op::Buffer))
        .collect();
    // A range may hold an access in its bound, so ranges are replaced as other nodes are.
    let mut new: Vec<Option<Id>> = vec![None; root.index() + 1];
    Ok(graph.rebuild(root, |graph, old, mut node| {
        let addresses = node.addresses();
        if addresses.iter().any(|&a| graph.storage(a).is_some_and(|s| written.contains(&s))) {
            let ranges: Ranges = regions.open(old).iter().filter_map(|r| new[r.index()]).collect();
            for s in node.src.iter_mut().filter(|s| addresses.contains(s)) {
                *s = pin(graph, *s, &ranges);
            }
        }
        let id = graph.intern(node);
        new[old.index()] = Some(id);
        id
    }))
}
