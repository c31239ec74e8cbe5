//! Compilers that may be here. Where one is missing, what is skipped is printed; with
//! `UOPC_REQUIRE_TOOLS=1` the test fails instead.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

/// The C compilers: that of the system, and clang.
pub(crate) fn c_compilers(test: &str) -> Vec<&'static str> {
    ["cc", "clang-19"].into_iter().filter(|tool| have(tool, test)).collect()
}

/// A clang that makes code for AMD GPUs.
pub(crate) fn hip_compiler(test: &str) -> Option<&'static str> {
    have("clang-19", test).then_some("clang-19")
}

/// Whether `tool` runs.
fn have(tool: &str, test: &str) -> bool {
    if Command::new(tool).arg("--version").output().is_ok_and(|out| out.status.success()) {
        return true;
    }
    let required = std::env::var_os("UOPC_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(!required, "{test}: no {tool}");
    // Not through `eprintln`, which the test harness swallows where the test passes.
    let _ = writeln!(std::io::stderr(), "{test}: skipped for want of {tool}");
    false
}

/// Runs `tool`, which must succeed and say nothing on standard error.
#[track_caller]
pub(crate) fn run<S: AsRef<OsStr>>(tool: &str, args: &[S], input: &Path) -> Output {
    let input = fs::File::open(input).expect("the input is there");
    let mut command = Command::new(tool);
    // Leaks are of no interest, and looking for them needs rights that a container may lack.
    command.args(args).stdin(input).env("ASAN_OPTIONS", "detect_leaks=0");
    let out = command.output().expect("the tool starts");
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && stderr.is_empty(), "{command:?}: {}\n{stderr}", out.status);
    out
}
