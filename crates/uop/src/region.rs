//! Regions (docs/ir.md, S1) and the order of accesses (S4).
//!
//! The same two functions serve the verifier, the prover and the interpreter's shadow memory:
//! there is one notion of "open range" and one of "before".

use smallvec::SmallVec;

use crate::custom::Effect;
use crate::graph::{Arg, AxisType, Graph, Id};
use crate::op::Op;

/// Open ranges in ascending id order.
pub type Ranges = SmallVec<[Id; 4]>;

/// The set of open ranges of every node that a root depends on.
#[derive(Clone, Debug)]
pub struct Regions {
    open: Vec<Ranges>,
    parallel: Ranges,
}

impl Regions {
    /// Computes the region of everything that `root` depends on.
    ///
    /// R(n) is the union over the sources of n; RANGE adds itself; END removes what it lists. An
    /// access to a BUFFER also has every parallel range of the kernel: each work-item has its own.
    pub fn of(graph: &Graph, root: Id) -> Regions {
        Regions::within(graph, root, usize::MAX).expect("no region has that many ranges")
    }

    /// [`Regions::of`], if nowhere more than `limit` ranges are open, so that regions are small.
    ///
    /// # Errors
    ///
    /// Where they are more, but for what only depends on such a node.
    pub fn within(graph: &Graph, root: Id, limit: usize) -> Result<Regions, Vec<Id>> {
        let nodes = graph.reachable(root);
        let parallel: Ranges = nodes
            .iter()
            .copied()
            .filter(|&n| graph[n].axis().is_some_and(|axis| axis.kind.is_parallel()))
            .collect();
        let mut open = vec![Ranges::new(); root.index() + 1];
        // Whether a buffer or a view is that of one work-item.
        let mut private = vec![false; root.index() + 1];
        let mut deep = Vec::new();
        for n in nodes {
            let node = &graph[n];
            let first = node.src.first().is_some_and(|s| private[s.index()]);
            private[n.index()] = match node.op {
                Op::Buffer => true,
                Op::Index | Op::Reshape | Op::After => first,
                _ => false,
            };
            let mut region = Ranges::new();
            for s in &node.src {
                region.extend_from_slice(&open[s.index()]);
            }
            match node.op {
                Op::Range => region.push(n),
                // One above the limit is enough to be refused.
                Op::Index if private[n.index()] => {
                    region.extend(parallel.iter().copied().take(limit.saturating_add(1)));
                }
                _ => {}
            }
            region.sort_unstable();
            region.dedup();
            if region.len() > limit {
                // Its users start afresh, so that they are not reported too.
                deep.push(n);
                continue;
            }
            if node.op == Op::End {
                region.retain(|r| !node.src.iter().skip(1).any(|s| s == r));
            }
            open[n.index()] = region;
        }
        if deep.is_empty() { Ok(Regions { open, parallel }) } else { Err(deep) }
    }

    /// The open ranges of `n`.
    pub fn open(&self, n: Id) -> &[Id] {
        &self.open[n.index()]
    }

    /// Every parallel range of the kernel.
    pub fn parallel(&self) -> &[Id] {
        &self.parallel
    }
}

/// How one access instance stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The first happens before the second.
    Before,
    /// The second happens before the first.
    After,
    /// Neither: they may happen in any order, or at once.
    Unordered,
}

/// An access at one point of its region: the node, and the values of its open ranges in the order
/// of [`Regions::open`].
#[derive(Clone, Copy, Debug)]
pub struct Instance<'a> {
    /// The access.
    pub node: Id,
    /// The value of each range of its region.
    pub point: &'a [i128],
}

/// The order of the accesses of one kernel. Every range must have one binder (END).
#[derive(Clone, Debug)]
pub struct Order {
    regions: Regions,
    /// How many ranges are around a RANGE, by id.
    rank: Vec<usize>,
    kinds: Vec<Option<AxisType>>,
    /// By id, the accesses that a node depends on: a set of access numbers.
    reach: Vec<Vec<u64>>,
    /// The number of an access, by id.
    number: Vec<Option<usize>>,
}

