use uop::{Graph, Id};

use crate::caps::Caps;
use crate::error::{LowerError, LowerErrorKind};

/// Applies the target-independent rules of [`uop::simplify`].
///
/// Takes and keeps any phase. Accesses keep their instances because `pin-accesses` has made their
/// regions explicit.
///
/// # Errors
///
/// `OutOfFuel`, which is a fault of the rules.
pub fn simplify(graph: &mut Graph, root: Id, _: &Caps) -> Result<Id, LowerError> {
    uop::simplify::simplify(graph, root)
        .map_err(|fuel| LowerErrorKind::OutOfFuel(fuel).at(graph, root))
}
