//! Rules that hold on every target.
//!
//! The measure: each rule removes a node, or replaces one by a constant, or moves a constant to
//! the right or outwards, or a CAST or an offset outwards over a clip or a comparison, where no rule
//! moves it back.

use crate::bounds::Interval;
use crate::dtype::{Const, DType};
use crate::graph::{Graph, Id};
use crate::op::Op;
use crate::rewrite::{OutOfFuel, Rewriter, Rule, rewrite};

/// Identities of integers and booleans. Floats are left alone: -0.0 + 0.0 is +0.0.
pub const RULES: &[Rule] = &[
    // Any integer or boolean expression whose bounds leave one value.
    Rule::new("known-value", Op::ALL, |cx, n| {
        let dtype = cx.graph[n].dtype;
        let value = cx.bounds(n).single().filter(|_| cx.graph[n].op.is_arithmetic())?;
        let value = Const::int(dtype, value).filter(|_| !dtype.is_float())?;
        Some(cx.graph.constant(dtype, value))
    }),
    Rule::new("constant-right", Op::ALL, |cx, n| {
        let (x, y) = cx.binary(n).filter(|_| cx.graph[n].op.is_commutative())?;
        let swap = cx.graph.as_const(x).is_some() && cx.graph.as_const(y).is_none();
        // Which NaN a float operation returns is free, but the same on every backend.
        (swap && !cx.graph[x].dtype.is_float()).then(|| cx.graph.op(cx.graph[n].op, &[y, x]))
    }),
    // x + 0, x - 0, x * 1, x & true and x | false are x.
    Rule::new("neutral-right", &[Op::Add, Op::Sub, Op::Mul, Op::And, Op::Or], |cx, n| {
        let (x, y) = cx.binary(n)?;
        let neutral = match cx.graph[n].op {
            Op::Add | Op::Sub => Const::Int(0),
            Op::Mul => Const::Int(1),
            op => Const::Bool(op == Op::And),
        };
        (cx.graph.as_const(y) == Some(neutral)).then_some(x)
    }),
    // (x + a) + b = x + (a + b), of exact integers.
    Rule::new("add-constants", &[Op::Add], |cx, n| {
        let (sum, b) = cx.binary(n)?;
        if cx.graph[n].dtype != DType::Index || cx.graph[sum].op != Op::Add {
            return None;
        }
        let (x, a) = cx.binary(sum)?;
        let total = cx.graph.as_int(a)?.checked_add(cx.graph.as_int(b)?)?;
        let total = cx.graph.index(total);
        Some(cx.graph.op(Op::Add, &[x, total]))
    }),
    Rule::new("same-operands", &[Op::And, Op::Or], |cx, n| {
        cx.binary(n).and_then(|(x, y)| (x == y).then_some(x))
    }),
    // max(x, y) = x where y is never above it: they agree where they are equal.
    Rule::new("clip-by-bounds", &[Op::Max, Op::Min], |cx, n| {
        let (x, y) = cx.binary(n).filter(|_| cx.graph[n].dtype.is_int())?;
        let (a, b) = (cx.bounds(x), cx.bounds(y));
        let (greater, less) = if cx.graph[n].op == Op::Max { (x, y) } else { (y, x) };
        if b.hi <= a.lo { Some(greater) } else { (a.hi <= b.lo).then_some(less) }
    }),
    // max(x - o, c) = max(x, c + o) - o and max(o - x, c) = o - min(x, o - c), where the difference
    // is wider than x.
    Rule::new("clip-before-offset", &[Op::Max, Op::Min], |cx, n| {
        let (x, y) = cx.binary(n)?;
        let left = offset(cx, x, y);
        let ((slot, moved, flips), x) = match left {
            Some(offset) => (offset, x),
            None => (offset(cx, y, x)?, y),
        };
        let op = match (cx.graph[n].op, flips) {
            (Op::Max, false) | (Op::Min, true) => Op::Max,
            _ => Op::Min,
        };
        let mut node = cx.graph[x].clone();
        node.src[slot] = cx.graph.op(op, &[node.src[slot], moved]);
        Some(cx.graph.intern(node))
    }),
    Rule::new("compare-before-offset", &[Op::CmpLt, Op::CmpEq, Op::CmpNe], |cx, n| {
        let (x, y) = cx.binary(n)?;
        let left = offset(cx, x, y);
        let ((slot, moved, flips), x) = match left {
            Some(offset) => (offset, x),
            None => (offset(cx, y, x)?, y),
        };
        let moved = [cx.graph[x].src[slot], moved];
        let [x, y] = if left.is_some() != flips { moved } else { [moved[1], moved[0]] };
        Some(cx.graph.op(cx.graph[n].op, &[x, y]))
    }),
    // max(cast(y), o) = cast(max(y, o)), in the dtype of y.
    Rule::new("clip-own-dtype", &[Op::Max, Op::Min], |cx, n| {
        let (x, y) = cx.binary(n)?;
        let (own, other) = own_dtype(cx, x, y).or_else(|| own_dtype(cx, y, x))?;
        let op = cx.graph[n].op;
        let (range, bounds) = (Interval::of(cx.graph[own].dtype), cx.bounds(other));
        // What the clip gives must be of the dtype, whatever the other side is.
        let fits = if op == Op::Max { bounds.hi <= range.hi } else { range.lo <= bounds.lo };
        let other = fits.then(|| into_range(cx, other, own))?;
        let clip = cx.graph.op(op, &[own, other]);
        Some(cx.graph.cast(clip, DType::Index))
    }),
    // cast(y) < o = y < o, in the dtype of y, to which an o below its range is moved up.
    Rule::new("compare-own-dtype", &[Op::CmpLt, Op::CmpEq, Op::CmpNe], |cx, n| {
        let (x, y) = cx.binary(n)?;
        let op = cx.graph[n].op;
        let left = own_dtype(cx, x, y);
        let (own, other) = left.or_else(|| own_dtype(cx, y, x))?;
        let (range, bounds) = (Interval::of(cx.graph[own].dtype), cx.bounds(other));
        let clipped = (bounds.hi <= range.hi).then(|| into_range(cx, other, own))?;
        let (x, y) = if left.is_some() { (own, clipped) } else { (clipped, own) };
        let inside = cx.graph.op(op, &[x, y]);
        if range.lo <= bounds.lo || op == Op::CmpLt && left.is_some() {
            return Some(inside);
        }
        let least = cx.graph.index(range.lo);
        let below = cx.graph.op(Op::CmpLt, &[other, least]);
        Some(match op {
            Op::CmpEq => {
                let above = not(cx, below);
                cx.graph.op(Op::And, &[above, inside])
            }
            _ => cx.graph.op(Op::Or, &[below, inside]),
        })
    }),
    Rule::new("where-known", &[Op::Where], |cx, n| {
        let &[cond, x, y] = cx.graph[n].src.as_slice() else { return None };
        match cx.graph.as_const(cond) {
            Some(Const::Bool(true)) => Some(x),
            Some(Const::Bool(false)) => Some(y),
            _ => (x == y).then_some(x),
        }
    }),
    // A gate that is always true is none.
    Rule::new("gate-true", &[Op::Load, Op::Store, Op::Custom], |cx, n| {
        let slot = cx.graph[n].gate_slot()?;
        let mut node = cx.graph[n].clone();
        if cx.graph.as_const(node.src[slot]) != Some(Const::Bool(true)) {
            return None;
        }
        node.src.truncate(slot);
        Some(cx.graph.intern(node))
    }),
];

