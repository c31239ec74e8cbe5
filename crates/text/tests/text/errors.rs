//! What has no text.

use expect_test::{Expect, expect};
use lower::{Expr, LaunchIndex, Program};
use text::{C, Dialect, HIP, emit};
use uop::{DType, Op};

use crate::builder::Builder;
use crate::programs::{launch, saxpy};
use crate::support::edges::{arity, lowered_ops_on, ops_on};

#[track_caller]
fn check(program: &Program, dialect: &Dialect, want: Expect) {
    let error = emit(program, dialect).expect_err("it has no text");
    want.assert_eq(&error.to_string());
}

#[test]
fn launch_of_the_other_kind() {
    check(&saxpy(true, 4), &C, expect!["saxpy as c: the target needs a program without a grid"]);
    check(&saxpy(false, 4), &HIP, expect!["saxpy as hip: the target needs a program with a grid"]);
}

#[test]
fn everything_at_once() {
    let mut b = Builder::new("no-name", launch(false, 4));
    let out = b.param("out put", DType::Bool, &[4], true);
    let lost = b.param("lost", DType::Index, &[4], true);
    let i = b.launch(LaunchIndex::Block(3), DType::I64);
    let x = b.load(out, i);
    let args = [x, x].into_iter().collect();
    let sum = b.define(DType::Bool, Expr::Alu { op: Op::Add, args, exact: false });
    b.atomic_add(out, i, sum);
    let y = b.load(lost, i);
    b.store(lost, i, y);
    check(
        &b.finish(),
        &C,
        expect![[
            r#"no-name as c: "no-name" is not an identifier; "out put" is not an identifier; no type index; no index block.?; no add on bool; no atomic add on bool"#
        ]],
    );
}

/// Lowering leaves no such op.
#[test]
fn halves_are_not_computed_on() {
    for dtype in [DType::F16, DType::BF16] {
        for (op, result) in ops_on(dtype) {
            if lowered_ops_on(dtype).contains(&(op, result)) {
                continue;
            }
            for (dialect, grid) in [(&C, false), (&HIP, true)] {
                let mut b = Builder::new("refused", launch(grid, 4));
                let out = b.param("out", result, &[4], true);
                let x = b.param("x", dtype, &[4], false);
                b.instances(|b, i| {
                    let x = b.load(x, i);
                    let args = [x; 2][..arity(op)].iter().copied().collect();
                    let value = b.define(result, Expr::Alu { op, args, exact: false });
                    b.store(out, i, value);
                });
                let error = emit(&b.finish(), dialect).expect_err("it has no text").to_string();
                let want = format!("refused as {}: no {op} on {dtype}", dialect.name);
                assert_eq!(error, want);
            }
        }
    }
}
