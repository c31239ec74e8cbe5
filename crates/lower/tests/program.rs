//! The validator of `Program`, and its text, on programs made by hand.

mod common;

use expect_test::{Expect, expect};
use lower::program::{
    Address, Expr, Launch, LaunchIndex, ProgramParam, Register, Stmt, Storage, Value,
};
use lower::{Caps, Program, Size};
use slotmap::SlotMap;
use uop::DType::{self, Bool, F32, I32, I64, Index};
use uop::{AtomicOp, AxisType, Const, Kernel, Op};

/// A program under construction.
struct Builder(Program);

impl Builder {
    /// `p(out: mut i32[4], x: f32[2, 2])` with one register, on a grid.
    fn new() -> Builder {
        let param = |name: &str, dtype, shape: &[u64], mutable| ProgramParam {
            name: name.to_string(),
            dtype,
            shape: shape.iter().map(|&n| n.into()).collect(),
            mutable,
        };
        Builder(Program {
            name: "p".to_string(),
            params: vec![param("out", I32, &[4], true), param("x", F32, &[2, 2], false)],
            variables: Vec::new(),
            registers: vec![Register { dtype: I32, len: 3 }],
            launch: Launch::Grid { grid: [2, 1, 1].map(Size::from), block: [32, 1, 1] },
            customs: Vec::new(),
            values: SlotMap::with_key(),
            body: Vec::new(),
        })
    }

    fn value(&mut self, dtype: DType) -> Value {
        self.0.values.insert(dtype)
    }

    fn define(&mut self, dtype: DType, expr: Expr) -> Value {
        let value = self.value(dtype);
        self.0.body.push(Stmt::Let { value, expr });
        value
    }

    fn constant(&mut self, dtype: DType, value: Const) -> Value {
        self.define(dtype, Expr::Const(value))
    }

    fn alu(&mut self, dtype: DType, op: Op, args: &[Value], exact: bool) -> Value {
        self.define(dtype, Expr::Alu { op, args: args.iter().copied().collect(), exact })
    }

    #[track_caller]
    fn text(&self, text: Expect) {
        text.assert_eq(&self.0.to_string());
    }

    #[track_caller]
    fn invalid(&self, errors: Expect) {
        errors.assert_eq(&self.0.validate().expect_err("the program is invalid").to_string());
    }
}

fn out(offset: Value) -> Address {
    Address { storage: Storage::Param(0), offset }
}

fn x(offset: Value) -> Address {
    Address { storage: Storage::Param(1), offset }
}

fn reg(offset: Value) -> Address {
    Address { storage: Storage::Register(0), offset }
}

