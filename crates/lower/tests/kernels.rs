//! Kernels through the whole of `lower`, compared with the oracle bit by bit.

#![allow(clippy::erasing_op, reason = "an index times 0 has a region")]

mod common;

use common::{GRID, NO_GRID, Random, check, lower};
use interp::Data;
use kernels::{Axes, Embedding, EmbeddingBwd, OutOfRange};
use uop::AxisType::{Global, Local, Loop};
use uop::DType::{Bool, F32, I32, I64, Index};
use uop::{Kernel, KernelGraph, Val};

fn tokens(n: usize, vocab: i32) -> Data {
    let edges = [i32::MIN, -1, 0, vocab - 1, vocab, i32::MAX, 1];
    Data::of::<i32>((0..n).map(|i| edges[i % edges.len()]).collect())
}

/// Runs `case` with each combination of sizes and options.
fn embeddings(case: impl Fn(usize, usize, usize, Axes, OutOfRange)) {
    for dim in [1, 3, 64, 256, 257, 300] {
        for tokens in [0, 1, 7] {
            for (axes, out_of_range) in [
                (Axes::Gpu, OutOfRange::Clip),
                (Axes::Cpu, OutOfRange::Clip),
                (Axes::Gpu, OutOfRange::Ignore),
                (Axes::Cpu, OutOfRange::Ignore),
            ] {
                for vocab in [1, 5] {
                    case(dim, tokens, vocab, axes, out_of_range);
                }
            }
        }
    }
}

#[test]
fn embedding() {
    embeddings(|dim, n, vocab, axes, out_of_range| {
        let (tokens_, dim_, vocab_) = (n as i64, dim as i64, vocab as i64);
        let kernel = Embedding { axes, out_of_range, ..Embedding::new(tokens_, dim_, vocab_) };
        let weight = Random(1).floats(vocab * dim, 1000);
        let inputs = [Data::of::<f32>(vec![-1.0; n * dim]), weight, tokens(n, vocab as i32)];
        check(&kernel.build().unwrap(), &inputs);
    });
}

#[test]
fn embedding_bwd() {
    embeddings(|dim, n, vocab, axes, out_of_range| {
        let (tokens_, dim_, vocab_) = (n as i64, dim as i64, vocab as i64);
        let kernel =
            EmbeddingBwd { axes, out_of_range, ..EmbeddingBwd::new(tokens_, dim_, vocab_) };
        let grad = Random(2).floats(n * dim, 1000);
        let inputs = [Data::of::<f32>(vec![0.0; vocab * dim]), grad, tokens(n, vocab as i32)];
        check(&kernel.build().unwrap(), &inputs);
    });
}

#[test]
fn zero() {
    for (dtype, n) in [(F32, 5), (I32, 1), (I64, 0), (Bool, 3)] {
        let kernel = kernels::zero(n as i64, dtype).unwrap();
        let input = match dtype {
            F32 => Data::of::<f32>(vec![f32::NAN; n]),
            I32 => Data::of::<i32>(vec![7; n]),
            I64 => Data::of::<i64>(vec![-7; n]),
            _ => Data::of::<bool>(vec![true; n]),
        };
        assert_eq!(check(&kernel, &[input]), [Data::zeros(dtype, n).unwrap()]);
    }
}

fn saxpy(n: i64) -> KernelGraph {
    let k = Kernel::new();
    let y = k.param_mut("y", F32, n);
    let x = k.param("x", F32, n);
    let (outer, inner) = (k.range((n + 3) / 4, Global), k.range(4, Local));
    let i = outer * 4 + inner;
    let gate = i.lt(n);
    let sum = x.at(i).load_if(gate) * 2.5 + y.at(i).load_if(gate);
    y.at(i).store_if(gate, sum).end([outer, inner]).sink("saxpy").unwrap()
}

#[test]
fn gated_saxpy() {
    for n in [0, 1, 3, 4, 13] {
        let mut random = Random(n as u64);
        check(&saxpy(n), &[random.floats(n as usize, 99), random.floats(n as usize, 99)]);
    }
}

