use std::collections::HashMap;
use std::sync::Arc;

use slotmap::SlotMap;
use uop::{
    Arg, AxisType, Bounds, Const, Custom, DType, Declaration, Graph, Id, Op, Order, Special,
};

use crate::caps::Caps;
use crate::error::{LowerError, LowerErrorKind};
use crate::program::{
    Address, CallArg, Expr, Launch, LaunchIndex, Program, ProgramParam, ProgramVariable,
    REGISTER_BYTES, Register, Size, Stmt, Storage, Value,
};

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
/// `NotConstant` for an axis length or an extent of the launch that a launch does not know;
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
    let program = Program {
        name: name.to_string(),
        params: Vec::new(),
        variables: variables.iter().map(|&n| ProgramVariable::of(graph, n, caps)).collect(),
        registers: Vec::new(),
        launch,
        customs: Vec::new(),
        values: SlotMap::with_key(),
        body: Vec::new(),
    };
    let order = Order::of(graph, root);
    let mut lin = Linearizer {
        graph,
        variables,
        order,
        bounds: Bounds::new(),
        program,
        storage: HashMap::new(),
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
    storage: HashMap<Id, Storage>,
    values: HashMap<Id, Value>,
    literals: HashMap<(DType, Const), Value>,
    /// The statements of each block, by the innermost range around it: a range has one binder, so
    /// the ranges around that are the same for all.
    blocks: HashMap<Option<Id>, Vec<Stmt>>,
}

