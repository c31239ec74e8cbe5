//! Every op on every type, on edge values, against the interpreter, by bits.
#![allow(unsafe_code)] // Running machine code.

mod common;
#[path = "../../../tests/support/edges.rs"]
mod edges;

use common::{Builder, VERIFY, run};
use edges::{STORED, arity, data, differ, differ_in_bits, edges, half_casts, lowered_ops_on};
use interp::{Data, alu};
use lower::Value;
use uop::{Const, DType, Op};

/// `op` on these rows of operands. Bit k of `constants` says that source k is a constant in the
/// program, where Cranelift may fold it, not an element.
fn check(op: Op, from: &[DType], to: DType, rows: &[Vec<Const>], constants: u32) {
    let len = rows.len() as u64;
    let mut b = Builder::new(op.name());
    let out = b.param(to, len, true);
    let sources: Vec<_> = from.iter().map(|&dtype| b.param(dtype, len, false)).collect();
    let source = |b: &mut Builder, k: usize, at: Value| b.load(from[k], sources[k], at);
    if constants == 0 {
        b.instances(|b, i| {
            let args: Vec<_> = (0..from.len()).map(|k| source(b, k, i)).collect();
            let result = b.alu(op, to, &args);
            b.store(out, i, result);
        });
    } else {
        for (at, row) in rows.iter().enumerate() {
            let at = b.int(at as i64);
            let arg = |b: &mut Builder, k: usize| match constants >> k & 1 {
                0 => source(b, k, at),
                _ => b.constant(from[k], row[k]),
            };
            let args: Vec<_> = (0..from.len()).map(|k| arg(&mut b, k)).collect();
            let result = b.alu(op, to, &args);
            b.store(out, at, result);
        }
    }

    let column = |k: usize| rows.iter().map(|row| row[k]).collect::<Vec<_>>();
    let mut columns: Vec<_> = (0..from.len()).map(|k| data(from[k], &column(k))).collect();
    let want: Result<Vec<_>, _> = rows.iter().map(|row| alu(op, to, row)).collect();
    let want = data(to, &want.expect("the table has it"));
    let mut got = Data::zeros(to, rows.len()).expect("it is stored");
    let mut buffers = vec![got.bytes_mut().as_mut_ptr()];
    buffers.extend(columns.iter_mut().map(|column| column.bytes_mut().as_mut_ptr()));
    run(&b.compile(), &buffers, 0, len as i64);

    // What computes or converts may give any NaN; what chooses or moves keeps its bits.
    let computes = matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Cast);
    let differ = if computes { differ } else { differ_in_bits };
    if let Some(i) = differ(&got, &want) {
        let (row, got, want) = (&rows[i], got.get(i), want.get(i));
        panic!("{op} {from:?} -> {to}, constants {constants:b}: {row:x?} gave {got}, not {want}");
    }
}

/// `op` on every combination of edge values; on fewer where they are constants, as these make
/// programs long.
fn check_all(op: Op, from: &[DType], to: DType) {
    let mut rows: Vec<Vec<Const>> = vec![vec![]];
    for &dtype in from {
        let grown = rows
            .iter()
            .flat_map(|row| edges(dtype).into_iter().map(move |x| [&row[..], &[x]].concat()));
        rows = grown.collect();
    }
    check(op, from, to, &rows, 0);
    let few: Vec<_> = rows.iter().step_by(rows.len() / 300 + 1).cloned().collect();
    for constants in 1..1 << from.len() {
        check(op, from, to, &few, constants);
    }
}

#[test]
fn arithmetic() {
    for dtype in STORED {
        for (op, to) in lowered_ops_on(dtype) {
            check_all(op, &[dtype; 2][..arity(op)], to);
        }
    }
}

#[test]
fn choice() {
    for dtype in STORED {
        let edges = edges(dtype);
        let pairs = edges.iter().zip(edges.iter().rev());
        let rows: Vec<_> = pairs
            .flat_map(|(&x, &y)| [true, false].map(|cond| vec![Const::Bool(cond), x, y]))
            .collect();
        for constants in 0..1 << 3 {
            check(Op::Where, &[DType::Bool, dtype, dtype], dtype, &rows, constants);
        }
    }
}

#[test]
fn casts_of_halves() {
    for (from, to, values) in [DType::F16, DType::BF16].into_iter().flat_map(half_casts) {
        for &[value, want] in &values {
            let found = alu(Op::Cast, to, &[value]).expect("the table has it");
            assert!(found == want || found.is_nan() && want.is_nan(), "{value}: {found}, {want}");
        }
        let rows: Vec<_> = values.iter().map(|[value, _]| vec![*value]).collect();
        check(Op::Cast, &[from], to, &rows, 0);
    }
}

/// Whatever is not in the tests above is refused.
#[test]
fn everything_else_is_an_error() {
    let mut accepted = 0;
    for &op in Op::ALL {
        for to in STORED {
            for first in STORED {
                for rest in STORED {
                    for count in 0..4 {
                        let mut b = Builder::new("refused");
                        let dtypes = [first, rest, rest];
                        let args: Vec<_> = dtypes[..count]
                            .iter()
                            .map(|&dtype| b.constant(dtype, Const::zero(dtype)))
                            .collect();
                        b.alu(op, to, &args);
                        accepted += usize::from(jit::compile(&b.finish(), &VERIFY).is_ok());
                    }
                }
            }
        }
    }
    let mut expected = 0;
    for dtype in STORED {
        // One source: `rest` is not looked at, so each counts as often as there are types.
        let weight = |op| if arity(op) == 1 { STORED.len() } else { 1 };
        expected += lowered_ops_on(dtype).iter().map(|&(op, _)| weight(op)).sum::<usize>() + 1;
    }
    assert_eq!(accepted, expected);
}
