//! The text of a [`Program`], for reading: what `uopc emit --target program` prints.
//!
//! Values are numbered in the order of their definitions. An integer operation that may wrap says
//! so; any other is [exact](super::Expr::Alu::exact).

use std::fmt;

use slotmap::SecondaryMap;
use uop::{DType, Op};

use super::{
    Address, CallArg, Expr, Launch, LaunchIndex, Program, ProgramParam, ProgramVariable, Stmt,
    Storage, Value,
};

/// What a walk over a body meets.
pub(super) enum Step<'p> {
    /// A statement; that of a loop or an `if` comes before those of its body.
    Stmt(&'p Stmt),
    /// The end of the body of this statement.
    Close(&'p Stmt),
}

/// The steps through `body` in textual order, found without recursion.
pub(super) fn walk(body: &[Stmt]) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let mut open = vec![(body.iter(), None)];
    while let Some((rest, owner)) = open.last_mut() {
        if let Some(stmt) = rest.next() {
            steps.push(Step::Stmt(stmt));
            open.extend(body_of(stmt).map(|body| (body.iter(), Some(stmt))));
        } else {
            steps.extend(owner.map(Step::Close));
            open.pop();
        }
    }
    steps
}

/// The body of a loop or an `if`.
pub(super) fn body_of(stmt: &Stmt) -> Option<&[Stmt]> {
    match stmt {
        Stmt::For { body, .. } | Stmt::If { body, .. } => Some(body),
        Stmt::Let { .. } | Stmt::Store { .. } | Stmt::Atomic { .. } | Stmt::Call { .. } => None,
    }
}

/// The value that `stmt` defines.
pub(super) fn defined_by(stmt: &Stmt) -> Option<Value> {
    match *stmt {
        Stmt::Let { value, .. } => Some(value),
        Stmt::For { var, .. } => Some(var),
        Stmt::Atomic { old: result, .. } | Stmt::Call { result, .. } => result,
        Stmt::If { .. } | Stmt::Store { .. } => None,
    }
}

/// The number of each value, in the order of their definitions.
pub(super) fn numbers(program: &Program) -> SecondaryMap<Value, usize> {
    let mut numbers = SecondaryMap::new();
    for step in walk(&program.body) {
        let Step::Stmt(stmt) = step else { continue };
        if let Some(value) = defined_by(stmt).filter(|&value| !numbers.contains_key(value)) {
            numbers.insert(value, numbers.len());
        }
    }
    numbers
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.variables.iter().map(|v| v.name.as_str()).collect();
        write!(f, "program {}(", self.name)?;
        for (i, param) in self.params.iter().enumerate() {
            let ProgramParam { name, dtype, shape, mutable } = param;
            let (comma, mutable) =
                (if i > 0 { ", " } else { "" }, if *mutable { "mut " } else { "" });
            let shape: Vec<String> = shape.iter().map(|size| size.text(&names)).collect();
            write!(f, "{comma}{name}: {mutable}{dtype}[{}]", shape.join(", "))?;
        }
        writeln!(f, ")")?;
        for ProgramVariable { name, dtype, lo, hi } in &self.variables {
            writeln!(f, "variable {name}: {dtype}, {lo} to {hi}")?;
        }
        for (number, register) in self.registers.iter().enumerate() {
            writeln!(f, "register reg.{number}: {}[{}]", register.dtype, register.len)?;
        }
        match &self.launch {
            Launch::Grid { grid, block } => {
                let grid = grid.each_ref().map(|size| size.text(&names)).join(", ");
                writeln!(f, "launch grid [{grid}] block {block:?}")?;
            }
            Launch::Range { extent } => writeln!(f, "launch range {}", extent.text(&names))?,
        }
        let text = Text { program: self, numbers: numbers(self) };
        let mut steps = walk(&self.body).into_iter();
        let mut depth = 0;
        while let Some(step) = steps.next() {
            if matches!(step, Step::Close(_)) {
                depth -= 1;
            }
            write!(f, "{:width$}", "", width = 4 * depth)?;
            match step {
                Step::Close(_) => writeln!(f, "}}")?,
                // A guarded effect reads best on one line.
                Step::Stmt(Stmt::If { cond, body }) if is_effect(body) => {
                    writeln!(f, "if {} {{ {} }}", text.value(*cond), text.stmt(&body[0]))?;
                    steps.find(|step| matches!(step, Step::Close(_)));
                }
                Step::Stmt(stmt) => {
                    writeln!(f, "{}", text.stmt(stmt))?;
                    depth += usize::from(body_of(stmt).is_some());
                }
            }
        }
        Ok(())
    }
}

