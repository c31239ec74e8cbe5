//! The built-in atomics: every kind on every dtype, with the old value and without, in every order.
#![forbid(unsafe_code)]

mod support;

use std::fmt::Write;

use interp::Data;
use support::{cc, hip, tools};
use uop::{AtomicOp, Const, atomic};
use uopc::{AxisType, Buffer, Compiled, DType, Device, Kernel, KernelGraph, LaunchOptions};

const DTYPES: [DType; 6] = [DType::I32, DType::U32, DType::I64, DType::U64, DType::F32, DType::F64];
const N: usize = 1000;

fn cells() -> impl Iterator<Item = (AtomicOp, DType)> {
    let cells = DTYPES.into_iter().flat_map(|dtype| AtomicOp::ALL.map(|op| (op, dtype)));
    cells.filter(|(op, dtype)| op.works_on(*dtype).is_ok())
}

#[track_caller]
fn built(kernel: Result<KernelGraph, uop::BuildErrors>) -> KernelGraph {
    kernel.unwrap_or_else(|error| panic!("{error}"))
}

fn compile(kernel: &KernelGraph) -> Compiled {
    Device::cpu().compile(kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"))
}

/// For each op, `x[op, i % 3] = op(x[op, i % 3], v[i])`, and if `fetch`, `old[op, i]` what it was.
/// CAS expects `v[i + 1]`. Every seventh instance is gated off.
fn all_ops(dtype: DType, fetch: bool) -> KernelGraph {
    let ops: Vec<AtomicOp> = cells().filter(|cell| cell.1 == dtype).map(|(op, _)| op).collect();
    let k = Kernel::new();
    let x = k.param_mut("x", dtype, [ops.len(), 3]);
    let v = k.param("v", dtype, N + 1);
    let key = k.param("key", DType::I32, N);
    let old = fetch.then(|| k.param_mut("old", dtype, [ops.len(), N]));
    let i = k.range(N, AxisType::Global);
    let on = key.at(i).load();
    let effects = ops.iter().enumerate().map(|(row, &op)| {
        let element = x.at([k.int(row as i64), on.max(0).cast(DType::Index).clip(0, 2)]);
        let mut args = vec![element, v.at(i).load()];
        if op == AtomicOp::Cas {
            args.push(v.at(i + 1).load());
        }
        args.push(on.ne(-1));
        let custom = atomic::of(op, dtype);
        match old {
            Some(old) => {
                let value = k.custom(custom.fetch(), args);
                old.at([k.int(row as i64), i]).store(value)
            }
            None => k.custom(custom, args),
        }
    });
    let effects: Vec<_> = effects.collect();
    built(k.group(effects).end(i).sink("all_ops"))
}

fn inputs(kernel: &KernelGraph, dtype: DType) -> Vec<Data> {
    let compiled = compile(kernel);
    let mut data: Vec<Data> = compiled
        .params()
        .iter()
        .map(|param| {
            Data::zeros(
                param.dtype,
                param.shape_at(&[]).expect("constants").iter().product::<u64>() as usize,
            )
            .expect("it is stored")
        })
        .collect();
    for i in 0..=N {
        let value = i128::try_from(i * 7919 % 1013).expect("it is small");
        let special = [0x8000_0000u32, 0, 0x7f80_0000, 0xff80_0000];
        let value = match dtype {
            // Bits of both signs, and the specials.
            DType::F32 if i % 50 == 3 => Const::F32(special[i / 50 % 4]),
            DType::F64 if i % 50 == 3 => Const::F64(u64::from(special[i / 50 % 4]) << 32),
            // The least and the largest ones too.
            _ if dtype.is_int() => Const::Int(dtype.wrap((value - 500) * 0x0123_4567_89ab_cdef)),
            _ => Const::float(dtype, value as f64 - 500.0).expect("it is a float"),
        };
        data[1].set(i, value);
    }
    for i in 0..N {
        data[2].set(i, Const::Int(if i % 7 == 0 { -1 } else { (i % 3) as i128 }));
    }
    data
}

fn launch(kernel: &Compiled, inputs: &[Data], threads: usize) -> Vec<Data> {
    let mut results = inputs.to_vec();
    let mut buffers: Vec<Buffer<'_>> = results.iter_mut().map(Buffer::from).collect();
    let options = LaunchOptions::threads(threads);
    kernel.launch(&mut buffers, &options).unwrap_or_else(|error| panic!("{error}"));
    drop(buffers);
    results
}

/// What [`all_ops`] does in the serial order, by the meaning that docs/ir.md gives each op.
fn serial(dtype: DType, inputs: &[Data]) -> Vec<Data> {
    let ops = cells().filter(|cell| cell.1 == dtype).map(|(op, _)| op);
    let mut results = inputs.to_vec();
    for (row, op) in ops.enumerate() {
        for i in 0..N {
            let Some(key @ 0..) = inputs[2].get(i).as_int() else { continue };
            let at = 3 * row + usize::try_from(key).expect("it is small");
            let old = results[0].get(at);
            let (v, w) = (inputs[1].get(i), inputs[1].get(i + 1));
            let new = meaning(op, dtype, old, v, w);
            results[0].set(at, new);
            if let Some(olds) = results.get_mut(3) {
                olds.set(row * N + i, old);
            }
        }
    }
    results
}

fn meaning(op: AtomicOp, dtype: DType, old: Const, v: Const, w: Const) -> Const {
    match (old, v) {
        _ if op == AtomicOp::Exchange => v,
        _ if op == AtomicOp::Cas => {
            if old == v {
                w
            } else {
                old
            }
        }
        (Const::Int(a), Const::Int(b)) => Const::Int(match op {
            AtomicOp::Add => dtype.wrap(a + b),
            AtomicOp::Max => a.max(b),
            AtomicOp::Min => a.min(b),
            AtomicOp::And => a & b,
            AtomicOp::Or => a | b,
            _ => a ^ b,
        }),
        (Const::F32(a), Const::F32(b)) if op == AtomicOp::Add => {
            Const::from(f32::from_bits(a) + f32::from_bits(b))
        }
        _ => {
            let (a, b) = old.as_float().zip(v.as_float()).expect("they are floats");
            let float = match op {
                AtomicOp::Add => a + b,
                _ if a.is_nan() || b.is_nan() => f64::NAN,
                AtomicOp::Max if a == b => {
                    if a.is_sign_negative() {
                        b
                    } else {
                        a
                    }
                }
                AtomicOp::Min if a == b => {
                    if a.is_sign_negative() {
                        a
                    } else {
                        b
                    }
                }
                AtomicOp::Max => {
                    if a < b {
                        b
                    } else {
                        a
                    }
                }
                _ => {
                    if a < b {
                        a
                    } else {
                        b
                    }
                }
            };
            Const::float(dtype, float).expect("it is a float")
        }
    }
}

/// The rows of `x` that do not depend on the order.
fn unique(dtype: DType) -> Vec<bool> {
    let ops = cells().filter(|cell| cell.1 == dtype).map(|(op, _)| op);
    ops.map(|op| match op {
        AtomicOp::Add => dtype.is_int(),
        AtomicOp::Exchange | AtomicOp::Cas => false,
        _ => true,
    })
    .collect()
}

#[test]
fn the_serial_order_is_that_of_one_thread_and_what_is_unique_is_so_on_many() {
    for (dtype, fetch) in DTYPES.into_iter().flat_map(|dtype| [(dtype, false), (dtype, true)]) {
        let kernel = all_ops(dtype, fetch);
        let inputs = inputs(&kernel, dtype);
        let want = serial(dtype, &inputs);
        let agree = |who: &str, found: &[Data]| {
            for (slot, (want, found)) in want.iter().zip(found).enumerate() {
                assert!(want.agrees(found), "{who} on {dtype}, {slot}: {found:?}, want {want:?}");
            }
        };
        let unique = unique(dtype);
        let agree_on_unique = |who: &str, found: &[Data]| {
            for row in (0..unique.len()).filter(|&row| unique[row]) {
                for at in 3 * row..3 * row + 3 {
                    let (want, found) = (want[0].get(at), found[0].get(at));
                    let same = want == found || want.is_nan() && found.is_nan();
                    assert!(same, "{who} on {dtype}, row {row}: {found}, want {want}");
                }
            }
        };
        for seed in 0..3 {
            let mut results = inputs.clone();
            let options = interp::Options { seed, ..interp::Options::default() };
            interp::run(&kernel.graph, kernel.sink, &mut results, &options)
                .unwrap_or_else(|error| panic!("{error}"));
            agree_on_unique("the interpreter", &results);
        }
        let compiled = compile(&kernel);
        agree("the JIT", &launch(&compiled, &inputs, 1));
        for _ in 0..5 {
            agree_on_unique("the JIT, 3 threads", &launch(&compiled, &inputs, 3));
        }
        let program = lower::lower(&kernel.graph, kernel.sink, &text::C.caps).expect("it compiled");
        let bytes: Vec<Vec<u8>> = inputs.iter().map(|data| data.bytes().to_vec()).collect();
        for build in cc::builds("atomics", &program) {
            for mode in ["whole", "threads"] {
                let mut results = inputs.clone();
                for (result, bytes) in results.iter_mut().zip(&build.run(mode, &[], &bytes)) {
                    result.bytes_mut().copy_from_slice(bytes);
                }
                let who = format!("C, {}, {mode}", build.label);
                if mode == "whole" {
                    agree(&who, &results);
                } else {
                    agree_on_unique(&who, &results);
                }
            }
        }
    }
}

#[test]
fn the_serial_order_of_the_interpreter_is_that_of_the_jit() {
    for dtype in DTYPES {
        // A LOOP is serial for both.
        let ir = all_ops(dtype, true).to_string().replace(" axis 0 global", " axis 0 loop");
        let parsed = uopc::parse(&ir).unwrap_or_else(|error| panic!("{error}"));
        let kernel = KernelGraph::new(parsed.graph, parsed.sink);
        let inputs = inputs(&kernel, dtype);
        let mut want = inputs.clone();
        interp::run(&kernel.graph, kernel.sink, &mut want, &interp::Options::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let compiled = compile(&kernel);
        for found in [serial(dtype, &inputs), launch(&compiled, &inputs, 1)] {
            for (want, found) in want.iter().zip(&found) {
                assert!(want.agrees(found), "{dtype}: {found:?}, want {want:?}");
            }
        }
    }
}

#[test]
fn hip_has_them_all() {
    let Some(compiler) = tools::hip_compiler("hip_has_them_all") else { return };
    for (dtype, fetch) in DTYPES.into_iter().flat_map(|dtype| [(dtype, false), (dtype, true)]) {
        let kernel = all_ops(dtype, fetch);
        let program = lower::lower(&kernel.graph, kernel.sink, &text::HIP.caps)
            .unwrap_or_else(|error| panic!("{error}"));
        let source = text::emit(&program, &text::HIP).unwrap_or_else(|error| panic!("{error}"));
        for chip in hip::CHIPS {
            let asm = hip::compile(compiler, &source, chip, &[]);
            for word in if dtype.is_int() { &["max", "min", "xor", "swap"][..] } else { &["swap"] }
            {
                let native = asm.lines().any(|line| line.contains("atomic") && line.contains(word));
                assert!(native, "{chip}: no {word} of {dtype}");
            }
        }
    }
}

/// `x[0]` of `start`, after `op` with each of `values`, in both orders, on all targets that run.
fn extreme(op: AtomicOp, dtype: DType, start: Const, value: Const) -> Vec<Const> {
    let k = Kernel::new();
    let x = k.param_mut("x", dtype, 1);
    let v = k.param("v", dtype, 1);
    let kernel = built(x.at(0).atomic(op, v.at(0).load()).sink("extreme"));
    let mut x = Data::zeros(dtype, 1).expect("it is stored");
    let mut v = x.clone();
    x.set(0, start);
    v.set(0, value);
    let inputs = [x, v];
    let mut found = inputs.to_vec();
    interp::run(&kernel.graph, kernel.sink, &mut found, &interp::Options::default())
        .unwrap_or_else(|error| panic!("{error}"));
    vec![found[0].get(0), launch(&compile(&kernel), &inputs, 1)[0].get(0)]
}

#[test]
fn maximum_and_minimum_of_floats_are_those_of_ieee_754() {
    let floats =
        [f64::NEG_INFINITY, -1.5, -0.0, 0.0, f64::from_bits(1), 2.0, f64::INFINITY, f64::NAN];
    for dtype in [DType::F32, DType::F64] {
        for (i, a) in floats.iter().enumerate() {
            for (j, b) in floats.iter().enumerate() {
                let [a, b] = [*a, *b].map(|x| Const::float(dtype, x).expect("it is a float"));
                for (op, at) in [(AtomicOp::Max, i.max(j)), (AtomicOp::Min, i.min(j))] {
                    // The list ascends, but for the NaN at its end.
                    let nan = a.is_nan() || b.is_nan();
                    let want = Const::float(dtype, floats[at]).expect("it is a float");
                    for found in extreme(op, dtype, a, b) {
                        let right = if nan { found.is_nan() } else { found == want };
                        assert!(right, "{op:?} of {a} and {b}: {found}");
                    }
                }
            }
        }
    }
}

#[test]
fn tickets_are_a_permutation() {
    for dtype in DTYPES {
        let k = Kernel::new();
        let next = k.param_mut("next", dtype, 1);
        let old = k.param_mut("old", dtype, N);
        let i = k.range(N, AxisType::Global);
        let ticket = next.after(i).at(0).fetch_atomic(AtomicOp::Add, 1);
        let kernel = built(old.at(i).store(ticket).end(i).sink("tickets"));
        let compiled = compile(&kernel);
        let zeros = [1, N].map(|len| Data::zeros(dtype, len).expect("it is stored"));
        for threads in [1, 3] {
            let found = launch(&compiled, &zeros, threads);
            let mut tickets: Vec<i128> = (0..N)
                .map(|i| match found[1].get(i) {
                    Const::Int(ticket) => ticket,
                    float => float.as_float().expect("it is a float") as i128,
                })
                .collect();
            tickets.sort_unstable();
            assert!(tickets.into_iter().eq(0..N as i128), "{dtype}, {threads} threads");
        }
    }
}

#[test]
fn exchange_loses_nothing_and_cas_claims_once() {
    let k = Kernel::new();
    let x = k.param_mut("x", DType::I64, 1);
    let slots = k.param_mut("slots", DType::U32, 10);
    let old = k.param_mut("old", DType::I64, N);
    let claimed = k.param_mut("claimed", DType::U32, N);
    let i = k.range(N, AxisType::Global);
    let before = x.at(0).fetch_atomic(AtomicOp::Exchange, i.cast(DType::I64) + 1);
    let slot = slots.at((i * 7919).clip(0, 9));
    let was = slot.fetch_cas(0, i.cast(DType::U32) + 1);
    let effects = [old.at(i).store(before), claimed.at(i).store(was)];
    let kernel = built(k.group(effects).end(i).sink("claims"));
    let compiled = compile(&kernel);
    let zeros: Vec<Data> = compiled
        .params()
        .iter()
        .map(|param| {
            Data::zeros(
                param.dtype,
                param.shape_at(&[]).expect("constants").iter().product::<u64>() as usize,
            )
            .expect("it is stored")
        })
        .collect();
    for threads in [1, 3] {
        for _ in 0..5 {
            let found = launch(&compiled, &zeros, threads);
            // Each value is returned once, but for the last one, which stays; so is the zero.
            let mut values: Vec<i128> =
                (0..N).map(|i| found[2].get(i).as_int().expect("an integer")).collect();
            values.extend(found[0].get(0).as_int());
            values.sort_unstable();
            assert!(values.into_iter().eq(0..=N as i128), "{threads} threads");
            // Who found 0 owns the slot, and no one else does.
            let owners = (0..N).filter(|&i| found[3].get(i) == Const::Int(0));
            let mut owners: Vec<i128> = owners.map(|i| i as i128 + 1).collect();
            let slots = (0..10).filter_map(|i| found[1].get(i).as_int());
            let mut slots: Vec<i128> = slots.filter(|&owner| owner != 0).collect();
            owners.sort_unstable();
            slots.sort_unstable();
            assert_eq!(owners, slots, "{threads} threads");
        }
    }
}

#[test]
fn a_value_that_is_not_needed_does_not_drop_the_atomic() {
    let k = Kernel::new();
    let x = k.param_mut("x", DType::I32, 4);
    let out = k.param_mut("out", DType::I32, N);
    let i = k.range(N, AxisType::Global);
    let j = k.range(3, AxisType::Loop);
    let add = |row: i64| x.after([i, j]).at(row).fetch_atomic(AtomicOp::Add, 1);
    let used = add(0) * k.constant(DType::I32, 0);
    let both = k.constant(DType::Bool, true).where_(used, add(1));
    let effects = [out.after([i, j]).at(i).store(both), add(2)];
    let inner = k.group(effects).end(j);
    let once = x.at(3).fetch_atomic(AtomicOp::Max, 7);
    let kernel = built(k.group([inner.end(i), once]).sink("not_needed"));
    let zeros = [4, N].map(|len| Data::zeros(DType::I32, len).expect("it is stored"));
    let n = i128::try_from(3 * N).expect("it is small");
    let agree = |found: &[Data]| {
        let found: Vec<Option<i128>> = (0..4).map(|i| found[0].get(i).as_int()).collect();
        assert_eq!(found, [Some(n), Some(n), Some(n), Some(7)]);
    };
    let mut found = zeros.to_vec();
    interp::run(&kernel.graph, kernel.sink, &mut found, &interp::Options::default())
        .unwrap_or_else(|error| panic!("{error}"));
    agree(&found);
    let compiled = compile(&kernel);
    agree(&launch(&compiled, &zeros, 3));
    let program = lower::lower(&kernel.graph, kernel.sink, &text::C.caps).expect("it compiled");
    for build in cc::builds("not_needed", &program) {
        let bytes: Vec<Vec<u8>> = zeros.iter().map(|data| data.bytes().to_vec()).collect();
        let mut found = zeros.to_vec();
        for (result, bytes) in found.iter_mut().zip(&build.run("whole", &[], &bytes)) {
            result.bytes_mut().copy_from_slice(bytes);
        }
        agree(&found);
    }
}

#[test]
fn one_value_for_all_points_is_refused_where_no_target_has_it() {
    let k = Kernel::new();
    let x = k.param_mut("x", DType::I32, 1);
    let out = k.param_mut("out", DType::I32, [N, 4]);
    let (i, l) = (k.range(N, AxisType::Global), k.range(4, AxisType::Local));
    let once = x.after(i).at(0).fetch_atomic(AtomicOp::Add, 1);
    let kernel = built(out.at([i, l]).store(once).end([i, l]).sink("once"));
    // On a CPU the work-items of a group are a loop behind it.
    let zeros = [1, 4 * N].map(|len| Data::zeros(DType::I32, len).expect("it is stored"));
    let found = launch(&compile(&kernel), &zeros, 1);
    assert!((0..4 * N).all(|at| found[1].get(at) == Const::Int((at / 4) as i128)));
    let error = lower::lower(&kernel.graph, kernel.sink, &text::HIP.caps).expect_err("no target");
    let error = error.to_string();
    assert!(error.contains("uses, at each point of the parallel range"), "{error}");
}

#[test]
fn missing_cells_say_what_to_use() {
    let mut found = String::new();
    for (op, dtype) in [
        (AtomicOp::Add, DType::F16),
        (AtomicOp::Max, DType::BF16),
        (AtomicOp::Or, DType::F16),
        (AtomicOp::Xor, DType::F64),
        (AtomicOp::Exchange, DType::Bool),
        (AtomicOp::Min, DType::I8),
    ] {
        let k = Kernel::new();
        let x = k.param_mut("x", dtype, 1);
        let v = k.param("v", dtype, 1);
        let error = x.at(0).atomic(op, v.at(0).load()).sink("missing").expect_err("a missing cell");
        let error = error.to_string();
        let message = error.split_once("no atomic").expect("it says so").1;
        writeln!(found, "no atomic{}", message.lines().next().unwrap_or_default())
            .expect("a string takes any text");
    }
    let want = "\
no atomic_add of f16; accumulate in f32 and cast once
no atomic_max of bf16; accumulate in f32 and cast once
no atomic_or of f16; use i32 or u32
no atomic_xor of f64; use an integer of the same width
no atomic_exchange of bool; use i32 or u32
no atomic_min of i8; use i32 or u32
";
    assert_eq!(found, want);
}
