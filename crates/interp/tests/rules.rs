//! The rules of `uop::simplify` and the intervals of `uop::bounds`, against the arithmetic of the
//! oracle: on every point of a small box, for random expressions.

use std::collections::HashMap;

use proptest::prelude::*;
use uop::rewrite::rewrite;
use uop::simplify::{RULES, simplify};
use uop::{Arg, Axis, AxisType, Bounds, Const, DType, Graph, Id, Node, Op, Variable};

/// The extents of the ranges that expressions are made of.
const EXTENTS: [i128; 3] = [1, 3, 4];

/// How to make one more node from those that there are.
#[derive(Clone, Debug)]
struct Step {
    op: usize,
    dtype: usize,
    sources: [usize; 3],
    constant: i128,
}

const DTYPES: [DType; 7] =
    [DType::Index, DType::I32, DType::I64, DType::Bool, DType::I8, DType::U8, DType::U64];
const OPS: [Op; 14] = [
    Op::Const,
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

/// Small numbers, those at the ends of the dtypes, and some beyond what bounds can hold.
fn constants() -> impl Strategy<Value = i128> {
    let edges = [i32::MIN as i128, i32::MAX as i128, i64::MIN as i128, i64::MAX as i128, 0, 1, -1];
    let giants = [1 << 99, (1 << 100) - 1, 1 << 100, 3 << 100, 1 << 120, i128::MAX, i128::MIN];
    let signs = giants.iter().flat_map(|&giant| [giant, giant.wrapping_neg() + 5]);
    let values: Vec<i128> = edges.into_iter().chain(signs).collect();
    prop_oneof![3 => -5i128..6, 1 => proptest::sample::select(values)]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..OPS.len(), 0..DTYPES.len(), any::<[usize; 3]>(), constants());
    let step =
        step.prop_map(|(op, dtype, sources, constant)| Step { op, dtype, sources, constant });
    proptest::collection::vec(step, 1..25)
}

/// The expression that the steps make: its graph, its ranges and its last node.
fn expression(steps: &[Step]) -> (Graph, Vec<Id>, Id) {
    let mut g = Graph::new();
    let mut pool: Vec<Id> = Vec::new();
    for (number, &extent) in (0..).zip(&EXTENTS) {
        let bound = g.index(extent);
        let axis = Arg::Range(Axis { number, kind: AxisType::Loop });
        pool.push(g.intern(Node::new(Op::Range, DType::Index, [bound]).with_arg(axis)));
    }
    // What nothing is known of: all of an i64, and as u64 what no i64 holds.
    let (name, lo, hi) = ("v".into(), i64::MIN, i64::MAX);
    let arg = Arg::Variable(Box::new(Variable { name, lo, hi }));
    pool.push(g.intern(Node::new(Op::Variable, DType::Index, []).with_arg(arg)));
    let ranges = pool.clone();
    for step in steps {
        let (op, dtype) = (OPS[step.op], DTYPES[step.dtype]);
        // The nodes of one dtype; all of them are at hand, if only as a cast.
        let pick = |g: &mut Graph, n: usize, dtype: DType| {
            let x = pool[step.sources[n] % pool.len()];
            // A constant stays one, or rules that want one would seldom meet it.
            match g.as_int(x).and_then(|value| Const::int(dtype, dtype.wrap(value))) {
                Some(value) => g.constant(dtype, value),
                None => g.cast(x, dtype),
            }
        };
        let number = if dtype == DType::Bool { DType::I32 } else { dtype };
        let bits = if dtype == DType::Index { DType::Bool } else { dtype };
        let n = match op {
            Op::Const => {
                let value =
                    Const::int(dtype, dtype.wrap(step.constant)).unwrap_or(Const::zero(dtype));
                g.constant(dtype, value)
            }
            Op::Cast => pick(&mut g, 0, dtype),
            Op::Neg => {
                let x = pick(&mut g, 0, number);
                g.op(op, &[x])
            }
            Op::And | Op::Or => {
                let (x, y) = (pick(&mut g, 0, bits), pick(&mut g, 1, bits));
                g.op(op, &[x, y])
            }
            Op::Where => {
                let cond = pick(&mut g, 2, DType::Bool);
                let (x, y) = (pick(&mut g, 0, dtype), pick(&mut g, 1, dtype));
                g.op(op, &[cond, x, y])
            }
            _ => {
                let (x, y) = (pick(&mut g, 0, number), pick(&mut g, 1, number));
                g.op(op, &[x, y])
            }
        };
        pool.push(n);
    }
    let last = *pool.last().expect("there are ranges");
    (g, ranges, last)
}

