//! Whether the indices of an access are within their axes.
//!
//! Per axis of the indexed view, before anything is flattened: by value bounds, narrowed by the
//! gate; else by the normal form, each range at the end that matters, so that `i < n` is seen of a
//! range of `n` turns whatever `n` is. What they leave open is tried at the corners of the iteration space; a corner where the
//! gate is true and the index outside refutes.

use uop::{Bounds, Graph, Id, Interval, Op, Order};

use super::affine::Affine;
use super::{buffer_name, describe, instances, strip_after};
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
    forms: &[Option<Affine>],
    access: Id,
) -> Result<Vec<Missing>, LowerError> {
    let gate = graph[access].gate();
    let Some(facts) = bounds.facts(graph, gate) else {
        return Ok(Vec::new());
    };
    let mut missing = Vec::new();
    for (address, &(n, elements)) in graph[access].pointers().iter().enumerate() {
        let index = strip_after(graph, n);
        let view = graph.shape(index).expect("the verifier rejects an index of no view");
        for (axis, (&length, &i)) in view.iter().zip(&graph[index].src[1..]).enumerate() {
            // How many more of this axis are touched.
            let more = if axis + 1 == view.len() { elements - 1 } else { 0 };
            let within = bounds.given(graph, &facts, i);
            let least = bounds.get(graph, length).lo;
            if within.is_empty() {
                continue;
            }
            let form = |n: Id| forms[n.index()].as_ref();
            let proved = |form: Option<Affine>, bounds: &mut Bounds| {
                form.is_some_and(|form| is_never_negative(graph, bounds, forms, form))
            };
            let below = within.lo < 0 && !proved(form(i).cloned(), bounds);
            let above = within.hi.saturating_add(more) >= least && {
                let gap = form(length).zip(form(i)).and_then(|(length, i)| length.plus(i, -1));
                let last = gap.and_then(|gap| gap.plus(&Affine::constant(1 + more), -1));
                !proved(last, bounds)
            };
            if below || above {
                refute(graph, bounds, order, access, (n, axis, length, i, more))?;
                missing.push(Missing { address, axis, more, below, above });
            }
        }
    }
    Ok(missing)
}

/// Whether `form` is 0 or more at every instance: each of its ranges at the end where it is least, the
/// innermost first, and everything else by its value bounds.
fn is_never_negative(
    graph: &Graph,
    bounds: &mut Bounds,
    forms: &[Option<Affine>],
    form: Affine,
) -> bool {
    let mut form = form;
    // A bound is older than its range.
    while let Some(&(r, c)) = form.terms.iter().rev().find(|&&(n, _)| graph[n].op == Op::Range) {
        form.terms.retain(|&(atom, _)| atom != r);
        if c < 0 {
            let last = forms[graph[r].src[0].index()].as_ref();
            let last = last.and_then(|bound| bound.plus(&Affine::constant(1), -1));
            match last.and_then(|last| form.plus(&last, c)) {
                Some(least) => form = least,
                None => return false,
            }
        }
    }
    let terms = form.terms.iter().map(|&(n, c)| bounds.get(graph, n).times(Interval::exactly(c)));
    terms.fold(Interval::exactly(form.constant), Interval::plus).lo >= 0
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
    for (point, values) in instances(graph, bounds, ranges, access, &[i, length]) {
        let (index, length) = (values[0], values[1]);
        let index = if index < 0 { index } else { index.saturating_add(more) };
        if !(0..length).contains(&index) {
            let buffer = buffer_name(graph, graph.storage(address).unwrap_or(access));
            let point = describe(graph, order, ranges, &point);
            let kind = LowerErrorKind::OutOfBounds { buffer, axis, index, length, point };
            return Err(kind.at(graph, access));
        }
    }
    Ok(())
}
