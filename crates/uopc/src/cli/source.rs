//! Kernels in the text form: reading, and diagnostics that point into the text.

use std::fs;
use std::io::Read;
use std::path::Path;

use lower::{Caps, Program};
use uop::parse::{Place, snippet};
use uop::{Arg, Graph, Id, KernelGraph, Parsed, Phase};

use super::{Failure, shown};

/// A kernel in the text form, read but not yet verified.
pub(crate) struct Source {
    name: String,
    text: String,
    parsed: Parsed,
}

/// Reads the kernel in `file`; `-` is standard input.
pub(crate) fn load(file: &Path) -> Result<Source, Failure> {
    let (name, bytes) = if file == Path::new("-") {
        let mut bytes = Vec::new();
        let read = std::io::stdin().read_to_end(&mut bytes);
        ("<stdin>".into(), read.map(|_| bytes))
    } else {
        (shown(file), fs::read(file))
    };
    let bytes = bytes.map_err(|error| Failure::new(format!("cannot read {name}: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(format!("{name}: not a kernel in the text form: byte {at} is not UTF-8"))
    })?;
    match uop::parse(&text) {
        Ok(parsed) => Ok(Source { name, text, parsed }),
        Err(errors) => {
            let errors: Vec<_> = errors.iter().collect();
            let located =
                errors.iter().map(|error| located(&name, &text, error.place, &error.message));
            Err(Failure::several(located))
        }
    }
}

/// A message about a place: the file, line and column, the message, and the line.
fn located(name: &str, text: &str, place: Place, message: &str) -> String {
    let Place { line, column, length } = place;
    format!("{name}:{line}:{column}: {message}\n{}", snippet(text, line, column, length))
}

/// Reads the kernel in `file` and verifies it.
pub(crate) fn load_verified(file: &Path) -> Result<Source, Failure> {
    let source = load(file)?;
    source.verify()?;
    Ok(source)
}

impl Source {
    /// What messages call it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.parsed.graph
    }

    pub(crate) fn sink(&self) -> Id {
        self.parsed.sink
    }

    /// The kernel, with the ids of this text.
    pub(crate) fn kernel(&self) -> KernelGraph {
        KernelGraph::new(self.parsed.graph.clone(), self.parsed.sink)
    }

    /// The text in canonical form.
    pub(crate) fn canonical(&self) -> String {
        uop::print(self.graph(), self.sink())
    }

    /// Whether the text declares a parameter of this name, used or not.
    pub(crate) fn declares(&self, name: &str) -> bool {
        let graph = self.graph();
        let is_it = |n| matches!(&graph[n].arg, Arg::Param(param) if *param.name == *name);
        (0..graph.len()).any(|i| is_it(graph.nth(i)))
    }

    /// All that the verifier has to say, each at its place.
    pub(crate) fn verify(&self) -> Result<(), Failure> {
        uop::verify(self.graph(), self.sink(), Phase::Built).map_err(|errors| {
            let errors = errors.errors.iter();
            Failure::several(errors.map(|error| self.located(error.node, &error.message)))
        })
    }

    /// All that is known before the kernel runs.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.verify()?;
        self.lower(&jit::CAPS).map(|_| ())
    }

    /// The kernel, verified before, for a target.
    pub(crate) fn lower(&self, caps: &Caps) -> Result<Program, Failure> {
        lower::lower(self.graph(), self.sink(), caps)
            .map_err(|error| self.at(error.node, &error.kind.to_string()))
    }

    /// A failure at the node `n`, with the names of this text.
    pub(crate) fn at(&self, n: Id, message: &str) -> Failure {
        Failure::new(self.located(n, message))
    }

    fn located(&self, n: Id, message: &str) -> String {
        let message = self.parsed.places.localize(message);
        match self.parsed.places.get(n) {
            Some(place) => located(&self.name, &self.text, place, &message),
            None => format!("{}: {message}", self.name),
        }
    }
}
