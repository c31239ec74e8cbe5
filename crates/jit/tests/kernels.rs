//! Whole programs: loops, gates, registers, atomics, threads, and what is refused.
#![allow(unsafe_code)] // Running machine code.

mod common;

use std::thread;

use common::{Builder, VERIFY, pointer, run, scatter};
use interp::Data;
use jit::{Code, JitErrorKind, Options, clif, compile};
use lower::{Expr, Launch, LaunchIndex, Program, Stmt, Storage, Value};
use uop::{Const, DType, Op};

fn refusal(program: &Program) -> JitErrorKind {
    let error = compile(program, &VERIFY).expect_err("the program is refused");
    assert_eq!(error.kernel, program.name);
    error.kind
}

#[test]
fn code_can_be_shared() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Code>();
}

#[test]
fn scatter_add() {
    let (n, d, v) = (50, 7, 5);
    let code = compile(&scatter(n, d, v), &VERIFY).expect("it compiles");
    let mut idx: Vec<i32> = (0..n as i32).map(|i| i * i % 9 - 2).collect();
    idx[3..6].copy_from_slice(&[i32::MIN, i32::MAX, -1]);
    let mut grad: Vec<f32> = (0..n * d).map(|i| (i as f32).sqrt() - 9.5).collect();
    let mut table = vec![0.25; (v * d) as usize];
    let mut want = table.clone();
    for i in 0..n as usize {
        let token = idx[i].clamp(0, v as i32 - 1) as usize;
        for j in 0..d as usize {
            want[token * d as usize + j] += grad[i * d as usize + j];
        }
    }
    let buffers = [pointer(&mut table), pointer(&mut grad), pointer(&mut idx)];
    for (begin, end) in [(0, 0), (0, 20), (20, 20), (20, 50), (50, 0)] {
        run(&code, &buffers, begin, end);
    }
    assert_eq!(table, want);
}

/// `y[i] = a[0]·x[i] + y[i]` where `x[i] < limit[0]`, with everything behind the gate.
#[test]
fn gated_saxpy() {
    let n = 100;
    let mut b = Builder::new("saxpy");
    let y = b.param(DType::F32, n, true);
    let x = b.param(DType::F32, n, false);
    let a = b.param(DType::F32, 1, false);
    let (zero, limit) = (b.int(0), b.f32(50.0));
    b.instances(|b, i| {
        let xi = b.load(DType::F32, x, i);
        let gate = b.alu(Op::CmpLt, DType::Bool, &[xi, limit]);
        let alt = b.f32(f32::NAN);
        let factor = b.gated(a, zero, gate, alt);
        let product = b.alu(Op::Mul, DType::F32, &[factor, xi]);
        b.when(gate, |b| {
            let old = b.load(DType::F32, y, i);
            let sum = b.alu(Op::Add, DType::F32, &[product, old]);
            b.store(y, i, sum);
        });
    });
    let mut xs: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let (mut ys, mut a) = (vec![1.0f32; n as usize], [3.0f32]);
    let buffers = [pointer(&mut ys), pointer(&mut xs), pointer(&mut a)];
    run(&b.compile(), &buffers, 0, n as i64);
    for (i, y) in ys.iter().enumerate() {
        let want = if i < 50 { 3.0 * i as f32 + 1.0 } else { 1.0 };
        assert_eq!(*y, want, "at {i}");
    }
}

#[test]
fn histogram() {
    for dtype in [DType::I32, DType::I64] {
        let mut b = Builder::new("histogram");
        let counts = b.param(dtype, 8, true);
        let keys = b.param(DType::I32, 1000, false);
        let one = b.constant(dtype, Const::Int(1));
        let mask = b.constant(DType::I32, Const::Int(7));
        b.instances(|b, i| {
            let key = b.load(DType::I32, keys, i);
            let bin = b.alu(Op::And, DType::I32, &[key, mask]);
            b.atomic_add(counts, bin, one);
        });
        let mut keys: Vec<i32> = (0..1000).map(|i| i * i - 77).collect();
        let mut want = [0i64; 8];
        keys.iter().for_each(|key| want[(key & 7) as usize] += 1);
        let (mut narrow, mut wide) = ([0i32; 8], [0i64; 8]);
        let counts = match dtype {
            DType::I32 => pointer(&mut narrow),
            _ => pointer(&mut wide),
        };
        run(&b.compile(), &[counts, pointer(&mut keys)], 0, 1000);
        wide.iter_mut().zip(narrow).for_each(|(w, n)| *w += i64::from(n));
        assert_eq!(wide, want);
    }
}

