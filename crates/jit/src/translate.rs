//! From a program to a Cranelift function: one exhaustive match over statements, expressions, ops.
//!
//! - A `bool` is an I8, 0 or 1, as `icmp` and `fcmp` give it and as it lies in memory.
//! - Every access is `notrap` and nothing more. `can_move` would let Cranelift hoist a load above
//!   the gate or the loop that keeps its address valid (seen), and `readonly` needs both.
//! - Two parameters may be the same memory as far as this knows: there is one alias region.
//! - A program is validated first: with its verifier off, Cranelift would miscompile what is not
//!   well typed. What is left to refuse is what only this back end lacks.

use std::slice;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64, Offset32};
use cranelift_codegen::ir::{
    self, AbiParam, AtomicRmwOp, Block, BlockArg, Function, InstBuilder, MemFlagsData, Signature,
    StackSlotData, StackSlotKind, Type, UserFuncName, types,
};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_frontend::{FuncInstBuilder, FunctionBuilder, FunctionBuilderContext};
use lower::{
    Address, CallArg, Expr, Launch, LaunchIndex, Program, REGISTER_BYTES, Stmt, Storage, Value,
};
use slotmap::SecondaryMap;
use uop::{AtomicOp, Const, DType, Declaration, Op};

use crate::error::JitErrorKind;
use crate::functions::Functions;

const MEMORY: MemFlagsData = MemFlagsData::new().with_notrap();

/// The function of `program`; its signature is that of `Code`'s entry, whatever the program.
pub(crate) fn translate(
    program: &Program,
    isa: &OwnedTargetIsa,
    functions: &Functions,
) -> Result<Function, JitErrorKind> {
    program.validate()?;
    if let Launch::Grid { .. } = program.launch {
        return Err(JitErrorKind::Grid);
    }
    let mut signature = Signature::new(isa.default_call_conv());
    signature.params = vec![AbiParam::new(types::I64); 4];
    let name = UserFuncName::testcase(&program.name);
    let mut function = Function::with_name_signature(name, signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);

    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let (pointers, variables, begin, end) = match *builder.block_params(entry) {
        [pointers, variables, begin, end] => (pointers, variables, begin, end),
        _ => unreachable!("the signature has four parameters"),
    };
    let mut translator = Translator {
        functions,
        program,
        buffers: Vec::new(),
        registers: Vec::new(),
        values: SecondaryMap::new(),
        variables,
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
    functions: &'p Functions,
    builder: FunctionBuilder<'f>,
    /// The address of each parameter, by slot.
    buffers: Vec<ir::Value>,
    /// The address of each register buffer, by number.
    registers: Vec<ir::Value>,
    /// The values that were defined so far.
    values: SecondaryMap<Value, ir::Value>,
    /// The address of the first variable.
    variables: ir::Value,
    begin: ir::Value,
    end: ir::Value,
}

/// A body that has been begun.
struct Open<'p> {
    rest: slice::Iter<'p, Stmt>,
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
    Signed,
    Unsigned,
    Float,
    /// A float of 16 bits, as its bits: only moved, and converted from and to f32.
    Half,
}

/// The machine type of a value, its kind, and the log2 of its size in bytes.
fn machine(dtype: DType) -> (Type, Kind, u32) {
    let kind = match dtype {
        DType::Bool => Kind::Bool,
        _ if dtype.is_half() => Kind::Half,
        _ if dtype.is_float() => Kind::Float,
        _ if dtype.is_unsigned() => Kind::Unsigned,
        _ => Kind::Signed,
    };
    let (ty, log2_size) = match (dtype.size(), kind) {
        (Some(1), _) => (types::I8, 0),
        (Some(2), _) => (types::I16, 1),
        (Some(4), Kind::Float) => (types::F32, 2),
        (Some(4), _) => (types::I32, 2),
        (Some(8), Kind::Float) => (types::F64, 3),
        (Some(8), _) => (types::I64, 3),
        _ => unreachable!("a valid program has no {dtype}"),
    };
    (ty, kind, log2_size)
}

impl<'p, 'f> Translator<'p, 'f> {
    fn ins(&mut self) -> FuncInstBuilder<'_, 'f> {
        self.builder.ins()
    }

