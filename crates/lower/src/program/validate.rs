use std::fmt;

use slotmap::SecondaryMap;
use thiserror::Error;
use uop::{CustomArg, DType, Op};

use super::display::{Step, Walk, defined_by, may_wrap, numbers};
use super::{Address, CallArg, Expr, Launch, LaunchIndex, Program, Stmt, Storage, Value};

/// Everything that is wrong with a [`Program`], in the order of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramErrors {
    /// The violations; at least one.
    pub errors: Vec<ProgramError>,
}

impl fmt::Display for ProgramErrors {
    /// One violation per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            write!(f, "{}{error}", if i > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for ProgramErrors {}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {message}")]
pub struct ProgramError {
    /// Where it is: `program`; an argument or a register buffer; the value that is defined, by its
    /// number in the text; or the position of the statement in each body around it.
    pub place: String,
    /// What it is; only for reading, since a program at fault is a fault of the compiler.
    pub message: String,
}

impl Program {
    /// Checks every invariant of [the module](super) that needs no proof.
    ///
    /// # Errors
    ///
    /// Every violation, in the order of the text.
    pub fn validate(&self) -> Result<(), ProgramErrors> {
        let mut validator = Validator {
            program: self,
            numbers: numbers(self),
            seen: SecondaryMap::new(),
            place: "program".to_string(),
            errors: Vec::new(),
        };
        validator.head();
        validator.body();
        let errors = validator.errors;
        if errors.is_empty() { Ok(()) } else { Err(ProgramErrors { errors }) }
    }
}

struct Validator<'p> {
    program: &'p Program,
    numbers: SecondaryMap<Value, usize>,
    /// Each value that was defined so far, and whether its block is still open.
    seen: SecondaryMap<Value, bool>,
    /// What is looked at, outside the body.
    place: String,
    errors: Vec<ProgramError>,
}

