//! The normal form of index expressions: `constant + Σ coefficient · atom`.

use uop::{DType, Graph, Id, Op};

/// `constant + Σ coefficient · atom` over the mathematical integers. An atom is a RANGE or any
/// node that is opaque here: a LOAD, a product of two unknowns, an operation that may wrap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affine {
    /// The constant term.
    pub constant: i128,
    /// Coefficients other than 0, by ascending atom.
    pub terms: Vec<(Id, i128)>,
}

impl Affine {
    /// The form of `n`; `None` if a coefficient leaves 128 bits.
    pub fn of(graph: &Graph, n: Id) -> Option<Affine> {
        let mut forms: Vec<Option<Affine>> = vec![None; n.index() + 1];
        for m in graph.reachable(n) {
            let node = &graph[m];
            let exact = node.dtype == DType::Index;
            let form = |s: Id| forms[s.index()].clone();
            let value = match (node.op, node.src.as_slice()) {
                (Op::Const, []) if exact => graph.as_int(m).map(Affine::constant),
                (Op::Add, &[x, y]) if exact => form(x)?.plus(&form(y)?, 1),
                (Op::Sub, &[x, y]) if exact => form(x)?.plus(&form(y)?, -1),
                (Op::Neg, &[x]) if exact => Affine::default().plus(&form(x)?, -1),
                (Op::Mul, &[x, y]) if exact => match (form(x)?, form(y)?) {
                    (form, Affine { constant, terms }) | (Affine { constant, terms }, form)
                        if terms.is_empty() =>
                    {
                        Affine::default().plus(&form, constant)
                    }
                    _ => Some(Affine::atom(m)),
                },
                (Op::After, &[x, ..]) if exact => form(x),
                _ => Some(Affine::atom(m)),
            };
            forms[m.index()] = Some(value?);
        }
        forms[n.index()].take()
    }

    fn constant(constant: i128) -> Affine {
        Affine { constant, terms: Vec::new() }
    }

    fn atom(n: Id) -> Affine {
        Affine { constant: 0, terms: vec![(n, 1)] }
    }

    /// `self + factor · other`; `None` if that leaves 128 bits.
    pub fn plus(&self, other: &Affine, factor: i128) -> Option<Affine> {
        let constant = self.constant.checked_add(other.constant.checked_mul(factor)?)?;
        let mut terms = self.terms.clone();
        for &(atom, c) in &other.terms {
            let c = c.checked_mul(factor)?;
            match terms.binary_search_by_key(&atom, |&(atom, _)| atom) {
                Ok(at) => terms[at].1 = terms[at].1.checked_add(c)?,
                Err(at) => terms.insert(at, (atom, c)),
            }
        }
        terms.retain(|&(_, c)| c != 0);
        Some(Affine { constant, terms })
    }
}