    fn buffers(&mut self, pointers: ir::Value) -> Result<(), JitErrorKind> {
        for slot in 0..self.program.params.len() {
            let address = self.argument(pointers, slot)?;
            self.buffers.push(address);
        }
        Ok(())
    }

    /// `arguments[number]`. The caller passes them all, so this load may go anywhere.
    fn argument(&mut self, arguments: ir::Value, number: usize) -> Result<ir::Value, JitErrorKind> {
        let offset = i32::try_from(8 * number);
        let offset = offset.map_err(|_| JitErrorKind::Codegen("too many arguments".to_owned()))?;
        let flags = MEMORY.with_readonly().with_can_move();
        Ok(self.ins().load(types::I64, flags, arguments, Offset32::new(offset)))
    }

    fn registers(&mut self) -> Result<(), JitErrorKind> {
        let mut left = REGISTER_BYTES;
        for register in &self.program.registers {
            let (_, _, log2_size) = machine(register.dtype);
            let bytes = register.len << log2_size;
            left = left.checked_sub(bytes).ok_or(JitErrorKind::Registers)?;
            let words = bytes.div_ceil(8) as u32;
            let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, words * 8, 3);
            let slot = self.builder.create_sized_stack_slot(slot);
            let address = self.ins().stack_addr(types::I64, slot, 0);
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
        let first = self.ins().iconst(types::I64, 0);
        self.ins().jump(body, &[BlockArg::Value(first)]);
        self.builder.switch_to_block(body);
        let pointer = self.ins().iadd(address, at);
        self.ins().store(MEMORY, first, pointer, Offset32::new(0));
        let step = self.ins().iconst(types::I64, 8);
        let end = self.ins().iconst(types::I64, i64::from(words) * 8);
        let next = self.ins().iadd(at, step);
        let more = self.ins().icmp(IntCC::UnsignedLessThan, next, end);
        self.ins().brif(more, body, &[BlockArg::Value(next)], after, &[]);
        self.builder.switch_to_block(after);
    }

    /// The statements, with a stack of our own: however deep they nest, ours does not overflow.
    fn body(&mut self) -> Result<(), JitErrorKind> {
        let mut open = vec![Open { rest: self.program.body.iter(), close: Close::Nothing }];
        while let Some(innermost) = open.last_mut() {
            if let Some(stmt) = innermost.rest.next() {
                open.extend(self.stmt(stmt)?);
            } else if let Some(done) = open.pop() {
                self.close(done);
            }
        }
        Ok(())
    }

    fn close(&mut self, body: Open<'_>) {
        match body.close {
            Close::Nothing => {}
            Close::Loop { header, exit, var, hi } => {
                // `var < hi`, so `var + 1` does not wrap.
                let next = self.add_one(var);
                let again = self.ins().icmp(IntCC::SignedLessThan, next, hi);
                self.ins().brif(again, header, &[BlockArg::Value(next)], exit, &[]);
                self.builder.switch_to_block(exit);
            }
            Close::Jump(block) => {
                self.ins().jump(block, &[]);
                self.builder.switch_to_block(block);
            }
        }
    }

