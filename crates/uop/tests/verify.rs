//! Every rule of the verifier, broken by the smallest graph that breaks it alone; kernels that
//! break none; and graphs of garbage.

use std::time::{Duration, Instant};

use expect_test::{Expect, expect};
use proptest::prelude::*;
use uop::verify::{MAX_AXES, MAX_OPEN};
use uop::{
    Access, Arg, AtomicOp, Axis, AxisType, Const, Custom, DType, Graph, Id, Node, Op, Param, Phase,
    Special, atomic, verify,
};

use AxisType::{Global, Local, Loop, Thread};
use DType::{Bool, F32, I32, I64, Index, Void};
use Phase::{Built, Lowered};

/// A graph under construction, without any help that would keep it legal.
#[derive(Default)]
struct Build(Graph);

impl Build {
    fn node(&mut self, op: Op, dtype: DType, src: &[Id], arg: Arg) -> Id {
        self.0.intern(Node::new(op, dtype, src.iter().copied()).with_arg(arg))
    }

    fn int(&mut self, value: i128) -> Id {
        self.0.index(value)
    }

    fn f32(&mut self, value: f32) -> Id {
        self.0.constant(F32, value.into())
    }

    fn i32(&mut self, value: i128) -> Id {
        self.0.constant(I32, Const::Int(value))
    }

    fn bool(&mut self, value: bool) -> Id {
        self.0.constant(Bool, Const::Bool(value))
    }

    fn lengths(&mut self, shape: &[i128]) -> Vec<Id> {
        shape.iter().map(|&length| self.int(length)).collect()
    }

    fn param_node(&mut self, slot: u32, name: &str, mutable: bool, dtype: DType, src: &[Id]) -> Id {
        let param = Param { slot, name: name.into(), mutable };
        self.node(Op::Param, dtype, src, Arg::Param(Box::new(param)))
    }

    /// A PARAM that may be written.
    fn out(&mut self, slot: u32, dtype: DType, shape: &[i128]) -> Id {
        let src = self.lengths(shape);
        self.param_node(slot, &format!("p{slot}"), true, dtype, &src)
    }

    /// A read-only PARAM.
    fn input(&mut self, slot: u32, dtype: DType, shape: &[i128]) -> Id {
        let src = self.lengths(shape);
        self.param_node(slot, &format!("p{slot}"), false, dtype, &src)
    }

    fn buffer(&mut self, number: u32, dtype: DType, shape: &[i128]) -> Id {
        let src = self.lengths(shape);
        self.node(Op::Buffer, dtype, &src, Arg::Buffer(number))
    }

    fn range_of(&mut self, number: u32, kind: AxisType, bound: Id) -> Id {
        self.node(Op::Range, Index, &[bound], Arg::Range(Axis { number, kind }))
    }

    fn range(&mut self, number: u32, kind: AxisType, bound: i128) -> Id {
        let bound = self.int(bound);
        self.range_of(number, kind, bound)
    }

    fn op(&mut self, op: Op, src: &[Id]) -> Id {
        self.0.op(op, src)
    }

    fn cast(&mut self, dtype: DType, x: Id) -> Id {
        self.node(Op::Cast, dtype, &[x], Arg::None)
    }

    fn at(&mut self, buffer: Id, indices: &[Id]) -> Id {
        let src: Vec<Id> = [&[buffer], indices].concat();
        self.op(Op::Index, &src)
    }

    fn load(&mut self, src: &[Id]) -> Id {
        let dtype = self.0[src[0]].dtype;
        self.node(Op::Load, dtype, src, Arg::Access(Access::default()))
    }

    /// `buffer[indices]`.
    fn get(&mut self, buffer: Id, indices: &[Id]) -> Id {
        let address = self.at(buffer, indices);
        self.load(&[address])
    }

    fn store(&mut self, src: &[Id]) -> Id {
        self.node(Op::Store, Void, src, Arg::Access(Access::default()))
    }

    /// `buffer[indices] = value`.
    fn set(&mut self, buffer: Id, indices: &[Id], value: Id) -> Id {
        let address = self.at(buffer, indices);
        self.store(&[address, value])
    }

    fn custom(&mut self, custom: Custom, src: &[Id]) -> Id {
        self.node(Op::Custom, Void, src, Arg::Custom(custom, Access::default()))
    }

    fn after(&mut self, src: &[Id]) -> Id {
        self.op(Op::After, src)
    }

    fn end(&mut self, src: &[Id]) -> Id {
        self.op(Op::End, src)
    }

    fn sink(&mut self, effect: Id) -> Id {
        self.node(Op::Sink, Void, &[effect], Arg::Sink("k".into()))
    }

