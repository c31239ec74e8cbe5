//! The `uopc` command: makes, checks, prints, compiles and runs kernels in the text form.
//!
//! Results go to standard output, diagnostics to standard error. The exit code is 0, 1 if the kernel
//! or an input is wrong, 2 if the command line is.
#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
