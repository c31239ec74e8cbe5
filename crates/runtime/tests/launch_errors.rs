//! What a launch refuses, and how it says so.
#![allow(unsafe_code)] // `Buffer::from_raw_parts` is what can be misaligned and overlap.

mod common;

use common::{compile, launch, saxpy, scatter};
use runtime::{ArgumentError, Buffer, Compiled, Device, LaunchErrorKind, LaunchOptions};
use uop::{AxisType, DType, Kernel};

#[track_caller]
fn refused(compiled: &Compiled, buffers: &mut [Buffer<'_>], want: &str) {
    let result = compiled.launch(buffers, &LaunchOptions::default());
    assert_eq!(result.expect_err("it is refused").to_string(), want);
}

fn saxpy_4() -> Compiled {
    compile(&Device::cpu(), &saxpy(4))
}

#[test]
fn number_of_buffers() {
    let mut y = [0.0_f32; 4];
    let want = "kernel `saxpy`: expected 2 buffers (`y`, `x`), found 1";
    refused(&saxpy_4(), &mut [Buffer::from(&mut y)], want);
}

#[test]
fn dtype() {
    let (mut y, x) = ([0.0_f32; 4], [0_i32; 4]);
    let want = "kernel `saxpy`: argument 1 `x`: expected f32, found i32";
    refused(&saxpy_4(), &mut [Buffer::from(&mut y), Buffer::from(&x)], want);
}

#[test]
fn length() {
    let (mut y, x) = ([0.0_f32; 5], [0.0_f32; 4]);
    let want = "kernel `saxpy`: argument 0 `y`: expected 4 elements, for shape [4], found 5";
    refused(&saxpy_4(), &mut [Buffer::from(&mut y), Buffer::from(&x)], want);
}

#[test]
fn shape() {
    let compiled = compile(&Device::cpu(), &scatter(3, 2, 5));
    let (mut table, grad, idx) = ([0.0_f32; 10], [0.0_f32; 6], [0_i32; 3]);
    let buffers = &mut [
        Buffer::from(&mut table).with_shape(&[2, 5]),
        Buffer::from(&grad).with_shape(&[6]),
        Buffer::from(&idx),
    ];
    // One axis is a matter of length.
    let want = "kernel `scatter`: argument 0 `table`: expected shape [5, 2], found [2, 5]";
    refused(&compiled, buffers, want);

    let (mut y, x) = ([0.0_f32; 4], [0.0_f32; 4]);
    for (shape, found) in [
        (&[2, 3][..], "[2, 3]"),
        (&[], "[]"),
        (&[usize::MAX, 2], "[18446744073709551615, 2]"),
        (&[usize::MAX, 2, 0], "[18446744073709551615, 2, 0]"),
    ] {
        let buffers = &mut [Buffer::from(&mut y).with_shape(shape), Buffer::from(&x)];
        let want = "kernel `saxpy`: argument 0 `y`: expected a shape of its 4 elements, found ";
        refused(&saxpy_4(), buffers, &format!("{want}{found}"));
    }
}

#[test]
fn read_only() {
    let (y, x) = ([0.0_f32; 4], [0.0_f32; 4]);
    let want = "kernel `saxpy`: argument 0 `y`: expected a mutable buffer, found a read-only one; \
                make it from a `&mut`";
    refused(&saxpy_4(), &mut [Buffer::from(&y), Buffer::from(&x)], want);
}

#[test]
fn alignment() {
    let (mut y, x) = ([0.0_f32; 4], [0_u64; 3]);
    let address = x.as_ptr().addr() + 2;
    let pointer = x.as_ptr().wrapping_byte_add(2).cast_mut().cast();
    // SAFETY: 16 bytes within the 24 of `x`, for reads.
    let odd = unsafe { Buffer::from_raw_parts(DType::F32, pointer, 4, false) };
    let want = format!(
        "kernel `saxpy`: argument 1 `x`: expected an address that is a multiple of 4, found \
         {address:#x}"
    );
    refused(&saxpy_4(), &mut [Buffer::from(&mut y), odd], &want);
}

#[test]
fn overlap() {
    let mut memory = [0.0_f32; 8];
    let pointer = memory.as_mut_ptr();
    let part = |start: usize, mutable| {
        let pointer = pointer.wrapping_add(start).cast();
        // SAFETY: 4 elements of `memory`, which outlives the test and is not used otherwise; what
        // overlaps is for the launch to refuse.
        unsafe { Buffer::from_raw_parts(DType::F32, pointer, 4, mutable) }
    };
    let want = "kernel `saxpy`: argument 0 `y`: expected memory apart from argument 1 `x`, found \
                that they overlap";
    for start in 0..4 {
        refused(&saxpy_4(), &mut [part(start, true), part(0, false)], want);
        refused(&saxpy_4(), &mut [part(0, true), part(start, true)], want);
    }
    launch(&saxpy_4(), &mut [part(4, true), part(0, false)], 1);
    launch(&saxpy_4(), &mut [part(0, true), part(4, true)], 1);

    // What is only read may overlap: grad and idx of this kernel, were they of one dtype.
    let compiled = compile(&Device::cpu(), &scatter(4, 1, 1));
    let mut table = [0.0_f32];
    // SAFETY: 4 elements of `memory`, whose bits are an i32 each.
    let idx = unsafe { Buffer::from_raw_parts(DType::I32, pointer.cast(), 4, false) };
    launch(&compiled, &mut [Buffer::from(&mut table), part(0, false), idx], 1);

    // No elements overlap nothing, wherever they are.
    let compiled = compile(&Device::cpu(), &saxpy(0));
    let none = |mutable| {
        let pointer = pointer.wrapping_byte_add(1).cast();
        // SAFETY: no elements.
        unsafe { Buffer::from_raw_parts(DType::F32, pointer, 0, mutable) }
    };
    launch(&compiled, &mut [none(true), none(true)], 1);
}

#[test]
fn zero_threads() {
    let (mut y, x) = ([0.0_f32; 4], [1.0_f32; 4]);
    for device in [Device::cpu(), Device::interp(), Device::null()] {
        let buffers = &mut [Buffer::from(&mut y), Buffer::from(&x)];
        let options = LaunchOptions::threads(0);
        let result = compile(&device, &saxpy(4)).launch(buffers, &options);
        let error = result.expect_err("it is refused").to_string();
        assert_eq!(error, "kernel `saxpy`: expected at least 1 thread, found 0");
        assert_eq!(device.launches(), 0);
    }
    assert_eq!(y, [0.0; 4]);
}

#[test]
fn everything_at_once() {
    let (y, x) = ([0_i64; 3], [0.0_f32; 6]);
    let buffers = &mut [Buffer::from(&y), Buffer::from(&x).with_shape(&[2, 3])];
    let options = LaunchOptions::threads(0);
    let error = saxpy_4().launch(buffers, &options).expect_err("it is refused");
    let want = "\
kernel `saxpy`: argument 0 `y`: expected f32, found i64
kernel `saxpy`: argument 0 `y`: expected 4 elements, for shape [4], found 3
kernel `saxpy`: argument 0 `y`: expected a mutable buffer, found a read-only one; make it from a `&mut`
kernel `saxpy`: argument 1 `x`: expected 4 elements, for shape [4], found 6
kernel `saxpy`: expected at least 1 thread, found 0";
    assert_eq!(error.to_string(), want);
    assert_eq!(error.kernel, "saxpy");
    let LaunchErrorKind::Argument { slot, name, kind } = &error.errors[2] else {
        panic!("{:?}", error.errors[2])
    };
    assert_eq!((*slot, name.as_str()), (0, "y"));
    assert_eq!(*kind, ArgumentError::ReadOnly);
}

/// The interpreter takes lengths that a launch cannot work out.
#[test]
fn overflow_on_the_way_to_a_length() {
    let k = Kernel::new();
    let n = k.variable("n", 0, i64::MAX);
    let length = (n * n * n).min(10);
    let y = k.param_mut("y", DType::F32, length);
    let i = k.range(length, AxisType::Global);
    let kernel = y.at(i).store(1.0).end(i).sink("cube").unwrap();
    let compiled = compile(&Device::interp(), &kernel);
    let want = "kernel `cube`: argument 0 `y`: the length of an axis leaves 128 bits on its way; \
                make the variables smaller";
    let mut y = [0.0_f32; 10];
    for (n, fits) in [(3, true), (i64::MAX, false)] {
        let options = LaunchOptions { variables: &[("n", n)], ..LaunchOptions::default() };
        let errors = [
            compiled.shapes(options.variables).err(),
            compiled.launch(&mut [Buffer::from(&mut y)], &options).err(),
        ];
        let found = errors.map(|error| error.map(|error| error.to_string()));
        assert_eq!(found, [(); 2].map(|()| (!fits).then(|| want.to_string())));
    }
    assert_eq!(y, [1.0; 10]);
}
