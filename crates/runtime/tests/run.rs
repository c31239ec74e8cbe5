//! What launches compute, and on how many threads.

mod common;

use std::sync::mpsc;
use std::thread;

use common::{compile, gather, launch, less, saxpy, scatter};
use runtime::{Buffer, Compiled, Device, Error, LaunchOptions, MAX_THREADS};
use uop::{AxisType, DType, Kernel};

fn integers(n: usize, seed: u32, below: u32) -> Vec<i32> {
    let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    let states = std::iter::successors(Some(seed), next);
    states.skip(1).take(n).map(|state| ((state >> 8) % below) as i32).collect()
}

/// Whole numbers, whose sums do not depend on their order.
fn floats(n: usize, seed: u32) -> Vec<f32> {
    integers(n, seed, 100).into_iter().map(|x| x as f32 - 50.0).collect()
}

#[test]
fn saxpy_is_the_same_on_any_device_and_number_of_threads() {
    for n in [0, 1, 2, 5, 1000] {
        let kernel = saxpy(n as i64);
        let (x, before) = (floats(n, 1), floats(n, 2));
        let want: Vec<f32> = x.iter().zip(&before).map(|(x, y)| x * 2.0 + y).collect();
        for device in [Device::cpu(), Device::interp()] {
            let compiled = compile(&device, &kernel);
            for threads in [1, 2, 7] {
                let mut y = before.clone();
                let buffers = &mut [Buffer::from(&mut y), Buffer::from(&x)];
                let launched = launch(&compiled, buffers, threads);
                assert_eq!(y, want, "{} with {threads} threads", device.name());
                let used = if device.name() == "cpu" { threads.min(n) } else { 1 };
                assert_eq!(launched.threads, used, "{n} elements");
            }
        }
    }
}

#[test]
fn scatter_is_the_same_on_any_device_and_number_of_threads() {
    let (n, d, v) = (301, 9, 5);
    let kernel = scatter(n as i64, d as i64, v as i64);
    let (grad, idx) = (floats(n * d, 3), integers(n, 4, v as u32 + 2));
    let before = floats(v * d, 5);
    let mut want = before.clone();
    for (i, &token) in idx.iter().enumerate() {
        let row = (token as usize).min(v - 1);
        for j in 0..d {
            want[row * d + j] += grad[i * d + j];
        }
    }
    for device in [Device::cpu(), Device::interp()] {
        let compiled = compile(&device, &kernel);
        for threads in [1, 2, 7] {
            let mut table = before.clone();
            let buffers = &mut [
                Buffer::from(&mut table).with_shape(&[v, d]),
                Buffer::from(&grad),
                Buffer::from(&idx),
            ];
            launch(&compiled, buffers, threads);
            assert_eq!(table, want, "{} with {threads} threads", device.name());
        }
    }
}

#[test]
fn threads_are_limited_and_have_a_default() {
    let n = 2 * MAX_THREADS;
    let compiled = compile(&Device::cpu(), &saxpy(n as i64));
    let (mut y, x) = (vec![0.0_f32; n], vec![1.0_f32; n]);
    let buffers = &mut [Buffer::from(&mut y), Buffer::from(&x)];
    assert_eq!(launch(&compiled, buffers, usize::MAX).threads, MAX_THREADS);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let launched = compiled.launch(buffers, &LaunchOptions::default());
    assert_eq!(launched.map(|launched| launched.threads), Ok(cores));
    assert_eq!(y, vec![4.0; n]);
}

#[test]
fn every_dtype_and_kind_of_slice() {
    let (x, y) = ([1, 5, -3, 0], vec![2, 5, -4, i32::MAX]);
    for device in [Device::cpu(), Device::interp()] {
        let compiled = compile(&device, &less(4).expect("it is right"));
        let mut out = [true; 4];
        let buffers =
            &mut [Buffer::from(out.as_mut_slice()), Buffer::from(&x), Buffer::from(y.as_slice())];
        launch(&compiled, buffers, 2);
        assert_eq!(out, [true, false, false, true]);

        let compiled = compile(&device, &gather(2, 3));
        let (mut out, table, idx) = (vec![0_i64; 2], [7_i64, i64::MIN, 9], [1_i32, 2]);
        let buffers = &mut [Buffer::from(&mut out), Buffer::from(&table), Buffer::from(&idx)];
        launch(&compiled, buffers, 1);
        assert_eq!(out, [i64::MIN, 9]);
    }
}

/// The CPU guards what is not proved in bounds; the oracle reports it and leaves the buffers alone.
#[test]
fn out_of_bounds() {
    let (table, idx) = ([7_i64, 8], [1_i32, -1, 0, 2]);
    for device in [Device::cpu(), Device::interp()] {
        let compiled = compile(&device, &gather(4, 2));
        let mut out = [5_i64; 4];
        let buffers = &mut [Buffer::from(&mut out), Buffer::from(&table), Buffer::from(&idx)];
        let result = compiled.launch(buffers, &LaunchOptions::default());
        if device.name() == "cpu" {
            assert!(result.is_ok());
            assert_eq!(out, [8, 0, 7, 0]);
        } else {
            let error = result.expect_err("the oracle sees it").to_string();
            assert!(error.starts_with("kernel `gather`: crates/"), "{error}");
            assert!(error.contains("out of bounds for axis 0 of length 2, at "), "{error}");
            assert_eq!(out, [5; 4]);
        }
    }
}

