//! Proofs about accesses. An answer is proved, refuted with a witness, or unknown; what is done
//! about it is up to the passes.

pub mod affine;
pub mod bounds;
pub mod races;

use uop::{Bounds, Graph, Id, Op, Order};

use crate::error::Point;

/// The most points that a search for a witness looks at.
const SEARCH_LIMIT: usize = 4096;

/// The points of `ranges` at which an error shows first, if the extents are constants: each range
/// at its first, second or last value. `None` if a range may be empty or is not constant, or if
/// there are too many.
fn corners(graph: &Graph, bounds: &mut Bounds, ranges: &[Id]) -> Option<Vec<Vec<i128>>> {
    let mut points = vec![Vec::new()];
    for &r in ranges {
        let extent = bounds.get(graph, graph[r].src[0]).single().filter(|&extent| extent > 0)?;
        let mut values = vec![0, 1, extent - 1];
        values.retain(|&v| v < extent);
        values.dedup();
        if points.len() * values.len() > SEARCH_LIMIT {
            return None;
        }
        let longer = points.iter().flat_map(|point| {
            values.iter().map(move |&v| point.iter().copied().chain([v]).collect::<Vec<i128>>())
        });
        points = longer.collect();
    }
    Some(points)
}

/// The value of the integer or boolean `n` where the ranges have the values of `point`, if it
/// follows from them alone.
fn value_at(graph: &Graph, bounds: &Bounds, ranges: &[Id], point: &[i128], n: Id) -> Option<i128> {
    let facts: uop::bounds::Facts =
        ranges.iter().zip(point).map(|(&r, &v)| (r, uop::Interval::exactly(v))).collect();
    bounds.given(graph, &facts, n).single()
}

/// Whether the gate, if there is one, is certainly true at `point`.
fn open_at(
    graph: &Graph,
    bounds: &Bounds,
    ranges: &[Id],
    point: &[i128],
    gate: Option<Id>,
) -> bool {
    gate.is_none_or(|gate| value_at(graph, bounds, ranges, point, gate) == Some(1))
}

/// A point for a message, outermost range first.
fn describe(graph: &Graph, order: &Order, ranges: &[Id], point: &[i128]) -> Point {
    let mut pairs: Vec<(Id, i128)> = ranges.iter().copied().zip(point.iter().copied()).collect();
    pairs.sort_by_key(|&(r, _)| (order.rank(r), r));
    Point(pairs.into_iter().map(|(r, v)| (graph.origin(r), v)).collect())
}

/// The INDEX of an address.
pub(crate) fn index_of(graph: &Graph, address: Id) -> Id {
    let mut n = address;
    while graph[n].op == Op::After {
        n = graph[n].src[0];
    }
    n
}

/// The name of a buffer for a message: that of a PARAM, or of a node.
pub(crate) fn buffer_name(graph: &Graph, storage: Id) -> Box<str> {
    match &graph[storage].arg {
        uop::Arg::Param(param) => param.name.clone(),
        _ => graph.origin(storage).to_string().into(),
    }
}
