//! Declared operations: bodies, functions, footprints and effects, against the oracle.

mod common;

use common::{GRID, NO_GRID, check, lower, oracle};
use expect_test::{Expect, expect};
use interp::{Data, OutOfBounds};
use lower::Caps;
use uop::{AtomicOp, AxisType, DType, Declaration, Effect, Kernel, KernelGraph, Val};

const F32: DType = DType::F32;

/// Halves `elements` in a row; a function of the tests.
fn halve(elements: u32) -> Declaration {
    Declaration::new("halve").pointer_to(F32, elements).effect(Effect::Writes)
}

/// The sum of 4 elements in a row and a value; a function of the tests.
fn total() -> Declaration {
    Declaration::new("total").pointer_to(F32, 4).value(F32).result(F32).effect(Effect::Reads)
}

/// `old = *p; *p = value; old`; a function of the tests.
fn swap() -> Declaration {
    Declaration::new("swap").pointer(F32).value(F32).result(F32).effect(Effect::Writes)
}

/// The same, with a body.
fn swap_in_uops() -> Declaration {
    swap().body(|_, args| {
        let old = args[0].load();
        old.after(args[0].after(old).store(args[1]))
    })
}

fn kernel(build: impl for<'k> FnOnce(&'k Kernel) -> Val<'k>) -> KernelGraph {
    let k = Kernel::new();
    build(&k).sink("f").unwrap_or_else(|error| panic!("{error}"))
}

fn floats(range: std::ops::Range<i32>) -> Data {
    Data::of::<f32>(range.map(|x| x as f32).collect())
}

/// `halve` on 4 elements of `x`, f32[rows, 6], in each row, from `offset(i)` on.
fn halves(rows: i64, offset: impl for<'k> FnOnce(Val<'k>) -> Val<'k>) -> KernelGraph {
    kernel(|k| {
        let x = k.param_mut("x", F32, [rows, 6]);
        let i = k.range(rows, AxisType::Global);
        k.custom(halve(4), [x.at([i, offset(i)])]).end(i)
    })
}

#[test]
fn a_footprint_at_the_edge_is_proved() {
    // Rows of 6: 2..6 is the last place for 4 in a row.
    let kernel = halves(3, |i| i.min(2));
    let got = check(&kernel, &[floats(0..18)]);
    let want = [0., 0.5, 1., 1.5, 4., 5., 6., 3.5, 4., 4.5, 5., 11., 12., 13., 7., 7.5, 8., 8.5];
    assert_eq!(got[0], Data::of::<f32>(want.to_vec()));
    let program = lower(&kernel, &NO_GRID).unwrap_or_else(|error| panic!("{error}")).to_string();
    assert!(program.contains("    call halve &x[") && !program.contains("if "), "{program}");
}

#[test]
fn a_footprint_over_the_edge_is_refuted() {
    let kernel = halves(4, |i| i);
    let error = lower(&kernel, &NO_GRID).expect_err("3..7 is no part of a row").to_string();
    expect!["%5: index 6 is out of bounds for axis 1 of `x`, which has length 6, at %3 = 3; gate the access or correct the index"].assert_eq(&error);
    let error = oracle(&kernel, &[floats(0..24)], &[], 0, OutOfBounds::Error);
    expect!["%5: index 6 is out of bounds for axis 1 of length 6, at %3 = 3"]
        .assert_eq(&error.expect_err("it is out of bounds").to_string());
}

#[test]
fn a_footprint_of_unknown_place_is_guarded() {
    let kernel = kernel(|k| {
        let x = k.param_mut("x", F32, [2, 6]);
        let at = k.param("at", DType::I32, 2);
        let i = k.range(2, AxisType::Global);
        let j = at.at(i).load().cast(DType::Index);
        k.custom(halve(4), [x.at([i, j])]).end(i)
    });
    for (at, first) in [([2, 3], 2.), ([-1, 2], 0.)] {
        let got = check(&kernel, &[floats(0..12), Data::of::<i32>(at.to_vec())]);
        let x: Vec<f32> = (0..12).map(|i| got[0].get(i).as_float().unwrap() as f32).collect();
        let halved = |i: usize| x[i] != i as f32;
        assert_eq!((2..6).all(halved), first > 0., "{x:?}");
        assert_eq!((8..12).all(halved), first == 0., "{x:?}");
    }
    let program = lower(&kernel, &NO_GRID).unwrap_or_else(|error| panic!("{error}")).to_string();
    assert!(program.contains("{ call halve &x["), "{program}");
}