fn histogram(n: i64, bins: i64) -> KernelGraph {
    let k = Kernel::new();
    let count = k.param_mut("count", I32, bins);
    let x = k.param("x", I32, n);
    let i = k.range(n, Global);
    let bin = x.at(i).load().cast(Index);
    count.at(bin).atomic_add(1).end(i).sink("histogram").unwrap()
}

/// Data that leaves the buffer is guarded: it counts nowhere.
#[test]
fn unguarded_histogram() {
    let x = Data::of::<i32>(vec![0, 4, 4, -1, 5, i32::MAX, i32::MIN, 2]);
    let result = check(&histogram(8, 5), &[Data::of::<i32>(vec![0; 5]), x]);
    assert_eq!(result[0], Data::of::<i32>(vec![1, 0, 1, 0, 2]));
    check(&histogram(0, 5), &[Data::of::<i32>(vec![9; 5]), Data::of::<i32>(vec![])]);
    check(&histogram(2, 0), &[Data::of::<i32>(vec![]), Data::of::<i32>(vec![0, 1])]);
}

/// A load of i64 keys whose exact arithmetic leaves 32 bits.
#[test]
fn wide_indices() {
    let k = Kernel::new();
    let out = k.param_mut("out", I64, 4);
    let table = k.param("table", I64, 4);
    let key = k.param("key", I64, 4);
    let i = k.range(4, Global);
    // 2^33 + key, brought back; the key itself is clipped first to stay within 64 bits.
    let key = key.at(i).load().cast(Index).clip(-(1i64 << 40), 1i64 << 40);
    let far = key * 3 + (1i64 << 33);
    let row = (far - (1i64 << 33)).clip(0, 9).min(3);
    let value = table.at(row).load() + far.cast(I64) + far.cast(I32).cast(I64);
    let kernel = out.at(i).store(value).end(i).sink("wide").unwrap();
    let keys = Data::of::<i64>(vec![i64::MIN, i64::MAX, 1, 0]);
    check(&kernel, &[Data::of::<i64>(vec![0; 4]), Data::of::<i64>(vec![10, 20, 30, 40]), keys]);
}

/// Buffers whose axes are long, of which little is used.
#[test]
fn far_elements_of_an_empty_buffer() {
    let k = Kernel::new();
    let out = k.param_mut("out", F32, 3);
    let big = k.param("big", F32, [1i64 << 20, 1i64 << 20, 0]);
    let i = k.range(3, Global);
    let gate = i.lt(0);
    let value = big.at([i * (1i64 << 18), i, i]).load_if(gate);
    let kernel = out.at(i).store(value).end(i).sink("far").unwrap();
    check(&kernel, &[Data::of::<f32>(vec![1.0; 3]), Data::of::<f32>(vec![])]);
}

/// `out[i] = Σ x[i, k]` in a register, with the accumulator's order as edges.
fn row_sums(rows: i64, columns: i64, kind: uop::AxisType) -> KernelGraph {
    let k = Kernel::new();
    let out = k.param_mut("out", F32, rows);
    let x = k.param("x", F32, [rows, columns]);
    let acc = k.reg(F32, 1);
    let (i, c) = (k.range(rows, kind), k.range(columns, Loop));
    let start = acc.after(i).at(0).store(0.0);
    let inside = acc.after([start, c]);
    let step = inside.at(0).store(inside.at(0).load() + x.at([i, c]).load());
    let sum = acc.after(step.end(c)).at(0).load();
    out.at(i).store(sum).end(i).sink("row_sums").unwrap()
}

#[test]
fn accumulators() {
    for kind in [Global, Local, Loop] {
        for (rows, columns) in [(1, 1), (3, 5), (0, 2), (4, 0)] {
            let x = Random(3).floats((rows * columns) as usize, 1 << 22);
            check(&row_sums(rows, columns, kind), &[Data::of::<f32>(vec![9.0; rows as usize]), x]);
        }
    }
}