/// The address of a false gate may be anything, in a loop, invariant or not, and with either
/// type of offset.
#[test]
fn a_false_gate_keeps_a_wild_address_away() {
    for dtype in [DType::I32, DType::I64] {
        let mut b = Builder::new("wild");
        let out = b.param(DType::F32, 4, true);
        let x = b.param(DType::F32, 4, false);
        let open = b.param(DType::Bool, 4, false);
        let wild = b.constant(dtype, Const::Int(i128::from(i32::MIN)));
        let alt = b.f32(-1.0);
        b.instances(|b, i| {
            let gate = b.load(DType::Bool, open, i);
            let i_narrow = b.alu(Op::Cast, dtype, &[i]);
            let offset = b.alu(Op::Where, dtype, &[gate, i_narrow, wild]);
            let varying = b.gated(x, offset, gate, alt);
            let never = b.constant(DType::I64, Const::Int(4));
            let never = b.alu(Op::CmpLt, DType::Bool, &[never, i]);
            let invariant = b.gated(x, wild, never, varying);
            b.when(never, |b| {
                let nowhere = b.load(DType::F32, x, wild);
                b.store(out, wild, nowhere);
                b.atomic_add(out, wild, nowhere);
            });
            b.store(out, i, invariant);
        });
        let (mut out, mut x) = ([0.0f32; 4], [1.0f32, 2.0, 3.0, 4.0]);
        let mut open = [true, false, true, false];
        let buffers = [pointer(&mut out), pointer(&mut x), pointer(&mut open)];
        run(&b.compile(), &buffers, 0, 4);
        assert_eq!(out, [1.0, -1.0, 3.0, -1.0]);
    }
}

/// A body that would crash, under loops that do not run.
#[test]
fn loops_without_an_iteration() {
    for dtype in [DType::I32, DType::I64] {
        let (min, max) = match dtype {
            DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (i64::MIN, i64::MAX),
        };
        for (lo, hi) in [(0, 0), (1, 0), (max, min), (max, max), (min, min)] {
            let mut b = Builder::new("nothing");
            let p = b.param(DType::I64, 2, true);
            let (zero, one) = (b.int(0), b.int(1));
            let [lo, hi] = [lo, hi].map(|x| b.constant(dtype, Const::Int(i128::from(x))));
            // Once with constant bounds, once with bounds that Cranelift cannot know.
            let [lo_loaded, hi_loaded] = [zero, one].map(|at| b.load(DType::I64, p, at));
            let lo_loaded = b.alu(Op::Cast, dtype, &[lo_loaded]);
            let hi_loaded = b.alu(Op::Cast, dtype, &[hi_loaded]);
            let wild = b.int(1 << 50);
            for (lo, hi) in [(lo, hi), (lo_loaded, hi_loaded)] {
                b.repeat(lo, hi, |b, _| {
                    let x = b.load(DType::I64, p, wild);
                    b.store(p, wild, x);
                });
            }
            let mut bounds = [max, min];
            run(&b.compile(), &[pointer(&mut bounds)], 0, 1);
        }
    }
}

