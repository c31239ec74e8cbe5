//! CUSTOM: an operation with a declared contract instead of a definition in UOps.

use std::fmt;

use crate::dtype::DType;

/// The operation of a CUSTOM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Custom {
    /// `old = *p; *p = old op value`, at one moment; the value is not used. Relaxed order, device
    /// scope.
    Atomic {
        /// What is done to the element.
        op: AtomicOp,
        /// The type of the element.
        dtype: DType,
    },
}

/// What an atomic does to its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtomicOp {
    /// Adds, as the op ADD does.
    Add,
}

impl AtomicOp {
    /// The name in the text form and in messages.
    pub const fn name(self) -> &'static str {
        match self {
            AtomicOp::Add => "add",
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
            Custom::Atomic { op, dtype } => Contract {
                args: vec![CustomArg::Pointer(dtype), CustomArg::Value(dtype)],
                result: DType::Void,
                effect: Effect::Atomic(op),
            },
        }
    }

    /// The operation with this name in the text form, such as `atomic_add`, on `dtype`.
    pub fn parse(name: &str, dtype: DType) -> Option<Custom> {
        Custom::all(dtype).find(|custom| custom.to_string() == name)
    }

    /// Every built-in operation on `dtype`.
    pub fn all(dtype: DType) -> impl Iterator<Item = Custom> {
        let supported = matches!(dtype.size(), Some(4 | 8));
        [AtomicOp::Add]
            .into_iter()
            .filter(move |_| supported)
            .map(move |op| Custom::Atomic { op, dtype })
    }

    /// Whether it exists for its dtype.
    pub fn is_known(&self) -> bool {
        Custom::all(self.dtype()).any(|known| known == *self)
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
            Custom::Atomic { op, .. } => write!(f, "atomic_{}", op.name()),
        }
    }
}

/// Declarations of the built-in atomics.
pub mod atomic {
    use super::{AtomicOp, Custom};
    use crate::dtype::DType;

    /// `*p += value` on `dtype` (of 32 or 64 bits); arguments: the address, the value.
    pub const fn add(dtype: DType) -> Custom {
        Custom::Atomic { op: AtomicOp::Add, dtype }
    }
}
