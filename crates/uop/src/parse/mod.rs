//! The text form of a graph, read back.
//!
//! One pass over the lines, one error a line at most, and no recursion: time and memory are linear
//! in the text. An operand that refers to a line which failed is silent, so that one mistake is one
//! error. What is checked is the form (names, arity, constants within their dtype); what a graph
//! means, [`crate::verify()`] judges, and [`Places`] tells it where a node was written.

mod lex;

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;
use thiserror::Error;

use self::lex::{Cursor, Fault, Kind, Token, constant, integer, is_integer, named, shown};
use crate::custom::{Contract, Custom, CustomArg, Effect};
use crate::declare::{Declaration, DeclarationError, TARGETS, fill};
use crate::dtype::{Const, DType};
use crate::graph::{
    Access, Arg, Axis, AxisType, Graph, Id, Node, Param, Sources, Special, Variable,
};
use crate::op::{Op, ResultType};
use crate::print::{VERSION, rename};
use crate::verify::lines;

/// What a text holds.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The nodes, in the order of the text.
    pub graph: Graph,
    /// Its SINK.
    pub sink: Id,
    /// Where each node was written.
    pub places: Places,
}

/// Where the nodes of a text were written, and under which names.
#[derive(Clone, Debug, Default)]
pub struct Places {
    places: Vec<Place>,
    names: Vec<String>,
}

impl Places {
    /// Where `n` was first defined: right of the `=`, or at the integer that stands for it. `None`
    /// for nodes that were added after parsing.
    pub fn get(&self, n: Id) -> Option<Place> {
        self.places.get(n.index()).copied()
    }

    /// `message`, which names nodes by id, with the names that the text gives them: `%7`, `%token`,
    /// or an integer.
    pub fn localize(&self, message: &str) -> String {
        rename(message, |index| self.names.get(index).cloned())
    }
}

/// A piece of one line of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The first character, from 1.
    pub column: usize,
    /// How many characters.
    pub length: usize,
}

/// One mistake in a text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("error: {}:{}: {message}\n{snippet}", .place.line, .place.column)]
pub struct ParseError {
    /// Where it is.
    pub place: Place,
    /// What was expected and what was found.
    pub message: String,
    snippet: String,
}

/// All mistakes in a text, by line; never empty. Displayed, each is its place, the message and the
/// line with a caret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", lines(.errors))]
pub struct ParseErrors {
    errors: Vec<ParseError>,
}

impl ParseErrors {
    /// The errors.
    pub fn iter(&self) -> impl Iterator<Item = &ParseError> {
        self.errors.iter()
    }
}

/// Reads a graph from its text form.
///
/// # Errors
///
/// Every mistake in the form, one a line at most.
pub fn parse(text: &str) -> Result<Parsed, ParseErrors> {
    Parser::default().run(unmarked(text))
}

/// `text` without the byte order mark that some editors put at the front.
fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The line of `source` that holds a mistake, with carets below `length` characters from `column`;
/// both count from 1. Two lines of text, the last without its end.
///
/// ```text
///   3 | %2 = stor %1
///     |      ^^^^
/// ```
pub fn snippet(source: &str, line: usize, column: usize, length: usize) -> String {
    let text = unmarked(source).split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
    snippet_of(text, Place { line, column, length })
}

/// How many characters of a long line a snippet shows at most, and how many of them left of the
/// caret.
const WIDTH: usize = 100;
const BEFORE: usize = 40;

/// Whether `c` shows as itself: no control, and nothing that is invisible or turns the direction of
/// the text (Unicode 15, general category Cf, those that occur in text).
pub fn is_visible(c: char) -> bool {
    let hidden = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}');
    !c.is_control() && !hidden
}

fn snippet_of(line: &str, place: Place) -> String {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let skipped = match line.char_indices().nth(WIDTH) {
        Some(_) => place.column.saturating_sub(BEFORE + 1),
        None => 0,
    };
    let mut rest = line.chars().skip(skipped);
    let column = place.column.saturating_sub(1) - skipped;
    // A tab keeps its width in both lines; what could steer a terminal is not passed on.
    let visible = |c| if is_visible(c) || c == '\t' { c } else { char::REPLACEMENT_CHARACTER };
    let shown: String = rest.by_ref().take(WIDTH).map(visible).collect();
    let blank = |c| if c == '\t' { '\t' } else { ' ' };
    let padding: String = shown.chars().take(column).map(blank).collect();
    let carets = place.length.min(shown.chars().count().saturating_sub(column)).max(1);
    let (left, gap) = if skipped > 0 { ("…", " ") } else { ("", "") };
    let right = if rest.next().is_some() { "…" } else { "" };
    let number = place.line.to_string();
    let first = format!("  {number} | {left}{shown}{right}");
    let blank = " ".repeat(number.len());
    let marks = "^".repeat(carets);
    format!("{}\n  {blank} | {gap}{padding}{marks}", first.trim_end())
}

