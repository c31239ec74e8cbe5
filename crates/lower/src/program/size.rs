use std::collections::HashMap;
use std::fmt;

use uop::{Graph, Id, Op};

/// A number that a launch knows: an expression of constants and of the program's variables, by
/// number. It is one step after the other, operands first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Size(Vec<SizeStep>);

/// The most steps: what is shared in a graph is repeated here.
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
                op => {
                    let operands: Option<Vec<Size>> =
                        node.src.iter().map(|s| sizes.get(s).cloned()).collect();
                    Size::op(op, &operands?)?
                }
            };
            sizes.insert(m, size);
        }
        sizes.remove(&n)
    }

    /// The constant `value`.
    pub fn constant(value: i128) -> Size {
        Size(vec![SizeStep::Constant(value)])
    }

    /// `op`, one of NEG, ADD, SUB, MUL, MAX and MIN, on `operands`; `None` for another op or number
    /// of operands, or if it gets too long.
    fn op(op: Op, operands: &[Size]) -> Option<Size> {
        let known = matches!(op, Op::Neg | Op::Add | Op::Sub | Op::Mul | Op::Max | Op::Min);
        if !(known && op.arity().admits(operands.len())) {
            return None;
        }
        if operands.iter().map(|size| size.0.len()).sum::<usize>() > MAX_STEPS {
            return None;
        }
        let mut steps: Vec<SizeStep> = operands.iter().flat_map(|size| size.0.clone()).collect();
        steps.push(SizeStep::Op(op));
        let size = Size(steps);
        // The less is left for a launch, the better it reads.
        let known = !size.0.iter().any(|step| matches!(step, SizeStep::Variable(_)));
        Some(match size.value(&[]).filter(|_| known) {
            Some(value) => Size::constant(value),
            None => size,
        })
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
        let mut stack: Vec<i128> = Vec::new();
        for step in &self.0 {
            let value = match *step {
                SizeStep::Constant(value) => value,
                SizeStep::Variable(number) => (*variables.get(number)?).into(),
                SizeStep::Op(Op::Neg) => stack.pop()?.checked_neg()?,
                SizeStep::Op(op) => {
                    let (y, x) = (stack.pop()?, stack.pop()?);
                    match op {
                        Op::Add => x.checked_add(y)?,
                        Op::Sub => x.checked_sub(y)?,
                        Op::Mul => x.checked_mul(y)?,
                        Op::Max => x.max(y),
                        _ => x.min(y),
                    }
                }
            };
            stack.push(value);
        }
        stack.pop()
    }

    /// The text in a language of the C family, with these names of the variables.
    pub fn text(&self, names: &[impl AsRef<str>]) -> String {
        // Each text, and whether it needs parentheses as an operand.
        let mut stack: Vec<(String, bool)> = Vec::new();
        for step in &self.0 {
            let mut pop = || {
                let (text, loose) = stack.pop().unwrap_or_default();
                if loose { format!("({text})") } else { text }
            };
            let text = match *step {
                SizeStep::Constant(value) => (value.to_string(), value < 0),
                SizeStep::Variable(number) => match names.get(number) {
                    Some(name) => (name.as_ref().to_string(), false),
                    None => (format!("variable.{number}"), false),
                },
                SizeStep::Op(Op::Neg) => (format!("-{}", pop()), true),
                SizeStep::Op(op) => {
                    let (y, x) = (pop(), pop());
                    let text = match op {
                        Op::Add => format!("{x} + {y}"),
                        Op::Sub => format!("{x} - {y}"),
                        Op::Mul => format!("{x} * {y}"),
                        Op::Max => format!("{y} < {x} ? {x} : {y}"),
                        _ => format!("{x} < {y} ? {x} : {y}"),
                    };
                    (text, true)
                }
            };
            stack.push(text);
        }
        stack.pop().unwrap_or_default().0
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
