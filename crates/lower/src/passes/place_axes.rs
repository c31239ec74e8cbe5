use std::collections::{BTreeSet, HashMap};

use uop::{
    Arg, Axis, AxisType, Bounds, DType, Graph, Id, Interval, Node, Op, Order, Ranges, Special,
};

use super::{add_gate, pin, storages, without};
use crate::caps::{Caps, GridLimits};
use crate::error::{LowerError, LowerErrorKind};
use crate::prove::buffer_name;

/// Decides where each parallel range runs.
///
/// With a grid, the first three GLOBAL ranges become block indices (the outermost on x, whose
/// limit is the largest), the first three LOCAL ones work-item indices (the innermost on x, along
/// which work-items are neighbours), and an effect that lacks one of them happens where it is 0.
/// Without a grid, the outermost parallel range around the whole kernel becomes THREAD. What is
/// left becomes LOOP: ascending is one of the orders that a parallel range allows.
///
/// Takes `Phase::Proved` with explicit regions, leaves `Phase::Placed`; afterwards the only axis
/// types are THREAD and LOOP.
///
/// # Errors
///
/// `BlockTooLarge`, `GridTooLarge`, with the numbers. `OnceForAll`, `OnePerPoint` and `NoPoint` for
/// what would need the loops to be split.
pub fn place_axes(graph: &mut Graph, root: Id, caps: &Caps) -> Result<Id, LowerError> {
    let order = Order::of(graph, root);
    let mut parallel: Vec<Id> = order.regions().parallel().to_vec();
    parallel.sort_by_key(|&r| (order.rank(r), r));
    let mut bounds = Bounds::new();
    let extents: HashMap<Id, Interval> =
        parallel.iter().map(|&r| (r, bounds.get(graph, graph[r].src[0]))).collect();
    let places = match caps.grid {
        Some(limits) => grid_places(graph, &order, root, &parallel, &extents, &limits)?,
        None => thread_place(graph, &order, root, &parallel),
    };
    let outside = outside(graph, &order, root);
    // By id, the parallel ranges around a node that it lacks; hardware indices are around everything.
    let mut missing: Vec<Vec<Id>> = vec![Vec::new(); root.index() + 1];
    // By id, the atomics that happen at one point only whose values a node depends on.
    let mut values: Vec<Ranges> = vec![Ranges::new(); root.index() + 1];
    for n in graph.reachable(root) {
        let open = order.regions().open(n);
        let around = |r: &Id| match places.get(r) {
            Some(Place::Special(_)) => true,
            Some(Place::Thread) | None => {
                open.iter().any(|s| outside.get(s).is_some_and(|ranges| ranges.contains(r)))
            }
        };
        let lacks = parallel.iter().copied().filter(|r| !open.contains(r) && around(r));
        let lacks: Vec<Id> = lacks.collect();
        values[n.index()] = single_value(graph, n, &lacks, &values);
        let at_each_point = values[n.index()].iter().find(|r| open.contains(r));
        let value = at_each_point.map(|&r| LowerErrorKind::ValueForAll { range: graph.origin(r) });
        let empty = lacks.iter().find(|r| graph[n].is_effect() && extents[*r].lo < 1);
        let empty = empty.map(|&r| LowerErrorKind::NoPoint { range: graph.origin(r) });
        let shared = shared_load(graph, &order, root, n, &lacks);
        let error = |kind: LowerErrorKind| kind.at(graph, n);
        let private = private_buffer(graph, &order, n, &places);
        if let Some(error) = value.or(shared).map(error).or(private).or(empty.map(error)) {
            return Err(error);
        }
        missing[n.index()] = lacks;
    }
    Ok(graph.rebuild(root, |graph, old, mut node| {
        match node.op {
            Op::Range => node = place(&node, places.get(&old)),
            // An AFTER keeps it, so that no extent of the grid is lost.
            Op::End => return without(graph, node, Op::Special),
            _ if node.is_effect() || is_of_mutable(graph, old) => {
                for &r in &missing[old.index()] {
                    // Its bound depends on no range, so it may be placed before its turn.
                    let place = place(&graph[r], places.get(&r));
                    let index = graph.intern(place);
                    // A LOAD may be repeated: nothing changes what it reads.
                    if node.is_effect() {
                        let zero = graph.index(0);
                        let test = graph.op(Op::CmpEq, &[index, zero]);
                        add_gate(graph, &mut node, test);
                    }
                    if graph[index].op == Op::Range {
                        pin(graph, &mut node, &[index]);
                    }
                }
            }
            _ => {}
        }
        graph.intern(node)
    }))
}

/// Refuses a LOAD that happens once for all points of a range of `missing`, if what it reads is
/// written by what happens as often: one point's write would come between the repetitions.
fn shared_load(
    graph: &Graph,
    order: &Order,
    root: Id,
    load: Id,
    missing: &[Id],
) -> Option<LowerErrorKind> {
    let reads = graph[load].is_access() && !graph[load].is_effect();
    let &range = missing.first().filter(|_| reads)?;
    let read: Vec<Id> = storages(graph, load).collect();
    let writes = |&n: &Id| {
        let same = storages(graph, n).any(|storage| read.contains(&storage));
        let as_often = missing.iter().any(|r| !order.regions().open(n).contains(r));
        let ordered = order.reaches(n, load) || order.reaches(load, n);
        graph[n].is_effect() && same && as_often && ordered
    };
    let write = graph.reachable(root).into_iter().find(writes)?;
    Some(LowerErrorKind::OnceForAll {
        buffer: buffer_name(graph, *read.first()?),
        range: graph.origin(range),
        write: graph.origin(write),
    })
}