/// The operands of a line; `None` for one whose own line failed.
type Operands = SmallVec<[Option<Id>; 4]>;

#[derive(Default)]
struct Parser<'a> {
    graph: Graph,
    places: Places,
    /// The line of each name, and its node; `None` before that line, and if it has an error or
    /// refers to one that has.
    names: HashMap<&'a str, (usize, Option<Id>)>,
    /// What is declared, and on which line; `None` if that failed.
    declarations: HashMap<&'a str, (usize, Option<Arc<Declaration>>)>,
    source: &'a str,
    errors: Vec<ParseError>,
    /// The line at hand, from 1, and its text.
    line: usize,
    text: &'a str,
    /// The line of the SINK, and whether a node after it was reported.
    sink: Option<usize>,
    trailing: bool,
}

impl<'a> Parser<'a> {
    fn run(mut self, source: &'a str) -> Result<Parsed, ParseErrors> {
        self.source = source;
        let mut lines = (1..)
            .zip(source.split('\n'))
            .map(|(line, text)| (line, text, Cursor::new(text)))
            .filter(|(_, _, cursor)| !cursor.is_end())
            .peekable();
        // Names first, so that a use before the definition is told from one without any.
        for (line, text) in (1..).zip(source.split('\n')) {
            if let Kind::Name(name) = Cursor::new(text).token.kind {
                self.names.entry(name).or_insert((line, None));
            }
        }

        let mut last = None;
        let mut known = true;
        if let Some((line, text, cursor)) = lines.peek_mut() {
            (self.line, self.text) = (*line, *text);
            let is_node = matches!(cursor.token.kind, Kind::Name(_) | Kind::At(_));
            known = self.version(cursor).unwrap_or_else(|fault| {
                self.report(fault);
                true
            });
            // The version line is missing; what is there is the first node.
            if !is_node {
                lines.next();
            }
        } else {
            self.report_at_end(&format!("the version line `uopc {VERSION}`"));
        }
        // Nothing is known of the lines of another version.
        for (line, text, mut cursor) in lines.take_while(|_| known) {
            (self.line, self.text) = (line, text);
            last = match cursor.token.kind {
                Kind::At(name) => {
                    self.declare(&mut cursor, name).unwrap_or_else(|fault| self.report(fault));
                    None
                }
                _ => self.define(&mut cursor),
            };
        }
        // A last line that failed was perhaps meant as the SINK.
        if self.sink.is_none() && (last.is_some() || self.errors.is_empty()) {
            self.report_at_end("a `sink` line");
        }
        match last {
            Some(sink) if self.errors.is_empty() => {
                Ok(Parsed { graph: self.graph, sink, places: self.places })
            }
            _ => {
                // A body may be at fault above the line that says so.
                self.errors.sort_by_key(|error| error.place.line);
                Err(ParseErrors { errors: self.errors })
            }
        }
    }

    fn report(&mut self, fault: Fault) {
        let place = Place { line: self.line, column: fault.column, length: fault.length };
        self.errors.push(ParseError {
            place,
            message: fault.message,
            snippet: snippet_of(self.text, place),
        });
    }

    /// Reports that the text ends where `what` was expected.
    fn report_at_end(&mut self, what: &str) {
        self.line = self.line.max(1);
        let mut cursor = Cursor::new(self.text);
        while !cursor.is_end() {
            cursor.advance();
        }
        let message = format!("expected {what}, found the end of the text");
        self.report(cursor.token.fault(message));
    }

    /// Takes the version line; false if it is that of another version.
    fn version(&mut self, c: &mut Cursor<'a>) -> Result<bool, Fault> {
        let what = format!("the version line `uopc {VERSION}`");
        if !c.eat("uopc") {
            let mut fault = c.expected(&what);
            fault.message += "; it comes first";
            return Err(fault);
        }
        let token = c.any_word("a version number")?;
        if token.raw != VERSION.to_string() {
            let found = shown(token.raw);
            self.report(token.fault(format!("unknown version {found}, expected {what}")));
            return Ok(false);
        }
        c.end().map(|()| true)
    }

