use uop::{DType, Graph, Id, Node, Op};

use crate::caps::Caps;
use crate::error::LowerError;

/// Computes on floats of 16 bits in f32: operands are widened, and the result is rounded once (S7).
///
/// Takes and keeps `Phase::Lowered`; afterwards floats of 16 bits are loaded, stored, chosen by
/// WHERE, and converted from and to f32, and nothing else. Never fails.
pub fn widen_halves(graph: &mut Graph, root: Id, _: &Caps) -> Result<Id, LowerError> {
    Ok(graph.rebuild(root, |graph, _, mut node| {
        let is_half = |graph: &Graph, n: Id| graph[n].dtype.is_half();
        let halves = node.dtype.is_half() || node.src.iter().any(|&s| is_half(graph, s));
        if !node.op.is_arithmetic() || node.op == Op::Where || !halves {
            return graph.intern(node);
        }
        for s in &mut node.src {
            if is_half(graph, *s) {
                *s = graph.cast(*s, DType::F32);
            }
        }
        let dtype = node.dtype;
        let single = if dtype.is_half() { DType::F32 } else { dtype };
        let value = match node.op {
            Op::Cast => graph.cast(node.src[0], single),
            _ => graph.intern(Node { dtype: single, ..node }),
        };
        graph.cast(value, dtype)
    }))
}
