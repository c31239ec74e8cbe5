use uop::{Graph, Id, Op};

use super::without;
use crate::caps::Caps;
use crate::error::LowerError;

/// Replaces each range of extent 1 by its only value, 0.
///
/// Takes and keeps `Phase::Proved`; afterwards no RANGE has a constant bound of 1. Never fails.
pub fn drop_unit_ranges(graph: &mut Graph, root: Id, _: &Caps) -> Result<Id, LowerError> {
    Ok(graph.rebuild(root, |graph, _, node| match node.op {
        Op::Range if graph.as_int(node.src[0]) == Some(1) => graph.index(0),
        // What was a range is now a constant among the dependencies.
        Op::End | Op::After => without(graph, node, Op::Const),
        _ => graph.intern(node),
    }))
}
