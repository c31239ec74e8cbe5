//! Operations that a user declares: what they take and do, and how targets spell or do them.
//!
//! [`Declaration::check`] says what is wrong with one; the parser and the verifier report it, and
//! whoever meets a declaration in a verified graph may rely on it.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::custom::{Contract, Custom, CustomArg, Effect};
use crate::dtype::DType;
use crate::graph::{Arg, Graph, Id, Node};
use crate::op::Op;
use crate::region;
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
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct DeclarationError {
    /// The node of the body, by position, if it is one.
    pub node: Option<usize>,
    /// What was expected and found; nodes of the body are named by position, as `%2`.
    pub message: String,
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

    /// Whether it is declared as the rules of docs/ir.md say.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), DeclarationError> {
        if let Some(message) = self.fault() {
            return Err(DeclarationError { node: None, message });
        }
        let Some((graph, root)) = self.uops() else { return Ok(()) };
        self.check_body(&graph, root)
    }

    /// What is wrong outside the body.
    fn fault(&self) -> Option<String> {
        let Contract { args, result, effect } = &self.contract;
        let mut dtypes: Vec<DType> = args.iter().map(|arg| arg.dtype()).collect();
        dtypes.extend(Some(*result).filter(|&result| result != DType::Void));
        let pointers = || args.iter().filter(|arg| arg.is_pointer());
        let on = |arg: &CustomArg| match *effect {
            Effect::Atomic(op) => op.works_on(arg.dtype()).is_ok(),
            _ => true,
        };
        let first = pointers().next();
        let same = |arg: &CustomArg| first.is_some_and(|first| first.dtype() == arg.dtype());
        let template = |(target, text): (&str, &str)| {
            if !TARGETS.contains(&target) {
                let known = TARGETS.join(", ");
                return Some(format!("a template for {target:?}, expected one for {known}"));
            }
            let message = fill(text, &vec![String::new(); args.len()]).err()?;
            Some(format!("in the template for {target}, {message}"))
        };
        Some(if !is_identifier(&self.name) {
            format!("the name {:?} is not an identifier; use letters, digits and _", self.name)
        } else if let Some(fault) = &self.fault {
            fault.to_string()
        } else if let Some(dtype) = dtypes.into_iter().find(|dtype| dtype.size().is_none()) {
            format!("an argument or result of {dtype}, expected a type with a size")
        } else if *effect == Effect::Pure && first.is_some() {
            "declared `pure`, but with a pointer; say what it does there: reads, writes, …".into()
        } else if *effect != Effect::Pure && first.is_none() {
            format!("declared `{effect}`, but without a pointer; add one, or make it pure")
        } else if !effect.changes() && *result == DType::Void {
            format!("declared `{effect}`, but without a result; add one")
        } else if args.iter().any(|arg| matches!(arg, CustomArg::Pointer { elements: 0, .. })) {
            "a pointer to 0 elements, expected 1 or more".into()
        } else if let Some(arg) = pointers().find(|arg| !on(arg)) {
            format!("declared `{effect}`, which does not work on {}", arg.dtype())
        } else if matches!(effect, Effect::Atomic(_)) && !pointers().all(same) {
            format!("declared `{effect}`, but on elements of several types")
        } else {
            return self.templates.iter().map(|(k, v)| (&**k, &**v)).find_map(template);
        })
    }

    fn check_body(&self, graph: &Graph, root: Id) -> Result<(), DeclarationError> {
        let fail = |n: Id, message| Err(DeclarationError { node: Some(n.index()), message });
        let Contract { args, result, effect } = &self.contract;
        let mut used = BTreeSet::new();
        let mut touched = BTreeSet::new();
        // Each with its pointer.
        let mut accesses: Vec<(Id, Id)> = Vec::new();
        for n in graph.reachable(root) {
            let node = &graph[n];
            let own = match (node.op, &node.arg, effect) {
                (Op::Argument, &Arg::Argument { number, pointer }, _) => {
                    used.insert(number);
                    match args.get(number as usize) {
                        Some(CustomArg::Pointer { elements: 2.., .. }) if pointer => {
                            let message = "a body touches one element of each pointer; for more, \
                                           leave it out and add templates or a function";
                            return fail(n, message.into());
                        }
                        Some(arg) if arg.is_pointer() == pointer && arg.dtype() == node.dtype => {}
                        _ => {
                            let kind = if pointer { "pointer to" } else { "value of" };
                            let message = format!("argument {number} is not a {kind}");
                            return fail(n, format!("{message} {}", node.dtype));
                        }
                    }
                    false
                }
                (Op::Load, _, Effect::Reads) | (Op::Store, _, Effect::Writes) => true,
                (Op::Custom, Arg::Custom { custom: Custom::Atomic { op, .. }, .. }, _)
                    if *effect == Effect::Atomic(*op) =>
                {
                    true
                }
                (Op::Load, _, Effect::Writes) | (Op::Const | Op::After | Op::Group, ..) => false,
                (op, ..) if op.is_arithmetic() => false,
                (op, ..) => return fail(n, format!("{op} in a body that is declared `{effect}`")),
            };
            for mut address in node.addresses() {
                while graph[address].op == Op::After {
                    address = graph[address].src[0];
                }
                let unordered = |&&(a, to): &&(Id, Id)| {
                    let meet = to == address && region::conflict(graph, a, n);
                    meet && !graph.reachable(n).contains(&a)
                };
                if let Some((a, _)) = accesses.iter().find(unordered) {
                    let message = format!("nothing orders {a} and this {}; use `after`", node.op);
                    return fail(n, message);
                }
                accesses.push((n, address));
                if own {
                    touched.insert(address);
                }
            }
        }
        verify::body(graph, root, *result).or_else(|error| fail(error.node, error.message))?;
        for (number, arg) in (0..).zip(args) {
            let is = |&n: &Id| graph[n].arg == Arg::Argument { number, pointer: true };
            if !used.contains(&number) {
                return fail(root, format!("the body does not use argument {number}"));
            } else if arg.is_pointer() && !touched.iter().any(is) {
                let message = format!("declared `{effect}`, but not so at argument {number}");
                return fail(root, message);
            }
        }
        Ok(())
    }
}

/// The template `text` with the text of each argument in its place.
///
/// # Errors
///
/// What is no placeholder.
pub fn fill(text: &str, args: &[String]) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '{' | '}' if rest.starts_with(c) => {
                rest = &rest[1..];
                filled.push(c);
            }
            '{' => {
                let (name, after) =
                    rest.split_once('}').ok_or("a single `{`, expected `{{` for a brace")?;
                let number = Some(name).filter(|name| name.bytes().all(|b| b.is_ascii_digit()));
                let number = number.and_then(|name| name.parse::<usize>().ok());
                filled += number.and_then(|number| args.get(number)).ok_or_else(|| {
                    format!(
                        "`{{{name}}}` is none of the {} arguments, from `{{0}}` on; `{{{{` is a brace",
                        args.len()
                    )
                })?;
                rest = after;
            }
            '}' => return Err("a single `}`, expected `}}` for a brace".into()),
            c if c.is_control() => {
                return Err(format!("the control character `{}`", c.escape_debug()));
            }
            c => filled.push(c),
        }
    }
    Ok(filled)
}
