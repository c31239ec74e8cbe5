//! Whether two accesses can meet without an order (docs/ir.md, S4).
//!
//! Take two accesses of one buffer that conflict. Equating their addresses axis by axis gives
//! linear equations in the differences of the ranges that both have, and in what only one has.
//! Either some equation has no solution (they never meet), or the equations force every parallel
//! range to agree, so that they meet only within one parallel instance, where serial ranges and
//! edges order them. Failing both, a small search looks for two instances to show; failing that
//! too, the answer is unknown, which is an error unless the store carries the waiver.

use std::collections::BTreeSet;

use uop::{Bounds, Graph, Id, Instance, Interval, Op, Order, Relation, conflict};

use super::affine::Affine;
use super::{buffer_name, describe, instances, strip_after};
use crate::error::{LowerError, LowerErrorKind};

/// Checks every pair of conflicting accesses of the kernel `root`.
///
/// # Errors
///
/// `Race` or `MaybeRace` for the first pair that is not proved.
pub fn check(graph: &Graph, root: Id) -> Result<(), LowerError> {
    let order = Order::of(graph, root);
    let mut bounds = Bounds::new();
    let mut accesses: Vec<Access> = Vec::new();
    for node in graph.reachable(root) {
        // A gate that is never true: no access.
        let Some(facts) = bounds.facts(graph, graph[node].gate()) else { continue };
        for (address, elements) in graph[node].pointers() {
            let storage = graph.storage(address);
            let storage = storage.expect("the verifier rejects an address of no buffer");
            let open = order.regions().open(node).iter();
            let at = open.map(|&r| (r, bounds.given(graph, &facts, r))).collect();
            accesses.push(Access { node, address, elements, storage, at });
        }
    }
    let written: BTreeSet<Id> =
        accesses.iter().filter(|a| graph[a.node].is_effect()).map(|a| a.storage).collect();
    let forms = Affine::all(graph, root);
    let waived = |n: Id| graph[n].access().is_some_and(|access| access.assume_disjoint);
    for (i, a) in accesses.iter().enumerate() {
        for b in &accesses[i..] {
            let waived = waived(a.node) || waived(b.node);
            if a.storage == b.storage && conflict(graph, a.node, b.node) && !waived {
                let (order, bounds, forms, written) = (&order, &mut bounds, &forms, &written);
                Pair { graph, order, bounds, forms, written, a, b }.check()?;
            }
        }
    }
    Ok(())
}

/// One address of one access.
struct Access {
    node: Id,
    address: Id,
    /// How many elements in a row it touches.
    elements: i128,
    storage: Id,
    /// Where its ranges lie when its gate is true.
    at: Vec<(Id, Interval)>,
}

impl Access {
    /// Where the range `r` lies, if it is one of its own.
    fn range(&self, r: Id) -> Option<Interval> {
        self.at.iter().find(|(range, _)| *range == r).map(|&(_, interval)| interval)
    }

    /// The index of each axis.
    fn indices<'g>(&self, graph: &'g Graph) -> &'g [Id] {
        &graph[strip_after(graph, self.address)].src[1..]
    }
}

/// What two instances are taken to agree on: ranges, by id.
type Equal = BTreeSet<Id>;

/// Two accesses that conflict, and what is known of the kernel.
struct Pair<'g> {
    graph: &'g Graph,
    order: &'g Order,
    bounds: &'g mut Bounds,
    /// The normal form of each node, by id.
    forms: &'g [Option<Affine>],
    written: &'g BTreeSet<Id>,
    a: &'g Access,
    b: &'g Access,
}

/// "The two addresses are one element": forms that are equal then.
type Equations = Vec<(Affine, Affine)>;

