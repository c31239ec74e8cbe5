use uop::{Graph, Id, Node, Op, Sources};

use crate::caps::Caps;
use crate::error::LowerError;

/// Replaces every address by the PARAM or BUFFER itself and one flat, row-major index.
///
/// A RESHAPE keeps the flat index, so views vanish with it. Takes `Phase::Placed`, leaves
/// `Phase::Lowered`; afterwards no RESHAPE is reachable and each INDEX has one index. Never fails.
pub fn flatten_addresses(graph: &mut Graph, root: Id, _: &Caps) -> Result<Id, LowerError> {
    Ok(graph.rebuild(root, |graph, _, node| {
        if node.op != Op::Index {
            return graph.intern(node);
        }
        let (base, deps) = base_and_deps(graph, node.src[0]);
        let view: Sources =
            graph.shape(node.src[0]).expect("the verifier rejects an index of no view").into();
        let mut flat = graph.index(0);
        for (&i, &length) in node.src[1..].iter().zip(&view) {
            let scaled = graph.op(Op::Mul, &[flat, length]);
            flat = graph.op(Op::Add, &[scaled, i]);
        }
        let base = if deps.is_empty() {
            base
        } else {
            let src: Sources = std::iter::once(base).chain(deps).collect();
            graph.op(Op::After, &src)
        };
        graph.intern(Node::new(Op::Index, node.dtype, [base, flat]))
    }))
}

/// The storage under a view, and everything that the view comes after.
fn base_and_deps(graph: &Graph, view: Id) -> (Id, Sources) {
    let mut n = view;
    let mut deps = Sources::new();
    loop {
        match graph[n].op {
            Op::After => deps.extend_from_slice(&graph[n].src[1..]),
            Op::Reshape => {}
            _ => break,
        }
        n = graph[n].src[0];
    }
    deps.sort_unstable();
    deps.dedup();
    (n, deps)
}
