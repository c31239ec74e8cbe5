//! The passes, one a file. [`crate::pipeline::PASSES`] has their order.

mod check_races;
mod drop_unit_ranges;
mod flatten_addresses;
mod gate_loads;
mod guard_accesses;
mod inline_customs;
mod linearize;
mod pin_accesses;
mod place_axes;
mod simplify;
mod size_indices;
mod split_ranges;
mod widen_halves;

pub use check_races::check_races;
pub use drop_unit_ranges::drop_unit_ranges;
pub use flatten_addresses::flatten_addresses;
pub use gate_loads::gate_loads;
pub use guard_accesses::guard_accesses;
pub use inline_customs::inline_customs;
pub use linearize::linearize;
pub use pin_accesses::pin_accesses;
pub use place_axes::place_axes;
pub use simplify::simplify;
pub use size_indices::size_indices;
pub use split_ranges::split_ranges;
pub use widen_halves::widen_halves;

use uop::{Const, DType, Graph, Id, Node, Op, Sources};

/// Adds `test` to the gate of the access `node`.
fn add_gate(graph: &mut Graph, node: &mut Node, test: Id) {
    match node.gate_slot() {
        Some(slot) => node.src[slot] = graph.op(Op::And, &[node.src[slot], test]),
        None => node.src.push(test),
    }
}

/// `x == false`: the graph has no other negation.
fn not(graph: &mut Graph, x: Id) -> Id {
    let no = graph.constant(DType::Bool, Const::Bool(false));
    graph.op(Op::CmpEq, &[x, no])
}

/// The END or AFTER `node` without the ranges that have become an `op`; if none is left, its source.
fn without(graph: &mut Graph, mut node: Node, op: Op) -> Id {
    let source = node.src[0];
    let mut first = true;
    node.src.retain(|s| std::mem::take(&mut first) || graph[*s].op != op);
    if node.src.len() == 1 { source } else { graph.intern(node) }
}

/// What the addresses of `n` lead to.
fn storages(graph: &Graph, n: Id) -> impl Iterator<Item = Id> {
    graph[n].addresses().into_iter().filter_map(|address| graph.storage(address))
}

/// Puts the buffers of the access `node` after `deps`.
fn pin(graph: &mut Graph, node: &mut Node, deps: &[Id]) {
    let addresses = node.addresses();
    for s in node.src.iter_mut().filter(|s| addresses.contains(s)) {
        *s = pin_address(graph, *s, deps);
    }
}

/// `address` with its buffer after `deps`.
fn pin_address(graph: &mut Graph, address: Id, deps: &[Id]) -> Id {
    if deps.is_empty() {
        return address;
    }
    let mut node = graph[address].clone();
    if node.op == Op::After {
        node.src.extend_from_slice(deps);
    } else {
        let after: Sources = node.src[..1].iter().chain(deps).copied().collect();
        node.src[0] = graph.op(Op::After, &after);
    }
    graph.intern(node)
}
