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
    // max(x - o, c) = max(x, c + o) - o, where the difference is wider than x.
    Rule::new("clip-before-offset", &[Op::Max, Op::Min], |cx, n| {
        let (x, y) = cx.binary(n)?;
        let (offset, inverse, a, o, c) = offset(cx, x, y).or_else(|| offset(cx, y, x))?;
        let c = cx.graph.op(inverse, &[c, o]);
        let clip = cx.graph.op(cx.graph[n].op, &[a, c]);
        Some(cx.graph.op(offset, &[clip, o]))
    }),
    Rule::new("compare-before-offset", &[Op::CmpLt, Op::CmpEq, Op::CmpNe], |cx, n| {
        let (x, y) = cx.binary(n)?;
        let left = offset(cx, x, y);
        let (_, inverse, a, o, c) = left.or_else(|| offset(cx, y, x))?;
        let c = cx.graph.op(inverse, &[c, o]);
        let (x, y) = if left.is_some() { (a, c) } else { (c, a) };
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
    // cast(y) < o = y < o, in the dtype of y; o < cast(y) = not (y < o + 1).
    Rule::new("compare-own-dtype", &[Op::CmpLt, Op::CmpEq, Op::CmpNe], |cx, n| {
        let (x, y) = cx.binary(n)?;
        let op = cx.graph[n].op;
        let left = own_dtype(cx, x, y);
        let (own, other) = left.or_else(|| own_dtype(cx, y, x))?;
        let range = Interval::of(cx.graph[own].dtype);
        let next = if op == Op::CmpLt && left.is_none() {
            let one = cx.graph.index(1);
            cx.graph.op(Op::Add, &[other, one])
        } else {
            other
        };
        let bounds = cx.bounds(next);
        let inside = range.lo <= bounds.lo || op == Op::CmpLt;
        let clipped = (inside && bounds.hi <= range.hi).then(|| into_range(cx, next, own))?;
        let result = cx.graph.op(op, &[own, clipped]);
        Some(if next == other { result } else { not(cx, result) })
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

/// `x`, which is clipped by or compared with `c`, as `a - o` or `a + o` that needs more bits than `a`
/// and than what `a` would be clipped by: that op, its inverse, `a`, `o` and `c`.
fn offset(cx: &mut Rewriter<'_>, x: Id, c: Id) -> Option<(Op, Op, Id, Id, Id)> {
    let (op, inverse) = match cx.graph[x].op {
        Op::Sub => (Op::Sub, Op::Add),
        Op::Add => (Op::Add, Op::Sub),
        _ => return None,
    };
    let (a, o) = cx.binary(x).filter(|_| cx.graph[x].dtype == DType::Index)?;
    let o_bounds = cx.bounds(o);
    let moved = if inverse == Op::Add { o_bounds } else { o_bounds.negated() };
    let moved = cx.bounds(c).plus(moved);
    let narrower = [DType::I32, DType::I64, DType::U64].into_iter().any(|dtype| {
        let width = Interval::of(dtype);
        let fits =
            moved.within(width) || dtype == DType::U64 && moved.within(Interval::of(DType::I64));
        cx.bounds(a).within(width) && !cx.bounds(x).within(width) && fits
    });
    narrower.then_some((op, inverse, a, o, c))
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
