//! Proofs about accesses. An answer is proved, refuted with a witness, or unknown; what is done
//! about it is up to the passes.

pub mod affine;
pub mod bounds;
pub mod races;

use uop::bounds::Facts;
use uop::{Bounds, Graph, Id, Interval, Op, Order};

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

/// The instances of `access` at [`corners`] of its `ranges` where its gate is certainly true and
/// each of `wanted` has a known value: the point, and these values.
fn instances<'a>(
    graph: &'a Graph,
    bounds: &'a mut Bounds,
    ranges: &'a [Id],
    access: Id,
    wanted: &'a [Id],
) -> impl Iterator<Item = (Vec<i128>, Vec<i128>)> + 'a {
    let points = corners(graph, bounds, ranges).unwrap_or_default();
    points.into_iter().filter_map(move |point| {
        let pairs = ranges.iter().zip(&point).map(|(&r, &v)| (r, Interval::exactly(v)));
        let facts: Facts = pairs.collect();
        let at = |n: Id| bounds.given(graph, &facts, n).single();
        let open = graph[access].gate().is_none_or(|gate| at(gate) == Some(1));
        let values: Vec<i128> = wanted.iter().map(|&n| at(n)).collect::<Option<_>>()?;
        open.then_some((point, values))
    })
}

/// A point for a message, outermost range first.
fn describe(graph: &Graph, order: &Order, ranges: &[Id], point: &[i128]) -> Point {
    let mut pairs: Vec<(Id, i128)> = ranges.iter().copied().zip(point.iter().copied()).collect();
    pairs.sort_by_key(|&(r, _)| (order.rank(r), r));
    Point(pairs.into_iter().map(|(r, v)| (graph.origin(r), v)).collect())
}

/// `n` without the AFTERs around it: the INDEX of an address.
pub(crate) fn strip_after(graph: &Graph, n: Id) -> Id {
    let mut n = n;
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
