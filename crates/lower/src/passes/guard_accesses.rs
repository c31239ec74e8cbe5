use uop::{Arg, Bounds, Graph, Id, Op, Order};

use super::{add_gate, not};
use crate::caps::Caps;
use crate::error::LowerError;
use crate::prove::affine::Affine;
use crate::prove::bounds::{Missing, missing};
use crate::prove::strip_after;

/// Proves each access in bounds, or adds the missing part of the proof to its gate (S8).
///
/// Takes `Phase::Built`, leaves `Phase::Proved`; afterwards every access is marked `inbounds`:
/// whenever its gate is true, every index is within its axis, and so are all elements of a footprint.
///
/// # Errors
///
/// `OutOfBounds` with a witness, for an access that certainly leaves its buffer.
pub fn guard_accesses(graph: &mut Graph, root: Id, _: &Caps) -> Result<Id, LowerError> {
    let order = Order::of(graph, root);
    let mut bounds = Bounds::new();
    let forms = Affine::all(graph, root);
    let mut tests: Vec<Vec<Missing>> = vec![Vec::new(); root.index() + 1];
    for n in graph.reachable(root) {
        tests[n.index()] = missing(graph, &mut bounds, &order, &forms, n)?;
    }
    Ok(graph.rebuild(root, |graph, old, mut node| {
        if !node.is_access() {
            return graph.intern(node);
        }
        for missing in &tests[old.index()] {
            let address = strip_after(graph, node.addresses()[missing.address]);
            let index = graph[address].src[1 + missing.axis];
            let length = graph.shape(address).expect("an address has a view")[missing.axis];
            if missing.below {
                let zero = graph.index(0);
                let negative = graph.op(Op::CmpLt, &[index, zero]);
                let test = not(graph, negative);
                add_gate(graph, &mut node, test);
            }
            if missing.above {
                let last = match missing.more {
                    0 => index,
                    more => {
                        let more = graph.index(more);
                        graph.op(Op::Add, &[index, more])
                    }
                };
                let test = graph.op(Op::CmpLt, &[last, length]);
                add_gate(graph, &mut node, test);
            }
        }
        if let Arg::Access(access) | Arg::Custom { access, .. } = &mut node.arg {
            access.inbounds = true;
        }
        graph.intern(node)
    }))
}