#[test]
fn footprints_that_meet_race() {
    let at = |step: i64, elements: u32| {
        kernel(|k| {
            let x = k.param_mut("x", F32, 40);
            let i = k.range(8, AxisType::Global);
            k.custom(halve(elements), [x.at(i * step)]).end(i)
        })
    };
    check(&at(4, 4), &[floats(0..40)]);
    check(&at(5, 4), &[floats(0..40)]);
    let error = lower(&at(3, 4), &GRID).expect_err("they meet").to_string();
    expect!["%7: race on `x`: this access at %3 = 1 and %7 at %3 = 0 touch element [3] and nothing orders them; use an atomic, or order them with `after`"].assert_eq(&error);
    let error = oracle(&at(3, 4), &[floats(0..40)], &[], 0, OutOfBounds::Error);
    error.expect_err("they meet");
}

#[test]
fn what_reads_comes_after_what_is_written() {
    // y[i] = total of x[4i..4i + 4] after each of them is stored, and i.
    let ordered = |ordered: bool| {
        kernel(|k| {
            let y = k.param_mut("y", F32, 3);
            let x = k.param_mut("x", F32, 12);
            let i = k.range(3, AxisType::Global);
            let j = k.range(4, AxisType::Loop);
            let place = i * 4 + j;
            let fill = x.after(i).at(place).store(place.cast(F32)).end(j);
            let x = if ordered { x.after(fill) } else { x };
            let sum = k.custom(total(), [x.at(i * 4), i.cast(F32)]);
            k.group([y.at(i).store(sum), fill]).end(i)
        })
    };
    let got = check(&ordered(true), &[floats(0..3), floats(0..12)]);
    assert_eq!(got[0], Data::of::<f32>(vec![6., 23., 40.]));
    let error = lower(&ordered(false), &NO_GRID).expect_err("they race").to_string();
    assert!(error.contains("race on `x`"), "{error}");
}