    /// Does `stmt`, or what comes before its body, which is returned.
    fn stmt(&mut self, stmt: &'p Stmt) -> Result<Option<Open<'p>>, JitErrorKind> {
        match stmt {
            Stmt::Let { value, expr } => {
                let result = self.expr(expr, self.program.values[*value])?;
                self.values.insert(*value, result);
                Ok(None)
            }
            Stmt::For { var, lo, hi, body } => {
                let (ty, ..) = machine(self.program.values[*var]);
                let (lo, hi) = (self.values[*lo], self.values[*hi]);
                // Guard, then test at the bottom: one branch per iteration, and twice as fast.
                let (header, exit) = (self.builder.create_block(), self.builder.create_block());
                let any = self.ins().icmp(IntCC::SignedLessThan, lo, hi);
                self.ins().brif(any, header, &[BlockArg::Value(lo)], exit, &[]);
                self.builder.switch_to_block(header);
                let i = self.builder.append_block_param(header, ty);
                self.values.insert(*var, i);
                let close = Close::Loop { header, exit, var: i, hi };
                Ok(Some(Open { rest: body.iter(), close }))
            }
            Stmt::If { cond, body } => {
                let cond = self.values[*cond];
                let (then, join) = (self.builder.create_block(), self.builder.create_block());
                self.ins().brif(cond, then, &[], join, &[]);
                self.builder.switch_to_block(then);
                Ok(Some(Open { rest: body.iter(), close: Close::Jump(join) }))
            }
            Stmt::Store { address, value } => {
                let pointer = self.address(*address)?;
                let value = self.values[*value];
                self.ins().store(MEMORY, value, pointer, Offset32::new(0));
                Ok(None)
            }
            Stmt::Atomic { op, address, values, old, gate } => {
                let dtype = self.program.element(address.storage);
                let before = self.gated(*gate, dtype, |t| {
                    let pointer = t.address(*address)?;
                    let values: Vec<_> = values.iter().map(|&value| t.values[value]).collect();
                    Ok(t.atomic(*op, dtype, pointer, &values))
                })?;
                old.map(|old| self.values.insert(old, before));
                Ok(None)
            }
            Stmt::Call { result, custom, args, gate } => {
                let custom = &self.program.customs[*custom];
                if let Some(result) = result {
                    let dtype = custom.contract().result;
                    let value = self.gated(*gate, dtype, |t| {
                        Ok(t.call(custom, args)?.expect("the contract has a result"))
                    })?;
                    self.values.insert(*result, value);
                } else {
                    self.call(custom, args)?;
                }
                Ok(None)
            }
        }
    }

    /// The value that `access` gives; with a gate that is false, the alternative and no access.
    fn gated(
        &mut self,
        gate: Option<(Value, Value)>,
        dtype: DType,
        access: impl FnOnce(&mut Self) -> Result<ir::Value, JitErrorKind>,
    ) -> Result<ir::Value, JitErrorKind> {
        let Some((gate, alt)) = gate else { return access(self) };
        let (gate, alt) = (self.values[gate], self.values[alt]);
        let (then, join) = (self.builder.create_block(), self.builder.create_block());
        let result = self.builder.append_block_param(join, machine(dtype).0);
        self.ins().brif(gate, then, &[], join, &[BlockArg::Value(alt)]);
        self.builder.switch_to_block(then);
        let value = access(self)?;
        self.ins().jump(join, &[BlockArg::Value(value)]);
        self.builder.switch_to_block(join);
        Ok(result)
    }

    fn expr(&mut self, expr: &Expr, dtype: DType) -> Result<ir::Value, JitErrorKind> {
        let (ty, ..) = machine(dtype);
        Ok(match expr {
            Expr::Const(value) => match *value {
                Const::Bool(bool) => self.ins().iconst(ty, i64::from(bool)),
                // The bits beyond the type are 0 in an immediate.
                Const::Int(int) => {
                    let bits = int as u64 & (u64::MAX >> (64 - ty.bits()));
                    self.ins().iconst(ty, bits as i64)
                }
                Const::F16(bits) | Const::BF16(bits) => self.ins().iconst(ty, i64::from(bits)),
                Const::F32(bits) => self.ins().f32const(Ieee32::with_bits(bits)),
                Const::F64(bits) => self.ins().f64const(Ieee64::with_bits(bits)),
            },
            Expr::Launch(index) => match index {
                LaunchIndex::Begin => self.begin,
                LaunchIndex::End => self.end,
                LaunchIndex::Variable(number) => {
                    let variable = self.argument(self.variables, *number)?;
                    self.cast(variable, DType::I64, dtype)?
                }
                LaunchIndex::Block(_) | LaunchIndex::Item(_) => {
                    unreachable!("a valid program without a grid has no index in one")
                }
            },
            Expr::Alu { op, args, exact: _ } => self.alu(*op, args, dtype)?,
            Expr::Load { address, gate } => self.gated(*gate, dtype, |t| {
                let pointer = t.address(*address)?;
                Ok(t.ins().load(ty, MEMORY, pointer, Offset32::new(0)))
            })?,
        })
    }

    fn alu(&mut self, op: Op, args: &[Value], to: DType) -> Result<ir::Value, JitErrorKind> {
        let x: Vec<_> = args.iter().map(|&arg| self.values[arg]).collect();
        // Operands are of one type, but for the condition of a WHERE, which comes first.
        let from = self.program.values[args[args.len() - 1]];
        let (_, kind, _) = machine(from);
        use Kind::{Bool, Float, Signed, Unsigned};
        let ins = self.builder.ins();
        Ok(match (op, kind) {
            (Op::Cast, _) => self.cast(x[0], from, to)?,
            (Op::Where, Float) => self.select_float(x[0], x[1], x[2]),
            (Op::Where, _) => ins.select(x[0], x[1], x[2]),
            (Op::Neg, Signed | Unsigned) => ins.ineg(x[0]),
            (Op::Neg, Float) => ins.fneg(x[0]),
            (Op::Add, Signed | Unsigned) => ins.iadd(x[0], x[1]),
            (Op::Add, Float) => ins.fadd(x[0], x[1]),
            (Op::Sub, Signed | Unsigned) => ins.isub(x[0], x[1]),
            (Op::Sub, Float) => ins.fsub(x[0], x[1]),
            (Op::Mul, Signed | Unsigned) => ins.imul(x[0], x[1]),
            (Op::Mul, Float) => ins.fmul(x[0], x[1]),
            (Op::Max, Signed) => ins.smax(x[0], x[1]),
            (Op::Max, Unsigned) => ins.umax(x[0], x[1]),
            (Op::Max, Float) => {
                let first = ins.fcmp(FloatCC::LessThan, x[1], x[0]);
                self.select_float(first, x[0], x[1])
            }
            (Op::Min, Signed) => ins.smin(x[0], x[1]),
            (Op::Min, Unsigned) => ins.umin(x[0], x[1]),
            (Op::Min, Float) => {
                let first = ins.fcmp(FloatCC::LessThan, x[0], x[1]);
                self.select_float(first, x[0], x[1])
            }
            (Op::And, Bool | Signed | Unsigned) => ins.band(x[0], x[1]),
            (Op::Or, Bool | Signed | Unsigned) => ins.bor(x[0], x[1]),
            (Op::CmpLt, Unsigned) => ins.icmp(IntCC::UnsignedLessThan, x[0], x[1]),
            (Op::CmpLt, Signed) => ins.icmp(IntCC::SignedLessThan, x[0], x[1]),
            (Op::CmpLt, Float) => ins.fcmp(FloatCC::LessThan, x[0], x[1]),
            (Op::CmpNe, Bool | Signed | Unsigned) => ins.icmp(IntCC::NotEqual, x[0], x[1]),
            (Op::CmpNe, Float) => ins.fcmp(FloatCC::NotEqual, x[0], x[1]),
            (Op::CmpEq, Bool | Signed | Unsigned) => ins.icmp(IntCC::Equal, x[0], x[1]),
            (Op::CmpEq, Float) => ins.fcmp(FloatCC::Equal, x[0], x[1]),
            // The rest is computed on floats of 16 bits, which `lower` leaves none of.
            _ => return Err(JitErrorKind::Alu { op, from, to }),
        })
    }

    fn cast(&mut self, x: ir::Value, from: DType, to: DType) -> Result<ir::Value, JitErrorKind> {
        use Kind::{Bool, Float, Half, Signed, Unsigned};
        let ((from_ty, from_kind, _), (ty, kind, _)) = (machine(from), machine(to));
        let ins = self.ins();
        Ok(match (from_kind, kind) {
            _ if from == to => x,
            (Half, Float) if to == DType::F32 => self.widen(x, from),
            (Float, Half) if from == DType::F32 => self.narrow(x, to),
            (Half, _) | (_, Half) => return Err(JitErrorKind::Alu { op: Op::Cast, from, to }),
            (Float, Float) if ty == types::F64 => ins.fpromote(ty, x),
            (Float, Float) => ins.fdemote(ty, x),
            (Signed | Unsigned, Bool) => {
                let zero = ins.iconst(from_ty, 0);
                self.ins().icmp(IntCC::NotEqual, x, zero)
            }
            (Float, Bool) => {
                let zero = self.float_zero(from_ty);
                self.ins().fcmp(FloatCC::NotEqual, x, zero)
            }
            (_, Bool | Signed | Unsigned) if from_kind != Float => {
                if from_ty.bits() > ty.bits() {
                    ins.ireduce(ty, x)
                } else if from_ty.bits() == ty.bits() {
                    x
                } else if from_kind == Signed {
                    ins.sextend(ty, x)
                } else {
                    ins.uextend(ty, x)
                }
            }
            (Signed, _) if from_ty.bits() >= 32 => ins.fcvt_from_sint(ty, x),
            (Unsigned, _) if from_ty.bits() == 64 => ins.fcvt_from_uint(ty, x),
            // Every smaller integer is one of 64 bits.
            (Bool | Signed | Unsigned, _) => {
                let wide = self.cast(x, from, DType::I64)?;
                self.ins().fcvt_from_sint(ty, wide)
            }
            (Float, _) if to == DType::U64 => ins.fcvt_to_uint_sat(ty, x),
            (Float, _) if to.is_index() => ins.fcvt_to_sint_sat(ty, x),
            // Of 64 bits first, and then moved into the range.
            (Float, _) => {
                let (lo, hi) = to.int_range().unwrap_or_default();
                let wide = ins.fcvt_to_sint_sat(types::I64, x);
                let lo = self.ins().iconst(types::I64, lo as i64);
                let hi = self.ins().iconst(types::I64, hi as i64);
                let above = self.ins().smax(wide, lo);
                let within = self.ins().smin(above, hi);
                self.ins().ireduce(ty, within)
            }
        })
    }

    /// The f32 of the same value as a float of 16 bits.
    fn widen(&mut self, half: ir::Value, from: DType) -> ir::Value {
        let bits = self.ins().uextend(types::I32, half);
        if from == DType::BF16 {
            let bits = self.ins().ishl_imm_u(bits, 16);
            return self.float(bits);
        }
        let sign = self.ins().band_imm_u(bits, 0x8000);
        let sign = self.ins().ishl_imm_u(sign, 16);
        let size = self.ins().band_imm_u(bits, 0x7fff);
        let rest = self.ins().ishl_imm_u(size, 13);
        // A float whose exponent and mantissa are the half's is too small by 2^112, the difference
        // of the two exponent biases. That keeps infinities and NaNs from being any.
        let small = self.float(rest);
        let scale = self.ins().f32const(Ieee32::with_bits(0x7780_0000));
        let scaled = self.ins().fmul(small, scale);
        let finite = self.bits(scaled);
        let other = self.ins().bor_imm_u(rest, 0x7f80_0000);
        let is_finite = self.ins().icmp_imm_u(IntCC::UnsignedLessThan, size, 0x7c00);
        let bits = self.ins().select(is_finite, finite, other);
        let bits = self.ins().bor(bits, sign);
        self.float(bits)
    }

    /// The float of 16 bits nearest to an f32, ties to even.
    fn narrow(&mut self, float: ir::Value, to: DType) -> ir::Value {
        let bits = self.bits(float);
        let half = if to == DType::BF16 {
            // Half of the last bit that stays, less one if that bit is even.
            let odd = self.ins().ushr_imm_u(bits, 16);
            let odd = self.ins().band_imm_u(odd, 1);
            let up = self.ins().iadd_imm_u(odd, 0x7fff);
            let near = self.ins().iadd(bits, up);
            let nan = self.ins().bor_imm_u(bits, 0x40_0000);
            let is_nan = self.ins().fcmp(FloatCC::NotEqual, float, float);
            let bits = self.ins().select(is_nan, nan, near);
            self.ins().ushr_imm_u(bits, 16)
        } else {
            let sign = self.ins().ushr_imm_u(bits, 16);
            let sign = self.ins().band_imm_u(sign, 0x8000);
            let size = self.ins().band_imm_u(bits, 0x7fff_ffff);
            let odd = self.ins().ushr_imm_u(size, 13);
            let odd = self.ins().band_imm_u(odd, 1);
            let near = self.ins().iadd(size, odd);
            // The other exponent bias, and half of the last bit that stays, less one.
            let near = self.ins().iadd_imm_u(near, 0xc800_0fff);
            let normal = self.ins().ushr_imm_u(near, 13);
            // Below the least normal half: the last bit of 0.5 has the weight of the least half,
            // so that the sum rounds.
            let tiny = self.float(size);
            let one_half = self.ins().f32const(Ieee32::with_bits(0x3f00_0000));
            let sum = self.ins().fadd(tiny, one_half);
            let sum = self.bits(sum);
            let subnormal = self.ins().iadd_imm_u(sum, 0xc100_0000);
            let is_tiny = self.ins().icmp_imm_u(IntCC::UnsignedLessThan, size, 0x3880_0000);
            let finite = self.ins().select(is_tiny, subnormal, normal);
            let nan = self.ins().iconst(types::I32, 0x7e00);
            let infinity = self.ins().iconst(types::I32, 0x7c00);
            let is_nan = self.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, size, 0x7f80_0000);
            let other = self.ins().select(is_nan, nan, infinity);
            let is_finite = self.ins().icmp_imm_u(IntCC::UnsignedLessThan, size, 0x4780_0000);
            let half = self.ins().select(is_finite, finite, other);
            self.ins().bor(half, sign)
        };
        self.ins().ireduce(types::I16, half)
    }

