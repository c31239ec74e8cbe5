//! CUSTOM: an operation with a declared contract instead of a definition in UOps.

use std::fmt;

use crate::dtype::DType;

/// The operation of a CUSTOM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Custom {
    /// `old = *p; *p = op(old, value)`, at one moment. Relaxed order, device scope.
    Atomic {
        /// What is done to the element.
        op: AtomicOp,
        /// The type of the element.
        dtype: DType,
        /// Whether the result is the old value; else there is none.
        fetch: bool,
    },
}

/// What an atomic does to its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtomicOp {
    /// Adds, as the op ADD does.
    Add,
    /// The larger one. Of floats: a NaN if either is one, and -0.0 is below +0.0 (the maximum of
    /// IEEE 754-2019), so that the order of several does not matter.
    Max,
    /// The smaller one, of floats likewise (minimum).
    Min,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The new value, whatever the old one is.
    Exchange,
    /// The second value, if the bits of the old one are those of the first; else the old one.
    Cas,
}

impl AtomicOp {
    /// Every atomic, in the order of the documentation.
    pub const ALL: [AtomicOp; 8] = {
        use AtomicOp::{Add, And, Cas, Exchange, Max, Min, Or, Xor};
        [Add, Max, Min, And, Or, Xor, Exchange, Cas]
    };

    /// The name in the text form and in messages.
    pub const fn name(self) -> &'static str {
        ["add", "max", "min", "and", "or", "xor", "exchange", "cas"][self as usize]
    }

    /// How many values it takes, beside the address.
    pub const fn values(self) -> usize {
        if matches!(self, AtomicOp::Cas) { 2 } else { 1 }
    }

    /// Whether it works on elements of `dtype`.
    ///
    /// # Errors
    ///
    /// If not, the way out.
    pub const fn works_on(self, dtype: DType) -> Result<(), &'static str> {
        let bitwise = matches!(self, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor);
        match dtype {
            DType::I32 | DType::I64 | DType::U32 | DType::U64 => Ok(()),
            DType::F32 | DType::F64 if !bitwise => Ok(()),
            DType::F32 | DType::F64 => Err("use an integer of the same width"),
            DType::F16 | DType::BF16 if !bitwise => Err("accumulate in f32 and cast once"),
            DType::Void | DType::Index => Err("use a sized number"),
            _ => Err("use i32 or u32"),
        }
    }
}

/// What a CUSTOM takes and does; all that anything but a backend may know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Its arguments. One more source is the gate.
    pub args: Vec<CustomArg>,
    /// The type of its value.
    pub result: DType,
    /// What it does to memory.
    pub effect: Effect,
}

/// One argument of a CUSTOM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomArg {
    /// A value of this type.
    Value(DType),
    /// The address of one element of this type.
    Pointer(DType),
}

impl CustomArg {
    /// Whether it is an address.
    pub const fn is_pointer(self) -> bool {
        matches!(self, CustomArg::Pointer(_))
    }
}

/// What a CUSTOM does to the elements it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// An atomic read-modify-write of this kind. Two of the same kind and dtype never conflict.
    Atomic(AtomicOp),
}

impl Custom {
    /// Its contract.
    pub fn contract(&self) -> Contract {
        match *self {
            Custom::Atomic { op, dtype, fetch } => {
                let mut args = vec![CustomArg::Pointer(dtype)];
                args.resize(1 + op.values(), CustomArg::Value(dtype));
                let result = if fetch { dtype } else { DType::Void };
                Contract { args, result, effect: Effect::Atomic(op) }
            }
        }
    }

    /// Every built-in operation, on `dtype`, whether or not it exists for that.
    pub fn all(dtype: DType) -> impl Iterator<Item = Custom> {
        let both = move |op| [false, true].map(|fetch| Custom::Atomic { op, dtype, fetch });
        AtomicOp::ALL.into_iter().flat_map(both)
    }

    /// Whether it exists for its dtype.
    ///
    /// # Errors
    ///
    /// If not, the way out.
    pub fn check(&self) -> Result<(), &'static str> {
        match *self {
            Custom::Atomic { op, dtype, .. } => op.works_on(dtype),
        }
    }

    /// The same atomic, whose result is the old value.
    #[must_use]
    pub const fn fetch(self) -> Custom {
        match self {
            Custom::Atomic { op, dtype, .. } => Custom::Atomic { op, dtype, fetch: true },
        }
    }

    /// The type of the elements it works on, which its name in the text form is followed by.
    pub const fn dtype(&self) -> DType {
        match *self {
            Custom::Atomic { dtype, .. } => dtype,
        }
    }
}

impl fmt::Display for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Custom::Atomic { op, fetch, .. } => {
                write!(f, "atomic_{}{}", if *fetch { "fetch_" } else { "" }, op.name())
            }
        }
    }
}

/// Declarations of the built-in atomics, without a result; [`Custom::fetch`] gives the old value.
/// Arguments: the address, the value; of a CAS, what is expected before that.
pub mod atomic {
    use super::{AtomicOp, Custom};
    use crate::dtype::DType;

    /// The atomic `op` on `dtype`.
    pub const fn of(op: AtomicOp, dtype: DType) -> Custom {
        Custom::Atomic { op, dtype, fetch: false }
    }

    /// `*p += value` on `dtype`.
    pub const fn add(dtype: DType) -> Custom {
        of(AtomicOp::Add, dtype)
    }
}
