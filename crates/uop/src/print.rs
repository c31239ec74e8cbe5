//! The text form of a graph, as text; [`crate::parse()`] reads it back.
//!
//! The text is canonical: it depends on nothing but what the root reaches. Nodes that the root does
//! not reach are gone, lines are numbered by a walk from it, and an index constant has no line: it is
//! spelled out wherever it is an operand. Parsing the text gives the same graph, and printing that
//! gives the same bytes.
//!
//! A node that the text form has no words for (a wrong number of sources, a wrong arg, a dtype that
//! is not the table's) is printed as `malformed`, its op, dtype, sources and arg. That is for
//! reading only: the parser refuses it.

use std::fmt::{self, Write};

use crate::dtype::{Const, DType};
use crate::graph::{Access, Arg, Graph, Id, Node, Special};
use crate::op::{Op, ResultType};
use crate::verify::form;

/// The version of the text form that is written and read.
pub const VERSION: u32 = 1;

/// The canonical text of what `root`, usually a SINK, depends on. It takes any graph, malformed ones
/// too.
pub fn print(graph: &Graph, root: Id) -> String {
    let (graph, root) = graph.canonical(root);
    let spellings = spell(&graph, root);
    let mut text = format!("uopc {VERSION}\n");
    for n in graph.reachable(root) {
        if let spelling @ Spelling::Line(_) = spellings[n.index()] {
            let line = Line { graph: &graph, root, n, spellings: &spellings };
            writeln!(text, "{spelling} = {line}").expect("a string takes any text");
        }
    }
    text
}

/// `message`, which names nodes of `graph` by id, with the names that they have in the canonical
/// text of `root`. What is not in that text keeps its id.
pub fn localize(graph: &Graph, root: Id, message: &str) -> String {
    let (canonical, sink) = graph.canonical(root);
    let spellings = spell(&canonical, sink);
    let mut names = vec![None; graph.len()];
    for (n, spelling) in canonical.reachable(sink).into_iter().zip(spellings) {
        names[canonical.origin(n).index()] = Some(spelling.to_string());
    }
    rename(message, |index| names.get(index).cloned().flatten())
}

/// `message` with each `%id` replaced by the name of the node with that index, where it has one.
pub fn rename(message: &str, name: impl Fn(usize) -> Option<String>) -> String {
    let mut pieces = message.split('%');
    let mut renamed = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        match piece[..digits].parse().ok().and_then(&name) {
            Some(name) => renamed.push_str(&name),
            None => {
                renamed.push('%');
                renamed.push_str(&piece[..digits]);
            }
        }
        renamed.push_str(&piece[digits..]);
    }
    renamed
}

/// How each node of `graph`, which is canonical, is written as an operand, by id.
fn spell(graph: &Graph, root: Id) -> Vec<Spelling> {
    let mut lines = 0;
    let spelling = |n: Id| match literal(&graph[n]) {
        Some(value) if n != root => Spelling::Literal(value),
        _ => {
            lines += 1;
            Spelling::Line(lines - 1)
        }
    };
    graph.reachable(root).into_iter().map(spelling).collect()
}

/// How a node is written as an operand.
#[derive(Clone, Copy)]
enum Spelling {
    Line(usize),
    Literal(i128),
}

impl fmt::Display for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spelling::Line(number) => write!(f, "%{number}"),
            Spelling::Literal(value) => write!(f, "{value}"),
        }
    }
}

/// The value of an index constant.
fn literal(node: &Node) -> Option<i128> {
    match (node.op, node.dtype, &node.arg) {
        (Op::Const, DType::Index, Arg::Const(Const::Int(value))) if node.src.is_empty() => {
            Some(*value)
        }
        _ => None,
    }
}

/// Whether the text form has words for `n`, so that they mean this very node.
fn is_regular(graph: &Graph, root: Id, n: Id) -> bool {
    let node = &graph[n];
    let stated = match &node.arg {
        Arg::Custom { custom, .. } => custom.contract().result,
        _ => node.dtype,
    };
    let dtype = match node.op.result() {
        ResultType::Stated => Some(stated),
        ResultType::SameAs(k) => node.src.get(k).map(|s| graph[*s].dtype),
        ResultType::Always(dtype) => Some(dtype),
        ResultType::Sized => node.dtype.is_int().then_some(node.dtype),
    };
    let arg = match &node.arg {
        Arg::None | Arg::Buffer(_) | Arg::Range(_) => true,
        Arg::Param(param) => is_quotable(&param.name),
        Arg::Const(value) => value.fits(node.dtype),
        Arg::Special(special) => Special::ALL.contains(special),
        Arg::Access(access) => node.op != Op::Load || !access.assume_disjoint,
        Arg::Custom { custom, .. } => custom.is_known(),
        // The text form has one sink, its last line.
        Arg::Sink(name) => n == root && is_quotable(name),
    };
    form(node).is_ok() && dtype == Some(node.dtype) && arg
}