    /// `cond ? x : y` of floats, by way of their bits: `select` on floats is a branch.
    fn select_float(&mut self, cond: ir::Value, x: ir::Value, y: ir::Value) -> ir::Value {
        let [x, y] = [x, y].map(|float| self.bits(float));
        let bits = self.ins().select(cond, x, y);
        self.float(bits)
    }

    /// Does the atomic and returns the old value.
    fn atomic(
        &mut self,
        op: AtomicOp,
        dtype: DType,
        pointer: ir::Value,
        values: &[ir::Value],
    ) -> ir::Value {
        let (ty, kind, _) = machine(dtype);
        let (is_float, int) = (kind == Kind::Float, ty.as_int());
        let rmw = match (op, kind) {
            (AtomicOp::Add | AtomicOp::Max | AtomicOp::Min, Kind::Float) => {
                return self.atomic_float(op, int, pointer, values[0]);
            }
            (AtomicOp::Cas, _) => None,
            (AtomicOp::Add, _) => Some(AtomicRmwOp::Add),
            (AtomicOp::Max, Kind::Unsigned) => Some(AtomicRmwOp::Umax),
            (AtomicOp::Max, _) => Some(AtomicRmwOp::Smax),
            (AtomicOp::Min, Kind::Unsigned) => Some(AtomicRmwOp::Umin),
            (AtomicOp::Min, _) => Some(AtomicRmwOp::Smin),
            (AtomicOp::And, _) => Some(AtomicRmwOp::And),
            (AtomicOp::Or, _) => Some(AtomicRmwOp::Or),
            (AtomicOp::Xor, _) => Some(AtomicRmwOp::Xor),
            (AtomicOp::Exchange, _) => Some(AtomicRmwOp::Xchg),
        };
        let words = values.iter().map(|&value| if is_float { self.bits(value) } else { value });
        let words: Vec<ir::Value> = words.collect();
        let ins = self.ins();
        let old = match rmw {
            Some(rmw) => ins.atomic_rmw(int, MEMORY, rmw, pointer, words[0]),
            None => ins.atomic_cas(MEMORY, pointer, words[0], words[1]),
        };
        if is_float { self.float(old) } else { old }
    }