/// What the kernel does not write is not touched, not even by a copy.
#[test]
fn a_read_only_parameter_takes_a_mutable_buffer() {
    for device in [Device::cpu(), Device::interp()] {
        let compiled = compile(&device, &saxpy(3));
        let (mut y, mut x) = ([1.0_f32; 3], [2.0_f32; 3]);
        let buffers = &mut [Buffer::from(&mut y), Buffer::from(&mut x)];
        launch(&compiled, buffers, 1);
        assert_eq!((y, x), ([5.0; 3], [2.0; 3]));
    }
}

/// A parameter that simplification drops keeps its slot.
#[test]
fn a_parameter_that_is_not_needed_keeps_its_slot() {
    let k = Kernel::new();
    let unused = k.param("unused", DType::I32, 9);
    let out = k.param_mut("out", DType::I32, 3);
    let x = k.param("x", DType::I32, 3);
    let i = k.range(3, AxisType::Global);
    let value = k.constant(DType::Bool, false).where_(unused.at(i).load(), x.at(i).load());
    let kernel = out.at(i).store(value).end(i).sink("pick").expect("it is right");
    for device in [Device::cpu(), Device::interp()] {
        let compiled = compile(&device, &kernel);
        let (unused, mut out, x) = ([0_i32; 9], [0_i32; 3], [1_i32, 2, 3]);
        let buffers = &mut [Buffer::from(&unused), Buffer::from(&mut out), Buffer::from(&x)];
        launch(&compiled, buffers, 1);
        assert_eq!(out, x);
    }
}

#[test]
fn custom_kernels() {
    let cpu = Device::cpu();
    let (mut out, x) = ([0.0_f32; 6], [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let buffers =
        &mut [Buffer::from(&mut out).with_shape(&[2, 3]), Buffer::from(&x).with_shape(&[2, 3])];
    let result = cpu.custom_kernel(buffers, |k, params| {
        let (out, x) = (params[0], params[1]);
        let (i, j) = (k.range(2, AxisType::Global), k.range(3, AxisType::Loop));
        let (row, last) = (x.at([i, j]).load(), x.at([1, 2]).load());
        out.at([i, j]).store(row * last).end([i, j]).sink("scale")
    });
    let launched = result.unwrap_or_else(|error| panic!("{error}"));
    assert!((1..=2).contains(&launched.threads));
    assert_eq!(cpu.launches(), 1);
    assert_eq!(out, [6.0, 12.0, 18.0, 24.0, 30.0, 36.0]);

    // The shape does not fit its memory.
    let buffers = &mut [Buffer::from(&mut out).with_shape(&[4])];
    let error = cpu.custom_kernel(buffers, |k, params| {
        let i = k.range(4, AxisType::Global);
        params[0].at(i).store(0.0).end(i).sink("zero")
    });
    assert!(matches!(error, Err(Error::Launch(_))));
    let error = error.expect_err("there are 6").to_string();
    let want = "kernel `zero`: argument 0 `arg0`: expected a shape of its 6 elements, found [4]";
    assert_eq!(error, want);

    // It writes what is read-only.
    let error = cpu.custom_kernel(&mut [Buffer::from(&x)], |k, params| {
        let i = k.range(6, AxisType::Global);
        params[0].at(i).store(0.0).end(i).sink("zero")
    });
    assert!(matches!(error, Err(Error::Build(_))));
    let error = error.expect_err("it is read-only").to_string();
    assert!(error.contains("runtime/tests/run.rs:"), "{error}");

    // It races, which is for `lower` to see.
    let error = cpu.custom_kernel(&mut [Buffer::from(&mut out)], |k, params| {
        let i = k.range(6, AxisType::Global);
        params[0].at(i.min(2)).store(0.0).end(i).sink("race")
    });
    assert!(matches!(error, Err(Error::Compile(_))));
}

#[test]
fn compiled_kernels_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Compiled>();
    shared::<Device>();

    let (n, d, v) = (2000, 64, 3);
    let compiled = compile(&Device::cpu(), &scatter(n, d, v));
    let clone = compiled.clone();
    let (began, wait) = mpsc::channel();
    let runner = thread::spawn(move || {
        let (grad, idx) = (vec![1.0_f32; (n * d) as usize], vec![1_i32; n as usize]);
        let mut table = vec![0.0_f32; (v * d) as usize];
        for turn in 0..20 {
            let buffers = &mut [Buffer::from(&mut table), Buffer::from(&grad), Buffer::from(&idx)];
            launch(&clone, buffers, 2);
            if turn == 0 {
                began.send(()).expect("the test waits");
            }
        }
        table[d as usize]
    });
    wait.recv().expect("the runner lives");
    drop(compiled);
    let sum = runner.join().expect("the runner lives");
    assert_eq!(sum, 20.0 * n as f32);
}

/// Two threads launch one kernel at once, each with buffers of its own.
#[test]
fn launches_at_the_same_time() {
    let compiled = compile(&Device::cpu(), &saxpy(5000));
    thread::scope(|scope| {
        for threads in [1, 2, 5, 9] {
            let compiled = &compiled;
            scope.spawn(move || {
                let (mut y, x) = (vec![0.0_f32; 5000], vec![1.0_f32; 5000]);
                for _ in 0..50 {
                    let buffers = &mut [Buffer::from(&mut y), Buffer::from(&x)];
                    launch(compiled, buffers, threads);
                }
                assert_eq!(y, vec![100.0; 5000]);
            });
        }
    });
}
