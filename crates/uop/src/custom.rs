//! CUSTOM: an operation with a declared contract, built in or a user's [`Declaration`].

use std::fmt;
use std::sync::Arc;

use crate::declare::Declaration;
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
    /// What a user has declared.
    Declared(Arc<Declaration>),
}

/// What an atomic does to its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtomicOp {
    /// Adds, as the op ADD does.
    Add,
}

impl AtomicOp {
    /// Every one.
    pub const ALL: [AtomicOp; 1] = [AtomicOp::Add];

    /// The name in the text form and in messages.
    pub const fn name(self) -> &'static str {
        match self {
            AtomicOp::Add => "add",
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
            &Custom::Atomic { op, dtype } => Contract {
                args: vec![CustomArg::Pointer { dtype, elements: 1 }, CustomArg::Value(dtype)],
                result: DType::Void,
                effect: Effect::Atomic(op),
            },
            Custom::Declared(declaration) => declaration.contract.clone(),
        }
    }

    /// The operation with this name in the text form, such as `atomic_add`, on `dtype`.
    pub fn parse(name: &str, dtype: DType) -> Option<Custom> {
        Custom::all(dtype).find(|custom| custom.to_string() == name)
    }

    /// Every built-in operation on `dtype`.
    pub fn all(dtype: DType) -> impl Iterator<Item = Custom> {
        let supported = matches!(dtype.size(), Some(4 | 8));
        AtomicOp::ALL
            .into_iter()
            .filter(move |_| supported)
            .map(move |op| Custom::Atomic { op, dtype })
    }

    /// Whether it exists for its dtype, or is declared as the rules say.
    pub fn is_known(&self) -> bool {
        match self {
            Custom::Atomic { dtype, .. } => Custom::all(*dtype).any(|known| known == *self),
            Custom::Declared(declaration) => declaration.check().is_ok(),
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
            Custom::Atomic { op, .. } => write!(f, "atomic_{}", op.name()),
            Custom::Declared(declaration) => write!(f, "@{}", declaration.name()),
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
