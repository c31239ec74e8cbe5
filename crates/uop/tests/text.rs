//! The text form, both ways: printing and parsing are inverse, errors say where and what, and no
//! input panics.

use std::fmt::Write;
use std::time::Instant;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use uop::parse::snippet;
use uop::{
    Access, Arg, Arity, Axis, AxisType, Const, DType, Graph, Id, Node, Op, Param, ResultType,
    Special, Variable, atomic, parse, print,
};

const EVERYTHING: &str = r#"uopc 1
%0 = param.f32 [12830, 256] slot 0 mut "grad_weight"
%1 = param.f32 [] slot 1 "a \"quoted\" \\ name; no comment"
%2 = reshape %0 [3284480]
%3 = range 16384 axis 0 global
%4 = index %2 [%3]
%5 = cmplt %3, -5
%6 = load %4 if %5
%7 = index %1 []
%8 = load %7
%9 = load %4 if %5 else %8 inbounds
%10 = const.f32 0x7fc00001
%11 = where %5, %9, %10
%12 = add %6, %11
%13 = store %4, %12 if %5 inbounds disjoint
%14 = custom atomic_add.f32 %4, %12 disjoint
%15 = custom atomic_add.f32 %4, %12 if %5 inbounds number 1
%16 = buffer.f32 [4] number 0
%17 = cast.i32 %3
%18 = cast.index %17
%19 = index %16 [%18]
%20 = index %16 [3]
%21 = const.f32 -0.0
%22 = const.i32 -7
%23 = cmpne %17, %22
%24 = store %20, %21 if %23
%25 = range 2 axis 1 loop
%26 = end %24, %25
%27 = after %19, %26
%28 = load %27 inbounds
%29 = const.bool true
%30 = store %4, %28 if %29
%31 = special 256 item.x
%32 = index %0 [%31, 5]
%33 = const.f32 inf
%34 = add %31, 340282366920938463463374607431768211
%35 = cmpeq %34, 0
%36 = store %32, %33 if %35
%37 = group %13, %14, %15, %30, %36
%38 = end %37, %3
%39 = sink %38 "kernel"
"#;

#[test]
fn canonical_text_stays() {
    let parsed = parse(EVERYTHING).unwrap_or_else(|e| panic!("{e}"));
    let text = print(&parsed.graph, parsed.sink);
    assert_eq!(text, EVERYTHING);
}

