//! What a launch would move and compute, counted from its program without any memory.

use interp::alu;
use lower::{Address, CallArg, Expr, LaunchIndex, Program, Stmt, Storage, Value};
use slotmap::SecondaryMap;
use uop::{Const, Contract, CustomArg, Declaration, Effect, Op};

/// How many statements are looked at, again in each turn where turns differ, before the cost counts
/// as unknown. Only a loop whose bound depends on the variable of another one comes near.
const MAX_STEPS: u32 = 1 << 20;

/// What a launch moves and computes. What is under a gate counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes read and written in parameters: the size of the element for each load and store, twice
    /// that for an atomic. Registers do not count, and caches do not exist.
    pub bytes: u64,
    /// Arithmetic on floats (NEG, ADD, SUB, MUL, MAX, MIN; neither comparisons, nor WHERE and CAST),
    /// and the updates of atomics, whatever their kind and type. Other arithmetic on integers does not
    /// count, as most of it finds addresses.
    pub operations: u64,
}

impl Cost {
    /// Both, one after the other; `None` if it cannot be counted in a u64.
    pub(crate) fn plus(self, other: Cost) -> Option<Cost> {
        Some(Cost {
            bytes: self.bytes.checked_add(other.bytes)?,
            operations: self.operations.checked_add(other.operations)?,
        })
    }

    /// It, so many times; `None` if it cannot be counted in a u64.
    fn times(self, times: u64) -> Option<Cost> {
        Some(Cost {
            bytes: self.bytes.checked_mul(times)?,
            operations: self.operations.checked_mul(times)?,
        })
    }
}

/// What `program`, which has no grid, costs for the instances `0..extent` on one thread; `None` if that depends
/// on what the buffers hold, is too much for a u64, or takes too long to find out ([`MAX_STEPS`]).
pub(crate) fn cost(program: &Program, variables: &[i64], extent: u64) -> Option<Cost> {
    if extent == 0 {
        // Not even what stands around the range is done.
        return Some(Cost::default());
    }
    let mut counter =
        Counter { program, variables, extent, known: SecondaryMap::new(), steps: MAX_STEPS };
    counter.block(&program.body)
}

struct Counter<'p> {
    program: &'p Program,
    variables: &'p [i64],
    extent: u64,
    /// The values that do not depend on memory, nor on the variable of a loop whose turns are all
    /// alike.
    known: SecondaryMap<Value, Const>,
    /// How many more statements may be looked at.
    steps: u32,
}

impl Counter<'_> {
    fn block(&mut self, stmts: &[Stmt]) -> Option<Cost> {
        let mut cost = Cost::default();
        for stmt in stmts {
            self.steps = self.steps.checked_sub(1)?;
            let more = match stmt {
                Stmt::Let { value, expr } => self.define(*value, expr),
                Stmt::For { var, lo, hi, body } => self.repeat(*var, *lo, *hi, body)?,
                Stmt::If { cond: _, body } => self.block(body)?,
                Stmt::Store { address, .. } => Cost { bytes: self.size(address), operations: 0 },
                Stmt::Call { custom, args, .. } => self.call(&self.program.customs[*custom], args),
                Stmt::Atomic { address, .. } => {
                    Cost { bytes: 2 * self.size(address), operations: 1 }
                }
            };
            cost = cost.plus(more)?;
        }
        Some(cost)
    }

    /// The cost of `expr`; notes its value.
    fn define(&mut self, value: Value, expr: &Expr) -> Cost {
        let dtype = self.program.values[value];
        let mut cost = Cost::default();
        let known = match expr {
            Expr::Const(constant) => Some(*constant),
            Expr::Launch(LaunchIndex::Begin) => Some(Const::Int(0)),
            Expr::Launch(LaunchIndex::End) => Some(Const::Int(self.extent.into())),
            Expr::Launch(LaunchIndex::Variable(number)) => {
                self.variables.get(*number).map(|&value| Const::Int(value.into()))
            }
            Expr::Launch(LaunchIndex::Block(_) | LaunchIndex::Item(_)) => None,
            Expr::Alu { op, args, exact: _ } => {
                let counts = dtype.is_float() && !matches!(op, Op::Where | Op::Cast);
                cost.operations = counts.into();
                let args = args.iter().map(|&arg| self.known.get(arg).copied());
                let args = args.collect::<Option<Vec<Const>>>();
                args.and_then(|args| alu(*op, dtype, &args).ok())
            }
            Expr::Load { address, gate: _ } => {
                cost.bytes = self.size(address);
                None
            }
        };
        match known {
            Some(constant) => self.known.insert(value, constant),
            None => self.known.remove(value),
        };
        cost
    }

    fn repeat(&mut self, var: Value, lo: Value, hi: Value, body: &[Stmt]) -> Option<Cost> {
        let bound = |value| self.known.get(value).and_then(|constant| constant.as_int());
        let (lo, hi) = (bound(lo)?, bound(hi)?);
        if hi <= lo {
            return Some(Cost::default());
        }
        // If this fails, `var` may be what is missing; if that is data, so does the first turn.
        self.known.remove(var);
        if let Some(cost) = self.block(body) {
            return cost.times(u64::try_from(hi - lo).ok()?);
        }
        let mut sum = Cost::default();
        for turn in lo..hi {
            self.known.insert(var, Const::Int(turn));
            sum = sum.plus(self.block(body)?)?;
        }
        Some(sum)
    }

    /// The cost of what is declared: of its elements, those of an atomic twice.
    fn call(&self, declaration: &Declaration, args: &[CallArg]) -> Cost {
        let Contract { args: declared, effect, .. } = declaration.contract();
        let times = if matches!(effect, Effect::Atomic(_)) { 2 } else { 1 };
        let bytes = args.iter().zip(declared).map(|(arg, declared)| match (arg, declared) {
            (CallArg::Address(address), CustomArg::Pointer { elements, .. }) => {
                times * u64::from(*elements) * self.size(address)
            }
            _ => 0,
        });
        Cost { bytes: bytes.sum(), operations: times / 2 }
    }

    /// The bytes of an element, if it is one of a parameter.
    fn size(&self, address: &Address) -> u64 {
        match address.storage {
            Storage::Param(slot) => self.program.params[slot].dtype.size().unwrap_or(0) as u64,
            Storage::Register(_) => 0,
        }
    }
}
