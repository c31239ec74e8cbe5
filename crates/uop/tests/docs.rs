//! docs/ir.md says what the code says: its table of ops is that of `Op::ALL`, that of atomics
//! is of `AtomicOp::ALL`, and its blocks marked
//! `uopc` are legal kernels, in canonical text if they have no comments. `UOPC_BLESS=1` rewrites
//! both.

use std::fmt::Write;
use std::fs;

use uop::{Arity, AtomicOp, DType, Op, Phase, ResultType, atomic, parse, print, verify};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ir.md");
const BEGIN: &str = "<!-- ops:begin -->\n";
const END: &str = "<!-- ops:end -->";
const BEGIN_ATOMICS: &str = "<!-- atomics:begin -->\n";
const END_ATOMICS: &str = "<!-- atomics:end -->";
const BLOCK: &str = "```uopc\n";

/// A table in Markdown, one row for each op.
fn table() -> String {
    let mut table = String::from("| op | sources | result | meaning |\n|---|---|---|---|\n");
    for op in Op::ALL {
        let sources = match op.arity() {
            Arity::Fixed(n) => n.to_string(),
            Arity::AtLeast(n) => format!("{n} or more"),
            Arity::Between(lo, hi) => format!("{lo} to {hi}"),
        };
        let result = match op.result() {
            ResultType::Stated => "stated".to_string(),
            ResultType::SameAs(n) => format!("as `src[{n}]`"),
            ResultType::Always(dtype) => format!("`{dtype}`"),
            ResultType::Sized => "`index`; lowered, `i32` or `i64`".to_string(),
        };
        let meaning = op.doc().trim().replace('|', "\\|");
        writeln!(table, "| `{op}` | {sources} | {result} | {meaning} |")
            .expect("a string takes any text");
    }
    table
}

/// A table in Markdown, one row for each kind of atomic.
fn atomics() -> String {
    let mut table =
        String::from("| operation | dtypes | arguments | writes |\n|---|---|---|---|\n");
    for op in AtomicOp::ALL {
        let dtypes = DType::ALL.into_iter().filter(|dtype| op.works_on(*dtype).is_ok());
        let dtypes: Vec<String> = dtypes.map(|dtype| format!("`{dtype}`")).collect();
        let (arguments, writes) = match op {
            AtomicOp::Add => ("`p`, `v`", "`old + v`"),
            AtomicOp::Max => ("`p`, `v`", "the larger of `old` and `v`"),
            AtomicOp::Min => ("`p`, `v`", "the smaller of `old` and `v`"),
            AtomicOp::And => ("`p`, `v`", "`old & v`"),
            AtomicOp::Or => ("`p`, `v`", "`old \\| v`"),
            AtomicOp::Xor => ("`p`, `v`", "`old ^ v`"),
            AtomicOp::Exchange => ("`p`, `v`", "`v`"),
            AtomicOp::Cas => {
                ("`p`, `v`, `w`", "`w` if the bits of `old` are those of `v`, else `old`")
            }
        };
        let (custom, dtypes) = (atomic::of(op, DType::I32), dtypes.join(", "));
        writeln!(table, "| `{custom}` | {dtypes} | {arguments} | {writes} |")
            .expect("a string takes any text");
    }
    table
}

/// `text` with `table` between the marks `begin` and `end`.
fn with_table(text: &str, begin: &str, end: &str, table: &str) -> String {
    let (before, rest) = text.split_once(begin).expect("the page marks where the table begins");
    let (_, after) = rest.split_once(end).expect("the page marks where the table ends");
    format!("{before}{begin}{table}{end}{after}")
}

/// docs/ir.md as it should be, given what it is.
fn expected(text: &str) -> String {
    let text = with_table(text, BEGIN, END, &table());
    let text = with_table(&text, BEGIN_ATOMICS, END_ATOMICS, &atomics());
    let mut pieces = text.split(BLOCK);
    let mut expected = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let (kernel, rest) = piece.split_once("```").expect("a block ends");
        let parsed = parse(kernel).unwrap_or_else(|errors| panic!("{errors}"));
        verify(&parsed.graph, parsed.sink, Phase::Built)
            .unwrap_or_else(|errors| panic!("{errors}"));
        // One with comments is written by hand.
        let canonical = print(&parsed.graph, parsed.sink);
        let kernel = if kernel.contains(';') { kernel } else { &canonical };
        expected += &format!("{BLOCK}{kernel}```{rest}");
    }
    expected
}

#[test]
fn the_page_says_what_the_code_says() {
    let found = fs::read_to_string(PATH).expect("docs/ir.md is there");
    let expected = expected(&found);
    if std::env::var_os("UOPC_BLESS").is_some_and(|value| value == "1") {
        if found != expected {
            fs::write(PATH, expected).expect("docs/ir.md can be written");
        }
        return;
    }
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "docs/ir.md is out of date; UOPC_BLESS=1 rewrites it");
    }
    assert_eq!(found, expected, "docs/ir.md is out of date; UOPC_BLESS=1 rewrites it");
}