/// The last iterations before the end of the type do not wrap.
#[test]
fn loops_at_the_end_of_the_type() {
    let mut b = Builder::new("last");
    let p = b.param(DType::I32, 1, true);
    let zero = b.int(0);
    let lo = b.constant(DType::I32, Const::Int(i128::from(i32::MAX - 3)));
    let hi = b.constant(DType::I32, Const::Int(i128::from(i32::MAX)));
    let one = b.constant(DType::I32, Const::Int(1));
    b.repeat(lo, hi, |b, _| b.atomic_add(p, zero, one));
    let mut count = [0i32];
    run(&b.compile(), &[pointer(&mut count)], 0, 1);
    assert_eq!(count, [3]);
}

/// `out[i, j] = Σk x[i, k]·y[k, j]`, with the sum in a register buffer.
#[test]
fn nested_loops_and_registers() {
    let mut b = Builder::new("matmul");
    let out = b.param(DType::F32, 6, true);
    let x = b.param(DType::F32, 8, false);
    let y = b.param(DType::F32, 12, false);
    let sum = b.register(DType::F32, 1);
    let row = b.register(DType::F32, 3);
    let [zero, three, four] = [0, 3, 4].map(|c| b.int(c));
    let start = b.f32(0.0);
    let at = |b: &mut Builder, i, n, j| {
        let start = b.alu(Op::Mul, DType::I64, &[i, n]);
        b.alu(Op::Add, DType::I64, &[start, j])
    };
    b.instances(|b, i| {
        b.repeat(zero, three, |b, j| {
            b.store(sum, zero, start);
            b.repeat(zero, four, |b, k| {
                let (ik, kj) = (at(b, i, four, k), at(b, k, three, j));
                let (x, y) = (b.load(DType::F32, x, ik), b.load(DType::F32, y, kj));
                let product = b.alu(Op::Mul, DType::F32, &[x, y]);
                let before = b.load(DType::F32, sum, zero);
                let after = b.alu(Op::Add, DType::F32, &[before, product]);
                b.store(sum, zero, after);
            });
            let done = b.load(DType::F32, sum, zero);
            b.store(row, j, done);
        });
        b.repeat(zero, three, |b, j| {
            let (value, ij) = (b.load(DType::F32, row, j), at(b, i, three, j));
            b.store(out, ij, value);
        });
    });
    let mut out = [0.0f32; 6];
    let (mut x, mut y) = ([1., 2., 3., 4., 5., 6., 7., 8f32], [0.5f32; 12]);
    y[4] = 2.0;
    let buffers = [pointer(&mut out), pointer(&mut x), pointer(&mut y)];
    run(&b.compile(), &buffers, 0, 2);
    assert_eq!(out, [5.0, 8.0, 5.0, 13.0, 22.0, 13.0]);
}

/// Atomics are ordered with the loads and stores around them.
#[test]
fn an_atomic_between_accesses() {
    let dtypes = [DType::I32, DType::I64, DType::U32, DType::U64, DType::F32, DType::F64];
    for dtype in dtypes {
        let mut b = Builder::new("between");
        let p = b.param(dtype, 3, true);
        let [first, second, third] = [0, 1, 2].map(|at| b.int(at));
        let number = |n| Const::int(dtype, n).expect("it is exact");
        let one = b.constant(dtype, number(1));
        b.store(p, first, one);
        let before = b.load(dtype, p, first);
        b.atomic_add(p, first, one);
        let after = b.load(dtype, p, first);
        b.store(p, second, before);
        b.store(p, third, after);
        b.store(p, first, one);
        b.atomic_add(p, first, after);
        let mut data = Data::zeros(dtype, 3).expect("it is stored");
        run(&b.compile(), &[data.bytes_mut().as_mut_ptr()], 0, 1);
        assert_eq!([0, 1, 2].map(|i| data.get(i)), [3, 1, 2].map(number));
    }
}

