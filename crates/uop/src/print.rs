//! The text form of a graph, as text; [`crate::parse()`] reads it back.
//!
//! The text is canonical: it depends on nothing but what the root reaches. Nodes that the root does
//! not reach are gone, lines are numbered by a walk from it, and an index constant has no line: it is
//! spelled out wherever it is an operand. What is declared and used is defined first. Parsing the
//! text gives the same graph, and printing that gives the same bytes.
//!
//! A node that the text form has no words for (a wrong number of sources, a wrong arg, a dtype that
//! is not the table's) is printed as `malformed`, its op, dtype, sources and arg. That is for
//! reading only: the parser refuses it.

use std::fmt::{self, Write};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::custom::{Contract, Custom, CustomArg};
use crate::declare::Declaration;
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
    write_all(&graph, root).0
}

/// The text of what `root` depends on in `graph`, which is canonical, and how each of its nodes is
/// written.
fn write_all(graph: &Graph, root: Id) -> (String, Vec<String>) {
    let mut text = format!("uopc {VERSION}\n");
    let mut lines = 0;
    let declarations = declarations(graph, root);
    for declaration in declarations.values() {
        write_definition(&mut text, declaration, &mut lines);
    }
    let spellings = write_lines(&mut text, graph, root, &declarations, &mut lines);
    (text, spellings)
}

/// The declarations that `root` depends on and the text form has words for, by name, in the order
/// of their first uses.
fn declarations(graph: &Graph, root: Id) -> IndexMap<&str, &Arc<Declaration>> {
    let mut found = IndexMap::new();
    for n in graph.reachable(root) {
        if let Arg::Custom { custom, .. } = &graph[n].arg
            && let Some(declaration) = custom.declaration()
            && custom.check().is_ok()
        {
            found.entry(declaration.name()).or_insert(declaration);
        }
    }
    found
}

/// Writes the lines of the body, then `@name = define …`.
fn write_definition(text: &mut String, declaration: &Declaration, lines: &mut usize) {
    let body = declaration.uops().map_or(String::new(), |(graph, root)| {
        write_lines(text, &graph, root, &IndexMap::new(), lines);
        format!(" body %{}", *lines - 1)
    });
    let Contract { args, result, effect } = declaration.contract();
    let args = args.iter().map(|arg| match arg {
        CustomArg::Value(dtype) => dtype.to_string(),
        CustomArg::Pointer { dtype, elements: 1 } => format!("pointer {dtype}"),
        CustomArg::Pointer { dtype, elements } => format!("pointer {dtype} x {elements}"),
    });
    let (name, args) = (declaration.name(), args.collect::<Vec<String>>().join(", "));
    *text += &format!("@{name} = define [{args}] {result} {effect}{body}");
    for (target, template) in &declaration.templates {
        *text += &format!(" {target} {}", quoted(template));
    }
    text.push('\n');
}

/// Writes the lines of the nodes of `graph`, which is canonical, and returns how each is spelled;
/// `lines` were there before.
fn write_lines(
    text: &mut String,
    graph: &Graph,
    root: Id,
    declarations: &IndexMap<&str, &Arc<Declaration>>,
    lines: &mut usize,
) -> Vec<String> {
    let spellings = spell(graph, root, lines);
    for n in graph.reachable(root) {
        let spelling = &spellings[n.index()];
        if spelling.starts_with('%') {
            let line = Line { graph, root, n, spellings: &spellings, declarations };
            writeln!(text, "{spelling} = {line}").expect("a string takes any text");
        }
    }
    spellings
}