/// A loop whose bound is read from memory, inside a parallel range.
#[test]
fn ragged_rows() {
    let k = Kernel::new();
    let out = k.param_mut("out", F32, 4);
    let x = k.param("x", F32, [4, 3]);
    let length = k.param("length", I32, 4);
    let acc = k.reg(F32, [1]);
    let i = k.range(4, Global);
    let c = k.range(length.at(i).load().cast(Index), Loop);
    let start = acc.after(i).at(0).store(1.0);
    let inside = acc.after([start, c]);
    let step = inside.at(0).store(inside.at(0).load() * 3.0 + x.at([i, c]).load());
    let sum = acc.after(step.end(c)).at(0).load();
    let kernel = out.at(i).store(sum).end(i).sink("ragged").unwrap();
    let lengths = Data::of::<i32>(vec![0, 3, -2, 5]);
    check(&kernel, &[Data::of::<f32>(vec![0.0; 4]), Random(4).floats(12, 50), lengths]);
}

/// A ping-pong through memory: each turn of a serial loop reads what the one before has written.
#[test]
fn serial_scan() {
    let k = Kernel::new();
    let x = k.param_mut("x", I32, 8);
    let i = k.range(7, Loop);
    let (a, b) = (x.after(i).at(i).load(), x.after(i).at(i + 1));
    let kernel = b.store(a + b.load()).end(i).sink("scan").unwrap();
    let result = check(&kernel, &[Data::of::<i32>(vec![1, 2, 3, 4, 5, 6, 7, i32::MAX])]);
    assert_eq!(result[0], Data::of::<i32>(vec![1, 3, 6, 10, 15, 21, 28, i32::MIN + 27]));
}

/// One range that two ENDs close: each has instances of its own.
#[test]
fn shared_range() {
    for kind in [Global, Local, Loop] {
        for n in [0, 1, 5] {
            let k = Kernel::new();
            let (a, b) = (k.param_mut("a", I32, n), k.param_mut("b", I32, n));
            let x = k.param("x", I32, n);
            let i = k.range(n, kind);
            let value = x.at(i).load() * 3;
            let first = a.at(i).store(value).end(i);
            let second = b.at(i).store(value + i.cast(I32)).end(i);
            let kernel = k.group([first, second]).sink("shared").unwrap();
            let zeros = Data::of::<i32>(vec![0; n as usize]);
            check(&kernel, &[zeros.clone(), zeros, Random(5).ints(n as usize, -9, 9)]);
        }
    }
}

/// The second of two loops over one range reads backwards what the first has written.
#[test]
fn shared_serial_range_with_an_edge() {
    let k = Kernel::new();
    let (a, b) = (k.param_mut("a", I32, 5), k.param_mut("b", I32, 5));
    let i = k.range(5, Loop);
    let first = a.at(i).store(i.cast(I32) * 7).end(i);
    let second = b.at(i).store(a.after(first).at(-i + 4).load()).end(i);
    check(
        &second.sink("flip").unwrap(),
        &[Data::of::<i32>(vec![0; 5]), Data::of::<i32>(vec![0; 5])],
    );
}

#[test]
fn where_gates_loads() {
    let k = Kernel::new();
    let out = k.param_mut("out", F32, 6);
    let (x, y) = (k.param("x", F32, 4), k.param("y", F32, 2));
    let i = k.range(6, Global);
    // Each arm is in bounds only where it is taken.
    let value = i.lt(4).where_(x.at(i).load(), y.at(i - 4).load());
    let kernel = out.at(i).store(value).end(i).sink("concat").unwrap();
    let result = check(
        &kernel,
        &[
            Data::of::<f32>(vec![0.0; 6]),
            Data::of::<f32>(vec![1.0, f32::NAN, -0.0, 4.0]),
            Data::of::<f32>(vec![5.0, 6.0]),
        ],
    );
    assert!(result[0].agrees(&Data::of::<f32>(vec![1.0, f32::NAN, -0.0, 4.0, 5.0, 6.0])));
}