    /// `out[0] = value` as a kernel, with `out` in this slot.
    fn kernel(&mut self, slot: u32, value: Id) -> Id {
        let dtype = self.0[value].dtype;
        let out = self.out(slot, dtype, &[1]);
        let zero = self.int(0);
        let store = self.set(out, &[zero], value);
        self.sink(store)
    }
}

#[track_caller]
fn check(phase: Phase, build: impl FnOnce(&mut Build) -> Id, expect: Expect) {
    let mut b = Build::default();
    let sink = build(&mut b);
    let found = match verify(&b.0, sink, phase) {
        Ok(()) => String::new(),
        Err(errors) => errors.to_string(),
    };
    expect.assert_eq(&found);
}

#[track_caller]
fn legal(build: impl FnOnce(&mut Build) -> Id) {
    check(Built, build, expect![""]);
}

// Form.

#[test]
fn the_root_is_a_sink() {
    check(Built, |b| b.int(1), expect![[""]]);
}

#[test]
fn arity_is_that_of_the_table() {
    check(
        Built,
        |b| {
            let one = b.f32(1.0);
            let sum = b.node(Op::Add, F32, &[one], Arg::None);
            b.kernel(0, sum)
        },
        expect![[""]],
    );
}

#[test]
fn arity_is_that_of_the_contract() {
    check(
        Built,
        |b| {
            let (x, zero) = (b.out(0, F32, &[1]), b.int(0));
            let p = b.at(x, &[zero]);
            let add = b.custom(atomic::add(F32), &[p]);
            b.sink(add)
        },
        expect![[""]],
    );
}

#[test]
fn args_match_their_ops() {
    check(
        Built,
        |b| {
            let one = b.f32(1.0);
            let neg = b.node(Op::Neg, F32, &[one], Arg::Buffer(0));
            b.kernel(0, neg)
        },
        expect![[""]],
    );
    check(
        Built,
        |b| {
            let (x, zero, one) = (b.out(0, F32, &[1]), b.int(0), b.f32(1.0));
            let p = b.at(x, &[zero]);
            let store = b.op(Op::Store, &[p, one]);
            b.sink(store)
        },
        expect![[""]],
    );
}

#[test]
fn names_are_identifiers() {
    check(
        Built,
        |b| {
            let one = b.int(1);
            let x = b.param_node(0, "2x", true, F32, &[one]);
            let (zero, value) = (b.int(0), b.f32(1.0));
            let store = b.set(x, &[zero], value);
            b.node(Op::Sink, Void, &[store], Arg::Sink("my kernel".into()))
        },
        expect![[""]],
    );
}

#[test]
fn constants_are_values_of_their_dtype() {
    check(
        Built,
        |b| {
            let big = b.node(Op::Const, I32, &[], Arg::Const(Const::Int(1 << 31)));
            b.kernel(0, big)
        },
        expect![[""]],
    );
    check(
        Built,
        |b| {
            let int = b.node(Op::Const, F32, &[], Arg::Const(Const::Int(1)));
            b.kernel(0, int)
        },
        expect![[""]],
    );
}

#[test]
fn elements_have_a_size() {
    check(
        Built,
        |b| {
            let zero = b.int(0);
            b.kernel(0, zero)
        },
        expect![[""]],
    );
}

#[test]
fn dimensions_of_a_grid_are_three() {
    check(
        Lowered,
        |b| {
            let four = b.int(4);
            let item = b.node(Op::Special, Index, &[four], Arg::Special(Special::Item(3)));
            let access = Access { inbounds: true, assume_disjoint: false };
            let (x, one) = (b.out(0, F32, &[4]), b.f32(1.0));
            let p = b.at(x, &[item]);
            let store = b.node(Op::Store, Void, &[p, one], Arg::Access(access));
            b.sink(store)
        },
        expect![[""]],
    );
}

#[test]
fn atomics_exist_for_some_dtypes() {
    check(
        Built,
        |b| {
            let (x, zero, yes) = (b.out(0, Bool, &[1]), b.int(0), b.bool(true));
            let p = b.at(x, &[zero]);
            let add = b.custom(Custom::Atomic { op: AtomicOp::Add, dtype: Bool }, &[p, yes]);
            b.sink(add)
        },
        expect![[""]],
    );
}

#[test]
fn only_writes_are_assumed_disjoint() {
    check(
        Built,
        |b| {
            let (x, zero) = (b.input(0, F32, &[1]), b.int(0));
            let p = b.at(x, &[zero]);
            let access = Access { inbounds: false, assume_disjoint: true };
            let load = b.node(Op::Load, F32, &[p], Arg::Access(access));
            b.kernel(1, load)
        },
        expect![[""]],
    );
}

