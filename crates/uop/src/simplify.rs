//! Rules that hold on every target.
//!
//! The measure: each rule removes a node, or replaces one by a constant, or moves a constant to
//! the right or outwards, where no rule moves it back.

use crate::dtype::{Const, DType};
use crate::graph::{Graph, Id};
use crate::op::Op;
use crate::rewrite::{OutOfFuel, Rewriter, Rule, rewrite};

/// The ops whose value may be known from bounds.
const INTEGER: &[Op] = &[
    Op::Neg,
    Op::Add,
    Op::Sub,
    Op::Mul,
    Op::Max,
    Op::Min,
    Op::And,
    Op::Or,
    Op::CmpLt,
    Op::CmpNe,
    Op::CmpEq,
    Op::Where,
    Op::Cast,
];

/// Identities of integers and booleans. Floats are left alone: -0.0 + 0.0 is +0.0.
pub const RULES: &[Rule] = &[
    // Any integer or boolean expression whose bounds leave one value.
    Rule {
        name: "known-value",
        roots: INTEGER,
        apply: |cx, n| {
            let dtype = cx.graph[n].dtype;
            let value = cx.bounds(n).single()?;
            let value = Const::int(dtype, value).filter(|_| !dtype.is_float())?;
            Some(cx.graph.constant(dtype, value))
        },
    },
    Rule {
        name: "constant-right",
        roots: &[Op::Add, Op::Mul, Op::And, Op::Or, Op::CmpEq, Op::CmpNe],
        apply: |cx, n| {
            let (x, y) = cx.binary(n)?;
            let swap = cx.graph.as_const(x).is_some() && cx.graph.as_const(y).is_none();
            // Which NaN a float operation returns is free, but the same on every backend.
            (swap && !cx.graph[x].dtype.is_float()).then(|| cx.graph.op(cx.graph[n].op, &[y, x]))
        },
    },
    Rule {
        name: "add-zero",
        roots: &[Op::Add, Op::Sub],
        apply: |cx, n| {
            let (x, c) = cx.binary(n)?;
            (cx.graph.as_int(c) == Some(0)).then_some(x)
        },
    },
    Rule {
        name: "mul-one",
        roots: &[Op::Mul],
        apply: |cx, n| {
            let (x, c) = cx.binary(n)?;
            (cx.graph.as_int(c) == Some(1)).then_some(x)
        },
    },
    // (x + a) + b = x + (a + b), of exact integers.
    Rule {
        name: "add-constants",
        roots: &[Op::Add],
        apply: |cx, n| {
            let (sum, b) = cx.binary(n)?;
            if cx.graph[n].dtype != DType::Index || cx.graph[sum].op != Op::Add {
                return None;
            }
            let (x, a) = cx.binary(sum)?;
            let total = cx.graph.as_int(a)?.checked_add(cx.graph.as_int(b)?)?;
            let total = cx.graph.index(total);
            Some(cx.graph.op(Op::Add, &[x, total]))
        },
    },
    Rule {
        name: "and-true",
        roots: &[Op::And],
        apply: |cx, n| {
            let (x, y) = cx.binary(n)?;
            (x == y || cx.graph.as_const(y) == Some(Const::Bool(true))).then_some(x)
        },
    },
    Rule {
        name: "or-false",
        roots: &[Op::Or],
        apply: |cx, n| {
            let (x, y) = cx.binary(n)?;
            (x == y || cx.graph.as_const(y) == Some(Const::Bool(false))).then_some(x)
        },
    },
    // max(x, y) = x where y is never above it: they agree where they are equal.
    Rule {
        name: "max-by-bounds",
        roots: &[Op::Max],
        apply: |cx, n| {
            let (x, y) = integers(cx, n)?;
            let (a, b) = (cx.bounds(x), cx.bounds(y));
            if b.hi <= a.lo { Some(x) } else { (a.hi <= b.lo).then_some(y) }
        },
    },
    Rule {
        name: "min-by-bounds",
        roots: &[Op::Min],
        apply: |cx, n| {
            let (x, y) = integers(cx, n)?;
            let (a, b) = (cx.bounds(x), cx.bounds(y));
            if a.hi <= b.lo { Some(x) } else { (b.hi <= a.lo).then_some(y) }
        },
    },
    Rule {
        name: "where-known",
        roots: &[Op::Where],
        apply: |cx, n| {
            let &[cond, x, y] = cx.graph[n].src.as_slice() else { return None };
            match cx.graph.as_const(cond) {
                Some(Const::Bool(true)) => Some(x),
                Some(Const::Bool(false)) => Some(y),
                _ => (x == y).then_some(x),
            }
        },
    },
    // A gate that is always true is none.
    Rule {
        name: "gate-true",
        roots: &[Op::Load, Op::Store, Op::Custom],
        apply: |cx, n| {
            let slot = cx.graph[n].gate_slot()?;
            let mut node = cx.graph[n].clone();
            if cx.graph.as_const(node.src[slot]) != Some(Const::Bool(true)) {
                return None;
            }
            node.src.truncate(slot);
            Some(cx.graph.intern(node))
        },
    },
];

/// The two sources of `n`, if they are integers.
fn integers(cx: &Rewriter<'_>, n: Id) -> Option<(Id, Id)> {
    cx.binary(n).filter(|_| cx.graph[n].dtype.is_int())
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
