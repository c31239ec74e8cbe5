//! What every later module relies on: sources of the right number, kind and dtype. Regions and
//! binders are checked by `plan`, lengths by `plan` and `machine`.

use uop::{Arg, Arity, AxisType, CustomArg, DType, Effect, Graph, Id, Node, Op};

use crate::error::{Error, ErrorKind};
use crate::normalize::Kernel;

/// What a node stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// A scalar of its dtype.
    Value,
    /// An element of memory.
    Address,
    /// A PARAM, a BUFFER or a view of one.
    Storage,
    /// What is done.
    Effect,
    /// What is done, and a scalar of its dtype.
    Fetch,
    /// The root.
    Sink,
}

impl Class {
    /// The class of `n`; of an AFTER that of what it passes on.
    pub(crate) fn of(graph: &Graph, n: Id) -> Class {
        let mut n = n;
        loop {
            let node = &graph[n];
            match node.op {
                Op::Param | Op::Buffer | Op::Reshape => return Class::Storage,
                Op::Index => return Class::Address,
                Op::Store | Op::Group | Op::End => return Class::Effect,
                Op::Custom if node.is_fetch() => return Class::Fetch,
                Op::Custom if node.dtype == DType::Void => return Class::Effect,
                Op::Custom | Op::Argument => return Class::Value,
                Op::Sink => return Class::Sink,
                Op::After => match node.src.first() {
                    Some(&s) => n = s,
                    None => return Class::Effect,
                },
                Op::Const | Op::Variable | Op::Range | Op::Special | Op::Load => {
                    return Class::Value;
                }
                Op::Neg
                | Op::Add
                | Op::Sub
                | Op::Mul
                | Op::Max
                | Op::Min
                | Op::And
                | Op::Or
                | Op::CmpLt
                | Op::CmpNe
                | Op::CmpEq
                | Op::Where
                | Op::Cast => return Class::Value,
            }
        }
    }
}

/// Checks every node of `kernel`.
pub(crate) fn check(kernel: &Kernel) -> Result<(), Error> {
    let graph = &kernel.graph;
    if graph[kernel.sink].op != Op::Sink {
        return Err(ErrorKind::NotASink.at(kernel.origin(kernel.sink)));
    }
    let mut slots: Vec<(u32, Id)> = Vec::new();
    // Whether a value follows from constants.
    let mut constant = vec![false; graph.len()];
    for n in graph.reachable(kernel.sink) {
        let node = &graph[n];
        Checker { kernel, constant: &constant, node }
            .node()
            .map_err(|kind| kind.at(kernel.origin(n)))?;
        constant[n.index()] = node.op == Op::Const
            || node.op.is_arithmetic() && node.src.iter().all(|s| constant[s.index()]);
        if let Arg::Param(param) = &node.arg {
            match slots.iter().find(|(slot, _)| *slot == param.slot) {
                Some(&(slot, other)) => {
                    let other = kernel.origin(other);
                    return Err(ErrorKind::SlotTaken { slot, other }.at(kernel.origin(n)));
                }
                None => slots.push((param.slot, n)),
            }
        }
    }
    Ok(())
}

struct Checker<'a> {
    kernel: &'a Kernel,
    constant: &'a [bool],
    node: &'a Node,
}

