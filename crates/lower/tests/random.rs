//! Random kernels: what `lower` accepts has no race and the oracle's bits, on both kinds of target;
//! what it refuses with a witness the oracle refuses too.

mod common;

use std::cell::{Cell, RefCell};

use common::{GRID, NO_GRID, Random, assert_agree, lower, oracle, run};
use interp::{Data, ErrorKind, OutOfBounds};
use lower::{LowerError, LowerErrorKind, Program};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use uop::AxisType::{self, Global, Local, Loop};
use uop::DType::{self, F32, I32, I64, Index};
use uop::{Arg, BuildErrors, Kernel, KernelGraph, Val};

/// A kernel: one nest of loops, or two.
#[derive(Clone, Debug)]
struct Spec {
    /// Outermost first.
    ranges: Vec<(AxisType, Bound)>,
    nests: Nests,
    /// Of one turn: before the inner loop, or after it.
    stmts: Vec<StmtSpec>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Nests {
    One,
    /// Two, which close the same ranges.
    Shared,
    /// Two with ranges of their own.
    Own,
}

#[derive(Clone, Debug)]
enum Bound {
    Constant(i64),
    /// One more than the range around it.
    Triangle,
    /// An element of `x`, clipped to `0..=3`.
    Data(i64),
}

#[derive(Clone, Debug)]
struct StmtSpec {
    second_nest: bool,
    /// How many ranges are around it.
    depth: usize,
    /// After the loops inside its block instead of before them.
    late: bool,
    access: AccessSpec,
    /// An atomic, where there is one.
    atomic: bool,
    gate: Option<CondSpec>,
    value: ValueSpec,
}

/// An element of a buffer.
#[derive(Clone, Debug)]
struct AccessSpec {
    buffer: Buffer,
    row: IndexSpec,
    column: IndexSpec,
    /// Inside every range around it, whether the index depends on that or not.
    inside: bool,
    /// After everything that stands before it.
    ordered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Buffer {
    /// `a`, i32[24].
    Line,
    /// `b`, f32[4, 6].
    Table,
    /// `b` seen as f32[24].
    Flat,
    /// `c`, i64[2].
    Pair,
    /// A register, i32[2].
    Register,
}

#[derive(Clone, Debug)]
enum IndexSpec {
    /// The number of the point, row by row.
    Point(i64),
    /// A combination of the ranges.
    Affine([i64; 3], i64),
    /// An element of `x` at such a place, perhaps clipped below a length.
    Data([i64; 3], Option<i64>),
}

#[derive(Clone, Debug)]
enum CondSpec {
    Below(IndexSpec, i64),
    Least(IndexSpec, i64),
    Within(IndexSpec, i64, i64),
}

#[derive(Clone, Debug)]
enum ValueSpec {
    Constant(i32),
    Index(IndexSpec),
    Load(AccessSpec),
    Sum(AccessSpec, i32),
    Choice(CondSpec, AccessSpec, AccessSpec),
    Gated(CondSpec, AccessSpec),
}

fn index() -> impl Strategy<Value = IndexSpec> {
    let factors = || prop::array::uniform3(select(vec![-2i64, -1, 0, 0, 1, 1, 2, 3, 4, 6]));
    prop_oneof![
        6 => select(vec![0i64, 0, 0, 1, -1]).prop_map(IndexSpec::Point),
        4 => (factors(), 0..12i64).prop_map(|(c, offset)| IndexSpec::Affine(c, offset)),
        1 => (factors(), prop::option::of(1..24i64)).prop_map(|(c, clip)| IndexSpec::Data(c, clip)),
    ]
}

fn cond() -> impl Strategy<Value = CondSpec> {
    prop_oneof![
        (index(), -1..20i64).prop_map(|(i, c)| CondSpec::Below(i, c)),
        (index(), -1..6i64).prop_map(|(i, c)| CondSpec::Least(i, c)),
        (index(), 0..4i64, 2..20i64).prop_map(|(i, lo, hi)| CondSpec::Within(i, lo, hi)),
    ]
}

fn access(buffers: &'static [Buffer]) -> impl Strategy<Value = AccessSpec> {
    let often = || prop::bool::weighted(0.85);
    (select(buffers), index(), index(), often(), often()).prop_map(
        |(buffer, row, column, inside, ordered)| AccessSpec {
            buffer,
            row,
            column,
            inside,
            ordered,
        },
    )
}

const READ: &[Buffer] =
    &[Buffer::Line, Buffer::Table, Buffer::Flat, Buffer::Pair, Buffer::Register];
const WRITE: &[Buffer] = &[
    Buffer::Line,
    Buffer::Line,
    Buffer::Table,
    Buffer::Table,
    Buffer::Flat,
    Buffer::Pair,
    Buffer::Register,
];

fn value() -> impl Strategy<Value = ValueSpec> {
    prop_oneof![
        2 => (-3..4i32).prop_map(ValueSpec::Constant),
        3 => index().prop_map(ValueSpec::Index),
        1 => access(READ).prop_map(ValueSpec::Load),
        1 => (access(READ), -3..4i32).prop_map(|(a, c)| ValueSpec::Sum(a, c)),
        1 => (cond(), access(READ), access(READ)).prop_map(|(c, a, b)| ValueSpec::Choice(c, a, b)),
        1 => (cond(), access(READ)).prop_map(|(c, a)| ValueSpec::Gated(c, a)),
    ]
}

fn stmt() -> impl Strategy<Value = StmtSpec> {
    let depth = select(vec![0usize, 1, 2, 2, 3, 3, 3]);
    let gate = prop::option::weighted(0.3, cond());
    (prop::bool::weighted(0.4), depth, any::<bool>(), access(WRITE), any::<bool>(), gate, value())
        .prop_map(|(second_nest, depth, late, access, atomic, gate, value)| StmtSpec {
            second_nest,
            depth,
            late,
            access,
            atomic,
            gate,
            value,
        })
}

fn spec() -> impl Strategy<Value = Spec> {
    let bound = prop_oneof![
        8 => select(vec![0i64, 1, 2, 3, 4, 4]).prop_map(Bound::Constant),
        1 => Just(Bound::Triangle),
        1 => (0..8i64).prop_map(Bound::Data),
    ];
    let range = (select(vec![Global, Global, Local, Loop]), bound);
    let nests = prop_oneof![4 => Just(Nests::One), 1 => Just(Nests::Shared), 1 => Just(Nests::Own)];
    (prop::collection::vec(range, 1..4), nests, prop::collection::vec(stmt(), 1..4)).prop_map(
        |(mut ranges, nests, stmts)| {
            // Global ranges are outermost; a parallel range has a constant bound.
            ranges.sort_by_key(|(kind, _)| *kind != Global);
            for (kind, bound) in &mut ranges {
                if kind.is_parallel() && !matches!(bound, Bound::Constant(_)) {
                    *bound = Bound::Constant(2);
                }
            }
            Spec { ranges, nests, stmts }
        },
    )
}

/// What a statement is built from: the buffers, and the ranges and statements around it.
struct Scope<'k> {
    k: &'k Kernel,
    /// The buffers that are used so far.
    buffers: RefCell<Vec<(&'static str, Val<'k>)>>,
    ranges: Vec<Val<'k>>,
    /// The extents that count for [`IndexSpec::Point`].
    extents: Vec<i64>,
    before: Vec<Val<'k>>,
}

impl<'k> Scope<'k> {
    /// The buffer `name`, which becomes the next argument when it is first used.
    fn buffer(&self, name: &'static str) -> Val<'k> {
        let mut buffers = self.buffers.borrow_mut();
        if let Some((_, buffer)) = buffers.iter().find(|(other, _)| *other == name) {
            return *buffer;
        }
        let buffer = match name {
            "a" => self.k.param_mut(name, I32, 24),
            "b" => self.k.param_mut(name, F32, [4, 6]),
            "c" => self.k.param_mut(name, I64, 2),
            "x" => self.k.param(name, I32, 8),
            _ => self.k.reg(I32, 2),
        };
        buffers.push((name, buffer));
        buffer
    }

    fn affine(&self, factors: &[i64], offset: i64) -> Val<'k> {
        let terms = self.ranges.iter().zip(factors).filter(|(_, c)| **c != 0);
        terms.fold(self.k.int(offset), |sum, (&r, &c)| sum + r * c)
    }