/// A WHERE inside a loop must not move the load that it chooses into that loop.
#[test]
fn where_does_not_repeat_a_load() {
    let k = Kernel::new();
    let x = k.param_mut("x", I32, 2);
    let i = k.range(3, Loop);
    let before = x.at(0).load();
    let value = i.lt(2).where_(before, 100);
    let kernel = x.after(i).at(0).store(value + 1).end(i).sink("once").unwrap();
    let result = check(&kernel, &[Data::of::<i32>(vec![5, 0])]);
    assert_eq!(result[0], Data::of::<i32>(vec![101, 0]));
    let k = Kernel::new();
    let x = k.param_mut("x", I32, 2);
    let i = k.range(3, Loop);
    let value = i.lt(3).where_(x.at(0).load(), 100) + i.cast(I32);
    let kernel = x.after(i).at(0).store(value).end(i).sink("once").unwrap();
    assert_eq!(check(&kernel, &[Data::of::<i32>(vec![5, 0])])[0], Data::of::<i32>(vec![7, 0]));
}

#[test]
fn views() {
    let k = Kernel::new();
    let out = k.param_mut("out", I32, [2, 3, 4]);
    let x = k.param("x", I32, [4, 6]);
    let (a, b) = (k.range(6, Global), k.range(4, Local));
    let value = x.flatten().reshape([3, 8]).reshape([6, 4]).at([a, b]).load();
    let kernel = out.reshape([6, 4]).at([a, b]).store(value).end([a, b]).sink("views").unwrap();
    let x = Data::of::<i32>((0..24).collect());
    assert_eq!(check(&kernel, &[Data::of::<i32>(vec![0; 24]), x.clone()])[0], x);
}

const NO_AXES: [i64; 0] = [];

/// No parallel range at all.
#[test]
fn serial_kernels() {
    let k = Kernel::new();
    let out = k.param_mut("out", I64, NO_AXES);
    let kernel = out.at(NO_AXES).store(i64::MIN).sink("scalar").unwrap();
    check(&kernel, &[Data::of::<i64>(vec![1])]);
    let k = Kernel::new();
    let out = k.param_mut("out", I32, [3, 2]);
    let (i, j) = (k.range(3, Loop), k.range(2, Loop));
    let kernel = out.at([i, j]).store((i * 2 + j).cast(I32)).end([i, j]).sink("iota").unwrap();
    check(&kernel, &[Data::of::<i32>(vec![0; 6])]);
}

/// Global nests beside each other, one of them perhaps empty.
#[test]
fn sibling_nests() {
    for (n, m) in [(3, 4), (0, 4), (3, 0), (1, 4), (0, 0)] {
        for kind in [Global, Local] {
            let k = Kernel::new();
            let (a, b) = (k.param_mut("a", I32, n), k.param_mut("b", I32, m));
            let count = k.param_mut("count", I32, 1);
            let (i, j) = (k.range(n, kind), k.range(m, kind));
            let first = a.at(i).store(i.cast(I32) + 1).end(i);
            let second = k.group([b.at(j).store(2), count.at(j * 0).atomic_add(1)]).end(j);
            let kernel = k.group([first, second]).sink("siblings").unwrap();
            let zeros = |n: i64| Data::of::<i32>(vec![0; n as usize]);
            let result = check(&kernel, &[zeros(n), zeros(m), zeros(1)]);
            assert_eq!(result[2], Data::of::<i32>(vec![m as i32]));
        }
    }
}

