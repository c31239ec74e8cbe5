//! Arithmetic as text, with the meaning that docs/ir.md gives it.

use uop::{DType, Op};

use crate::dialect::Dialect;
use crate::emit::Helper;
use crate::expr::{Infix, Text};

/// One operation on operands that are written already.
#[derive(Debug)]
pub(crate) struct Alu<'a> {
    pub(crate) dialect: &'a Dialect,
    pub(crate) args: Vec<Text>,
    /// The type of the operands; of a WHERE, that of its arms.
    pub(crate) operand: DType,
    pub(crate) result: DType,
    /// Of an integer operation: proved not to leave the range of its type.
    pub(crate) exact: bool,
}

impl Alu<'_> {
    /// `op` as text; `None` if it is no arithmetic on these operands.
    pub(crate) fn apply(&self, op: Op) -> Option<Text> {
        use DType::{Bool, F32, I32, I64};
        let x = |n: usize| &self.args[n];
        Some(match (op, self.operand) {
            (_, DType::Void | DType::Index) => return None,

            (Op::Neg, F32) => x(0).minus(),
            (Op::Neg, I32 | I64) if self.exact => x(0).minus(),
            (Op::Neg, I32 | I64) => self.wrapping(Infix::SUB, &Text::int(0, self.operand), x(0)),
            (Op::Add, F32 | I32 | I64) => self.infix(Infix::ADD),
            (Op::Sub, F32 | I32 | I64) => self.infix(Infix::SUB),
            (Op::Mul, F32 | I32 | I64) => self.infix(Infix::MUL),
            (Op::Neg | Op::Add | Op::Sub | Op::Mul, Bool) => return None,

            (Op::Max, F32 | I32 | I64) => Text::ternary(&Infix::LT.apply(x(1), x(0)), x(0), x(1)),
            (Op::Min, F32 | I32 | I64) => Text::ternary(&Infix::LT.apply(x(0), x(1)), x(0), x(1)),
            (Op::And, I32 | I64) => Infix::BIT_AND.apply(x(0), x(1)),
            (Op::Or, I32 | I64) => Infix::BIT_OR.apply(x(0), x(1)),
            (Op::And | Op::Or, F32) => return None,

            // Of `<` between booleans compilers warn.
            (Op::CmpLt, Bool) => Infix::AND.apply(&x(0).not(), x(1)),
            (Op::Min | Op::And, Bool) => Infix::AND.apply(x(0), x(1)),
            (Op::Max | Op::Or, Bool) => Infix::OR.apply(x(0), x(1)),
            (Op::CmpLt, F32 | I32 | I64) => Infix::LT.apply(x(0), x(1)),
            // The graph has no other negation.
            (Op::CmpEq, Bool) if x(1).text == "false" => x(0).not(),
            (Op::CmpNe, Bool | F32 | I32 | I64) => Infix::NE.apply(x(0), x(1)),
            (Op::CmpEq, Bool | F32 | I32 | I64) => Infix::EQ.apply(x(0), x(1)),

            (Op::Where, Bool | F32 | I32 | I64) => Text::ternary(x(0), x(1), x(2)),
            (Op::Cast, Bool | F32 | I32 | I64) => return self.cast(),

            (
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
                Bool | F32 | I32 | I64,
            ) => return None,
        })
    }

    /// The helper that the text of `op` calls.
    pub(crate) fn helper(&self, op: Op) -> Option<Helper> {
        if op != Op::Cast || self.operand != DType::F32 {
            return None;
        }
        match self.result {
            DType::I32 => Some(Helper::F32ToI32),
            DType::I64 => Some(Helper::F32ToI64),
            DType::Void | DType::Bool | DType::F32 | DType::Index => None,
        }
    }

    /// Whether the text of `op` compares integers.
    pub(crate) fn compares_integers(&self, op: Op) -> bool {
        let compares = match op {
            Op::Cast => self.result == DType::Bool,
            op => matches!(op, Op::CmpLt | Op::CmpNe | Op::CmpEq | Op::Max | Op::Min),
        };
        compares && self.operand.is_int()
    }

    /// A sum, difference or product.
    fn infix(&self, infix: Infix) -> Text {
        let [x, y] = [&self.args[0], &self.args[1]];
        if self.operand.is_int() && !self.exact {
            return self.wrapping(infix, x, y);
        }
        infix.apply(x, y)
    }

    /// The integer operation modulo 2^32 or 2^64: signed overflow is undefined, unsigned is not, and
    /// the conversion back wraps in gcc and clang (and by C23).
    fn wrapping(&self, infix: Infix, x: &Text, y: &Text) -> Text {
        let (signed, unsigned) = match self.operand {
            DType::I64 => (self.dialect.i64, self.dialect.u64),
            _ => (self.dialect.i32, self.dialect.u32),
        };
        let [x, y] = [x, y].map(|x| match &x.unsigned {
            Some(bits) => (**bits).clone(),
            None => x.cast(unsigned),
        });
        let bits = infix.apply(&x, &y);
        Text { unsigned: Some(Box::new(bits.clone())), ..bits.cast(signed) }
    }

    fn cast(&self) -> Option<Text> {
        use DType::{Bool, F32, I32, I64, Index, Void};
        let x = &self.args[0];
        Some(match (self.operand, self.result) {
            (Bool, Bool) | (I32, I32) | (I64, I64) | (F32, F32) => x.clone(),
            (I32 | I64, Bool) => Infix::NE.apply(x, &Text::int(0, I32)),
            (F32, Bool) => Infix::NE.apply(x, &Text::f32(0)),
            (F32, I32) => x.call(Helper::F32ToI32.name()),
            (F32, I64) => x.call(Helper::F32ToI64.name()),
            (Bool | I64, I32) => x.cast(self.dialect.i32),
            (Bool | I32, I64) => x.cast(self.dialect.i64),
            (Bool | I32 | I64, F32) => x.cast(self.dialect.f32),
            (_, Void | Index) | (Void | Index, _) => return None,
        })
    }
}