#[test]
fn a_cast_gives_a_value() {
    check(
        Built,
        |b| {
            let one = b.f32(1.0);
            let void = b.cast(Void, one);
            let back = b.cast(F32, void);
            b.kernel(0, back)
        },
        expect![[""]],
    );
}

// Phase.

#[test]
fn some_things_are_only_in_lowered_graphs() {
    let thread = |b: &mut Build| {
        let t = b.range(3, Thread, 4);
        let (x, one) = (b.out(0, F32, &[4]), b.f32(1.0));
        let p = b.at(x, &[t]);
        let access = Access { inbounds: true, assume_disjoint: false };
        let store = b.node(Op::Store, Void, &[p, one], Arg::Access(access));
        let end = b.end(&[store, t]);
        b.sink(end)
    };
    check(Built, thread, expect![[""]]);
    check(Lowered, thread, expect![[""]]);
    let special = |b: &mut Build| {
        let four = b.int(4);
        let item = b.node(Op::Special, Index, &[four], Arg::Special(Special::Block(0)));
        let (x, one) = (b.out(0, F32, &[4]), b.f32(1.0));
        let p = b.at(x, &[item]);
        let access = Access { inbounds: true, assume_disjoint: false };
        let store = b.node(Op::Store, Void, &[p, one], Arg::Access(access));
        b.sink(store)
    };
    check(Built, special, expect![[""]]);
    check(Lowered, special, expect![[""]]);
}

#[test]
fn lowered_graphs_have_no_views_and_are_in_bounds() {
    let kernel = |b: &mut Build| {
        let (x, one, zero, value) = (b.out(0, F32, &[4, 4]), b.int(16), b.int(0), b.f32(1.0));
        let flat = b.op(Op::Reshape, &[x, one]);
        let store = b.set(flat, &[zero], value);
        b.sink(store)
    };
    check(Built, kernel, expect![[""]]);
    check(Lowered, kernel, expect![[""]]);
}

// Operands.

#[test]
fn arithmetic_takes_values() {
    check(
        Built,
        |b| {
            let (x, zero, one) = (b.input(0, F32, &[1]), b.int(0), b.f32(1.0));
            let p = b.at(x, &[zero]);
            let sum = b.op(Op::Add, &[p, one]);
            let sum = b.op(Op::Add, &[sum, x]);
            b.kernel(1, sum)
        },
        expect![[""]],
    );
}

#[test]
fn an_index_is_into_a_buffer() {
    check(
        Built,
        |b| {
            let (one, zero) = (b.f32(1.0), b.int(0));
            let load = b.get(one, &[zero]);
            b.kernel(0, load)
        },
        expect![[""]],
    );
}

#[test]
fn accesses_take_addresses() {
    check(
        Built,
        |b| {
            let (x, one) = (b.out(0, F32, &[1]), b.f32(1.0));
            let load = b.load(&[x]);
            let store = b.store(&[x, load]);
            let add = b.custom(atomic::add(F32), &[x, one]);
            let both = b.op(Op::Group, &[store, add]);
            b.sink(both)
        },
        expect![[""]],
    );
}

#[test]
fn views_are_of_buffers() {
    check(
        Built,
        |b| {
            let (one, zero, value) = (b.int(1), b.int(0), b.f32(1.0));
            let view = b.op(Op::Reshape, &[value, one]);
            let load = b.get(view, &[zero]);
            b.kernel(0, load)
        },
        expect![[""]],
    );
}

#[test]
fn binders_take_effects_and_ranges() {
    check(
        Built,
        |b| {
            let (i, one) = (b.range(0, Loop, 4), b.int(1));
            let x = b.out(0, F32, &[4]);
            let value = b.f32(1.0);
            let store = b.set(x, &[i], value);
            let done = b.after(&[x, store]);
            let end = b.end(&[done, i]);
            let end = b.end(&[end, one]);
            let group = b.op(Op::Group, &[end, value]);
            b.sink(group)
        },
        expect![[""]],
    );
}

#[test]
fn a_sink_takes_an_effect_and_nothing_takes_a_sink() {
    check(
        Built,
        |b| {
            let one = b.f32(1.0);
            let inner = b.kernel(0, one);
            let after = b.after(&[inner, inner]);
            b.sink(after)
        },
        expect![[""]],
    );
    check(
        Built,
        |b| {
            let one = b.f32(1.0);
            b.sink(one)
        },
        expect![[""]],
    );
}

