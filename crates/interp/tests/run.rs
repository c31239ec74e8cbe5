//! Kernels that run.

mod common;

use common::{Kernel, f32s, i32s};
use interp::{Data, ErrorKind, Options, OutOfBounds};
use uop::AxisType::{Global, Local, Loop};
use uop::{DType, Id, Op};

/// `out[token[i]] += x[i]`, atomically if so.
fn scatter(atomic: bool) -> (Kernel, Id, [Id; 3]) {
    let mut k = Kernel::new();
    let out = k.param(0, DType::F32, &[4]);
    let tokens = k.param(1, DType::I32, &[6]);
    let x = k.param(2, DType::F32, &[6]);
    let i = k.range(6, Global);
    let token = k.load(tokens, &[i]);
    let token = k.cast(token, DType::Index);
    let value = k.load(x, &[i]);
    let effect = if atomic {
        k.atomic_add(out, &[token], value)
    } else {
        let old = k.load(out, &[token]);
        let sum = k.op(Op::Add, &[old, value]);
        k.store(out, &[token], sum)
    };
    let end = k.end(effect, &[i]);
    (k, end, [out, effect, i])
}

fn scatter_data(tokens: [i32; 6]) -> Vec<Data> {
    vec![f32s(&[0.0; 4]), i32s(&tokens), f32s(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]
}

#[test]
fn an_atomic_scatter_is_the_serial_sum() {
    let (mut k, end, _) = scatter(true);
    let got = k.run(end, scatter_data([3, 0, 3, 1, 0, 3]));
    assert_eq!(got[0], f32s(&[7.0, 4.0, 0.0, 10.0]));
}

#[test]
fn a_plain_scatter_races_where_tokens_collide() {
    let (mut k, end, [out, store, i]) = scatter(false);
    let error = k.try_run(end, scatter_data([3, 0, 1, 2, 2, 2]), &Options::default()).unwrap_err();
    let ErrorKind::Race { buffer, element, point, other, other_point } = error.kind.clone() else {
        panic!("{error}")
    };
    assert_eq!((buffer, element), (out, 2));
    assert!(error.node == store || other == store, "{error}");
    assert_eq!((point.0[0].0, other_point.0[0].0), (i, i));
    assert_ne!(point.0[0].1, other_point.0[0].1);
    assert!(point.0[0].1 >= 3 && other_point.0[0].1 >= 3, "{error}");
    let want = format!("not ordered with {other}, at {i} = {}", other_point.0[0].1);
    assert!(error.to_string().contains(&want), "{error}");
}

/// `out[i] = a·x[i] + y[i]` for i in 0..8, gated by i < n.
fn saxpy(gated: bool) -> (Kernel, Id, [Id; 2]) {
    let mut k = Kernel::new();
    let [out, x, y] = [0, 1, 2].map(|slot| k.param(slot, DType::F32, &[5]));
    let i = k.range(8, Global);
    let n = k.int(5);
    let gate = k.op(Op::CmpLt, &[i, n]);
    let (gate, zero) = (gated.then_some(gate), k.float(0.0));
    let load = |k: &mut Kernel, buffer| {
        let address = k.at(buffer, &[i]);
        match gate {
            Some(gate) => k.op(Op::Load, &[address, gate, zero]),
            None => k.op(Op::Load, &[address]),
        }
    };
    let (x, y, a) = (load(&mut k, x), load(&mut k, y), k.float(2.0));
    let product = k.op(Op::Mul, &[a, x]);
    let sum = k.op(Op::Add, &[product, y]);
    let address = k.at(out, &[i]);
    let store = match gate {
        Some(gate) => k.op(Op::Store, &[address, sum, gate]),
        None => k.op(Op::Store, &[address, sum]),
    };
    let end = k.end(store, &[i]);
    (k, end, [i, x])
}

fn saxpy_data() -> Vec<Data> {
    vec![f32s(&[0.0; 5]), f32s(&[1.0, 2.0, 3.0, 4.0, 5.0]), f32s(&[10.0; 5])]
}

#[test]
fn a_false_gate_does_not_use_the_address() {
    let (mut k, end, _) = saxpy(true);
    assert_eq!(k.run(end, saxpy_data())[0], f32s(&[12.0, 14.0, 16.0, 18.0, 20.0]));
}

#[test]
fn out_of_bounds_is_an_error_or_guarded() {
    let (mut k, end, [i, x]) = saxpy(false);
    let error = k.try_run(end, saxpy_data(), &Options::default()).unwrap_err();
    let ErrorKind::OutOfBounds { axis: 0, index, length: 5, ref point } = error.kind else {
        panic!("{error}")
    };
    assert_eq!(point.0, [(i, index)]);
    assert_eq!(error.node, x);
    let want =
        format!("{x}: index {index} is out of bounds for axis 0 of length 5, at {i} = {index}");
    assert_eq!(error.to_string(), want);
    let guard = Options { out_of_bounds: OutOfBounds::Guard, ..Options::default() };
    let got = k.try_run(end, saxpy_data(), &guard).unwrap();
    assert_eq!(got[0], f32s(&[12.0, 14.0, 16.0, 18.0, 20.0]));
}

#[test]
fn bounds_hold_for_each_axis_of_a_view() {
    let mut k = Kernel::new();
    let out = k.param(0, DType::I32, &[6]);
    let (two, three) = (k.int(2), k.int(3));
    let view = k.op(Op::Reshape, &[out, two, three]);
    let (i, j) = (k.range(2, Global), k.range(3, Loop));
    let value = k.op(Op::Add, &[i, j]);
    let value = k.cast(value, DType::I32);
    let store = k.store(view, &[i, j], value);
    let end = k.end(store, &[i, j]);
    assert_eq!(k.run(end, vec![i32s(&[9; 6])])[0], i32s(&[0, 1, 2, 1, 2, 3]));
    // Element 3 of the buffer, but not in the row.
    let zero = k.int(0);
    let one = k.graph.constant(DType::I32, uop::Const::Int(1));
    let store = k.store(view, &[zero, three], one);
    let kind = k.fail(store, vec![i32s(&[9; 6])]);
    assert!(matches!(kind, ErrorKind::OutOfBounds { axis: 1, index: 3, length: 3, .. }), "{kind}");
}

/// `out[g] = Σ x[g, j]` with an accumulator in a BUFFER, j in 0..bound[g].
fn accumulate(axis: uop::AxisType) -> (Kernel, Id) {
    let mut k = Kernel::new();
    let out = k.param(0, DType::F32, &[3]);
    let x = k.param(1, DType::F32, &[3, 4]);
    let bounds = k.param(2, DType::I32, &[3]);
    let acc = k.buffer(DType::F32, &[1]);
    let g = k.range(3, axis);
    let bound = k.load(bounds, &[g]);
    let bound = k.cast(bound, DType::Index);
    let j = k.range_to(bound, Loop);
    let (at, zero) = (k.int(0), k.float(0.0));
    let init = k.store(acc, &[at], zero);
    let inside = k.after(acc, &[init, j]);
    let old = k.load(inside, &[at]);
    let term = k.load(x, &[g, j]);
    let sum = k.op(Op::Add, &[old, term]);
    let step = k.store(inside, &[at], sum);
    let done = k.end(step, &[j]);
    let done = k.after(acc, &[done]);
    let result = k.load(done, &[at]);
    let store = k.store(out, &[g], result);
    let end = k.end(store, &[g]);
    (k, end)
}

#[test]
fn an_accumulator_loop_also_without_turns_and_with_divergent_bounds() {
    let x: Vec<f32> = (0..12).map(|x| x as f32).collect();
    for axis in [Global, Local] {
        let (mut k, end) = accumulate(axis);
        let data = vec![f32s(&[9.0; 3]), f32s(&x), i32s(&[4, 0, 2])];
        assert_eq!(k.run(end, data)[0], f32s(&[6.0, 0.0, 17.0]), "{axis}");
        let data = vec![f32s(&[9.0; 3]), f32s(&x), i32s(&[-1, 1, 3])];
        assert_eq!(k.run(end, data)[0], f32s(&[0.0, 4.0, 27.0]), "{axis}");
    }
}

#[test]
fn reading_what_was_never_written_is_an_error() {
    let mut k = Kernel::new();
    let out = k.param(0, DType::F32, &[2]);
    let acc = k.buffer(DType::F32, &[2]);
    let g = k.range(2, Global);
    let (zero, one, value) = (k.int(0), k.int(1), k.float(1.0));
    let init = k.store(acc, &[zero], value);
    let acc_after = k.after(acc, &[init]);
    let read = k.load(acc_after, &[one]);
    let store = k.store(out, &[g], read);
    let end = k.end(store, &[g]);
    let kind = k.fail(end, vec![f32s(&[0.0; 2])]);
    assert!(matches!(kind, ErrorKind::Undefined { buffer, element: 1, .. } if buffer == acc));
}

#[test]
fn storage_of_a_work_item_is_undefined_for_the_next() {
    let mut k = Kernel::new();
    let out = k.param(0, DType::F32, &[4]);
    let acc = k.buffer(DType::F32, &[1]);
    let g = k.range(4, Global);
    let (zero, value) = (k.int(0), k.float(1.0));
    // Only the first one writes.
    let first = k.op(Op::CmpEq, &[g, zero]);
    let address = k.at(acc, &[zero]);
    let init = k.op(Op::Store, &[address, value, first]);
    let acc = k.after(acc, &[init]);
    let read = k.load(acc, &[zero]);
    let store = k.store(out, &[g], read);
    let end = k.end(store, &[g]);
    for seed in 0..4 {
        let options = Options { seed, ..Options::default() };
        let error = k.try_run(end, vec![f32s(&[0.0; 4])], &options).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Undefined { .. }), "{error}");
    }
}