#[test]
fn loose_text_becomes_canonical() {
    let text = "\u{feff}
; a kernel
uopc 1 ; the version\r
\t%n   = const.index 007
%unused = add %n,%n
%9=param.f32[%n]slot 0 mut\"x\";comment
%zero = const.f32 0e5\r
%at = index %9 [-0]

%store = store %at , %zero disjoint inbounds
%_ = sink %store \"loose\" ; last
; end";
    let parsed = parse(text).unwrap_or_else(|e| panic!("{e}"));
    let want = expect![[r#"
        uopc 1
        %0 = param.f32 [7] slot 0 mut "x"
        %1 = index %0 [0]
        %2 = const.f32 0.0
        %3 = store %1, %2 inbounds disjoint
        %4 = sink %3 "loose"
    "#]];
    want.assert_eq(&print(&parsed.graph, parsed.sink));
}

#[test]
fn floats_read_as_written() {
    for (word, value) in [
        ("1", 1.0),
        ("-1.5e-3", -1.5e-3),
        ("1E2", 100.0),
        ("1e-60", 0.0),
        ("0x3f800000", 1.0),
        ("-inf", f32::NEG_INFINITY),
    ] {
        let text = format!("uopc 1\n%0 = const.f32 {word}\n%1 = sink %0 \"f\"");
        let parsed = parse(&text).unwrap_or_else(|e| panic!("{e}"));
        let n = parsed.graph[parsed.sink].src[0];
        assert_eq!(parsed.graph.as_const(n), Some(Const::from(value)), "{word}");
    }
}

#[test]
fn places_are_those_of_the_first_definition() {
    let text = "uopc 1\n%a = add 3, 4 ; seven\n  %b = add  3, 4\n%c = sink %b \"é\" ;";
    let parsed = parse(text).unwrap_or_else(|e| panic!("{e}"));
    let mut shown = String::new();
    for n in parsed.graph.reachable(parsed.sink) {
        let place = parsed.places.get(n).expect("parsing knows every node");
        let snippet = snippet(text, place.line, place.column, place.length);
        writeln!(shown, "{}\n{snippet}", parsed.graph[n].op).expect("a string takes any text");
    }
    expect![[r#"
        const
          2 | %a = add 3, 4 ; seven
            |          ^
        const
          2 | %a = add 3, 4 ; seven
            |             ^
        add
          2 | %a = add 3, 4 ; seven
            |      ^^^^^^^^
        sink
          4 | %c = sink %b "é" ;
            |      ^^^^^^^^^^^
    "#]]
    .assert_eq(&shown);
    let mut graph = parsed.graph;
    let new = graph.index(99);
    assert_eq!(parsed.places.get(new), None);
}

#[test]
fn malformed_graphs_are_printed_and_refused() {
    let mut g = Graph::new();
    let x = g.index(1);
    let add = g.intern(Node::new(Op::Add, DType::F32, [x]).with_arg(Arg::Buffer(3)));
    let value = g.constant(DType::I32, Const::Bool(true));
    let load = g.intern(Node::new(Op::Load, DType::Index, [x]));
    let inner = g.intern(Node::new(Op::Sink, DType::Void, [add]).with_arg(Arg::Sink("a".into())));
    let name = "line\nfeed \u{1b}[31m".into();
    let sink = Node::new(Op::Sink, DType::Void, [add, value, load, inner]);
    let sink = g.intern(sink.with_arg(Arg::Sink(name)));
    let text = print(&g, sink);
    expect![[r#"
        uopc 1
        %0 = malformed add.f32 1 Buffer(3)
        %1 = malformed const.i32 Const(Bool(true))
        %2 = malformed load.index 1
        %3 = malformed sink.void %0 Sink("a")
        %4 = malformed sink.void %0, %1, %2, %3 Sink("line\nfeed \u{1b}[31m")
    "#]]
    .assert_eq(&text);
    let errors = parse(&text).expect_err("it is malformed");
    assert_eq!(errors.iter().count(), 5);
}

/// The errors of `lines` below a version line.
#[track_caller]
fn check(lines: &str, want: Expect) {
    let errors = parse(&format!("uopc 1\n{lines}")).expect_err("the text is wrong");
    want.assert_eq(&format!("{errors}\n"));
}

#[test]
fn errors_of_the_version_line() {
    for (text, want) in [
        (
            "",
            expect![[r#"
                error: 1:1: expected the version line `uopc 1`, found the end of the text
                  1 |
                    | ^"#]],
        ),
        (
            "; nothing but\n; comments",
            expect![[r#"
                error: 1:1: expected the version line `uopc 1`, found the end of the text
                  1 |
                    | ^"#]],
        ),
        (
            "; k\n\n%0 = add 1, 2\n%1 = sink %0 \"k\"",
            expect![[r#"
                error: 3:1: expected the version line `uopc 1`, found `%0`; it comes first
                  3 | %0 = add 1, 2
                    | ^^"#]],
        ),
        (
            "uopc 2\n%0 = new syntax",
            expect![[r#"
                error: 1:6: unknown version `2`, expected the version line `uopc 1`
                  1 | uopc 2
                    |      ^"#]],
        ),
        (
            "uopc",
            expect![[r#"
                error: 1:5: expected a version number, found the end of the line
                  1 | uopc
                    |     ^"#]],
        ),
        (
            "uopc 1 beta",
            expect![[r#"
                error: 1:8: expected the end of the line, found `beta`
                  1 | uopc 1 beta
                    |        ^^^^"#]],
        ),
        (
            "uopc 1 ; and no node",
            expect![[r#"
                error: 1:7: expected a `sink` line, found the end of the text
                  1 | uopc 1 ; and no node
                    |       ^"#]],
        ),
    ] {
        want.assert_eq(&parse(text).expect_err("the text is wrong").to_string());
    }
}

#[test]
fn errors_of_words() {
    check(
        r#"%0 = stor 1, 2
%1 = laod 1
%2 = frobnicate 1
%3 = const.f23 1.0
%4 = const.quadruple 1.0
%5 = const 1.0
%6 = add.i32 1, 2
%7 = range 4 axis 0 globl
%8 = range 4 axis 0 warp
%9 = special 4 item.w
%10 = custom atomic_sub.f32 1, 2
%11 = custom atomic_add 1, 2
%12 = custom atomic_add.bool 1, 2
%13 = sink 1 "k""#,
        expect![[r#"
            error: 2:6: unknown op `stor`, did you mean `store`?
              2 | %0 = stor 1, 2
                |      ^^^^
            error: 3:6: unknown op `laod`, did you mean `load`?
              3 | %1 = laod 1
                |      ^^^^
            error: 4:6: unknown op `frobnicate`, docs/ir.md lists all
              4 | %2 = frobnicate 1
                |      ^^^^^^^^^^
            error: 5:12: unknown dtype `f23`, did you mean `f32`?
              5 | %3 = const.f23 1.0
                |            ^^^
            error: 6:12: unknown dtype `quadruple`, docs/ir.md lists all
              6 | %4 = const.quadruple 1.0
                |            ^^^^^^^^^
            error: 7:6: expected `const` with a dtype, such as `const.f32`
              7 | %5 = const 1.0
                |      ^^^^^
            error: 8:6: expected `add` without a dtype, found `add.i32`
              8 | %6 = add.i32 1, 2
                |      ^^^^^^^
            error: 9:21: unknown axis type `globl`, did you mean `global`?
              9 | %7 = range 4 axis 0 globl
                |                     ^^^^^
            error: 10:21: unknown axis type `warp`, expected `global`, `thread`, `local` or `loop`
              10 | %8 = range 4 axis 0 warp
                 |                     ^^^^
            error: 11:16: unknown hardware index `item.w`, did you mean `item.x`, `item.y` or `item.z`?
              11 | %9 = special 4 item.w
                 |                ^^^^^^
            error: 12:14: unknown operation `atomic_sub`, did you mean `atomic_add`, `atomic_max` or `atomic_min`?
              12 | %10 = custom atomic_sub.f32 1, 2
                 |              ^^^^^^^^^^
            error: 13:14: expected an operation with a dtype, such as `atomic_add.i32`
              13 | %11 = custom atomic_add 1, 2
                 |              ^^^^^^^^^^
            error: 14:25: no `atomic_add` of `bool`; use i32 or u32
              14 | %12 = custom atomic_add.bool 1, 2
                 |                         ^^^^
        "#]],
    );
}

#[test]
fn errors_of_form() {
    check(
        r#"%0 = add 1
%1 = cast.i32
%2 = neg 1, 2
%3 = add 1, 2 3
%4 = add 1, x
%5 add 1, 2
add 1, 2
%a.b = add 1, 2
%6 = reshape 1 [2, ]
%7 = param.f32 [2 3] slot 0 "x"
%8 = param.f32 [2] slot 4294967296 "x"
%9 = param.f32 [2] slot 0 mutable "x"
%10 = param.f32 [2] slot 0 "x
%11 = param.f32 [2] slot 0 "\n"
%12 = param.f32 [2] slot 0 "	"
%13 = load 1, 2
%14 = load 1 else 2
%15 = load 1 disjoint
%16 = load 1 inbounds inbounds
%17 = store 1 if 2
%18 = custom atomic_add.f32 1, 2, 3
%19 = add 1, $
%20 = add 1, 1.5
%21 = after 1
%22 = sink 1"#,
        expect![[r#"
            error: 2:6: expected 2 sources of `add`, found 1
              2 | %0 = add 1
                |      ^^^
            error: 3:6: expected 1 source of `cast`, found 0
              3 | %1 = cast.i32
                |      ^^^^^^^^
            error: 4:6: expected 1 source of `neg`, found 2
              4 | %2 = neg 1, 2
                |      ^^^
            error: 5:15: expected `,` or the end of the line, found `3`
              5 | %3 = add 1, 2 3
                |               ^
            error: 6:13: expected a `%name` or an integer, found `x`
              6 | %4 = add 1, x
                |             ^
            error: 7:4: expected `=`, found `add`
              7 | %5 add 1, 2
                |    ^^^
            error: 8:1: expected a definition, `%name = …`, found `add`
              8 | add 1, 2
                | ^^^
            error: 9:1: expected a name, `%` and a number or an identifier, found `%a.b`
              9 | %a.b = add 1, 2
                | ^^^^
            error: 10:20: expected a `%name` or an integer, found `]`
              10 | %6 = reshape 1 [2, ]
                 |                    ^
            error: 11:19: expected `,` or `]`, found `3`
              11 | %7 = param.f32 [2 3] slot 0 "x"
                 |                   ^
            error: 12:25: expected a number from 0 to 4294967295, found `4294967296`
              12 | %8 = param.f32 [2] slot 4294967296 "x"
                 |                         ^^^^^^^^^^
            error: 13:27: expected `mut` or a name in double quotes, found `mutable`
              13 | %9 = param.f32 [2] slot 0 mutable "x"
                 |                           ^^^^^^^
            error: 14:28: expected `"` at the end of the name, found the end of the line
              14 | %10 = param.f32 [2] slot 0 "x
                 |                            ^^
            error: 15:28: unknown escape `\n`, expected `\"` or `\\`
              15 | %11 = param.f32 [2] slot 0 "\n"
                 |                            ^^^^
            error: 16:28: a name holds the control character `\t`
              16 | %12 = param.f32 [2] slot 0 "	"
                 |                            ^^^
            error: 17:13: expected `if`, `inbounds` or the end of the line, found `,`
              17 | %13 = load 1, 2
                 |             ^
            error: 18:14: expected `if`, `inbounds` or the end of the line, found `else`
              18 | %14 = load 1 else 2
                 |              ^^^^
            error: 19:14: expected `if`, `inbounds` or the end of the line, found `disjoint`
              19 | %15 = load 1 disjoint
                 |              ^^^^^^^^
            error: 20:23: expected the end of the line, found `inbounds`
              20 | %16 = load 1 inbounds inbounds
                 |                       ^^^^^^^^
            error: 21:15: expected `,`, found `if`
              21 | %17 = store 1 if 2
                 |               ^^
            error: 22:7: expected 2 operands of `atomic_add`, found 3
              22 | %18 = custom atomic_add.f32 1, 2, 3
                 |       ^^^^^^
            error: 23:14: unexpected character `$`
              23 | %19 = add 1, $
                 |              ^
            error: 24:14: expected a `%name` or an integer, found `1.5`; a constant of another dtype has a line of its own
              24 | %20 = add 1, 1.5
                 |              ^^^
            error: 25:7: expected at least 2 sources of `after`, found 1
              25 | %21 = after 1
                 |       ^^^^^
            error: 26:13: expected a name in double quotes, found the end of the line
              26 | %22 = sink 1
                 |             ^
        "#]],
    );
}

#[test]
fn errors_of_constants() {
    check(
        r#"%0 = const.i32 2147483648
%1 = const.i64 -9223372036854775809
%2 = const.i32 1.5
%3 = const.bool 1
%4 = const.f32 nan
%5 = const.f32 1e39
%6 = const.f32 0x7fc
%7 = const.f32 .5
%8 = const.void 0
%9 = const.index 170141183460469231731687303715884105728
%10 = add 1, -170141183460469231731687303715884105729
%11 = const.f32 "1.0"
%12 = sink 1 "k""#,
        expect![[r#"
            error: 2:16: `2147483648` does not fit `i32`, which is -2147483648 to 2147483647
              2 | %0 = const.i32 2147483648
                |                ^^^^^^^^^^
            error: 3:16: `-9223372036854775809` does not fit `i64`, which is -9223372036854775808 to 9223372036854775807
              3 | %1 = const.i64 -9223372036854775809
                |                ^^^^^^^^^^^^^^^^^^^^
            error: 4:16: expected an integer, found `1.5`
              4 | %2 = const.i32 1.5
                |                ^^^
            error: 5:17: expected `true` or `false`, found `1`
              5 | %3 = const.bool 1
                |                 ^
            error: 6:16: expected a decimal, found `nan`; write a NaN by its bits, such as `0x7fc00000`
              6 | %4 = const.f32 nan
                |                ^^^
            error: 7:16: `1e39` does not fit `f32`, write `inf` or `-inf`
              7 | %5 = const.f32 1e39
                |                ^^^^
            error: 8:16: expected the bits of an `f32`, `0x` and 8 hexadecimal digits, found `0x7fc`
              8 | %6 = const.f32 0x7fc
                |                ^^^^^
            error: 9:16: expected a decimal, `inf`, `-inf` or the bits `0x…` of an `f32`, found `.5`
              9 | %7 = const.f32 .5
                |                ^^
            error: 10:17: `void` has no constants
              10 | %8 = const.void 0
                 |                 ^
            error: 11:18: the integer `170141183460469231731687303715884105728` does not fit 128 bits
              11 | %9 = const.index 170141183460469231731687303715884105728
                 |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            error: 12:14: the integer `-170141183460469231731687303715884105729` does not fit 128 bits
              12 | %10 = add 1, -170141183460469231731687303715884105729
                 |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            error: 13:17: expected a value, found `"1.0"`
              13 | %11 = const.f32 "1.0"
                 |                 ^^^^^
        "#]],
    );
}

#[test]
fn errors_of_names_do_not_cascade() {
    check(
        r#"%0 = add 1, %nowhere
%1 = add %0, %0
%2 = add %1, %later
%later = add 1, 2
%later = add 3, 4
%3 = add %3, %later
%4 = add %later, 1, 2
%5 = end %4, %0
%6 = sink %5 "k""#,
        expect![[r#"
            error: 2:13: undefined name `%nowhere`
              2 | %0 = add 1, %nowhere
                |             ^^^^^^^^
            error: 4:14: `%later` is used before its definition, which is on line 5
              4 | %2 = add %1, %later
                |              ^^^^^^
            error: 6:1: `%later` is defined twice, first on line 5
              6 | %later = add 3, 4
                | ^^^^^^
            error: 7:10: `%3` is used in its own definition
              7 | %3 = add %3, %later
                |          ^^
            error: 8:6: expected 2 sources of `add`, found 3
              8 | %4 = add %later, 1, 2
                |      ^^^
        "#]],
    );
}

#[test]
fn errors_of_the_sink() {
    check(
        "%0 = add 1, 2\n\n; no sink",
        expect![[r#"
            error: 2:14: expected a `sink` line, found the end of the text
              2 | %0 = add 1, 2
                |              ^
        "#]],
    );
    check(
        "%0 = sink 1 \"a\"\n%1 = add 1, 2\n%2 = add 3, 4\n%3 = sink 1 \"b\"",
        expect![[r#"
            error: 3:6: expected nothing after the `sink` of line 2, found `add`; the `sink` line is the last
              3 | %1 = add 1, 2
                |      ^^^
            error: 5:6: expected one `sink`, found another; the first is on line 2
              5 | %3 = sink 1 "b"
                |      ^^^^
        "#]],
    );
}

#[test]
fn snippets_are_safe_to_show() {
    let long = format!("{}x{}", "a".repeat(500), "b".repeat(500));
    let shown = [
        snippet("a\tb\tc\r\n", 1, 5, 9),
        snippet("\u{1b}[31m é x", 1, 8, 1),
        snippet(&long, 1, 501, 1),
        snippet(&long, 1, 1, 5000),
        snippet(&long, 1, 1001, 1),
        snippet("ab", 1, 0, 0),
        snippet("ab", 7, 9, 9),
        snippet("ab", 0, usize::MAX, usize::MAX),
        snippet(&long, usize::MAX, usize::MAX, usize::MAX),
    ]
    .join("\n");
    // The first line keeps the margin of the others.
    let shown = format!("Snippets:\n{shown}\n");
    expect![[r#"
        Snippets:
          1 | a	b	c
            |  	 	^
          1 | �[31m é x
            |        ^
          1 | …aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaxbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb…
            |                                          ^
          1 | aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          1 | …bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
            |                                          ^
          1 | ab
            | ^
          7 |
            | ^
          0 | ab
            |   ^
          18446744073709551615 |
                               | ^
    "#]].assert_eq(&shown);
}

/// `lines` nodes in a chain, and one line with as many operands.
#[test]
fn depth_and_width_are_no_matter() {
    const LINES: usize = 20_000;
    let start = Instant::now();
    let mut text = String::from("uopc 1\n%0 = range 4 axis 0 loop\n");
    for n in 1..=LINES {
        writeln!(text, "%{n} = add %{}, %0", n - 1).expect("a string takes any text");
    }
    let wide: Vec<String> = (0..=LINES).map(|n| format!("%{n}")).collect();
    writeln!(text, "%a = group {}", wide.join(", ")).expect("a string takes any text");
    text += "%b = sink %a \"deep\"\n";
    let parsed = parse(&text).unwrap_or_else(|e| panic!("{e}"));
    let printed = print(&parsed.graph, parsed.sink);
    assert_eq!(printed.lines().count(), LINES + 4);
    // As many errors, each with a snippet.
    let errors = parse(&text.replace("uopc 1", "uopc 1\n%x = ?").replace("add", "ad"));
    let errors = errors.expect_err("`ad` is no op");
    assert_eq!(errors.to_string().lines().count(), 3 * (LINES + 1));
    assert!(start.elapsed().as_secs() < 60, "it is not linear");
}

/// A node to be: everything in it is chosen freely.
#[derive(Clone, Debug)]
struct Recipe {
    op: usize,
    dtype: usize,
    src: Vec<usize>,
    number: u32,
    integer: i128,
    name: String,
    flags: (bool, bool),
    /// For malformed graphs: whether it follows the op table, and which op's arg it has otherwise.
    regular: bool,
    arg: usize,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let integer = prop_oneof![-9..9i128, any::<i128>()];
    let name = prop_oneof!["[a-z_\"\\\\; %]{0,8}", any::<String>()];
    (
        (0..Op::ALL.len(), 0..DType::ALL.len()),
        proptest::collection::vec(any::<usize>(), 0..5),
        any::<u32>(),
        integer,
        name,
        any::<(bool, bool)>(),
        any::<(bool, usize)>(),
    )
        .prop_map(|((op, dtype), src, number, integer, name, flags, (regular, arg))| Recipe {
            op,
            dtype,
            src,
            number,
            integer,
            name,
            flags,
            regular,
            arg,
        })
}

impl Recipe {
    fn value(&self, dtype: DType) -> Const {
        match dtype {
            DType::Bool => Const::Bool(self.flags.0),
            _ if dtype.is_float() => {
                let bits = self.integer as u64 >> (64 - 8 * dtype.size().unwrap_or(8));
                Const::float_bits(dtype, bits).expect("the bits fit")
            }
            _ => Const::Int(dtype.wrap(self.integer)),
        }
    }

    /// The arg that a node of this op carries.
    fn arg(&self, op: Op, dtype: DType, name: &str) -> Arg {
        let access =
            Access { inbounds: self.flags.0, assume_disjoint: self.flags.1 && op != Op::Load };
        match op {
            Op::Param => Arg::Param(Box::new(Param {
                slot: self.number,
                name: name.into(),
                mutable: self.flags.0,
            })),
            Op::Buffer => Arg::Buffer(self.number),
            Op::Const => Arg::Const(self.value(dtype)),
            Op::Range => Arg::Range(Axis {
                number: self.number,
                kind: AxisType::ALL[self.number as usize % AxisType::ALL.len()],
            }),
            Op::Special => Arg::Special(Special::ALL[self.number as usize % Special::ALL.len()]),
            Op::Variable => Arg::Variable(Box::new(Variable {
                name: name.into(),
                lo: self.integer as i64,
                hi: i64::from(self.number),
            })),
            Op::Load | Op::Store => Arg::Access(access),
            Op::Custom => Arg::Custom {
                custom: atomic::add([DType::I32, DType::U64, DType::F64][self.number as usize % 3]),
                number: self.number,
                access,
            },
            Op::Sink => Arg::Sink(name.into()),
            _ => Arg::None,
        }
    }

    /// Adds a node that follows the op table.
    fn regular(&self, g: &mut Graph, op: Op, pool: &[Id]) -> Id {
        let mut dtype = DType::ALL[self.dtype];
        if op == Op::Const && dtype == DType::Void {
            dtype = DType::Index;
        }
        let name = self.name.replace(char::is_control, "");
        let arg = self.arg(op, dtype, &name);
        let extra = self.src.len();
        let count = match (op.arity(), &arg) {
            (_, Arg::Custom { custom, .. }) => custom.contract().args.len() + extra % 2,
            (Arity::Fixed(k), _) => k,
            (Arity::AtLeast(k), _) => k + extra % 3,
            (Arity::Between(lo, hi), _) => lo + extra % (hi - lo + 1),
        };
        let pick = |k: usize| {
            let seed = self.src.get(k).copied().unwrap_or(self.number as usize + k);
            pool[seed % pool.len()]
        };
        let src: Vec<Id> = (0..count).map(pick).collect();
        let dtype = match (op.result(), &arg) {
            (_, Arg::Custom { custom, .. }) => custom.contract().result,
            (ResultType::Stated, _) => dtype,
            (ResultType::SameAs(k), _) => g[src[k]].dtype,
            (ResultType::Always(dtype), _) => dtype,
            (ResultType::Sized, _) if dtype.is_index() => dtype,
            (ResultType::Sized, _) => DType::Index,
        };
        g.intern(Node::new(op, dtype, src).with_arg(arg))
    }

    /// Adds a node without any regard for the op table.
    fn irregular(&self, g: &mut Graph, pool: &[Id]) -> Id {
        let dtype = DType::ALL[self.dtype];
        let mut arg = self.arg(Op::ALL[self.arg % Op::ALL.len()], dtype, &self.name);
        match &mut arg {
            Arg::Const(value) if self.flags.1 => {
                *value = self.value(DType::ALL[self.arg % DType::ALL.len()]);
            }
            Arg::Special(special) => *special = Special::Item(self.number as u8),
            Arg::Access(access) => access.assume_disjoint = self.flags.1,
            Arg::Custom { custom, .. } => *custom = atomic::add(dtype),
            _ => {}
        }
        let src = self.src.iter().map(|s| pool[s % pool.len()]);
        g.intern(Node::new(Op::ALL[self.op], dtype, src).with_arg(arg))
    }
}

/// A graph of these nodes under a SINK.
fn build(recipes: &[Recipe], regular: bool) -> (Graph, Id) {
    let mut g = Graph::new();
    let mut pool = vec![g.index(7)];
    for recipe in recipes {
        let op = Op::ALL[recipe.op];
        let n = if regular || recipe.regular {
            let op = if op == Op::Sink { Op::Group } else { op };
            recipe.regular(&mut g, op, &pool)
        } else {
            recipe.irregular(&mut g, &pool)
        };
        pool.push(n);
    }
    // In an order of its own, so that the order of printing is another than that of building.
    let mut last: Vec<Id> = pool.iter().rev().take(6).copied().collect();
    last.rotate_left(recipes.len() % 3);
    let group = g.intern(Node::new(Op::Group, DType::Void, last));
    let sink = Node::new(Op::Sink, DType::Void, [group]).with_arg(Arg::Sink("k".into()));
    let sink = g.intern(sink);
    (g, sink)
}

fn nodes(g: &Graph, root: Id) -> Vec<Node> {
    let (g, root) = g.canonical(root);
    g.reachable(root).into_iter().map(|n| g[n].clone()).collect()
}

fn assert_reads_back(g: &Graph, sink: Id) {
    let text = print(g, sink);
    let parsed = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(nodes(g, sink), nodes(&parsed.graph, parsed.sink), "{text}");
    assert_eq!(print(&parsed.graph, parsed.sink), text);
}

/// What can be done to any text without a panic.
fn exercise(text: &str) {
    match parse(text) {
        Ok(parsed) => {
            for n in parsed.graph.reachable(parsed.sink) {
                let place = parsed.places.get(n).expect("parsing knows every node");
                snippet(text, place.line, place.column, place.length);
            }
            assert_reads_back(&parsed.graph, parsed.sink);
        }
        Err(errors) => {
            let shown = errors.to_string();
            assert!(errors.iter().count() > 0);
            assert!(
                !shown.contains(|c: char| c.is_control() && c != '\n' && c != '\t'),
                "{shown:?}"
            );
            let mut lines: Vec<usize> = errors.iter().map(|e| e.place.line).collect();
            let count = lines.len();
            lines.dedup();
            // The first line may lack both its version line and its form; the last one may lack a
            // SINK after it.
            assert!(count <= lines.len() + 2, "{shown}");
        }
    }
}

const SOUP: &[&str] = &[
    "uopc",
    "1",
    "2",
    "\n",
    "%0",
    "%x",
    "=",
    "add",
    "load",
    "store",
    "custom",
    "atomic_add.f32",
    "const.f32",
    "param.f32",
    "[",
    "]",
    ",",
    "slot",
    "mut",
    "\"x\"",
    "\"",
    "\\",
    "if",
    "else",
    "inbounds",
    "disjoint",
    "range",
    "axis",
    "global",
    "special",
    "item.x",
    "sink",
    "after",
    ";",
    " ",
    "\t",
    "\r",
    "-",
    "0x7fc00000",
    "-inf",
    "%",
    ".",
    "é",
    "\u{0}",
    "\u{feff}",
    "9999999999",
    "99999999999999999999999999999999999999999999",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printed_graphs_read_back(recipes in proptest::collection::vec(recipe(), 0..24)) {
        let (g, sink) = build(&recipes, true);
        assert_reads_back(&g, sink);
    }

    #[test]
    fn malformed_graphs_never_read_as_others(recipes in proptest::collection::vec(recipe(), 0..8)) {
        let (g, sink) = build(&recipes, false);
        let text = print(&g, sink);
        if text.contains("= malformed ") {
            prop_assert!(parse(&text).is_err(), "{}", text);
        } else {
            assert_reads_back(&g, sink);
        }
    }

    #[test]
    fn bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        exercise(&text);
        exercise(&format!("uopc 1\n{text}"));
    }

    #[test]
    fn soup_does_not_panic(picks in proptest::collection::vec((0..SOUP.len(), any::<bool>()), 0..60)) {
        let mut text = String::from("uopc 1\n%0 = ");
        for (pick, blank) in picks {
            text.push_str(SOUP[pick]);
            text.push_str(if blank { " " } else { "" });
        }
        exercise(&text);
    }

    #[test]
    fn mutated_text_does_not_panic(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0..6usize, 0..SOUP.len()), 1..5),
    ) {
        let mut chars: Vec<char> = EVERYTHING.chars().collect();
        for (at, length, piece) in edits {
            let at = at.index(chars.len());
            let end = (at + length).min(chars.len() - 1).max(at);
            chars.splice(at..end, SOUP[piece].chars());
        }
        exercise(&chars.into_iter().collect::<String>());
    }
}
