//! The pipeline: every step from a built graph to a [`Program`], in order.

use uop::verify::Phase;
use uop::{Graph, Id};

use crate::caps::Caps;
use crate::error::LowerError;
use crate::passes::*;
use crate::program::Program;

/// A step from graph to graph.
pub struct Pass {
    /// Its name, a verb.
    pub name: &'static str,
    /// From a root to the root that replaces it.
    pub run: fn(&mut Graph, Id, &Caps) -> Result<Id, LowerError>,
    /// What holds after it.
    pub after: Phase,
}

/// All passes. Those up to `check-races` work on the kernel as written and refuse what is wrong
/// with it; those that follow refuse only what no target can run, or not this one.
pub const PASSES: &[Pass] = &[
    Pass { name: "inline-customs", run: inline_customs, after: Phase::Built },
    Pass { name: "gate-loads", run: gate_loads, after: Phase::Built },
    Pass { name: "split-ranges", run: split_ranges, after: Phase::Built },
    Pass { name: "guard-accesses", run: guard_accesses, after: Phase::Proved },
    Pass { name: "check-races", run: check_races, after: Phase::Proved },
    Pass { name: "drop-unit-ranges", run: drop_unit_ranges, after: Phase::Proved },
    Pass { name: "pin-accesses", run: pin_accesses, after: Phase::Proved },
    Pass { name: "simplify", run: simplify, after: Phase::Proved },
    Pass { name: "place-axes", run: place_axes, after: Phase::Placed },
    Pass { name: "flatten-addresses", run: flatten_addresses, after: Phase::Lowered },
    Pass { name: "simplify-again", run: simplify, after: Phase::Lowered },
    Pass { name: "size-indices", run: size_indices, after: Phase::Lowered },
    Pass { name: "widen-halves", run: widen_halves, after: Phase::Lowered },
];

/// Lowers the verified kernel `sink` for a target with `caps`.
///
/// # Errors
///
/// The first thing that a pass refuses; its node is one of `graph`.
///
/// # Panics
///
/// Perhaps, if the verifier has something to say about `sink`.
pub fn lower(graph: &Graph, sink: Id, caps: &Caps) -> Result<Program, LowerError> {
    lower_observed(graph, sink, caps, |_, _, _| {})
}

/// [`lower`], showing `observe` the graph and its root after each pass, the pass in hand. The
/// caller dumps, times and verifies there.
///
/// # Errors
///
/// As [`lower`].
///
/// # Panics
///
/// As [`lower`].
pub fn lower_observed(
    graph: &Graph,
    sink: Id,
    caps: &Caps,
    mut observe: impl FnMut(&Pass, &Graph, Id),
) -> Result<Program, LowerError> {
    let (mut work, mut root) = graph.canonical(sink);
    let (params, variables) = (work.params(root), work.variables(root));
    for pass in PASSES {
        root = (pass.run)(&mut work, root, caps)?;
        observe(pass, &work, root);
    }
    linearize(&work, root, &params, &variables, caps)
}