#[test]
fn after_waits_for_effects_loads_and_ranges() {
    check(
        Built,
        |b| {
            let (x, zero, value) = (b.out(0, F32, &[1]), b.int(0), b.f32(1.0));
            let store = b.set(x, &[zero], value);
            let x1 = b.after(&[x, store]);
            let y = b.out(1, F32, &[1]);
            let y = b.after(&[y, x1, value]);
            let store = b.set(y, &[zero], value);
            b.sink(store)
        },
        expect![[""]],
    );
}

#[test]
fn a_range_after_something_is_only_a_value() {
    check(
        Built,
        |b| {
            let (i, j) = (b.range(0, Loop, 4), b.range(1, Loop, 4));
            let (x, value) = (b.out(0, F32, &[4]), b.f32(1.0));
            let late = b.after(&[i, j]);
            let store = b.set(x, &[late], value);
            let end = b.end(&[store, late]);
            b.sink(end)
        },
        expect![[""]],
    );
}

#[test]
fn results_have_the_dtype_of_the_table() {
    check(
        Built,
        |b| {
            let one = b.f32(1.0);
            let less = b.node(Op::CmpLt, I32, &[one, one], Arg::None);
            let sum = b.node(Op::Add, I32, &[one, one], Arg::None);
            let sum = b.op(Op::Add, &[sum, less]);
            b.kernel(0, sum)
        },
        expect![[""]],
    );
    check(
        Built,
        |b| {
            let (x, zero, one) = (b.out(0, F32, &[1]), b.int(0), b.f32(1.0));
            let p = b.at(x, &[zero]);
            let arg = Arg::Custom(atomic::add(F32), Access::default());
            let old = b.node(Op::Custom, F32, &[p, one], arg);
            b.sink(old)
        },
        expect![[""]],
    );
}

#[test]
fn lengths_bounds_and_indices_are_index() {
    check(
        Built,
        |b| {
            let four = b.i32(4);
            let i = b.range_of(0, Loop, four);
            let x = b.param_node(0, "x", true, F32, &[four]);
            let x = b.op(Op::Reshape, &[x, four]);
            let (narrow, value) = (b.cast(I32, i), b.f32(1.0));
            let store = b.set(x, &[narrow], value);
            let end = b.end(&[store, i]);
            b.sink(end)
        },
        expect![[""]],
    );
    check(
        Lowered,
        |b| {
            let four = b.i32(4);
            let item = b.node(Op::Special, Index, &[four], Arg::Special(Special::Item(0)));
            let access = Access { inbounds: true, assume_disjoint: false };
            let (x, one) = (b.out(0, F32, &[4]), b.f32(1.0));
            let p = b.at(x, &[item]);
            let store = b.node(Op::Store, Void, &[p, one], Arg::Access(access));
            b.sink(store)
        },
        expect![[""]],
    );
}

#[test]
fn gates_alternatives_and_stored_values_have_their_dtype() {
    check(
        Built,
        |b| {
            let (x, y, zero, one) = (b.input(0, F32, &[1]), b.out(1, F32, &[1]), b.int(0), b.i32(1));
            let (p, q) = (b.at(x, &[zero]), b.at(y, &[zero]));
            let load = b.load(&[p, one, one]);
            let again = b.store(&[q, load, one]);
            let y = b.after(&[y, again]);
            let store = b.set(y, &[zero], one);
            b.sink(store)
        },
        expect![[""]],
    );
}

#[test]
fn arguments_of_a_custom_follow_its_contract() {
    check(
        Built,
        |b| {
            let (x, zero, one) = (b.out(0, F32, &[1]), b.int(0), b.f32(1.0));
            let p = b.at(x, &[zero]);
            let add = b.custom(atomic::add(I32), &[p, one, one]);
            b.sink(add)
        },
        expect![[""]],
    );
}

#[test]
fn operands_have_one_dtype() {
    check(
        Built,
        |b| {
            let (one, int, yes) = (b.f32(1.0), b.i32(1), b.bool(true));
            let sum = b.op(Op::Add, &[one, int]);
            let less = b.op(Op::CmpLt, &[int, sum]);
            let both = b.op(Op::And, &[less, int]);
            let pick = b.op(Op::Where, &[yes, sum, both]);
            let pick = b.op(Op::Where, &[int, pick, pick]);
            b.kernel(0, pick)
        },
        expect![[""]],
    );
}

#[test]
fn ops_work_on_their_dtypes() {
    check(
        Built,
        |b| {
            let (one, index, yes) = (b.f32(1.0), b.int(1), b.bool(true));
            let neg = b.op(Op::Neg, &[yes]);
            let less = b.op(Op::CmpLt, &[neg, yes]);
            let same = b.op(Op::CmpEq, &[less, yes]);
            let and = b.op(Op::And, &[one, one]);
            let or = b.op(Op::Or, &[index, index]);
            let or = b.cast(F32, or);
            let pick = b.op(Op::Where, &[same, and, or]);
            b.kernel(0, pick)
        },
        expect![[""]],
    );
}