#[test]
fn a_load_without_the_range_is_read_once() {
    // for k in 0..4: x[0] = x[0] + k, where the read lacks k.
    let mut k = Kernel::new();
    let x = k.param(0, DType::I32, &[1]);
    let r = k.range(4, Loop);
    let (zero, term) = (k.int(0), k.cast(r, DType::I32));
    let old = k.load(x, &[zero]);
    let sum = k.op(Op::Add, &[old, term]);
    let store = k.store(x, &[zero], sum);
    let end = k.end(store, &[r]);
    assert_eq!(k.run(end, vec![i32s(&[10])])[0], i32s(&[13]));
    // Inside r it is read each time.
    let inside = k.after(x, &[r]);
    let old = k.load(inside, &[zero]);
    let sum = k.op(Op::Add, &[old, term]);
    let store = k.store(x, &[zero], sum);
    let end = k.end(store, &[r]);
    assert_eq!(k.run(end, vec![i32s(&[10])])[0], i32s(&[16]));
}

#[test]
fn a_load_that_lacks_the_outer_range_is_refused_where_the_memory_changes() {
    // for i in 0..3, j in 0..2: y[j] = y[j] + x[i, j]
    let kernel = |inside| {
        let mut k = Kernel::new();
        let y = k.param(0, DType::I32, &[2]);
        let x = k.param(1, DType::I32, &[3, 2]);
        let (i, j) = (k.range(3, Loop), k.range(2, Loop));
        let at = if inside { k.after(y, &[i]) } else { y };
        let (old, term) = (k.load(at, &[j]), k.load(x, &[i, j]));
        let sum = k.op(Op::Add, &[old, term]);
        let store = k.store(y, &[j], sum);
        let end = k.end(store, &[i, j]);
        (k, end, [i, j])
    };
    let data = vec![i32s(&[100, 200]), i32s(&[1, 2, 3, 4, 5, 6])];
    let (mut k, end, _) = kernel(true);
    assert_eq!(k.run(end, data.clone())[0], i32s(&[109, 212]));
    let (mut k, end, [outer, inner]) = kernel(false);
    assert_eq!(k.fail(end, data), ErrorKind::Lacks { outer, inner });
}