    /// Takes the line of a node; `None` if it failed.
    fn define(&mut self, c: &mut Cursor<'a>) -> Option<Id> {
        let name = match c.token.kind {
            Kind::Name(name) => Some(name),
            _ => None,
        };
        let node = self.node(c).unwrap_or_else(|fault| {
            self.report(fault);
            None
        });
        if let Some((line, known)) = name.and_then(|name| self.names.get_mut(name))
            && *line == self.line
        {
            *known = node;
        }
        node
    }

    /// Takes the line of a node; `None` if it refers to a line that failed.
    fn node(&mut self, c: &mut Cursor<'a>) -> Result<Option<Id>, Fault> {
        let Kind::Name(name) = c.token.kind else {
            return Err(c.expected("a definition, `%name = …`"));
        };
        let token = c.advance();
        match self.names.get(name) {
            Some((first, _)) if *first < self.line => {
                return token.fail(format!("`%{name}` is defined twice, first on line {first}"));
            }
            _ => c.expect("=")?,
        }

        let word = c.any_word("an op")?;
        let (head, suffix) = word.split(word.raw.find('.'));
        let op = named("op", &head, Op::ALL)?;
        if let (Some(first), Op::Sink) = (self.sink, op) {
            let message =
                format!("expected one `sink`, found another; the first is on line {first}");
            return word.fail(message);
        }
        self.nothing_trails(&word, op.name())?;
        if op == Op::Sink {
            self.sink = Some(self.line);
        }
        let is_stated = op.result() == ResultType::Stated && op != Op::Custom;
        let mut dtype = match suffix {
            Some(suffix) if is_stated => named("dtype", &suffix, &DType::ALL)?,
            Some(suffix) if op.result() == ResultType::Sized => {
                named("dtype", &suffix, &[DType::Index, DType::I32, DType::I64])?
            }
            None if op.result() == ResultType::Sized => DType::Index,
            None if is_stated => {
                let message = format!("expected `{op}` with a dtype, such as `{op}.f32`");
                return word.fail(message);
            }
            Some(_) => {
                let found = shown(word.raw);
                return word.fail(format!("expected `{op}` without a dtype, found {found}"));
            }
            // Until the sources are known.
            None => DType::Void,
        };

        let mut src = Operands::new();
        match op {
            Op::Param | Op::Buffer => c.list(|c| self.operand(c, &mut src))?,
            Op::Reshape | Op::Index => {
                self.operand(c, &mut src)?;
                c.list(|c| self.operand(c, &mut src))?;
            }
            Op::Range | Op::Special | Op::Load | Op::Sink => self.operand(c, &mut src)?,
            Op::Store => {
                self.operand(c, &mut src)?;
                c.expect(",")?;
                self.operand(c, &mut src)?;
            }
            // These have none, and those of a CUSTOM stand behind the operation.
            Op::Const | Op::Variable | Op::Custom | Op::Argument => {}
            _ if c.is_end() => {}
            _ => c.commas(|c| self.operand(c, &mut src))?,
        }
        let arg = match op {
            Op::Param => {
                c.expect("slot")?;
                let (slot, mutable) = (c.number()?, c.eat("mut"));
                Arg::Param(Box::new(Param { slot, mutable, name: c.quoted()? }))
            }
            Op::Variable => {
                let lo = bound(c)?;
                c.expect("to")?;
                let hi = bound(c)?;
                Arg::Variable(Box::new(Variable { lo, hi, name: c.quoted()? }))
            }
            Op::Buffer => {
                c.expect("number")?;
                Arg::Buffer(c.number()?)
            }
            Op::Const => {
                let value = c.any_word("a value")?;
                let constant = constant(value.raw, dtype);
                Arg::Const(constant.map_err(|message| value.fault(message))?)
            }
            Op::Range => {
                c.expect("axis")?;
                let number = c.number()?;
                let kind = c.any_word("an axis type")?;
                let kind = named("axis type", &kind, &AxisType::ALL)?;
                Arg::Range(Axis { number, kind })
            }
            Op::Special => {
                let index = c.any_word("a hardware index")?;
                Arg::Special(named("hardware index", &index, &Special::ALL)?)
            }
            Op::Load | Op::Store => Arg::Access(self.access(c, &mut src, op)?),
            Op::Custom => {
                let Some(custom) = self.operation(c)? else { return Ok(None) };
                let contract = custom.contract();
                if !contract.args.is_empty() {
                    c.commas(|c| self.operand(c, &mut src))?;
                }
                let (wanted, found) = (contract.args.len(), src.len());
                if found != wanted {
                    let message =
                        format!("expected {wanted} operands of `{custom}`, found {found}");
                    return word.fail(message);
                }
                dtype = contract.result;
                let access = self.access(c, &mut src, op)?;
                let number = if c.eat("number") { c.number()? } else { 0 };
                Arg::Custom { custom, number, access }
            }
            Op::Argument => Arg::Argument { number: c.number()?, pointer: c.eat("pointer") },
            Op::Sink => Arg::Sink(c.quoted()?),
            _ => Arg::None,
        };
        c.end()?;
        if !op.arity().admits(src.len()) {
            let message = format!("expected {} of `{op}`, found {}", op.arity(), src.len());
            return word.fail(message);
        }

        let Some(src) = src.into_iter().collect::<Option<Sources>>() else {
            return Ok(None);
        };
        let dtype = op.result().dtype(dtype, |k| self.graph[src[k]].dtype);
        let node = Node { op, dtype, src, arg };
        Ok(Some(self.intern(node, token.raw, word.column, c.end - word.column)))
    }