    fn index(&self, spec: &IndexSpec) -> Val<'k> {
        match spec {
            IndexSpec::Point(offset) => {
                let strides: Vec<i64> = (0..self.ranges.len())
                    .map(|at| self.extents[at + 1..self.ranges.len()].iter().product())
                    .collect();
                self.affine(&strides, *offset)
            }
            IndexSpec::Affine(factors, offset) => self.affine(factors, *offset),
            IndexSpec::Data(factors, clip) => {
                let value = self.buffer("x").at(self.affine(factors, 0)).load().cast(Index);
                match clip {
                    Some(length) => value.clip(0, length - 1),
                    None => value,
                }
            }
        }
    }

    fn cond(&self, spec: &CondSpec) -> Val<'k> {
        match spec {
            CondSpec::Below(index, c) => self.index(index).lt(*c),
            CondSpec::Least(index, c) => self.index(index).ge(*c),
            CondSpec::Within(index, lo, hi) => {
                let index = self.index(index);
                index.ge(*lo) & index.lt(*hi)
            }
        }
    }

    fn address(&self, spec: &AccessSpec) -> Val<'k> {
        let mut buffer = self.buffer(match spec.buffer {
            Buffer::Line => "a",
            Buffer::Table | Buffer::Flat => "b",
            Buffer::Pair => "c",
            Buffer::Register => "register",
        });
        let mut deps: Vec<Val<'k>> = Vec::new();
        if spec.inside {
            deps.extend(&self.ranges);
        }
        if spec.ordered {
            deps.extend(&self.before);
        }
        if !deps.is_empty() {
            buffer = buffer.after(&deps[..]);
        }
        let row = self.index(&spec.row);
        match spec.buffer {
            Buffer::Table => buffer.at([row, self.index(&spec.column)]),
            Buffer::Flat => buffer.reshape(24).at(row),
            Buffer::Line | Buffer::Pair | Buffer::Register => buffer.at(row),
        }
    }

    fn value(&self, spec: &ValueSpec, dtype: DType) -> Val<'k> {
        let load = |access: &AccessSpec| self.address(access).load().cast(I32);
        let value = match spec {
            ValueSpec::Constant(c) => self.k.constant(I32, *c),
            ValueSpec::Index(index) => self.index(index).cast(I32),
            ValueSpec::Load(access) => load(access),
            ValueSpec::Sum(access, c) => load(access) + self.k.constant(I32, *c),
            ValueSpec::Choice(cond, a, b) => {
                let (a, b) = (self.address(a).load(), self.address(b).load());
                let b = b.cast(a.dtype());
                self.cond(cond).where_(a, b)
            }
            ValueSpec::Gated(cond, access) => self.address(access).load_if(self.cond(cond)),
        };
        value.cast(dtype)
    }

    fn stmt(&self, spec: &StmtSpec) -> Val<'k> {
        let address = self.address(&spec.access);
        let gate = spec.gate.as_ref().map(|gate| self.cond(gate));
        let dtype = address.dtype();
        let atomic = spec.atomic && spec.access.buffer != Buffer::Register;
        // Sums of floats are exact in any order only if they are of small numbers.
        let value = match spec.value {
            _ if !(atomic && dtype == F32) => self.value(&spec.value, dtype),
            ValueSpec::Constant(c) => self.k.constant(dtype, c as f32),
            _ => self.k.constant(dtype, 1.0),
        };
        match (atomic, gate) {
            (false, None) => address.store(value),
            (false, Some(gate)) => address.store_if(gate, value),
            (true, None) => address.atomic_add(value),
            (true, Some(gate)) => address.atomic_add_if(gate, value),
        }
    }
}