/// An effect without one of the parallel ranges happens once, not once per block or work-item;
/// also if that range is empty.
#[test]
fn effects_without_a_range() {
    for (n, m) in [(3, 4), (0, 4), (3, 0), (1, 1), (1, 4), (3, 1)] {
        for serial in [0, 2] {
            let k = Kernel::new();
            let a = k.param_mut("a", I32, [n, m]);
            let counts = k.param_mut("counts", I32, 3);
            let (i, j) = (k.range(n, Global), k.range(m, Local));
            let c = k.range(serial, Loop);
            let cells = a.at([i, j]).store(7).end(j);
            let per_row = counts.after(i).at(0).atomic_add(1);
            let once = counts.at(1).atomic_add(1);
            let loops = counts.after(c).at(2).atomic_add(1).end(c);
            let rows = k.group([cells, per_row]).end(i);
            let kernel = k.group([rows, once, loops]).sink("partial").unwrap();
            let zeros = |n: i64| Data::of::<i32>(vec![0; n as usize]);
            let result = check(&kernel, &[zeros(n * m), zeros(3)]);
            assert_eq!(result[1], Data::of::<i32>(vec![n as i32, 1, serial]));
        }
    }
}

/// What a group does once, in a loop inside the local range of the rest.
#[test]
fn group_effect_in_a_loop() {
    for (n, m) in [(1, 1), (2, 3), (2, 1)] {
        let k = Kernel::new();
        let a = k.param_mut("a", I32, [n, 3, m + 1]);
        let counts = k.param_mut("counts", I32, [n, 3]);
        let (i, j, c) = (k.range(n, Global), k.range(m, Local), k.range(3, Loop));
        let once = counts.after([i, c]).at([i, c]).atomic_add(1);
        let read = a.after([i, c]).at([i, c, k.int(0)]).load();
        let all = a.at([i, c, j + 1]).store(read + 1);
        let kernel = k.group([once, all]).end([i, j, c]).sink("group").unwrap();
        let zeros = |n: i64| Data::of::<i32>(vec![0; n as usize]);
        let result = check(&kernel, &[zeros(n * 3 * (m + 1)), zeros(n * 3)]);
        assert_eq!(result[1], Data::of::<i32>(vec![1; 3 * n as usize]));
    }
}

/// Addresses that lose their ranges keep their counts.
#[test]
fn constant_addresses() {
    for kind in [Global, Local, Loop] {
        for n in [0, 1, 5] {
            let k = Kernel::new();
            let count = k.param_mut("count", I32, 2);
            let (i, j) = (k.range(n, kind), k.range(3, kind));
            let add = count.at(i * 0 + j * 0).atomic_add(2);
            let kernel = add.end([i, j]).sink("count").unwrap();
            let result = check(&kernel, &[Data::of::<i32>(vec![0, 0])]);
            assert_eq!(result[0], Data::of::<i32>(vec![6 * n, 0]));
        }
    }
}

/// Effects that become equal on the way stay two.
#[test]
fn equal_effects_stay_apart() {
    type Build = for<'k> fn(&'k Kernel, Val<'k>, Val<'k>) -> [Val<'k>; 2];
    let simplified: Build =
        |_, count, i| [count.at(i * 0), count.after(i).at(0)].map(|at| at.atomic_add(1));
    let folded: Build = |k, count, i| {
        let one = (k.int(1) + i * 0).cast(I32);
        [count.at(0).after(i).atomic_add(1), count.after(i).at(0).atomic_add(one)]
    };
    let guarded: Build = |_, count, i| {
        let bin = i - 1;
        let gate = bin.ge(0) & bin.lt(2);
        [count.at(bin).atomic_add(1), count.at(bin).atomic_add_if(gate, 1)]
    };
    for (build, want) in [(simplified, [6, 0]), (folded, [6, 0]), (guarded, [2, 2])] {
        let k = Kernel::new();
        let count = k.param_mut("count", I32, 2);
        let range = k.range(3, Loop);
        let mut args = vec![Data::of::<i32>(vec![0, 0])];
        let mut i = range;
        if want[1] != 0 {
            // What the guard needs must not be known.
            i = k.param("x", I32, 3).at(range).load().cast(Index);
            args.push(Data::of::<i32>(vec![0, 1, 2]));
        }
        let kernel = k.group(build(&k, count, i)).end(range).sink("twice").unwrap();
        let result = check(&kernel, &args);
        assert_eq!(result[0], Data::of::<i32>(want.to_vec()));
    }
}

