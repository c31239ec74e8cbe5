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

/// The most terms of a form.
const MAX_TERMS: usize = 64;

impl Affine {
    /// The form of everything that `root` depends on, by id; `None` where a coefficient leaves 128
    /// bits.
    pub fn all(graph: &Graph, root: Id) -> Vec<Option<Affine>> {
        let mut forms: Vec<Option<Affine>> = vec![None; root.index() + 1];
        for n in graph.reachable(root) {
            let form = Affine::of(graph, n, &forms);
            // A longer form is opaque: it would prove little and cost much.
            let short = form.as_ref().is_none_or(|form| form.terms.len() <= MAX_TERMS);
            forms[n.index()] = if short { form } else { Some(Affine::atom(n)) };
        }
        forms
    }

    /// The form of `n`, given those of its sources.
    fn of(graph: &Graph, n: Id, forms: &[Option<Affine>]) -> Option<Affine> {
        let node = &graph[n];
        let form = |s: Id| forms[s.index()].as_ref();
        if node.dtype != DType::Index {
            return Some(Affine::atom(n));
        }
        match (node.op, node.src.as_slice()) {
            (Op::Const, []) => graph.as_int(n).map(Affine::constant),
            (Op::Add, &[x, y]) => form(x)?.plus(form(y)?, 1),
            (Op::Sub, &[x, y]) => form(x)?.plus(form(y)?, -1),
            (Op::Neg, &[x]) => Affine::default().plus(form(x)?, -1),
            (Op::Mul, &[x, y]) => match (form(x)?, form(y)?) {
                (form, Affine { constant, terms }) | (Affine { constant, terms }, form)
                    if terms.is_empty() =>
                {
                    Affine::default().plus(form, *constant)
                }
                _ => Some(Affine::atom(n)),
            },
            (Op::After, &[x, ..]) => form(x).cloned(),
            _ => Some(Affine::atom(n)),
        }
    }

    /// The coefficient of `atom`.
    pub fn coefficient(&self, atom: Id) -> i128 {
        let at = self.terms.binary_search_by_key(&atom, |&(atom, _)| atom);
        at.map_or(0, |at| self.terms[at].1)
    }

    /// The constant `constant`.
    pub fn constant(constant: i128) -> Affine {
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