impl Pair<'_> {
    fn check(&mut self) -> Result<(), LowerError> {
        let (order, a, b) = (self.order, self.a, self.b);
        let [left, right] = [a, b].map(|access| order.regions().open(access.node));
        let parallel = |r: &&Id| self.graph.axis(**r).kind.is_parallel();
        let shared = |r: &&Id| left.contains(r) && right.contains(r);
        let mut forced = Equal::new();
        for &r in left.iter().filter(shared) {
            // A range with one value on both sides agrees, and a work-item has its BUFFERs to
            // itself.
            let [v, w] = [a, b].map(|access| access.range(r).and_then(Interval::single));
            let private = self.graph[a.storage].op == Op::Buffer && parallel(&&r);
            if private || v.is_some() && v == w {
                forced.insert(r);
            }
        }
        let mut parallel = left.iter().chain(right).filter(parallel);
        let equations = self.equations().unwrap_or_default();
        if self.solve(&equations, &mut forced) {
            return Ok(());
        }
        if parallel.all(|r| forced.contains(r)) {
            let edge = if a.node == b.node {
                a.address == b.address
            } else {
                order.reaches(a.node, b.node) || order.reaches(b.node, a.node)
            };
            // Without an edge they must not meet at one point either.
            let mut same_point: Equal = left.iter().filter(shared).copied().collect();
            if edge || self.solve(&equations, &mut same_point) {
                return Ok(());
            }
        }
        Err(self.refute())
    }

    /// The equations, per axis if both look at the buffer through the same shape, else for the
    /// flat index. `None` if they cannot be written down.
    fn equations(&self) -> Option<Equations> {
        let (graph, a, b) = (self.graph, self.a, self.b);
        let form = |i: &Id| self.forms[i.index()].as_ref();
        let (view, other) = (graph.shape(a.address)?, graph.shape(b.address)?);
        if view == other {
            let pairs = a.indices(graph).iter().zip(b.indices(graph));
            return pairs.map(|(i, j)| Some((form(i)?.clone(), form(j)?.clone()))).collect();
        }
        let flat = |access: &Access, view: &[Id]| {
            let pairs = access.indices(graph).iter().zip(view);
            pairs.into_iter().try_fold(Affine::default(), |flat, (i, &length)| {
                form(i)?.plus(&flat, graph.as_int(length)?)
            })
        };
        Some(vec![(flat(a, view)?, flat(b, other)?)])
    }

    /// Adds to `equal` the ranges that the equations force to agree; true if there is no solution.
    fn solve(&mut self, equations: &Equations, equal: &mut Equal) -> bool {
        loop {
            let known = equal.len();
            for (axis, (left, right)) in equations.iter().enumerate() {
                let Some(mut equation) = self.equation(left, right, equal) else { continue };
                // Elements in a row are those of the last axis.
                if axis + 1 == equations.len() {
                    equation.add(None, 1, Interval::new(0, self.a.elements - 1));
                    equation.add(None, -1, Interval::new(0, self.b.elements - 1));
                }
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
    fn equation(&mut self, left: &Affine, right: &Affine, equal: &Equal) -> Option<Equation> {
        let mut equation =
            Equation { constant: left.constant.checked_sub(right.constant)?, unknowns: Vec::new() };
        let atoms: BTreeSet<Id> =
            left.terms.iter().chain(&right.terms).map(|&(atom, _)| atom).collect();
        for atom in atoms {
            let (c, d) = (left.coefficient(atom), right.coefficient(atom));
            let anywhere = self.bounds.get(self.graph, atom);
            let (v, w) = (self.a.range(atom), self.b.range(atom));
            if self.agrees(atom, equal) {
                // One unknown on both sides.
                if c != d {
                    equation.add(None, c.checked_sub(d)?, v.or(w).unwrap_or(anywhere));
                }
            } else if let (Some(v), Some(w)) = (v, w)
                && c == d
            {
                // Only the difference of the two values matters.
                equation.add(Some(atom), c, v.plus(w.negated()));
            } else {
                equation.add(None, c, v.unwrap_or(anywhere));
                equation.add(None, d.checked_neg()?, w.unwrap_or(anywhere));
            }
        }
        Some(equation)
    }

    /// Whether `atom` has one value at any two instances that agree on `equal`.
    fn agrees(&self, atom: Id, equal: &Equal) -> bool {
        let fixed = |n: Id| {
            let storage = self.graph.storage(self.graph[n].src.first().copied().unwrap_or(n));
            !self.graph[n].is_access()
                || self.graph[n].op == Op::Load
                    && storage.is_some_and(|s| !self.written.contains(&s))
        };
        self.order.regions().open(atom).iter().all(|r| equal.contains(r))
            && self.graph.reachable(atom).into_iter().all(fixed)
    }

    /// The error for a pair that is not proved: with two instances if a search finds some.
    fn refute(&mut self) -> LowerError {
        let (graph, order, a, b) = (self.graph, self.order, self.a, self.b);
        let buffer = buffer_name(graph, a.storage);
        let other = graph.origin(b.node);
        let kind = if let Some([v, w, element]) = self.witness() {
            let element: Vec<String> = element.iter().map(i128::to_string).collect();
            LowerErrorKind::Race {
                buffer,
                at: describe(graph, order, order.regions().open(a.node), &v),
                other,
                other_at: describe(graph, order, order.regions().open(b.node), &w),
                element: element.join(", ").into(),
            }
        } else {
            let mut indices = [a, b].into_iter().flat_map(|access| access.indices(graph));
            let access = |&i: &Id| graph.reachable(i).into_iter().find(|&n| graph[n].is_access());
            let data = indices.find_map(access).map(|n| graph.origin(n));
            LowerErrorKind::MaybeRace { buffer, other, data }
        };
        kind.at(graph, a.node)
    }

    /// Two instances that meet without an order, and the element that the first touches, if a small
    /// search over corners finds some.
    fn witness(&mut self) -> Option<[Vec<i128>; 3]> {
        let (graph, order, a, b) = (self.graph, self.order, self.a, self.b);
        if graph.shape(a.address)? != graph.shape(b.address)? {
            return None;
        }
        let [left, right] = [a, b].map(|access| {
            let (node, indices) = (access.node, access.indices(graph));
            let ranges = order.regions().open(node);
            instances(graph, self.bounds, ranges, node, indices).collect::<Vec<_>>()
        });
        for (w, other) in &right {
            let meets = |element: &[i128]| match (element.split_last(), other.split_last()) {
                (Some((i, rest)), Some((j, others))) => {
                    rest == others && *i < j + b.elements && *j < i + a.elements
                }
                _ => element == other,
            };
            for (v, element) in &left {
                let same_instance = a.node == b.node && v == w;
                let (first, second) =
                    (Instance { node: a.node, point: v }, Instance { node: b.node, point: w });
                if meets(element)
                    && !same_instance
                    && order.relation(first, second) == Relation::Unordered
                {
                    return Some([v.clone(), w.clone(), element.clone()]);
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
        if coefficient != 0 && interval != Interval::exactly(0) {
            self.unknowns.push(Unknown { difference, coefficient, interval });
        }
    }

    /// The values that the sum of `unknowns` can have.
    fn span<'a>(unknowns: impl Iterator<Item = &'a Unknown>) -> Interval {
        unknowns.fold(Interval::exactly(0), |sum, u| {
            sum.plus(u.interval.times(Interval::exactly(u.coefficient)))
        })
    }

    /// Whether the constant is out of reach, or no multiple of the coefficients' common divisor.
    fn has_no_solution(&self) -> bool {
        let span = Equation::span(self.unknowns.iter());
        let Some(sum) = self.constant.checked_neg() else { return false };
        let gcd = self.unknowns.iter().fold(0u128, |g, u| gcd(g, u.coefficient.unsigned_abs()));
        sum < span.lo || span.hi < sum || (gcd > 0 && !sum.unsigned_abs().is_multiple_of(gcd))
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
            let outweighs = u.coefficient.unsigned_abs() > reach + self.constant.unsigned_abs();
            match u.difference {
                Some(r) if rest.is_bounded() && outweighs => forced.push(r),
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
