//! Value bounds: the interval in which an integer or boolean node lies, at every instance.
//!
//! Bounds of `index` are exact integers; [`UNBOUNDED`] stands for "no bound known". A sized integer
//! whose exact result may leave its dtype gets the whole range of the dtype, since it wraps.
//! [`Bounds::facts`] and [`Bounds::given`] narrow by what a true gate says.

use std::fmt;

use crate::dtype::{Const, DType};
use crate::graph::{Arg, Graph, Id};
use crate::op::Op;

/// The magnitude at which a bound means that none is known.
pub const UNBOUNDED: i128 = 1 << 100;

/// An inclusive interval of integers; booleans are 0 and 1.
///
/// A `lo` of -[`UNBOUNDED`] and a `hi` of [`UNBOUNDED`] are infinities: they stand for every
/// integer below or above, and no arithmetic brings them back. Every other bound is a number of
/// smaller magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The least value.
    pub lo: i128,
    /// The greatest value.
    pub hi: i128,
}

impl Interval {
    /// Every integer.
    pub const ALL: Interval = Interval { lo: -UNBOUNDED, hi: UNBOUNDED };

    /// No integer.
    pub const EMPTY: Interval = Interval { lo: 0, hi: -1 };

    /// From `lo` to `hi`, both included; a bound of too large a magnitude becomes infinite, or the
    /// largest that is not, whichever keeps every value.
    pub fn new(lo: i128, hi: i128) -> Interval {
        Interval { lo: lo.clamp(-UNBOUNDED, UNBOUNDED - 1), hi: hi.clamp(1 - UNBOUNDED, UNBOUNDED) }
    }

    /// Only `value`.
    pub fn exactly(value: i128) -> Interval {
        Interval::new(value, value)
    }

    /// Every value of `dtype`; every integer for types that have no range of their own.
    pub fn of(dtype: DType) -> Interval {
        match dtype {
            DType::Bool => Interval::new(0, 1),
            _ => dtype.int_range().map_or(Interval::ALL, |(lo, hi)| Interval { lo, hi }),
        }
    }

    /// The single value, if there is one.
    pub fn single(self) -> Option<i128> {
        // An infinite bound has no equal on the other side.
        (self.lo == self.hi).then_some(self.lo)
    }

    /// Whether `value` is one of them.
    pub fn contains(self, value: i128) -> bool {
        (self.lo == -UNBOUNDED || self.lo <= value) && (self.hi == UNBOUNDED || value <= self.hi)
    }

    /// Whether every value of `self` is in `other`.
    pub fn within(self, other: Interval) -> bool {
        other.lo <= self.lo && self.hi <= other.hi
    }

    /// Whether neither bound is infinite.
    pub fn is_bounded(self) -> bool {
        self.lo > -UNBOUNDED && self.hi < UNBOUNDED
    }

    /// Whether there is no value at all.
    pub fn is_empty(self) -> bool {
        self.hi < self.lo
    }

    fn meet(self, other: Interval) -> Interval {
        Interval { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) }
    }

    fn join(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Every sum of a value and a value of `other`.
    #[must_use]
    pub fn plus(self, other: Interval) -> Interval {
        let sum = |a: i128, b: i128, infinity: i128| {
            if a == infinity || b == infinity { infinity } else { a + b }
        };
        Interval::new(sum(self.lo, other.lo, -UNBOUNDED), sum(self.hi, other.hi, UNBOUNDED))
    }

    /// The negative of every value.
    #[must_use]
    pub fn negated(self) -> Interval {
        Interval { lo: -self.hi, hi: -self.lo }
    }

    /// Every product of a value and a value of `other`.
    #[must_use]
    pub fn times(self, other: Interval) -> Interval {
        // Infinity times 0 is 0: only the finite values of the other side are met.
        let corner = |a: i128, b: i128| {
            a.checked_mul(b).unwrap_or(if (a < 0) == (b < 0) { UNBOUNDED } else { -UNBOUNDED })
        };
        let (a, b) = (corner(self.lo, other.lo), corner(self.lo, other.hi));
        let (c, d) = (corner(self.hi, other.lo), corner(self.hi, other.hi));
        Interval::new(a.min(b).min(c).min(d), a.max(b).max(c).max(d))
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |bound: i128| match bound {
            UNBOUNDED => "inf".to_string(),
            bound if bound == -UNBOUNDED => "-inf".to_string(),
            bound => bound.to_string(),
        };
        write!(f, "{}..={}", bound(self.lo), bound(self.hi))
    }
}