    /// An atomic sum, maximum or minimum of floats of the size of `ty`, by compare and exchange.
    fn atomic_float(
        &mut self,
        op: AtomicOp,
        ty: Type,
        pointer: ir::Value,
        value: ir::Value,
    ) -> ir::Value {
        let (retry, done) = (self.builder.create_block(), self.builder.create_block());
        let old = self.builder.append_block_param(retry, ty);
        let first = self.ins().atomic_load(ty, MEMORY, pointer);
        self.ins().jump(retry, &[BlockArg::Value(first)]);
        self.builder.switch_to_block(retry);
        let float = self.float(old);
        let new = if op == AtomicOp::Add {
            let sum = self.ins().fadd(float, value);
            self.bits(sum)
        } else {
            // The old value stays if it is a NaN, beyond the new one, or equal to it; of zeros,
            // which are equal, the sign of the new one decides.
            let bits = self.bits(value);
            let (x, y, sign) = match op {
                AtomicOp::Max => (value, float, IntCC::SignedLessThan),
                _ => (float, value, IntCC::SignedGreaterThanOrEqual),
            };
            let beyond = self.ins().fcmp(FloatCC::LessThan, x, y);
            let equal = self.ins().fcmp(FloatCC::Equal, x, y);
            let signed = self.ins().icmp_imm_s(sign, bits, 0);
            let equal = self.ins().band(equal, signed);
            let stays = self.ins().bor(beyond, equal);
            let nan = self.ins().fcmp(FloatCC::NotEqual, float, float);
            let stays = self.ins().bor(stays, nan);
            self.ins().select(stays, old, bits)
        };
        let seen = self.ins().atomic_cas(MEMORY, pointer, old, new);
        // Bits are compared, not floats: a NaN would try for ever.
        let again = self.ins().icmp(IntCC::NotEqual, seen, old);
        self.ins().brif(again, retry, &[BlockArg::Value(seen)], done, &[]);
        self.builder.switch_to_block(done);
        float
    }

