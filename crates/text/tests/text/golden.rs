//! The whole text, as files to review. `UPDATE_EXPECT=1` rewrites them.

use expect_test::{ExpectFile, expect_file};
use lower::Program;
use text::{C, HIP, emit};

use crate::programs::{embedding_bwd, halves, histogram, registers, saxpy, torture, wrapping};

#[track_caller]
fn check(program: impl Fn(bool) -> Program, c: ExpectFile, hip: ExpectFile) {
    c.assert_eq(&emit(&program(false), &C).expect("C has all of it"));
    hip.assert_eq(&emit(&program(true), &HIP).expect("HIP has all of it"));
}

#[test]
fn golden_embedding_bwd() {
    check(
        |grid| embedding_bwd(grid, 4096, 50_000, 768),
        expect_file!["golden/embedding_bwd.c"],
        expect_file!["golden/embedding_bwd.hip"],
    );
}

#[test]
fn golden_saxpy() {
    let program = |grid| saxpy(grid, 1000);
    check(program, expect_file!["golden/saxpy.c"], expect_file!["golden/saxpy.hip"]);
}

#[test]
fn golden_histogram() {
    let program = |grid| histogram(grid, 1000);
    check(program, expect_file!["golden/histogram.c"], expect_file!["golden/histogram.hip"]);
}

#[test]
fn golden_registers() {
    let program = |grid| registers(grid, 10);
    check(program, expect_file!["golden/registers.c"], expect_file!["golden/registers.hip"]);
}

#[test]
fn golden_torture() {
    check(torture, expect_file!["golden/torture.c"], expect_file!["golden/torture.hip"]);
}

#[test]
fn golden_halves() {
    let program = |grid| halves(grid, 1000);
    check(program, expect_file!["golden/halves.c"], expect_file!["golden/halves.hip"]);
}

#[test]
fn golden_wrapping() {
    let program = |grid| wrapping(grid, 1000);
    check(program, expect_file!["golden/wrapping.c"], expect_file!["golden/wrapping.hip"]);
}
