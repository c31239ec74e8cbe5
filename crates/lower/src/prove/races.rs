//! Whether two accesses can meet without an order (docs/ir.md, S4).
//!
//! Take two accesses of one buffer that conflict. Equating their addresses axis by axis gives
//! linear equations in the differences of the ranges that both have, and in what only one has.
//! Either some equation has no solution (they never meet), or the equations force every parallel
//! range to agree, so that they meet only within one parallel instance, where serial ranges and
//! edges order them. Failing both, a small search looks for two instances to show; failing that
//! too, the answer is unknown, which is an error unless the store carries the waiver.

use std::collections::BTreeSet;

use uop::{Arg, Bounds, Custom, Effect, Graph, Id, Instance, Interval, Op, Order, Relation};

use super::affine::Affine;
use super::{buffer_name, corners, describe, index_of, open_at, value_at};
use crate::error::{LowerError, LowerErrorKind};

/// Checks every pair of conflicting accesses of the kernel `root`.
///
/// # Errors
///
/// `Race` or `MaybeRace` for the first pair that is not proved.
pub fn check(graph: &Graph, root: Id) -> Result<(), LowerError> {
    let order = Order::of(graph, root);
    let accesses: Vec<Access> = graph
        .reachable(root)
        .into_iter()
        .flat_map(|n| graph[n].addresses().into_iter().map(move |address| (n, address)))
        .filter_map(|(node, address)| {
            let storage = graph.storage(address)?;
            Some(Access { node, address, storage })
        })
        .collect();
    let written: BTreeSet<Id> =
        accesses.iter().filter(|a| graph[a.node].is_effect()).map(|a| a.storage).collect();
    let mut prover = Prover { graph, order: &order, bounds: Bounds::new(), written: &written };
    for (i, a) in accesses.iter().enumerate() {
        for b in &accesses[i..] {
            if a.storage == b.storage && conflict(graph, a.node, b.node) {
                prover.pair(a, b)?;
            }
        }
    }
    Ok(())
}

/// One address of one access.
struct Access {
    node: Id,
    address: Id,
    storage: Id,
}

/// Whether the two would have to be ordered if they met: not both read, and not both the same
/// atomic on the same dtype. A waiver of either settles it.
fn conflict(graph: &Graph, a: Id, b: Id) -> bool {
    let waived = |n: Id| graph[n].access().is_some_and(|access| access.assume_disjoint);
    let atomic = |n: Id| match &graph[n].arg {
        Arg::Custom { custom: custom @ Custom::Atomic { dtype, .. }, .. } => {
            let Effect::Atomic(op) = custom.contract().effect;
            Some((op, *dtype))
        }
        _ => None,
    };
    let reads = graph[a].op == Op::Load && graph[b].op == Op::Load;
    let same_atomic = atomic(a).is_some() && atomic(a) == atomic(b);
    !(reads || same_atomic || waived(a) || waived(b))
}

/// What two instances are taken to agree on: ranges, by id.
type Equal = BTreeSet<Id>;

struct Prover<'g> {
    graph: &'g Graph,
    order: &'g Order,
    bounds: Bounds,
    written: &'g BTreeSet<Id>,
}