#[test]
fn local_points_run_in_lock_step() {
    // Each point of a group reads its neighbour, then all write: in place, and no race within the
    // group only because nothing is shared.
    let mut k = Kernel::new();
    let out = k.param(0, DType::I32, &[2, 3, 4]);
    let (g, a, b) = (k.range(2, Global), k.range(3, Local), k.range(4, Local));
    let acc = k.buffer(DType::I32, &[2]);
    let (zero, one, ten) = (k.int(0), k.int(1), k.int(10));
    let (row, column) = (k.op(Op::Mul, &[a, ten]), k.op(Op::Mul, &[g, ten]));
    let (row, column) = (k.cast(row, DType::I32), k.cast(column, DType::I32));
    let b32 = k.cast(b, DType::I32);
    let value = k.op(Op::Add, &[row, b32]);
    let (first, second) = (k.store(acc, &[zero], value), k.store(acc, &[one], column));
    let acc = k.after(acc, &[first, second]);
    let (x, y) = (k.load(acc, &[zero]), k.load(acc, &[one]));
    let sum = k.op(Op::Add, &[x, y]);
    let store = k.store(out, &[g, a, b], sum);
    let end = k.end(store, &[g, a, b]);
    let got = k.run(end, vec![i32s(&[0; 24])]);
    let want: Vec<i32> = (0..2)
        .flat_map(|g| (0..3).flat_map(move |a| (0..4).map(move |b| g * 10 + a * 10 + b)))
        .collect();
    assert_eq!(got[0], i32s(&want));
}