    /// Calls the function for `custom`; its result, if it has one.
    fn call(
        &mut self,
        custom: &Declaration,
        args: &[CallArg],
    ) -> Result<Option<ir::Value>, JitErrorKind> {
        let function = self.functions.get(custom)?;
        let mut signature = Signature::new(self.builder.func.signature.call_conv);
        let mut values = Vec::new();
        for arg in args {
            let (value, param) = match *arg {
                CallArg::Value(value) => {
                    let (ty, kind, _) = machine(self.program.values[value]);
                    let param = AbiParam::new(ty);
                    // As C compilers expect of what is narrower than a register.
                    let param = match kind {
                        Kind::Signed => param.sext(),
                        Kind::Bool | Kind::Unsigned | Kind::Half => param.uext(),
                        Kind::Float => param,
                    };
                    (self.values[value], param)
                }
                CallArg::Address(address) => (self.address(address)?, AbiParam::new(types::I64)),
            };
            signature.params.push(param);
            values.push(value);
        }
        let result = custom.contract().result;
        if result != DType::Void {
            signature.returns.push(AbiParam::new(machine(result).0));
        }
        let signature = self.builder.import_signature(signature);
        let function = self.ins().iconst(types::I64, function as i64);
        let call = self.ins().call_indirect(signature, function, &values);
        let value = self.builder.inst_results(call).first().copied();
        // Whatever it is, a `bool` is 0 or 1 from here on.
        Ok(value.map(|value| match result {
            DType::Bool => self.ins().icmp_imm_u(IntCC::NotEqual, value, 0),
            _ => value,
        }))
    }