impl Prover<'_> {
    fn pair(&mut self, a: &Access, b: &Access) -> Result<(), LowerError> {
        let equations = self.equations(a, b);
        let regions = self.order.regions();
        let (left, right) = (regions.open(a.node), regions.open(b.node));
        let shared: Vec<Id> = left.iter().copied().filter(|r| right.contains(r)).collect();
        let parallel = |r: &Id| self.graph.axis(*r).kind.is_parallel();
        let mut forced = Equal::new();
        // A work-item has its BUFFERs to itself.
        if self.graph[a.storage].op == Op::Buffer {
            forced.extend(shared.iter().copied().filter(parallel));
        }
        let apart = match &equations {
            Some(equations) => self.solve(equations, &shared, &mut forced),
            None => false,
        };
        if apart {
            return Ok(());
        }
        let only_one = |r: &Id| !shared.contains(r);
        let all_agree =
            left.iter().chain(right).filter(|r| parallel(r)).all(|r| forced.contains(r))
                && !left.iter().chain(right).filter(|r| parallel(r)).any(only_one);
        if all_agree {
            let edge = a.node == b.node
                || self.order.reaches(a.node, b.node)
                || self.order.reaches(b.node, a.node);
            // Without an edge they must not meet at one point either.
            let mut same_point: Equal = shared.iter().copied().collect();
            if edge
                || equations
                    .is_some_and(|equations| self.solve(&equations, &shared, &mut same_point))
            {
                return Ok(());
            }
        }
        Err(self.refute(a, b))
    }

    /// The equations "the two addresses are one element": per axis if both look at the buffer
    /// through the same shape, else for the flat index. `None` if they cannot be written down.
    fn equations(&self, a: &Access, b: &Access) -> Option<Vec<(Affine, Affine)>> {
        let graph = self.graph;
        let (view, other) = (graph.shape(a.address)?, graph.shape(b.address)?);
        let indices = |access: &Access| {
            let address = index_of(self.graph, access.address);
            let forms = graph[address].src[1..].iter().map(|&i| Affine::of(graph, i));
            forms.collect::<Option<Vec<Affine>>>()
        };
        let (left, right) = (indices(a)?, indices(b)?);
        if view == other {
            return Some(left.into_iter().zip(right).collect());
        }
        let flat = |forms: Vec<Affine>, view: &[Id]| {
            let mut flat = Affine::default();
            for (form, &length) in forms.iter().zip(view) {
                flat = form.plus(&flat, graph.as_int(length)?)?;
            }
            Some(flat)
        };
        Some(vec![(flat(left, view)?, flat(right, other)?)])
    }

    /// Adds to `equal` the ranges that the equations force to agree; true if there is no solution.
    fn solve(&mut self, equations: &[(Affine, Affine)], shared: &[Id], equal: &mut Equal) -> bool {
        loop {
            let known = equal.len();
            for (left, right) in equations {
                let Some(equation) = self.equation(left, right, shared, equal) else {
                    continue;
                };
                if equation.has_no_solution() {
                    return true;
                }
                equal.extend(equation.forced());
            }
            if equal.len() == known {
                return false;
            }
        }
    }

    /// `left - right = 0` where the ranges of `equal` agree, in as few unknowns as possible.
    fn equation(
        &mut self,
        left: &Affine,
        right: &Affine,
        shared: &[Id],
        equal: &Equal,
    ) -> Option<Equation> {
        let mut equation =
            Equation { constant: left.constant.checked_sub(right.constant)?, unknowns: Vec::new() };
        let coefficient = |form: &Affine, atom: Id| {
            form.terms.iter().find(|(a, _)| *a == atom).map_or(0, |&(_, c)| c)
        };
        let atoms: BTreeSet<Id> =
            left.terms.iter().chain(&right.terms).map(|&(atom, _)| atom).collect();
        for atom in atoms {
            let (c, d) = (coefficient(left, atom), coefficient(right, atom));
            let range = self.bounds.get(self.graph, atom);
            let agrees = self.agrees(atom, equal);
            if agrees {
                // One unknown on both sides.
                if c != d {
                    equation.add(None, c.checked_sub(d)?, range);
                }
            } else if c == d && shared.contains(&atom) {
                // Only the difference of the two values matters.
                let width = range.hi - range.lo;
                equation.add(Some(atom), c, Interval::new(-width, width));
            } else {
                equation.add(None, c, range);
                equation.add(None, d.checked_neg()?, range);
            }
        }
        Some(equation)
    }

    /// Whether `atom` has one value at any two instances that agree on `equal`.
    fn agrees(&self, atom: Id, equal: &Equal) -> bool {
        let fixed = |n: Id| {
            let storage = self.graph.storage(self.graph[n].src.first().copied().unwrap_or(n));
            self.graph[n].op != Op::Load || storage.is_some_and(|s| !self.written.contains(&s))
        };
        self.order.regions().open(atom).iter().all(|r| equal.contains(r))
            && self.graph.reachable(atom).into_iter().all(fixed)
    }

    /// The error for a pair that is not proved: with two instances if a search finds some.
    fn refute(&mut self, a: &Access, b: &Access) -> LowerError {
        let graph = self.graph;
        let buffer = buffer_name(graph, a.storage);
        if let Some((v, w)) = self.witness(a, b) {
            let index = index_of(self.graph, a.address);
            let left = self.order.regions().open(a.node);
            let element: Vec<String> = graph[index].src[1..]
                .iter()
                .filter_map(|&i| value_at(graph, &self.bounds, left, &v, i))
                .map(|i| i.to_string())
                .collect();
            return LowerError {
                node: graph.origin(a.node),
                kind: LowerErrorKind::Race {
                    buffer,
                    at: describe(graph, self.order, left, &v),
                    other: graph.origin(b.node),
                    other_at: describe(graph, self.order, self.order.regions().open(b.node), &w),
                    element: element.join(", ").into(),
                },
            };
        }
        let data = [a, b].into_iter().find_map(|access| {
            let index = index_of(self.graph, access.address);
            let indices = graph[index].src[1..].iter();
            indices.flat_map(|&i| graph.reachable(i)).find(|&n| graph[n].op == Op::Load)
        });
        LowerError {
            node: graph.origin(a.node),
            kind: LowerErrorKind::MaybeRace {
                buffer,
                other: graph.origin(b.node),
                data: data.map(|n| graph.origin(n)),
            },
        }
    }

    /// Two instances that meet without an order, if a small search over corners finds some.
    fn witness(&mut self, a: &Access, b: &Access) -> Option<(Vec<i128>, Vec<i128>)> {
        let graph = self.graph;
        let regions = self.order.regions();
        let (left, right) = (regions.open(a.node), regions.open(b.node));
        if graph.shape(a.address)? != graph.shape(b.address)? {
            return None;
        }
        let indices = |address: Id| &graph[index_of(self.graph, address)].src[1..];
        let (i, j) = (indices(a.address), indices(b.address));
        let elements = |bounds: &Bounds, ranges: &[Id], point: &[i128], gate, indices: &[Id]| {
            if !open_at(graph, bounds, ranges, point, gate) {
                return None;
            }
            let values = indices.iter().map(|&i| value_at(graph, bounds, ranges, point, i));
            values.collect::<Option<Vec<i128>>>()
        };
        let mut found = Vec::new();
        for point in corners(graph, &mut self.bounds, left)? {
            if let Some(element) = elements(&self.bounds, left, &point, graph[a.node].gate(), i) {
                found.push((point, element));
            }
        }
        for w in corners(graph, &mut self.bounds, right)? {
            let Some(element) = elements(&self.bounds, right, &w, graph[b.node].gate(), j) else {
                continue;
            };
            for (v, other) in &found {
                let same_instance = a.node == b.node && *v == w;
                let (first, second) =
                    (Instance { node: a.node, point: v }, Instance { node: b.node, point: &w });
                if *other == element
                    && !same_instance
                    && self.order.relation(first, second) == Relation::Unordered
                {
                    return Some((v.clone(), w));
                }
            }
        }
        None
    }
}

