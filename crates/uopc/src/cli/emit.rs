//! `uopc emit`: the generated source.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::files::Output;
use super::source;
use super::{Failure, print};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  uopc emit k.uop --target hip -o k.hip\n  uopc emit k.uop --target clif"
)]
pub(crate) struct Emit {
    /// The kernel; - is standard input
    file: PathBuf,
    /// What to print
    #[arg(long, value_enum)]
    target: Target,
    /// Where to write it, instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Target {
    /// C11, for gcc and clang
    C,
    /// HIP, for AMD GPUs
    Hip,
    /// Cranelift's intermediate form, as the CPU runs it
    Clif,
    /// The structured loops that the CPU backends start from
    Program,
}

impl Emit {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let source = source::load_verified(&self.file)?;
        let text = match self.target {
            Target::C => text::emit(&source.lower(&text::C.caps)?, &text::C)?,
            Target::Hip => text::emit(&source.lower(&text::HIP.caps)?, &text::HIP)?,
            Target::Clif => jit::clif(&source.lower(&jit::CAPS)?, &jit::Options::default())?,
            Target::Program => source.lower(&jit::CAPS)?.to_string(),
        };
        match &self.output {
            None => print(&text),
            Some(path) => {
                let output = Output::create(path, &self.file)?;
                output.write(|file| file.write_all(text.as_bytes()))
            }
        }
    }
}
