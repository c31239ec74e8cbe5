//! Identifiers: which a program may keep, and fresh ones.

use std::collections::{BTreeMap, BTreeSet};

/// How the names of helpers start.
const HELPERS: &[&str] =
    &["f16_to_", "bf16_to_", "f32_to_", "f64_to_", "f32_from_", "f64_from_", "atomic_"];

/// The identifiers of one text.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: BTreeSet<String>,
    next: BTreeMap<String, usize>,
}

impl Names {
    /// The name of a kernel: `name` with as few underscores behind it as make it usable.
    pub(crate) fn kernel(&mut self, name: &str) -> String {
        self.take(name, |name| is_reserved(name) || is_library(name))
    }

    /// The name of anything else: `name` with as few underscores behind it as make it unique.
    pub(crate) fn keep(&mut self, name: &str) -> String {
        self.take(name, is_reserved)
    }

    /// Keeps others from being called `name`.
    pub(crate) fn reserve(&mut self, name: String) {
        self.taken.insert(name);
    }

    /// The first of `PREFIX0`, `PREFIX1`, … that is not taken.
    pub(crate) fn number(&mut self, prefix: &str) -> String {
        let next = self.next.entry(prefix.to_owned()).or_default();
        loop {
            let name = format!("{prefix}{next}");
            *next += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }

    fn take(&mut self, name: &str, unusable: impl Fn(&str) -> bool) -> String {
        let mut name = name.to_owned();
        while unusable(&name) || self.taken.contains(&name) {
            name.push('_');
        }
        self.taken.insert(name.clone());
        name
    }
}

/// Whether `name` is an identifier in every dialect, but for reserved ones.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}

fn is_reserved(name: &str) -> bool {
    // Such as INT32_MAX and UINT64_C.
    let macro_of_stdint = ["_MAX", "_MIN", "_C", "_WIDTH"].iter().any(|end| name.ends_with(end))
        && ["INT", "UINT", "PTRDIFF", "SIG_ATOMIC", "SIZE", "WCHAR", "WINT"]
            .iter()
            .any(|start| name.starts_with(start));
    // C11 section 7.1.3: the implementation's own, such as `_Bool` and `__asm__`. Three underscores
    // behind it are no guarantee, but no compiler here defines such a name.
    let mut bytes = name.bytes();
    let of_implementation = bytes.next() == Some(b'_')
        && bytes.next().is_some_and(|b| b == b'_' || b.is_ascii_uppercase())
        && !name.ends_with("___");
    // No helper ends so.
    let helper = !name.ends_with('_') && HELPERS.iter().any(|start| name.starts_with(start));
    let word = contains(include_str!("reserved.txt"), name);
    word || helper || macro_of_stdint || of_implementation
}

fn is_library(name: &str) -> bool {
    let math = include_str!("library_math.txt");
    let base = name.strip_suffix(['f', 'l']).unwrap_or(name);
    contains(include_str!("library.txt"), name) || contains(math, name) || contains(math, base)
}

/// Whether `file`, whose remarks are lines with a `#`, has `word`.
fn contains(file: &str, word: &str) -> bool {
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_ascii_whitespace).any(|w| w == word)
}