    /// The address in bytes.
    fn address(&mut self, address: Address) -> Result<ir::Value, JitErrorKind> {
        let base = match address.storage {
            Storage::Param(slot) => self.buffers[slot],
            Storage::Register(number) => self.registers[number],
        };
        let offset = address.offset;
        let offset = self.cast(self.values[offset], self.program.values[offset], DType::I64)?;
        let (_, _, log2_size) = machine(self.program.element(address.storage));
        let log2_size = self.ins().iconst(types::I64, i64::from(log2_size));
        let bytes = self.ins().ishl(offset, log2_size);
        Ok(self.ins().iadd(base, bytes))
    }

    fn add_one(&mut self, x: ir::Value) -> ir::Value {
        let ty = self.builder.func.dfg.value_type(x);
        let one = self.ins().iconst(ty, 1);
        self.ins().iadd(x, one)
    }

    /// The bits of a float.
    fn bits(&mut self, float: ir::Value) -> ir::Value {
        let ty = self.builder.func.dfg.value_type(float).as_int();
        self.ins().bitcast(ty, MemFlagsData::new(), float)
    }

    /// The float with these bits.
    fn float(&mut self, bits: ir::Value) -> ir::Value {
        let wide = self.builder.func.dfg.value_type(bits) == types::I64;
        let ty = if wide { types::F64 } else { types::F32 };
        self.ins().bitcast(ty, MemFlagsData::new(), bits)
    }

    fn float_zero(&mut self, ty: Type) -> ir::Value {
        match ty {
            types::F64 => self.ins().f64const(Ieee64::with_bits(0)),
            _ => self.ins().f32const(Ieee32::with_bits(0)),
        }
    }
}
