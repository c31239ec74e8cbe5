//! Kernels in the text form: reading, and diagnostics that point into the text.

use std::fs;
use std::io::Read;

use uop::{Graph, Id, KernelGraph, Parsed, Phase};

use super::Failure;

/// A kernel in the text form, read but not yet verified.
pub(crate) struct Source {
    name: String,
    text: String,
    parsed: Parsed,
}

/// Reads the kernel in `file`; `-` is standard input.
pub(crate) fn load(file: &str) -> Result<Source, Failure> {
    let (name, bytes) = if file == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().read_to_end(&mut bytes);
        ("<stdin>", read.map(|_| bytes))
    } else {
        (file, fs::read(file))
    };
    let bytes = bytes.map_err(|error| Failure(format!("cannot read {name}: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure(format!("{name}: not a kernel in the text form: byte {at} is not UTF-8"))
    })?;
    let parsed = uop::parse(&text).map_err(|errors| errors.in_file(name))?;
    Ok(Source { name: name.into(), text, parsed })
}

/// Reads the kernel in `file` and checks all that is known before it runs.
pub(crate) fn load_checked(file: &str) -> Result<Source, Failure> {
    let source = load(file)?;
    source.verify()?;
    let (graph, sink) = (source.graph(), source.sink());
    lower::check(graph, sink).map_err(|error| source.at(error.node, &error.kind.to_string()))?;
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
        KernelGraph { graph: self.parsed.graph.clone(), sink: self.parsed.sink }
    }

    /// The text in canonical form.
    pub(crate) fn canonical(&self) -> String {
        uop::print(self.graph(), self.sink())
    }

    /// All that the verifier has to say, each at its place.
    pub(crate) fn verify(&self) -> Result<(), Failure> {
        let Err(errors) = uop::verify(self.graph(), self.sink(), Phase::Built) else {
            return Ok(());
        };
        let messages: Vec<String> = errors
            .errors
            .iter()
            .map(|error| self.at(error.node, &error.kind.to_string()).0)
            .collect();
        Err(Failure(messages.join("\nerror: ")))
    }

    /// A failure at the node `n`: the file, line and column, the message with the names of this
    /// text, and the line.
    pub(crate) fn at(&self, n: Id, message: &str) -> Failure {
        let message = self.parsed.places.localize(message);
        let Some(place) = self.parsed.places.get(n) else {
            return Failure(format!("{}: {message}", self.name));
        };
        let snippet = uop::parse::snippet(&self.text, place.line, place.column, place.length);
        Failure(format!("{}:{}:{}: {message}\n{snippet}", self.name, place.line, place.column))
    }
}
