//! The hash-consed graph.
//!
//! A [`Node`] is `(op, dtype, sources, arg)`. Equal nodes are one node with one [`Id`], and nodes
//! never change. Sources are interned before their users, so ascending id order is topological:
//! every walk is a loop over ids, whatever the depth of the graph. This module knows nothing of
//! what an op means; a graph may be nonsense until [`crate::verify()`] has seen it.

use std::fmt;
use std::ops::Index;

use indexmap::IndexSet;
use smallvec::SmallVec;

use crate::custom::{Custom, CustomArg, Effect};
use crate::dtype::{Const, DType};
use crate::op::{Op, ResultType};

/// A node of one [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u32);

impl Id {
    /// The position in the graph, for side tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    fn new(index: usize) -> Id {
        Id(u32::try_from(index).expect("a graph holds fewer than 2^32 nodes"))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// The sources of a node, in order.
pub type Sources = SmallVec<[Id; 4]>;

/// An operation with its operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// What it does.
    pub op: Op,
    /// The type of its value, or of the element for buffers and addresses.
    pub dtype: DType,
    /// Its operands.
    pub src: Sources,
    /// What the op needs beside operands.
    pub arg: Arg,
}

/// What a node carries beside its sources. Which variant an op takes is fixed; the verifier
/// rejects every other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Arg {
    /// Nothing.
    None,
    /// The value of a CONST.
    Const(Const),
    /// A PARAM.
    Param(Box<Param>),
    /// A VARIABLE.
    Variable(Box<Variable>),
    /// The number of a BUFFER.
    Buffer(u32),
    /// An ARGUMENT.
    Argument {
        /// Which one, from 0.
        number: u32,
        /// Whether it is an address.
        pointer: bool,
    },
    /// A RANGE.
    Range(Axis),
    /// A SPECIAL.
    Special(Special),
    /// What is known or waived of a LOAD or STORE.
    Access(Access),
    /// A CUSTOM.
    Custom {
        /// What it does.
        custom: Custom,
        /// What tells it from an equal one: an effect that is done twice counts twice.
        number: u32,
        /// What is known or waived of its addresses.
        access: Access,
    },
    /// The name of a SINK.
    Sink(Box<str>),
}

/// An argument of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// Its place among the arguments, from 0.
    pub slot: u32,
    /// Its name, an identifier.
    pub name: Box<str>,
    /// Whether the kernel may write it.
    pub mutable: bool,
}

/// An integer that a launch states. Two with one name are the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    /// Its name, an identifier.
    pub name: Box<str>,
    /// Its least value.
    pub lo: i64,
    /// Its greatest value.
    pub hi: i64,
}

/// A loop axis. The number is only a name, unique in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Axis {
    /// The name.
    pub number: u32,
    /// How its iterations relate.
    pub kind: AxisType,
}

/// How the iterations of a range relate to each other, and where they run on a target with a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AxisType {
    /// Parallel; the blocks of a grid.
    Global,
    /// Parallel; split among the threads of a CPU. Not in graphs as built.
    Thread,
    /// Parallel; the work-items of one block.
    Local,
    /// Serial, ascending.
    Loop,
}

impl AxisType {
    /// Every axis type, outermost first.
    pub const ALL: [AxisType; 4] =
        [AxisType::Global, AxisType::Thread, AxisType::Local, AxisType::Loop];

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        ["global", "thread", "local", "loop"][self as usize]
    }

    /// Whether its iterations are unordered.
    pub const fn is_parallel(self) -> bool {
        !matches!(self, AxisType::Loop)
    }
}

impl fmt::Display for AxisType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A hardware index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Special {
    /// The number of this block along dimension 0, 1 or 2 (x, y, z) of the grid.
    Block(u8),
    /// The number of this work-item along dimension 0, 1 or 2 of its block.
    Item(u8),
}

impl Special {
    /// Every hardware index.
    pub const ALL: [Special; 6] = {
        use Special::{Block, Item};
        [Block(0), Block(1), Block(2), Item(0), Item(1), Item(2)]
    };
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, dim) = match *self {
            Special::Block(dim) => ("block", dim),
            Special::Item(dim) => ("item", dim),
        };
        write!(f, "{word}.{}", ["x", "y", "z"].get(usize::from(dim)).unwrap_or(&"?"))
    }
}