/// The ranges of `missing` if `n` is an atomic with a value, and those of the `values` that `n` is
/// computed from. None of them may be open at `n`: it would need the value at each of its points.
fn single_value(graph: &Graph, n: Id, missing: &[Id], values: &[Ranges]) -> Ranges {
    let node = &graph[n];
    let own = if node.is_fetch() { missing } else { &[] };
    let sources = match node.op {
        Op::End | Op::Group | Op::Sink => &[],
        Op::After => &node.src[..1],
        _ => &node.src[..],
    };
    let ranges = sources.iter().flat_map(|s| &values[s.index()]).chain(own).copied();
    ranges.collect::<BTreeSet<Id>>().into_iter().collect()
}

/// Refuses an access to a BUFFER inside a parallel range that becomes a loop within a serial one:
/// all points of the range would share the BUFFER.
fn private_buffer(
    graph: &Graph,
    order: &Order,
    access: Id,
    places: &HashMap<Id, Place>,
) -> Option<LowerError> {
    let parallel = |r: Id| graph.axis(r).kind.is_parallel();
    let buffer = storages(graph, access).find(|&s| graph[s].op == Op::Buffer)?;
    let mut inner = order.nest(access).into_iter().skip_while(|&r| parallel(r));
    let around = graph.origin(inner.next()?);
    let range = inner.find(|&r| parallel(r) && !places.contains_key(&r))?;
    Some(LowerErrorKind::OnePerPoint { range: graph.origin(range), around }.at(graph, buffer))
}

/// Whether the access `n` is of a PARAM that may be written.
fn is_of_mutable(graph: &Graph, n: Id) -> bool {
    storages(graph, n).any(|s| matches!(&graph[s].arg, Arg::Param(param) if param.mutable))
}

/// The ranges around each range.
fn outside(graph: &Graph, order: &Order, root: Id) -> HashMap<Id, Ranges> {
    let mut outside = HashMap::new();
    for n in graph.reachable(root).into_iter().filter(|&n| graph[n].op == Op::End) {
        let mut ranges = order.nest(n);
        for &r in &graph[n].src[1..] {
            outside.insert(r, ranges.clone());
            ranges.push(r);
        }
    }
    outside
}

/// Where a parallel range runs; those without a place become loops.
#[derive(Clone, Copy)]
enum Place {
    Special(Special),
    Thread,
}

/// What the RANGE `node` becomes.
fn place(node: &Node, place: Option<&Place>) -> Node {
    let kind = match place {
        Some(&Place::Special(special)) => {
            let bound = node.src.iter().copied();
            return Node::new(Op::Special, DType::Index, bound).with_arg(Arg::Special(special));
        }
        Some(Place::Thread) => AxisType::Thread,
        None => AxisType::Loop,
    };
    let axis = node.axis().expect("the verifier rejects a range without an axis");
    node.clone().with_arg(Arg::Range(Axis { kind, ..axis }))
}

/// Hands out the dimensions of the grid and checks its limits.
///
/// An empty range stays a loop, unless it is around the whole kernel: what lacks it happens.
fn grid_places(
    graph: &Graph,
    order: &Order,
    root: Id,
    parallel: &[Id],
    extents: &HashMap<Id, Interval>,
    limits: &GridLimits,
) -> Result<HashMap<Id, Place>, LowerError> {
    // The greatest that the variables allow.
    let extent = |r: Id| extents[&r].hi.max(0).unsigned_abs();
    let mut places = HashMap::new();
    let mut total: u128 = 1;
    let mut dim = 0;
    for &r in parallel.iter().filter(|&&r| graph.axis(r).kind == AxisType::Global) {
        let Some(&limit) = limits.blocks.get(dim) else { break };
        let never_empty = extents[&r].lo > 0;
        if extent(r) <= limit.into() && (never_empty || is_around_all(graph, order, root, r)) {
            places.insert(r, Place::Special(Special::Block(dim as u8)));
            total *= extent(r);
            dim += 1;
        }
    }
    let mut items: u128 = 1;
    let local = |r: &&Id| graph.axis(**r).kind == AxisType::Local && extents[*r].lo > 0;
    for (dim, &r) in parallel.iter().rev().filter(local).take(3).enumerate() {
        places.insert(r, Place::Special(Special::Item(dim as u8)));
        items = items.saturating_mul(extent(r));
    }
    // A block counts them in 32 bits.
    let limit = limits.block_items.min(u32::MAX.into());
    if items > limit.into() {
        return Err(LowerErrorKind::BlockTooLarge { items, limit }.at(graph, root));
    }
    let (items, limit) = (total * items, limits.total_items);
    if items > limit.into() {
        return Err(LowerErrorKind::GridTooLarge { items, limit }.at(graph, root));
    }
    Ok(places)
}

/// The outermost parallel range, if it is around the whole kernel.
fn thread_place(graph: &Graph, order: &Order, root: Id, parallel: &[Id]) -> HashMap<Id, Place> {
    let around_all = |&r: &Id| order.rank(r) == 0 && is_around_all(graph, order, root, r);
    parallel.iter().take(1).copied().filter(around_all).map(|r| (r, Place::Thread)).collect()
}

/// Whether every effect is inside the range `r`.
fn is_around_all(graph: &Graph, order: &Order, root: Id, r: Id) -> bool {
    let effects = graph.reachable(root).into_iter().filter(|&n| graph[n].is_effect());
    effects.into_iter().all(|n| order.regions().open(n).contains(&r))
}