/// `x`, which is clipped by or compared with `c`, as a sum, difference or negative that needs more
/// bits than its source `slot`: that, what the source is clipped by or compared with instead, which
/// needs fewer bits too (so that nothing moves back), and whether greater becomes less.
fn offset(cx: &mut Rewriter<'_>, x: Id, c: Id) -> Option<(usize, Id, bool)> {
    let node = cx.graph[x].clone();
    let forms: &[(usize, Op, [usize; 2], bool)] = match node.op {
        // In the sources of the new side, 2 stands for `c`.
        Op::Add => &[(0, Op::Sub, [2, 1], false), (1, Op::Sub, [2, 0], false)],
        Op::Sub => &[(0, Op::Add, [2, 1], false), (1, Op::Sub, [0, 2], true)],
        Op::Neg => &[(0, Op::Neg, [2, 2], true)],
        _ => return None,
    };
    let width = |interval: Interval| {
        let widths = [DType::I32, DType::I64, DType::U64];
        widths.into_iter().position(|dtype| interval.within(Interval::of(dtype))).unwrap_or(3)
    };
    let wide = width(cx.bounds(x));
    // Of two sources, the wider one is clipped.
    let (mut best, mut widest) = (None, 0);
    for &(slot, op, src, flips) in forms.iter().filter(|_| node.dtype == DType::Index) {
        let own = width(cx.bounds(node.src[slot]));
        if own >= wide || best.is_some() && own <= widest {
            continue;
        }
        let src = src.map(|s| *node.src.get(s).unwrap_or(&c));
        let moved = cx.graph.op(op, &src[..if op == Op::Neg { 1 } else { 2 }]);
        if width(cx.bounds(moved)) < wide {
            (best, widest) = (Some((slot, moved, flips)), own);
        }
    }
    best
}

