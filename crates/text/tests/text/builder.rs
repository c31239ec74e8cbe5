//! Programs by hand.

use lower::{
    Address, Expr, Launch, LaunchIndex, Program, ProgramParam, Register, Stmt, Storage, Value,
};
use slotmap::SlotMap;
use uop::{AtomicOp, Const, DType, Op};

/// A program that is being built: statements go to the innermost open block.
pub(crate) struct Builder {
    program: Program,
    blocks: Vec<Vec<Stmt>>,
}

impl Builder {
    pub(crate) fn new(name: &str, launch: Launch) -> Builder {
        let program = Program {
            name: name.to_owned(),
            params: Vec::new(),
            variables: Vec::new(),
            registers: Vec::new(),
            launch,
            values: SlotMap::with_key(),
            body: Vec::new(),
        };
        Builder { program, blocks: vec![Vec::new()] }
    }

    pub(crate) fn finish(mut self) -> Program {
        self.program.body = self.blocks.pop().expect("the outermost block is open");
        assert!(self.blocks.is_empty(), "every other block is closed");
        self.program
    }

    pub(crate) fn param(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[u64],
        mutable: bool,
    ) -> Storage {
        let (name, shape) = (name.to_owned(), shape.iter().map(|&n| n.into()).collect());
        self.program.params.push(ProgramParam { name, dtype, shape, mutable });
        Storage::Param(self.program.params.len() - 1)
    }

    pub(crate) fn register(&mut self, dtype: DType, len: u64) -> Storage {
        self.program.registers.push(Register { dtype, len });
        Storage::Register(self.program.registers.len() - 1)
    }

    pub(crate) fn dtype(&self, value: Value) -> DType {
        self.program.values[value]
    }

    fn push(&mut self, stmt: Stmt) {
        self.blocks.last_mut().expect("a block is open").push(stmt);
    }

    pub(crate) fn define(&mut self, dtype: DType, expr: Expr) -> Value {
        let value = self.program.values.insert(dtype);
        self.push(Stmt::Let { value, expr });
        value
    }

    pub(crate) fn constant(&mut self, dtype: DType, value: Const) -> Value {
        self.define(dtype, Expr::Const(value))
    }

    pub(crate) fn i32(&mut self, value: i32) -> Value {
        self.constant(DType::I32, Const::Int(value.into()))
    }

    pub(crate) fn i64(&mut self, value: i64) -> Value {
        self.constant(DType::I64, Const::Int(value.into()))
    }

    pub(crate) fn f32(&mut self, value: f32) -> Value {
        self.constant(DType::F32, Const::from(value))
    }

    pub(crate) fn launch(&mut self, index: LaunchIndex, dtype: DType) -> Value {
        self.define(dtype, Expr::Launch(index))
    }

    fn arithmetic(&mut self, op: Op, args: &[Value], exact: bool) -> Value {
        let dtype = match op.result() {
            uop::ResultType::SameAs(n) => self.dtype(args[n]),
            uop::ResultType::Always(dtype) => dtype,
            uop::ResultType::Stated | uop::ResultType::Sized => panic!("{op} states its type"),
        };
        self.define(dtype, Expr::Alu { op, args: args.iter().copied().collect(), exact })
    }

    /// Arithmetic that wraps.
    pub(crate) fn alu(&mut self, op: Op, args: &[Value]) -> Value {
        self.arithmetic(op, args, false)
    }

    /// Arithmetic that is known to stay in range.
    pub(crate) fn exact(&mut self, op: Op, args: &[Value]) -> Value {
        self.arithmetic(op, args, true)
    }

    pub(crate) fn cast(&mut self, value: Value, dtype: DType) -> Value {
        let args = [value].into_iter().collect();
        self.define(dtype, Expr::Alu { op: Op::Cast, args, exact: false })
    }

    pub(crate) fn load(&mut self, storage: Storage, offset: Value) -> Value {
        let address = Address { storage, offset };
        self.define(self.program.element(storage), Expr::Load { address, gate: None })
    }

    pub(crate) fn load_if(
        &mut self,
        gate: Value,
        storage: Storage,
        offset: Value,
        alt: Value,
    ) -> Value {
        let (address, gate) = (Address { storage, offset }, Some((gate, alt)));
        self.define(self.program.element(storage), Expr::Load { address, gate })
    }

    pub(crate) fn store(&mut self, storage: Storage, offset: Value, value: Value) {
        self.push(Stmt::Store { address: Address { storage, offset }, value });
    }

    pub(crate) fn atomic_add(&mut self, storage: Storage, offset: Value, value: Value) {
        let address = Address { storage, offset };
        self.push(Stmt::Atomic {
            op: AtomicOp::Add,
            address,
            values: [value].into_iter().collect(),
            old: None,
            gate: None,
        });
    }

    pub(crate) fn range(&mut self, lo: Value, hi: Value, body: impl FnOnce(&mut Builder, Value)) {
        let var = self.program.values.insert(self.program.values[lo]);
        self.blocks.push(Vec::new());
        body(self, var);
        let body = self.blocks.pop().expect("it was pushed above");
        self.push(Stmt::For { var, lo, hi, body });
    }

    pub(crate) fn when(&mut self, cond: Value, body: impl FnOnce(&mut Builder)) {
        self.blocks.push(Vec::new());
        body(self);
        let body = self.blocks.pop().expect("it was pushed above");
        self.push(Stmt::If { cond, body });
    }

    /// `body` for each instance: with a grid of `extent` blocks of one item, the block's; without,
    /// those of the slice.
    pub(crate) fn instances(&mut self, body: impl FnOnce(&mut Builder, Value)) {
        match self.program.launch {
            Launch::Grid { .. } => {
                let i = self.launch(LaunchIndex::Block(0), DType::I64);
                body(self, i);
            }
            Launch::Range { .. } => {
                let begin = self.launch(LaunchIndex::Begin, DType::I64);
                let end = self.launch(LaunchIndex::End, DType::I64);
                self.range(begin, end, body);
            }
        }
    }
}