/// What is known or waived of one access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// Proved: the address is within its buffer whenever the gate is true.
    pub inbounds: bool,
    /// Waived by the author: this write never meets another instance's access. If that is false,
    /// an affected element holds one of the values stored to it.
    pub assume_disjoint: bool,
}

impl Node {
    /// A node with no arg.
    pub fn new(op: Op, dtype: DType, src: impl IntoIterator<Item = Id>) -> Node {
        Node { op, dtype, src: src.into_iter().collect(), arg: Arg::None }
    }

    /// The same node with this arg.
    #[must_use]
    pub fn with_arg(self, arg: Arg) -> Node {
        Node { arg, ..self }
    }

    /// The axis of a RANGE.
    pub fn axis(&self) -> Option<Axis> {
        match self.arg {
            Arg::Range(axis) => Some(axis),
            _ => None,
        }
    }

    /// The value of a CONST.
    pub fn constant(&self) -> Option<Const> {
        match self.arg {
            Arg::Const(value) => Some(value),
            _ => None,
        }
    }

    /// The place of the gate among the sources of a LOAD, STORE or CUSTOM, if it has one.
    pub fn gate_slot(&self) -> Option<usize> {
        let slot = match (self.op, &self.arg) {
            (Op::Load, _) => 1,
            (Op::Store, _) => 2,
            (Op::Custom, Arg::Custom { custom, .. }) => custom.contract().args.len(),
            _ => return None,
        };
        (slot < self.src.len()).then_some(slot)
    }

    /// The gate of a LOAD, STORE or CUSTOM, if it has one.
    pub fn gate(&self) -> Option<Id> {
        self.gate_slot().map(|slot| self.src[slot])
    }

    /// Whether evaluating it touches memory.
    pub fn is_access(&self) -> bool {
        self.effect().is_some_and(|effect| effect != Effect::Pure)
    }

    /// Whether it is a value as well as an effect: a CUSTOM that changes memory and has a result.
    pub fn is_fetch(&self) -> bool {
        self.is_effect() && self.dtype != DType::Void
    }

    /// Whether it changes memory.
    pub fn is_effect(&self) -> bool {
        self.effect().is_some_and(Effect::changes)
    }

    /// What a LOAD, STORE or CUSTOM does to memory; `None` for other nodes.
    pub fn effect(&self) -> Option<Effect> {
        match (self.op, &self.arg) {
            (Op::Load, _) => Some(Effect::Reads),
            (Op::Store, _) => Some(Effect::Writes),
            (_, Arg::Custom { custom, .. }) => Some(custom.effect()),
            _ => None,
        }
    }

    /// What is known of an access; `None` for other nodes.
    pub fn access(&self) -> Option<Access> {
        match self.arg {
            Arg::Access(access) | Arg::Custom { access, .. } => Some(access),
            _ => None,
        }
    }

    /// The sources that are addresses.
    pub fn addresses(&self) -> SmallVec<[Id; 1]> {
        self.pointers().into_iter().map(|(address, _)| address).collect()
    }

    /// The sources that are addresses, and how many elements in a row are touched from each on.
    pub fn pointers(&self) -> SmallVec<[(Id, i128); 1]> {
        match (self.op, &self.arg) {
            (Op::Load | Op::Store, _) => self.src.first().map(|&id| (id, 1)).into_iter().collect(),
            (Op::Custom, Arg::Custom { custom, .. }) => {
                let contract = custom.contract();
                let pairs = self.src.iter().zip(&contract.args);
                let pointer = |(&id, arg): (&Id, &CustomArg)| match *arg {
                    CustomArg::Pointer { elements, .. } => Some((id, elements.into())),
                    CustomArg::Value(_) => None,
                };
                pairs.filter_map(pointer).collect()
            }
            _ => SmallVec::new(),
        }
    }
}

