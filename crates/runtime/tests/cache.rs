//! What compiling again finds. The cache is the process's, so each test has kernels of its own.

mod common;

use std::panic::Location;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use common::{compile, constant, launch};
use runtime::{Buffer, CompileStats, Device};
use uop::{AxisType, DType, Kernel, KernelGraph};

#[track_caller]
fn expect(device: &Device, hits: u64, misses: u64) {
    let stats = device.compile_stats();
    assert_eq!((stats.hits, stats.misses), (hits, misses), "{}", device.name());
}

#[test]
fn an_equal_kernel_is_not_compiled_again() {
    let cpu = Device::cpu();
    assert_eq!(cpu.compile_stats(), CompileStats::default());
    let first = compile(&cpu, &constant(1, 4));
    expect(&cpu, 0, 1);
    let second = compile(&cpu.clone(), &constant(1, 4));
    expect(&cpu, 1, 1);
    let sum = first.compile_time() + second.compile_time();
    assert!(second.compile_time() > Duration::ZERO);
    assert_eq!(cpu.compile_stats().time, sum);
    assert_eq!(second.name(), first.name());
    assert_eq!(second.params(), first.params());

    // Of the same kind, and with counts of its own.
    let other = Device::cpu();
    let third = compile(&other, &constant(1, 4));
    expect(&other, 1, 0);
    let mut out = [0; 4];
    launch(&third, &mut [Buffer::from(&mut out)], 1);
    assert_eq!(out, [1; 4]);
    assert_eq!((other.launches(), cpu.launches()), (1, 0));
}

#[test]
fn a_kernel_that_differs_is_compiled() {
    let cpu = Device::cpu();
    for kernel in [constant(10, 4), constant(11, 4), constant(10, 5)] {
        compile(&cpu, &kernel);
    }
    expect(&cpu, 0, 3);
    // 0.0 and -0.0, two NaNs, and names.
    let float = |bits: u32, name: &str| {
        let k = Kernel::new();
        let out = k.param_mut("out", DType::F32, 10);
        let i = k.range(10, AxisType::Loop);
        out.at(i).store(f32::from_bits(bits)).end(i).sink(name).expect("it is right")
    };
    for (bits, name) in [(0, "a"), (1 << 31, "a"), (0x7fc0_0000, "a"), (0x7fc0_0001, "a"), (0, "b")]
    {
        compile(&cpu, &float(bits, name));
    }
    expect(&cpu, 0, 8);
}

/// `out[i] = 2·x[i] + 20`; `out` and `x` are i32[4].
fn forwards() -> KernelGraph {
    let k = Kernel::new();
    let (out, x) = (k.param_mut("out", DType::I32, 4), k.param("x", DType::I32, 4));
    let i = k.range(4, AxisType::Global);
    let sum = x.at(i).load() * 2 + 20;
    out.at(i).store(sum).end(i).sink("twice").expect("it is right")
}

/// The same kernel, its nodes made in another order, with one more that is not used.
fn backwards() -> KernelGraph {
    let k = Kernel::new();
    let (out, x) = (k.param_mut("out", DType::I32, 4), k.param("x", DType::I32, 4));
    let [twenty, two, _unused] = [20, 2, 7].map(|value| k.constant(DType::I32, value));
    let i = k.range(4, AxisType::Global);
    let address = out.at(i);
    address.store(x.at(i).load() * two + twenty).end(i).sink("twice").expect("it is right")
}

#[test]
fn the_order_of_calls_does_not_matter() {
    let cpu = Device::cpu();
    compile(&cpu, &forwards());
    compile(&cpu, &backwards());
    expect(&cpu, 1, 1);
}

#[test]
fn devices_do_not_share() {
    for device in Device::all() {
        compile(&device, &constant(30, 4));
        expect(&device, 0, 1);
        compile(&device, &constant(30, 4));
        let keeps = u64::from(device.name() != "interp");
        expect(&device, keeps, 2 - keeps);
    }
}

/// `out[i] = 40` out of bounds, where this is called; with the line.
#[track_caller]
fn wrong() -> (KernelGraph, u32) {
    let k = Kernel::new();
    let out = k.param_mut("out", DType::I32, 4);
    let i = k.range(5, AxisType::Loop);
    let kernel = out.at(i).store(40).end(i).sink("wrong").expect("it is well formed");
    (kernel, Location::caller().line())
}

#[test]
fn what_fails_is_not_kept_and_names_its_own_place() {
    let first = wrong();
    let second = wrong();
    assert_ne!(first.1, second.1);
    for device in [Device::cpu(), Device::null(), Device::amd()] {
        for (kernel, line) in [&first, &second] {
            let error = device.compile(kernel).expect_err("it is out of bounds").to_string();
            assert!(error.contains(&format!("cache.rs:{line}:")), "{line}: {error}");
        }
        expect(&device, 0, 0);
    }
}

#[test]
fn threads_compile_the_same_and_different_kernels_at_once() {
    const THREADS: i32 = 8;
    const ROUNDS: i32 = 10;
    let (cpu, barrier) = (Device::cpu(), Barrier::new(THREADS as usize));
    thread::scope(|scope| {
        for t in 0..THREADS {
            let (cpu, barrier) = (&cpu, &barrier);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    barrier.wait();
                    // One that all have, one that two have, one that nobody else has.
                    for number in [1000, 2000 + t / 2, 3000 + t] {
                        let number = number + 10 * round;
                        let mut out = [0; 50];
                        let compiled = compile(cpu, &constant(number, 50));
                        launch(&compiled, &mut [Buffer::from(&mut out)], 1);
                        assert_eq!(out, [number; 50]);
                    }
                }
            });
        }
    });
    let CompileStats { hits, misses, .. } = cpu.compile_stats();
    assert_eq!(hits + misses, (3 * THREADS * ROUNDS) as u64);
    let different = (1 + THREADS / 2 + THREADS) * ROUNDS;
    assert!(misses >= different as u64, "{misses}");
    // Whoever was first, all are there now.
    for t in 0..THREADS {
        compile(&cpu, &constant(3000 + t + 10 * (ROUNDS - 1), 50));
    }
    assert_eq!(cpu.compile_stats().hits, hits + THREADS as u64);
}
