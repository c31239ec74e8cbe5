//! Functions that a text defines if it uses them: what neither the language nor a builtin has.

use uop::{AtomicOp, DType};

use crate::dialect::Dialect;
use crate::expr::Text;
use crate::sections::section;

/// One such function. The order is that of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Helper {
    /// The float of this type with these bits.
    FromBits(DType),
    /// The bits of a float of this type.
    ToBits(DType),
    /// A float of the first type as a value of the second.
    Convert(DType, DType),
    /// An atomic of this type, by compare and exchange.
    Atomic(AtomicOp, DType),
}

impl Helper {
    /// The helpers that its text calls.
    pub(crate) fn needs(self) -> &'static [Helper] {
        const BITS: &[Helper] = &[Helper::FromBits(DType::F32), Helper::ToBits(DType::F32)];
        match self {
            Helper::Convert(DType::F16, _) | Helper::Convert(_, DType::F16) => BITS,
            Helper::Convert(DType::BF16, _) => &BITS[..1],
            Helper::Convert(_, DType::BF16) => &BITS[1..],
            _ => &[],
        }
    }

    /// The name of the function, which is reserved.
    pub(crate) fn name(self) -> String {
        match self {
            Helper::FromBits(dtype) => format!("{dtype}_from_bits"),
            Helper::ToBits(dtype) => format!("{dtype}_to_bits"),
            Helper::Convert(from, to) => format!("{from}_to_{to}"),
            Helper::Atomic(op, dtype) => format!("atomic_{}_{dtype}", op.name()),
        }
    }

    /// Its definition.
    pub(crate) fn text(self, dialect: &Dialect) -> String {
        let function = self.name();
        let bits_of = |dtype| if dtype == DType::F64 { DType::U64 } else { DType::U32 };
        let (name, from, to) = match self {
            Helper::FromBits(dtype) => ("from_bits", bits_of(dtype), dtype),
            Helper::ToBits(dtype) => ("to_bits", dtype, bits_of(dtype)),
            Helper::Convert(from, to) if to.is_int() => ("to_int", from, to),
            Helper::Convert(from, to) => (function.as_str(), from, to),
            Helper::Atomic(AtomicOp::Cas, dtype) => ("atomic_cas", dtype, dtype),
            Helper::Atomic(_, dtype) => ("atomic", dtype, dtype),
        };
        let update = match self {
            Helper::Atomic(op, dtype) => update(op, dtype.is_float()),
            _ => "",
        };
        let (min, max) = to.int_range().unwrap_or_default();
        let suffix = if from == DType::F64 { "" } else { "f" };
        let float = |value: i128| format!("{value}.0{suffix}");
        let words = [
            ("$qualifier", dialect.helper),
            ("$name", &function),
            ("$from", dialect.name_of(from)),
            ("$to", dialect.name_of(to)),
            ("$u32", dialect.name_of(DType::U32)),
            ("$lower", &float(min)),
            ("$upper", &float(max + 1)),
            ("$zero", &float(0)),
            ("$min", &Text::int(min, to).text),
            ("$max", &Text::int(max, to).text),
            ("$load", dialect.atomic_load),
            ("$update", update),
            ("$exchange", dialect.compare_exchange),
        ];
        section(name, &words)
    }
}

/// What an atomic makes of `old` and `value`, where a dialect has no builtin for it.
fn update(op: AtomicOp, is_float: bool) -> &'static str {
    match (op, is_float) {
        (AtomicOp::Add, _) => "old + value",
        (AtomicOp::Exchange, _) => "value",
        (AtomicOp::Max, false) => "value < old ? old : value",
        (AtomicOp::Min, false) => "old < value ? old : value",
        // A NaN stays. Equal ones differ only if they are zeros.
        (AtomicOp::Max, true) => {
            "old != old || value < old || (value == old && __builtin_signbit(value)) ? old : value"
        }
        (AtomicOp::Min, true) => {
            "old != old || old < value || (value == old && !__builtin_signbit(value)) ? old : value"
        }
        (AtomicOp::Cas, _) => "",
        _ => unreachable!("every dialect has builtins for {op:?}"),
    }
}