/// What is known beyond the graph itself: a narrower interval for some nodes.
pub type Facts = Vec<(Id, Interval)>;

/// The bounds of the nodes of one graph, computed once per node, as the graph grows.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    known: Vec<Interval>,
}

impl Bounds {
    /// Nothing computed yet.
    pub fn new() -> Bounds {
        Bounds::default()
    }

    /// The interval of `n`, which is the whole line for what is no integer and no boolean.
    ///
    /// A loop variable of an empty range has no values; its interval is then 0..0.
    pub fn get(&mut self, graph: &Graph, n: Id) -> Interval {
        while self.known.len() <= n.index() {
            let id = graph.nth(self.known.len());
            let known = &self.known;
            self.known.push(transfer(graph, id, |s| known[s.index()]));
        }
        self.known[n.index()]
    }

    /// Whether the exact result of the integer operation `n` always fits its dtype.
    pub fn is_exact(&mut self, graph: &Graph, n: Id) -> bool {
        let node = &graph[n];
        let _ = self.get(graph, n);
        node.dtype.is_int()
            && exact_result(graph, n, |s| self.known[s.index()])
                .is_some_and(|interval| interval.within(Interval::of(node.dtype)))
    }

    /// What a true `gate` says: a narrower interval for some nodes. `None` if it is never true.
    pub fn facts(&mut self, graph: &Graph, gate: Option<Id>) -> Option<Facts> {
        let mut facts = Facts::new();
        if let Some(gate) = gate {
            self.assume(graph, gate, &mut facts);
        }
        facts.iter().all(|(_, interval)| !interval.is_empty()).then_some(facts)
    }

    /// The interval of `n` where `facts` hold; empty if they never do.
    pub fn given(&self, graph: &Graph, facts: &[(Id, Interval)], n: Id) -> Interval {
        let mut narrowed: Vec<Option<Interval>> = vec![None; n.index() + 1];
        for m in graph.reachable(n) {
            let mut interval =
                transfer(graph, m, |s| narrowed[s.index()].expect("sources come first"));
            for (_, fact) in facts.iter().filter(|(fact, _)| *fact == m) {
                interval = interval.meet(*fact);
            }
            if interval.is_empty() {
                return interval;
            }
            narrowed[m.index()] = Some(interval);
        }
        narrowed[n.index()].expect("a node reaches itself")
    }

