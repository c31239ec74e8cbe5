//! The command line: one module for what several commands share, one for each that is long.

mod emit;
mod files;
mod new;
mod npy;
mod run;
mod source;

use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// How many messages are printed at most.
const SHOWN: usize = 20;

/// What ends a command: messages for standard error, and exit code 1.
pub(crate) struct Failure(Vec<String>);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure(vec![message.into()])
    }

    /// As many of the messages as anyone reads, and how many more there are.
    pub(crate) fn several(messages: impl ExactSizeIterator<Item = String>) -> Failure {
        let more = messages.len().saturating_sub(SHOWN);
        let mut messages: Vec<String> = messages.take(SHOWN).collect();
        if more > 0 {
            messages.push(format!("… and {more} more"));
        }
        Failure(messages)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::new(error.to_string())
    }
}

#[derive(Parser)]
#[command(
    name = "uopc",
    version,
    about = "A tiny compiler for compute kernels",
    long_about = "A tiny compiler for compute kernels: one graph of UOps, the same bits on CPU, C and HIP.\n\n\
                  FILE is a kernel in the text form; - reads standard input.",
    after_help = "Examples:\n  \
                  uopc new zero --len 1000 > k.uop\n  \
                  uopc check k.uop\n  \
                  uopc emit k.uop --target hip -o k.hip\n  \
                  uopc run k.uop --out out=zeros.npy --threads 2 --time\n\n\
                  Exit codes: 0, 1 (the kernel or a file is wrong, or an option does not fit the kernel), \
                  2 (the command line is wrong).",
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print a kernel of the library in the text form
    #[command(subcommand)]
    New(new::New),
    /// Verify a kernel: types, shapes, order, bounds and races
    Check {
        /// The kernel; - is standard input
        file: PathBuf,
    },
    /// Print a kernel in canonical form, without names and comments
    Fmt {
        /// The kernel; - is standard input
        file: PathBuf,
    },
    /// Print the generated source of a kernel
    Emit(emit::Emit),
    /// Run a kernel on arrays
    Run(run::Run),
    /// List the kernel library
    Kernels,
}

pub(crate) fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::New(new) => new.run(),
        Command::Check { file } => source::load(&file).and_then(|source| source.check()),
        Command::Fmt { file } => source::load(&file).and_then(|source| print(&source.canonical())),
        Command::Emit(emit) => emit.run(),
        Command::Run(run) => run.run(),
        Command::Kernels => new::list(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure);
            ExitCode::from(1)
        }
    }
}

/// Writes `text` to standard output. A reader that has seen enough is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::new(format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// How a message spells a name: without what could steer a terminal or hide in it.
pub(crate) fn shown(name: impl AsRef<OsStr>) -> String {
    let mut text = String::new();
    for c in name.as_ref().to_string_lossy().chars() {
        if uop::parse::is_visible(c) {
            text.push(c);
        } else {
            text.extend(c.escape_default());
        }
    }
    text
}

/// Writes the messages to standard error, `error:` in red on a terminal.
fn report(failure: &Failure) {
    let mut stderr = std::io::stderr();
    let (red, plain) = if stderr.is_terminal() { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    for message in &failure.0 {
        // Nothing is left to do if standard error is closed.
        let _ = writeln!(stderr, "{red}error:{plain} {message}");
    }
}