/// Two threads, one element: 2,000,000 is exact in an f32.
#[test]
fn threads_lose_no_update() {
    let mut b = Builder::new("count");
    let p = b.param(DType::F32, 1, true);
    let (zero, one) = (b.int(0), b.f32(1.0));
    b.instances(|b, _| b.atomic_add(p, zero, one));
    let code = b.compile();
    let mut sum = [0.0f32];
    let address = pointer(&mut sum).expose_provenance();
    thread::scope(|scope| {
        for k in 0..2 {
            let code = &code;
            scope.spawn(move || {
                let buffers = [std::ptr::with_exposed_provenance_mut(address)];
                run(code, &buffers, k * 1_000_000, (k + 1) * 1_000_000);
            });
        }
    });
    assert_eq!(sum, [2_000_000.0]);
}

/// NaNs end the compare-exchange loop.
#[test]
fn adding_to_a_nan_ends() {
    let mut b = Builder::new("nan");
    let p = b.param(DType::F32, 2, true);
    let nan = b.constant(DType::F32, Const::F32(0x7f80_0001));
    b.instances(|b, i| b.atomic_add(p, i, nan));
    let mut x = [1.0, f32::from_bits(0xffa5_5aa5)];
    run(&b.compile(), &[pointer(&mut x)], 0, 2);
    assert!(x.iter().all(|x| x.is_nan()));
}

#[test]
fn clif_of_the_atomic_kernel() {
    let text = clif(&scatter(8, 4, 3), &VERIFY).expect("it compiles");
    let loads = text.matches("atomic_load.i32 notrap").count();
    let exchanges = text.matches("atomic_cas ").count();
    assert_eq!((loads, exchanges), (1, 1), "{text}");
    assert!(text.starts_with("function %embedding_bwd(i64, i64, i64, i64)"), "{text}");
}

#[test]
fn equal_programs_give_equal_code() {
    let (a, b) = (scatter(8, 4, 3), scatter(8, 4, 3));
    assert_eq!(clif(&a, &VERIFY), clif(&b, &Options::default()));
    let [a, b] = [(&a, true), (&b, false)]
        .map(|(program, verify)| compile(program, &Options { verify }).expect("it compiles"));
    assert!(!a.bytes().is_empty());
    assert_eq!(a.bytes(), b.bytes());
}

#[test]
fn deep_nesting_is_no_recursion() {
    fn nest(b: &mut Builder, depth: u32, cond: Value, innermost: &mut dyn FnMut(&mut Builder)) {
        match depth {
            0 => innermost(b),
            _ => b.when(cond, |b| nest(b, depth - 1, cond, innermost)),
        }
    }
    let mut b = Builder::new("deep");
    let p = b.param(DType::I64, 1, true);
    let (zero, one) = (b.int(0), b.int(1));
    let cond = b.load(DType::I64, p, zero);
    let cond = b.alu(Op::CmpEq, DType::Bool, &[cond, one]);
    nest(&mut b, 2_000, cond, &mut |b| b.atomic_add(p, zero, one));
    let mut x = [1i64];
    run(&b.compile(), &[pointer(&mut x)], 0, 1);
    assert_eq!(x, [2]);
}

#[test]
fn a_large_frame() {
    let mut b = Builder::new("frame");
    let p = b.param(DType::I64, 1, true);
    let large = b.register(DType::I64, 8192);
    let [zero, last] = [0, 8191].map(|at| b.int(at));
    b.store(large, last, last);
    b.store(large, zero, zero);
    let x = b.load(DType::I64, large, last);
    b.store(p, zero, x);
    let mut x = [0i64];
    run(&b.compile(), &[pointer(&mut x)], 0, 1);
    assert_eq!(x, [8191]);
}

#[test]
fn what_is_refused() {
    let mut b = Builder::new("grid");
    b.program.launch = Launch::Grid { grid: [1; 3].map(lower::Size::from), block: [1; 3] };
    assert_eq!(refusal(&b.finish()), JitErrorKind::Grid);

    for lens in [[8193, 0], [8192, 1], [1 << 59, 1 << 59]] {
        let mut b = Builder::new("registers");
        for len in lens {
            b.register(DType::I64, len);
        }
        assert_eq!(refusal(&b.finish()), JitErrorKind::Registers);
    }

    let mut b = Builder::new("half_add");
    let x = b.constant(DType::F16, Const::F16(0));
    b.alu(Op::Add, DType::F16, &[x, x]);
    let message = compile(&b.finish(), &VERIFY).expect_err("refused").to_string();
    assert_eq!(message, "kernel `half_add`: no code for add from f16 to f16");

    let mut b = Builder::new("half_cast");
    let x = b.constant(DType::I32, Const::Int(0));
    b.alu(Op::Cast, DType::BF16, &[x]);
    let message = compile(&b.finish(), &VERIFY).expect_err("refused").to_string();
    assert_eq!(message, "kernel `half_cast`: no code for cast from i32 to bf16");
}