fn is_quotable(name: &str) -> bool {
    !name.chars().any(char::is_control)
}

/// What stands to the right of `=`.
struct Line<'a> {
    graph: &'a Graph,
    root: Id,
    n: Id,
    /// Of every node before `n`.
    spellings: &'a [Spelling],
}

impl Line<'_> {
    fn operands(&self, src: &[Id]) -> String {
        let words: Vec<String> =
            src.iter().map(|s| self.spellings[s.index()].to_string()).collect();
        words.join(", ")
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = &self.graph[self.n];
        let Node { op, dtype, .. } = *node;
        let src = self.operands(&node.src);
        if !is_regular(self.graph, self.root, self.n) {
            write!(f, "malformed {op}.{dtype}")?;
            if !src.is_empty() {
                write!(f, " {src}")?;
            }
            return match &node.arg {
                Arg::None => Ok(()),
                arg => write!(f, " {arg:?}"),
            };
        }
        match (op, &node.arg) {
            (_, Arg::Param(param)) => {
                let mutable = if param.mutable { "mut " } else { "" };
                let name = Quoted(&param.name);
                write!(f, "{op}.{dtype} [{src}] slot {} {mutable}{name}", param.slot)
            }
            (_, Arg::Buffer(number)) => write!(f, "{op}.{dtype} [{src}] number {number}"),
            (_, Arg::Const(value)) => write!(f, "{op}.{dtype} {value}"),
            (_, Arg::Range(axis)) => {
                let size = size_suffix(dtype);
                write!(f, "{op}{size} {src} axis {} {}", axis.number, axis.kind)
            }
            (_, Arg::Special(special)) => write!(f, "{op}{} {src} {special}", size_suffix(dtype)),
            (_, Arg::Sink(name)) => write!(f, "{op} {src} {}", Quoted(name)),
            (_, Arg::Access(access)) => {
                let values = if op == Op::Load { 1 } else { 2 };
                self.access(f, format_args!("{op}"), values, *access)
            }
            (_, Arg::Custom { custom, number, access }) => {
                let head = format_args!("{op} {custom}.{}", custom.dtype());
                self.access(f, head, custom.contract().args.len(), *access)?;
                if *number == 0 { Ok(()) } else { write!(f, " number {number}") }
            }
            (Op::Reshape | Op::Index, Arg::None) => {
                let (first, rest) = (&node.src[..1], &node.src[1..]);
                write!(f, "{op} {} [{}]", self.operands(first), self.operands(rest))
            }
            (_, Arg::None) if op.result() == ResultType::Stated => {
                write!(f, "{op}.{dtype} {src}")
            }
            (_, Arg::None) if src.is_empty() => write!(f, "{op}"),
            (_, Arg::None) => write!(f, "{op} {src}"),
        }
    }
}

impl Line<'_> {
    /// An access: its first `values` sources, its gate, the value for a false gate, its flags.
    fn access(
        &self,
        f: &mut fmt::Formatter<'_>,
        head: fmt::Arguments<'_>,
        values: usize,
        access: Access,
    ) -> fmt::Result {
        let (values, rest) = self.graph[self.n].src.split_at(values);
        write!(f, "{head} {}", self.operands(values))?;
        for (word, s) in ["if", "else"].iter().zip(rest) {
            write!(f, " {word} {}", self.spellings[s.index()])?;
        }
        if access.inbounds {
            f.write_str(" inbounds")?;
        }
        if access.assume_disjoint {
            f.write_str(" disjoint")?;
        }
        Ok(())
    }
}

/// The dtype behind an op whose dtype is `index` where nothing is said.
fn size_suffix(dtype: DType) -> String {
    if dtype == DType::Index { String::new() } else { format!(".{dtype}") }
}

/// A name without control characters, in double quotes.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            if matches!(c, '"' | '\\') {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
        }
        f.write_char('"')
    }
}
