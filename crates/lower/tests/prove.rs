//! What the provers of bounds and races accept and refuse, and that the oracle agrees.

#![allow(clippy::erasing_op, reason = "an index times 0 has a region")]

mod common;

use common::{GRID, NO_GRID, Random, check, lower, oracle};
use expect_test::{Expect, expect};
use interp::{Data, ErrorKind, OutOfBounds};
use lower::LowerErrorKind;
use uop::AxisType::{Global, Local, Loop};
use uop::DType::{F32, I32, Index};
use uop::{Kernel, KernelGraph};

/// Asserts that both kinds of target refuse `kernel` with this message.
#[track_caller]
fn refused(kernel: &KernelGraph, message: &Expect) -> LowerErrorKind {
    let error = lower(kernel, &NO_GRID).expect_err("the kernel is wrong");
    assert_eq!(lower(kernel, &GRID).err(), Some(error.clone()));
    message.assert_eq(&error.to_string());
    error.kind
}

/// Asserts that the oracle finds the same fault in `kernel`: each order of points shows it, since
/// what was touched is remembered.
#[track_caller]
fn fails(kernel: &KernelGraph, inputs: &[Data], is: impl Fn(&ErrorKind) -> bool) {
    for seed in 0..4 {
        let error = oracle(kernel, inputs, &[], seed, OutOfBounds::Error).expect_err("a fault");
        assert!(is(&error.kind), "{error}");
    }
}

#[track_caller]
fn races(kernel: &KernelGraph, inputs: &[Data], message: Expect) {
    let kind = refused(kernel, &message);
    assert!(matches!(kind, LowerErrorKind::Race { .. } | LowerErrorKind::MaybeRace { .. }));
    fails(kernel, inputs, |kind| matches!(kind, ErrorKind::Race { .. }));
}

#[track_caller]
fn leaves(kernel: &KernelGraph, inputs: &[Data], message: Expect) {
    let kind = refused(kernel, &message);
    assert!(matches!(kind, LowerErrorKind::OutOfBounds { .. }));
    fails(kernel, inputs, |kind| matches!(kind, ErrorKind::OutOfBounds { .. }));
}

fn i32s(n: usize) -> Data {
    Random(n as u64).ints(n, -100, 100)
}

#[test]
fn accepted_saxpy() {
    let k = Kernel::new();
    let (y, x) = (k.param_mut("y", F32, 100), k.param("x", F32, 100));
    let i = k.range(100, Global);
    let kernel = y.at(i).store(x.at(i).load() * 2.0 + y.at(i).load()).end(i).sink("saxpy").unwrap();
    check(&kernel, &[Random(0).floats(100, 50), Random(1).floats(100, 50)]);
}

#[test]
fn accepted_blocked_columns_with_a_tail() {
    let k = Kernel::new();
    let out = k.param_mut("out", F32, [3, 10]);
    let (i, outer, inner) = (k.range(3, Global), k.range(3, Global), k.range(4, Local));
    let j = outer * 4 + inner;
    let store = out.at([i, j]).store_if(j.lt(10), 0.0);
    check(&store.end([i, outer, inner]).sink("zero").unwrap(), &[Data::of::<f32>(vec![1.0; 30])]);
}

#[test]
fn accepted_transpose() {
    let k = Kernel::new();
    let (out, x) = (k.param_mut("out", I32, [5, 3]), k.param("x", I32, [3, 5]));
    let (i, j) = (k.range(3, Global), k.range(5, Local));
    let kernel = out.at([j, i]).store(x.at([i, j]).load()).end([i, j]).sink("t").unwrap();
    check(&kernel, &[i32s(15), i32s(15)]);
}

#[test]
fn accepted_interleaved_stores() {
    let k = Kernel::new();
    let out = k.param_mut("out", I32, 8);
    let i = k.range(4, Global);
    let even = out.at(i * 2).store(i.cast(I32));
    let odd = out.at(i * 2 + 1).store(-i.cast(I32));
    check(&k.group([even, odd]).end(i).sink("interleave").unwrap(), &[i32s(8)]);
}

#[test]
fn accepted_reversal() {
    let k = Kernel::new();
    let (out, x) = (k.param_mut("out", I32, 7), k.param("x", I32, 7));
    let i = k.range(7, Global);
    check(&out.at(-i + 6).store(x.at(i).load()).end(i).sink("flip").unwrap(), &[i32s(7), i32s(7)]);
}

