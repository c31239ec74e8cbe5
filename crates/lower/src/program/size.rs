use std::collections::HashMap;
use std::fmt;

use uop::{Graph, Id, Op};

/// A number that a launch knows: an expression of constants and of the program's variables, by
/// number. It is one step after the other, operands first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Size(Vec<SizeStep>);

/// The most steps, as [`Size::text`] spells them: what is shared in a graph is repeated here.
const MAX_STEPS: usize = 1000;

/// A step of a [`Size`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SizeStep {
    Constant(i128),
    Variable(usize),
    /// Of the last one or two values: NEG, ADD, SUB, MUL, MAX or MIN.
    Op(Op),
}

impl Size {
    /// What `n`, a size of a verified graph, is; `variables` are the VARIABLEs by number. `None` if a
    /// launch does not know it, or it gets too long.
    pub fn of(graph: &Graph, n: Id, variables: &[Id]) -> Option<Size> {
        let mut sizes: HashMap<Id, Size> = HashMap::new();
        for m in graph.reachable(n) {
            let node = &graph[m];
            let size = match node.op {
                Op::Const => Size::constant(graph.as_int(m)?),
                // In two widths it is still one.
                Op::Variable => Size(vec![SizeStep::Variable(
                    variables.iter().position(|&v| graph[v].arg == node.arg)?,
                )]),
                Op::Cast => sizes.get(&node.src[0])?.clone(),
                op => Size::op(op, node.src.iter().map(|s| sizes.get(s)))?,
            };
            sizes.insert(m, size);
        }
        sizes.remove(&n)
    }

    /// The constant `value`.
    pub fn constant(value: i128) -> Size {
        Size(vec![SizeStep::Constant(value)])
    }

    /// `op`, one of NEG, ADD, SUB, MUL, MAX and MIN, on its `operands`; `None` for another op, if an
    /// operand is missing, or if it gets too long.
    fn op<'a>(op: Op, operands: impl Iterator<Item = Option<&'a Size>>) -> Option<Size> {
        if !matches!(op, Op::Neg | Op::Add | Op::Sub | Op::Mul | Op::Max | Op::Min) {
            return None;
        }
        let mut steps: Vec<SizeStep> = Vec::new();
        for operand in operands {
            steps.extend(&operand?.0);
        }
        steps.push(SizeStep::Op(op));
        let size = Size(steps);
        if size.spelled()? > MAX_STEPS {
            return None;
        }
        // The less is left for a launch, the better it reads.
        Some(size.value(&[]).map_or(size, Size::constant))
    }

    /// The value if it is a constant; 0 if that is negative.
    pub fn as_const(&self) -> Option<u64> {
        match self.0[..] {
            [SizeStep::Constant(value)] => u64::try_from(value.max(0)).ok(),
            _ => None,
        }
    }

    /// The value with these `variables`; 0 if that is negative. `None` if one is missing, or the
    /// value does not fit.
    pub fn eval(&self, variables: &[i64]) -> Option<u64> {
        u64::try_from(self.value(variables)?.max(0)).ok()
    }

    fn value(&self, variables: &[i64]) -> Option<i128> {
        self.fold(|step, operands: &[i128]| match (step, operands) {
            (SizeStep::Constant(value), _) => Some(value),
            (SizeStep::Variable(number), _) => variables.get(number).map(|&value| value.into()),
            (SizeStep::Op(Op::Neg), &[x]) => x.checked_neg(),
            (SizeStep::Op(Op::Add), &[x, y]) => x.checked_add(y),
            (SizeStep::Op(Op::Sub), &[x, y]) => x.checked_sub(y),
            (SizeStep::Op(Op::Mul), &[x, y]) => x.checked_mul(y),
            (SizeStep::Op(Op::Max), &[x, y]) => Some(x.max(y)),
            (SizeStep::Op(Op::Min), &[x, y]) => Some(x.min(y)),
            (SizeStep::Op(_), _) => None,
        })
    }

    /// The text in a language of the C family, with these names of the variables.
    pub fn text(&self, names: &[impl AsRef<str>]) -> String {
        // Each text, and whether it needs parentheses as an operand.
        let text = self.fold(|step, operands: &[(String, bool)]| {
            let operand =
                |(text, loose): &_| if *loose { format!("({text})") } else { String::clone(text) };
            let operands: Vec<String> = operands.iter().map(operand).collect();
            Some(match (step, operands.as_slice()) {
                (SizeStep::Constant(value), _) => (value.to_string(), value < 0),
                (SizeStep::Variable(number), _) => match names.get(number) {
                    Some(name) => (name.as_ref().to_string(), false),
                    None => (format!("variable.{number}"), false),
                },
                (SizeStep::Op(Op::Neg), [x]) => (format!("-{x}"), true),
                (SizeStep::Op(Op::Add), [x, y]) => (format!("{x} + {y}"), true),
                (SizeStep::Op(Op::Sub), [x, y]) => (format!("{x} - {y}"), true),
                (SizeStep::Op(Op::Mul), [x, y]) => (format!("{x} * {y}"), true),
                (SizeStep::Op(Op::Max), [x, y]) => (format!("{y} < {x} ? {x} : {y}"), true),
                (SizeStep::Op(Op::Min), [x, y]) => (format!("{x} < {y} ? {x} : {y}"), true),
                (SizeStep::Op(_), _) => return None,
            })
        });
        text.unwrap_or_default().0
    }

    /// How many steps the text has: MAX and MIN spell their operands twice.
    fn spelled(&self) -> Option<usize> {
        self.fold(|step, operands: &[usize]| {
            let sum = operands.iter().try_fold(0, |sum: usize, &n| sum.checked_add(n))?;
            let times = if matches!(step, SizeStep::Op(Op::Max | Op::Min)) { 2 } else { 1 };
            sum.checked_mul(times)?.checked_add(1)
        })
    }

    /// What `apply` makes of the last step, given each step and what it made of its operands.
    fn fold<T>(&self, apply: impl Fn(SizeStep, &[T]) -> Option<T>) -> Option<T> {
        let mut stack: Vec<T> = Vec::new();
        for &step in &self.0 {
            let operands = match step {
                SizeStep::Constant(_) | SizeStep::Variable(_) => 0,
                SizeStep::Op(Op::Neg) => 1,
                SizeStep::Op(_) => 2,
            };
            let operands = stack.split_off(stack.len().checked_sub(operands)?);
            stack.push(apply(step, &operands)?);
        }
        stack.pop()
    }
}

impl From<u64> for Size {
    fn from(value: u64) -> Size {
        Size::constant(value.into())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&[] as &[&str]))
    }
}