/// An arena of nodes in which equality is identity.
///
/// Beside each node stands its *origin*: the node of the authored graph that it came from, which
/// errors name. It plays no part in equality.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: IndexSet<Node>,
    origins: Vec<Id>,
    /// The origin of what is interned now, while a rebuild is under way.
    origin: Option<Id>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Returns the id of `node`, adding it if no equal node exists.
    ///
    /// # Panics
    ///
    /// If a source is not of this graph: sources are interned before their users.
    pub fn intern(&mut self, node: Node) -> Id {
        assert!(
            node.src.iter().all(|s| s.index() < self.nodes.len()),
            "sources are interned before their users"
        );
        let id = Id::new(self.nodes.insert_full(node).0);
        if id.index() == self.origins.len() {
            self.origins.push(self.origin.unwrap_or(id));
        }
        id
    }

    /// [`Graph::intern`], but a new node has the origin of `like`.
    pub fn intern_like(&mut self, like: Id, node: Node) -> Id {
        let origin = self.origin.replace(self.origin(like));
        let id = self.intern(node);
        self.origin = origin;
        id
    }

    /// The node of the authored graph that `n` came from: what it replaced in a
    /// [rebuild](Graph::rebuild), or was copied from into a [canonical](Graph::canonical) graph;
    /// `n` itself if it was authored here.
    pub fn origin(&self, n: Id) -> Id {
        self.origins[n.index()]
    }

    /// The node `op(src…)` without arg, its dtype taken from the op table.
    ///
    /// # Panics
    ///
    /// If the table has the dtype stated by the node, or taken from a source that is missing.
    pub fn op(&mut self, op: Op, src: &[Id]) -> Id {
        assert!(op.result() != ResultType::Stated, "{op} states its dtype");
        let dtype = op.result().dtype(DType::Index, |k| self[src[k]].dtype);
        self.intern(Node::new(op, dtype, src.iter().copied()))
    }

    /// The constant `value` of `dtype`.
    pub fn constant(&mut self, dtype: DType, value: Const) -> Id {
        self.intern(Node::new(Op::Const, dtype, []).with_arg(Arg::Const(value)))
    }

    /// The `index` constant `value`.
    pub fn index(&mut self, value: impl Into<i128>) -> Id {
        self.constant(DType::Index, Const::Int(value.into()))
    }

    /// `x` converted to `dtype`; `x` itself if it already is.
    pub fn cast(&mut self, x: Id, dtype: DType) -> Id {
        if self[x].dtype == dtype {
            return x;
        }
        self.intern(Node::new(Op::Cast, dtype, [x]))
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node that was interned as number `index`.
    ///
    /// # Panics
    ///
    /// If there are not that many.
    pub fn nth(&self, index: usize) -> Id {
        assert!(index < self.nodes.len(), "the graph has {} nodes", self.nodes.len());
        Id::new(index)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The value of `n` if it is a CONST.
    pub fn as_const(&self, n: Id) -> Option<Const> {
        self[n].constant()
    }

    /// The value of `n` if it is an integer CONST.
    pub fn as_int(&self, n: Id) -> Option<i128> {
        self.as_const(n).and_then(Const::as_int)
    }

    /// The axis of `n`, a RANGE.
    ///
    /// # Panics
    ///
    /// If `n` is no RANGE: callers have seen the op.
    pub fn axis(&self, n: Id) -> Axis {
        self[n].axis().expect("a range carries its axis")
    }

    /// Everything that `root` depends on, itself included, in ascending (topological) order.
    pub fn reachable(&self, root: Id) -> Vec<Id> {
        let mut seen = vec![false; root.index() + 1];
        seen[root.index()] = true;
        for i in (0..=root.index()).rev() {
            if seen[i] {
                for s in &self.nodes[i].src {
                    seen[s.index()] = true;
                }
            }
        }
        (0..=root.index()).filter(|&i| seen[i]).map(Id::new).collect()
    }

    /// The shape of a buffer, a view of one, or the view under an address: one `index` node per
    /// axis. `None` for other nodes.
    pub fn shape(&self, n: Id) -> Option<&[Id]> {
        let view = &self[self.view(n)?];
        if view.op == Op::Reshape { view.src.get(1..) } else { Some(&view.src) }
    }

    /// The PARAM, BUFFER or RESHAPE that gives a buffer, a view or the view under an address its
    /// shape.
    fn view(&self, mut n: Id) -> Option<Id> {
        loop {
            match self[n].op {
                Op::Param | Op::Buffer | Op::Reshape => return Some(n),
                Op::Index | Op::After => n = *self[n].src.first()?,
                _ => return None,
            }
        }
    }

    /// The PARAM or BUFFER under an address or a view; `None` if there is none.
    pub fn storage(&self, n: Id) -> Option<Id> {
        let mut view = self.view(n)?;
        while self[view].op == Op::Reshape {
            view = self.view(*self[view].src.first()?)?;
        }
        Some(view)
    }

    /// The PARAMs that `root` depends on, by ascending slot.
    pub fn params(&self, root: Id) -> Vec<Id> {
        self.ordered(root, |arg| match arg {
            Arg::Param(param) => Some(param.slot),
            _ => None,
        })
    }

    /// The VARIABLEs that `root` depends on, by name.
    pub fn variables(&self, root: Id) -> Vec<Id> {
        self.ordered(root, |arg| match arg {
            Arg::Variable(variable) => Some(&variable.name),
            _ => None,
        })
    }

    /// The nodes that `root` depends on and that have a key, in its order.
    fn ordered<'g, K: Ord>(&'g self, root: Id, key: impl Fn(&'g Arg) -> Option<K>) -> Vec<Id> {
        let mut nodes = self.reachable(root);
        nodes.retain(|&n| key(&self[n].arg).is_some());
        nodes.sort_by_key(|&n| key(&self[n].arg));
        nodes
    }

    /// Rebuilds what `root` depends on, sources first. `f` gets the graph, the old id and the node
    /// with its sources already replaced, and returns the id to use instead.
    pub fn rebuild(&mut self, root: Id, mut f: impl FnMut(&mut Graph, Id, Node) -> Id) -> Id {
        let mut new = vec![root; root.index() + 1];
        for n in self.reachable(root) {
            let mut node = self[n].clone();
            for s in &mut node.src {
                *s = new[s.index()];
            }
            self.origin = Some(self.origin(n));
            new[n.index()] = f(self, n, node);
        }
        self.origin = None;
        new[root.index()]
    }

    /// A fresh graph that holds only what `root` depends on: the PARAMs by slot, then the order of
    /// a walk from `root`, sources from left to right, then the node. The result, ids included,
    /// does not depend on how this graph was built. The origin of each node is that of this graph
    /// which it copies.
    pub fn canonical(&self, root: Id) -> (Graph, Id) {
        self.copy(root, |n| n)
    }

    /// The nodes of [`Graph::canonical`], `root` last; an id is a position.
    pub(crate) fn body(&self, root: Id) -> Box<[Node]> {
        self.canonical(root).0.nodes.into_iter().collect()
    }

    /// [`Graph::canonical`], but each node keeps the origin that it has here.
    pub fn compact(&self, root: Id) -> (Graph, Id) {
        self.copy(root, |n| self.origin(n))
    }

    fn copy(&self, root: Id, origin: impl Fn(Id) -> Id) -> (Graph, Id) {
        let mut out = Graph::new();
        let mut new: Vec<Option<Id>> = vec![None; root.index() + 1];
        let mut stack = vec![(root, 0)];
        stack.extend(self.params(root).into_iter().rev().map(|param| (param, 0)));
        while let Some((n, next)) = stack.pop() {
            if new[n.index()].is_some() {
                continue;
            }
            if let Some(&s) = self[n].src.get(next) {
                stack.push((n, next + 1));
                if new[s.index()].is_none() {
                    stack.push((s, 0));
                }
                continue;
            }
            let mut node = self[n].clone();
            for s in &mut node.src {
                *s = new[s.index()].expect("sources come first");
            }
            out.origin = Some(origin(n));
            new[n.index()] = Some(out.intern(node));
        }
        out.origin = None;
        let root = new[root.index()].expect("the root comes last");
        (out, root)
    }
}

impl Index<Id> for Graph {
    type Output = Node;

    fn index(&self, n: Id) -> &Node {
        &self.nodes[n.index()]
    }
}