#[test]
fn accepted_in_place_update_with_an_atomic_beside() {
    let k = Kernel::new();
    let (y, x) = (k.param_mut("y", I32, 6), k.param("x", I32, 6));
    let count = k.param_mut("count", I32, 3);
    let i = k.range(6, Global);
    let update = y.at(i).store(y.at(i).load() + x.at(i).load());
    let bin = x.at(i).load().cast(Index).clip(0, 2);
    let kernel = k.group([update, count.at(bin).atomic_add(1)]).end(i).sink("both").unwrap();
    check(&kernel, &[i32s(6), i32s(6), i32s(3)]);
}

/// Rows of one buffer that do not meet: what is read lies above what is written.
#[test]
fn accepted_halves() {
    let k = Kernel::new();
    let x = k.param_mut("x", I32, 12);
    let i = k.range(6, Global);
    check(&x.at(i).store(x.at(i + 6).load()).end(i).sink("halves").unwrap(), &[i32s(12)]);
    let k = Kernel::new();
    let x = k.param_mut("x", I32, [2, 3, 4]);
    let (i, j) = (k.range(3, Global), k.range(4, Local));
    let kernel = x.at([k.int(0), i, j]).store(x.at([k.int(1), i * 0, j]).load());
    check(&kernel.end([i, j]).sink("planes").unwrap(), &[i32s(24)]);
}

/// Stores at one element by a serial loop: the last one stays.
#[test]
fn accepted_serial_overwrite() {
    let k = Kernel::new();
    let out = k.param_mut("out", I32, 4);
    let (i, c) = (k.range(4, Global), k.range(5, Loop));
    let kernel = out.at(i + c * 0).store(c.cast(I32)).end([i, c]).sink("last").unwrap();
    assert_eq!(check(&kernel, &[i32s(4)])[0], Data::of::<i32>(vec![4; 4]));
}

#[test]
fn race_on_one_element() {
    let k = Kernel::new();
    let out = k.param_mut("out", I32, 1);
    let i = k.range(4, Global);
    let kernel = out.after(i).at(0).store(i.cast(I32)).end(i).sink("one").unwrap();
    races(
        &kernel,
        &[i32s(1)],
        expect![
            "%8: race on `out`: this access at %3 = 1 and %8 at %3 = 0 touch element [0] and nothing orders them; use an atomic, or order them with `after`"
        ],
    );
}

#[test]
fn race_on_a_diagonal() {
    for (kind, message) in [
        (
            Global,
            expect![
                "%9: race on `out`: this access at %3 = 1, %5 = 0 and %9 at %3 = 0, %5 = 1 touch element [1] and nothing orders them; use an atomic, or order them with `after`"
            ],
        ),
        (
            Local,
            expect![
                "%9: race on `out`: this access at %3 = 1, %5 = 0 and %9 at %3 = 0, %5 = 1 touch element [1] and nothing orders them; use an atomic, or order them with `after`"
            ],
        ),
    ] {
        let k = Kernel::new();
        let out = k.param_mut("out", I32, 9);
        let (i, j) = (k.range(4, Global), k.range(6, kind));
        let kernel = out.at(i + j).store(i.cast(I32)).end([i, j]).sink("diagonal").unwrap();
        races(&kernel, &[i32s(9)], message);
    }
}

#[test]
fn race_of_a_scatter() {
    let k = Kernel::new();
    let (count, x) = (k.param_mut("count", I32, 3), k.param("x", I32, 5));
    let i = k.range(5, Global);
    let bin = x.at(i).load().cast(Index).clip(0, 2);
    let kernel = count.at(bin).store(count.at(bin).load() + 1).end(i).sink("scatter").unwrap();
    races(
        &kernel,
        &[i32s(3), Data::of::<i32>(vec![0, 1, 0, 2, 2])],
        expect![
            "%13: possible race on `count`: cannot prove that this access and %16 never touch one element at different points, as that depends on %6; use an atomic, order them with `after`, or vouch for the store with `disjoint`"
        ],
    );
}

#[test]
fn race_with_a_neighbour() {
    let k = Kernel::new();
    let x = k.param_mut("x", I32, 6);
    let i = k.range(5, Global);
    let kernel = x.at(i).store(x.at(i + 1).load()).end(i).sink("shift").unwrap();
    races(
        &kernel,
        &[i32s(6)],
        expect![
            "%8: race on `x`: this access at %3 = 0 and %9 at %3 = 1 touch element [1] and nothing orders them; use an atomic, or order them with `after`"
        ],
    );
}