/// The kernel of `spec`; illegal ones are an error.
fn build(spec: &Spec) -> Result<KernelGraph, BuildErrors> {
    let k = Kernel::new();
    let buffers = RefCell::default();
    let mut scope = Scope { k: &k, buffers, ranges: vec![], extents: vec![], before: vec![] };
    let mut tops: Vec<Val<'_>> = Vec::new();
    let mut ranges: Vec<Val<'_>> = Vec::new();
    for second in [false, true] {
        if ranges.is_empty() || spec.nests == Nests::Own {
            ranges.clear();
            scope.extents.clear();
            for (kind, bound) in &spec.ranges {
                let (range, extent) = match bound {
                    Bound::Constant(extent) => (k.range(*extent, *kind), *extent),
                    Bound::Triangle => match ranges.last() {
                        Some(&outer) => {
                            (k.range(outer + 1, *kind), scope.extents[ranges.len() - 1])
                        }
                        None => (k.range(3, *kind), 3),
                    },
                    Bound::Data(at) => {
                        let length = scope.buffer("x").at(*at).load().cast(Index);
                        (k.range(length.clip(0, 3), *kind), 3)
                    }
                };
                ranges.push(range);
                scope.extents.push(extent);
            }
        }
        let deepest = ranges.len();
        let stmts = |depth: usize, late: bool| {
            spec.stmts.iter().filter(move |stmt| {
                (spec.nests != Nests::One && stmt.second_nest) == second
                    && stmt.depth.min(deepest) == depth
                    && stmt.late == late
            })
        };
        // Down to the innermost block, and up again.
        let outer = tops.clone();
        let mut blocks: Vec<Vec<Val<'_>>> = Vec::new();
        for depth in 0..=deepest {
            scope.ranges = ranges[..depth].to_vec();
            let mut block = Vec::new();
            for stmt in stmts(depth, false) {
                scope.before =
                    outer.iter().chain(blocks.iter().flatten()).chain(&block).copied().collect();
                block.push(scope.stmt(stmt));
            }
            blocks.push(block);
        }
        for depth in (0..=deepest).rev() {
            scope.ranges = ranges[..depth].to_vec();
            for stmt in stmts(depth, true) {
                scope.before =
                    outer.iter().chain(blocks[..=depth].iter().flatten()).copied().collect();
                let stmt = scope.stmt(stmt);
                blocks[depth].push(stmt);
            }
            let Some(block) = blocks.pop().filter(|block| !block.is_empty()) else { continue };
            let body = k.group(block);
            match depth.checked_sub(1) {
                // One END for all ranges around a body that has nothing beside it.
                Some(0) => blocks[0].push(body.end(ranges[0])),
                Some(_)
                    if blocks[..depth].iter().all(Vec::is_empty)
                        && stmts_left(spec, depth, deepest, second) =>
                {
                    blocks[0].push(body.end(&ranges[..depth]));
                }
                Some(around) => blocks[around].push(body.end(ranges[around])),
                None => tops.push(body),
            }
        }
    }
    k.group(tops).sink("random")
}