// Shapes and memory.

#[test]
fn shapes_have_few_axes() {
    check(
        Built,
        |b| {
            let (x, one, value) = (b.out(0, F32, &[1]), b.int(1), b.f32(1.0));
            let view = b.op(Op::Reshape, &[vec![x], vec![one; MAX_AXES + 1]].concat());
            let zero = b.int(0);
            let store = b.set(view, &vec![zero; MAX_AXES + 1], value);
            b.sink(store)
        },
        expect![[""]],
    );
}

#[test]
fn lengths_are_constants_from_0() {
    check(
        Built,
        |b| {
            let (n, one, zero) = (b.range(0, Loop, 4), b.int(1), b.int(0));
            let (sum, minus, value) = (b.op(Op::Add, &[one, one]), b.int(-2), b.f32(1.0));
            let x = b.param_node(0, "x", true, F32, &[n, sum, minus]);
            let store = b.set(x, &[zero, zero, zero], value);
            let end = b.end(&[store, n]);
            b.sink(end)
        },
        expect![[""]],
    );
}

#[test]
fn shapes_fit_in_memory() {
    check(
        Built,
        |b| {
            let value = b.f32(1.0);
            let (x, y) = (b.out(0, F32, &[1 << 30, 1 << 31]), b.out(1, F32, &[1 << 100, 0, 1 << 100]));
            let (z, zero) = (b.out(2, Bool, &[(1 << 63) - 1]), b.int(0));
            let yes = b.bool(true);
            let stores = [
                b.set(x, &[zero, zero], value),
                b.set(y, &[zero, zero, zero], value),
                b.set(z, &[zero], yes),
            ];
            let group = b.op(Op::Group, &stores);
            b.sink(group)
        },
        expect![[""]],
    );
}

#[test]
fn views_keep_the_number_of_elements() {
    check(
        Built,
        |b| {
            let (x, two, value, zero) = (b.out(0, F32, &[2, 3]), b.int(2), b.f32(1.0), b.int(0));
            let view = b.op(Op::Reshape, &[x, two, two]);
            let store = b.set(view, &[zero, zero], value);
            b.sink(store)
        },
        expect![[""]],
    );
}

#[test]
fn there_is_one_index_per_axis() {
    check(
        Built,
        |b| {
            let (x, zero) = (b.input(0, F32, &[2, 3]), b.int(0));
            let load = b.get(x, &[zero]);
            b.kernel(1, load)
        },
        expect![[""]],
    );
}

#[test]
fn the_grid_is_constant() {
    for kind in [Global, Local] {
        let expect = match kind {
            Global => expect![[""]],
            _ => expect![[""]],
        };
        check(
            Built,
            |b| {
                let (x, zero) = (b.input(0, I32, &[1]), b.int(0));
                let n = b.get(x, &[zero]);
                let n = b.cast(Index, n);
                let i = b.range_of(0, kind, n);
                let (y, value) = (b.out(1, F32, &[4]), b.f32(1.0));
                let store = b.set(y, &[i], value);
                let end = b.end(&[store, i]);
                b.sink(end)
            },
            expect,
        );
    }
    check(
        Lowered,
        |b| {
            let (one, value, x) = (b.int(1), b.f32(1.0), b.out(0, F32, &[4]));
            let two = b.op(Op::Add, &[one, one]);
            let item = b.node(Op::Special, Index, &[two], Arg::Special(Special::Item(0)));
            let p = b.at(x, &[item]);
            let access = Access { inbounds: true, assume_disjoint: false };
            let store = b.node(Op::Store, Void, &[p, value], Arg::Access(access));
            b.sink(store)
        },
        expect![[""]],
    );
}

#[test]
fn nothing_writes_a_read_only_param() {
    check(
        Built,
        |b| {
            let (x, zero, value) = (b.input(0, F32, &[1]), b.int(0), b.f32(1.0));
            let add = {
                let p = b.at(x, &[zero]);
                b.custom(atomic::add(F32), &[p, value])
            };
            let x = b.after(&[x, add]);
            let store = b.set(x, &[zero], value);
            b.sink(store)
        },
        expect![[""]],
    );
}

#[test]
fn no_atomic_works_on_private_storage() {
    check(
        Built,
        |b| {
            let (x, zero, value) = (b.buffer(0, F32, &[1]), b.int(0), b.f32(1.0));
            let p = b.at(x, &[zero]);
            let add = b.custom(atomic::add(F32), &[p, value]);
            b.sink(add)
        },
        expect![[""]],
    );
}

