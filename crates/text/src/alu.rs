//! Arithmetic as text, with the meaning that docs/ir.md gives it.

use uop::{Const, DType, Op};

use crate::dialect::Dialect;
use crate::expr::{Infix, Text};
use crate::helpers::Helper;

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

/// What decides how an operation is spelled, beside the width.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Bool,
    Int,
    /// Of 16 bits: only moved, and converted from and to `f32`.
    Half,
    Float,
}

impl Class {
    fn of(dtype: DType) -> Option<Class> {
        Some(match dtype {
            DType::Void | DType::Index => return None,
            DType::Bool => Class::Bool,
            _ if dtype.is_half() => Class::Half,
            _ if dtype.is_float() => Class::Float,
            _ => Class::Int,
        })
    }
}

impl Alu<'_> {
    /// `op` as text; `None` if it is no arithmetic on these operands.
    pub(crate) fn apply(&self, op: Op) -> Option<Text> {
        use Class::{Bool, Float, Int};
        let x = |n: usize| &self.args[n];
        Some(match (op, Class::of(self.operand)?) {
            (Op::Cast, _) => return self.cast(),
            (Op::Where, _) => Text::ternary(x(0), x(1), x(2)),

            (Op::Neg, Float) => x(0).minus(),
            (Op::Neg, Int) if self.exact && self.operand.is_signed() => x(0).minus(),
            (Op::Neg, Int) => self.integer(Infix::SUB, &Text::int(0, self.operand), x(0)),
            (Op::Add, Int) => self.integer(Infix::ADD, x(0), x(1)),
            (Op::Sub, Int) => self.integer(Infix::SUB, x(0), x(1)),
            (Op::Mul, Int) => self.integer(Infix::MUL, x(0), x(1)),
            (Op::Add, Float) => Infix::ADD.apply(x(0), x(1)),
            (Op::Sub, Float) => Infix::SUB.apply(x(0), x(1)),
            (Op::Mul, Float) => Infix::MUL.apply(x(0), x(1)),

            (Op::Max, Int | Float) => Text::ternary(&Infix::LT.apply(x(1), x(0)), x(0), x(1)),
            (Op::Min, Int | Float) => Text::ternary(&Infix::LT.apply(x(0), x(1)), x(0), x(1)),
            (Op::And, Int) => Infix::BIT_AND.apply(x(0), x(1)),
            (Op::Or, Int) => Infix::BIT_OR.apply(x(0), x(1)),

            (Op::And, Bool) => Infix::AND.apply(x(0), x(1)),
            (Op::Or, Bool) => Infix::OR.apply(x(0), x(1)),
            (Op::CmpLt, Int | Float) => Infix::LT.apply(x(0), x(1)),
            // The graph has no other negation.
            (Op::CmpEq, Bool) if x(1).text == "false" => x(0).not(),
            (Op::CmpNe, Bool | Int | Float) => Infix::NE.apply(x(0), x(1)),
            (Op::CmpEq, Bool | Int | Float) => Infix::EQ.apply(x(0), x(1)),

            // Bools are not counted, halves not computed on, and nothing else is arithmetic.
            _ => return None,
        })
    }

    /// The helper that the text of `op` calls.
    pub(crate) fn helper(&self, op: Op) -> Option<Helper> {
        let (from, to) = (self.operand, self.result);
        match op {
            Op::Cast if from.is_half() && to.is_half() => None,
            Op::Cast if self.dialect.is_bits(from) || self.dialect.is_bits(to) => {
                Some(Helper::Convert(from, to))
            }
            Op::Cast if from.is_float() && to.is_int() => Some(Helper::Convert(from, to)),
            _ => None,
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

    /// A sum, difference or product of integers, which wraps: signed overflow is undefined, unsigned
    /// is not, and the conversion back wraps in gcc and clang (and by C23). Fewer than 32 bits would
    /// become a signed `int`.
    fn integer(&self, infix: Infix, x: &Text, y: &Text) -> Text {
        let wide = match self.operand.size() {
            Some(8) => DType::U64,
            _ => DType::U32,
        };
        if self.exact || self.operand == wide {
            return infix.apply(x, y);
        }
        let unsigned = self.dialect.name_of(wide);
        let [x, y] = [x, y].map(|x| match &x.unsigned {
            Some(bits) => (**bits).clone(),
            None => x.cast(unsigned),
        });
        let bits = infix.apply(&x, &y);
        let result = bits.cast(self.dialect.name_of(self.operand));
        Text { unsigned: Some(Box::new(bits)), ..result }
    }

    fn cast(&self) -> Option<Text> {
        let x = &self.args[0];
        let (from, to) = (Class::of(self.operand)?, Class::of(self.result)?);
        Some(match (from, to) {
            _ if self.operand == self.result => x.clone(),
            (Class::Half, _) if self.result != DType::F32 => return None,
            (_, Class::Half) if self.operand != DType::F32 => return None,
            (Class::Int, Class::Bool) => Infix::NE.apply(x, &Text::int(0, DType::I32)),
            (Class::Float, Class::Bool) => {
                Infix::NE.apply(x, &Text::float(Const::zero(self.operand)))
            }
            _ => match self.helper(Op::Cast) {
                Some(helper) => x.call(&helper.name()),
                None => x.cast(self.dialect.name_of(self.result)),
            },
        })
    }
}
