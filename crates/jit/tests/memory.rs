//! Code that is dropped is freed. Alone in its process, whose memory it measures.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)] // Running machine code.

mod common;

use std::fs;

use common::{pointer, run, scatter};
use jit::{Options, compile};

/// Resident memory, in pages.
fn resident() -> i64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("it is there on Linux");
    let field = statm.split_whitespace().nth(1).expect("it has 7 fields");
    field.parse().expect("it is a number")
}

#[test]
fn dropped_code_is_freed() {
    let program = scatter(1, 1, 1);
    let (mut table, mut grad, mut idx) = ([0.0f32], [1.0f32], [0i32]);
    let buffers = [pointer(&mut table), pointer(&mut grad), pointer(&mut idx)];
    let compile_and_run = |times: u32| {
        for _ in 0..times {
            let code = compile(&program, &Options::default()).expect("it compiles");
            run(&code, &buffers, 0, 1);
        }
    };
    compile_and_run(100);
    let before = resident();
    compile_and_run(2_000);
    let grown = resident() - before;
    // A leak is a page or more each time.
    assert!(grown < 500, "{grown} pages");
    assert_eq!(table, [2_100.0]);
}