#[test]
fn every_statement_has_a_text() {
    let mut b = Builder::new();
    let one = b.constant(I32, Const::Int(1));
    let item = b.define(I32, Expr::Launch(LaunchIndex::Item(2)));
    let sum = b.alu(I32, Op::Add, &[one, item], false);
    let exact = b.alu(I32, Op::Mul, &[sum, sum], true);
    let cond = b.alu(Bool, Op::CmpLt, &[exact, sum], false);
    let alt = b.constant(F32, Const::from(-0.0f32));
    let load = b.define(F32, Expr::Load { address: x(one), gate: Some((cond, alt)) });
    let cast = b.alu(I32, Op::Cast, &[load], false);
    let var = b.value(I32);
    let inner = b.value(I32);
    let body = vec![
        Stmt::Let { value: inner, expr: Expr::Load { address: reg(var), gate: None } },
        Stmt::If {
            cond,
            body: vec![
                Stmt::Store { address: reg(var), value: inner },
                Stmt::If { cond, body: vec![atomic(AtomicOp::Add, out(one), &[cast])] },
                Stmt::If { cond, body: vec![] },
            ],
        },
    ];
    b.0.body.push(Stmt::For { var, lo: one, hi: exact, body });
    b.0.body.push(Stmt::If { cond, body: vec![Stmt::Store { address: out(item), value: cast }] });
    assert_eq!(b.0.validate(), Ok(()));
    b.text(expect![[r#"
        program p(out: mut i32[4], x: f32[2, 2])
        register reg.0: i32[3]
        launch grid [2, 1, 1] block [32, 1, 1]
        v0: i32 = 1
        v1: i32 = item.z
        v2: i32 = add wrapping v0, v1
        v3: i32 = mul v2, v2
        v4: bool = cmplt v3, v2
        v5: f32 = -0.0
        v6: f32 = load x[v0] if v4 else v5
        v7: i32 = cast v6
        for v8: i32 in v0..v3 {
            v9: i32 = load reg.0[v8]
            if v4 {
                store reg.0[v8], v9
                if v4 { atomic add out[v0], v7 }
                if v4 {
                }
            }
        }
        if v4 { store out[v1], v7 }
    "#]]);
}

#[test]
fn heads() {
    let mut b = Builder::new();
    b.0.name = "2p".to_string();
    b.0.params[1].name = "out".to_string();
    b.0.params[1].shape = [1 << 40, 0, 1 << 40].map(Size::from).to_vec();
    b.0.params[0].dtype = Index;
    b.0.registers[0].dtype = DType::Void;
    b.0.launch = Launch::Grid { grid: [0, 1, 1].map(Size::from), block: [1, 0, 1] };
    b.value(I32);
    b.invalid(expect![[r#"
        program: the name "2p" is not an identifier
        program: a block has [1, 0, 1] work-items, expected 1 or more of each
        param 0: elements of index, which has no size in memory
        param 0: elements of index, which has no size in memory
        param 1: the name "out" is also that of param 0
        param 1: more than 9223372036854775807 bytes
        param 1: more than 9223372036854775807 bytes
        reg.0: elements of void, which has no size in memory
        program: 1 values are never defined"#]]);
}

#[test]
fn scopes() {
    let mut b = Builder::new();
    let zero = b.constant(I32, Const::Int(0));
    let (var, late, nowhere) = (b.value(I32), b.value(I32), b.value(I32));
    let again = Stmt::Let { value: zero, expr: Expr::Const(Const::Int(1)) };
    b.0.body.push(Stmt::For { var, lo: zero, hi: var, body: vec![again] });
    b.0.body.push(Stmt::Store { address: out(var), value: late });
    b.0.body.push(Stmt::Let { value: late, expr: Expr::Const(Const::Int(2)) });
    b.0.body.push(Stmt::Store { address: out(late), value: nowhere });
    b.invalid(expect![[r#"
        program: 1 values are never defined
        v1: the end is v1, which is not defined here
        v0: defined again; each value has one definition
        statement 2: an offset is v1, which is not defined here
        statement 2: what is written is v2, which is not defined here
        statement 4: what is written is v?, which is not defined here"#]]);
}

#[test]
fn types() {
    let mut b = Builder::new();
    let i = b.constant(I32, Const::Int(1 << 40));
    let wide = b.constant(I64, Const::Int(1 << 40));
    let f = b.constant(F32, Const::Bool(true));
    let yes = b.constant(Bool, Const::Bool(true));
    b.constant(Index, Const::Int(0));
    b.alu(I32, Op::Add, &[i, wide], false);
    b.alu(I32, Op::Add, &[i], false);
    b.alu(F32, Op::And, &[f, f], false);
    b.alu(I64, Op::Neg, &[i], true);
    b.alu(Bool, Op::CmpLt, &[yes, yes], false);
    b.alu(I32, Op::Where, &[i, i, i], false);
    b.alu(I32, Op::Max, &[i, i], true);
    b.alu(F32, Op::Add, &[f, f], true);
    b.alu(I32, Op::Load, &[i], false);
    b.define(I32, Expr::Load { address: x(f), gate: Some((i, wide)) });
    b.define(
        I64,
        Expr::Load { address: Address { storage: Storage::Param(7), offset: wide }, gate: None },
    );
    let var = b.value(I64);
    b.0.body.push(Stmt::For { var, lo: i, hi: f, body: vec![Stmt::If { cond: i, body: vec![] }] });
    b.invalid(expect![[r#"
        v0: 1099511627776 is not a value of i32
        v2: true is not a value of f32
        v4: a value of index
        v5: add does not work on i32 and i64
        v6: add does not work on i32
        v7: and does not work on f32 and f32
        v8: the result is i64, expected i32
        v9: cmplt does not work on bool and bool
        v10: where does not work on i32 and i32 and i32
        v11: max of i32 is marked exact
        v12: add of f32 is marked exact
        v13: load does not work on i32
        v14: an offset is f32, expected i32 or i64
        v14: what is loaded is i32, expected f32
        v14: the gate is i32, expected bool
        v14: the alternative is i64, expected i32
        v15: there is no Param(7)
        v16: the first value is i32, expected i64
        v16: the end is f32, expected i32 or i64
        statement 16.0: the condition is i32, expected bool"#]]);
}

#[test]
fn writes() {
    let mut b = Builder::new();
    b.0.params[0].dtype = Bool;
    let i = b.constant(I32, Const::Int(1));
    let f = b.constant(F32, Const::from(1.0f32));
    b.0.body.push(Stmt::Store { address: x(i), value: f });
    b.0.body.push(Stmt::Store { address: out(i), value: f });
    b.0.body.push(atomic(AtomicOp::Add, reg(i), &[i]));
    b.0.body.push(atomic(AtomicOp::Add, out(i), &[i]));
    let nowhere = Address { storage: Storage::Register(1), offset: i };
    b.0.body.push(Stmt::Store { address: nowhere, value: i });
    b.invalid(expect![[r#"
        statement 2: writes x, which is not mutable
        statement 3: what is written is f32, expected bool
        statement 4: atomic on reg.0, which is one work-item's
        statement 5: what is written is i32, expected bool
        statement 5: no atomic add of bool
        statement 6: there is no Register(1)"#]]);
}

#[test]
fn launches() {
    let mut b = Builder::new();
    b.define(I64, Expr::Launch(LaunchIndex::Begin));
    b.define(Bool, Expr::Launch(LaunchIndex::Block(3)));
    b.invalid(expect![[r#"
        v0: begin does not exist in this launch
        v1: block.? does not exist in this launch
        v1: the index is bool, expected i32 or i64"#]]);
    let mut b = Builder::new();
    b.0.launch = Launch::Range { extent: Size::from(3) };
    b.define(I32, Expr::Launch(LaunchIndex::End));
    b.define(I32, Expr::Launch(LaunchIndex::Item(0)));
    b.invalid(expect![[r#"
        v0: the index is i32, expected i64
        v1: item.x does not exist in this launch"#]]);
}

/// Nothing recurses as deep as the program is nested.
#[test]
fn deep_nests() {
    let mut b = Builder::new();
    let cond = b.constant(Bool, Const::Bool(true));
    let mut body = vec![Stmt::If { cond: b.value(Bool), body: vec![] }];
    for _ in 0..10_000 {
        body = vec![Stmt::If { cond, body }];
    }
    b.0.body.extend(body);
    assert_eq!(b.0.validate().unwrap_err().errors.len(), 2);
}

/// The text of a program does not depend on how the kernel was built.
#[test]
fn text_is_canonical() {
    let build = |noise: i64| {
        let k = Kernel::new();
        let out = k.param_mut("out", I32, 5);
        for i in 0..noise {
            let _ = k.int(i) + 1;
        }
        let i = k.range(5, AxisType::Global);
        out.at(i).store((i * 3).cast(I32)).end(i).sink("triple").unwrap()
    };
    let caps = Caps { narrow_index: true, ..common::NO_GRID };
    let text = |noise| common::lower(&build(noise), &caps).unwrap().to_string();
    assert_eq!(text(0), text(9));
}

/// An atomic whose old value is not used.
fn atomic(op: AtomicOp, address: Address, values: &[Value]) -> Stmt {
    Stmt::Atomic { op, address, values: values.into(), old: None, gate: None }
}
