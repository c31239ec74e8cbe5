//! The atomic add is real: without it the kernel is refused, and forced through it loses updates.
#![forbid(unsafe_code)]

use uopc::{AxisType, Buffer, Compiled, DType, Device, Kernel, KernelGraph, LaunchOptions, Val};

const ADDS: usize = 4_000_000;

/// `sums[idx[i]] += x[i]`, with the update that `update` makes of the address and the value.
fn scatter(
    update: impl for<'k> Fn(Val<'k>, Val<'k>) -> Val<'k>,
    n: usize,
) -> Result<KernelGraph, uop::BuildErrors> {
    let k = Kernel::new();
    let sums = k.param_mut("sums", DType::F32, 4);
    let idx = k.param("idx", DType::I32, n);
    let x = k.param("x", DType::F32, n);
    let i = k.range(n, AxisType::Global);
    let row = idx.at(i).load().cast(DType::Index).clip(0, 3);
    update(sums.at(row), x.at(i).load()).end(i).sink("scatter")
}

fn plain<'k>(address: Val<'k>, value: Val<'k>) -> Val<'k> {
    address.store(address.load() + value)
}

fn atomic<'k>(address: Val<'k>, value: Val<'k>) -> Val<'k> {
    address.atomic_add(value)
}

fn run(kernel: &Compiled, threads: usize) -> f32 {
    let (idx, x) = (vec![0i32; ADDS], vec![1.0f32; ADDS]);
    let mut sums = [0.0f32; 4];
    let buffers = &mut [Buffer::from(&mut sums), (&idx).into(), (&x).into()];
    let options = LaunchOptions::threads(threads);
    kernel.launch(buffers, &options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sums[1..], [0.0; 3]);
    sums[0]
}

#[test]
fn a_plain_add_is_refused() {
    let kernel = scatter(plain, 100).unwrap_or_else(|error| panic!("{error}"));
    let error = Device::cpu().compile(&kernel).expect_err("it is a race");
    let error = error.to_string();
    let (place, message) = error.split_at(error.find('%').expect("it names a node"));
    assert!(place.contains("atomic.rs:"), "{error}");
    assert_eq!(
        message,
        "%10: possible race on `sums`: cannot prove that this access and %14 never touch one element \
         at different points, as that depends on %5; use an atomic, order them with `after`, or \
         vouch for the store with `disjoint`"
    );
    // The names are those that the kernel prints.
    let text = kernel.to_string();
    for line in ["%5 = load", "%10 = load", "%14 = store"] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn forced_through_it_loses_updates_and_the_atomic_does_not() {
    let waived = scatter(|address, value| plain(address, value).assume_disjoint(), ADDS);
    let waived = waived.unwrap_or_else(|error| panic!("{error}"));
    assert!(waived.to_string().contains(" disjoint\n"), "a waiver shows in the text");
    let waived = Device::cpu().compile(&waived).unwrap_or_else(|error| panic!("{error}"));
    let safe = scatter(atomic, ADDS).unwrap_or_else(|error| panic!("{error}"));
    let safe = Device::cpu().compile(&safe).unwrap_or_else(|error| panic!("{error}"));

    // One thread needs no atomic.
    assert_eq!(run(&waived, 1), ADDS as f32);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Two threads must overlap to lose anything; on a busy machine they may not at once.
    let lost = (0..50).any(|_| run(&waived, 2) < ADDS as f32);
    assert!(lost || cores < 2, "two threads lost nothing in 50 runs");
    for _ in 0..5 {
        assert_eq!(run(&safe, 2), ADDS as f32);
    }
}

#[test]
fn the_code_compares_and_exchanges() {
    let kernel = scatter(atomic, 10).unwrap_or_else(|error| panic!("{error}"));
    let program = lower::lower(&kernel.graph, kernel.sink, &jit::CAPS)
        .unwrap_or_else(|error| panic!("{error}"));
    let clif = jit::clif(&program, &jit::Options::default()).unwrap_or_else(|e| panic!("{e}"));
    // A loop: the compare-exchange branches back to its own block.
    let cas = clif.find("atomic_cas").unwrap_or_else(|| panic!("no compare-exchange in\n{clif}"));
    let block = clif[..cas].rfind("\nblock").expect("an instruction is in a block") + 1;
    let label = &clif[block..][..clif[block..].find('(').expect("it has parameters")];
    let back = clif[cas..].lines().find(|line| line.contains("brif")).expect("it branches");
    assert!(back.contains(&format!("{label}(")), "{back} in\n{clif}");
    assert!(clif[..cas].contains("fadd"), "{clif}");
}

#[test]
fn integers_are_exact_on_any_number_of_threads() {
    let k = Kernel::new();
    let n = 100_000;
    let counts = k.param_mut("counts", DType::I64, 8);
    let i = k.range(n, AxisType::Global);
    let kernel = counts.at(0).atomic_add(i.cast(DType::I64)).end(i).sink("sum");
    let kernel = kernel.unwrap_or_else(|error| panic!("{error}"));
    let compiled = Device::cpu().compile(&kernel).unwrap_or_else(|error| panic!("{error}"));
    for threads in [1, 2, 3, 7, 64] {
        let mut counts = [0i64; 8];
        let options = LaunchOptions::threads(threads);
        let buffers = &mut [Buffer::from(&mut counts)];
        compiled.launch(buffers, &options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(counts[0], n * (n - 1) / 2, "{threads} threads");
    }
}
