use std::collections::HashMap;
use std::sync::Arc;

use slotmap::SlotMap;
use uop::{Arg, AxisType, Bounds, Const, Custom, DType, Graph, Id, Op, Order, Special};

use crate::caps::Caps;
use crate::error::{LowerError, LowerErrorKind};
use crate::program::{
    Address, CallArg, Expr, Launch, LaunchIndex, Program, ProgramParam, ProgramVariable,
    REGISTER_BYTES, Register, Size, Stmt, Storage, Value,
};
use crate::prove::strip_after;

/// Turns a graph in `Phase::Lowered` into structured loops.
///
/// Each node belongs to the block of its region: the body of the innermost of its ranges. Blocks
/// are filled in ascending id order, which is topological, and the loops of an END enter the block
/// around them at the END's own place; so whatever a node depends on stands before it, in its block
/// or in one around it.
///
/// `params` are the PARAMs of the kernel as written, by slot, and `variables` its VARIABLEs, by name:
/// one that a pass has made needless is still an argument.
///
/// # Errors
///
/// `LongSize` for an axis length or an extent of the launch that is too long an expression;
/// `RegistersTooLarge` for BUFFERs above [`REGISTER_BYTES`].
pub fn linearize(
    graph: &Graph,
    root: Id,
    params: &[Id],
    variables: &[Id],
    caps: &Caps,
) -> Result<Program, LowerError> {
    let launch = match caps.grid {
        Some(_) => Launch::Grid { grid: [1, 1, 1].map(Size::from), block: [1; 3] },
        None => Launch::Range { extent: Size::from(1) },
    };
    let Arg::Sink(name) = &graph[root].arg else {
        unreachable!("the verifier rejects a root that is no sink")
    };
    let mut lin = Linearizer {
        graph,
        variables,
        order: Order::of(graph, root),
        bounds: Bounds::new(),
        program: Program {
            name: name.to_string(),
            params: Vec::new(),
            variables: variables.iter().map(|&n| ProgramVariable::of(graph, n, caps)).collect(),
            registers: Vec::new(),
            launch,
            customs: Vec::new(),
            values: SlotMap::with_key(),
            body: Vec::new(),
        },
        registers: HashMap::new(),
        values: HashMap::new(),
        literals: HashMap::new(),
        blocks: HashMap::new(),
    };
    lin.place_storage(root, params)?;
    for n in graph.reachable(root) {
        lin.place(n)?;
    }
    lin.program.body = lin.blocks.remove(&None).unwrap_or_default();
    debug_assert!(lin.blocks.is_empty(), "the verifier rejects a range that no end closes");
    Ok(lin.program)
}

struct Linearizer<'g> {
    graph: &'g Graph,
    /// The VARIABLEs, by number.
    variables: &'g [Id],
    order: Order,
    bounds: Bounds,
    program: Program,
    registers: HashMap<Id, Storage>,
    values: HashMap<Id, Value>,
    literals: HashMap<(DType, Const), Value>,
    /// The statements of each block, by the innermost range around it: a range has one binder, so
    /// the ranges around that are the same for all.
    blocks: HashMap<Option<Id>, Vec<Stmt>>,
}

