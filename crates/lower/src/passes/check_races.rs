use uop::{Graph, Id};

use crate::caps::Caps;
use crate::error::LowerError;
use crate::prove::races;

/// Refuses a kernel in which two conflicting accesses may meet without an order (S4).
///
/// Takes and keeps `Phase::Proved` with one binder per range; changes nothing.
///
/// # Errors
///
/// `Race` with two instances and the element they share; `MaybeRace` for what cannot be proved
/// apart and is not waived.
pub fn check_races(graph: &mut Graph, root: Id, _: &Caps) -> Result<Id, LowerError> {
    races::check(graph, root)?;
    Ok(root)
}
