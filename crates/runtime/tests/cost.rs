//! What `null` counts, without memory.

mod common;

use common::{compile, constant, gather, saxpy, scatter};
use runtime::{Buffer, Compiled, Cost, Device, LaunchOptions, Launched};
use uop::{AxisType, DType, Kernel, KernelGraph};

/// Launches on buffers without memory.
#[track_caller]
fn launch_absent(compiled: &Compiled) -> Launched {
    let absent = |param: &runtime::ProgramParam| {
        let shape = param.shape_at(&[]).expect("there are no variables");
        let shape: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
        let len = shape.iter().product();
        Buffer::absent(param.dtype, len, param.mutable).with_shape(&shape)
    };
    let mut buffers: Vec<Buffer<'_>> = compiled.params().iter().map(absent).collect();
    let launched = compiled.launch(&mut buffers, &LaunchOptions::default());
    launched.unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn cost(kernel: &KernelGraph) -> Option<Cost> {
    launch_absent(&compile(&Device::null(), kernel)).cost
}

#[track_caller]
fn costs(kernel: &KernelGraph, bytes: u64, operations: u64) {
    assert_eq!(cost(kernel), Some(Cost { bytes, operations }));
}

#[test]
fn loops_multiply() {
    costs(&saxpy(1000), 12 * 1000, 2 * 1000);
    costs(&saxpy(1 << 50), 12 << 50, 2 << 50);
    costs(&saxpy(0), 0, 0);
    costs(&constant(7, 10), 40, 0);
    // A token for each row; gradient, and sum before and after, for each element.
    costs(&scatter(300, 20, 5), 4 * 300 + 12 * 300 * 20, 300 * 20);
}

#[test]
fn gates_count_as_taken() {
    // Nothing is known of the index, so the load of the table is under a gate.
    costs(&gather(100, 5), (4 + 8 + 8) * 100, 0);
    let k = Kernel::new();
    let y = k.param_mut("y", DType::F32, 100);
    let i = k.range(100, AxisType::Global);
    let store = y.at(i).store_if(i.lt(50), y.at(i).load() * y.at(i).load() + 1.0);
    costs(&store.end(i).sink("half").expect("it is right"), 8 * 100, 2 * 100);
}

#[test]
fn more_than_can_be_counted_is_not_known() {
    assert_eq!(cost(&saxpy(i64::MAX / 4)), None);
}

/// `out[i] = Σ x[j]` for `j` below `bound`, of which there are `n`; `out` is f32[n], `x` is f32[n],
/// `ends` is i32[n].
fn sums(n: i64, kind: AxisType, loaded: bool) -> KernelGraph {
    let k = Kernel::new();
    let out = k.param_mut("out", DType::F32, n);
    let x = k.param("x", DType::F32, n);
    let ends = k.param("ends", DType::I32, n);
    let sum = k.reg(DType::F32, 1);
    let i = k.range(n, kind);
    let end = if loaded { ends.at(i).load().clip(0, 3).cast(DType::Index) } else { i };
    let start = sum.after(i).at(0).store(0.0);
    let j = k.range(end, AxisType::Loop);
    let inside = sum.after([start, j]).at(0);
    let step = inside.store(inside.load() + x.at(j).load()).end(j);
    let last = ends.at(i).load().cast(DType::F32);
    let result = sum.after([step, i]).at(0).load() + last;
    out.at(i).store(result).end(i).sink("sums").expect("it is right")
}

#[test]
fn bounds_that_depend_on_variables_are_followed() {
    let n = 100;
    let inner = n * (n - 1) / 2;
    for kind in [AxisType::Global, AxisType::Loop] {
        // Registers do not count, nor does the cast.
        costs(&sums(n as i64, kind, false), 4 * inner + 8 * n, inner + n);
    }
    // But not for ever.
    assert_eq!(cost(&sums(1 << 40, AxisType::Global, false)), None);
}

#[test]
fn bounds_that_depend_on_data_are_not_known() {
    assert_eq!(cost(&sums(100, AxisType::Global, true)), None);
    costs(&sums(0, AxisType::Global, true), 0, 0);
}

/// Looking at each turn of each loop around a bound that is not known would take for ever.
#[test]
fn deep_nests_end_soon() {
    let k = Kernel::new();
    let out = k.param_mut("out", DType::I32, 1);
    let ends = k.param("ends", DType::I32, 1000);
    let ranges: Vec<_> = (0..30).map(|_| k.range(1000, AxisType::Loop)).collect();
    let bound = ends.at(ranges[29]).load().clip(0, 3).cast(DType::Index);
    let j = k.range(bound, AxisType::Loop);
    let all = ranges.iter().fold(j.cast(DType::I32), |sum, &i| sum + i.cast(DType::I32));
    let store = out.after(&ranges[..]).at(0).store(all).end(j).end(&ranges[..]);
    assert_eq!(cost(&store.sink("deep").expect("it is right")), None);
}

#[test]
fn a_device_sums_what_its_launches_cost() {
    let device = Device::null();
    assert_eq!((device.launches(), device.cost()), (0, Some(Cost::default())));
    let (first, second) = (compile(&device, &saxpy(10)), compile(&device.clone(), &saxpy(20)));
    for compiled in [&first, &second, &first] {
        launch_absent(compiled);
    }
    let sum = Some(Cost { bytes: 12 * 40, operations: 2 * 40 });
    assert_eq!((device.launches(), device.cost()), (3, sum));
    launch_absent(&compile(&device, &sums(10, AxisType::Global, true)));
    assert_eq!((device.launches(), device.cost()), (4, None));
}

#[test]
fn what_runs_counts_no_cost_and_takes_no_absent_buffer() {
    for device in [Device::cpu(), Device::interp()] {
        let compiled = compile(&device, &saxpy(4));
        for (len, kernel) in [(4, saxpy(4)), (0, saxpy(0))] {
            let x = vec![1.0_f32; len];
            let buffers = &mut [Buffer::absent(DType::F32, len, true), Buffer::from(&x)];
            let result = compile(&device, &kernel).launch(buffers, &LaunchOptions::default());
            let want = "kernel `saxpy`: argument 0 `y`: expected a buffer with memory, found an \
                        absent one; only device null takes it";
            assert_eq!(result.expect_err("it is refused").to_string(), want);
        }
        let (mut y, x) = ([0.0_f32; 4], [1.0_f32; 4]);
        let launched = common::launch(&compiled, &mut [Buffer::from(&mut y), Buffer::from(&x)], 1);
        assert_eq!(launched.cost, None);
        assert_eq!((device.launches(), device.cost()), (1, None));
    }
}

#[test]
fn null_checks_absent_buffers() {
    let compiled = compile(&Device::null(), &scatter(3, 2, 5));
    let buffers = &mut [
        Buffer::absent(DType::F32, 10, false).with_shape(&[2, 5]),
        Buffer::absent(DType::I32, 7, false),
        Buffer::absent(DType::I32, 3, false),
    ];
    let error = compiled.launch(buffers, &LaunchOptions::default()).expect_err("it is refused");
    let want = "\
kernel `scatter`: argument 0 `table`: expected shape [5, 2], found [2, 5]
kernel `scatter`: argument 0 `table`: expected a mutable buffer, found a read-only one; make it from a `&mut`
kernel `scatter`: argument 1 `grad`: expected f32, found i32
kernel `scatter`: argument 1 `grad`: expected 6 elements, for shape [3, 2], found 7";
    assert_eq!(error.to_string(), want);
}
