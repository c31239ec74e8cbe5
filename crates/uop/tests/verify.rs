//! Every rule of the verifier, broken by the smallest graph that breaks it alone; kernels that
//! break none; and graphs of garbage.

use std::time::{Duration, Instant};

use expect_test::{Expect, expect};
use proptest::prelude::*;
use uop::verify::{MAX_AXES, MAX_OPEN};
use uop::{
    Access, Arg, Axis, AxisType, Const, Custom, DType, Graph, Id, Node, Op, Param, Phase, Special,
    Variable, atomic, verify,
};

use AxisType::{Global, Local, Loop, Thread};
use DType::{Bool, F32, I32, I64, Index, Void};
use Phase::{Built, Lowered, Placed};

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
        let number = self.0.len() as u32;
        let arg = Arg::Custom { custom, number, access: Access::default() };
        self.node(Op::Custom, Void, src, arg)
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
    check(
        Built,
        |b| b.int(1),
        expect!["%0: the root is const, expected sink; close the kernel with sink"],
    );
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
        expect!["%1: add has 1 source, expected 2 sources"],
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
        expect!["%4: custom `atomic_add` has 1 source, expected 2 to 3 sources"],
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
        expect!["%1: neg has the number of a buffer as its arg, expected nothing"],
    );
    check(
        Built,
        |b| {
            let (x, zero, one) = (b.out(0, F32, &[1]), b.int(0), b.f32(1.0));
            let p = b.at(x, &[zero]);
            let store = b.op(Op::Store, &[p, one]);
            b.sink(store)
        },
        expect!["%5: store has nothing as its arg, expected an access"],
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
        expect![[r#"
            %1: the name "2x" of the param is not an identifier; use letters, digits and _
            %6: the name "my kernel" of the sink is not an identifier; use letters, digits and _"#]],
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
        expect!["%0: 2147483648 is not a value of i32"],
    );
    check(
        Built,
        |b| {
            let int = b.node(Op::Const, F32, &[], Arg::Const(Const::Int(1)));
            b.kernel(0, int)
        },
        expect!["%0: 1 is not a value of f32"],
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
        expect!["%2: param of index, which has no size in memory; use bool or a sized number"],
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
        expect!["%1: dimension 3 of a grid, expected 0, 1 or 2"],
    );
}

#[test]
fn atomics_exist_for_some_dtypes() {
    check(
        Built,
        |b| {
            let (x, zero, yes) = (b.out(0, Bool, &[1]), b.int(0), b.bool(true));
            let p = b.at(x, &[zero]);
            let add = b.custom(atomic::add(Bool), &[p, yes]);
            b.sink(add)
        },
        expect!["%5: no atomic_add of bool; use i32 or u32"],
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
        expect!["%4: load has assume_disjoint; put it on the store or custom that writes"],
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
        expect!["%1: cast to void, expected bool or a number"],
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
    check(
        Built,
        thread,
        expect!["%1: a thread range may occur in lowered graphs only; use a global or local range"],
    );
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
    check(
        Built,
        special,
        expect!["%1: special may occur in lowered graphs only; use a global or local range"],
    );
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
    check(
        Lowered,
        kernel,
        expect![[r#"
        %5: reshape in a lowered graph; lower it to index arithmetic
        %7: store is not marked inbounds in a lowered graph; prove it or gate it"#]],
    );
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
        expect![[r#"
            %5: source 0 of add is %4, an address, expected a value; load it
            %6: source 1 of add is %1, a buffer or a view, expected a value; index it and load that"#]],
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
        expect!["%2: source 0 of index is %0, a value, expected a buffer or a view"],
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
        expect![[r#"
            %3: source 0 of load is %1, a buffer or a view, expected an address; index it
            %4: source 0 of store is %1, a buffer or a view, expected an address; index it
            %5: source 0 of custom is %1, a buffer or a view, expected an address; index it"#]],
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
        expect!["%3: source 0 of reshape is %2, a value, expected a buffer or a view"],
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
        expect![[r#"
            %8: source 0 of end is %7, a buffer or a view, expected an effect; use the effect that it comes after
            %9: source 1 of end is %2, a value, expected a range
            %10: source 1 of group is %4, a value, expected an effect"#]],
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
        expect![[r#"
            %7: source 0 of after is %6, a sink, expected anything else
            %7: source 1 of after is %6, a sink, expected an effect, a load or a range
            %8: source 0 of sink is %7, a sink, expected an effect"#]],
    );
    check(
        Built,
        |b| {
            let one = b.f32(1.0);
            b.sink(one)
        },
        expect!["%1: source 0 of sink is %0, a value, expected an effect"],
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
        expect![[r#"
            %8: source 1 of after is %6, a buffer or a view, expected an effect, a load or a range
            %8: source 2 of after is %3, a value, expected an effect, a load or a range"#]],
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
        expect!["%8: source 1 of end is %5, a value, expected a range"],
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
        expect![[r#"
            %1: cmplt of i32, expected bool
            %2: add of i32, expected f32"#]],
    );
    check(
        Built,
        |b| {
            let (x, zero, one) = (b.out(0, F32, &[1]), b.int(0), b.f32(1.0));
            let p = b.at(x, &[zero]);
            let custom = atomic::add(F32);
            let arg = Arg::Custom { custom, number: 0, access: Access::default() };
            let old = b.node(Op::Custom, F32, &[p, one], arg);
            b.sink(old)
        },
        expect!["%5: custom of f32, expected void"],
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
        expect![[r#"
            %1: range of index has a bound of i32, expected index
            %2: param of f32 has a length of i32, expected index
            %3: reshape of f32 has a length of i32, expected index
            %6: index of f32 has an index of i32, expected index"#]],
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
        expect!["%1: special of index has an extent of i32, expected index"],
    );
}

#[test]
fn gates_alternatives_and_stored_values_have_their_dtype() {
    check(
        Built,
        |b| {
            let (x, y, zero, one) =
                (b.input(0, F32, &[1]), b.out(1, F32, &[1]), b.int(0), b.i32(1));
            let (p, q) = (b.at(x, &[zero]), b.at(y, &[zero]));
            let load = b.load(&[p, one, one]);
            let again = b.store(&[q, load, one]);
            let y = b.after(&[y, again]);
            let store = b.set(y, &[zero], one);
            b.sink(store)
        },
        expect![[r#"
            %7: load of f32 has a gate of i32, expected bool
            %7: load of f32 has an alternative of i32, expected f32
            %8: store of f32 has a gate of i32, expected bool
            %11: store of f32 has a value of i32, expected f32"#]],
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
        expect![[r#"
            %5: custom of i32 has a pointer of f32, expected i32
            %5: custom of i32 has a value of f32, expected i32
            %5: custom of i32 has a gate of f32, expected bool"#]],
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
        expect![[r#"
            %3: add of f32 and i32, expected equal dtypes; cast one
            %4: cmplt of i32 and f32, expected equal dtypes; cast one
            %5: and of bool and i32, expected equal dtypes; cast one
            %6: where of f32 and bool, expected equal dtypes; cast one
            %7: where of f32 has a condition of i32, expected bool"#]],
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
        expect![[r#"
            %3: neg of operands of bool, expected numbers
            %4: cmplt of operands of bool, expected numbers
            %6: and of operands of f32, expected bool or sized integers
            %7: or of operands of index, expected bool or sized integers"#]],
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
        expect!["%3: reshape has 65 axes, expected at most 64"],
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
        expect![[r#"
            %7: the length of axis 0 is %1, expected a constant or an expression of variables
            %7: the length of axis 2 is -2, expected 0 or more"#]],
    );
}

#[test]
fn shapes_fit_in_memory() {
    check(
        Built,
        |b| {
            let value = b.f32(1.0);
            let (x, y) =
                (b.out(0, F32, &[1 << 30, 1 << 31]), b.out(1, F32, &[1 << 100, 0, 1 << 100]));
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
        expect![[r#"
            %3: [1073741824, 2147483648] of f32 is more than 9223372036854775807 bytes
            %6: [1267650600228229401496703205376, 0, 1267650600228229401496703205376] of f32 is more than 9223372036854775807 bytes"#]],
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
        expect!["%5: reshape of [2, 3] (6 elements) to [2, 2] (4 elements), expected as many"],
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
        expect!["%4: the number of indices into %2 is 1, expected one per axis, 2"],
    );
}

#[test]
fn the_grid_is_constant() {
    for kind in [Global, Local] {
        let expect = match kind {
            Global => expect![
                "%6: the bound of axis 0 (global) is %5, expected a constant or an expression of variables"
            ],
            _ => expect!["%6: the bound of axis 0 (local) is %5, expected a constant"],
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
        expect!["%5: the extent of special is %4, expected a constant"],
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
        expect![[r#"
            %5: custom to param "p0" (%1), which is read-only; make it mutable
            %8: store to param "p0" (%1), which is read-only; make it mutable"#]],
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
        expect!["%5: atomic_add on buffer %1, which is private to a work-item; use load and store"],
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
        expect!["%3: axis 0 is also range %1; give each range its own number"],
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
        expect![[r#"
            %2: param has slot 1, expected 0; number them from 0 without a gap
            %3: slot 1 is also param %2; give each param its own slot
            %4: the name "x" is also that of param %2; give each param its own name
            %4: param has slot 4, expected 2; number them from 0 without a gap"#]],
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
        expect![
            "%3: buffer 0 is also %1, with another shape or dtype; give each buffer its own number"
        ],
    );
}

#[test]
fn custom_numbers_are_unique() {
    check(
        Built,
        |b| {
            let (x, zero) = (b.out(0, F32, &[1]), b.int(0));
            let (p, one, two) = (b.at(x, &[zero]), b.f32(1.0), b.f32(2.0));
            let add = |b: &mut Build, value: Id| {
                let custom = atomic::add(F32);
                let arg = Arg::Custom { custom, number: 0, access: Access::default() };
                b.node(Op::Custom, Void, &[p, value], arg)
            };
            let (first, second) = (add(b, one), add(b, two));
            let group = b.op(Op::Group, &[first, second]);
            b.sink(group)
        },
        expect!["%7: custom number 0 is also %6; give each its own number, since each counts"],
    );
}

#[test]
fn a_grid_has_one_extent_per_dimension() {
    check(
        Placed,
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
        expect!["%3: block.y is also %2, with another extent; a grid has one extent per dimension"],
    );
}

#[test]
fn lowered_addresses_are_flat() {
    let kernel = |b: &mut Build, indices: usize| {
        let (x, one) = (b.out(0, F32, &[4, 5]), b.f32(1.0));
        let zeros = vec![b.int(0); indices];
        let p = b.at(x, &zeros);
        let access = Access { inbounds: true, assume_disjoint: false };
        let store = b.node(Op::Store, Void, &[p, one], Arg::Access(access));
        b.sink(store)
    };
    check(Lowered, |b| kernel(b, 1), expect![[""]]);
    check(
        Lowered,
        |b| kernel(b, 2),
        expect!["%5: the number of indices into %2 is 2, expected one per axis, 1"],
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
        expect!["%131: more than 64 ranges are open; close some with end"],
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
        expect!["%6: range %1 (axis 0, loop) is listed twice; list it once"],
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
        expect![
            "%8: range %7 (axis 1, loop) is not open in %5; end what depends on it, or use after(%7)"
        ],
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
        expect![
            "%9: range %1 (axis 0, loop) occurs in the bound of range %4 (axis 1, loop), which is not inside it; close that one first, or list it later"
        ],
    );
    check(
        Built,
        |b| {
            let (store, i, j) = triangle(b);
            let end = b.end(&[store, i]);
            let end = b.end(&[end, j]);
            b.sink(end)
        },
        expect![[r#"
            %9: range %1 (axis 0, loop) occurs in the bound of range %4 (axis 1, loop), which is not inside it; close that one first, or list it later
            %11: range %1 (axis 0, loop) is still open at the sink; close it with end"#]],
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
        expect![
            "%7: range %2 (axis 1, global) is inside range %1 (axis 0, loop); close global and thread ranges last"
        ],
    );
    check(
        Built,
        |b| {
            let (store, i, g) = nest(b, Global);
            let end = b.end(&[store, i, g]);
            b.sink(end)
        },
        expect![
            "%7: range %2 (axis 1, global) is inside range %1 (axis 0, loop); close global and thread ranges last"
        ],
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
        expect!["%6: range %1 (axis 0, loop) is still open at the sink; close it with end"],
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
        expect![[r#"
            %5: store of f32 has a value of i32, expected f32
            %6: range %1 (axis 0, loop) is still open at the sink; close it with end"#]],
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
        expect![
            "%5: store lies under two ends of range %1 (axis 0, loop), %10 and %11; close it once, or store once for each"
        ],
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
        expect![
            "%5: store lies under two ends of range %1 (axis 0, loop), %15 and %16; close it once, or store once for each"
        ],
    );
}

#[test]
fn work_items_are_one_set_where_they_own_buffers() {
    let kernel = |b: &mut Build, private: bool| {
        let (i, one) = (b.range(0, Global, 4), b.f32(1.0));
        let four = b.int(4);
        let first = if private {
            b.node(Op::Buffer, F32, &[four], Arg::Buffer(0))
        } else {
            b.out(1, F32, &[4])
        };
        let second = b.out(0, F32, &[4]);
        let ends = [first, second].map(|x| {
            let store = b.set(x, &[i], one);
            b.end(&[store, i])
        });
        let group = b.op(Op::Group, &ends);
        b.sink(group)
    };
    check(
        Built,
        |b| kernel(b, true),
        expect![
            "%10: parallel range %1 (axis 0, global) is closed by %7 and %10, but a kernel with a buffer has one set of work-items; close it once, around a group"
        ],
    );
    check(Built, |b| kernel(b, false), expect![[""]]);
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
    check(
        Built,
        |b| kernel(b, false),
        expect![
            "%7: load of %4, which the kernel writes, is inside range %3 (axis 1, loop) but not inside range %1 (axis 0, loop), which encloses that; use the buffer after(%1)"
        ],
    );
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
    check(
        Built,
        |b| kernel(b, Loop),
        expect![
            "%8: custom of %4 is inside range %3 (axis 1, loop) but not inside range %1 (axis 0, loop), which encloses that; use the buffer after(%1)"
        ],
    );
    check(
        Built,
        |b| kernel(b, Global),
        expect![
            "%8: custom of %4 is inside range %3 (axis 1, loop) but not inside range %1 (axis 0, global), which encloses that; use the buffer after(%1)"
        ],
    );
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
    check(
        Built,
        |b| swap(b, false),
        expect![[r#"
        %8: store and load %5 touch one element, and neither comes after the other; order them with after
        %9: store and load %7 touch one element, and neither comes after the other; order them with after"#]],
    );
}

#[test]
fn writes_are_ordered_through_views_and_after() {
    check(
        Built,
        |b| {
            let (x, y, four, zero) =
                (b.out(0, F32, &[2, 2]), b.out(1, F32, &[1]), b.int(4), b.int(0));
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
        expect![[r#"
            %17: store and store %16 touch one element, and neither comes after the other; order them with after
            %18: custom and store %17 touch one element, and neither comes after the other; order them with after"#]],
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
    // 100 LOADs, one after the other, and three atomics that do not wait for the last LOAD.
    let kernel = |b: &mut Build, waits: usize| {
        let (x, y, zero) = (b.out(0, F32, &[1]), b.out(1, F32, &[1]), b.int(0));
        let p = b.at(x, &[zero]);
        let mut loads = vec![b.load(&[p])];
        for i in 1..100 {
            let late = b.after(&[p, loads[i - 1]]);
            loads.push(b.load(&[late]));
        }
        let late = b.after(&[p, loads[waits - 1]]);
        let mut effects = vec![b.set(y, &[zero], loads[99])];
        for i in 0..3 {
            let value = b.f32(i as f32);
            effects.push(b.custom(atomic::add(F32), &[late, value]));
        }
        let group = b.op(Op::Group, &effects);
        b.sink(group)
    };
    legal(|b| kernel(b, 100));
    check(
        Built,
        |b| kernel(b, 99),
        expect![[r#"
        %207: custom and load %203 touch one element, and neither comes after the other; order them with after
        %209: custom and load %203 touch one element, and neither comes after the other; order them with after
        %211: custom and load %203 touch one element, and neither comes after the other; order them with after"#]],
    );
}

// Legal kernels.

/// `table[clip(rows[i]), j] += grad[i, j]` by atomic add; i GLOBAL, j GLOBAL and LOCAL.
fn scatter(b: &mut Build) -> Id {
    let (table, grad, rows) =
        (b.out(0, F32, &[10, 8]), b.input(1, F32, &[100, 8]), b.input(2, I32, &[100]));
    let (i, outer, inner) = (b.range(0, Global, 100), b.range(1, Global, 2), b.range(2, Local, 4));
    let four = b.int(4);
    let j = b.op(Op::Mul, &[outer, four]);
    let j = b.op(Op::Add, &[j, inner]);
    let row = b.get(rows, &[i]);
    let (low, high) = (b.i32(0), b.i32(9));
    let row = b.op(Op::Max, &[row, low]);
    let row = b.op(Op::Min, &[row, high]);
    let row = b.cast(Index, row);
    let value = b.get(grad, &[i, j]);
    let p = b.at(table, &[row, j]);
    let add = b.custom(atomic::add(F32), &[p, value]);
    let end = b.end(&[add, i, outer, inner]);
    b.sink(end)
}

/// `y[i] = a * x[i] + y[i]` for i below 100, in blocks of 32.
fn saxpy(b: &mut Build) -> Id {
    let (y, x, a) = (b.out(0, F32, &[100]), b.input(1, F32, &[100]), b.input(2, F32, &[]));
    let (block, item, size) = (b.range(0, Global, 4), b.range(1, Local, 32), b.int(32));
    let i = b.op(Op::Mul, &[block, size]);
    let i = b.op(Op::Add, &[i, item]);
    let n = b.int(100);
    let gate = b.op(Op::CmpLt, &[i, n]);
    let (p, q, zero) = (b.at(x, &[i]), b.at(y, &[i]), b.f32(0.0));
    let (x, y) = (b.load(&[p, gate, zero]), b.load(&[q, gate]));
    let a = b.get(a, &[]);
    let product = b.op(Op::Mul, &[a, x]);
    let sum = b.op(Op::Add, &[product, y]);
    let store = b.store(&[q, sum, gate]);
    let end = b.end(&[store, block, item]);
    b.sink(end)
}

/// `out[i] = sum of x[i, k] over k`, with an accumulator of each work-item.
fn row_sum(b: &mut Build) -> Id {
    let (out, x) = (b.out(0, F32, &[8]), b.input(1, F32, &[8, 16]));
    let (i, k) = (b.range(0, Global, 8), b.range(1, Loop, 16));
    let (acc, zero, none) = (b.buffer(0, F32, &[]), b.f32(0.0), &[]);
    let clear = b.set(acc, none, zero);
    let acc = b.after(&[acc, clear]);
    let inside = b.after(&[acc, k]);
    let p = b.at(inside, none);
    let (old, term) = (b.load(&[p]), b.get(x, &[i, k]));
    let sum = b.op(Op::Add, &[old, term]);
    let step = b.store(&[p, sum]);
    let steps = b.end(&[step, k]);
    let acc = b.after(&[acc, steps]);
    let total = b.get(acc, none);
    let store = b.set(out, &[i], total);
    let end = b.end(&[store, i]);
    b.sink(end)
}

/// Two loops over one range: `y[i] = x[i]`, and then `z[i] = x[i] + y[3 - i]`.
fn two_loops(b: &mut Build) -> Id {
    let (y, z, x) = (b.out(0, I64, &[4]), b.out(1, I64, &[4]), b.input(2, I64, &[2, 2]));
    let (i, four, three) = (b.range(0, Loop, 4), b.int(4), b.int(3));
    let x = b.op(Op::Reshape, &[x, four]);
    let value = b.get(x, &[i]);
    let first = b.set(y, &[i], value);
    let first = b.end(&[first, i]);
    let y = b.after(&[y, first]);
    let back = b.op(Op::Sub, &[three, i]);
    let other = b.get(y, &[back]);
    let sum = b.op(Op::Add, &[value, other]);
    let second = b.set(z, &[i], sum);
    let second = b.end(&[second, i]);
    b.sink(second)
}

const KERNELS: [fn(&mut Build) -> Id; 4] = [scatter, saxpy, row_sum, two_loops];

#[test]
fn legal_kernels_pass() {
    for kernel in KERNELS {
        legal(kernel);
    }
}

#[test]
fn legal_kernels_pass_when_placed() {
    for kernel in [scatter, saxpy, row_sum] {
        check(
            Placed,
            |b| {
                let sink = kernel(b);
                b.0.rebuild(sink, |graph, _, mut node| {
                    if let Arg::Access(access) | Arg::Custom { access, .. } = &mut node.arg {
                        access.inbounds = true;
                    }
                    graph.intern(node)
                })
            },
            expect![[""]],
        );
    }
}

#[test]
fn only_what_the_sink_depends_on_is_checked() {
    legal(|b| {
        let one = b.f32(1.0);
        b.node(Op::Add, Void, &[one], Arg::Sink("".into()));
        b.kernel(0, one)
    });
}

// Garbage.

fn any_dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL.to_vec())
}

fn any_arg() -> impl Strategy<Value = Arg> {
    let number = 0..3u32;
    let access = (any::<bool>(), any::<bool>())
        .prop_map(|(inbounds, assume_disjoint)| Access { inbounds, assume_disjoint });
    let name = prop::sample::select(vec!["", "k", "a b", "9"]);
    prop_oneof![
        Just(Arg::None),
        prop_oneof![
            prop::sample::select(vec![-1, 0, 1, 4, 1 << 40, i128::MAX, i128::MIN])
                .prop_map(Const::Int),
            any::<bool>().prop_map(Const::Bool),
            any::<u32>().prop_map(Const::F32),
        ]
        .prop_map(Arg::Const),
        (number.clone(), name.clone(), any::<bool>()).prop_map(|(slot, name, mutable)| {
            Arg::Param(Box::new(Param { slot, name: name.into(), mutable }))
        }),
        number.clone().prop_map(Arg::Buffer),
        (number.clone(), prop::sample::select(AxisType::ALL.to_vec()))
            .prop_map(|(number, kind)| Arg::Range(Axis { number, kind })),
        (0..4u8).prop_map(|dimension| Arg::Special(Special::Item(dimension))),
        access.clone().prop_map(Arg::Access),
        (any_dtype(), number.clone(), access).prop_map(|(dtype, number, access)| Arg::Custom {
            custom: atomic::add(dtype),
            number,
            access
        }),
        name.prop_map(|name| Arg::Sink(name.into())),
    ]
}

/// An op, a dtype, sources (as shares of what there is) and an arg.
fn any_node() -> impl Strategy<Value = (Op, DType, Vec<prop::sample::Index>, Arg)> {
    let op = prop::sample::select(Op::ALL.to_vec());
    (op, any_dtype(), prop::collection::vec(any::<prop::sample::Index>(), 0..5), any_arg())
}

/// An arg that fits the op, so that garbage gets further.
fn fitting(op: Op, arg: Arg) -> Arg {
    match op {
        Op::Range => Arg::Range(match arg {
            Arg::Range(axis) => axis,
            _ => Axis { number: 7, kind: Loop },
        }),
        Op::Param | Op::Const | Op::Custom => arg,
        Op::Buffer => Arg::Buffer(0),
        Op::Special => Arg::Special(Special::Block(1)),
        Op::Variable => Arg::Variable(Box::new(Variable { name: "n".into(), lo: 0, hi: 9 })),
        Op::Load | Op::Store => Arg::Access(Access::default()),
        Op::Sink => Arg::Sink("k".into()),
        _ => Arg::None,
    }
}

/// Verifies in both phases; the errors are there in order and can be printed.
fn survive(graph: &Graph, sink: Id) {
    for phase in [Built, Placed, Lowered] {
        if let Err(errors) = verify(graph, sink, phase) {
            assert!(errors.errors.is_sorted_by_key(|error| error.node));
            assert_eq!(errors.to_string().lines().count(), errors.errors.len());
            assert!(!errors.errors.is_empty());
        }
    }
}

proptest! {
    #[test]
    fn garbage_is_survived(nodes in prop::collection::vec((any_node(), any::<bool>()), 1..60)) {
        let mut graph = Graph::new();
        let mut ids = Vec::new();
        for ((op, dtype, src, arg), fits) in nodes {
            let arg = if fits { fitting(op, arg) } else { arg };
            let src: Vec<Id> = match ids.is_empty() {
                true => Vec::new(),
                false => src.iter().map(|share| *share.get(&ids)).collect(),
            };
            ids.push(graph.intern(Node { op, dtype, src: src.into_iter().collect(), arg }));
        }
        survive(&graph, ids[ids.len() - 1]);
    }

    #[test]
    fn a_kernel_with_a_broken_node_is_survived(
        kernel in 0..KERNELS.len(),
        place in any::<prop::sample::Index>(),
        (op, dtype, src, arg) in any_node(),
        what in 0..4,
    ) {
        let mut b = Build::default();
        let sink = KERNELS[kernel](&mut b);
        let victim = *place.get(&b.0.reachable(sink));
        let mut before = Vec::new();
        let sink = b.0.rebuild(sink, |graph, old, mut node| {
            if old == victim {
                match what {
                    0 => node.op = op,
                    1 => node.dtype = dtype,
                    2 => node.arg = arg.clone(),
                    _ if before.is_empty() => node.src.clear(),
                    _ => node.src = src.iter().map(|share| *share.get(&before)).collect(),
                }
            }
            let new = graph.intern(node);
            before.push(new);
            new
        });
        survive(&b.0, sink);
    }
}

/// Time to verify what `build` makes.
fn time(build: impl FnOnce(&mut Build) -> Id) -> Duration {
    let mut b = Build::default();
    let sink = build(&mut b);
    let start = Instant::now();
    let _ = verify(&b.0, sink, Built);
    start.elapsed()
}

/// A bound that a quadratic walk of 100 000 nodes misses by far, even unoptimised.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_deep_graph_takes_linear_time() {
    let deep = time(|b| {
        let mut x = b.f32(1.0);
        for _ in 0..100_000 {
            x = b.op(Op::Neg, &[x]);
        }
        b.kernel(0, x)
    });
    assert!(deep < SOON, "{deep:?}");
}

#[test]
fn many_accesses_take_linear_time() {
    // 5 000 times `x[0] = x[0] + 1`, each after the other.
    let chain = time(|b| {
        let (mut x, zero, one) = (b.out(0, F32, &[1]), b.int(0), b.f32(1.0));
        let mut store = b.set(x, &[zero], one);
        for _ in 0..20_000 {
            x = b.after(&[x, store]);
            let p = b.at(x, &[zero]);
            let old = b.load(&[p]);
            let sum = b.op(Op::Add, &[old, one]);
            store = b.store(&[p, sum]);
        }
        b.sink(store)
    });
    assert!(chain < SOON, "{chain:?}");
}

#[test]
fn many_conflicts_take_little_time() {
    // Two STOREs to each of 12 500 elements, far apart and not ordered, and then LOADs and atomics
    // of one element, each of which conflicts with each of the others.
    let flat = time(|b| {
        let (x, zero) = (b.out(0, F32, &[25_000]), b.int(0));
        let mut stores = Vec::new();
        for round in 0..2 {
            for i in 0..12_500 {
                let (i, value) = (b.int(i), b.f32(round as f32));
                stores.push(b.set(x, &[i], value));
            }
        }
        let y = b.out(1, F32, &[1]);
        let mut p = b.at(y, &[zero]);
        let mut sum = b.load(&[p]);
        let q = p;
        for _ in 0..5_000 {
            p = b.after(&[p, sum]);
            sum = b.load(&[p]);
        }
        let z = b.out(2, F32, &[1]);
        stores.push(b.set(z, &[zero], sum));
        for i in 0..5_000 {
            let value = b.f32(i as f32);
            stores.push(b.custom(atomic::add(F32), &[q, value]));
        }
        let group = b.op(Op::Group, &stores);
        b.sink(group)
    });
    assert!(flat < SOON, "{flat:?}");
}

#[test]
fn deep_nests_take_little_time() {
    let nest = time(|b| {
        let ranges: Vec<Id> = (0..MAX_OPEN as u32).map(|i| b.range(i, Loop, 2)).collect();
        let mut sum = b.int(0);
        for i in 0..20_000 {
            sum = b.op(Op::Add, &[sum, ranges[i % ranges.len()]]);
        }
        let (x, zero, value) = (b.out(0, I32, &[1]), b.int(0), b.cast(I32, sum));
        let store = b.set(x, &[zero], value);
        let end = b.end(&[vec![store], ranges].concat());
        b.sink(end)
    });
    assert!(nest < SOON, "{nest:?}");
}

#[test]
fn many_ranges_take_little_time() {
    let wide = time(|b| {
        let (x, value) = (b.out(0, F32, &[1]), b.f32(1.0));
        let zero = b.int(0);
        let ranges: Vec<Id> = (0..50_000).map(|i| b.range(i, Loop, 2)).collect();
        let sum = ranges.iter().fold(zero, |sum, &r| b.op(Op::Add, &[sum, r]));
        let store = b.set(x, &[sum], value);
        let end = b.end(&[vec![store], ranges].concat());
        b.sink(end)
    });
    assert!(wide < SOON, "{wide:?}");
}