impl Order {
    /// Prepares the order of everything that `root` depends on.
    pub fn of(graph: &Graph, root: Id) -> Order {
        let regions = Regions::of(graph, root);
        let nodes = graph.reachable(root);
        let len = root.index() + 1;
        let accesses = nodes.iter().filter(|&&n| graph[n].is_access()).count();
        let words = accesses.div_ceil(64);
        let mut order = Order {
            regions,
            rank: vec![usize::MAX; len],
            kinds: vec![None; len],
            reach: vec![Vec::new(); len],
            number: vec![None; len],
        };
        let mut next = 0;
        for &n in &nodes {
            let node = &graph[n];
            let mut reach = vec![0; words];
            for s in &node.src {
                for (word, bits) in reach.iter_mut().zip(&order.reach[s.index()]) {
                    *word |= bits;
                }
            }
            if node.is_access() {
                order.number[n.index()] = Some(next);
                reach[next / 64] |= 1 << (next % 64);
                next += 1;
            }
            order.reach[n.index()] = reach;
            order.kinds[n.index()] = node.axis().map(|axis| axis.kind);
        }
        // Outer binders first: their users are younger. The region of an inner END need not hold
        // every range around it, so what counts is the depth of the innermost.
        for &n in nodes.iter().rev().filter(|&&n| graph[n].op == Op::End) {
            let around = order.regions.open(n).iter().map(|&r| order.rank(r)).max();
            let outside = around.map_or(0, |rank| rank.saturating_add(1));
            for (position, r) in graph[n].src.iter().skip(1).enumerate() {
                order.rank[r.index()] = outside.saturating_add(position);
            }
        }
        order
    }

    /// The regions that the order rests on.
    pub fn regions(&self) -> &Regions {
        &self.regions
    }

    /// How deep the RANGE `r` is nested: 0 for an outermost one, and more than any around it.
    pub fn rank(&self, r: Id) -> usize {
        self.rank[r.index()]
    }

    /// The open ranges of `n`, outermost first.
    pub fn nest(&self, n: Id) -> Ranges {
        let mut ranges = Ranges::from_slice(self.regions.open(n));
        ranges.sort_by_key(|&r| (self.rank(r), r));
        ranges
    }

    /// Whether `to` depends on the access `from`.
    pub fn reaches(&self, from: Id, to: Id) -> bool {
        let Some(number) = self.number[from.index()] else { return false };
        self.reach[to.index()].get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// How `a` stands to `b`, by S4. An instance is unordered with itself.
    pub fn relation(&self, a: Instance<'_>, b: Instance<'_>) -> Relation {
        let (left, right) = (self.regions.open(a.node), self.regions.open(b.node));
        let at = |ranges: &[Id], point: &[i128], r| ranges.binary_search(&r).ok().map(|i| point[i]);
        // The outermost range at which they differ, local ranges apart.
        let mut first: Option<(Id, i128, i128)> = None;
        for &r in left.iter().chain(right.iter().filter(|r| !left.contains(r))) {
            let (v, w) = (at(left, a.point, r), at(right, b.point, r));
            match self.kinds[r.index()].expect("a region holds ranges") {
                // What lacks a local range runs once per group, at local point 0. Different
                // points of a group are ordered only by a barrier.
                AxisType::Local => {
                    if v.unwrap_or(0) != w.unwrap_or(0) {
                        return Relation::Unordered;
                    }
                }
                // There is no grid-wide wait inside a kernel.
                AxisType::Global | AxisType::Thread => {
                    if v != w {
                        return Relation::Unordered;
                    }
                }
                // A serial range that only one has plays no part.
                AxisType::Loop => {
                    if let (Some(v), Some(w)) = (v, w)
                        && v != w
                        && first.is_none_or(|(f, _, _)| self.rank(r) < self.rank(f))
                    {
                        first = Some((r, v, w));
                    }
                }
            }
        }
        match first {
            Some((_, v, w)) if v < w => Relation::Before,
            Some(_) => Relation::After,
            None if a.node != b.node && self.reaches(a.node, b.node) => Relation::Before,
            None if a.node != b.node && self.reaches(b.node, a.node) => Relation::After,
            None => Relation::Unordered,
        }
    }
}

/// Whether two accesses that touch one element must be ordered: not both read, and not both the
/// same atomic on the same dtype.
pub fn conflict(graph: &Graph, a: Id, b: Id) -> bool {
    let atomic = |n: Id| match &graph[n].arg {
        Arg::Custom { custom, .. } => match custom.effect() {
            Effect::Atomic(op) => Some((op, custom.dtype())),
            Effect::Pure | Effect::Reads | Effect::Writes => None,
        },
        _ => None,
    };
    let reads = !graph[a].is_effect() && !graph[b].is_effect();
    !(reads || atomic(a).is_some() && atomic(a) == atomic(b))
}
