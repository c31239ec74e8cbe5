//! CUSTOM: an operation with a declared contract, built in or a user's [`Declaration`].

use std::fmt;
use std::sync::Arc;

use crate::declare::{Declaration, DeclarationError};
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
    /// What a user has declared.
    Declared(Arc<Declaration>),
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contract {
    /// Its arguments. One more source is the gate.
    pub args: Vec<CustomArg>,
    /// The type of its value.
    pub result: DType,
    /// What it does to memory.
    pub effect: Effect,
}

/// One argument of a CUSTOM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CustomArg {
    /// A value of this type.
    Value(DType),
    /// An address.
    Pointer {
        /// The type of the elements there.
        dtype: DType,
        /// The footprint: how many elements in a row, the one at the address first, may be touched.
        /// They are of one axis, the last.
        elements: u32,
    },
}

impl CustomArg {
    /// Whether it is an address.
    pub const fn is_pointer(self) -> bool {
        matches!(self, CustomArg::Pointer { .. })
    }

    /// The type of the value, or of the elements.
    pub const fn dtype(self) -> DType {
        match self {
            CustomArg::Value(dtype) | CustomArg::Pointer { dtype, .. } => dtype,
        }
    }
}

/// What a CUSTOM does to the elements it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It points to none, and its value follows from its arguments: arithmetic.
    Pure,
    /// It reads them, as a LOAD.
    Reads,
    /// It writes them all, as a STORE; it may read them before.
    Writes,
    /// An atomic read-modify-write of this kind. Two of the same kind and dtype never conflict.
    Atomic(AtomicOp),
}

impl Effect {
    /// Whether it changes memory.
    pub const fn changes(self) -> bool {
        matches!(self, Effect::Writes | Effect::Atomic(_))
    }

    /// Every effect.
    pub fn all() -> impl Iterator<Item = Effect> {
        let atomics = AtomicOp::ALL.into_iter().map(Effect::Atomic);
        [Effect::Pure, Effect::Reads, Effect::Writes].into_iter().chain(atomics)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Pure => f.write_str("pure"),
            Effect::Reads => f.write_str("reads"),
            Effect::Writes => f.write_str("writes"),
            Effect::Atomic(op) => write!(f, "atomic_{}", op.name()),
        }
    }
}

impl Custom {
    /// Its contract.
    pub fn contract(&self) -> Contract {
        match self {
            &Custom::Atomic { op, dtype, fetch } => {
                let mut args = vec![CustomArg::Pointer { dtype, elements: 1 }];
                args.resize(1 + op.values(), CustomArg::Value(dtype));
                let result = if fetch { dtype } else { DType::Void };
                Contract { args, result, effect: Effect::Atomic(op) }
            }
            Custom::Declared(declaration) => declaration.contract.clone(),
        }
    }

    /// Every built-in operation, on `dtype`, whether or not it exists for that.
    pub fn all(dtype: DType) -> impl Iterator<Item = Custom> {
        let both = move |op| [false, true].map(|fetch| Custom::Atomic { op, dtype, fetch });
        AtomicOp::ALL.into_iter().flat_map(both)
    }

    /// Whether it exists for its dtype, or is declared as the rules say.
    ///
    /// # Errors
    ///
    /// If not, the way out, or the node of the body (by position) and what is wrong.
    pub fn check(&self) -> Result<(), DeclarationError> {
        match self {
            Custom::Atomic { op, dtype, .. } => op
                .works_on(*dtype)
                .map_err(|advice| DeclarationError { node: None, message: advice.into() }),
            Custom::Declared(declaration) => declaration.check(),
        }
    }

    /// The same atomic, whose result is the old value; what is declared stays as it is.
    #[must_use]
    pub fn fetch(self) -> Custom {
        match self {
            Custom::Atomic { op, dtype, .. } => Custom::Atomic { op, dtype, fetch: true },
            declared => declared,
        }
    }

    /// What it does to memory.
    pub fn effect(&self) -> Effect {
        match self {
            Custom::Atomic { op, .. } => Effect::Atomic(*op),
            Custom::Declared(declaration) => declaration.contract.effect,
        }
    }

    /// The type of the elements it works on, or of its value if there are none.
    pub fn dtype(&self) -> DType {
        match self {
            Custom::Atomic { dtype, .. } => *dtype,
            Custom::Declared(declaration) => {
                let Contract { args, result, .. } = &declaration.contract;
                let pointer = args.iter().find(|arg| arg.is_pointer());
                pointer.map_or(*result, |pointer| pointer.dtype())
            }
        }
    }

    /// The declaration of what is not built in.
    pub fn declaration(&self) -> Option<&Arc<Declaration>> {
        match self {
            Custom::Atomic { .. } => None,
            Custom::Declared(declaration) => Some(declaration),
        }
    }
}

impl From<Declaration> for Custom {
    fn from(declaration: Declaration) -> Custom {
        Custom::Declared(Arc::new(declaration))
    }
}

impl From<&Arc<Declaration>> for Custom {
    fn from(declaration: &Arc<Declaration>) -> Custom {
        Custom::Declared(Arc::clone(declaration))
    }
}

impl fmt::Display for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Custom::Atomic { op, fetch, .. } => {
                write!(f, "atomic_{}{}", if *fetch { "fetch_" } else { "" }, op.name())
            }
            Custom::Declared(declaration) => write!(f, "@{}", declaration.name()),
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
