use uop::{Bounds, DType, Graph, Id, Interval, Node, Op, Sources};

use crate::caps::Caps;
use crate::error::LowerError;

/// Replaces every address by the PARAM or BUFFER itself and one flat, row-major index.
///
/// A RESHAPE keeps the flat index, so views vanish with it. An index that may be anything while its
/// gate is false is clipped to its axis if the flat one might leave 64 bits. Takes `Phase::Placed`, leaves
/// `Phase::Lowered`; afterwards no RESHAPE is reachable and each INDEX has one index. Never fails.
pub fn flatten_addresses(graph: &mut Graph, root: Id, _: &Caps) -> Result<Id, LowerError> {
    let mut bounds = Bounds::new();
    Ok(graph.rebuild(root, |graph, _, node| {
        if node.op != Op::Index {
            return graph.intern(node);
        }
        let (mut base, deps) = base_and_deps(graph, node.src[0]);
        let view: Sources =
            graph.shape(node.src[0]).expect("the verifier rejects an index of no view").into();
        let mut flat = flatten(graph, &node.src[1..], &view);
        // The wide indices first, and if that does not do, all.
        for only_wide in [true, false] {
            if bounds.get(graph, flat).within(Interval::of(DType::I64)) {
                break;
            }
            let mut indices = Sources::new();
            for (&i, &length) in node.src[1..].iter().zip(&view) {
                let narrow = bounds.get(graph, i).within(Interval::of(DType::I32));
                let stays = only_wide && narrow;
                indices.push(if stays { i } else { clip(graph, i, length) });
            }
            flat = flatten(graph, &indices, &view);
        }
        if !deps.is_empty() {
            let src: Sources = std::iter::once(base).chain(deps).collect();
            base = graph.op(Op::After, &src);
        }
        graph.intern(Node::new(Op::Index, node.dtype, [base, flat]))
    }))
}

/// The row-major number of the element at `indices` of `view`.
fn flatten(graph: &mut Graph, indices: &[Id], view: &[Id]) -> Id {
    let zero = graph.index(0);
    indices.iter().zip(view).fold(zero, |flat, (&i, &length)| {
        let scaled = graph.op(Op::Mul, &[flat, length]);
        graph.op(Op::Add, &[scaled, i])
    })
}

/// `i` moved into `0..length`, where an access that happens has it.
fn clip(graph: &mut Graph, i: Id, length: Id) -> Id {
    let (zero, one) = (graph.index(0), graph.index(1));
    let last = graph.op(Op::Sub, &[length, one]);
    // With no element there is no access; an unsigned index is not compared with -1.
    let last = graph.op(Op::Max, &[last, zero]);
    let above = graph.op(Op::Max, &[i, zero]);
    graph.op(Op::Min, &[above, last])
}

/// The storage under a view, and everything that the view comes after.
fn base_and_deps(graph: &Graph, view: Id) -> (Id, Sources) {
    let mut n = view;
    let mut deps = Sources::new();
    while let Node { op: op @ (Op::After | Op::Reshape), src, .. } = &graph[n] {
        // What follows the base of a RESHAPE are lengths.
        if *op == Op::After {
            deps.extend_from_slice(&src[1..]);
        }
        n = src[0];
    }
    deps.sort_unstable();
    deps.dedup();
    (n, deps)
}