// The graph as a whole.

#[test]
fn axis_numbers_are_unique() {
    check(
        Built,
        |b| {
            let (i, j) = (b.range(0, Loop, 4), b.range(0, Loop, 5));
            let (x, value) = (b.out(0, F32, &[4, 5]), b.f32(1.0));
            let store = b.set(x, &[i, j], value);
            let end = b.end(&[store, i, j]);
            b.sink(end)
        },
        expect![[""]],
    );
}

#[test]
fn params_are_numbered_and_named() {
    check(
        Built,
        |b| {
            let (one, zero) = (b.int(1), b.int(0));
            let x = b.param_node(1, "x", true, F32, &[one]);
            let y = b.param_node(1, "y", false, F32, &[one]);
            let z = b.param_node(4, "x", false, F32, &[one]);
            let (y, z) = (b.get(y, &[zero]), b.get(z, &[zero]));
            let sum = b.op(Op::Add, &[y, z]);
            let store = b.set(x, &[zero], sum);
            b.sink(store)
        },
        expect![[""]],
    );
}

#[test]
fn buffer_numbers_are_unique() {
    check(
        Built,
        |b| {
            let (x, y, zero) = (b.buffer(0, F32, &[1]), b.buffer(0, F32, &[2]), b.int(0));
            let value = b.f32(1.0);
            let (x, y) = (b.set(x, &[zero], value), b.set(y, &[zero], value));
            let group = b.op(Op::Group, &[x, y]);
            b.sink(group)
        },
        expect![[""]],
    );
}

#[test]
fn a_grid_has_one_extent_per_dimension() {
    check(
        Lowered,
        |b| {
            let (four, five) = (b.int(4), b.int(5));
            let i = b.node(Op::Special, Index, &[four], Arg::Special(Special::Block(1)));
            let j = b.node(Op::Special, Index, &[five], Arg::Special(Special::Block(1)));
            let access = Access { inbounds: true, assume_disjoint: false };
            let (x, one) = (b.out(0, F32, &[4, 5]), b.f32(1.0));
            let p = b.at(x, &[i, j]);
            let store = b.node(Op::Store, Void, &[p, one], Arg::Access(access));
            b.sink(store)
        },
        expect![[""]],
    );
}

// Ranges.

#[test]
fn nests_are_not_too_deep() {
    check(
        Built,
        |b| {
            let ranges: Vec<Id> = (0..=MAX_OPEN as u32).map(|i| b.range(i, Loop, 2)).collect();
            let zero = b.int(0);
            let sum = ranges.iter().fold(zero, |sum, &r| b.op(Op::Add, &[sum, r]));
            let sum = b.cast(I32, sum);
            b.kernel(0, sum)
        },
        expect![[""]],
    );
}

/// `out[i] = 1` with `i` a loop to 4; returns the STORE and the RANGE.
fn fill(b: &mut Build) -> (Id, Id) {
    let i = b.range(0, Loop, 4);
    let (x, value) = (b.out(0, F32, &[4]), b.f32(1.0));
    (b.set(x, &[i], value), i)
}

#[test]
fn ranges_are_closed_once() {
    check(
        Built,
        |b| {
            let (store, i) = fill(b);
            let end = b.end(&[store, i, i]);
            b.sink(end)
        },
        expect![[""]],
    );
}

#[test]
fn only_open_ranges_are_closed() {
    check(
        Built,
        |b| {
            let (store, i) = fill(b);
            let j = b.range(1, Loop, 2);
            let end = b.end(&[store, i, j]);
            b.sink(end)
        },
        expect![[""]],
    );
}

#[test]
fn bounds_are_closed_outside() {
    // `for i in 0..4 { for j in 0..i+1 { out[i, j] = 1 } }`, closed in a wrong order.
    let triangle = |b: &mut Build| {
        let (i, one) = (b.range(0, Loop, 4), b.int(1));
        let bound = b.op(Op::Add, &[i, one]);
        let j = b.range_of(1, Loop, bound);
        let (x, value) = (b.out(0, F32, &[4, 4]), b.f32(1.0));
        (b.set(x, &[i, j], value), i, j)
    };
    legal(|b| {
        let (store, i, j) = triangle(b);
        let end = b.end(&[store, i, j]);
        b.sink(end)
    });
    check(
        Built,
        |b| {
            let (store, i, j) = triangle(b);
            let end = b.end(&[store, j, i]);
            b.sink(end)
        },
        expect![[""]],
    );
    check(
        Built,
        |b| {
            let (store, i, j) = triangle(b);
            let end = b.end(&[store, i]);
            let end = b.end(&[end, j]);
            b.sink(end)
        },
        expect![[""]],
    );
}

