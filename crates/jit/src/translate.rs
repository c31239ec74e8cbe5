//! From a program to a Cranelift function: one exhaustive match over statements, expressions, ops.
//!
//! - A `bool` is an I8, 0 or 1, as `icmp` and `fcmp` give it and as it lies in memory.
//! - Every access is `notrap` and nothing more. `can_move` would let Cranelift hoist a load above
//!   the gate or the loop that keeps its address valid (seen), and `readonly` needs both.
//! - Two parameters may be the same memory as far as this knows: there is one alias region.
//! - Well-typedness and scope are checked here: with its verifier off, Cranelift would miscompile.

use std::slice;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee32, Offset32};
use cranelift_codegen::ir::{
    self, AbiParam, AtomicRmwOp, Block, BlockArg, Function, InstBuilder, MemFlagsData, Signature,
    StackSlotData, StackSlotKind, Type, UserFuncName, types,
};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use lower::{Address, Expr, Launch, LaunchIndex, Program, REGISTER_BYTES, Stmt, Storage, Value};
use slotmap::SecondaryMap;
use uop::{AtomicOp, Const, DType, Op, ResultType};

use crate::error::JitErrorKind::{self, Malformed};

const MEMORY: MemFlagsData = MemFlagsData::new().with_notrap();

/// The function of `program`; its signature is that of `Code`'s entry, whatever the program.
pub(crate) fn translate(program: &Program, isa: &OwnedTargetIsa) -> Result<Function, JitErrorKind> {
    match program.launch {
        Launch::Grid { .. } => return Err(JitErrorKind::Grid),
        Launch::Range { .. } => {}
    }
    let mut signature = Signature::new(isa.default_call_conv());
    signature.params = vec![AbiParam::new(types::I64); 3];
    let name = UserFuncName::testcase(&program.name);
    let mut function = Function::with_name_signature(name, signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);

    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let (pointers, begin, end) = match *builder.block_params(entry) {
        [pointers, begin, end] => (pointers, begin, end),
        _ => unreachable!("the signature has three parameters"),
    };
    let mut translator = Translator {
        program,
        buffers: Vec::new(),
        registers: Vec::new(),
        values: SecondaryMap::new(),
        scope: Vec::new(),
        begin,
        end,
        builder,
    };
    translator.buffers(pointers)?;
    translator.registers()?;
    translator.body()?;
    translator.builder.ins().return_(&[]);
    translator.builder.seal_all_blocks();
    translator.builder.finalize(isa.frontend_config());
    Ok(function)
}

struct Translator<'p, 'f> {
    program: &'p Program,
    builder: FunctionBuilder<'f>,
    /// The address of each parameter, by slot.
    buffers: Vec<ir::Value>,
    /// The address of each register buffer, by number.
    registers: Vec<ir::Value>,
    /// The values in scope.
    values: SecondaryMap<Value, ir::Value>,
    /// The values in scope, in the order of their definitions.
    scope: Vec<Value>,
    begin: ir::Value,
    end: ir::Value,
}

/// A body that has been begun.
struct Open<'p> {
    rest: slice::Iter<'p, Stmt>,
    /// How many values were in scope before it.
    scope: usize,
    close: Close,
}

/// What comes after a body.
enum Close {
    /// The end of the function.
    Nothing,
    /// The step of a loop, from the body's end back to `header` or on to `exit`.
    Loop { header: Block, exit: Block, var: ir::Value, hi: ir::Value },
    /// A jump to what follows an `if`.
    Jump(Block),
}

/// What decides which instruction an op is, besides the width.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    Float,
}

/// The machine type of a value, its kind, and the log2 of its size in bytes.
fn machine(dtype: DType) -> Result<(Type, Kind, u32), JitErrorKind> {
    match dtype {
        DType::Bool => Ok((types::I8, Kind::Bool, 0)),
        DType::I32 => Ok((types::I32, Kind::Int, 2)),
        DType::I64 => Ok((types::I64, Kind::Int, 3)),
        DType::F32 => Ok((types::F32, Kind::Float, 2)),
        DType::Void | DType::Index => Err(JitErrorKind::Type(dtype)),
    }
}