/// Whether `body` is one effect.
fn is_effect(body: &[Stmt]) -> bool {
    matches!(body, [Stmt::Store { .. } | Stmt::Atomic { .. } | Stmt::Call { .. }])
}

struct Text<'p> {
    program: &'p Program,
    numbers: SecondaryMap<Value, usize>,
}

impl Text<'_> {
    /// One line of text: `stmt`, up to its body.
    fn stmt(&self, stmt: &Stmt) -> String {
        match stmt {
            Stmt::Let { value, expr } => {
                format!("{} = {}", self.typed(*value), self.expr(*value, expr))
            }
            Stmt::For { var, lo, hi, .. } => {
                format!("for {} in {}..{} {{", self.typed(*var), self.value(*lo), self.value(*hi))
            }
            Stmt::If { cond, .. } => format!("if {} {{", self.value(*cond)),
            Stmt::Store { address, value } => {
                format!("store {}, {}", self.address(*address), self.value(*value))
            }
            Stmt::Atomic { op, address, values, old, gate } => {
                let (old, gate) = (self.result(*old), self.gate(*gate));
                let (address, values) = (self.address(*address), self.values(values));
                format!("{old}atomic {} {address}, {values}{gate}", op.name())
            }
            Stmt::Call { result, custom, args, gate } => {
                let (result, gate) = (self.result(*result), self.gate(*gate));
                let name = self.program.customs.get(*custom).map_or("?", |custom| custom.name());
                let args = args.iter().map(|arg| match *arg {
                    CallArg::Value(value) => self.value(value),
                    CallArg::Address(address) => format!("&{}", self.address(address)),
                });
                let args = args.collect::<Vec<String>>().join(", ");
                format!("{result}call {name} {args}{gate}")
            }
        }
    }

    fn expr(&self, value: Value, expr: &Expr) -> String {
        match expr {
            Expr::Const(value) => value.to_string(),
            Expr::Launch(LaunchIndex::Variable(number)) => {
                let name = self.program.variables.get(*number).map(|v| v.name.as_str());
                name.unwrap_or("variable.?").to_string()
            }
            Expr::Launch(index) => index.to_string(),
            Expr::Alu { op, args, exact } => {
                let int = self.program.values.get(value).is_some_and(|dtype| dtype.is_int());
                let wraps = int && may_wrap(*op) && !exact;
                format!("{op}{} {}", if wraps { " wrapping" } else { "" }, self.values(args))
            }
            Expr::Load { address, gate } => {
                format!("load {}{}", self.address(*address), self.gate(*gate))
            }
        }
    }

    fn result(&self, result: Option<Value>) -> String {
        result.map_or(String::new(), |value| format!("{} = ", self.typed(value)))
    }

    fn gate(&self, gate: Option<(Value, Value)>) -> String {
        gate.map_or(String::new(), |(gate, alt)| {
            format!(" if {} else {}", self.value(gate), self.value(alt))
        })
    }

    fn values(&self, values: &[Value]) -> String {
        values.iter().map(|&value| self.value(value)).collect::<Vec<String>>().join(", ")
    }

    fn address(&self, address: Address) -> String {
        let offset = self.value(address.offset);
        match address.storage {
            Storage::Register(number) => format!("reg.{number}[{offset}]"),
            Storage::Param(slot) => match self.program.params.get(slot) {
                Some(param) => format!("{}[{offset}]", param.name),
                None => format!("param.{slot}[{offset}]"),
            },
        }
    }

    fn value(&self, value: Value) -> String {
        self.numbers.get(value).map_or("v?".to_string(), |number| format!("v{number}"))
    }

    fn typed(&self, value: Value) -> String {
        let dtype = self.program.values.get(value).copied().unwrap_or(DType::Void);
        format!("{}: {dtype}", self.value(value))
    }
}

/// Whether the integer result of `op` may leave its type.
pub(super) fn may_wrap(op: Op) -> bool {
    matches!(op, Op::Neg | Op::Add | Op::Sub | Op::Mul)
}
