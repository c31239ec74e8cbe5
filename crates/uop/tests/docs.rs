//! docs/ir.md says what the code says: its table of ops is that of `Op::ALL`, and its kernels are
//! text that is read, verified and printed as it stands. `UOPC_BLESS=1` rewrites the table.

use std::fmt::Write;
use std::fs;

use uop::{Arity, Op, Phase, ResultType, parse, print, verify};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ir.md");
const BEGIN: &str = "<!-- ops:begin -->\n";
const END: &str = "<!-- ops:end -->";

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

#[test]
fn the_table_of_ops_is_that_of_the_code() {
    let text = fs::read_to_string(PATH).expect("docs/ir.md is there");
    let (before, rest) = text.split_once(BEGIN).expect("docs/ir.md marks where the table begins");
    let (found, after) = rest.split_once(END).expect("docs/ir.md marks where the table ends");
    let expected = table();
    if std::env::var_os("UOPC_BLESS").is_some_and(|value| value == "1") {
        if found != expected {
            let text = format!("{before}{BEGIN}{expected}{END}{after}");
            fs::write(PATH, text).expect("docs/ir.md can be written");
        }
        return;
    }
    assert_eq!(found, expected, "the table in docs/ir.md is out of date; UOPC_BLESS=1 rewrites it");
}

/// Blocks marked `uopc` are kernels. One without comments or names is canonical text.
#[test]
fn its_kernels_are_legal() {
    let text = fs::read_to_string(PATH).expect("docs/ir.md is there");
    let blocks: Vec<&str> = text
        .split("```uopc\n")
        .skip(1)
        .map(|rest| rest.split_once("```").expect("a block of docs/ir.md ends").0)
        .collect();
    assert!(!blocks.is_empty(), "docs/ir.md shows kernels");
    for block in blocks {
        let kernel = parse(block).unwrap_or_else(|errors| panic!("{errors}"));
        verify(&kernel.graph, kernel.sink, Phase::Built)
            .unwrap_or_else(|errors| panic!("{errors}\n{block}"));
        if !block.contains([';']) {
            assert_eq!(
                block,
                print(&kernel.graph, kernel.sink),
                "a block of docs/ir.md is not canonical"
            );
        }
    }
}