    /// Fails once if there was a SINK before `found`.
    fn nothing_trails(&mut self, token: &Token<'a>, found: &str) -> Result<(), Fault> {
        match self.sink {
            Some(first) if !std::mem::replace(&mut self.trailing, true) => token.fail(format!(
                "expected nothing after the `sink` of line {first}, found `{found}`; \
                 the `sink` line is the last"
            )),
            _ => Ok(()),
        }
    }

    /// Takes `@name = define …`.
    fn declare(&mut self, c: &mut Cursor<'a>, name: &'a str) -> Result<(), Fault> {
        let token = c.advance();
        if let Some((first, _)) = self.declarations.get(name) {
            return token.fail(format!("`@{name}` is defined twice, first on line {first}"));
        }
        self.declarations.insert(name, (self.line, None));
        c.expect("=")?;
        let word = c.token.clone();
        c.expect("define")?;
        self.nothing_trails(&word, "define")?;
        let mut args = Vec::new();
        c.list(|c| argument(c).map(|arg| args.push(arg)))?;
        let result = named("dtype", &c.any_word("a dtype")?, &DType::ALL)?;
        let effects: Vec<Effect> = Effect::all().collect();
        let effect = named("effect", &c.any_word("an effect")?, &effects)?;
        let mut root = Operands::new();
        if c.eat("body") {
            self.operand(c, &mut root)?;
        }
        let mut declaration = Declaration::new(name);
        while !c.is_end() {
            let target = c.any_word("the name of a target")?;
            let target = named("target", &target, &TARGETS)?;
            let text = c.token.clone();
            let template = c.quoted()?;
            fill(&template, &vec![String::new(); args.len()])
                .map_err(|message| text.fault(message))?;
            if declaration.templates.insert(target.into(), template).is_some() {
                return text.fail(format!("a second template for `{target}`"));
            }
        }
        declaration.contract = Contract { args, result, effect };
        let root = match root[..] {
            [None] => return Ok(()),
            [Some(root)] => Some(root),
            _ => None,
        };
        declaration.body = root.map(|root| self.graph.body(root));
        if let Err(DeclarationError { node, message }) = declaration.check() {
            let Some((node, root)) = node.zip(root) else { return word.fail(message) };
            // The body is at fault: there, and by the names of the text.
            let body = self.graph.canonical(root).0;
            let origin = |node| body.origin(body.nth(node));
            let place = self.places.places[origin(node).index()];
            let name_of = |node| self.places.names.get(origin(node).index()).cloned();
            let message = rename(&message, |node| (node < body.len()).then(|| name_of(node))?);
            let message = format!("in the body of `@{name}`: {message}");
            let snippet = snippet(self.source, place.line, place.column, place.length);
            self.errors.push(ParseError { place, message, snippet });
            return Ok(());
        }
        self.declarations.insert(name, (self.line, Some(Arc::new(declaration))));
        Ok(())
    }

    /// Takes the operation of a CUSTOM; `None` if its definition failed.
    fn operation(&self, c: &mut Cursor<'a>) -> Result<Option<Custom>, Fault> {
        let Kind::At(name) = c.token.kind else {
            return custom(&c.any_word("an operation")?).map(Some);
        };
        let token = c.advance();
        match self.declarations.get(name) {
            Some((_, declaration)) => Ok(declaration.as_ref().map(Custom::from)),
            None => {
                token.fail(format!("undefined operation `@{name}`; `define` it on a line above"))
            }
        }
    }