/// `message`, which names nodes of `graph` by id, with the names that they have in the canonical
/// text of `root`. What is not in that text keeps its id.
pub fn localize(graph: &Graph, root: Id, message: &str) -> String {
    let (canonical, sink) = graph.canonical(root);
    let (_, spellings) = write_all(&canonical, sink);
    let mut names = vec![None; graph.len()];
    for (n, spelling) in canonical.reachable(sink).into_iter().zip(spellings) {
        names[canonical.origin(n).index()] = Some(spelling);
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

/// How each node of `graph`, which is canonical, is written as an operand, by id: as the `%number`
/// of its line, or as an integer without one. There are `lines` before.
fn spell(graph: &Graph, root: Id, lines: &mut usize) -> Vec<String> {
    let spelling = |n: Id| match literal(&graph[n]) {
        Some(value) if n != root => value.to_string(),
        _ => {
            *lines += 1;
            format!("%{}", *lines - 1)
        }
    };
    graph.reachable(root).into_iter().map(spelling).collect()
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
fn is_regular(line: &Line<'_>) -> bool {
    let &Line { graph, root, n, declarations, .. } = line;
    let node = &graph[n];
    if form(node).is_err() {
        return false;
    }
    let stated = match &node.arg {
        Arg::Custom { custom, .. } => custom.contract().result,
        _ => node.dtype,
    };
    let dtype = node.op.result().dtype(stated, |k| graph[node.src[k]].dtype);
    let sized = node.op.result() != ResultType::Sized || dtype.is_index();
    let arg = match &node.arg {
        Arg::None | Arg::Buffer(_) | Arg::Range(_) | Arg::Argument { .. } => true,
        Arg::Param(param) => is_quotable(&param.name),
        Arg::Variable(variable) => is_quotable(&variable.name),
        Arg::Const(value) => value.fits(node.dtype),
        Arg::Special(special) => Special::ALL.contains(special),
        Arg::Access(access) => node.op != Op::Load || !access.assume_disjoint,
        Arg::Custom { custom: Custom::Declared(declaration), .. } => {
            declarations.get(declaration.name()) == Some(&declaration)
        }
        Arg::Custom { custom, .. } => custom.check().is_ok(),
        // The text form has one sink, its last line.
        Arg::Sink(name) => n == root && is_quotable(name),
    };
    dtype == node.dtype && sized && arg
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
    spellings: &'a [String],
    /// Those that are defined above.
    declarations: &'a IndexMap<&'a str, &'a Arc<Declaration>>,
}

impl Line<'_> {
    fn operands(&self, src: &[Id]) -> String {
        let words: Vec<&str> = src.iter().map(|s| &*self.spellings[s.index()]).collect();
        words.join(", ")
    }

    /// An access: its first `values` sources, its gate, the value for a false gate, its flags.
    fn access(&self, f: &mut fmt::Formatter<'_>, values: usize, access: Access) -> fmt::Result {
        let (values, rest) = self.graph[self.n].src.split_at(values);
        write!(f, " {}", self.operands(values))?;
        for (word, s) in ["if", "else"].iter().zip(rest) {
            write!(f, " {word} {}", self.spellings[s.index()])?;
        }
        f.write_str(if access.inbounds { " inbounds" } else { "" })?;
        f.write_str(if access.assume_disjoint { " disjoint" } else { "" })
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = &self.graph[self.n];
        let Node { op, dtype, .. } = *node;
        let src = self.operands(&node.src);
        if !is_regular(self) {
            write!(f, "malformed {op}.{dtype}")?;
            if !src.is_empty() {
                write!(f, " {src}")?;
            }
            return match &node.arg {
                Arg::None => Ok(()),
                arg => write!(f, " {arg:?}"),
            };
        }
        let is_stated = match op.result() {
            // The dtype stands behind the operation.
            ResultType::Stated => op != Op::Custom,
            ResultType::Sized => dtype != DType::Index,
            ResultType::SameAs(_) | ResultType::Always(_) => false,
        };
        write!(f, "{op}")?;
        if is_stated {
            write!(f, ".{dtype}")?;
        }
        match &node.arg {
            Arg::Param(param) => {
                let mutable = if param.mutable { "mut " } else { "" };
                write!(f, " [{src}] slot {} {mutable}{}", param.slot, quoted(&param.name))
            }
            Arg::Variable(variable) => {
                write!(f, " {} to {} {}", variable.lo, variable.hi, quoted(&variable.name))
            }
            Arg::Buffer(number) => write!(f, " [{src}] number {number}"),
            Arg::Const(value) => write!(f, " {value}"),
            Arg::Range(axis) => write!(f, " {src} axis {} {}", axis.number, axis.kind),
            Arg::Special(special) => write!(f, " {src} {special}"),
            Arg::Sink(name) => write!(f, " {src} {}", quoted(name)),
            Arg::Access(access) => self.access(f, if op == Op::Load { 1 } else { 2 }, *access),
            Arg::Argument { number, pointer } => {
                write!(f, " {number}{}", if *pointer { " pointer" } else { "" })
            }
            Arg::Custom { custom, number, access } => {
                write!(f, " {custom}")?;
                if custom.declaration().is_none() {
                    write!(f, ".{}", custom.dtype())?;
                }
                self.access(f, custom.contract().args.len(), *access)?;
                if *number == 0 { Ok(()) } else { write!(f, " number {number}") }
            }
            Arg::None if matches!(op, Op::Reshape | Op::Index) => {
                let (first, rest) = (&node.src[..1], &node.src[1..]);
                write!(f, " {} [{}]", self.operands(first), self.operands(rest))
            }
            Arg::None => write!(f, " {src}"),
        }
    }
}

/// A name without control characters, in double quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', r"\\").replace('"', "\\\""))
}
