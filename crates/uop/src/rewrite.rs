//! The rewrite engine: named rules, applied bottom-up until none fires.

use thiserror::Error;

use crate::bounds::{Bounds, Interval};
use crate::graph::{Graph, Id};
use crate::op::Op;

/// What a rule may look at and build with.
#[derive(Debug)]
pub struct Rewriter<'g> {
    /// The graph that is rewritten.
    pub graph: &'g mut Graph,
    bounds: Bounds,
}

impl Rewriter<'_> {
    /// The value bounds of `n`.
    pub fn bounds(&mut self, n: Id) -> Interval {
        self.bounds.get(self.graph, n)
    }

    /// The sources of `n`, a node with two.
    pub fn binary(&self, n: Id) -> Option<(Id, Id)> {
        match self.graph[n].src.as_slice() {
            &[x, y] => Some((x, y)),
            _ => None,
        }
    }
}

/// A rewrite rooted at one op. Its result means the same and is smaller by the measure stated
/// above the list that the rule is in.
pub struct Rule {
    /// The name, for reports.
    pub name: &'static str,
    /// The ops it looks at.
    pub roots: &'static [Op],
    /// The replacement of a node, if the rule applies to it.
    pub apply: fn(&mut Rewriter<'_>, Id) -> Option<Id>,
}

impl Rule {
    /// A rule of these parts.
    pub const fn new(
        name: &'static str,
        roots: &'static [Op],
        apply: fn(&mut Rewriter<'_>, Id) -> Option<Id>,
    ) -> Rule {
        Rule { name, roots, apply }
    }
}

/// The rules fired more often than the graph's size can explain: they undo one another.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("rewriting does not end; the last rules were {}", .last.join(", "))]
pub struct OutOfFuel {
    /// The rules that fired last, newest last.
    pub last: Vec<&'static str>,
}

/// Firings allowed for each node of the graph.
const FUEL_PER_NODE: usize = 64;

/// Rewrites what `root` depends on with `rules` until none applies; returns the new root.
///
/// # Errors
///
/// [`OutOfFuel`] if that takes more than 64 firings for each node, which names a fault of the rules.
pub fn rewrite(graph: &mut Graph, root: Id, rules: &[Rule]) -> Result<Id, OutOfFuel> {
    let fuel = FUEL_PER_NODE * (graph.reachable(root).len() + 1);
    let mut fired: Vec<&'static str> = Vec::new();
    let mut bounds = Bounds::new();
    let mut root = root;
    loop {
        let before = root;
        root = graph.rebuild(root, |graph, _, node| {
            let mut n = graph.intern(node);
            let mut cx = Rewriter { graph, bounds: std::mem::take(&mut bounds) };
            while fired.len() < fuel {
                let op = cx.graph[n].op;
                let hit = rules.iter().filter(|rule| rule.roots.contains(&op)).find_map(|rule| {
                    let m = (rule.apply)(&mut cx, n)?;
                    (m != n).then_some((rule.name, m))
                });
                let Some((name, m)) = hit else { break };
                fired.push(name);
                n = m;
            }
            bounds = cx.bounds;
            n
        });
        if fired.len() >= fuel {
            return Err(OutOfFuel { last: fired.split_off(fired.len().saturating_sub(8)) });
        }
        if root == before {
            return Ok(root);
        }
    }
}
