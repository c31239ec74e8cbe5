//! Operations that a user declares: their text form, and what is wrong with them, where it is
//! reported.
#![allow(unsafe_code)] // Templates are trusted text.

use expect_test::{Expect, expect};
use uop::{
    AtomicOp, AxisType, DType, Declaration, Effect, Kernel, KernelGraph, Phase, parse, print,
    verify,
};

const F32: DType = DType::F32;

fn add() -> Declaration {
    let add = Declaration::new("add")
        .pointer(F32)
        .value(F32)
        .effect(Effect::Atomic(AtomicOp::Add))
        .body(|_, args| args[0].atomic_add(args[1]));
    // SAFETY: they do what is declared.
    unsafe {
        add.template("c", "__atomic_fetch_add({0}, {1}, __ATOMIC_RELAXED);").template(
            "hip",
            "__hip_atomic_fetch_add({0}, {1}, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);",
        )
    }
}

/// `y[i] += f(x[i])`, `f` declared as `square`.
fn kernel() -> KernelGraph {
    let square = Declaration::new("square")
        .value(F32)
        .result(F32)
        .effect(Effect::Pure)
        .body(|_, args| args[0] * args[0]);
    let k = Kernel::new();
    let y = k.param_mut("y", F32, 4);
    let x = k.param("x", F32, 4);
    let i = k.range(4, AxisType::Global);
    let value = k.custom(square, [x.at(i).load()]);
    k.custom(add(), [y.at(i), value]).end(i).sink("sum").unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_text_defines_what_it_uses() {
    let text = kernel().to_string();
    expect![[r#"
        uopc 1
        %0 = argument.f32 0
        %1 = mul %0, %0
        @square = define [f32] f32 pure body %1
        %2 = argument.f32 0 pointer
        %3 = argument.f32 1
        %4 = custom atomic_add.f32 %2, %3
        @add = define [pointer f32, f32] void atomic_add body %4 c "__atomic_fetch_add({0}, {1}, __ATOMIC_RELAXED);" hip "__hip_atomic_fetch_add({0}, {1}, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);"
        %5 = param.f32 [4] slot 0 mut "y"
        %6 = param.f32 [4] slot 1 "x"
        %7 = range 4 axis 0 global
        %8 = index %5 [%7]
        %9 = index %6 [%7]
        %10 = load %9
        %11 = custom @square %10
        %12 = custom @add %8, %11
        %13 = end %12, %7
        %14 = sink %13 "sum"
    "#]].assert_eq(&text);
    let parsed = parse(&text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(print(&parsed.graph, parsed.sink), text);
    verify(&parsed.graph, parsed.sink, Phase::Built).unwrap_or_else(|e| panic!("{e}"));
}

/// What the parser says of `definition`, with lines for its body before it.
#[track_caller]
fn refused(lines: &str, want: Expect) {
    let text = format!("uopc 1\n{lines}\n%g = group %g\n");
    let errors = parse(&text).expect_err("it is wrong");
    let first = errors.iter().next().expect("there is an error");
    let place = first.place;
    want.assert_eq(&format!("{}:{}: {}", place.line, place.column, first.message));
}

#[test]
fn the_parser_judges_definitions() {
    refused(
        "@f = define [f32] f32 pure c \"{1}\"",
        expect!["2:30: `{1}` is none of the 1 arguments, from `{0}` on; `{{` is a brace"],
    );
    refused(
        "@f = define [f32] f32 pure c \"{x}\"",
        expect!["2:30: `{x}` is none of the 1 arguments, from `{0}` on; `{{` is a brace"],
    );
    refused(
        "@f = define [f32] f32 pure c \"f({0})\" hip \"f({0\"",
        expect!["2:43: a single `{`, expected `{{` for a brace"],
    );
    refused(
        "@f = define [f32] f32 pure c \"f({0})}\"",
        expect!["2:30: a single `}`, expected `}}` for a brace"],
    );
    refused(
        "@f = define [f32] f32 pure cuda \"f({0})\"",
        expect!["2:28: unknown target `cuda`, expected `c` or `hip`"],
    );
    refused(
        "@f = define [f32] f32 pure c \"{0}\" c \"{0}\"",
        expect!["2:38: a second template for `c`"],
    );
    refused(
        "@f = define [f32] f32 maybe",
        expect!["2:23: unknown effect `maybe`, docs/ir.md lists all"],
    );
    refused(
        "@f = define [index] f32 pure",
        expect!["2:6: an argument or result of index, expected a type with a size"],
    );
    refused(
        "@f = define [f32] void pure",
        expect!["2:6: declared `pure`, but without a result; add one"],
    );
    refused(
        "@f = define [pointer f32] f32 pure",
        expect![
            "2:6: declared `pure`, but with a pointer; say what it does there: reads, writes, …"
        ],
    );
    refused(
        "@f = define [f32] f32 reads",
        expect!["2:6: declared `reads`, but without a pointer; add one, or make it pure"],
    );
    refused(
        "@f = define [pointer f32 x 0] f32 reads",
        expect!["2:6: a pointer to 0 elements, expected 1 or more"],
    );
    refused(
        "@f = define [pointer f16, f16] void atomic_add",
        expect!["2:6: declared `atomic_add`, which does not work on f16"],
    );
    refused(
        "@f = define [] i32 pure\n@f = define [] i32 pure",
        expect!["3:1: `@f` is defined twice, first on line 2"],
    );
    refused(
        "@1 = define [] i32 pure",
        expect!["2:1: expected an operation, `@` and an identifier, found `@1`"],
    );
    refused(
        "%x = custom @f",
        expect!["2:13: undefined operation `@f`; `define` it on a line above"],
    );
    refused(
        "@f = define [] i32 pure\n%x = custom @f 1",
        expect![
            "3:16: expected `if`, `inbounds`, `disjoint`, `number` or the end of the line, found `1`"
        ],
    );
    refused(
        "@f = define [f32] f32 pure\n%x = custom @f 1, 2",
        expect!["3:6: expected 1 operands of `@f`, found 2"],
    );
}

#[test]
fn the_parser_judges_bodies() {
    let value = "%x = argument.f32 0\n%y = mul %x, %x\n";
    refused(
        &format!("{value}@f = define [i32] f32 pure body %y"),
        expect!["2:6: in the body of `@f`: argument 0 is not a value of f32"],
    );
    refused(
        &format!("{value}@f = define [f32] i32 pure body %y"),
        expect!["3:6: in the body of `@f`: the body is a value of f32, declared is a value of i32"],
    );
    refused(
        &format!("{value}@f = define [f32, f32] f32 pure body %y"),
        expect!["3:6: in the body of `@f`: the body does not use argument 1"],
    );
    let body = "%x = argument.f32 0\n%y = argument.i32 1\n%z = mul %x, %y\n";
    refused(
        &format!("{body}@f = define [f32, i32] f32 pure body %z"),
        expect!["4:6: in the body of `@f`: mul of f32 and i32, expected equal dtypes; cast one"],
    );
    let body = "%p = argument.f32 0 pointer\n%v = load %p\n%s = store %p, %v\n";
    refused(
        &format!("{body}@f = define [pointer f32] void reads body %s"),
        expect!["5:6: declared `reads`, but without a result; add one"],
    );
    refused(
        &format!("{body}@f = define [pointer f32] f32 reads body %s"),
        expect!["4:6: in the body of `@f`: store in a body that is declared `reads`"],
    );
    refused(
        &format!("{body}@f = define [pointer f32] void writes body %v"),
        expect![
            "3:6: in the body of `@f`: the body is a value of f32, declared is an effect of void"
        ],
    );
    refused(
        &format!("{body}@f = define [pointer f32] f32 writes body %v"),
        expect!["3:6: in the body of `@f`: declared `writes`, but not so at argument 0"],
    );
    refused(
        &format!("{body}@f = define [pointer f32] void atomic_add body %s"),
        expect!["3:6: in the body of `@f`: load in a body that is declared `atomic_add`"],
    );
    refused(
        &format!("{body}@f = define [pointer f32 x 2] void writes body %s"),
        expect![
            "2:6: in the body of `@f`: a body touches one element of each pointer; for more, leave it out and add templates or a function"
        ],
    );
    let body = "%p = argument.f32 0 pointer\n%x = argument.f32 1\n%v = load %p\n%s = store %p, %x\n\
                %l = after %p, %s\n%w = load %l\n%z = add %v, %w\n";
    refused(
        &format!("{body}@f = define [pointer f32, f32] f32 writes body %z"),
        expect!["5:6: in the body of `@f`: nothing orders %v and this store; use `after`"],
    );
    refused(
        "%i = range 4 axis 0 loop\n@f = define [] i32 pure body %i",
        expect!["2:6: in the body of `@f`: range in a body that is declared `pure`"],
    );
    refused(
        "%p = argument.f32 0 pointer\n%v = mul %p, %p\n@f = define [pointer f32] f32 reads body %v",
        expect![
            "3:6: in the body of `@f`: source 0 of mul is %p, an address, expected a value; load it"
        ],
    );
}

/// What the builder says of a kernel that calls `declaration` on an address and a value, and on
/// a gate.
#[track_caller]
fn fails(declaration: Declaration, want: Expect) {
    let k = Kernel::new();
    let y = k.param_mut("y", F32, 4);
    let i = k.range(4, AxisType::Global);
    let effect = k.custom(declaration, [y.at(i), k.constant(F32, 1.0)]);
    let error = effect.end(i).sink("f").expect_err("it is wrong").to_string();
    let (place, message) = error.split_at(error.find(": ").unwrap_or(0) + 2);
    assert!(place.contains("declare.rs:"), "{error}");
    let mut message = message.lines().next().unwrap_or_default().to_string();
    // A literal in a body has a place of its own.
    if let Some(at) = message.find(file!()) {
        let end = at + message[at..].find(": ").expect("a message follows") + 2;
        message.replace_range(at..end, "");
    }
    want.assert_eq(&message);
}

#[test]
fn the_builder_judges_declarations() {
    let new = |name| Declaration::new(name).pointer(F32).value(F32).effect(Effect::Writes);
    fails(
        new("1f"),
        expect![[
            r#"%5: the declaration of `1f`: the name "1f" is not an identifier; use letters, digits and _"#
        ]],
    );
    fails(
        new("f").body(|_, args| args[0].load() + args[1]),
        expect![
            "%5: the declaration of `f`: node 3 of its body: the body is a value of f32, declared is an effect of void"
        ],
    );
    fails(
        new("f").body(|_, args| args[0].store(args[1].cast(DType::I32))),
        expect![
            "%5: the declaration of `f`: node 3 of its body: store of f32 has a value of i32, expected f32"
        ],
    );
    fails(
        new("f").body(|_, args| args[0].store(args[1] + 1_000_i64.pow(5))),
        expect![
            "%5: the declaration of `f`: 1000000000000000 is no value of f32; use a literal of that type, or cast"
        ],
    );
    fails(new("f").value(F32), expect!["%5: custom `@f` has 2 sources, expected 3 to 4 sources"]);
    fails(
        Declaration::new("f").pointer(DType::I32).value(F32).effect(Effect::Writes),
        expect!["%5: @f has a pointer of f32, expected i32"],
    );
    fails(
        Declaration::new("f").value(F32).value(F32).result(F32),
        expect!["%5: source 0 of custom is %3, an address, expected a value; load it"],
    );
    // SAFETY: nothing is compiled.
    fails(
        unsafe { new("f").template("cuda", "f({0}, {1})") },
        expect![[r#"%5: the declaration of `f`: a template for "cuda", expected one for c, hip"#]],
    );
    // SAFETY: as above.
    fails(
        unsafe { new("f").template("c", "f({2})") },
        expect![
            "%5: the declaration of `f`: in the template for c, `{2}` is none of the 2 arguments, from `{0}` on; `{{` is a brace"
        ],
    );
    // SAFETY: as above.
    fails(
        unsafe { new("f").template("c", "f(\n)") },
        expect![[
            r#"%5: the declaration of `f`: in the template for c, the control character `\n`"#
        ]],
    );
}

#[test]
fn one_name_is_one_declaration() {
    let k = Kernel::new();
    let y = k.param_mut("y", F32, 4);
    let one = Declaration::new("one").result(F32);
    let a = k.custom(one.clone(), []);
    let b = k.custom(one.clone().value(F32), [a]);
    let error = y.at(0).store(b).sink("f").expect_err("it is wrong").to_string();
    expect!["%3: `one` is declared otherwise than for %2; give each its own name"]
        .assert_eq(error.split_once(": ").map_or("", |(_, message)| message));
    // Equal ones are one, and what is pure is one node.
    let c = k.custom(one.clone(), []);
    assert_eq!(a.id(), c.id());
}

#[test]
fn arguments_belong_in_bodies() {
    let text = "uopc 1\n%0 = param.f32 [] slot 0 mut \"y\"\n%1 = index %0 []\n\
                %2 = argument.f32 0\n%3 = store %1, %2\n%4 = sink %3 \"f\"\n";
    let parsed = parse(text).unwrap_or_else(|e| panic!("{e}"));
    let errors = verify(&parsed.graph, parsed.sink, Phase::Built).expect_err("it is wrong");
    expect!["%2: argument in a kernel; it stands for one in the body of a declaration"]
        .assert_eq(&errors.to_string());
}

#[test]
fn handles_stay_in_their_kernel() {
    let other: &'static Kernel = Box::leak(Box::default());
    let foreign = other.constant(F32, 3.0) + other.constant(F32, 4.0);
    let square = Declaration::new("square").value(F32).result(F32).body(move |_, _| foreign);
    let message = square.check().expect_err("it is of another kernel").to_string();
    let want = expect!["custom mixes handles of two kernels; build a kernel from one `Kernel`"];
    want.assert_eq(message.split_once(": ").map_or("", |(_, message)| message));
}

#[test]
fn what_a_kernel_does_not_use_it_does_not_take() {
    let k = Kernel::new();
    let y = k.param_mut("y", F32, 4);
    k.param("x", F32, 4);
    k.variable("n", 0, 4);
    let i = k.range(4, AxisType::Global);
    let errors = y.at(i).store(1.0).end(i).sink("f").expect_err("two are left over").errors;
    let messages: Vec<String> = errors.iter().map(|error| error.kind.to_string()).collect();
    let want = [
        "the kernel does not use the param `x`; leave it out",
        "the kernel does not use the variable `n`; leave it out",
    ];
    assert_eq!(messages, want);
}

#[test]
fn literals_are_not_rounded_to_infinity() {
    let k = Kernel::new();
    let y = k.param_mut("y", DType::F16, 4);
    let i = k.range(4, AxisType::Global);
    let wide = k.constant(DType::F16, 65520) + k.constant(DType::F32, 1e39).cast(DType::F16);
    let value = wide + k.constant(DType::F16, 65519.9) + f32::INFINITY;
    let errors = y.at(i).store(value).end(i).sink("f").expect_err("two do not fit").errors;
    let messages: Vec<String> = errors.iter().map(|error| error.kind.to_string()).collect();
    let want = ["65520 is no value of f16", "1e39 is no value of f32"]
        .map(|what| format!("{what}; use a literal of that type, or cast"));
    assert_eq!(messages, want);
}
