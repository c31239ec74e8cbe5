use std::collections::{HashMap, HashSet};

use uop::{Bounds, Graph, Id, Op, Order, Sources, conflict};

use super::{pin, storages};
use crate::caps::Caps;
use crate::error::LowerError;

/// Makes explicit what the order of memory rests on: the buffer of each access comes AFTER all the
/// access's ranges, and after the accesses that conflict with it and that it depends on. From here
/// on an index may lose a range (`i * 0` is 0), a value its operands, and a parallel range may
/// become a loop; the access still happens once per instance, and where it did.
///
/// A CUSTOM with a result also becomes an effect of the END, or of the SINK, of its innermost loop,
/// so that it happens even if no one needs its value any more.
///
/// Concerns STORE, CUSTOM, a LOAD of a BUFFER or of what the kernel writes, and a LOAD inside a range
/// that may be empty: outside it, nothing says that the address is in bounds. Takes and keeps
/// `Phase::Proved`. Never fails.
pub fn pin_accesses(graph: &mut Graph, root: Id, _: &Caps) -> Result<Id, LowerError> {
    let order = Order::of(graph, root);
    let pinned = pinned(graph, &order, root);
    let deps = dependencies(graph, &order, root, &pinned);
    let mut results = results(graph, &order, root);
    let mut new: Vec<Option<Id>> = vec![None; root.index() + 1];
    Ok(graph.rebuild(root, |graph, old, mut node| {
        if pinned.contains(&old) {
            let ranges = order.regions().open(old).iter();
            let deps: Sources =
                ranges.chain(&deps[&old]).filter_map(|dep| new[dep.index()]).collect();
            pin(graph, &mut node, &deps);
        }
        if let Some(results) = results.remove(&old) {
            let mut effects: Sources = node.src[..1].into();
            effects.extend(results.iter().filter_map(|n| new[n.index()]));
            node.src[0] = graph.op(Op::Group, &effects);
        }
        let id = graph.intern(node);
        new[old.index()] = Some(id);
        id
    }))
}

/// The accesses of storage that the kernel writes, and of BUFFERs, and those that may not happen.
fn pinned(graph: &Graph, order: &Order, root: Id) -> HashSet<Id> {
    let nodes = graph.reachable(root);
    let effects = nodes.iter().filter(|&&n| graph[n].is_effect());
    let written: HashSet<Id> = effects.flat_map(|&n| storages(graph, n)).collect();
    let matters = |s: Id| written.contains(&s) || graph[s].op == Op::Buffer;
    let mut bounds = Bounds::new();
    let mut in_empty = |n: Id| {
        let mut open = order.regions().open(n).iter();
        graph[n].is_access() && open.any(|&r| bounds.get(graph, graph[r].src[0]).lo < 1)
    };
    nodes.iter().copied().filter(|&n| storages(graph, n).any(matters) || in_empty(n)).collect()
}

/// The END of each range.
fn binders(graph: &Graph, root: Id) -> HashMap<Id, Id> {
    let ends = graph.reachable(root).into_iter().filter(|&n| graph[n].op == Op::End);
    ends.flat_map(|end| graph[end].src[1..].iter().map(move |&r| (r, end))).collect()
}

/// The CUSTOMs with a result, by the END of their innermost range, or the SINK.
fn results(graph: &Graph, order: &Order, root: Id) -> HashMap<Id, Vec<Id>> {
    let binder = binders(graph, root);
    let mut results: HashMap<Id, Vec<Id>> = HashMap::new();
    for n in graph.reachable(root).into_iter().filter(|&n| graph[n].is_fetch()) {
        let end = order.nest(n).last().map_or(root, |r| binder[r]);
        results.entry(end).or_default().push(n);
    }
    results
}

/// For each pinned access, what it comes after: of the earlier accesses that conflict with it, the
/// last ones, from which the others follow; in place of one inside a loop, the END of that loop.
fn dependencies(
    graph: &Graph,
    order: &Order,
    root: Id,
    pinned: &HashSet<Id>,
) -> HashMap<Id, Vec<Id>> {
    let nodes = graph.reachable(root);
    let binder = binders(graph, root);
    // What is around `access` and stands for `before` there: not inside a range that it lacks.
    let seen_from = |access: Id, before: Id| {
        let open = order.regions().open(access);
        let mut n = before;
        while let Some(r) = order.nest(n).into_iter().find(|r| !open.contains(r)) {
            n = binder[&r];
        }
        n
    };
    let mut deps: HashMap<Id, Vec<Id>> = HashMap::new();
    let mut earlier: HashMap<Id, Vec<Id>> = HashMap::new();
    // The accesses that follow from the dependencies of each.
    let mut implied: HashMap<Id, HashSet<Id>> = HashMap::new();
    for &access in nodes.iter().filter(|n| pinned.contains(n)) {
        let (mut own, mut known) = (Vec::new(), HashSet::new());
        for storage in storages(graph, access) {
            let earlier = earlier.entry(storage).or_default();
            for &before in earlier.iter().rev() {
                let orders = conflict(graph, before, access) && order.reaches(before, access);
                if orders && known.insert(before) {
                    known.extend(&implied[&before]);
                    own.push(seen_from(access, before));
                }
            }
            earlier.push(access);
        }
        deps.insert(access, own);
        implied.insert(access, known);
    }
    deps
}
