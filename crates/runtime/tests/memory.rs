//! What the process keeps of kernels. Alone in its program, as it looks at the memory of the process
//! and at all that the cache holds.
#![cfg(target_os = "linux")]

mod common;

use std::fs;

use common::{compile, constant, launch};
use runtime::{Buffer, CACHED_KERNELS, Device};

/// The resident memory of this process, in bytes.
fn resident() -> i64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("linux has it");
    let field = statm.split_whitespace().nth(1).expect("the second of seven fields");
    let pages: i64 = field.parse().expect("a number of pages");
    pages * 4096
}

#[test]
fn what_is_kept_is_bounded() {
    let cpu = Device::cpu();
    let misses = || cpu.compile_stats().misses;
    let held = compile(&cpu, &constant(-1, 4));
    let compile_and_drop = |from: i32, to: i32| {
        for number in from..to {
            drop(compile(&cpu, &constant(number, 4)));
        }
    };
    compile_and_drop(0, 1_000);
    assert_eq!(misses(), 1_001);

    // The last are there, and no more.
    let kept = CACHED_KERNELS as i32;
    compile_and_drop(1_000 - kept, 1_000);
    assert_eq!(misses(), 1_001);
    compile_and_drop(1_000 - kept - 1, 1_000 - kept);
    assert_eq!(misses(), 1_002);

    // What is gone from there lives as long as someone has it.
    let mut out = [0; 4];
    launch(&held, &mut [Buffer::from(&mut out)], 1);
    assert_eq!(out, [-1; 4]);

    let before = resident();
    compile_and_drop(1_000, 11_000);
    let grown = resident() - before;
    assert_eq!(misses(), 11_002);
    // Code takes a page at least, so a leak would be ten times as much.
    assert!(grown < 4 << 20, "{grown} bytes");
    println!("10,000 kernels: {grown} bytes more than {before}");
}
