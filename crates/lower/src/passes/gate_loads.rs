use uop::{Const, DType, Graph, Id, Op};

use super::add_gate;
use crate::caps::Caps;
use crate::error::LowerError;

/// Gates each LOAD that is used only as one arm of one WHERE by that WHERE's condition (S2).
///
/// Takes and keeps `Phase::Built`. Never fails.
pub fn gate_loads(graph: &mut Graph, root: Id, _: &Caps) -> Result<Id, LowerError> {
    let mut uses = vec![0usize; root.index() + 1];
    for n in graph.reachable(root) {
        for s in &graph[n].src {
            uses[s.index()] += 1;
        }
    }
    let arms = |graph: &Graph, old: Id| -> [bool; 2] {
        let src = &graph[old].src;
        [1, 2].map(|arm| uses[src[arm].index()] == 1 && graph[src[arm]].op == Op::Load)
    };
    Ok(graph.rebuild(root, |graph, old, mut node| {
        if node.op == Op::Where {
            let [then, otherwise] = arms(graph, old);
            let cond = node.src[0];
            if then {
                node.src[1] = gated(graph, node.src[1], cond);
            }
            if otherwise {
                let no = graph.constant(DType::Bool, Const::Bool(false));
                let not = graph.op(Op::CmpEq, &[cond, no]);
                node.src[2] = gated(graph, node.src[2], not);
            }
        }
        graph.intern(node)
    }))
}

/// `load` with `cond` added to its gate.
fn gated(graph: &mut Graph, load: Id, cond: Id) -> Id {
    let mut node = graph[load].clone();
    add_gate(graph, &mut node, cond);
    graph.intern(node)
}