#[test]
fn local_points_that_share_an_element_race() {
    let mut k = Kernel::new();
    let out = k.param(0, DType::I32, &[4]);
    let l = k.range(4, Local);
    let value = k.load(out, &[l]);
    let (three, zero) = (k.int(3), k.int(0));
    let last = k.op(Op::CmpEq, &[l, three]);
    let at = k.op(Op::Where, &[last, zero, l]);
    let store = k.store(out, &[at], value);
    let end = k.end(store, &[l]);
    let kind = k.fail(end, vec![i32s(&[0; 4])]);
    assert!(matches!(kind, ErrorKind::Race { element: 0, .. }), "{kind}");
}

#[test]
fn an_effect_without_the_local_range_runs_once_for_a_group() {
    let mut k = Kernel::new();
    let out = k.param(0, DType::I32, &[2]);
    let (g, l) = (k.range(2, Global), k.range(8, Local));
    let zero = k.int(0);
    let (one, place) = (k.int(1), k.cast(l, DType::I32));
    let one = k.cast(one, DType::I32);
    let whole = k.atomic_add(out, &[zero], one);
    let (spot, g32) = (k.int(1), k.cast(g, DType::I32));
    let sum = k.op(Op::Add, &[place, g32]);
    let each = k.atomic_add(out, &[spot], sum);
    let group = k.op(Op::Group, &[whole, each]);
    let end = k.end(group, &[g, l]);
    // `whole` lacks g too: it happens once.
    assert_eq!(k.run(end, vec![i32s(&[0; 2])])[0], i32s(&[1, 64]));
}

#[test]
fn a_range_under_two_ends_is_two_ranges() {
    // for k: x[k] = k; then for k: y[k] = x[2 - k] + k.
    let mut k = Kernel::new();
    let [x, y] = [0, 1].map(|slot| k.param(slot, DType::I32, &[3]));
    let r = k.range(3, Loop);
    let value = k.cast(r, DType::I32);
    let first = k.store(x, &[r], value);
    let first = k.end(first, &[r]);
    let (after, two) = (k.after(x, &[first]), k.int(2));
    let mirrored = k.op(Op::Sub, &[two, r]);
    let read = k.load(after, &[mirrored]);
    let sum = k.op(Op::Add, &[read, value]);
    let second = k.store(y, &[r], sum);
    let second = k.end(second, &[r]);
    assert_eq!(k.run(second, vec![i32s(&[0; 3]), i32s(&[0; 3])])[1], i32s(&[2, 2, 2]));
    // Parallel ones do not wait for each other.
    let mut k = Kernel::new();
    let x = k.param(0, DType::I32, &[3]);
    let r = k.range(3, Global);
    let value = k.cast(r, DType::I32);
    let first = k.store(x, &[r], value);
    let first = k.end(first, &[r]);
    let after = k.after(x, &[first]);
    let second = k.store(after, &[r], value);
    let second = k.end(second, &[r]);
    let kind = k.fail(second, vec![i32s(&[0; 3])]);
    assert!(matches!(kind, ErrorKind::Race { .. }), "{kind}");
}

#[test]
fn a_shared_range_whose_bound_is_shared() {
    // for i in 0..3, j in 0..i: x[i, j] = 1; then the same again adds 1.
    let mut k = Kernel::new();
    let x = k.param(0, DType::I32, &[3, 3]);
    let i = k.range(3, Loop);
    let j = k.range_to(i, Loop);
    let one = k.int(1);
    let one = k.cast(one, DType::I32);
    let first = k.store(x, &[i, j], one);
    let first = k.end(first, &[i, j]);
    let after = k.after(x, &[first]);
    let old = k.load(after, &[i, j]);
    let sum = k.op(Op::Add, &[old, one]);
    let second = k.store(after, &[i, j], sum);
    let second = k.end(second, &[i, j]);
    assert_eq!(k.run(second, vec![i32s(&[0; 9])])[0], i32s(&[0, 0, 0, 2, 0, 0, 2, 2, 0]));
}

