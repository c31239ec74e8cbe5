//! `Program`: typed, structured loops over flat buffers. All decisions are made when it exists; a
//! backend spells it in one exhaustive match.
//!
//! Terms and invariants, which [`Program::validate`] checks:
//!
//! - A *value* is defined once, by a [`Stmt::Let`], as the variable of a [`Stmt::For`], as the old
//!   value of a [`Stmt::Atomic`] or as the result of a [`Stmt::Call`], and used only after that, in
//!   the same block or one inside it.
//! - No value is `index` or `void`: a pass has chosen i32 or i64.
//! - An [`Address`] counts elements, not bytes. It is within its buffer whenever the statement is
//!   reached and the gate, if any, is true; a backend neither checks nor assumes more.
//! - Statements run in order. Loads, stores, atomics and calls (but of what is pure) are never
//!   merged, dropped or moved across one another by a backend, except loads of a parameter that the
//!   program never writes.
//! - Floats are neither reassociated nor contracted; integer arithmetic wraps, and where
//!   [`Expr::Alu::exact`] is set it is proved not to.

mod display;
mod size;
mod validate;

use std::fmt;
use std::sync::Arc;

use slotmap::{SlotMap, new_key_type};
use smallvec::SmallVec;
use uop::{Arg, AtomicOp, Const, DType, Declaration, Graph, Id, Op};

use crate::caps::Caps;

pub use size::Size;
pub use validate::{ProgramError, ProgramErrors};

new_key_type! {
    /// A value of one [`Program`].
    pub struct Value;
}

/// A lowered kernel for one kind of target.
#[derive(Clone, Debug)]
pub struct Program {
    /// The kernel's name, an identifier.
    pub name: String,
    /// The arguments, by slot.
    pub params: Vec<ProgramParam>,
    /// What a launch states beside its buffers, by name.
    pub variables: Vec<ProgramVariable>,
    /// Storage of one work-item, by number.
    pub registers: Vec<Register>,
    /// How its instances are spread over the target.
    pub launch: Launch,
    /// The declared operations that it calls.
    pub customs: Vec<Arc<Declaration>>,
    /// The type of each value.
    pub values: SlotMap<Value, DType>,
    /// What one work-item (grid) or one slice of the range (no grid) does.
    pub body: Vec<Stmt>,
}

/// An argument of a [`Program`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramParam {
    /// Its name, an identifier, unique in the program.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// The lengths of its axes, in elements; it is one row-major block of their product.
    pub shape: Vec<Size>,
    /// Whether the program writes it.
    pub mutable: bool,
}

impl ProgramParam {
    /// The PARAM `n` of a verified graph whose VARIABLEs are `variables`, by number; `None` if the
    /// length of an axis is too long an expression.
    pub fn of(graph: &Graph, n: Id, variables: &[Id]) -> Option<ProgramParam> {
        let Arg::Param(param) = &graph[n].arg else {
            unreachable!("the verifier rejects a param without a slot")
        };
        let shape = graph[n].src.iter().map(|&length| Size::of(graph, length, variables));
        Some(ProgramParam {
            name: param.name.to_string(),
            dtype: graph[n].dtype,
            shape: shape.collect::<Option<_>>()?,
            mutable: param.mutable,
        })
    }

    /// The lengths of its axes with these values of the program's variables; `None` if a value is
    /// missing, or a length does not fit.
    pub fn shape_at(&self, variables: &[i64]) -> Option<Vec<u64>> {
        self.shape.iter().map(|size| size.eval(variables)).collect()
    }
}

/// An integer that a launch states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramVariable {
    /// Its name, an identifier, unique among parameters and variables.
    pub name: String,
    /// The type of its values in the program: i32 or i64.
    pub dtype: DType,
    /// Its least value.
    pub lo: i64,
    /// Its greatest value.
    pub hi: i64,
}

/// The most bytes of register buffers of one work-item: more would overflow a thread's stack, or a
/// GPU's scratch memory.
pub const REGISTER_BYTES: u64 = 64 << 10;

/// Storage of one work-item: a small array, zero at first. (Reading it before writing it is an error
/// of the kernel, which only the interpreter reports; here it is harmless.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// The type of its elements.
    pub dtype: DType,
    /// Its length in elements.
    pub len: u64,
}

