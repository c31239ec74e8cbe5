//! Operations that a user declares: what they take and do, and how targets spell or do them.
//!
//! [`Declaration::check`] says what is wrong with one; the parser and the verifier report it, and
//! whoever meets a declaration in a verified graph may rely on it.

use std::collections::{BTreeMap, BTreeSet};

use crate::custom::{Contract, Custom, CustomArg, Effect};
use crate::dtype::DType;
use crate::graph::{Arg, Graph, Id, Node};
use crate::op::Op;
use crate::verify::{self, is_identifier};

/// The targets for which there can be templates.
pub const TARGETS: [&str; 2] = ["c", "hip"];

/// An operation of the user's own: its contract, and what it is, as a body in UOps or as text.
///
/// ```
/// use uop::{DType, Declaration, Effect};
///
/// let declaration = Declaration::new("square")
///     .value(DType::F32)
///     .result(DType::F32)
///     .effect(Effect::Pure)
///     .body(|_, args| args[0] * args[0]);
/// assert_eq!(declaration.check(), Ok(()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Declaration {
    pub(crate) name: Box<str>,
    pub(crate) contract: Contract,
    /// By target.
    pub(crate) templates: BTreeMap<Box<str>, Box<str>>,
    /// The nodes of a canonical graph, the root last; an id is a position.
    pub(crate) body: Option<Box<[Node]>>,
    /// Why the body could not be built.
    pub(crate) fault: Option<Box<str>>,
}

/// What is wrong with a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclarationError {
    /// The node of the body, by position, if it is one.
    pub node: Option<usize>,
    /// What was expected and found; nodes of the body are named by position, as `%2`.
    pub message: String,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text as it is.
    Text(String),
    /// The text of this argument.
    Arg(usize),
}

impl Declaration {
    /// An operation called `name`, an identifier, that takes nothing, is nothing and does nothing.
    pub fn new(name: &str) -> Declaration {
        let contract = Contract { args: Vec::new(), result: DType::Void, effect: Effect::Pure };
        let templates = BTreeMap::new();
        Declaration { name: name.into(), contract, templates, body: None, fault: None }
    }

    /// One more argument: a value of `dtype`.
    #[must_use]
    pub fn value(self, dtype: DType) -> Declaration {
        self.arg(CustomArg::Value(dtype))
    }

    /// One more argument: the address of an element of `dtype`.
    #[must_use]
    pub fn pointer(self, dtype: DType) -> Declaration {
        self.pointer_to(dtype, 1)
    }

    /// One more argument: the address of the first of `elements` elements in a row.
    #[must_use]
    pub fn pointer_to(self, dtype: DType, elements: u32) -> Declaration {
        self.arg(CustomArg::Pointer { dtype, elements })
    }

    fn arg(mut self, arg: CustomArg) -> Declaration {
        self.contract.args.push(arg);
        self
    }

    /// It has a value of `dtype`; 0 or false where a gate is false.
    #[must_use]
    pub fn result(mut self, dtype: DType) -> Declaration {
        self.contract.result = dtype;
        self
    }