/// Whether no late statement is left for the blocks around `depth`, but for the outermost one.
fn stmts_left(spec: &Spec, depth: usize, deepest: usize, second: bool) -> bool {
    spec.stmts.iter().all(|stmt| {
        let here = (spec.nests != Nests::One && stmt.second_nest) == second;
        !(here && stmt.late && (1..depth).contains(&stmt.depth.min(deepest)))
    })
}

/// What became of the cases.
#[derive(Default)]
struct Counts {
    illegal: Cell<u32>,
    refuted: Cell<u32>,
    unknown: Cell<u32>,
    undefined: Cell<u32>,
    accepted: Cell<u32>,
}

fn count(counter: &Cell<u32>) {
    counter.set(counter.get() + 1);
}

fn case(spec: &Spec, counts: &Counts) -> Result<(), TestCaseError> {
    let Ok(kernel) = build(spec) else {
        count(&counts.illegal);
        return Ok(());
    };
    let mut random = Random(5);
    let params = kernel.graph.params(kernel.sink).into_iter();
    let inputs: Vec<Data> = params
        .map(|n| match kernel.graph[n].dtype {
            F32 => random.floats(24, 9),
            I64 => Data::of::<i64>(vec![3, -4]),
            _ if matches!(&kernel.graph[n].arg, Arg::Param(param) if param.mutable) => {
                random.ints(24, -9, 9)
            }
            _ => Data::of::<i32>(vec![0, 1, 5, 2, -1, 23, 30, 3]),
        })
        .collect();
    let result = lower(&kernel, &NO_GRID);
    let on_grid = lower(&kernel, &GRID);
    // What would need its loops split, a target may refuse that the other does not.
    let unsupported = |result: &Result<Program, LowerError>| {
        let kind = result.as_ref().err().map(|error| &error.kind);
        kind.is_some_and(|kind| {
            use LowerErrorKind::{NoPoint, OnceForAll, OnePerPoint};
            matches!(kind, OnceForAll { .. } | OnePerPoint { .. } | NoPoint { .. })
        })
    };
    match (&result, &on_grid) {
        (Ok(_), Ok(_)) => {}
        (Err(a), Err(b)) if a == b => {}
        (a, b) if unsupported(a) || unsupported(b) => {}
        _ => prop_assert!(
            false,
            "{kernel}\none target refuses it: {:?}\n{:?}",
            result.err(),
            on_grid.err()
        ),
    }
    let mut programs = Vec::new();
    for program in [result, on_grid] {
        if unsupported(&program) {
            count(&counts.unknown);
            continue;
        }
        match program {
            Ok(program) => programs.push(program),
            Err(error) => {
                let proved = match error.kind {
                    LowerErrorKind::MaybeRace { .. } => None,
                    LowerErrorKind::OutOfBounds { .. } => Some(OutOfBounds::Error),
                    LowerErrorKind::Race { .. } => Some(OutOfBounds::Guard),
                    ref kind => panic!("{kernel}\nno reason to refuse it: {kind}"),
                };
                count(if proved.is_some() { &counts.refuted } else { &counts.unknown });
                // Any error will do: the kernel may have several. The oracle asks only for what is
                // needed, so around an empty loop it sees less.
                let full = |(_, bound): &(AxisType, Bound)| matches!(bound, Bound::Constant(1..));
                if let Some(out_of_bounds) = proved.filter(|_| spec.ranges.iter().all(full)) {
                    let outcome = oracle(&kernel, &inputs, &[], 0, out_of_bounds);
                    prop_assert!(outcome.is_err(), "{kernel}\nthe oracle accepts it, but {error}");
                }
                return Ok(());
            }
        }
    }
    let mut want: Option<Vec<Data>> = None;
    for seed in 0..4 {
        match oracle(&kernel, &inputs, &[], seed, OutOfBounds::Guard) {
            Ok(got) => match &want {
                Some(want) => assert_agree(&kernel, "the oracle in another order", want, &got),
                None => want = Some(got),
            },
            // Reads of undefined registers are not refused.
            Err(error) if matches!(error.kind, ErrorKind::Undefined { .. }) => {
                count(&counts.undefined);
                return Ok(());
            }
            Err(error) => {
                prop_assert!(programs.is_empty(), "{kernel}\naccepted, but {error}");
                return Ok(());
            }
        }
    }
    let want = want.expect("there are seeds");
    for program in &programs {
        for seed in 0..2 {
            assert_agree(&kernel, &program.to_string(), &want, &run(program, &inputs, &[], seed));
        }
    }
    count(&counts.accepted);
    Ok(())
}

/// `PROPTEST_CASES` and `PROPTEST_RNG_SEED` choose other kernels.
#[test]
fn random_kernels() {
    let defaults = Config::default();
    let seed = match defaults.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        seed => seed,
    };
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { defaults.cases } else { 3000 };
    let config = Config { cases, rng_seed: seed, failure_persistence: None, ..defaults };
    let counts = Counts::default();
    let mut runner = TestRunner::new(config);
    if let Err(error) = runner.run(&spec(), |spec| case(&spec, &counts)) {
        panic!("{error}");
    }
    let [illegal, refuted, unknown, undefined, accepted] =
        [&counts.illegal, &counts.refuted, &counts.unknown, &counts.undefined, &counts.accepted]
            .map(Cell::get);
    println!(
        "{accepted} accepted, {refuted} refuted, {unknown} unknown, {undefined} undefined, {illegal} illegal"
    );
    // A generator that makes nothing of interest proves nothing.
    assert!(5 * accepted > cases && 20 * refuted > cases, "{accepted} accepted, {refuted} refuted");
}