impl Validator<'_> {
    fn error(&mut self, message: impl Into<String>) {
        self.errors.push(ProgramError { place: self.place.clone(), message: message.into() });
    }

    fn head(&mut self) {
        let program = self.program;
        self.name(&program.name);
        if let Launch::Grid { block, .. } = &program.launch
            && block.contains(&0)
        {
            self.error(format!("a block has {block:?} work-items, expected 1 or more of each"));
        }
        for (slot, param) in program.params.iter().enumerate() {
            self.place = format!("param {slot}");
            self.name(&param.name);
            let same = |other: &super::ProgramParam| other.name == param.name;
            if let Some(other) = program.params[..slot].iter().position(same) {
                self.error(format!("the name {:?} is also that of param {other}", param.name));
            }
            // The greatest that the variables allow: where a length falls as one rises, both ends.
            let ends: [Vec<i64>; 2] = [
                program.variables.iter().map(|variable| variable.lo).collect(),
                program.variables.iter().map(|variable| variable.hi).collect(),
            ];
            for variables in ends {
                match param.shape_at(&variables) {
                    Some(shape) => self.buffer(param.dtype, &shape),
                    None => self.error("a length that is not known"),
                }
            }
        }
        for (number, variable) in program.variables.iter().enumerate() {
            self.place = format!("variable {number}");
            self.name(&variable.name);
            let range = variable.dtype.int_range().filter(|_| variable.dtype.is_index());
            let fits = |value: i64| range.is_some_and(|(lo, hi)| (lo..=hi).contains(&value.into()));
            if !(variable.lo <= variable.hi && fits(variable.lo) && fits(variable.hi)) {
                self.error(format!("{} to {} of {}", variable.lo, variable.hi, variable.dtype));
            }
        }
        for (number, register) in program.registers.iter().enumerate() {
            self.place = format!("reg.{number}");
            self.buffer(register.dtype, &[register.len]);
        }
        self.place = "program".to_string();
        let undefined = program.values.keys().filter(|&value| !self.numbers.contains_key(value));
        match undefined.count() {
            0 => {}
            undefined => self.error(format!("{undefined} values are never defined")),
        }
    }

    fn name(&mut self, name: &str) {
        let mut chars = name.chars();
        let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !(first && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')) {
            self.error(format!("the name {name:?} is not an identifier"));
        }
    }

    fn buffer(&mut self, dtype: DType, shape: &[u64]) {
        let Some(size) = dtype.size() else {
            return self.error(format!("elements of {dtype}, which has no size in memory"));
        };
        // Without the zeros, so that the strides of an empty buffer fit as well.
        let mut lengths = shape.iter().filter(|&&length| length > 0);
        let bytes = lengths.try_fold(size as u64, |bytes, &length| bytes.checked_mul(length));
        if bytes.is_none_or(|bytes| bytes > i64::MAX as u64) {
            self.error(format!("more than {} bytes", i64::MAX));
        }
    }

    fn body(&mut self) {
        // What each open block defines.
        let mut scopes: Vec<Vec<Value>> = vec![Vec::new()];
        let mut walk = Walk::new(&self.program.body);
        while let Some(step) = walk.next() {
            let Step::Stmt(stmt) = step else {
                for value in scopes.pop().unwrap_or_default() {
                    self.seen.insert(value, false);
                }
                continue;
            };
            let before = self.errors.len();
            self.stmt(stmt);
            // The variable of a loop belongs to its body.
            if matches!(stmt, Stmt::For { .. } | Stmt::If { .. }) {
                scopes.push(Vec::new());
            }
            let defined = defined_by(stmt);
            if let Some(value) = defined {
                let dtype = self.program.values.get(value).copied().unwrap_or(DType::Void);
                if dtype.size().is_none() {
                    self.error(format!("a value of {dtype}"));
                }
                if self.seen.insert(value, true).is_some() {
                    self.error("defined again; each value has one definition");
                }
                scopes.last_mut().expect("the body is open").push(value);
            }
            let number = defined.and_then(|value| self.numbers.get(value));
            for error in &mut self.errors[before..] {
                error.place = match number {
                    Some(number) => format!("v{number}"),
                    None => format!("statement {}", walk.path(stmt)),
                };
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let { value, expr } => {
                if let Some(&dtype) = self.program.values.get(*value) {
                    self.expr(dtype, expr);
                }
            }
            Stmt::For { var, lo, hi, .. } => {
                let var = self.program.values.get(*var).copied();
                for (role, value) in [("the first value", *lo), ("the end", *hi)] {
                    let found = self.integer(role, value);
                    if let (Some(found), Some(var)) = (found, var)
                        && found != var
                    {
                        self.wrong(role, found, var.name());
                    }
                }
            }
            Stmt::If { cond, .. } => self.expect("the condition", *cond, DType::Bool),
            Stmt::Store { address, value } => self.write(*address, &[*value]),
            Stmt::Atomic { op, address, values, old, gate } => {
                self.write(*address, values);
                let count = values.len();
                if count != op.values() {
                    self.error(format!("atomic {} of {count} values", op.name()));
                }
                if let Storage::Register(number) = address.storage {
                    self.error(format!("atomic on reg.{number}, which is one work-item's"));
                }
                let Some(dtype) = self.element(address.storage) else { return };
                if op.works_on(dtype).is_err() {
                    self.error(format!("no atomic {} of {dtype}", op.name()));
                }
                if let Some(&old) = old.and_then(|old| self.program.values.get(old)) {
                    self.is("the old value", old, dtype);
                }
                if let Some((gate, alt)) = gate {
                    self.expect("the gate", *gate, DType::Bool);
                    self.expect("the alternative", *alt, dtype);
                    if old.is_none() {
                        self.error("an alternative of no value");
                    }
                }
            }
            Stmt::Call { result, custom, args } => {
                let dtype = result.and_then(|v| self.program.values.get(v).copied());
                self.call(dtype.unwrap_or(DType::Void), *custom, args);
            }
        }
    }

    fn call(&mut self, result: DType, custom: usize, args: &[CallArg]) {
        let Some(custom) = self.program.customs.get(custom) else {
            return self.error(format!("there is no custom {custom}"));
        };
        let contract = custom.contract();
        self.is("the result", result, contract.result);
        if args.len() != contract.args.len() {
            self.error(format!("{} arguments, expected {}", args.len(), contract.args.len()));
        }
        for (&arg, &expected) in args.iter().zip(&contract.args) {
            match (arg, expected) {
                (CallArg::Value(value), CustomArg::Value(dtype)) => {
                    self.expect("an argument", value, dtype);
                }
                (CallArg::Address(address), CustomArg::Pointer { dtype, .. }) => {
                    if contract.effect.changes() {
                        self.mutable(address);
                    }
                    self.address(address);
                    if let Some(element) = self.element(address.storage) {
                        self.is("what is pointed to", element, dtype);
                    }
                }
                _ => self.error("an argument of another kind"),
            }
        }
    }

    fn expr(&mut self, dtype: DType, expr: &Expr) {
        match expr {
            Expr::Const(value) => {
                if !value.fits(dtype) {
                    self.error(format!("{value} is not a value of {dtype}"));
                }
            }
            Expr::Launch(index) => {
                let grid = matches!(self.program.launch, Launch::Grid { .. });
                let variable = |number: usize| self.program.variables.get(number);
                let (exists, narrow) = match *index {
                    LaunchIndex::Block(dim) | LaunchIndex::Item(dim) => (grid && dim < 3, true),
                    LaunchIndex::Begin | LaunchIndex::End => (!grid, false),
                    LaunchIndex::Variable(number) => {
                        (variable(number).is_some_and(|v| v.dtype == dtype), true)
                    }
                };
                if !exists {
                    self.error(format!("{index} does not exist in this launch"));
                }
                if !(dtype == DType::I64 || narrow && dtype == DType::I32) {
                    self.wrong("the index", dtype, if narrow { "i32 or i64" } else { "i64" });
                }
            }
            Expr::Alu { op, args, exact } => {
                let found: Vec<_> = args.iter().map(|&arg| self.used("an operand", arg)).collect();
                if *exact && !(dtype.is_int() && may_wrap(*op)) {
                    self.error(format!("{op} of {dtype} is marked exact"));
                }
                let Some(operands) = found.into_iter().collect::<Option<Vec<DType>>>() else {
                    return;
                };
                match result(*op, &operands, dtype) {
                    None => self.error(format!("{op} does not work on {}", list(&operands))),
                    Some(expected) => self.is("the result", dtype, expected),
                }
            }
            Expr::Load { address, gate } => {
                self.address(*address);
                if let Some(element) = self.element(address.storage) {
                    self.is("what is loaded", dtype, element);
                }
                if let Some((gate, alt)) = gate {
                    self.expect("the gate", *gate, DType::Bool);
                    self.expect("the alternative", *alt, dtype);
                }
            }
        }
    }

    fn write(&mut self, address: Address, values: &[Value]) {
        self.address(address);
        let Some(element) = self.element(address.storage) else { return };
        for &value in values {
            self.expect("what is written", value, element);
        }
        self.mutable(address);
    }

    fn mutable(&mut self, address: Address) {
        if let Storage::Param(slot) = address.storage
            && self.program.params.get(slot).is_some_and(|param| !param.mutable)
        {
            self.error(format!("writes {}, which is not mutable", self.program.params[slot].name));
        }
    }

    fn address(&mut self, address: Address) {
        self.integer("an offset", address.offset);
        if self.element(address.storage).is_none() {
            self.error(format!("there is no {:?}", address.storage));
        }
    }

    /// The type of the elements of `storage`, if it exists.
    fn element(&self, storage: Storage) -> Option<DType> {
        match storage {
            Storage::Param(slot) => self.program.params.get(slot).map(|param| param.dtype),
            Storage::Register(number) => self.program.registers.get(number).map(|r| r.dtype),
        }
    }

    /// The type of `value`, if it is defined here.
    fn used(&mut self, role: &'static str, value: Value) -> Option<DType> {
        if self.seen.get(value) != Some(&true) {
            let name = self.numbers.get(value).map_or("?".to_string(), usize::to_string);
            self.error(format!("{role} is v{name}, which is not defined here"));
            return None;
        }
        self.program.values.get(value).copied()
    }

    /// The type of `value`, an i32 or i64.
    fn integer(&mut self, role: &'static str, value: Value) -> Option<DType> {
        let found = self.used(role, value)?;
        let sized = matches!(found, DType::I32 | DType::I64);
        if !sized {
            self.wrong(role, found, "i32 or i64");
        }
        sized.then_some(found)
    }

    fn expect(&mut self, role: &'static str, value: Value, expected: DType) {
        if let Some(found) = self.used(role, value) {
            self.is(role, found, expected);
        }
    }

    fn wrong(&mut self, role: &str, found: DType, expected: &str) {
        self.error(format!("{role} is {found}, expected {expected}"));
    }

    fn is(&mut self, role: &'static str, found: DType, expected: DType) {
        if found != expected {
            self.wrong(role, found, expected.name());
        }
    }
}

fn list(dtypes: &[DType]) -> String {
    dtypes.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(" and ")
}

/// The type of `op` on operands of these types, where it `states` one that; `None` if it does not
/// work on them.
fn result(op: Op, operands: &[DType], states: DType) -> Option<DType> {
    match (op, operands) {
        (Op::Neg, &[x]) if x.is_number() => Some(x),
        (Op::Add | Op::Sub | Op::Mul | Op::Max | Op::Min, &[x, y]) if x == y && x.is_number() => {
            Some(x)
        }
        (Op::And | Op::Or, &[x, y]) if x == y && !x.is_float() => Some(x),
        (Op::CmpLt, &[x, y]) if x == y && x.is_number() => Some(DType::Bool),
        (Op::CmpNe | Op::CmpEq, &[x, y]) if x == y => Some(DType::Bool),
        (Op::Where, &[DType::Bool, x, y]) if x == y => Some(x),
        (Op::Cast, &[_]) => Some(states),
        _ => None,
    }
}
