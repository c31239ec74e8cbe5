//! One kernel on several devices: what is shared, what is split, and what is refused.
#![allow(unsafe_code)] // `Buffer::from_raw_parts` is what can overlap.

use runtime::{Buffer, Device, LaunchErrorKind, LaunchOptions, ShardError, Sharded, shard};
use uop::{AxisType, DType, Kernel, KernelGraph};

/// `out[i] = x[i] + 1000 * _device_num`, of `rows` elements on each of `shards` devices.
fn numbered(shards: i64, rows: i64) -> KernelGraph {
    let k = Kernel::new();
    let out = k.param_mut("out", DType::I32, rows);
    let x = k.param("x", DType::I32, rows);
    let number = k.variable("_device_num", 0, shards - 1).cast(DType::I32);
    let i = k.range(rows, AxisType::Global);
    out.at(i).store(x.at(i).load() + number * 1000).end(i).sink("numbered").unwrap()
}

fn cpus(n: usize) -> Vec<Device> {
    (0..n).map(|_| Device::cpu()).collect()
}

#[test]
fn parts_are_written_side_by_side() {
    for (shards, rows) in [(1, 5), (2, 3), (4, 1), (3, 0)] {
        let kernel = numbered(shards, rows);
        let (x, len) = ((0..rows as i32).collect::<Vec<i32>>(), (shards * rows) as usize);
        for devices in [cpus(shards as usize), vec![Device::interp(); shards as usize]] {
            let mut out = vec![-1i32; len];
            let args = &mut [Sharded::Split(Buffer::from(&mut out)), Sharded::Shared((&x).into())];
            let done = shard(&devices, &kernel, args, &LaunchOptions::default()).unwrap();
            assert_eq!(done.len(), shards as usize);
            let want: Vec<i32> =
                (0..shards as i32).flat_map(|k| x.iter().map(move |x| x + 1000 * k)).collect();
            assert_eq!(out, want);
        }
    }
}

#[test]
fn what_would_go_wrong_is_refused_before_anything_runs() {
    let kernel = numbered(2, 3);
    let x = [7i32; 3];
    let mut out = [-1i32; 6];
    let mut run = |devices: &[Device], kernel: &KernelGraph, len: usize, shared: bool| {
        let buffer = Buffer::from(&mut out[..len]);
        let out = if shared { Sharded::Shared(buffer) } else { Sharded::Split(buffer) };
        let args = &mut [out, Sharded::Shared((&x).into())];
        shard(devices, kernel, args, &LaunchOptions::default()).expect_err("it is refused")
    };
    assert_eq!(run(&[], &kernel, 6, false), ShardError::NoDevices);
    let error = run(&cpus(3), &kernel, 6, false);
    assert_eq!(
        error.to_string(),
        "expected one device for each `_device_num` from 0 to 1, found 3 devices"
    );
    let error = run(&cpus(2), &kernel, 5, false);
    assert_eq!(
        error.to_string(),
        "argument 0 `out`: expected 2 parts of 3 elements, found 5 elements in all"
    );
    let error = run(&cpus(2), &kernel, 3, true);
    assert_eq!(
        error.to_string(),
        "argument 0 `out`: every device writes it, so it cannot be shared; split it"
    );
    let mut y = [0i32; 6];
    let [to, from, more] = [Buffer::from(&mut y), Buffer::from(&x), Buffer::from(&x)];
    let args = &mut [Sharded::Split(to), Sharded::Shared(from), Sharded::Split(more)];
    let error = shard(&cpus(2), &kernel, args, &LaunchOptions::default()).expect_err("too many");
    assert_eq!(
        error.to_string(),
        "device 0: kernel `numbered`: expected 2 buffers (`out`, `x`), found 3"
    );
    let error = run(&[Device::cpu(), Device::amd()], &kernel, 6, false);
    let ShardError::Launch { device: 1, error } = error else { panic!("{error}") };
    assert!(matches!(error.errors[..], [LaunchErrorKind::SourceOnly { .. }]));
    let k = Kernel::new();
    let (y, i) = (k.param_mut("out", DType::I32, 3), k.range(3, AxisType::Global));
    let from = k.param("x", DType::I32, 3);
    let plain = y.at(i).store(from.at(i).load()).end(i).sink("plain").unwrap();
    assert_eq!(run(&cpus(2), &plain, 6, false), ShardError::NoVariable);
    assert_eq!(out, [-1; 6], "nothing has run");
    // One device does all of it.
    let args = &mut [Sharded::Split((&mut out[..3]).into()), Sharded::Shared((&x).into())];
    shard(&cpus(1), &plain, args, &LaunchOptions::default()).unwrap();
    assert_eq!(out, [7, 7, 7, -1, -1, -1]);
}

/// Made of raw parts, arguments may share memory that no single launch sees whole.
#[test]
fn one_device_does_not_write_what_another_reads() {
    let kernel = numbered(2, 3);
    let mut memory = [0i32; 6];
    let pointer = memory.as_mut_ptr().cast();
    // SAFETY: as many elements as there are, borrowed for as long as the buffers live.
    let out = unsafe { Buffer::from_raw_parts(DType::I32, pointer, 6, true) };
    // SAFETY: as above; the last three, which only device 1 would write.
    let x = unsafe { Buffer::from_raw_parts(DType::I32, pointer.wrapping_add(12), 3, false) };
    let args = &mut [Sharded::Split(out), Sharded::Shared(x)];
    let error = shard(&cpus(2), &kernel, args, &LaunchOptions::default()).expect_err("a race");
    assert_eq!(error, ShardError::Overlap { slot: 0, other: 1 });
}