/// The value of `n` at a point; `None` where an `index` leaves 128 bits.
fn value(g: &Graph, point: &HashMap<Id, i128>, n: Id) -> Option<Const> {
    let mut values: HashMap<Id, Const> = HashMap::new();
    for m in g.reachable(n) {
        let node = &g[m];
        let value = match node.op {
            Op::Const => node.constant()?,
            Op::Range | Op::Variable => Const::Int(point[&m]),
            op => {
                let args: Vec<Const> = node.src.iter().map(|s| values[s]).collect();
                interp::alu(op, node.dtype, &args).ok()?
            }
        };
        values.insert(m, value);
    }
    Some(values[&n])
}

fn points(ranges: &[Id]) -> Vec<HashMap<Id, i128>> {
    let mut points = vec![HashMap::new()];
    let extents = EXTENTS.iter().map(|&extent| (0..extent).collect::<Vec<i128>>());
    let edges = [i64::MIN, i64::MIN + 1, -2, 0, 1, i64::MAX].map(i128::from).to_vec();
    for (&r, values) in ranges.iter().zip(extents.chain([edges])) {
        let longer = points.iter().flat_map(|point: &HashMap<Id, i128>| {
            values.iter().map(move |&i| {
                let mut point = point.clone();
                point.insert(r, i);
                point
            })
        });
        points = longer.collect();
    }
    points
}

fn as_int(value: Const) -> i128 {
    match value {
        Const::Bool(value) => value.into(),
        Const::Int(value) => value,
        _ => unreachable!("there are no floats"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn simplified_expressions_have_the_same_values(steps in steps()) {
        let (mut g, ranges, last) = expression(&steps);
        let simple = simplify(&mut g, last).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(g[simple].dtype, g[last].dtype);
        for point in points(&ranges) {
            if let Some(want) = value(&g, &point, last) {
                prop_assert_eq!(value(&g, &point, simple), Some(want), "at {:?}", point);
            }
        }
    }

    #[test]
    fn values_are_within_their_bounds(steps in steps()) {
        let (g, ranges, last) = expression(&steps);
        let mut bounds = Bounds::new();
        for point in points(&ranges) {
            for n in g.reachable(last) {
                let Some(value) = value(&g, &point, n).map(as_int) else { continue };
                let interval = bounds.get(&g, n);
                prop_assert!(
                    interval.contains(value), "{n}: {value} {interval:?}");
            }
        }
    }

    /// Where a gate is true, everything lies within what it says.
    #[test]
    fn values_are_within_what_a_gate_says(steps in steps()) {
        let (mut g, ranges, last) = expression(&steps);
        let gate = g.cast(last, DType::Bool);
        let mut bounds = Bounds::new();
        let facts = bounds.facts(&g, Some(gate));
        for point in points(&ranges) {
            if value(&g, &point, gate) != Some(Const::Bool(true)) {
                continue;
            }
            let Some(facts) = &facts else {
                return Err(TestCaseError::fail("the gate is true somewhere"));
            };
            for n in g.reachable(last) {
                let Some(value) = value(&g, &point, n).map(as_int) else { continue };
                let interval = bounds.given(&g, facts, n);
                prop_assert!(
                    interval.contains(value), "{n}: {value} {interval:?}");
            }
        }
    }
}

/// Every rule fires on some small expression, alone, and keeps its values there.
#[test]
fn every_rule_has_a_use() {
    let mut unused: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    let mut state = 1u64;
    let mut random = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    for _ in 0..8_000 {
        let step = |random: &mut dyn FnMut(usize) -> usize| Step {
            // Sums of `index` have the most rules.
            op: [random(OPS.len()), 0, 2][random(3)],
            dtype: [random(DTYPES.len()), 0][random(2)],
            sources: [random(64), random(64), random(64)],
            constant: random(4) as i128 - 1,
        };
        let steps: Vec<Step> = (0..random(10) + 1).map(|_| step(&mut random)).collect();
        for rule in RULES {
            let (mut g, ranges, last) = expression(&steps);
            let simple = rewrite(&mut g, last, std::slice::from_ref(rule)).expect("one rule ends");
            if simple == last {
                continue;
            }
            unused.retain(|name| *name != rule.name);
            for point in points(&ranges) {
                if let Some(want) = value(&g, &point, last) {
                    assert_eq!(value(&g, &point, simple), Some(want), "{}: {steps:?}", rule.name);
                }
            }
        }
    }
    // The only rule for accesses; expressions have none.
    assert_eq!(unused, ["gate-true"]);
}
