//! Programs by hand, and a way to run them.
#![allow(dead_code)] // Each test program uses a part of it.

use jit::{Code, Options, compile};
use lower::{
    Address, Expr, Launch, LaunchIndex, Program, ProgramParam, Register, Stmt, Storage, Value,
};
use slotmap::SlotMap;
use uop::{AtomicOp, Const, DType, Op};

pub(crate) const VERIFY: Options = Options { verify: true };

pub(crate) struct Builder {
    pub(crate) program: Program,
    bodies: Vec<Vec<Stmt>>,
}

impl Builder {
    pub(crate) fn new(name: &str) -> Builder {
        Builder {
            program: Program {
                name: name.to_string(),
                params: Vec::new(),
                variables: Vec::new(),
                registers: Vec::new(),
                launch: Launch::Range { extent: lower::Size::from(1) },
                values: SlotMap::with_key(),
                body: Vec::new(),
            },
            bodies: vec![Vec::new()],
        }
    }

    pub(crate) fn param(&mut self, dtype: DType, len: u64, mutable: bool) -> Storage {
        let slot = self.program.params.len();
        self.program.params.push(ProgramParam {
            name: format!("p{slot}"),
            dtype,
            shape: vec![len.into()],
            mutable,
        });
        Storage::Param(slot)
    }

    pub(crate) fn register(&mut self, dtype: DType, len: u64) -> Storage {
        self.program.registers.push(Register { dtype, len });
        Storage::Register(self.program.registers.len() - 1)
    }

    pub(crate) fn stmt(&mut self, stmt: Stmt) {
        self.bodies.last_mut().expect("there is an open body").push(stmt);
    }

    pub(crate) fn define(&mut self, dtype: DType, expr: Expr) -> Value {
        let value = self.program.values.insert(dtype);
        self.stmt(Stmt::Let { value, expr });
        value
    }

    pub(crate) fn constant(&mut self, dtype: DType, value: Const) -> Value {
        self.define(dtype, Expr::Const(value))
    }

    pub(crate) fn int(&mut self, value: i64) -> Value {
        self.constant(DType::I64, Const::Int(i128::from(value)))
    }

    pub(crate) fn f32(&mut self, value: f32) -> Value {
        self.constant(DType::F32, Const::from(value))
    }

    pub(crate) fn alu(&mut self, op: Op, dtype: DType, args: &[Value]) -> Value {
        let args = args.iter().copied().collect();
        let exact = false;
        self.define(dtype, Expr::Alu { op, args, exact })
    }

    pub(crate) fn load(&mut self, dtype: DType, storage: Storage, offset: Value) -> Value {
        let address = Address { storage, offset };
        self.define(dtype, Expr::Load { address, gate: None })
    }

    pub(crate) fn gated(
        &mut self,
        storage: Storage,
        offset: Value,
        gate: Value,
        alt: Value,
    ) -> Value {
        let address = Address { storage, offset };
        let dtype = self.program.values[alt];
        let gate = Some((gate, alt));
        self.define(dtype, Expr::Load { address, gate })
    }

    pub(crate) fn store(&mut self, storage: Storage, offset: Value, value: Value) {
        let address = Address { storage, offset };
        self.stmt(Stmt::Store { address, value });
    }

    pub(crate) fn atomic_add(&mut self, storage: Storage, offset: Value, value: Value) {
        let address = Address { storage, offset };
        let op = AtomicOp::Add;
        self.stmt(Stmt::Atomic {
            op,
            address,
            values: [value].into_iter().collect(),
            old: None,
            gate: None,
        });
    }

    pub(crate) fn repeat(&mut self, lo: Value, hi: Value, body: impl FnOnce(&mut Builder, Value)) {
        let dtype = self.program.values[lo];
        let var = self.program.values.insert(dtype);
        self.bodies.push(Vec::new());
        body(self, var);
        let body = self.bodies.pop().expect("it was pushed");
        self.stmt(Stmt::For { var, lo, hi, body });
    }

    /// The range that the caller picked.
    pub(crate) fn instances(&mut self, body: impl FnOnce(&mut Builder, Value)) {
        let begin = self.define(DType::I64, Expr::Launch(LaunchIndex::Begin));
        let end = self.define(DType::I64, Expr::Launch(LaunchIndex::End));
        self.repeat(begin, end, body);
    }

    pub(crate) fn when(&mut self, cond: Value, body: impl FnOnce(&mut Builder)) {
        self.bodies.push(Vec::new());
        body(self);
        let body = self.bodies.pop().expect("it was pushed");
        self.stmt(Stmt::If { cond, body });
    }

    pub(crate) fn finish(mut self) -> Program {
        self.program.body = self.bodies.pop().expect("the outermost body is open");
        assert!(self.bodies.is_empty());
        self.program
    }

    #[track_caller]
    pub(crate) fn compile(self) -> Code {
        compile(&self.finish(), &VERIFY).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// `table[clip(idx[i], 0, v-1), j] += grad[i, j]` for i below n and j below d.
pub(crate) fn scatter(n: u64, d: u64, v: u64) -> Program {
    let mut b = Builder::new("embedding_bwd");
    let table = b.param(DType::F32, v * d, true);
    let grad = b.param(DType::F32, n * d, false);
    let idx = b.param(DType::I32, n, false);
    let (zero, d, last) = (b.int(0), b.int(d as i64), b.int(v as i64 - 1));
    b.instances(|b, i| {
        let token = b.load(DType::I32, idx, i);
        let token = b.alu(Op::Cast, DType::I64, &[token]);
        let token = b.alu(Op::Max, DType::I64, &[token, zero]);
        let token = b.alu(Op::Min, DType::I64, &[token, last]);
        let (from, to) =
            (b.alu(Op::Mul, DType::I64, &[i, d]), b.alu(Op::Mul, DType::I64, &[token, d]));
        b.repeat(zero, d, |b, j| {
            let from = b.alu(Op::Add, DType::I64, &[from, j]);
            let to = b.alu(Op::Add, DType::I64, &[to, j]);
            let update = b.load(DType::F32, grad, from);
            b.atomic_add(table, to, update);
        });
    });
    b.finish()
}

pub(crate) fn pointer<T>(slice: &mut [T]) -> *mut u8 {
    slice.as_mut_ptr().cast()
}

/// Runs `code` on `buffers`; each test passes what its program asks for.
pub(crate) fn run(code: &Code, buffers: &[*mut u8], begin: i64, end: i64) {
    // SAFETY: the pointers come from `pointer`, of slices of the length and type of the
    // parameters, borrowed mutably by the test; the programs stay within them.
    unsafe { code.run(buffers, &[], begin, end) }
}