/// How a program's instances are spread over the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launch {
    /// A grid of `grid` blocks of `block` work-items each (x, y, z); the body is one work-item.
    /// A zero in `grid` means that there is nothing to launch.
    Grid {
        /// Blocks along x, y and z.
        grid: [Size; 3],
        /// Work-items of one block along x, y and z.
        block: [u32; 3],
    },
    /// No grid: the body does the instances `Begin..End`, which the caller picks from `0..extent`.
    /// Slices may run at the same time, in any order.
    Range {
        /// The extent of the outermost parallel range, or 1 if there is none.
        extent: Size,
    },
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// Defines `value`.
    Let {
        /// What is defined; its type is in [`Program::values`].
        value: Value,
        /// What it is.
        expr: Expr,
    },
    /// `body` for `var` = `lo`, `lo + 1`, … below `hi`; not at all if `hi <= lo`.
    For {
        /// The loop variable; the type of `lo` and `hi`.
        var: Value,
        /// The first value.
        lo: Value,
        /// One above the last value.
        hi: Value,
        /// What is done.
        body: Vec<Stmt>,
    },
    /// `body` if `cond` is true.
    If {
        /// A `bool`.
        cond: Value,
        /// What is done.
        body: Vec<Stmt>,
    },
    /// Writes `value`.
    Store {
        /// Where.
        address: Address,
        /// What.
        value: Value,
    },
    /// `old = *address; *address = op(old, values…)` at one moment; relaxed order, device scope.
    Atomic {
        /// What is done to the element.
        op: AtomicOp,
        /// Where; always a parameter.
        address: Address,
        /// The operands, of the element's type.
        values: SmallVec<[Value; 2]>,
        /// The old value, if it is asked for; its definition.
        old: Option<Value>,
        /// Gate, and what the old value is if it is false; only with `old`.
        gate: Option<(Value, Value)>,
    },
    /// A declared operation: what its contract says.
    Call {
        /// The value that it defines, if it has a result.
        result: Option<Value>,
        /// Which of [`Program::customs`].
        custom: usize,
        /// Its arguments.
        args: Vec<CallArg>,
        /// Gate, and what the result is if it is false; only with `result`.
        gate: Option<(Value, Value)>,
    },
}

/// An argument of a [`Stmt::Call`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallArg {
    /// A value.
    Value(Value),
    /// An address; so many elements from there on are within its buffer as the declaration says.
    Address(Address),
}

/// The right side of a [`Stmt::Let`].
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A constant.
    Const(Const),
    /// An index given by the target or by the caller.
    Launch(LaunchIndex),
    /// Arithmetic: `op` has [`uop::Property::Arithmetic`].
    Alu {
        /// The operation, with the meaning that docs/ir.md gives it.
        op: Op,
        /// Its operands.
        args: SmallVec<[Value; 3]>,
        /// An integer operation proved not to leave the range of its type.
        exact: bool,
    },
    /// The element at `address`; with a gate that is false, the alternative and no access.
    Load {
        /// Where.
        address: Address,
        /// Gate and alternative.
        gate: Option<(Value, Value)>,
    },
}

/// An index that comes from outside the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaunchIndex {
    /// This block along dimension 0, 1, 2; only with [`Launch::Grid`]. An i32 or i64.
    Block(u8),
    /// This work-item along dimension 0, 1, 2 of its block; only with [`Launch::Grid`].
    Item(u8),
    /// The first instance of the slice; only with [`Launch::Range`]. An i64.
    Begin,
    /// One above the last instance of the slice; only with [`Launch::Range`]. An i64.
    End,
    /// The variable with this number, of its type.
    Variable(usize),
}

/// One element of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The buffer.
    pub storage: Storage,
    /// The element, counted from 0: an i32 or i64.
    pub offset: Value,
}

/// A buffer of a [`Program`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// The parameter in this slot.
    Param(usize),
    /// The register buffer with this number.
    Register(usize),
}

impl fmt::Display for LaunchIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dim = |d: u8| ["x", "y", "z"].get(usize::from(d)).copied().unwrap_or("?");
        match *self {
            LaunchIndex::Block(d) => write!(f, "block.{}", dim(d)),
            LaunchIndex::Item(d) => write!(f, "item.{}", dim(d)),
            LaunchIndex::Begin => f.write_str("begin"),
            LaunchIndex::End => f.write_str("end"),
            LaunchIndex::Variable(number) => write!(f, "variable.{number}"),
        }
    }
}

impl ProgramVariable {
    /// The VARIABLE `n` of a verified graph, for a target with `caps`.
    pub fn of(graph: &Graph, n: Id, caps: &Caps) -> ProgramVariable {
        let Arg::Variable(variable) = &graph[n].arg else {
            unreachable!("the verifier rejects a variable without a name")
        };
        let (name, lo, hi) = (variable.name.to_string(), variable.lo, variable.hi);
        // As `size-indices` sizes it.
        let narrow = caps.narrow_index && i32::try_from(lo).is_ok() && i32::try_from(hi).is_ok();
        ProgramVariable { name, dtype: if narrow { DType::I32 } else { DType::I64 }, lo, hi }
    }
}

impl Program {
    /// The type of the elements of `storage`.
    ///
    /// # Panics
    ///
    /// If there is no such buffer; [`Program::validate`] rules that out.
    pub fn element(&self, storage: Storage) -> DType {
        self.find(storage).expect("a program is validated")
    }

    /// The type of the elements of `storage`, if it exists.
    fn find(&self, storage: Storage) -> Option<DType> {
        match storage {
            Storage::Param(slot) => self.params.get(slot).map(|param| param.dtype),
            Storage::Register(number) => self.registers.get(number).map(|register| register.dtype),
        }
    }
}