#[test]
fn a_load_that_is_only_an_arm_of_where_is_gated() {
    let mut k = Kernel::new();
    let out = k.param(0, DType::I32, &[6]);
    let x = k.param(1, DType::I32, &[3]);
    let y = k.param(2, DType::I32, &[3]);
    let i = k.range(6, Global);
    let three = k.int(3);
    let low = k.op(Op::CmpLt, &[i, three]);
    let high = k.op(Op::Sub, &[i, three]);
    let (x, y) = (k.load(x, &[i]), k.load(y, &[high]));
    let value = k.op(Op::Where, &[low, x, y]);
    let store = k.store(out, &[i], value);
    let end = k.end(store, &[i]);
    let data = vec![i32s(&[0; 6]), i32s(&[1, 2, 3]), i32s(&[4, 5, 6])];
    assert_eq!(k.run(end, data.clone())[0], i32s(&[1, 2, 3, 4, 5, 6]));
    // Used for something else too, it happens always.
    let sum = k.op(Op::Add, &[value, x]);
    let store = k.store(out, &[i], sum);
    let end = k.end(store, &[i]);
    assert!(matches!(k.fail(end, data), ErrorKind::OutOfBounds { .. }));
}

#[test]
fn a_gate_of_its_own_stays_when_where_adds_another() {
    // out[i] = i < 4 ? (i < 2 ? x[i] : 7) : 9, with x of length 2.
    let mut k = Kernel::new();
    let out = k.param(0, DType::F32, &[6]);
    let x = k.param(1, DType::F32, &[2]);
    let i = k.range(6, Loop);
    let (two, four, seven, nine) = (k.int(2), k.int(4), k.float(7.0), k.float(9.0));
    let (inner, outer) = (k.op(Op::CmpLt, &[i, two]), k.op(Op::CmpLt, &[i, four]));
    let address = k.at(x, &[i]);
    let load = k.op(Op::Load, &[address, inner, seven]);
    let value = k.op(Op::Where, &[outer, load, nine]);
    let store = k.store(out, &[i], value);
    let end = k.end(store, &[i]);
    let got = k.run(end, vec![f32s(&[0.0; 6]), f32s(&[1.0, 2.0])]);
    assert_eq!(got[0], f32s(&[1.0, 2.0, 7.0, 7.0, 9.0, 9.0]));
}

#[test]
fn a_condition_inside_a_loop_does_not_pull_a_load_into_it() {
    // old = x[0]; for k in 0..3: x[0] = k < 2 ? old : 5
    let mut k = Kernel::new();
    let x = k.param(0, DType::I32, &[1]);
    let r = k.range(3, Loop);
    let (zero, two) = (k.int(0), k.int(2));
    let (five, out) = (k.int(5), k.param(1, DType::I32, &[3]));
    let five = k.cast(five, DType::I32);
    let early = k.op(Op::CmpLt, &[r, two]);
    let old = k.load(x, &[zero]);
    let value = k.op(Op::Where, &[early, old, five]);
    let copy = k.store(out, &[r], value);
    let x_after = k.after(x, &[copy]);
    let store = k.store(x_after, &[zero], five);
    let end = k.end(store, &[r]);
    let got = k.run(end, vec![i32s(&[1]), i32s(&[0; 3])]);
    assert_eq!(got[1], i32s(&[1, 1, 5]));
}

#[test]
fn an_effect_outside_a_loop_without_turns_still_happens() {
    let mut k = Kernel::new();
    let x = k.param(0, DType::I32, &[2]);
    let (zero, one) = (k.int(0), k.int(1));
    let value = k.cast(one, DType::I32);
    for bound in [0, -5] {
        let r = k.range(bound, Loop);
        let before = k.store(x, &[zero], value);
        let inside = k.after(x, &[before, r]);
        let never = k.store(inside, &[one], value);
        let end = k.end(never, &[r]);
        assert_eq!(k.run(end, vec![i32s(&[0, 0])])[0], i32s(&[1, 0]));
    }
}

