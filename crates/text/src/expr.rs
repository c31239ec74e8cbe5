//! Expressions as text, with the fewest parentheses that are right and raise no warning.

use uop::{Const, DType};

/// How tightly the outermost operator of a text binds, loosest first. `==` and `<` are one level:
/// compilers warn of a mixture of them without parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Prec {
    Ternary,
    LogicalOr,
    LogicalAnd,
    BitOr,
    BitAnd,
    Compare,
    Sum,
    Product,
    Unary,
    Atom,
}

/// An infix operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Infix {
    symbol: &'static str,
    prec: Prec,
    /// What an operand needs to go without parentheses. The left one may also be of the same level
    /// if the operator `chains`.
    operand: Prec,
    chains: bool,
}

impl Infix {
    pub(crate) const ADD: Infix = Infix::chain("+", Prec::Sum, Prec::Product);
    pub(crate) const SUB: Infix = Infix::chain("-", Prec::Sum, Prec::Product);
    pub(crate) const MUL: Infix = Infix::chain("*", Prec::Product, Prec::Unary);
    pub(crate) const BIT_AND: Infix = Infix::chain("&", Prec::BitAnd, Prec::Unary);
    pub(crate) const BIT_OR: Infix = Infix::chain("|", Prec::BitOr, Prec::Unary);
    pub(crate) const AND: Infix = Infix::chain("&&", Prec::LogicalAnd, Prec::Compare);
    pub(crate) const OR: Infix = Infix::chain("||", Prec::LogicalOr, Prec::Compare);
    pub(crate) const LT: Infix = Infix::compare("<");
    pub(crate) const NE: Infix = Infix::compare("!=");
    pub(crate) const EQ: Infix = Infix::compare("==");

    const fn chain(symbol: &'static str, prec: Prec, operand: Prec) -> Infix {
        Infix { symbol, prec, operand, chains: true }
    }

    const fn compare(symbol: &'static str) -> Infix {
        Infix { symbol, prec: Prec::Compare, operand: Prec::Sum, chains: false }
    }

    pub(crate) fn apply(self, left: &Text, right: &Text) -> Text {
        let left = if self.chains && left.prec == self.prec {
            left.text.clone()
        } else {
            left.at_least(self.operand)
        };
        let right = right.at_least(self.operand);
        Text::new(self.prec, format!("{left} {} {right}", self.symbol))
    }
}

/// An expression.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) prec: Prec,
    /// Of an integer: the same bits as an expression of the unsigned type, where there is one that
    /// is no mere cast.
    pub(crate) unsigned: Option<Box<Text>>,
}

impl Text {
    pub(crate) fn new(prec: Prec, text: String) -> Text {
        Text { text, prec, unsigned: None }
    }

    pub(crate) fn atom(text: impl Into<String>) -> Text {
        Text::new(Prec::Atom, text.into())
    }

    /// The text, in parentheses if it binds less tightly than `prec`.
    pub(crate) fn at_least(&self, prec: Prec) -> String {
        if self.prec < prec { format!("({})", self.text) } else { self.text.clone() }
    }

    /// `-x`.
    pub(crate) fn minus(&self) -> Text {
        // `--x` would be a decrement.
        let text = if self.prec < Prec::Unary || self.text.starts_with('-') {
            format!("-({})", self.text)
        } else {
            format!("-{}", self.text)
        };
        Text::new(Prec::Unary, text)
    }

    /// `!x`.
    pub(crate) fn not(&self) -> Text {
        Text::new(Prec::Unary, format!("!{}", self.at_least(Prec::Unary)))
    }

    /// `(ty)x`.
    pub(crate) fn cast(&self, ty: &str) -> Text {
        Text::new(Prec::Unary, format!("({ty}){}", self.at_least(Prec::Unary)))
    }

    /// `cond ? yes : no`.
    pub(crate) fn ternary(cond: &Text, yes: &Text, no: &Text) -> Text {
        let [cond, yes, no] = [cond, yes, no].map(|t| t.at_least(Prec::LogicalOr));
        Text::new(Prec::Ternary, format!("{cond} ? {yes} : {no}"))
    }

    /// `function(x)`.
    pub(crate) fn call(&self, function: &str) -> Text {
        Text::atom(format!("{function}({})", self.text))
    }

    /// The integer constant `value` of `dtype`.
    pub(crate) fn int(value: i128, dtype: DType) -> Text {
        // `long long` is no narrower than any 64-bit type, whatever that is an alias of.
        let suffix = if dtype.size() == Some(8) { "LL" } else { "" };
        let unsigned = format!("{value}U{suffix}");
        if matches!(dtype, DType::U32 | DType::U64) {
            return Text::atom(unsigned);
        }
        let wide = matches!(dtype, DType::I32 | DType::I64);
        if wide && dtype.int_range().is_some_and(|(min, _)| min == value) {
            // There are no negative literals, and the negated one would be out of range.
            return Text::atom(format!("({}{suffix} - 1)", value + 1));
        }
        if value < 0 {
            return Text::new(Prec::Unary, format!("{value}{suffix}"));
        }
        let unsigned = Some(Box::new(Text::atom(unsigned)));
        Text { unsigned, ..Text::atom(format!("{value}{suffix}")) }
    }

    /// The f32 or f64 constant `value`, which is not NaN: the shortest decimal that reads back to the
    /// same bits.
    pub(crate) fn float(value: Const) -> Text {
        let suffix = if matches!(value, Const::F64(_)) { "" } else { "f" };
        let float = value.as_float().unwrap_or_default();
        let prec = if float.is_sign_negative() { Prec::Unary } else { Prec::Atom };
        let sign = if float.is_sign_negative() { "-" } else { "" };
        if float.is_infinite() {
            return Text::new(prec, format!("{sign}__builtin_inf{suffix}()"));
        }
        Text::new(prec, format!("{value}{suffix}"))
    }
}