/// `constant + Σ coefficient · unknown = 0`, each unknown within an interval.
struct Equation {
    constant: i128,
    unknowns: Vec<Unknown>,
}

struct Unknown {
    /// The range whose difference this is, if it is one.
    difference: Option<Id>,
    coefficient: i128,
    interval: Interval,
}

impl Equation {
    fn add(&mut self, difference: Option<Id>, coefficient: i128, interval: Interval) {
        if coefficient != 0 {
            self.unknowns.push(Unknown { difference, coefficient, interval });
        }
    }

    /// The values that the sum of `unknowns` can have.
    fn span<'a>(unknowns: impl Iterator<Item = &'a Unknown>) -> Interval {
        unknowns.fold(Interval::exactly(0), |sum, u| {
            let term = u.interval.scaled(u.coefficient);
            Interval::new(sum.lo.saturating_add(term.lo), sum.hi.saturating_add(term.hi))
        })
    }

    /// Whether the constant is out of reach, or no multiple of the coefficients' common divisor.
    fn has_no_solution(&self) -> bool {
        let span = Equation::span(self.unknowns.iter());
        let gcd = self.unknowns.iter().fold(0u128, |g, u| gcd(g, u.coefficient.unsigned_abs()));
        let target = self.constant.unsigned_abs();
        span.lo > -self.constant
            || -self.constant > span.hi
            || (gcd > 0 && !target.is_multiple_of(gcd))
    }

    /// The ranges whose difference is 0 in every solution: from the largest coefficient down, one
    /// step of the unknown outweighs all that the smaller ones can do.
    fn forced(&self) -> Vec<Id> {
        let mut unknowns: Vec<&Unknown> = self.unknowns.iter().collect();
        unknowns.sort_by_key(|u| std::cmp::Reverse(u.coefficient.unsigned_abs()));
        let mut forced = Vec::new();
        for (at, u) in unknowns.iter().enumerate() {
            let rest = Equation::span(unknowns[at + 1..].iter().copied());
            let reach = rest.lo.unsigned_abs().max(rest.hi.unsigned_abs());
            let reach = reach.saturating_add(self.constant.unsigned_abs());
            match u.difference {
                Some(r) if u.coefficient.unsigned_abs() > reach => forced.push(r),
                _ => break,
            }
        }
        forced
    }
}

/// The greatest common divisor.
fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
