//! Whether the indices of an access are within their axes.
//!
//! Per axis of the indexed view, before anything is flattened: by value bounds, narrowed by the
//! gate. What they leave open is tried at the corners of the iteration space; a corner where the
//! gate is true and the index outside refutes.

use uop::{Bounds, Graph, Id, Order};

use super::{buffer_name, corners, describe, index_of, open_at, value_at};
use crate::error::{LowerError, LowerErrorKind};

/// A part of the proof that is missing: one axis of one address of an access, and which end is
/// open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The address: which of the access's.
    pub address: usize,
    /// The axis of its view.
    pub axis: usize,
    /// How many elements behind the one at the index are touched too.
    pub more: i128,
    /// The index may be negative.
    pub below: bool,
    /// The index may reach the length.
    pub above: bool,
}

/// What is missing from the proof that `access` stays within its buffers whenever its gate is
/// true; empty if it is proved.
///
/// # Errors
///
/// `OutOfBounds` with a witness.
pub fn missing(
    graph: &Graph,
    bounds: &mut Bounds,
    order: &Order,
    access: Id,
) -> Result<Vec<Missing>, LowerError> {
    let gate = graph[access].gate();
    let Some(facts) = bounds.facts(graph, gate) else {
        return Ok(Vec::new());
    };
    let mut missing = Vec::new();
    for (address, &(n, elements)) in graph[access].pointers().iter().enumerate() {
        let index = index_of(graph, n);
        let Some(view) = graph.shape(index) else {
            continue;
        };
        for (axis, (&length, &i)) in view.iter().zip(&graph[index].src[1..]).enumerate() {
            // How many more of this axis are touched.
            let more = if axis + 1 == view.len() { elements - 1 } else { 0 };
            let within = bounds.given(graph, &facts, i);
            let least = bounds.get(graph, length).lo;
            if within.is_empty() {
                continue;
            }
            let (below, above) = (within.lo < 0, within.hi.saturating_add(more) >= least);
            if below || above {
                refute(graph, bounds, order, access, (n, axis, length, i, more))?;
                missing.push(Missing { address, axis, more, below, above });
            }
        }
    }
    Ok(missing)
}

/// Looks for a corner at which the gate of `access` is true and the index `i` of `address`, or one
/// of the `more` behind it, outside.
fn refute(
    graph: &Graph,
    bounds: &mut Bounds,
    order: &Order,
    access: Id,
    (address, axis, length, i, more): (Id, usize, Id, Id, i128),
) -> Result<(), LowerError> {
    let ranges = order.regions().open(access);
    for point in corners(graph, bounds, ranges).unwrap_or_default() {
        let at = |n| value_at(graph, bounds, ranges, &point, n);
        let (Some(index), Some(length)) = (at(i), at(length)) else {
            continue;
        };
        let index = if index < 0 { index } else { index.saturating_add(more) };
        if (0..length).contains(&index)
            || !open_at(graph, bounds, ranges, &point, graph[access].gate())
        {
            continue;
        }
        let storage = graph.storage(address).unwrap_or(access);
        return Err(LowerError {
            node: graph.origin(access),
            kind: LowerErrorKind::OutOfBounds {
                buffer: buffer_name(graph, storage),
                axis,
                index,
                length,
                point: describe(graph, order, ranges, &point),
            },
        });
    }
    Ok(())
}