/// `Err` unless `holds`, the invariant named `what`.
fn require(holds: bool, what: &'static str) -> Result<(), JitErrorKind> {
    holds.then_some(()).ok_or(Malformed(what))
}

impl<'p> Translator<'p, '_> {
    fn buffers(&mut self, pointers: ir::Value) -> Result<(), JitErrorKind> {
        // The caller passes one pointer per parameter, so these loads may go anywhere.
        let flags = MEMORY.with_readonly().with_can_move();
        for (slot, param) in self.program.params.iter().enumerate() {
            machine(param.dtype)?;
            let offset = i32::try_from(8 * slot).map_err(|_| Malformed("too many parameters"))?;
            let offset = Offset32::new(offset);
            let load = self.builder.ins().load(types::I64, flags, pointers, offset);
            self.buffers.push(load);
        }
        Ok(())
    }

    fn registers(&mut self) -> Result<(), JitErrorKind> {
        let mut left = REGISTER_BYTES;
        for register in &self.program.registers {
            let (_, _, log2_size) = machine(register.dtype)?;
            let bytes = register.len.saturating_mul(1 << log2_size);
            left = left.checked_sub(bytes).ok_or(JitErrorKind::Registers)?;
            let words = u32::try_from(bytes.div_ceil(8)).map_err(|_| JitErrorKind::Registers)?;
            let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, words * 8, 3);
            let slot = self.builder.create_sized_stack_slot(slot);
            let address = self.builder.ins().stack_addr(types::I64, slot, 0);
            self.clear(address, words);
            self.registers.push(address);
        }
        Ok(())
    }

    /// Zeroes `words` times 8 bytes from `address`.
    fn clear(&mut self, address: ir::Value, words: u32) {
        if words == 0 {
            return;
        }
        let (body, after) = (self.builder.create_block(), self.builder.create_block());
        let at = self.builder.append_block_param(body, types::I64);
        let first = self.builder.ins().iconst(types::I64, 0);
        self.builder.ins().jump(body, &[BlockArg::Value(first)]);
        self.builder.switch_to_block(body);
        let pointer = self.builder.ins().iadd(address, at);
        self.builder.ins().store(MEMORY, first, pointer, Offset32::new(0));
        let step = self.builder.ins().iconst(types::I64, 8);
        let end = self.builder.ins().iconst(types::I64, i64::from(words) * 8);
        let next = self.builder.ins().iadd(at, step);
        let more = self.builder.ins().icmp(IntCC::UnsignedLessThan, next, end);
        self.builder.ins().brif(more, body, &[BlockArg::Value(next)], after, &[]);
        self.builder.switch_to_block(after);
    }

    /// The statements, with a stack of our own: however deep they nest, ours does not overflow.
    fn body(&mut self) -> Result<(), JitErrorKind> {
        let mut open = vec![self.open(&self.program.body, Close::Nothing)];
        while let Some(innermost) = open.last_mut() {
            if let Some(stmt) = innermost.rest.next() {
                open.extend(self.stmt(stmt)?);
            } else if let Some(done) = open.pop() {
                self.close(done);
            }
        }
        Ok(())
    }

    fn open(&self, body: &'p [Stmt], close: Close) -> Open<'p> {
        Open { rest: body.iter(), scope: self.scope.len(), close }
    }

    fn close(&mut self, body: Open<'_>) {
        for value in self.scope.drain(body.scope..) {
            self.values.remove(value);
        }
        match body.close {
            Close::Nothing => {}
            Close::Loop { header, exit, var, hi } => {
                // `var < hi`, so `var + 1` does not wrap.
                let next = self.add_one(var);
                let again = self.builder.ins().icmp(IntCC::SignedLessThan, next, hi);
                let ins = self.builder.ins();
                ins.brif(again, header, &[BlockArg::Value(next)], exit, &[]);
                self.builder.switch_to_block(exit);
            }
            Close::Jump(block) => {
                self.builder.ins().jump(block, &[]);
                self.builder.switch_to_block(block);
            }
        }
    }

    /// Does `stmt`, or what comes before its body, which is returned.
    fn stmt(&mut self, stmt: &'p Stmt) -> Result<Option<Open<'p>>, JitErrorKind> {
        match stmt {
            Stmt::Let { value, expr } => {
                let dtype = self.program.values.get(*value).copied();
                let dtype = dtype.ok_or(Malformed("a value without a type"))?;
                let result = self.expr(expr, dtype)?;
                self.define(*value, dtype, result)?;
                Ok(None)
            }
            Stmt::For { var, lo, hi, body } => {
                let ((lo, dtype), (hi, hi_dtype)) = (self.value(*lo)?, self.value(*hi)?);
                let (ty, kind, _) = machine(dtype)?;
                require(kind == Kind::Int && dtype == hi_dtype, "a loop bound of another type")?;
                // Guard, then test at the bottom: one branch per iteration, and twice as fast.
                let (header, exit) = (self.builder.create_block(), self.builder.create_block());
                let any = self.builder.ins().icmp(IntCC::SignedLessThan, lo, hi);
                let ins = self.builder.ins();
                ins.brif(any, header, &[BlockArg::Value(lo)], exit, &[]);
                self.builder.switch_to_block(header);
                let i = self.builder.append_block_param(header, ty);
                let close = Close::Loop { header, exit, var: i, hi };
                let open = self.open(body, close);
                self.define(*var, dtype, i)?;
                Ok(Some(open))
            }
            Stmt::If { cond, body } => {
                let cond = self.typed(*cond, DType::Bool)?;
                let (then, join) = (self.builder.create_block(), self.builder.create_block());
                self.builder.ins().brif(cond, then, &[], join, &[]);
                self.builder.switch_to_block(then);
                Ok(Some(self.open(body, Close::Jump(join))))
            }
            Stmt::Store { address, value } => {
                self.mutable(address.storage)?;
                let (pointer, dtype) = self.address(*address)?;
                let value = self.typed(*value, dtype)?;
                let ins = self.builder.ins();
                ins.store(MEMORY, value, pointer, Offset32::new(0));
                Ok(None)
            }
            Stmt::Atomic { op, address, value } => {
                require(
                    matches!(address.storage, Storage::Param(_)),
                    "an atomic on a register buffer",
                )?;
                self.mutable(address.storage)?;
                let (pointer, dtype) = self.address(*address)?;
                let value = self.typed(*value, dtype)?;
                self.atomic(*op, dtype, pointer, value)?;
                Ok(None)
            }
        }
    }

    fn expr(&mut self, expr: &Expr, dtype: DType) -> Result<ir::Value, JitErrorKind> {
        let (ty, _, _) = machine(dtype)?;
        match expr {
            Expr::Const(value) => {
                require(value.fits(dtype), "a constant of another type")?;
                Ok(match *value {
                    Const::Bool(bool) => self.builder.ins().iconst(ty, i64::from(bool)),
                    // The bits beyond the type are 0 in an immediate.
                    Const::Int(int) if ty == types::I32 => {
                        self.builder.ins().iconst(ty, i64::from(int as u32))
                    }
                    Const::Int(int) => self.builder.ins().iconst(ty, int as i64),
                    Const::F32(bits) => self.builder.ins().f32const(Ieee32::with_bits(bits)),
                })
            }
            Expr::Launch(index) => {
                require(dtype == DType::I64, "a launch index of another type")?;
                match index {
                    LaunchIndex::Block(_) | LaunchIndex::Item(_) => Err(JitErrorKind::Grid),
                    LaunchIndex::Begin => Ok(self.begin),
                    LaunchIndex::End => Ok(self.end),
                }
            }
            Expr::Alu { op, args, exact: _ } => self.alu(*op, args, dtype),
            Expr::Load { address, gate } => {
                let element = self.element(address.storage)?;
                require(dtype == element, "a load of another type")?;
                let Some((gate, alt)) = gate else {
                    let (pointer, _) = self.address(*address)?;
                    let ins = self.builder.ins();
                    return Ok(ins.load(ty, MEMORY, pointer, Offset32::new(0)));
                };
                let (gate, alt) = (self.typed(*gate, DType::Bool)?, self.typed(*alt, dtype)?);
                let (then, join) = (self.builder.create_block(), self.builder.create_block());
                let result = self.builder.append_block_param(join, ty);
                let ins = self.builder.ins();
                ins.brif(gate, then, &[], join, &[BlockArg::Value(alt)]);
                self.builder.switch_to_block(then);
                let (pointer, _) = self.address(*address)?;
                let ins = self.builder.ins();
                let load = ins.load(ty, MEMORY, pointer, Offset32::new(0));
                self.builder.ins().jump(join, &[BlockArg::Value(load)]);
                self.builder.switch_to_block(join);
                Ok(result)
            }
        }
    }

    fn alu(&mut self, op: Op, args: &[Value], to: DType) -> Result<ir::Value, JitErrorKind> {
        let args = args.iter().map(|&arg| self.value(arg));
        let (x, from): (Vec<_>, Vec<_>) = args.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let unsupported = || JitErrorKind::Alu { op, from: from.clone(), to };
        let well_typed = op.arity().admits(x.len())
            && match op.result() {
                ResultType::Stated => true,
                ResultType::SameAs(source) => from[source] == to,
                ResultType::Always(dtype) => dtype == to,
                ResultType::Sized => false,
            }
            && match (op, &from[..]) {
                (Op::Where, [cond, x, y]) => *cond == DType::Bool && x == y,
                (_, from) => from.iter().all(|dtype| *dtype == from[0]),
            };
        let Some(&operand) = from.last().filter(|_| well_typed) else {
            return Err(unsupported());
        };

        let (_, kind, _) = machine(operand)?;
        let ins = self.builder.ins();
        Ok(match (op, kind) {
            (Op::Neg, Kind::Int) => ins.ineg(x[0]),
            (Op::Neg, Kind::Float) => ins.fneg(x[0]),
            (Op::Add, Kind::Int) => ins.iadd(x[0], x[1]),
            (Op::Add, Kind::Float) => ins.fadd(x[0], x[1]),
            (Op::Sub, Kind::Int) => ins.isub(x[0], x[1]),
            (Op::Sub, Kind::Float) => ins.fsub(x[0], x[1]),
            (Op::Mul, Kind::Int) => ins.imul(x[0], x[1]),
            (Op::Mul, Kind::Float) => ins.fmul(x[0], x[1]),
            (Op::Max, Kind::Int) => ins.smax(x[0], x[1]),
            (Op::Max, Kind::Float) => {
                let first = ins.fcmp(FloatCC::LessThan, x[1], x[0]);
                self.select_float(first, x[0], x[1])
            }
            (Op::Min, Kind::Int) => ins.smin(x[0], x[1]),
            (Op::Min, Kind::Float) => {
                let first = ins.fcmp(FloatCC::LessThan, x[0], x[1]);
                self.select_float(first, x[0], x[1])
            }
            (Op::And, Kind::Bool | Kind::Int) => ins.band(x[0], x[1]),
            (Op::Or, Kind::Bool | Kind::Int) => ins.bor(x[0], x[1]),
            (Op::CmpLt, Kind::Bool) => ins.icmp(IntCC::UnsignedLessThan, x[0], x[1]),
            (Op::CmpLt, Kind::Int) => ins.icmp(IntCC::SignedLessThan, x[0], x[1]),
            (Op::CmpLt, Kind::Float) => ins.fcmp(FloatCC::LessThan, x[0], x[1]),
            (Op::CmpNe, Kind::Bool | Kind::Int) => ins.icmp(IntCC::NotEqual, x[0], x[1]),
            (Op::CmpNe, Kind::Float) => ins.fcmp(FloatCC::NotEqual, x[0], x[1]),
            (Op::CmpEq, Kind::Bool | Kind::Int) => ins.icmp(IntCC::Equal, x[0], x[1]),
            (Op::CmpEq, Kind::Float) => ins.fcmp(FloatCC::Equal, x[0], x[1]),
            (Op::Where, Kind::Bool | Kind::Int) => ins.select(x[0], x[1], x[2]),
            (Op::Where, Kind::Float) => self.select_float(x[0], x[1], x[2]),
            (Op::Cast, _) => self.cast(x[0], operand, to)?,
            (Op::Neg | Op::Add | Op::Sub | Op::Mul | Op::Max | Op::Min, Kind::Bool)
            | (Op::And | Op::Or, Kind::Float)
            | (
                // None of these is arithmetic.
                Op::Param
                | Op::Buffer
                | Op::Const
                | Op::Range
                | Op::Special
                | Op::Reshape
                | Op::Index
                | Op::Load
                | Op::Store
                | Op::Custom
                | Op::After
                | Op::Group
                | Op::End
                | Op::Sink,
                _,
            ) => return Err(unsupported()),
        })
    }

    fn cast(&mut self, x: ir::Value, from: DType, to: DType) -> Result<ir::Value, JitErrorKind> {
        let ((from_ty, from_kind, _), (ty, kind, _)) = (machine(from)?, machine(to)?);
        let ins = self.builder.ins();
        Ok(match (from_kind, kind) {
            (Kind::Bool, Kind::Bool) | (Kind::Float, Kind::Float) => x,
            (Kind::Bool, Kind::Int) => ins.uextend(ty, x),
            (Kind::Bool, Kind::Float) => {
                let int = ins.uextend(types::I32, x);
                self.builder.ins().fcvt_from_sint(ty, int)
            }
            (Kind::Int, Kind::Bool) => {
                let zero = ins.iconst(from_ty, 0);
                self.builder.ins().icmp(IntCC::NotEqual, x, zero)
            }
            (Kind::Int, Kind::Int) if from_ty.bits() < ty.bits() => ins.sextend(ty, x),
            (Kind::Int, Kind::Int) if from_ty.bits() > ty.bits() => ins.ireduce(ty, x),
            (Kind::Int, Kind::Int) => x,
            (Kind::Int, Kind::Float) => ins.fcvt_from_sint(ty, x),
            (Kind::Float, Kind::Bool) => {
                let zero = ins.f32const(Ieee32::with_bits(0));
                self.builder.ins().fcmp(FloatCC::NotEqual, x, zero)
            }
            (Kind::Float, Kind::Int) => ins.fcvt_to_sint_sat(ty, x),
        })
    }

    /// `cond ? x : y` of f32 values, by way of their bits: `select` on floats is a branch.
    fn select_float(&mut self, cond: ir::Value, x: ir::Value, y: ir::Value) -> ir::Value {
        let [x, y] = [x, y].map(|float| self.bits(float));
        let bits = self.builder.ins().select(cond, x, y);
        self.float(bits)
    }

    fn atomic(
        &mut self,
        op: AtomicOp,
        dtype: DType,
        pointer: ir::Value,
        value: ir::Value,
    ) -> Result<(), JitErrorKind> {
        let (ty, kind, _) = machine(dtype)?;
        match (op, kind) {
            (AtomicOp::Add, Kind::Int) => {
                let ins = self.builder.ins();
                ins.atomic_rmw(ty, MEMORY, AtomicRmwOp::Add, pointer, value);
                Ok(())
            }
            (AtomicOp::Add, Kind::Float) => {
                let (retry, done) = (self.builder.create_block(), self.builder.create_block());
                let old = self.builder.append_block_param(retry, types::I32);
                let ins = self.builder.ins();
                let first = ins.atomic_load(types::I32, MEMORY, pointer);
                self.builder.ins().jump(retry, &[BlockArg::Value(first)]);
                self.builder.switch_to_block(retry);
                let float = self.float(old);
                let sum = self.builder.ins().fadd(float, value);
                let new = self.bits(sum);
                let ins = self.builder.ins();
                let seen = ins.atomic_cas(MEMORY, pointer, old, new);
                // Bits are compared, not floats: a NaN would try for ever.
                let again = self.builder.ins().icmp(IntCC::NotEqual, seen, old);
                let ins = self.builder.ins();
                ins.brif(again, retry, &[BlockArg::Value(seen)], done, &[]);
                self.builder.switch_to_block(done);
                Ok(())
            }
            (AtomicOp::Add, Kind::Bool) => Err(JitErrorKind::Atomic { op, dtype }),
        }
    }

    /// The address in bytes and the type of the element there.
    fn address(&mut self, address: Address) -> Result<(ir::Value, DType), JitErrorKind> {
        let element = self.element(address.storage)?;
        let base = match address.storage {
            Storage::Param(slot) => self.buffers[slot],
            Storage::Register(number) => self.registers[number],
        };
        let (offset, dtype) = self.value(address.offset)?;
        require(dtype.is_int(), "an offset that is no integer")?;
        let offset = self.cast(offset, dtype, DType::I64)?;
        let (_, _, log2_size) = machine(element)?;
        let log2_size = self.builder.ins().iconst(types::I64, i64::from(log2_size));
        let bytes = self.builder.ins().ishl(offset, log2_size);
        Ok((self.builder.ins().iadd(base, bytes), element))
    }

    fn element(&self, storage: Storage) -> Result<DType, JitErrorKind> {
        let dtype = match storage {
            Storage::Param(slot) => self.program.params.get(slot).map(|param| param.dtype),
            Storage::Register(number) => self.program.registers.get(number).map(|reg| reg.dtype),
        };
        dtype.ok_or(Malformed("a buffer that does not exist"))
    }

    /// The caller promises that only mutable parameters are valid for writes.
    fn mutable(&self, storage: Storage) -> Result<(), JitErrorKind> {
        match storage {
            Storage::Param(slot) => {
                let mutable = self.program.params.get(slot).is_none_or(|p| p.mutable);
                require(mutable, "a write to a read-only parameter")
            }
            Storage::Register(_) => Ok(()),
        }
    }

    fn define(&mut self, value: Value, dtype: DType, is: ir::Value) -> Result<(), JitErrorKind> {
        let declared = self.program.values.get(value);
        require(declared == Some(&dtype), "a value of another type")?;
        let before = self.values.insert(value, is);
        require(before.is_none(), "a value that is defined twice")?;
        self.scope.push(value);
        Ok(())
    }

    fn value(&self, value: Value) -> Result<(ir::Value, DType), JitErrorKind> {
        let defined = self.values.get(value).copied();
        let dtype = self.program.values.get(value).copied();
        defined.zip(dtype).ok_or(Malformed("a value that is not defined where it is used"))
    }

    fn typed(&self, value: Value, dtype: DType) -> Result<ir::Value, JitErrorKind> {
        let (is, found) = self.value(value)?;
        require(found == dtype, "an operand of another type")?;
        Ok(is)
    }

    fn add_one(&mut self, x: ir::Value) -> ir::Value {
        let ty = self.builder.func.dfg.value_type(x);
        let one = self.builder.ins().iconst(ty, 1);
        self.builder.ins().iadd(x, one)
    }

    fn bits(&mut self, float: ir::Value) -> ir::Value {
        let flags = MemFlagsData::new();
        self.builder.ins().bitcast(types::I32, flags, float)
    }

    fn float(&mut self, bits: ir::Value) -> ir::Value {
        let flags = MemFlagsData::new();
        self.builder.ins().bitcast(types::F32, flags, bits)
    }
}