/// Two nests that become one: a range of extent 1 and none.
#[test]
fn equal_effects_with_and_without_a_unit_range() {
    let k = Kernel::new();
    let count = k.param_mut("count", I32, 1);
    let i = k.range(1, Global);
    let first = count.at(i).atomic_add(1).end(i);
    let kernel = k.group([first, count.at(0).atomic_add(1)]).sink("twice").unwrap();
    assert_eq!(check(&kernel, &[Data::of::<i32>(vec![0])])[0], Data::of::<i32>(vec![2]));
}

/// AFTER on an address instead of the buffer.
#[test]
fn ordered_addresses() {
    let k = Kernel::new();
    let x = k.param_mut("x", I32, 4);
    let table = k.param("table", I32, 4);
    let i = k.range(4, Global);
    let first = x.at(i).store(1);
    let row = table.at(i).load().cast(Index);
    let value = table.at(row).after(first).load();
    let kernel = x.at(i).after(first).store(value).end(i).sink("ordered").unwrap();
    check(&kernel, &[Data::of::<i32>(vec![0; 4]), Data::of::<i32>(vec![3, 7, -1, 0])]);
}

/// A value that comes after an effect, and arithmetic of every kind.
#[test]
fn arithmetic() {
    let k = Kernel::new();
    let (outs, n) = (k.param_mut("out", I32, [8, 6]), 6);
    let floats = k.param_mut("floats", F32, [4, 6]);
    let (x, f) = (k.param("x", I32, n), k.param("f", F32, n));
    let i = k.range(n, Global);
    let (a, b) = (x.at(i).load(), f.at(i).load());
    let ints = [
        a * a + 7,
        -a,
        a.max(3),
        a.min(-3),
        a & 12,
        a | 5,
        b.cast(I32),
        a.eq(4).where_(a.cast(Bool).cast(I32), b.lt(0.5).cast(I32)),
    ];
    let fs = [-b * b, b.max(0.0).min(1.0), a.cast(F32), b.ne(b).where_(1.0, b - 1.0)];
    let ints = ints.into_iter().enumerate().map(|(r, v)| outs.at([k.int(r as i64), i]).store(v));
    let floats = fs.into_iter().enumerate().map(|(r, v)| floats.at([k.int(r as i64), i]).store(v));
    let kernel = k.group(ints.chain(floats)).end(i).sink("arithmetic").unwrap();
    check(
        &kernel,
        &[
            Data::of::<i32>(vec![0; 48]),
            Data::of::<f32>(vec![0.0; 24]),
            Data::of::<i32>(vec![i32::MIN, i32::MAX, 0, 4, -1, 1 << 20]),
            Data::of::<f32>(vec![f32::NAN, f32::INFINITY, -0.0, 1e-40, -3e9, 0.1]),
        ],
    );
}

/// The register of a work-item under two ENDs of one parallel range.
#[test]
fn register_under_shared_ranges() {
    let k = Kernel::new();
    let (a, b) = (k.param_mut("a", I32, 3), k.param_mut("b", I32, 3));
    let acc = k.reg(I32, 1);
    let i = k.range(3, Global);
    let set = acc.at(0).store(i.cast(I32));
    let value = acc.after(set).at(0).load();
    let group = k.group([a.at(i).store(value), b.at(i).store(value * 2)]);
    check(
        &group.end(i).sink("register").unwrap(),
        &[Data::of::<i32>(vec![0; 3]), Data::of::<i32>(vec![0; 3])],
    );
}

/// Data-dependent addresses in more than one axis, of a 0-dimensional buffer, and of length 0.
#[test]
fn guarded_axes() {
    let k = Kernel::new();
    let out = k.param_mut("out", I32, 9);
    let x = k.param("x", I32, [2, 3]);
    let at = k.param("at", I32, [9, 2]);
    let i = k.range(9, Global);
    let [row, column] = [0, 1].map(|c| at.at([i, k.int(c)]).load().cast(Index));
    let kernel = out.at(i).store(x.at([row, column]).load()).end(i).sink("gather").unwrap();
    let at = vec![0, 0, 1, 2, 0, 3, 2, 0, -1, 1, 1, -1, i32::MAX, 0, 0, i32::MIN, 1, 1];
    let result = check(
        &kernel,
        &[Data::of::<i32>(vec![9; 9]), Data::of::<i32>((1..7).collect()), Data::of::<i32>(at)],
    );
    assert_eq!(result[0], Data::of::<i32>(vec![1, 6, 0, 0, 0, 0, 0, 0, 5]));
}