impl Linearizer<'_> {
    /// Lists the PARAMs by slot and the BUFFERs in id order.
    fn place_storage(&mut self, root: Id, params: &[Id]) -> Result<(), LowerError> {
        for &n in params {
            self.storage.insert(n, Storage::Param(self.program.params.len()));
            let what = "the length of an axis";
            let param = ProgramParam::of(self.graph, n, self.variables);
            self.program.params.push(param.ok_or_else(|| self.not_constant(n, n, what))?);
        }
        let mut bytes: u64 = 0;
        for n in self.graph.reachable(root) {
            let node = &self.graph[n];
            if node.op == Op::Buffer {
                let lengths =
                    node.src.iter().map(|&dim| self.constant(n, dim, "the length of an axis"));
                let len = lengths.product::<Result<u64, LowerError>>()?;
                bytes =
                    bytes.saturating_add(len.saturating_mul(node.dtype.size().unwrap_or(0) as u64));
                if bytes > REGISTER_BYTES {
                    let kind = LowerErrorKind::RegistersTooLarge { bytes, limit: REGISTER_BYTES };
                    return Err(LowerError { node: self.graph.origin(n), kind });
                }
                self.storage.insert(n, Storage::Register(self.program.registers.len()));
                self.program.registers.push(Register { dtype: node.dtype, len });
            }
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
        match node.op {
            // Only names for storage, addresses and order.
            Op::Param | Op::Buffer | Op::Index | Op::Group | Op::Sink | Op::After => {}
            // Defined where it is first used, if it is.
            Op::Const => {}
            Op::Argument => unreachable!("the verifier rejects an argument outside a body"),
            Op::Reshape => unreachable!("flatten-addresses leaves no reshape"),
            Op::Variable => {
                let same = |&v: &Id| graph[v].arg == node.arg;
                let number = self.variables.iter().position(same).expect("no pass adds a variable");
                self.define(n, Expr::Launch(LaunchIndex::Variable(number)));
            }
            Op::Range => {
                let var = self.program.values.insert(node.dtype);
                self.values.insert(n, var);
            }
            Op::Special => {
                let extent = self.size(n, node.src[0], "an extent of the grid")?;
                let Arg::Special(special) = node.arg else {
                    unreachable!("the verifier rejects a special without a dimension")
                };
                let index = self.dimension(n, special, extent)?;
                self.define(n, Expr::Launch(index));
            }
            Op::Load => {
                let address = self.address(node.src[0]);
                let gate = self.gate(n, node.src.get(2).copied());
                self.define(n, Expr::Load { address, gate });
            }
            Op::Store => {
                let store = Stmt::Store {
                    address: self.address(node.src[0]),
                    value: self.value(node.src[1]),
                };
                self.effect(n, store);
            }
            Op::Custom => {
                let Arg::Custom { custom, .. } = &node.arg else {
                    unreachable!("the verifier rejects a custom without an operation")
                };
                match custom {
                    &Custom::Atomic { op, .. } => {
                        let address = self.address(node.src[0]);
                        let values = &node.src[1..][..op.values()];
                        let values = values.iter().map(|&s| self.value(s)).collect();
                        if node.is_fetch() {
                            let gate = self.gate(n, None);
                            let old = self.program.values.insert(node.dtype);
                            self.values.insert(n, old);
                            self.push(
                                n,
                                Stmt::Atomic { op, address, values, old: Some(old), gate },
                            );
                        } else {
                            self.effect(
                                n,
                                Stmt::Atomic { op, address, values, old: None, gate: None },
                            );
                        }
                    }
                    Custom::Declared(declaration) => self.call(n, declaration),
                }
            }
            Op::End => self.close(n)?,
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
                let exact = self.bounds.is_exact(graph, n);
                self.define(n, Expr::Alu { op: node.op, args, exact });
            }
        }
        Ok(())
    }

    /// Closes the ranges of the END `n`, innermost first: each body becomes a loop in the block
    /// around it.
    fn close(&mut self, n: Id) -> Result<(), LowerError> {
        let graph = self.graph;
        let outside = self.order.nest(n).last().copied();
        let listed = &graph[n].src[1..];
        for (position, &r) in listed.iter().enumerate().rev() {
            let body = self.blocks.remove(&Some(r)).unwrap_or_default();
            let around = position.checked_sub(1).map(|position| listed[position]).or(outside);
            let var = self.values[&r];
            let bound = graph[r].src[0];
            let (lo, hi) = if graph.axis(r).kind == AxisType::Thread {
                let extent = self.size(r, bound, "the extent of the outermost range")?;
                self.program.launch = Launch::Range { extent };
                (
                    self.launch_index(around, LaunchIndex::Begin),
                    self.launch_index(around, LaunchIndex::End),
                )
            } else {
                let dtype = graph[r].dtype;
                (self.literal(dtype, Const::zero(dtype)), self.value(bound))
            };
            self.blocks.entry(around).or_default().push(Stmt::For { var, lo, hi, body });
        }
        Ok(())
    }

    /// Notes the extent of a hardware index.
    fn dimension(
        &mut self,
        n: Id,
        special: Special,
        extent: Size,
    ) -> Result<LaunchIndex, LowerError> {
        let Launch::Grid { grid, block } = &mut self.program.launch else {
            unreachable!("place-axes makes hardware indices only for a grid")
        };
        Ok(match special {
            Special::Block(dim) => {
                grid[usize::from(dim)] = extent;
                LaunchIndex::Block(dim)
            }
            Special::Item(dim) => {
                let limit = u64::from(u32::MAX);
                // `place-axes` takes local ranges of constant extents.
                let extent = extent.as_const().unwrap_or(u64::MAX);
                let items = u32::try_from(extent).map_err(|_| LowerError {
                    node: self.graph.origin(n),
                    kind: LowerErrorKind::BlockTooLarge { items: extent.into(), limit },
                })?;
                block[usize::from(dim)] = items;
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

    /// Appends the call of `declaration` that the CUSTOM `n` is.
    fn call(&mut self, n: Id, declaration: &Arc<Declaration>) {
        let node = &self.graph[n];
        let customs = &mut self.program.customs;
        let known = customs.iter().position(|custom| custom == declaration);
        let custom = known.unwrap_or_else(|| {
            customs.push(Arc::clone(declaration));
            customs.len() - 1
        });
        let args = declaration.contract().args.iter().zip(&node.src).map(|(arg, &s)| {
            if arg.is_pointer() {
                CallArg::Address(self.address(s))
            } else {
                CallArg::Value(self.value(s))
            }
        });
        let args = args.collect();
        if node.dtype == DType::Void {
            return self.effect(n, Stmt::Call { result: None, custom, args });
        }
        let result = self.program.values.insert(node.dtype);
        let call = Stmt::Call { result: Some(result), custom, args };
        let Some(gate) = node.gate() else {
            self.values.insert(n, result);
            return self.push(n, call);
        };
        // The result leaves the `if` by way of a register.
        let storage = Storage::Register(self.program.registers.len());
        self.program.registers.push(Register { dtype: node.dtype, len: 1 });
        let zero = self.literal(node.dtype, Const::zero(node.dtype));
        let address = Address { storage, offset: self.literal(DType::I64, Const::Int(0)) };
        self.push(n, Stmt::Store { address, value: zero });
        let body = vec![call, Stmt::Store { address, value: result }];
        let cond = self.value(gate);
        self.push(n, Stmt::If { cond, body });
        self.define(n, Expr::Load { address, gate: None });
    }

    /// Appends `stmt` to the block of `n`, under its gate.
    fn effect(&mut self, n: Id, stmt: Stmt) {
        let stmt = match self.graph[n].gate() {
            Some(gate) => Stmt::If { cond: self.value(gate), body: vec![stmt] },
            None => stmt,
        };
        self.push(n, stmt);
    }

    fn define(&mut self, n: Id, expr: Expr) {
        let value = self.program.values.insert(self.graph[n].dtype);
        self.values.insert(n, value);
        self.push(n, Stmt::Let { value, expr });
    }

    /// The value of `n`, an operand.
    fn value(&mut self, n: Id) -> Value {
        let mut n = n;
        while self.graph[n].op == Op::After {
            n = self.graph[n].src[0];
        }
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
        let value = self.program.values.insert(dtype);
        self.literals.insert((dtype, constant), value);
        let stmt = Stmt::Let { value, expr: Expr::Const(constant) };
        self.blocks.entry(None).or_default().push(stmt);
        value
    }

    fn launch_index(&mut self, around: Option<Id>, index: LaunchIndex) -> Value {
        let value = self.program.values.insert(DType::I64);
        let stmt = Stmt::Let { value, expr: Expr::Launch(index) };
        self.blocks.entry(around).or_default().push(stmt);
        value
    }

    fn push(&mut self, n: Id, stmt: Stmt) {
        let innermost = self.order.nest(n).last().copied();
        self.blocks.entry(innermost).or_default().push(stmt);
    }

    fn address(&mut self, n: Id) -> Address {
        let mut n = n;
        while self.graph[n].op == Op::After {
            n = self.graph[n].src[0];
        }
        let storage = self.graph.storage(n).expect("the verifier rejects an address of no buffer");
        Address { storage: self.storage[&storage], offset: self.value(self.graph[n].src[1]) }
    }

    /// The value of `dim`, a constant.
    fn constant(&self, n: Id, dim: Id, what: &'static str) -> Result<u64, LowerError> {
        self.size(n, dim, what)?.as_const().ok_or_else(|| self.not_constant(n, dim, what))
    }

    /// The expression that `dim` is.
    fn size(&self, n: Id, dim: Id, what: &'static str) -> Result<Size, LowerError> {
        Size::of(self.graph, dim, self.variables).ok_or_else(|| self.not_constant(n, dim, what))
    }

    fn not_constant(&self, n: Id, dim: Id, what: &'static str) -> LowerError {
        let kind = LowerErrorKind::NotConstant { what, found: self.graph.origin(dim) };
        LowerError { node: self.graph.origin(n), kind }
    }
}
