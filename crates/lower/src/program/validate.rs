use slotmap::SecondaryMap;
use thiserror::Error;
use uop::{Contract, CustomArg, DType, Interval, Op};

use super::display::{Step, body_of, defined_by, may_wrap, numbers, walk};
use super::{
    Address, CallArg, Expr, Launch, LaunchIndex, Program, ProgramVariable, Stmt, Storage, Value,
};

/// Everything that is wrong with a [`Program`], in the order of its text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", text(.errors, "\n"))]
pub struct ProgramErrors {
    /// The violations; at least one.
    pub errors: Vec<ProgramError>,
}

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
            let before = &program.params[..slot];
            if let Some(other) = before.iter().position(|other| other.name == param.name) {
                self.error(format!("the name {:?} is also that of param {other}", param.name));
            }
            // The greatest that the variables allow: where a length falls as one rises, both ends.
            for end in [|v: &ProgramVariable| v.lo, |v: &ProgramVariable| v.hi] {
                let variables: Vec<i64> = program.variables.iter().map(end).collect();
                match param.shape_at(&variables) {
                    Some(shape) => self.buffer(param.dtype, &shape),
                    None => self.error("a length that is not known"),
                }
            }
        }
        for (number, variable) in program.variables.iter().enumerate() {
            self.place = format!("variable {number}");
            self.name(&variable.name);
            let ProgramVariable { dtype, lo, hi, .. } = *variable;
            let within = Interval::of(dtype);
            let fits = [lo, hi].iter().all(|&end| within.contains(end.into()));
            if !(dtype.is_index() && dtype.size().is_some() && lo <= hi && fits) {
                self.error(format!("{lo} to {hi} of {dtype}"));
            }
        }
        for (number, register) in program.registers.iter().enumerate() {
            self.place = format!("reg.{number}");
            self.buffer(register.dtype, &[register.len]);
        }
        self.place = "program".to_string();
        let undefined = program.values.keys().filter(|&value| !self.numbers.contains_key(value));
        let undefined = undefined.count();
        if undefined > 0 {
            self.error(format!("{undefined} values are never defined"));
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
        // How many statements of each open body came before, outermost first.
        let mut path = vec![0];
        for step in walk(&self.program.body) {
            let stmt = match step {
                Step::Stmt(stmt) => stmt,
                // The variable of a loop belongs to its body.
                Step::Close(stmt) => {
                    let defined = body_of(stmt).into_iter().flatten().chain([stmt]);
                    for value in defined.filter_map(defined_by) {
                        self.seen.insert(value, false);
                    }
                    path.pop();
                    *path.last_mut().expect("the program is open") += 1;
                    continue;
                }
            };
            let before = self.errors.len();
            let defined = defined_by(stmt);
            let result = defined.and_then(|value| self.program.values.get(value).copied());
            self.stmt(stmt, result);
            if let Some(value) = defined {
                let dtype = result.unwrap_or(DType::Void);
                if dtype.size().is_none() {
                    self.error(format!("a value of {dtype}"));
                }
                if self.seen.insert(value, true).is_some() {
                    self.error("defined again; each value has one definition");
                }
            }
            let number = defined.and_then(|value| self.numbers.get(value));
            for error in &mut self.errors[before..] {
                error.place = match number {
                    Some(number) => format!("v{number}"),
                    None => format!("statement {}", text(&path, ".")),
                };
            }
            match body_of(stmt) {
                Some(_) => path.push(0),
                None => *path.last_mut().expect("the program is open") += 1,
            }
        }
    }

    /// Checks `stmt` but for its body; `result` is the type of what it defines.
    fn stmt(&mut self, stmt: &Stmt, result: Option<DType>) {
        match stmt {
            Stmt::Let { expr, .. } => self.expr(result.unwrap_or(DType::Void), expr),
            Stmt::For { lo, hi, .. } => {
                for (role, value) in [("the first value", *lo), ("the end", *hi)] {
                    if let Some(found) = self.integer(role, value) {
                        self.is(role, found, result.unwrap_or(DType::Void));
                    }
                }
            }
            Stmt::If { cond, .. } => self.expect("the condition", *cond, DType::Bool),
            Stmt::Store { address, value } => self.write(*address, &[*value]),
            Stmt::Atomic { op, address, values, old: _, gate } => {
                self.write(*address, values);
                let (name, count) = (op.name(), values.len());
                if count != op.values() {
                    self.error(format!("atomic {name} of {count} values"));
                }
                if let Storage::Register(number) = address.storage {
                    self.error(format!("atomic on reg.{number}, which is one work-item's"));
                }
                if let Some(element) = self.program.find(address.storage) {
                    if op.works_on(element).is_err() {
                        self.error(format!("no atomic {name} of {element}"));
                    }
                    self.is("the old value", result.unwrap_or(element), element);
                }
                self.gate(*gate, result);
            }
            Stmt::Call { result: _, custom, args, gate } => {
                let Some(custom) = self.program.customs.get(*custom) else {
                    return self.error(format!("there is no custom {custom}"));
                };
                self.call(custom.contract(), args);
                self.is("the result", result.unwrap_or(DType::Void), custom.contract().result);
                self.gate(*gate, result);
            }
        }
    }

    fn call(&mut self, contract: &Contract, args: &[CallArg]) {
        if args.len() != contract.args.len() {
            self.error(format!("{} arguments, expected {}", args.len(), contract.args.len()));
        }
        for (&arg, &expected) in args.iter().zip(&contract.args) {
            match (arg, expected) {
                (CallArg::Value(value), CustomArg::Value(dtype)) => {
                    self.expect("an argument", value, dtype);
                }
                (CallArg::Address(address), CustomArg::Pointer { dtype, .. }) => {
                    if let Some(element) = self.address(address, contract.effect.changes()) {
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
                let (exists, narrow) = match *index {
                    LaunchIndex::Block(dim) | LaunchIndex::Item(dim) => (grid && dim < 3, true),
                    LaunchIndex::Begin | LaunchIndex::End => (!grid, false),
                    LaunchIndex::Variable(number) => {
                        let variable = self.program.variables.get(number);
                        (variable.is_some_and(|variable| variable.dtype == dtype), true)
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
                    Some(expected) => self.is("the result", dtype, expected),
                    None => {
                        let operands = text(&operands, " and ");
                        self.error(format!("{op} does not work on {operands}"));
                    }
                }
            }
            Expr::Load { address, gate } => {
                if let Some(element) = self.address(*address, false) {
                    self.is("what is loaded", dtype, element);
                }
                self.gate(*gate, Some(dtype));
            }
        }
    }

    /// Checks a gate and the alternative of what gives a `result`.
    fn gate(&mut self, gate: Option<(Value, Value)>, result: Option<DType>) {
        let Some((gate, alt)) = gate else { return };
        self.expect("the gate", gate, DType::Bool);
        match result {
            Some(dtype) => self.expect("the alternative", alt, dtype),
            None => self.error("an alternative of no value"),
        }
    }

    fn write(&mut self, address: Address, values: &[Value]) {
        let Some(element) = self.address(address, true) else { return };
        for &value in values {
            self.expect("what is written", value, element);
        }
    }

    /// The type of the element at `address`, if its buffer exists.
    fn address(&mut self, address: Address, writes: bool) -> Option<DType> {
        self.integer("an offset", address.offset);
        if let Storage::Param(slot) = address.storage
            && let Some(param) = self.program.params.get(slot)
            && writes
            && !param.mutable
        {
            self.error(format!("writes {}, which is not mutable", param.name));
        }
        let element = self.program.find(address.storage);
        if element.is_none() {
            self.error(format!("there is no {:?}", address.storage));
        }
        element
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
        if !found.is_index() {
            self.wrong(role, found, "i32 or i64");
            return None;
        }
        Some(found)
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

/// The texts of `items`, `separator` between them.
fn text(items: &[impl ToString], separator: &str) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<String>>().join(separator)
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