#[test]
fn race_of_an_atomic_with_a_load() {
    let k = Kernel::new();
    let (x, y) = (k.param_mut("x", I32, 2), k.param_mut("y", I32, 4));
    let i = k.range(4, Global);
    let add = x.after(i).at(1).atomic_add(1);
    let kernel = y.at(i).store(x.after(add).at(1).load()).end(i).sink("tickets").unwrap();
    races(
        &kernel,
        &[i32s(2), i32s(4)],
        expect![
            "%10: race on `x`: this access at %4 = 1 and %13 at %4 = 0 touch element [1] and nothing orders them; use an atomic, or order them with `after`"
        ],
    );
}

#[test]
fn race_between_nests() {
    let k = Kernel::new();
    let (x, y) = (k.param_mut("x", I32, 4), k.param_mut("y", I32, 4));
    let (i, j) = (k.range(4, Global), k.range(4, Global));
    let first = x.at(i).store(1).end(i);
    let kernel = y.at(j).store(x.after(first).at(j).load()).end(j).sink("nests").unwrap();
    races(
        &kernel,
        &[i32s(4), i32s(4)],
        expect![
            "%8: race on `x`: this access at %5 = 0 and %12 at %3 = 0 touch element [0] and nothing orders them; use an atomic, or order them with `after`"
        ],
    );
}

#[test]
fn race_without_the_local_range() {
    let k = Kernel::new();
    let (x, y) = (k.param_mut("x", I32, 3), k.param_mut("y", I32, [3, 4]));
    let (i, j) = (k.range(3, Global), k.range(4, Local));
    let once = x.at(i).store(7);
    let value = x.after([once, j]).at(i).load();
    let kernel = y.at([i, j]).store(value).end([i, j]).sink("group").unwrap();
    races(
        &kernel,
        &[i32s(3), i32s(12)],
        expect![
            "%9: race on `x`: this access at %4 = 0 and %12 at %4 = 0, %5 = 1 touch element [0] and nothing orders them; use an atomic, or order them with `after`"
        ],
    );
}

#[test]
fn waived_races() {
    let k = Kernel::new();
    let (out, x) = (k.param_mut("out", I32, 5), k.param("x", I32, 5));
    let i = k.range(5, Global);
    let row = x.at(i).load().cast(Index);
    let store = out.at(row).store(i.cast(I32)).assume_disjoint();
    let kernel = store.end(i).sink("permute").unwrap();
    check(&kernel, &[i32s(5), Data::of::<i32>(vec![3, 1, 4, 0, 2])]);
    fails(&kernel, &[i32s(5), Data::of::<i32>(vec![3, 1, 3, 0, 2])], |kind| {
        matches!(kind, ErrorKind::NotDisjoint { .. })
    });
}

#[test]
fn off_by_one() {
    let k = Kernel::new();
    let (out, x) = (k.param_mut("out", I32, 5), k.param("x", I32, 5));
    let i = k.range(5, Global);
    let kernel = out.at(i).store(x.at(i + 1).load()).end(i).sink("load").unwrap();
    leaves(
        &kernel,
        &[i32s(5), i32s(5)],
        expect![
            "%8: index 5 is out of bounds for axis 0 of `x`, which has length 5, at %3 = 4; gate the access or correct the index"
        ],
    );

    let k = Kernel::new();
    let out = k.param_mut("out", I32, [2, 5]);
    let (i, j) = (k.range(2, Global), k.range(5, Loop));
    let kernel = out.at([i, j - 1]).store(0).end([i, j]).sink("store").unwrap();
    leaves(
        &kernel,
        &[i32s(10)],
        expect![
            "%9: index -1 is out of bounds for axis 1 of `out`, which has length 5, at %3 = 0, %4 = 0; gate the access or correct the index"
        ],
    );

    let k = Kernel::new();
    let out = k.param_mut("out", I32, 5);
    let i = k.range(6, Global);
    let kernel = out.at(i).atomic_add_if(i.le(5), 1).end(i).sink("gate").unwrap();
    leaves(
        &kernel,
        &[i32s(5)],
        expect![
            "%9: index 5 is out of bounds for axis 0 of `out`, which has length 5, at %3 = 5; gate the access or correct the index"
        ],
    );
}

/// Where the gate keeps an access in bounds nothing is guarded: the program has one comparison.
#[test]
fn gates_prove_bounds() {
    let k = Kernel::new();
    let out = k.param_mut("out", I32, 5);
    let i = k.range(8, Global);
    let kernel = out.at(i).store_if(i.lt(5), 3).end(i).sink("gate").unwrap();
    let program = lower(&kernel, &GRID).unwrap().to_string();
    assert_eq!(program.matches("cmp").count(), 1, "{program}");
    check(&kernel, &[i32s(5)]);
}