#[test]
fn the_grid_is_outermost() {
    let nest = |b: &mut Build, kind: AxisType| {
        let (i, g) = (b.range(0, Loop, 4), b.range(1, kind, 4));
        let (x, value) = (b.out(0, F32, &[4, 4]), b.f32(1.0));
        (b.set(x, &[i, g], value), i, g)
    };
    check(
        Built,
        |b| {
            let (store, i, g) = nest(b, Global);
            let end = b.end(&[store, g]);
            let end = b.end(&[end, i]);
            b.sink(end)
        },
        expect![[""]],
    );
    check(
        Built,
        |b| {
            let (store, i, g) = nest(b, Global);
            let end = b.end(&[store, i, g]);
            b.sink(end)
        },
        expect![[""]],
    );
    legal(|b| {
        let (store, i, g) = nest(b, Local);
        let end = b.end(&[store, i, g]);
        b.sink(end)
    });
}

#[test]
fn ranges_are_closed_at_the_sink() {
    check(
        Built,
        |b| {
            let (store, _) = fill(b);
            b.sink(store)
        },
        expect![[""]],
    );
}

#[test]
fn other_errors_do_not_hide_an_open_range() {
    check(
        Built,
        |b| {
            let i = b.range(0, Loop, 4);
            let (x, value) = (b.out(0, F32, &[4]), b.i32(1));
            let store = b.set(x, &[i], value);
            b.sink(store)
        },
        expect![[""]],
    );
}

// Binders.

#[test]
fn an_effect_has_one_binder_per_range() {
    check(
        Built,
        |b| {
            let (store, i) = fill(b);
            let (y, value) = (b.out(1, F32, &[4]), b.f32(1.0));
            let other = b.set(y, &[i], value);
            let both = b.op(Op::Group, &[store, other]);
            let ends = [b.end(&[store, i]), b.end(&[both, i])];
            let group = b.op(Op::Group, &ends);
            b.sink(group)
        },
        expect![[""]],
    );
    // Through a LOAD, which may itself lie under both.
    check(
        Built,
        |b| {
            let (store, i) = fill(b);
            let x = b.out(0, F32, &[4]);
            let x = b.after(&[x, store]);
            let load = b.get(x, &[i]);
            let (y, z) = (b.out(1, F32, &[4]), b.out(2, F32, &[4]));
            let stores = [b.set(y, &[i], load), b.set(z, &[i], load)];
            let ends = stores.map(|store| b.end(&[store, i]));
            let group = b.op(Op::Group, &ends);
            b.sink(group)
        },
        expect![[""]],
    );
}

#[test]
fn a_load_of_what_is_written_is_inside_all_loops_around_it() {
    let kernel = |b: &mut Build, in_loop: bool| {
        let (k, i) = (b.range(0, Loop, 3), b.range(1, Loop, 4));
        let x = b.out(0, F32, &[4]);
        let inner = if in_loop { b.after(&[x, k]) } else { x };
        let (p, factor) = (b.at(inner, &[i]), b.f32(2.0));
        let load = b.load(&[p]);
        let double = b.op(Op::Mul, &[load, factor]);
        let inside = b.after(&[x, k]);
        let store = b.set(inside, &[i], double);
        let end = b.end(&[store, k, i]);
        b.sink(end)
    };
    legal(|b| kernel(b, true));
    check(Built, |b| kernel(b, false), expect![[""]]);
}

#[test]
fn an_effect_is_inside_all_loops_around_it() {
    // The add has a point for each i only, but would happen in each k.
    let kernel = |b: &mut Build, kind: AxisType| {
        let (k, i) = (b.range(0, kind, 3), b.range(1, Loop, 4));
        let (x, y, value) = (b.out(0, F32, &[4]), b.out(1, F32, &[3, 4]), b.f32(1.0));
        let p = b.at(x, &[i]);
        let add = b.custom(atomic::add(F32), &[p, value]);
        let store = b.set(y, &[k, i], value);
        let both = b.op(Op::Group, &[add, store]);
        let end = b.end(&[both, i]);
        let end = b.end(&[end, k]);
        b.sink(end)
    };
    check(Built, |b| kernel(b, Loop), expect![[""]]);
    check(Built, |b| kernel(b, Global), expect![[""]]);
    legal(|b| kernel(b, Local));
}

// Order.