    fn intern(&mut self, node: Node, name: &str, column: usize, length: usize) -> Id {
        let n = self.graph.intern(node);
        // Ids ascend by one: a new node has no place yet.
        if n.index() == self.places.places.len() {
            self.places.places.push(Place { line: self.line, column, length });
            self.places.names.push(name.into());
        }
        n
    }

    /// Takes an operand.
    fn operand(&mut self, c: &mut Cursor<'a>, src: &mut Operands) -> Result<(), Fault> {
        match c.token.kind {
            Kind::Name(name) => {
                let token = c.advance();
                src.push(self.resolve(name, &token)?);
            }
            Kind::Word(word) if is_integer(word) => {
                let token = c.advance();
                let value = integer(word).map_err(|message| token.fault(message))?;
                let node = Node::new(Op::Const, DType::Index, []);
                let node = node.with_arg(Arg::Const(Const::Int(value)));
                src.push(Some(self.intern(node, token.raw, token.column, token.length)));
            }
            _ => {
                c.tried.extend(["a `%name`", "an integer"]);
                let mut fault = c.unexpected();
                if matches!(c.token.kind, Kind::Word(word) if constant(word, DType::F32).is_ok()) {
                    fault.message += "; a constant of another dtype has a line of its own";
                }
                return Err(fault);
            }
        }
        Ok(())
    }

    /// The node called `name`; `None` if its line failed.
    fn resolve(&self, name: &str, token: &Token<'_>) -> Result<Option<Id>, Fault> {
        let found = shown(token.raw);
        let message = match self.names.get(name) {
            None => format!("undefined name {found}"),
            Some(&(line, node)) if line < self.line => return Ok(node),
            Some((line, _)) if *line == self.line => {
                format!("{found} is used in its own definition")
            }
            Some((line, _)) => {
                format!("{found} is used before its definition, which is on line {line}")
            }
        };
        Err(token.fault(message))
    }

    /// Takes the gate and the flags of an access.
    fn access(&mut self, c: &mut Cursor<'a>, src: &mut Operands, op: Op) -> Result<Access, Fault> {
        if c.eat("if") {
            self.operand(c, src)?;
            if op == Op::Load && c.eat("else") {
                self.operand(c, src)?;
            }
        }
        let mut access = Access::default();
        loop {
            if !access.inbounds && c.eat("inbounds") {
                access.inbounds = true;
            } else if op != Op::Load && !access.assume_disjoint && c.eat("disjoint") {
                access.assume_disjoint = true;
            } else {
                return Ok(access);
            }
        }
    }
}

/// A bound of a VARIABLE.
fn bound(c: &mut Cursor<'_>) -> Result<i64, Fault> {
    let word = c.any_word("an integer")?;
    let value = constant(word.raw, DType::I64).map_err(|message| word.fault(message))?;
    Ok(value.as_int().and_then(|value| value.try_into().ok()).expect("it is an i64"))
}

/// Takes an argument of a definition.
fn argument(c: &mut Cursor<'_>) -> Result<CustomArg, Fault> {
    let is_pointer = c.eat("pointer");
    let dtype = named("dtype", &c.any_word("a dtype")?, &DType::ALL)?;
    if !is_pointer {
        return Ok(CustomArg::Value(dtype));
    }
    let elements = if c.eat("x") { c.number()? } else { 1 };
    Ok(CustomArg::Pointer { dtype, elements })
}

/// The operation called `token`, such as `atomic_add.f32`.
fn custom(token: &Token<'_>) -> Result<Custom, Fault> {
    let (word, suffix) = token.split(token.raw.rfind('.'));
    let known: Vec<Custom> = Custom::all(DType::I32).collect();
    let name = named("operation", &word, &known)?.to_string();
    let Some(suffix) = suffix else {
        return word.fail(format!("expected an operation with a dtype, such as `{name}.i32`"));
    };
    let dtype = named("dtype", &suffix, &DType::ALL)?;
    let custom = Custom::all(dtype).find(|custom| custom.to_string() == name);
    let custom = custom.expect("the name is one of them");
    let fault = |advice| suffix.fault(format!("no `{name}` of `{dtype}`; {advice}"));
    custom.check().map_err(fault)?;
    Ok(custom)
}
