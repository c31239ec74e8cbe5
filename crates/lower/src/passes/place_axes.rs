use std::collections::HashMap;

use uop::{Arg, Axis, AxisType, Const, DType, Graph, Id, Node, Op, Order, Special};

use super::{add_gate, without};
use crate::caps::{Caps, GridLimits};
use crate::error::{LowerError, LowerErrorKind};

/// Decides where each parallel range runs.
///
/// With a grid, the first three GLOBAL ranges become block indices (the outermost on x, whose
/// limit is the largest), the first three LOCAL ones work-item indices (the innermost on x, along
/// which work-items are neighbours), and an effect that lacks one of them happens where it is 0.
/// Without a grid, the outermost parallel range around the whole kernel becomes THREAD. What is
/// left becomes LOOP: ascending is one of the orders that a parallel range allows.
///
/// Takes `Phase::Built` with explicit regions, leaves `Phase::Placed`; afterwards the only axis
/// types are THREAD and LOOP.
///
/// # Errors
///
/// `BlockTooLarge`, `GridTooLarge`, with the numbers.
pub fn place_axes(graph: &mut Graph, root: Id, caps: &Caps) -> Result<Id, LowerError> {
    let order = Order::of(graph, root);
    let mut parallel: Vec<Id> = order.regions().parallel().to_vec();
    parallel.sort_by_key(|&r| (order.rank(r), r));
    let places = match caps.grid {
        Some(limits) => grid_places(graph, root, &parallel, &limits)?,
        None => thread_place(graph, &order, root, &parallel),
    };
    let effects_missing = |order: &Order, n: Id| -> Vec<Id> {
        let open = order.regions().open(n);
        let special = |r: &&Id| matches!(places.get(r), Some(Place::Special(_)));
        parallel.iter().filter(special).filter(|r| !open.contains(r)).copied().collect()
    };
    let mut new: HashMap<Id, Id> = HashMap::new();
    Ok(graph.rebuild(root, |graph, old, mut node| {
        let id = match node.op {
            Op::Range => match places.get(&old) {
                Some(&Place::Special(special)) => graph.intern(
                    Node::new(Op::Special, DType::Index, node.src).with_arg(Arg::Special(special)),
                ),
                place => {
                    let thread = matches!(place, Some(Place::Thread));
                    let kind = if thread { AxisType::Thread } else { AxisType::Loop };
                    let Some(Axis { number, .. }) = node.axis() else {
                        unreachable!("the verifier rejects a range without an axis")
                    };
                    graph.intern(node.with_arg(Arg::Range(Axis { number, kind })))
                }
            },
            // An AFTER keeps it, so that no extent of the grid is lost.
            Op::End => without(graph, node, Op::Special),
            _ if node.is_effect() => {
                for r in effects_missing(&order, old) {
                    let special =
                        new.get(&r).copied().unwrap_or_else(|| special_of(graph, r, &places));
                    let zero = graph.constant(DType::Index, Const::Int(0));
                    let test = graph.op(Op::CmpEq, &[special, zero]);
                    add_gate(graph, &mut node, test);
                }
                graph.intern(node)
            }
            _ => graph.intern(node),
        };
        new.insert(old, id);
        id
    }))
}

/// Where a parallel range runs; those without a place become loops.
#[derive(Clone, Copy)]
enum Place {
    Special(Special),
    Thread,
}

/// The hardware index that stands for the range `r`, whose bound is a constant.
fn special_of(graph: &mut Graph, r: Id, places: &HashMap<Id, Place>) -> Id {
    let Some(&Place::Special(special)) = places.get(&r) else {
        unreachable!("only ranges with a hardware index are missing")
    };
    let bound = graph[r].src[0];
    graph.intern(Node::new(Op::Special, DType::Index, [bound]).with_arg(Arg::Special(special)))
}

/// Hands out the dimensions of the grid and checks its limits.
fn grid_places(
    graph: &Graph,
    root: Id,
    parallel: &[Id],
    limits: &GridLimits,
) -> Result<HashMap<Id, Place>, LowerError> {
    let error = |kind| LowerError { node: graph.origin(root), kind };
    let extent = |r: Id| -> Result<u64, LowerError> {
        let bound = graph[r].src[0];
        let kind = LowerErrorKind::NotConstant {
            what: "the bound of a parallel range",
            found: graph.origin(bound),
        };
        let value = graph.as_int(bound).and_then(|n| u64::try_from(n.max(0)).ok());
        value.ok_or(LowerError { node: graph.origin(r), kind })
    };
    let mut places = HashMap::new();
    let mut total: u128 = 1;
    let mut dim = 0;
    for &r in parallel.iter().filter(|&&r| graph.axis(r).kind == AxisType::Global) {
        let Some(&limit) = limits.blocks.get(dim) else {
            break;
        };
        if extent(r)? <= limit {
            places.insert(r, Place::Special(Special::Block(dim as u8)));
            total *= u128::from(extent(r)?);
            dim += 1;
        }
    }
    let mut items: u128 = 1;
    let locals = parallel.iter().rev().filter(|&&r| graph.axis(r).kind == AxisType::Local);
    for (dim, &r) in locals.take(3).enumerate() {
        places.insert(r, Place::Special(Special::Item(dim as u8)));
        items *= u128::from(extent(r)?);
    }
    if items > u128::from(limits.block_items) {
        return Err(error(LowerErrorKind::BlockTooLarge { items, limit: limits.block_items }));
    }
    if total * items > u128::from(limits.total_items) {
        return Err(error(LowerErrorKind::GridTooLarge {
            items: total * items,
            limit: limits.total_items,
        }));
    }
    Ok(places)
}

/// The outermost parallel range, if every effect is inside it.
fn thread_place(graph: &Graph, order: &Order, root: Id, parallel: &[Id]) -> HashMap<Id, Place> {
    let outermost = parallel.first().copied().filter(|&r| order.rank(r) == 0);
    let around_all = outermost.filter(|r| {
        let effects = graph.reachable(root).into_iter().filter(|&n| graph[n].is_effect());
        effects.into_iter().all(|n| order.regions().open(n).contains(r))
    });
    around_all.into_iter().map(|r| (r, Place::Thread)).collect()
}
