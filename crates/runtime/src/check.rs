//! What must hold of the arguments before a kernel may run.

use std::ops::Range;

use lower::{ProgramParam, ProgramVariable};

use crate::buffer::Buffer;
use crate::error::{ArgumentError, LaunchErrorKind};

/// The values of `variables`, by number, from those given by name.
///
/// # Errors
///
/// Everything that is wrong with those.
pub(crate) fn bind(
    variables: &[ProgramVariable],
    given: &[(&str, i64)],
) -> Result<Vec<i64>, Vec<LaunchErrorKind>> {
    let mut errors = Vec::new();
    for (i, &(name, _)) in given.iter().enumerate() {
        let known = variables.iter().any(|variable| variable.name == name);
        if !known || given[..i].iter().any(|(other, _)| *other == name) {
            let known = variables.iter().map(|variable| variable.name.clone()).collect();
            errors.push(LaunchErrorKind::UnknownVariable { name: name.into(), known });
        }
    }
    let mut values = Vec::with_capacity(variables.len());
    for ProgramVariable { name, lo, hi, .. } in variables {
        let (lo, hi) = (*lo, *hi);
        match given.iter().find(|(other, _)| other == name) {
            None => errors.push(LaunchErrorKind::MissingVariable { name: name.clone(), lo, hi }),
            Some(&(_, found)) if !(lo..=hi).contains(&found) => {
                let name = name.clone();
                errors.push(LaunchErrorKind::VariableBounds { name, lo, hi, found });
            }
            Some(&(_, found)) => values.push(found),
        }
    }
    if errors.is_empty() { Ok(values) } else { Err(errors) }
}

/// Everything that is wrong with `buffers` as the arguments of a kernel with `params`, whose
/// variables have these values, and which `runs` or is only counted.
///
/// If nothing is: there is one buffer per parameter, of its dtype, length and shape, aligned to the
/// size of an element; those that the kernel writes are mutable and share no byte with another. If
/// the kernel runs, none is absent.
pub(crate) fn check(
    params: &[ProgramParam],
    variables: &[i64],
    buffers: &[Buffer<'_>],
    runs: bool,
) -> Vec<LaunchErrorKind> {
    if params.len() != buffers.len() {
        let names = params.iter().map(|param| param.name.clone()).collect();
        let found = buffers.len();
        return vec![LaunchErrorKind::BufferCount { names, found }];
    }
    let mut errors = Vec::new();
    let addresses: Vec<Range<usize>> = buffers.iter().map(Buffer::addresses).collect();
    let overlaps: Vec<(usize, usize)> = overlaps(params, &addresses).collect();
    for (slot, (param, buffer)) in params.iter().zip(buffers).enumerate() {
        let absent = (runs && buffer.is_absent()).then_some(ArgumentError::Absent);
        let kinds = check_one(param, variables, buffer).into_iter().chain(absent);
        let shared = overlaps.iter().filter(|(first, _)| *first == slot);
        let kinds =
            kinds.chain(shared.map(|&(_, other)| ArgumentError::Overlap {
                other,
                name: params[other].name.clone(),
            }));
        errors.extend(kinds.map(|kind| argument(slot, param, kind)));
    }
    errors
}

/// That something is wrong with the argument for `param`.
pub(crate) fn argument(slot: usize, param: &ProgramParam, kind: ArgumentError) -> LaunchErrorKind {
    LaunchErrorKind::Argument { slot, name: param.name.clone(), kind }
}

/// What is wrong with `buffer`, whatever the others are.
fn check_one(param: &ProgramParam, variables: &[i64], buffer: &Buffer<'_>) -> Vec<ArgumentError> {
    let mut errors = Vec::new();
    let (len, shape) = (buffer.len(), buffer.shape());
    let Some(expected) = param.shape_at(variables) else { return vec![ArgumentError::Overflow] };
    // The verifier keeps the greatest product, and so each, within i64.
    let elements: u64 = expected.iter().product();
    if buffer.dtype() != param.dtype {
        errors.push(ArgumentError::DType { expected: param.dtype, found: buffer.dtype() });
    }
    if product(shape) != Some(len) {
        errors.push(ArgumentError::WrongShape { len, shape: shape.to_vec() });
    } else if len as u64 != elements {
        errors.push(ArgumentError::Length { expected: elements, shape: expected, found: len });
    } else if shape.len() >= 2 && !shape.iter().map(|&n| n as u64).eq(expected.iter().copied()) {
        errors.push(ArgumentError::Shape { expected, found: shape.to_vec() });
    }
    if param.mutable && !buffer.is_mutable() {
        errors.push(ArgumentError::ReadOnly);
    }
    let size = param.dtype.size().unwrap_or(1);
    if !buffer.is_empty() && !buffer.pointer().addr().is_multiple_of(size) {
        errors.push(ArgumentError::Alignment { expected: size, found: buffer.pointer().addr() });
    }
    errors
}

/// The pairs of parameters of which one is written and whose `addresses`, by slot, share some.
pub(crate) fn overlaps<'a>(
    params: &'a [ProgramParam],
    addresses: &'a [Range<usize>],
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let slots = params.len().min(addresses.len());
    let pairs = (0..slots).flat_map(move |slot| (slot + 1..slots).map(move |other| (slot, other)));
    pairs.filter(|&(slot, other)| {
        let (a, b) = (&addresses[slot], &addresses[other]);
        (params[slot].mutable || params[other].mutable) && a.start.max(b.start) < a.end.min(b.end)
    })
}

/// The number of elements of `shape`; `None` if it has more than there can be.
fn product(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1, |product: usize, &n| product.checked_mul(n))
}
