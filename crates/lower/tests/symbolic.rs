//! Sizes that a launch states: one program, right for every value of its variables.

mod common;

use common::{GRID, NO_GRID, Random, check_with, lower};
use expect_test::expect;
use interp::Data;
use uop::DType::{F32, I32, Index};
use uop::{AxisType, Kernel, KernelGraph};

/// `y[i] = 2 * x[i]`, of `n` elements.
fn double(lo: i64, hi: i64) -> KernelGraph {
    let k = Kernel::new();
    let n = k.variable("n", lo, hi);
    let y = k.param_mut("y", F32, n);
    let x = k.param("x", F32, n);
    let i = k.range(n, AxisType::Global);
    y.at(i).store(x.at(i).load() * 2.0).end(i).sink("double").unwrap()
}

#[test]
fn one_program_serves_every_length() {
    let kernel = double(0, 1000);
    for n in [0, 1, 2, 7, 100, 1000] {
        let x = Random(n).floats(n as usize, 9);
        let y = Data::of(vec![0.0f32; n as usize]);
        check_with(&kernel, &[y, x], &[("n", n as i64)]);
    }
    // No guard: a range of n turns stays below n.
    let program = lower(&kernel, &NO_GRID).unwrap();
    expect![[r#"
        program double(y: mut f32[n], x: f32[n])
        variable n: i64, 0 to 1000
        launch range n
        v0: i64 = n
        v1: f32 = 2.0
        v2: i64 = begin
        v3: i64 = end
        for v4: i64 in v2..v3 {
            v5: f32 = load x[v4]
            v6: f32 = mul v5, v1
            store y[v4], v6
        }
    "#]]
    .assert_eq(&program.to_string());
    let program = lower(&kernel, &GRID).unwrap();
    expect![[r#"
        program double(y: mut f32[n], x: f32[n])
        variable n: i32, 0 to 1000
        launch grid [n, 1, 1] block [1, 1, 1]
        v0: i32 = n
        v1: i32 = block.x
        v2: f32 = load x[v1]
        v3: f32 = 2.0
        v4: f32 = mul v2, v3
        store y[v1], v4
    "#]]
    .assert_eq(&program.to_string());
}

#[test]
fn lengths_are_expressions_and_views_keep_them() {
    let k = Kernel::new();
    let b = k.variable("b", 0, 6);
    let n = b * 4;
    let out = k.param_mut("out", I32, n);
    let x = k.param("x", I32, [b, k.int(4)]);
    let flat = x.reshape(n);
    let i = k.range(n, AxisType::Global);
    let j = k.range(b, AxisType::Loop);
    // Rows of x backwards: 4 * (b - 1 - j) + 3 is the last index of a row.
    let last = (b - 1 - j) * 4 + 3;
    let sum = flat.at(i).load() + flat.at(last).load();
    let store = out.at(i).store(sum.cast(I32)).end(j);
    let kernel = store.end(i).sink("rows");
    // j is serial and out[i] is stored in each of its turns: the last one stays.
    let kernel = kernel.unwrap();
    for b in [0, 1, 2, 6] {
        let x = Random(7).ints(4 * b, -9, 9);
        let out = Data::of(vec![0; 4 * b]);
        check_with(&kernel, &[out, x], &[("b", b as i64)]);
    }
    let text = lower(&kernel, &NO_GRID).unwrap().to_string();
    assert!(!text.contains(" if "), "everything is proved:\n{text}");
}

#[test]
fn what_is_not_proved_is_guarded() {
    let k = Kernel::new();
    let n = k.variable("n", 1, 100);
    let out = k.param_mut("out", I32, n);
    let x = k.param("x", I32, n);
    let i = k.range(n, AxisType::Global);
    let kernel = out.at(i).store(x.at(i + 1).load()).end(i).sink("shift").unwrap();
    for n in [1, 2, 100] {
        let x = Random(3).ints(n, -9, 9);
        check_with(&kernel, &[Data::of(vec![5; n]), x], &[("n", n as i64)]);
    }
}

#[test]
fn a_loop_may_end_before_it_begins() {
    let k = Kernel::new();
    let n = k.variable("n", -5, 5);
    let out = k.param_mut("out", I32, 5);
    let i = k.range(n, AxisType::Loop);
    let kernel = out.at(i).store(i.cast(I32)).end(i).sink("count").unwrap();
    for n in [-5, -1, 0, 1, 5] {
        check_with(&kernel, &[Data::of(vec![9; 5])], &[("n", n)]);
    }
    // As the outermost parallel range too, and as one of several.
    let k = Kernel::new();
    let (n, m) = (k.variable("n", -5, 5), k.variable("m", 0, 3));
    let out = k.param_mut("out", I32, [5, 3]);
    let (i, j) = (k.range(n, AxisType::Global), k.range(m, AxisType::Global));
    let kernel = out.at([i, j]).store((i * 10 + j).cast(I32)).end([i, j]).sink("grid").unwrap();
    for (n, m) in [(-5, 3), (0, 0), (5, 0), (5, 3), (2, 1)] {
        check_with(&kernel, &[Data::of(vec![9; 15])], &[("n", n), ("m", m)]);
    }
}

#[test]
fn a_variable_is_a_value() {
    let k = Kernel::new();
    let offset = k.variable("offset", i64::MIN, i64::MAX);
    let out = k.param_mut("out", I32, 4);
    let x = k.param("x", I32, 4);
    let i = k.range(4, AxisType::Global);
    let inside = x.at(i).load().cast(Index).ge(offset);
    let value = inside.where_(k.constant(I32, 1), k.constant(I32, 0));
    let kernel = out.at(i).store(value).end(i).sink("at_least").unwrap();
    let x = Data::of(vec![i32::MIN, -1, 0, i32::MAX]);
    for offset in [i64::MIN, -1, 0, 1 << 31, i64::MAX] {
        let inputs = [Data::of(vec![0; 4]), x.clone()];
        check_with(&kernel, &inputs, &[("offset", offset)]);
    }
}