#[test]
fn golden_programs() {
    let text = |kernel: &KernelGraph, caps| lower(kernel, caps).unwrap().to_string();
    let flagship = EmbeddingBwd::new(16384, 256, 12830).build().unwrap();
    expect_test::expect![[r#"
        program embedding_bwd(grad_weight: mut f32[12830, 256], grad_emb: f32[16384, 256], idx: i32[16384])
        launch grid [16384, 1, 1] block [256, 1, 1]
        v0: i32 = block.x
        v1: i32 = item.x
        v2: i32 = load idx[v0]
        v3: i32 = 0
        v4: i32 = max v2, v3
        v5: i32 = 12829
        v6: i32 = min v4, v5
        v7: i32 = 256
        v8: i32 = mul v0, v7
        v9: i32 = add v8, v1
        v10: f32 = load grad_emb[v9]
        v11: i32 = mul v6, v7
        v12: i32 = add v11, v1
        atomic add grad_weight[v12], v10
    "#]].assert_eq(&text(&flagship, &GRID));
    expect_test::expect![[r#"
        program embedding_bwd(grad_weight: mut f32[12830, 256], grad_emb: f32[16384, 256], idx: i32[16384])
        launch range 16384
        v0: i64 = 0
        v1: i64 = 12829
        v2: i64 = 256
        v3: i64 = begin
        v4: i64 = end
        for v5: i64 in v3..v4 {
            v6: i32 = load idx[v5]
            v7: i64 = cast v6
            v8: i64 = max v7, v0
            v9: i64 = min v8, v1
            v10: i64 = mul v5, v2
            v11: i64 = mul v9, v2
            for v12: i64 in v0..v2 {
                v13: i64 = add v10, v12
                v14: f32 = load grad_emb[v13]
                v15: i64 = add v11, v12
                atomic add grad_weight[v15], v14
            }
        }
    "#]].assert_eq(&text(&flagship, &NO_GRID));
    expect_test::expect![[r#"
        program saxpy(y: mut f32[13], x: f32[13])
        launch grid [4, 1, 1] block [4, 1, 1]
        v0: i32 = block.x
        v1: i32 = 4
        v2: i32 = mul v0, v1
        v3: i32 = item.x
        v4: i32 = add v2, v3
        v5: i32 = 13
        v6: bool = cmplt v4, v5
        v7: f32 = 0.0
        v8: f32 = load x[v4] if v6 else v7
        v9: f32 = 2.5
        v10: f32 = mul v8, v9
        v11: f32 = load y[v4] if v6 else v7
        v12: f32 = add v10, v11
        if v6 { store y[v4], v12 }
    "#]]
    .assert_eq(&text(&saxpy(13), &GRID));
    expect_test::expect![[r#"
        program row_sums(out: mut f32[3], x: f32[3, 5])
        register reg.0: f32[1]
        launch range 3
        v0: i64 = 5
        v1: i64 = 0
        v2: f32 = 0.0
        v3: i64 = begin
        v4: i64 = end
        for v5: i64 in v3..v4 {
            v6: i64 = mul v5, v0
            store reg.0[v1], v2
            for v7: i64 in v1..v0 {
                v8: i64 = add v6, v7
                v9: f32 = load x[v8]
                v10: f32 = load reg.0[v1]
                v11: f32 = add v10, v9
                store reg.0[v1], v11
            }
            v12: f32 = load reg.0[v1]
            store out[v5], v12
        }
    "#]]
    .assert_eq(&text(&row_sums(3, 5, Global), &NO_GRID));
}