impl Checker<'_> {
    fn node(&self) -> Result<(), ErrorKind> {
        let Node { op, dtype, src, arg } = self.node;
        let (op, dtype) = (*op, *dtype);
        if op == Op::Special || self.node.axis().is_some_and(|axis| axis.kind == AxisType::Thread) {
            return Err(ErrorKind::Lowered { op });
        }
        let want = op.arity();
        if !want.admits(src.len()) {
            return Err(ErrorKind::Arity { op, want, got: src.len() });
        }
        let carries = match (op, arg) {
            (Op::Param, Arg::Param(_)) => true,
            (Op::Buffer, Arg::Buffer(_)) => true,
            (Op::Const, Arg::Const(value)) => value.fits(dtype),
            (Op::Range, Arg::Range(_)) => true,
            (Op::Load | Op::Store, Arg::Access(_) | Arg::None) => true,
            (Op::Custom, Arg::Custom { custom, .. }) => custom.check().is_ok(),
            (Op::Sink, Arg::Sink(_)) => true,
            // One with a name has been replaced by its value.
            (Op::Variable, _) => false,
            (Op::Param | Op::Buffer | Op::Const | Op::Range | Op::Custom | Op::Sink, _) => false,
            // Its body has been put in place of what is declared.
            (Op::Argument, _) => false,
            (_, arg) => matches!(arg, Arg::None),
        };
        if !carries {
            return Err(ErrorKind::Arg { op });
        }
        match op {
            Op::Param | Op::Buffer => {
                self.is(dtype.size().is_some())?;
                self.lengths(0)
            }
            Op::Const | Op::Argument => Ok(()),
            Op::Range => {
                self.is(dtype == DType::Index)?;
                self.value(0, DType::Index)
            }
            Op::Reshape => {
                self.source(0, Class::Storage, dtype)?;
                self.lengths(1)
            }
            Op::Index => {
                self.source(0, Class::Storage, dtype)?;
                let rank = self.kernel.graph.shape(src[0]).map_or(0, <[Id]>::len);
                if src.len() - 1 != rank {
                    return Err(ErrorKind::Rank { want: rank, got: src.len() - 1 });
                }
                (1..src.len()).try_for_each(|i| self.value(i, DType::Index))
            }
            Op::Load => {
                self.source(0, Class::Address, dtype)?;
                self.gate(1)?;
                if src.len() > 2 { self.value(2, dtype) } else { Ok(()) }
            }
            Op::Store => {
                self.is(dtype == DType::Void)?;
                let element = self.kernel.graph[src[0]].dtype;
                self.source(0, Class::Address, element)?;
                self.value(1, element)?;
                self.writes(0)?;
                self.gate(2)
            }
            Op::Custom => {
                let Arg::Custom { custom, .. } = arg else {
                    unreachable!("the arg of a CUSTOM was checked above")
                };
                let contract = custom.contract();
                self.is(dtype == contract.result)?;
                let args = contract.args.len();
                let want = Arity::Between(args, args + 1);
                if !want.admits(src.len()) {
                    return Err(ErrorKind::Arity { op, want, got: src.len() });
                }
                for (i, arg) in contract.args.iter().enumerate() {
                    match *arg {
                        CustomArg::Value(dtype) => self.value(i, dtype)?,
                        CustomArg::Pointer { dtype, .. } => {
                            self.source(i, Class::Address, dtype)?;
                            if contract.effect.changes() {
                                self.writes(i)?;
                            }
                        }
                    }
                }
                // What touches nothing has no gate.
                self.source_if(args, src.len() == args || contract.effect != Effect::Pure)?;
                self.gate(args)
            }
            Op::After => {
                self.is(dtype == self.kernel.graph[src[0]].dtype)?;
                (0..src.len()).try_for_each(|i| self.source_if(i, self.class(i) != Class::Sink))
            }
            Op::Group => {
                self.is(dtype == DType::Void)?;
                (0..src.len()).try_for_each(|i| self.effect(i))
            }
            Op::End => {
                self.is(dtype == DType::Void)?;
                self.effect(0)?;
                (1..src.len()).try_for_each(|i| {
                    let range = self.kernel.graph[src[i]].op == Op::Range;
                    self.source_if(i, range && !src[1..i].contains(&src[i]))
                })
            }
            Op::Sink => {
                self.is(dtype == DType::Void)?;
                self.effect(0)
            }
            Op::Neg | Op::Add | Op::Sub | Op::Mul | Op::Max | Op::Min => {
                self.is(dtype.is_number())?;
                (0..src.len()).try_for_each(|i| self.value(i, dtype))
            }
            Op::And | Op::Or => {
                self.is(dtype == DType::Bool || dtype.int_range().is_some())?;
                (0..src.len()).try_for_each(|i| self.value(i, dtype))
            }
            Op::CmpLt | Op::CmpNe | Op::CmpEq => {
                self.is(dtype == DType::Bool)?;
                let operand = self.kernel.graph[src[0]].dtype;
                self.source_if(0, op != Op::CmpLt || operand.is_number())?;
                (0..src.len()).try_for_each(|i| self.value(i, operand))
            }
            Op::Where => {
                self.value(0, DType::Bool)?;
                self.value(1, dtype)?;
                self.value(2, dtype)
            }
            Op::Cast => {
                self.is(dtype != DType::Void)?;
                self.value(0, self.kernel.graph[src[0]].dtype)
            }
            Op::Special | Op::Variable => unreachable!("refused or replaced above"),
        }
    }

    /// The dtype of the node is right.
    fn is(&self, right: bool) -> Result<(), ErrorKind> {
        let Node { op, dtype, .. } = *self.node;
        if right { Ok(()) } else { Err(ErrorKind::DType { op, dtype }) }
    }

    fn class(&self, position: usize) -> Class {
        Class::of(&self.kernel.graph, self.node.src[position])
    }

    fn source_if(&self, position: usize, right: bool) -> Result<(), ErrorKind> {
        if right {
            return Ok(());
        }
        let source_id = self.kernel.origin(self.node.src[position]);
        Err(ErrorKind::Source { op: self.node.op, position, source_id })
    }

    fn source(&self, position: usize, class: Class, dtype: DType) -> Result<(), ErrorKind> {
        let is = self.kernel.graph[self.node.src[position]].dtype;
        let admitted = match self.class(position) {
            Class::Fetch => class == Class::Effect || class == Class::Value && is == dtype,
            found => found == class && is == dtype,
        };
        self.source_if(position, admitted)
    }

    fn value(&self, position: usize, dtype: DType) -> Result<(), ErrorKind> {
        self.source(position, Class::Value, dtype)
    }

    /// The source at `position` is an effect; a CUSTOM with a value stands for its effect as well.
    fn effect(&self, position: usize) -> Result<(), ErrorKind> {
        let source = &self.kernel.graph[self.node.src[position]];
        let void = self.class(position) == Class::Effect && source.dtype == DType::Void;
        self.source_if(position, void || source.is_effect())
    }

    /// The source at `position`, if there is one, is a gate.
    fn gate(&self, position: usize) -> Result<(), ErrorKind> {
        if position < self.node.src.len() { self.value(position, DType::Bool) } else { Ok(()) }
    }

    /// The sources from `first` are lengths.
    fn lengths(&self, first: usize) -> Result<(), ErrorKind> {
        for i in first..self.node.src.len() {
            self.value(i, DType::Index)?;
            if !self.constant[self.node.src[i].index()] {
                return Err(ErrorKind::NotConstant);
            }
        }
        Ok(())
    }

    /// The address at `position` may be written.
    fn writes(&self, position: usize) -> Result<(), ErrorKind> {
        let graph = &self.kernel.graph;
        let storage = graph.storage(self.node.src[position]);
        match storage.map(|n| (n, &graph[n].arg)) {
            Some((n, Arg::Param(param))) if !param.mutable => {
                Err(ErrorKind::ReadOnly { param: self.kernel.origin(n) })
            }
            _ => Ok(()),
        }
    }
}
