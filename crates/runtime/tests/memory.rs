//! Code is freed with the last of its clones. Alone in its program, as it looks at the memory of
//! the process.
#![cfg(target_os = "linux")]

mod common;

use std::fs;

use common::{compile, scatter};
use runtime::Device;

/// The resident memory of this process, in pages.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("linux has it");
    let field = statm.split_whitespace().nth(1).expect("the second of seven fields");
    field.parse().expect("a number of pages")
}

#[test]
fn compiling_and_dropping_keeps_the_memory_flat() {
    let cpu = Device::cpu();
    let kernel = scatter(64, 8, 16);
    let round = |times: usize| {
        for _ in 0..times {
            let compiled = compile(&cpu, &kernel);
            drop(compiled.clone());
        }
    };
    round(100);
    let before = resident();
    round(1000);
    let after = resident();
    // Code that leaked would take 1000 pages at least.
    assert!(after < before + 250, "{before} pages, then {after}");
}