#[test]
fn an_effect_with_a_value_is_both() {
    for declaration in [swap(), swap_in_uops()] {
        // Each x[i] is shifted into a register, and what falls out goes to y[i].
        let shift = kernel(|k| {
            let y = k.param_mut("y", F32, [2, 5]);
            let x = k.param("x", F32, [2, 5]);
            let [g, i] = [k.range(2, AxisType::Global), k.range(5, AxisType::Loop)];
            let reg = k.reg(F32, [] as [Val<'_>; 0]);
            let first = reg.at([] as [Val<'_>; 0]).store(-1.0_f32);
            let at = reg.after([first, i]).at([] as [Val<'_>; 0]);
            let old = k.custom(declaration.clone(), [at, x.at([g, i]).load()]);
            y.at([g, i]).store(old).end(i).end(g)
        });
        let got = check(&shift, &[floats(0..10), floats(0..10)]);
        let want = vec![-1., 0., 1., 2., 3., -1., 5., 6., 7., 8.];
        assert_eq!(got[0], Data::of::<f32>(want));

        // Only its effect is wanted, or what comes after it; with a gate.
        let effect = kernel(|k| {
            let x = k.param_mut("x", F32, 6);
            let y = k.param_mut("y", F32, 6);
            let i = k.range(6, AxisType::Global);
            let gate = i.lt(4);
            let set = k.custom(declaration.clone(), [x.at(i), i.cast(F32) * 2.0, gate]);
            let now = x.after(set).at(i).load();
            k.group([y.at(i).store(now + set), set]).end(i)
        });
        let got = check(&effect, &[floats(0..6), floats(0..6)]);
        assert_eq!(got[0], Data::of::<f32>(vec![0., 2., 4., 6., 4., 5.]));
        assert_eq!(got[1], Data::of::<f32>(vec![0., 3., 6., 9., 4., 5.]));
    }
}

#[test]
fn a_body_keeps_the_instances() {
    // The body stores what depends on no range: it does so at each point all the same.
    let count = Declaration::new("count")
        .pointer(F32)
        .value(F32)
        .effect(Effect::Writes)
        .body(|_, args| args[0].store(args[0].load() + args[1]));
    let kernel = kernel(|k| {
        let y = k.param_mut("y", F32, 3);
        let [i, j] = [k.range(3, AxisType::Global), k.range(7, AxisType::Loop)];
        let one = k.constant(F32, 1.0);
        k.custom(count, [y.after(j).at(i), one]).end(j).end(i)
    });
    let got = check(&kernel, &[floats(0..3)]);
    assert_eq!(got[0], Data::of::<f32>(vec![7., 8., 9.]));
}

#[test]
fn pure_values_need_no_order() {
    let mix = Declaration::new("mix")
        .value(F32)
        .value(F32)
        .result(F32)
        .body(|_, args| args[0].lt(args[1]).where_(args[0] * 0.5 + args[1], args[1] - args[0]));
    let kernel = kernel(|k| {
        let y = k.param_mut("y", F32, [3, 4]);
        let x = k.param("x", F32, [3, 4]);
        let [i, j] = [k.range(3, AxisType::Global), k.range(4, AxisType::Local)];
        let mixed = k.custom(mix, [x.at([i, j]).load(), i.cast(F32)]);
        y.at([i, j]).store(mixed).end(j).end(i)
    });
    check(&kernel, &[floats(0..12), floats(-3..9)]);
}

#[test]
fn several_atomics_of_a_body_count() {
    let twice = Declaration::new("twice")
        .pointer(F32)
        .pointer(F32)
        .value(F32)
        .effect(Effect::Atomic(AtomicOp::Add))
        .body(|k, args| k.group([args[0].atomic_add(args[2]), args[1].atomic_add(args[2])]));
    let kernel = kernel(|k| {
        let y = k.param_mut("y", F32, 2);
        let [i, j] = [k.range(5, AxisType::Global), k.range(3, AxisType::Global)];
        let x = i.cast(F32);
        let both = k.custom(&std::sync::Arc::new(twice), [y.at(0), y.at(0), x]);
        k.group([both.end(i), y.at(1).atomic_add(j.cast(F32)).end(j)])
    });
    let got = check(&kernel, &[floats(0..2)]);
    assert_eq!(got[0], Data::of::<f32>(vec![20., 4.]));
}

/// What lowering for `caps` says of a kernel that calls `declaration` on an address.
#[track_caller]
fn undefined(declaration: Declaration, templates: Option<&'static str>, want: Expect) {
    let kernel = kernel(|k| {
        let x = k.param_mut("x", F32, 40);
        let i = k.range(8, AxisType::Global);
        k.custom(declaration, [x.at(i)]).end(i)
    });
    let caps = Caps { templates, calls: false, ..NO_GRID };
    want.assert_eq(&lower(&kernel, &caps).expect_err("there is no way").to_string());
}

#[test]
fn what_a_target_cannot_do_is_refused() {
    undefined(
        halve(1),
        Some("hip"),
        expect!["%5: custom `halve` has no body, and no template for hip: add one of them"],
    );
    undefined(
        halve(1),
        None,
        expect!["%5: custom `halve` has no body, and no template for this target: add one of them"],
    );
}

#[test]
fn a_value_for_all_points_is_refused() {
    let kernel = kernel(|k| {
        let [x, y] = [k.param_mut("x", F32, 2), k.param_mut("y", F32, [2, 4])];
        let [i, j] = [k.range(2, AxisType::Global), k.range(4, AxisType::Local)];
        let old = k.custom(swap(), [x.at(i), i.cast(F32)]);
        y.at([i, j]).store(old).end(j).end(i)
    });
    let error = lower(&kernel, &GRID).expect_err("one work-item has it").to_string();
    expect!["%10: this uses, at each point of the parallel range %5, the value of an effect that happens once for all of them; no target can do that yet: do that inside the range with after(%5), or split the kernel"].assert_eq(&error);
}