    /// Adds what a true `gate` says of its operands.
    fn assume(&mut self, graph: &Graph, gate: Id, facts: &mut Facts) {
        let mut todo = vec![gate];
        while let Some(n) = todo.pop() {
            let node = &graph[n];
            match (node.op, node.src.as_slice()) {
                (Op::And, &[a, b]) => todo.extend([a, b]),
                (Op::Const, []) if node.constant() == Some(Const::Bool(false)) => {
                    facts.push((n, Interval::EMPTY));
                }
                (Op::CmpLt, &[a, b]) => self.assume_less(graph, a, b, 1, facts),
                (Op::CmpEq, &[a, b]) if graph[a].dtype.is_int() => {
                    self.assume_less(graph, a, b, 0, facts);
                    self.assume_less(graph, b, a, 0, facts);
                }
                // not (a < b), that is b <= a
                (Op::CmpEq, &[x, y]) if graph.as_const(y) == Some(Const::Bool(false)) => {
                    if let (Op::CmpLt, &[a, b]) = (graph[x].op, graph[x].src.as_slice()) {
                        self.assume_less(graph, b, a, 0, facts);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds what `a + gap <= b` says, for integers.
    fn assume_less(&mut self, graph: &Graph, a: Id, b: Id, gap: i128, facts: &mut Facts) {
        if !graph[a].dtype.is_int() {
            return;
        }
        let gap = Interval::exactly(gap);
        let below = self.get(graph, b).plus(gap.negated());
        let above = self.get(graph, a).plus(gap);
        self.assume_within(graph, a, Interval { lo: -UNBOUNDED, ..below }, facts);
        self.assume_within(graph, b, Interval { hi: UNBOUNDED, ..above }, facts);
    }

    /// Adds that `n` lies within `interval`, and for an exact `x + constant` that `x` does too.
    fn assume_within(&mut self, graph: &Graph, n: Id, interval: Interval, facts: &mut Facts) {
        let (mut n, mut interval) = (n, interval);
        loop {
            facts.push((n, interval.meet(self.get(graph, n))));
            let node = &graph[n];
            let (Op::Add, DType::Index, &[x, c]) = (node.op, node.dtype, node.src.as_slice())
            else {
                return;
            };
            let Some(c) = graph.as_int(c) else { return };
            (n, interval) = (x, interval.plus(Interval::exactly(c).negated()));
        }
    }
}

/// The interval of the exact result of an integer operation, before it wraps.
fn exact_result(graph: &Graph, n: Id, of: impl Fn(Id) -> Interval) -> Option<Interval> {
    let node = &graph[n];
    match (node.op, node.src.as_slice()) {
        (Op::Neg, &[x]) => Some(of(x).negated()),
        (Op::Add, &[x, y]) => Some(of(x).plus(of(y))),
        (Op::Sub, &[x, y]) => Some(of(x).plus(of(y).negated())),
        (Op::Mul, &[x, y]) => Some(of(x).times(of(y))),
        _ => None,
    }
}

/// The interval of `n`, given those of its sources.
fn transfer(graph: &Graph, n: Id, of: impl Fn(Id) -> Interval) -> Interval {
    let node = &graph[n];
    let whole = Interval::of(node.dtype);
    if !(node.dtype.is_int() || node.dtype == DType::Bool) {
        return whole;
    }
    // The exact result, if it cannot leave the dtype.
    let exact = |interval: Interval| if interval.within(whole) { interval } else { whole };
    match (node.op, node.src.as_slice()) {
        (Op::Const | Op::Variable, _) => match &node.arg {
            &Arg::Const(Const::Bool(value)) => Interval::exactly(value.into()),
            &Arg::Const(Const::Int(value)) => Interval::exactly(value),
            Arg::Variable(variable) => Interval::new(variable.lo.into(), variable.hi.into()),
            _ => whole,
        },
        (Op::Range | Op::Special, &[bound]) => {
            let last = of(bound).plus(Interval::exactly(-1)).hi;
            Interval { lo: 0, hi: last.max(0) }
        }
        (Op::Neg | Op::Add | Op::Sub | Op::Mul, _) => {
            exact_result(graph, n, of).map_or(whole, exact)
        }
        (Op::And | Op::Or, _) if node.dtype != DType::Bool => whole,
        (Op::Max | Op::Or, &[x, y]) => {
            Interval::new(of(x).lo.max(of(y).lo), of(x).hi.max(of(y).hi))
        }
        (Op::Min | Op::And, &[x, y]) => {
            Interval::new(of(x).lo.min(of(y).lo), of(x).hi.min(of(y).hi))
        }
        (Op::CmpLt, &[x, y]) if graph[x].dtype.is_int() => {
            if of(x).hi < of(y).lo {
                Interval::exactly(1)
            } else if of(x).lo >= of(y).hi {
                Interval::exactly(0)
            } else {
                whole
            }
        }
        (Op::CmpEq | Op::CmpNe, &[x, y]) if !graph[x].dtype.is_float() => {
            let equal = i128::from(node.op == Op::CmpEq);
            if of(x).meet(of(y)).is_empty() {
                Interval::exactly(1 - equal)
            } else if of(x).single().is_some() && of(x).single() == of(y).single() {
                Interval::exactly(equal)
            } else {
                whole
            }
        }
        (Op::Where, &[_, x, y]) => of(x).join(of(y)),
        (Op::After, &[x, ..]) => of(x),
        (Op::Cast, &[x]) => match (graph[x].dtype, node.dtype) {
            // to bool is != 0
            (from, DType::Bool) if from.is_int() => {
                let x = of(x);
                match (x.single(), x.lo <= 0 && 0 <= x.hi) {
                    (Some(0), _) => Interval::exactly(0),
                    (_, false) => Interval::exactly(1),
                    _ => whole,
                }
            }
            (from, to) if (from.is_int() || from == DType::Bool) && to.is_int() => exact(of(x)),
            _ => whole,
        },
        _ => whole,
    }
}
