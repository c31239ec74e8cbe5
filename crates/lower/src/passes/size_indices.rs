use uop::{AxisType, Bounds, Const, DType, Graph, Id, Interval, Node, Op};

use crate::caps::Caps;
use crate::error::{LowerError, LowerErrorKind};

/// Gives every `index` expression 32 or 64 bits, from its value bounds.
///
/// An operation is as wide as the widest of its result and its operands, so no step of it wraps:
/// `min(max(cast(token), 0), n)` of an i32 token stays i32, and one that leaves 32 bits anywhere
/// is computed in 64. Takes and keeps `Phase::Lowered`; afterwards `index` is gone, but for the
/// axis lengths of PARAM and BUFFER.
///
/// # Errors
///
/// `IndexTooWide` for what leaves 64 bits.
pub fn size_indices(graph: &mut Graph, root: Id, caps: &Caps) -> Result<Id, LowerError> {
    let widths = widths(graph, root, caps)?;
    let width = |n: Id| widths[n.index()];
    Ok(graph.rebuild(root, |graph, old, mut node| {
        let sources = graph[old].src.clone();
        match (node.op, width(old)) {
            // The lengths of the axes stay exact.
            (Op::Param | Op::Buffer, _) => return graph.intern(graph[old].clone()),
            (Op::After, _) => node.dtype = graph[node.src[0]].dtype,
            (Op::Const, Some(own)) => node.dtype = own,
            (Op::Cast, Some(own)) => return at_width(graph, node.src[0], own),
            _ => {}
        }
        let sized =
            node.op.is_arithmetic() || matches!(node.op, Op::Range | Op::Special | Op::Variable);
        let wide = sources.iter().filter_map(|&s| width(s)).chain(width(old)).max();
        let Some(wide) = wide.filter(|_| sized) else { return graph.intern(node) };
        for (s, &before) in node.src.iter_mut().zip(&sources) {
            if width(before).is_some() {
                *s = at_width(graph, *s, wide);
            }
        }
        match width(old) {
            Some(own) => {
                let n = graph.intern(Node { dtype: wide, ..node });
                at_width(graph, n, own)
            }
            // What was `index` may have become the very type that it is cast to.
            None if node.op == Op::Cast => graph.cast(node.src[0], node.dtype),
            None => graph.intern(node),
        }
    }))
}

/// The sized dtype of each `index` node, by id: the narrowest that holds its values.
fn widths(graph: &Graph, root: Id, caps: &Caps) -> Result<Vec<Option<DType>>, LowerError> {
    let mut bounds = Bounds::new();
    let mut widths: Vec<Option<DType>> = vec![None; root.index() + 1];
    for n in graph.reachable(root) {
        let node = &graph[n];
        if node.dtype != DType::Index {
            continue;
        }
        let interval = bounds.get(graph, n);
        let fits = |dtype| interval.within(Interval::of(dtype));
        if !fits(DType::I64) {
            return Err(LowerErrorKind::IndexTooWide { interval }.at(graph, n));
        }
        // A slice of the outermost range is handed over as 64-bit numbers.
        let thread = node.axis().is_some_and(|axis| axis.kind == AxisType::Thread);
        let own =
            if caps.narrow_index && fits(DType::I32) && !thread { DType::I32 } else { DType::I64 };
        // A loop variable is compared with its bound.
        let bound = matches!(node.op, Op::Range | Op::Special)
            .then(|| widths[node.src[0].index()])
            .flatten();
        widths[n.index()] = Some(bound.map_or(own, |bound| bound.max(own)));
    }
    Ok(widths)
}

/// `n` as a value of `dtype`, which holds it.
fn at_width(graph: &mut Graph, n: Id, dtype: DType) -> Id {
    match graph.as_const(n) {
        Some(value @ Const::Int(_)) => graph.constant(dtype, value),
        _ => graph.cast(n, dtype),
    }
}