#[test]
fn conflicting_accesses_are_ordered() {
    // A swap: each STORE must wait for the LOAD of its own element.
    let swap = |b: &mut Build, ordered: bool| {
        let (x, y, zero) = (b.out(0, F32, &[1]), b.out(1, F32, &[1]), b.int(0));
        let (old_x, old_y) = (b.get(x, &[zero]), b.get(y, &[zero]));
        let (to_x, to_y) = match ordered {
            true => (b.after(&[x, old_x]), b.after(&[y, old_y])),
            false => (x, y),
        };
        let stores = [b.set(to_x, &[zero], old_y), b.set(to_y, &[zero], old_x)];
        let group = b.op(Op::Group, &stores);
        b.sink(group)
    };
    legal(|b| swap(b, true));
    check(Built, |b| swap(b, false), expect![[""]]);
}

#[test]
fn writes_are_ordered_through_views_and_after() {
    check(
        Built,
        |b| {
            let (x, y, four, zero) = (b.out(0, F32, &[2, 2]), b.out(1, F32, &[1]), b.int(4), b.int(0));
            let (one, two) = (b.f32(1.0), b.f32(2.0));
            let other = b.set(y, &[zero], one);
            let late = b.after(&[x, other]);
            let views = [x, late].map(|x| b.op(Op::Reshape, &[x, four]));
            let p = b.at(views[1], &[zero]);
            let p = b.after(&[p, other]);
            let stores = [b.set(views[0], &[zero], one), b.store(&[p, two])];
            let add = b.at(views[0], &[zero]);
            let add = b.custom(atomic::add(F32), &[add, one]);
            let group = b.op(Op::Group, &[stores[0], stores[1], add]);
            b.sink(group)
        },
        expect![[""]],
    );
}

#[test]
fn what_may_not_happen_does_not_conflict() {
    // Gates, arms of WHERE, loops without points, waivers and atomics of one kind.
    legal(|b| {
        let (x, y, zero) = (b.out(0, F32, &[4]), b.input(1, Bool, &[1]), b.int(0));
        let (one, two, three) = (b.int(1), b.int(2), b.int(3));
        let (value, other) = (b.f32(1.0), b.f32(2.0));
        let yes = b.get(y, &[zero]);
        let no = b.bool(false);
        let no = b.op(Op::CmpEq, &[yes, no]);
        let p = b.at(x, &[zero]);
        let gated = [b.store(&[p, value, yes]), b.store(&[p, other, no])];
        let arm = b.get(x, &[one]);
        let arm = b.op(Op::Where, &[yes, arm, value]);
        let p = b.at(x, &[two]);
        let arm = [b.store(&[p, arm]), b.set(x, &[one], value)];
        let empty = b.range(0, Loop, 0);
        let nothing = b.after(&[p, empty]);
        let nothing = b.store(&[nothing, value]);
        let nothing = b.end(&[nothing, empty]);
        let p = b.at(x, &[three]);
        let adds = [value, other].map(|value| b.custom(atomic::add(F32), &[p, value]));
        let waived = Access { inbounds: false, assume_disjoint: true };
        let waived = b.node(Op::Store, Void, &[p, value], Arg::Access(waived));
        let all = [gated[0], gated[1], arm[0], arm[1], nothing, adds[0], adds[1], waived];
        let group = b.op(Op::Group, &all);
        b.sink(group)
    });
}

#[test]
fn every_access_of_a_run_is_ordered() {
    // 100 LOADs and then 100 atomics that wait for all of them but one.
    check(
        Built,
        |b| {
            let (x, zero) = (b.out(0, F32, &[1]), b.int(0));
            let p = b.at(x, &[zero]);
            let gates: Vec<Id> = (0..100)
                .map(|i| {
                    let i = b.int(i);
                    let p = b.after(&[p, i]);
                    p
                })
                .collect();
            let _ = gates;
            let ranges: Vec<Id> = (0..100).map(|i| b.range(i, Loop, 2)).collect();
            let loads: Vec<Id> = ranges
                .iter()
                .map(|&r| {
                    let p = b.after(&[p, r]);
                    b.load(&[p])
                })
                .collect();
            let y = b.out(1, F32, &[2]);
            let stores: Vec<Id> = loads
                .iter()
                .zip(&ranges)
                .map(|(&load, &r)| {
                    let store = b.set(y, &[r], load);
                    b.end(&[store, r])
                })
                .collect();
            let waits: Vec<Id> = stores.iter().copied().enumerate().filter(|&(i, _)| i != 70).map(|(_, s)| s).collect();
            let late = b.after(&[vec![p], waits].concat());
            let adds: Vec<Id> = (0..3)
                .map(|i| {
                    let value = b.f32(i as f32);
                    b.custom(atomic::add(F32), &[late, value])
                })
                .collect();
            let group = b.op(Op::Group, &[adds, vec![stores[70]]].concat());
            b.sink(group)
        },
        expect![[""]],
    );
}