/// The operand of `x`, a CAST from a sized integer to `index` that is clipped or compared better
/// before it, and `other`, the other side: i32 and i64 are what `index` becomes anyway, and what no
/// constant is compared with costs a CAST.
fn own_dtype(cx: &Rewriter<'_>, x: Id, other: Id) -> Option<(Id, Id)> {
    let node = &cx.graph[x];
    let own = *node.src.first().filter(|_| node.op == Op::Cast && node.dtype == DType::Index)?;
    let dtype = cx.graph[own].dtype;
    let sized = dtype.int_range().is_some() && !dtype.is_index();
    let cheap = dtype == DType::U64 || cx.graph.as_const(other).is_some();
    (sized && cheap).then_some((own, other))
}

/// The `index` `n` moved up or down into the range of the dtype of `like`, as a value of that.
fn into_range(cx: &mut Rewriter<'_>, n: Id, like: Id) -> Id {
    let dtype = cx.graph[like].dtype;
    if let (Op::Cast, &[s]) = (cx.graph[n].op, cx.graph[n].src.as_slice())
        && cx.graph[s].dtype == dtype
    {
        return s;
    }
    let (range, bounds) = (Interval::of(dtype), cx.bounds(n));
    let mut n = n;
    for (op, end, outside) in
        [(Op::Max, range.lo, bounds.lo < range.lo), (Op::Min, range.hi, bounds.hi > range.hi)]
    {
        if outside {
            let end = cx.graph.index(end);
            n = cx.graph.op(op, &[n, end]);
        }
    }
    match cx.bounds(n).single().and_then(|value| Const::int(dtype, value)) {
        Some(value) => cx.graph.constant(dtype, value),
        None => cx.graph.cast(n, dtype),
    }
}

/// The negation of a boolean.
fn not(cx: &mut Rewriter<'_>, n: Id) -> Id {
    let no = cx.graph.constant(DType::Bool, Const::Bool(false));
    cx.graph.op(Op::CmpEq, &[n, no])
}

/// Rewrites what `root` depends on with [`RULES`].
///
/// A rule may drop the last use of a range, so the region of an access may shrink; who needs the
/// accesses to keep their instances (`lower` does) restores it.
///
/// # Errors
///
/// [`OutOfFuel`] names a fault of the rules.
pub fn simplify(graph: &mut Graph, root: Id) -> Result<Id, OutOfFuel> {
    rewrite(graph, root, RULES)
}