impl Linearizer<'_> {
    /// Lists the PARAMs by slot and the BUFFERs in id order.
    fn place_storage(&mut self, root: Id, params: &[Id]) -> Result<(), LowerError> {
        let graph = self.graph;
        // In the order of their slots, which have no gaps.
        for &n in params {
            let param = ProgramParam::of(graph, n, self.variables);
            self.program.params.push(param.ok_or_else(|| LowerErrorKind::LongSize.at(graph, n))?);
        }
        let mut bytes: u64 = 0;
        for n in graph.reachable(root).into_iter().filter(|&n| graph[n].op == Op::Buffer) {
            let (dtype, mut len) = (graph[n].dtype, 1u64);
            for &dim in &graph[n].src {
                let length = self.size(n, dim)?.as_const();
                len *= length.expect("the verifier rejects a buffer whose length is no constant");
            }
            bytes = bytes.saturating_add(len.saturating_mul(dtype.size().unwrap_or(0) as u64));
            if bytes > REGISTER_BYTES {
                let kind = LowerErrorKind::RegistersTooLarge { bytes, limit: REGISTER_BYTES };
                return Err(kind.at(graph, n));
            }
            self.registers.insert(n, Storage::Register(self.program.registers.len()));
            self.program.registers.push(Register { dtype, len });
        }
        Ok(())
    }

    /// Appends what `n` stands for to its block.
    fn place(&mut self, n: Id) -> Result<(), LowerError> {
        let graph = self.graph;
        let node = &graph[n];
        if node.dtype == DType::Index {
            // Only for the lengths of axes.
            return Ok(());
        }
        let expr = match node.op {
            // Only names for storage, addresses and order.
            Op::Param | Op::Buffer | Op::Index | Op::Group | Op::Sink | Op::After => return Ok(()),
            // Defined where it is first used, if it is.
            Op::Const => return Ok(()),
            Op::Argument => unreachable!("the verifier rejects an argument outside a body"),
            Op::Reshape => unreachable!("flatten-addresses leaves no reshape"),
            Op::Range => {
                self.values.insert(n, self.program.values.insert(node.dtype));
                return Ok(());
            }
            Op::Store => {
                let (address, value) = (self.address(node.src[0]), self.value(node.src[1]));
                self.effect(n, Stmt::Store { address, value });
                return Ok(());
            }
            Op::Custom => {
                self.custom(n);
                return Ok(());
            }
            Op::End => return self.close(n),
            Op::Variable => {
                let same = |&v: &Id| graph[v].arg == node.arg;
                let number = self.variables.iter().position(same).expect("no pass adds a variable");
                Expr::Launch(LaunchIndex::Variable(number))
            }
            Op::Special => Expr::Launch(self.dimension(n)?),
            Op::Load => {
                let address = self.address(node.src[0]);
                Expr::Load { address, gate: self.gate(n, node.src.get(2).copied()) }
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
            | Op::Cast => {
                let args = node.src.iter().map(|&s| self.value(s)).collect();
                Expr::Alu { op: node.op, args, exact: self.bounds.is_exact(graph, n) }
            }
        };
        let value = self.define(self.block(n), node.dtype, expr);
        self.values.insert(n, value);
        Ok(())
    }

    /// Closes the ranges of the END `n`, innermost first: each body becomes a loop in the block
    /// around it.
    fn close(&mut self, n: Id) -> Result<(), LowerError> {
        let graph = self.graph;
        let mut nest = self.order.nest(n);
        let outside = nest.len();
        nest.extend_from_slice(&graph[n].src[1..]);
        while nest.len() > outside
            && let Some(r) = nest.pop()
        {
            let body = self.blocks.remove(&Some(r)).unwrap_or_default();
            let around = nest.last().copied();
            let (dtype, bound) = (graph[r].dtype, graph[r].src[0]);
            let (lo, hi) = if graph.axis(r).kind == AxisType::Thread {
                self.program.launch = Launch::Range { extent: self.size(r, bound)? };
                let ends = [LaunchIndex::Begin, LaunchIndex::End];
                ends.map(|end| self.define(around, DType::I64, Expr::Launch(end))).into()
            } else {
                (self.literal(dtype, Const::zero(dtype)), self.value(bound))
            };
            self.push(around, Stmt::For { var: self.values[&r], lo, hi, body });
        }
        Ok(())
    }

    /// The hardware index that the SPECIAL `n` is; notes its extent.
    fn dimension(&mut self, n: Id) -> Result<LaunchIndex, LowerError> {
        let extent = self.size(n, self.graph[n].src[0])?;
        let (Arg::Special(special), Launch::Grid { grid, block }) =
            (&self.graph[n].arg, &mut self.program.launch)
        else {
            unreachable!("place-axes makes hardware indices, for a grid, with a dimension")
        };
        Ok(match *special {
            Special::Block(dim) => {
                grid[usize::from(dim)] = extent;
                LaunchIndex::Block(dim)
            }
            Special::Item(dim) => {
                let items = extent.as_const().and_then(|items| u32::try_from(items).ok());
                block[usize::from(dim)] = items.expect("place-axes limits a block");
                LaunchIndex::Item(dim)
            }
        })
    }

    /// The gate of `n`, and its value if that is false: `alt`, or zero.
    fn gate(&mut self, n: Id, alt: Option<Id>) -> Option<(Value, Value)> {
        let (gate, dtype) = (self.graph[n].gate()?, self.graph[n].dtype);
        let alt = match alt {
            Some(alt) => self.value(alt),
            None => self.literal(dtype, Const::zero(dtype)),
        };
        Some((self.value(gate), alt))
    }

    /// Appends the CUSTOM `n`.
    fn custom(&mut self, n: Id) {
        let node = &self.graph[n];
        let Arg::Custom { custom, .. } = &node.arg else {
            unreachable!("the verifier rejects a custom without an operation")
        };
        let (mut result, mut gate) = (None, None);
        if node.dtype != DType::Void {
            result = Some(self.program.values.insert(node.dtype));
            gate = self.gate(n, None);
        }
        let stmt = match custom {
            &Custom::Atomic { op, .. } => {
                let address = self.address(node.src[0]);
                let values = node.src[1..=op.values()].iter().map(|&s| self.value(s)).collect();
                Stmt::Atomic { op, address, values, old: result, gate }
            }
            Custom::Declared(declaration) => {
                let args = declaration.contract().args.iter().zip(&node.src);
                let args = args.map(|(arg, &s)| match arg.is_pointer() {
                    true => CallArg::Address(self.address(s)),
                    false => CallArg::Value(self.value(s)),
                });
                let args = args.collect();
                let customs = &mut self.program.customs;
                let known = customs.iter().position(|custom| custom == declaration);
                let custom = known.unwrap_or(customs.len());
                if known.is_none() {
                    customs.push(Arc::clone(declaration));
                }
                Stmt::Call { result, custom, args, gate }
            }
        };
        match result {
            Some(result) => {
                self.values.insert(n, result);
                self.push(self.block(n), stmt);
            }
            None => self.effect(n, stmt),
        }
    }

    /// Appends `stmt` to the block of `n`, under its gate.
    fn effect(&mut self, n: Id, stmt: Stmt) {
        let stmt = match self.graph[n].gate() {
            Some(gate) => Stmt::If { cond: self.value(gate), body: vec![stmt] },
            None => stmt,
        };
        self.push(self.block(n), stmt);
    }

    /// The value of `n`, an operand.
    fn value(&mut self, n: Id) -> Value {
        let n = strip_after(self.graph, n);
        match (self.values.get(&n), self.graph.as_const(n)) {
            (Some(&value), _) => value,
            (None, Some(constant)) => self.literal(self.graph[n].dtype, constant),
            (None, None) => unreachable!("the verifier rejects an operand that is no value"),
        }
    }

    /// The constant `constant` of `dtype`, defined once, ahead of everything that is still to be
    /// placed around it.
    fn literal(&mut self, dtype: DType, constant: Const) -> Value {
        if let Some(&value) = self.literals.get(&(dtype, constant)) {
            return value;
        }
        let value = self.define(None, dtype, Expr::Const(constant));
        self.literals.insert((dtype, constant), value);
        value
    }

    /// The innermost range around `n`, by which its block is known.
    fn block(&self, n: Id) -> Option<Id> {
        self.order.nest(n).last().copied()
    }

    fn define(&mut self, block: Option<Id>, dtype: DType, expr: Expr) -> Value {
        let value = self.program.values.insert(dtype);
        self.push(block, Stmt::Let { value, expr });
        value
    }

    fn push(&mut self, block: Option<Id>, stmt: Stmt) {
        self.blocks.entry(block).or_default().push(stmt);
    }

    fn address(&mut self, n: Id) -> Address {
        let n = strip_after(self.graph, n);
        let storage = self.graph.storage(n).expect("the verifier rejects an address of no buffer");
        let storage = match &self.graph[storage].arg {
            // Its lengths may have been simplified since the program got it.
            Arg::Param(param) => Storage::Param(param.slot as usize),
            _ => self.registers[&storage],
        };
        Address { storage, offset: self.value(self.graph[n].src[1]) }
    }

    /// The expression that `dim`, a length or extent of `n`, is.
    fn size(&self, n: Id, dim: Id) -> Result<Size, LowerError> {
        let size = Size::of(self.graph, dim, self.variables);
        size.ok_or_else(|| LowerErrorKind::LongSize.at(self.graph, n))
    }
}