#[test]
fn a_waiver_that_is_false_is_reported_or_trusted() {
    let mut k = Kernel::new();
    let out = k.param(0, DType::I32, &[4]);
    let tokens = k.param(1, DType::I32, &[4]);
    let i = k.range(4, Global);
    let token = k.load(tokens, &[i]);
    let token = k.cast(token, DType::Index);
    let value = k.cast(i, DType::I32);
    let store = k.store_disjoint(out, &[token], value);
    let end = k.end(store, &[i]);
    let data = |tokens: [i32; 4]| vec![i32s(&[-1; 4]), i32s(&tokens)];
    assert_eq!(k.run(end, data([2, 0, 3, 1]))[0], i32s(&[1, 3, 0, 2]));
    let kind = k.fail(end, data([2, 0, 2, 1]));
    assert!(matches!(kind, ErrorKind::NotDisjoint { element: 2, .. }), "{kind}");
    let trust = Options { trust_waivers: true, ..Options::default() };
    let got = k.try_run(end, data([2, 0, 2, 1]), &trust).unwrap();
    let out: Vec<i32> = got[0].to_vec().expect("the dtype stays");
    assert!(out[2] == 0 || out[2] == 2);
}

#[test]
fn reads_and_atomics_in_any_number_conflict_with_a_later_write() {
    // All points read x[0], and the last of them writes it.
    for atomic in [false, true] {
        let mut k = Kernel::new();
        let x = k.param(0, DType::I32, &[1]);
        let out = k.param(1, DType::I32, &[100]);
        let i = k.range(100, Global);
        let (zero, last, one) = (k.int(0), k.int(99), k.int(1));
        let one = k.cast(one, DType::I32);
        let first = if atomic {
            k.atomic_add(x, &[zero], one)
        } else {
            let read = k.load(x, &[zero]);
            k.store(out, &[i], read)
        };
        let gate = k.op(Op::CmpEq, &[i, last]);
        let after = k.after(x, &[first]);
        let address = k.at(after, &[zero]);
        let store = k.op(Op::Store, &[address, one, gate]);
        let end = k.end(store, &[i]);
        for seed in 0..8 {
            let options = Options { seed, ..Options::default() };
            let data = vec![i32s(&[0]), i32s(&[0; 100])];
            // A read without i in its region happens once for all.
            match k.try_run(end, data, &options) {
                Err(e) => assert!(matches!(e.kind, ErrorKind::Race { .. }), "{e}"),
                Ok(_) => panic!("accepted"),
            }
        }
    }
}

#[test]
fn the_limit_of_steps_holds() {
    let mut k = Kernel::new();
    let x = k.param(0, DType::I32, &[1]);
    let r = k.range(i64::MAX, Loop);
    let zero = k.int(0);
    let value = k.cast(r, DType::I32);
    let store = k.store(x, &[zero], value);
    let end = k.end(store, &[r]);
    let options = Options { steps: Some(10_000), ..Options::default() };
    let error = k.try_run(end, vec![i32s(&[0])], &options).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Steps { limit: 10_000 });
}

#[test]
fn a_long_chain_needs_no_stack() {
    let mut k = Kernel::new();
    let x = k.param(0, DType::I32, &[4]);
    let r = k.range(4, Global);
    let one = k.int(1);
    let one = k.cast(one, DType::I32);
    let mut sum = k.load(x, &[r]);
    for _ in 0..200_000 {
        sum = k.op(Op::Add, &[sum, one]);
    }
    let store = k.store(x, &[r], sum);
    let end = k.end(store, &[r]);
    let got = k.try_run(end, vec![i32s(&[1, 2, 3, 4])], &Options::default()).unwrap();
    assert_eq!(got[0], i32s(&[200_001, 200_002, 200_003, 200_004]));
}

#[test]
fn an_index_that_leaves_i128_is_an_error() {
    let mut k = Kernel::new();
    let x = k.param(0, DType::I64, &[1]);
    let r = k.range(2, Global);
    let big = k.graph.index(i128::MAX);
    let zero = k.int(0);
    let sum = k.op(Op::Add, &[big, r]);
    let value = k.cast(sum, DType::I64);
    let gate = k.op(Op::CmpEq, &[r, zero]);
    let address = k.at(x, &[zero]);
    let store = k.op(Op::Store, &[address, value, gate]);
    let end = k.end(store, &[r]);
    let error = k.try_run(end, vec![vec![0i64].into()], &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("{sum}: overflows, at {r} = 1"));
}