    /// What it does to the elements that it points to.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Declaration {
        self.contract.effect = effect;
        self
    }

    /// How `target`, one of [`TARGETS`], spells it: a text with `{0}`, `{1}`, … for the arguments,
    /// `&buffer[index]` for an address, and `{{` and `}}` for braces.
    ///
    /// # Safety
    ///
    /// The text becomes a part of source code, unread: there it must do what the contract says to
    /// the elements that it points to, and nothing else.
    // Whoever compiles and runs the source relies on this promise; no code here is unsafe.
    #[allow(unsafe_code)]
    #[must_use]
    pub unsafe fn template(mut self, target: &str, text: &str) -> Declaration {
        self.templates.insert(target.into(), text.into());
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it takes and does.
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// How `target` spells it.
    pub fn template_for(&self, target: &str) -> Option<&str> {
        self.templates.get(target).map(|text| &**text)
    }

    /// What it is in UOps: a graph and its root. An ARGUMENT stands for each argument.
    pub fn uops(&self) -> Option<(Graph, Id)> {
        let mut graph = Graph::new();
        let ids = self.body.as_ref()?.iter().map(|node| graph.intern(node.clone()));
        ids.last().map(|root| (graph, root))
    }

    /// Whether [`Declaration::uops`] has something.
    pub fn has_body(&self) -> bool {
        self.body.is_some()
    }

    /// Whether it is declared as the rules of docs/ir.md say.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), DeclarationError> {
        let fail = |message: String| Err(DeclarationError { node: None, message });
        let Contract { args, result, effect } = &self.contract;
        if !is_identifier(&self.name) {
            let name = &self.name;
            return fail(format!(
                "the name {name:?} is not an identifier; use letters, digits and _"
            ));
        }
        if let Some(fault) = &self.fault {
            return fail(fault.to_string());
        }
        let results = Some(*result).filter(|&result| result != DType::Void);
        for dtype in args.iter().map(|arg| arg.dtype()).chain(results) {
            if dtype.size().is_none() {
                return fail(format!(
                    "an argument or result of {dtype}, expected a type with a size"
                ));
            }
        }
        let mut pointers = args.iter().filter(|arg| arg.is_pointer()).peekable();
        match (effect, pointers.peek()) {
            (Effect::Pure, Some(_)) => {
                return fail(
                    "declared `pure`, but with a pointer; say what it does there: reads, writes, …"
                        .into(),
                );
            }
            (Effect::Pure | Effect::Reads, _) if *result == DType::Void => {
                return fail(format!("declared `{effect}`, but without a result; add one"));
            }
            (Effect::Reads | Effect::Writes | Effect::Atomic(_), None) => {
                return fail(format!(
                    "declared `{effect}`, but without a pointer; add one, or make it pure"
                ));
            }
            _ => {}
        }
        for pointer in pointers {
            let &CustomArg::Pointer { dtype, elements } = pointer else { continue };
            if elements == 0 {
                return fail("a pointer to 0 elements, expected 1 or more".into());
            }
            if let &Effect::Atomic(op) = effect {
                let custom = Custom::Atomic { op, dtype };
                let of_first = args.iter().find(|arg| arg.is_pointer()).map(|arg| arg.dtype());
                if !custom.is_known() || of_first != Some(dtype) {
                    return fail(format!("{custom} does not work on {dtype}, or on several types"));
                }
            }
        }
        for (target, text) in &self.templates {
            if !TARGETS.contains(&&**target) {
                let known = TARGETS.join(", ");
                return fail(format!(
                    "a template for {target:?}, expected one of the targets {known}"
                ));
            }
            if let Err(message) = pieces(text, args.len()) {
                return fail(format!("in the template for {target}, {message}"));
            }
        }
        match self.uops() {
            Some((graph, root)) => self.check_body(&graph, root),
            None if self.body.is_some() => fail("the body is empty".into()),
            None => Ok(()),
        }
    }

    fn check_body(&self, graph: &Graph, root: Id) -> Result<(), DeclarationError> {
        let Contract { args, result, effect } = &self.contract;
        let fail =
            |n: Id, message: String| Err(DeclarationError { node: Some(n.index()), message });
        let mut used = BTreeSet::new();
        let mut touched = BTreeSet::new();
        for n in graph.reachable(root) {
            let node = &graph[n];
            match (node.op, &node.arg) {
                (Op::Argument, &Arg::Argument { number, pointer }) => {
                    let arg = args.get(number as usize).copied();
                    let is =
                        |arg: &CustomArg| arg.is_pointer() == pointer && arg.dtype() == node.dtype;
                    if !arg.as_ref().is_some_and(is) {
                        let found = if pointer { "a pointer to" } else { "a value of" };
                        let message = format!("argument {number} is no {found} {}", node.dtype);
                        return fail(n, message.replace("no a", "not a"));
                    }
                    if matches!(arg, Some(CustomArg::Pointer { elements: 2.., .. })) {
                        let message = "a body touches one element of each pointer; for more, \
                                       leave it out and add templates or a function";
                        return fail(n, message.into());
                    }
                    used.insert(number);
                }
                (Op::Load | Op::Store, _)
                | (Op::Custom, Arg::Custom { custom: Custom::Atomic { .. }, .. }) => {
                    let own = match (node.op, &node.arg, effect) {
                        (Op::Load, _, Effect::Reads) => Some(true),
                        (Op::Load, _, Effect::Writes) => Some(false),
                        (Op::Store, _, Effect::Writes) => Some(true),
                        (_, Arg::Custom { custom, .. }, _) if custom.effect() == *effect => {
                            Some(true)
                        }
                        _ => None,
                    };
                    let Some(own) = own else {
                        return fail(
                            n,
                            format!("{} in a body that is declared `{effect}`", node.op),
                        );
                    };
                    for address in node.addresses().into_iter().filter(|_| own) {
                        let mut at = address;
                        while graph[at].op == Op::After {
                            at = graph[at].src[0];
                        }
                        touched.insert(at);
                    }
                }
                (Op::Const | Op::After | Op::Group, _) => {}
                (op, _) if op.is_arithmetic() => {}
                (op, _) => return fail(n, format!("{op} in a body, which has arguments instead")),
            }
        }
        if let Err(error) = verify::body(graph, root, *result) {
            return fail(error.node, error.message);
        }
        for (number, arg) in (0..).zip(args) {
            if !used.contains(&number) {
                return fail(root, format!("the body does not use argument {number}"));
            }
            let is = |&n: &Id| graph[n].arg == Arg::Argument { number, pointer: true };
            if arg.is_pointer() && !touched.iter().any(is) {
                return fail(
                    root,
                    format!("declared `{effect}`, but that it does not do at argument {number}"),
                );
            }
        }
        Ok(())
    }
}

/// The parts of the template `text` of an operation with `args` arguments.
///
/// # Errors
///
/// What is no placeholder.
pub fn pieces(text: &str, args: usize) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '{' | '}' if rest.starts_with(c) => {
                rest = &rest[1..];
                plain.push(c);
            }
            '{' => {
                let (name, after) =
                    rest.split_once('}').ok_or("a single `{`, expected `{{` for a brace")?;
                let digits = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
                let Some(arg) = name.parse().ok().filter(|&arg: &usize| digits && arg < args)
                else {
                    return Err(match args {
                        0 => {
                            format!("`{{{name}}}` is no argument, there is none; `{{{{` is a brace")
                        }
                        _ => format!(
                            "`{{{name}}}` is no argument, expected `{{0}}` to `{{{}}}`; \
                             `{{{{` is a brace",
                            args - 1
                        ),
                    });
                };
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Arg(arg));
                rest = after;
            }
            '}' => return Err("a single `}`, expected `}}` for a brace".into()),
            c if c.is_control() => {
                return Err(format!("the control character `{}`", c.escape_debug()));
            }
            c => plain.push(c),
        }
    }
    pieces.push(Piece::Text(plain));
    Ok(pieces)
}
