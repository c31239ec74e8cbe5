use uop::{Graph, Id, Op, Regions};

use super::{add_gate, not};
use crate::caps::Caps;
use crate::error::LowerError;

/// Gates each LOAD that is used only as one arm of one WHERE by that WHERE's condition, if the
/// condition is open in no more ranges than the LOAD (S2).
///
/// Takes and keeps `Phase::Built`. Never fails.
pub fn gate_loads(graph: &mut Graph, root: Id, _: &Caps) -> Result<Id, LowerError> {
    let regions = Regions::of(graph, root);
    let mut uses = vec![0usize; root.index() + 1];
    for n in graph.reachable(root) {
        for s in &graph[n].src {
            uses[s.index()] += 1;
        }
    }
    Ok(graph.rebuild(root, |graph, old, mut node| {
        if node.op == Op::Where {
            let before = graph[old].src.clone();
            let inside = |load: Id| {
                let open = regions.open(load);
                regions.open(before[0]).iter().all(|r| open.contains(r))
            };
            for arm in [1, 2] {
                let load = before[arm];
                if graph[load].op != Op::Load || uses[load.index()] != 1 || !inside(load) {
                    continue;
                }
                let mut gated = graph[node.src[arm]].clone();
                let test = if arm == 1 { node.src[0] } else { not(graph, node.src[0]) };
                add_gate(graph, &mut gated, test);
                node.src[arm] = graph.intern(gated);
            }
        }
        graph.intern(node)
    }))
}