#[test]
fn what_is_malformed() {
    type Break = fn(&mut Builder);
    let breaks: [(&str, Break); 15] = [
        // Used outside the loop that defines it.
        ("v4: an operand is v3, which is not defined here", |b| {
            let (zero, one) = (b.int(0), b.int(1));
            let mut inner = None;
            b.repeat(zero, one, |b, i| {
                inner = Some(b.alu(Op::Neg, DType::I64, &[i]));
            });
            let inner = inner.expect("it was set");
            b.alu(Op::Neg, DType::I64, &[inner]);
        }),
        ("program: 1 values are never defined", |b| {
            let later = b.program.values.insert(DType::I64);
            b.alu(Op::Neg, DType::I64, &[later]);
        }),
        ("v0: defined again", |b| {
            let value = b.int(0);
            let expr = Expr::Const(Const::Int(1));
            b.stmt(Stmt::Let { value, expr });
        }),
        ("v1: there is no Param(7)", |b| {
            let zero = b.int(0);
            b.load(DType::F32, Storage::Param(7), zero);
        }),
        ("statement 1: there is no Register(0)", |b| {
            let zero = b.int(0);
            b.store(Storage::Register(0), zero, zero);
        }),
        ("statement 1: writes p0, which is not mutable", |b| {
            let p = b.param(DType::I64, 1, false);
            let zero = b.int(0);
            b.store(p, zero, zero);
        }),
        ("statement 1: what is written is i64, expected f32", |b| {
            let p = b.param(DType::F32, 1, true);
            let zero = b.int(0);
            b.store(p, zero, zero);
        }),
        ("v0: 2147483648 is not a value of i32", |b| {
            b.constant(DType::I32, Const::Int(1 << 31));
        }),
        ("v2: the end is i32, expected i64", |b| {
            let (lo, hi) = (b.int(0), b.constant(DType::I32, Const::Int(1)));
            b.repeat(lo, hi, |_, _| {});
        }),
        ("statement 1: atomic on reg.0", |b| {
            let (r, zero) = (b.register(DType::I64, 1), b.int(0));
            b.atomic_add(r, zero, zero);
        }),
        ("statement 2: no atomic add of bool", |b| {
            let p = b.param(DType::Bool, 1, true);
            let (zero, yes) = (b.int(0), b.constant(DType::Bool, Const::Bool(true)));
            b.atomic_add(p, zero, yes);
        }),
        ("v1: add does not work on bool and bool", |b| {
            let yes = b.constant(DType::Bool, Const::Bool(true));
            b.alu(Op::Add, DType::Bool, &[yes, yes]);
        }),
        ("v0: item.x does not exist in this launch", |b| {
            b.define(DType::I64, Expr::Launch(LaunchIndex::Item(0)));
        }),
        ("v0: a value of index", |b| {
            b.constant(DType::Index, Const::Int(0));
        }),
        ("param 0: elements of index", |b| {
            b.param(DType::Index, 1, false);
        }),
    ];
    for (want, break_it) in breaks {
        let mut b = Builder::new("malformed");
        break_it(&mut b);
        let kind = refusal(&b.finish());
        assert!(matches!(kind, JitErrorKind::Malformed(_)), "{want}: {kind}");
        let message = kind.to_string();
        assert!(message.contains(&format!("malformed program: {want}")), "{want}: {message}");
    }
}
