//! Operations that a user declares, on everything that is here: bodies, templates, functions.
#![allow(unsafe_code)] // Templates and functions are trusted.

mod support;

use expect_test::{Expect, expect};
use interp::{Argument, Data};
use support::{cc, hip, tools};
use uopc::uop::{AtomicOp, Const, Declaration, Effect};
use uopc::{AxisType, Buffer, DType, Device, Kernel, KernelGraph, LaunchOptions, Val};

const F32: DType = DType::F32;

/// `*p += v`, in the words of C, of HIP, and in UOps.
fn add() -> Declaration {
    let add = Declaration::new("add")
        .pointer(F32)
        .value(F32)
        .effect(Effect::Atomic(AtomicOp::Add))
        .body(|_, args| args[0].atomic_add(args[1]));
    // SAFETY: both add atomically to the element.
    unsafe {
        add.template("c", "__atomic_fetch_add({0}, {1}, __ATOMIC_RELAXED);").template(
            "hip",
            "__hip_atomic_fetch_add({0}, {1}, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);",
        )
    }
}

/// `y[min(max(rows[i], 0), 4)]` gets `x[i] * 2` by `add`; `guarded`, out of range counts nowhere.
fn scatter(add: Declaration, guarded: bool) -> KernelGraph {
    let k = Kernel::new();
    let y = k.param_mut("y", F32, 5);
    let rows = k.param("rows", DType::I32, 100);
    let x = k.param("x", F32, 100);
    let i = k.range(100, AxisType::Global);
    let row = rows.at(i).load().cast(DType::Index);
    let row = if guarded { row } else { row.clip(0, 4) };
    let effect = k.custom(add, [y.at(row), x.at(i).load() * 2.0]);
    effect.end(i).sink("scatter").unwrap_or_else(|error| panic!("{error}"))
}

fn inputs() -> Vec<Data> {
    vec![
        Data::of::<f32>(vec![0.0; 5]),
        Data::of::<i32>((0..100).map(|i| i * 7 % 8 - 1).collect()),
        Data::of::<f32>((0..100).map(|i| i as f32 - 30.0).collect()),
    ]
}

/// What `kernel` makes of `inputs` on `device`, with 1 or 2 threads.
#[track_caller]
fn run(device: &Device, kernel: &KernelGraph, inputs: &[Data], threads: usize) -> Vec<Data> {
    let compiled = device.compile(kernel).unwrap_or_else(|error| panic!("{error}"));
    let mut results = inputs.to_vec();
    let mut buffers: Vec<Buffer<'_>> = results.iter_mut().map(Buffer::from).collect();
    let options = LaunchOptions::threads(threads);
    compiled.launch(&mut buffers, &options).unwrap_or_else(|error| panic!("{error}"));
    drop(buffers);
    results
}

#[track_caller]
fn agree(who: &str, want: &[Data], found: &[Data]) {
    for (want, found) in want.iter().zip(found) {
        assert!(want.agrees(found), "{who}: want {want:?}, found {found:?}");
    }
}

/// Runs `kernel` on the CPU and the interpreter of `cpu` and `interp`, and in C by `compilers`;
/// compiles it as HIP. All must give the same bits.
#[track_caller]
fn everywhere(kernel: &KernelGraph, inputs: &[Data], compilers: &[&'static str]) -> Vec<Data> {
    let want = run(&Device::interp(), kernel, inputs, 1);
    for threads in [1, 2] {
        let found = run(&Device::cpu(), kernel, inputs, threads);
        agree(&format!("the CPU, {threads} threads"), &want, &found);
    }
    let program = lower::lower(&kernel.graph, kernel.sink, &text::C.caps);
    let program = program.unwrap_or_else(|error| panic!("{error}"));
    let bytes: Vec<Vec<u8>> = inputs.iter().map(|data| data.bytes().to_vec()).collect();
    for build in cc::builds_by(compilers, &program) {
        for mode in cc::MODES {
            let mut found = inputs.to_vec();
            for (found, bytes) in found.iter_mut().zip(build.run(mode, &[], &bytes)) {
                found.bytes_mut().copy_from_slice(&bytes);
            }
            agree(&format!("C, {}, {mode}", build.label), &want, &found);
        }
    }
    let source = hip_source(kernel);
    if let Some(compiler) = tools::hip_compiler("custom") {
        for chip in hip::CHIPS {
            hip::compile(compiler, &source, chip, &[]);
        }
    }
    want
}

fn hip_source(kernel: &KernelGraph) -> String {
    let compiled = Device::amd().compile(kernel).unwrap_or_else(|error| panic!("{error}"));
    compiled.source().expect("it writes source").to_string()
}

fn c_source(kernel: &KernelGraph) -> String {
    let program = lower::lower(&kernel.graph, kernel.sink, &text::C.caps);
    let program = program.unwrap_or_else(|error| panic!("{error}"));
    text::emit(&program, &text::C).unwrap_or_else(|error| panic!("{error}"))
}

/// The compilers of C whose atomic builtins take floats.
fn clang() -> Vec<&'static str> {
    let mut compilers = tools::c_compilers("custom");
    compilers.retain(|compiler| compiler.contains("clang"));
    compilers
}

#[test]
fn the_templates_of_the_reference_work_as_they_stand() {
    let kernel = scatter(add(), false);
    let c = c_source(&kernel);
    assert!(c.contains("    __atomic_fetch_add(&y[v2], v3, __ATOMIC_RELAXED);\n"), "{c}");
    // What is updated atomically is modified through other pointers too.
    assert!(c.contains("float *y, const int32_t *restrict rows"), "{c}");
    let hip = hip_source(&kernel);
    let call = "__hip_atomic_fetch_add(&y[v1], v2, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);\n";
    assert!(hip.contains(call), "{hip}");
    assert!(hip.contains("    float *y,\n    const int *__restrict__ rows,\n"), "{hip}");
    assert!(hip.contains("Floats are added atomically to y"), "{hip}");
    let found = everywhere(&kernel, &inputs(), &clang());
    assert_eq!(found[0].get(4).as_float(), Some(1560.0));
}

#[test]
fn a_guard_is_around_a_template() {
    let kernel = scatter(add(), true);
    let hip = hip_source(&kernel);
    assert!(hip.contains("    if (!(rows_0 < 0) && rows_0 < 5) {\n        __hip_atomic"), "{hip}");
    // The interpreter refuses what is out of bounds; what is compiled agrees.
    let want = run(&Device::cpu(), &kernel, &inputs(), 1);
    let program = lower::lower(&kernel.graph, kernel.sink, &text::C.caps);
    let program = program.unwrap_or_else(|error| panic!("{error}"));
    let bytes: Vec<Vec<u8>> = inputs().iter().map(|data| data.bytes().to_vec()).collect();
    for build in cc::builds_by(&clang(), &program) {
        assert_eq!(build.run("whole", &[], &bytes)[0], want[0].bytes(), "{}", build.label);
    }
}

/// A polynomial, for no target in particular.
fn horner() -> Declaration {
    Declaration::new("horner").value(F32).value(F32).result(F32).body(|k, args| {
        let [x, a] = [args[0], args[1]];
        let small = x.lt(a);
        let y = (x * 0.1 + a) * x - k.constant(F32, 0.3);
        small.where_(y, -y).max(a * 0.7)
    })
}

/// `y[i] = f(x[i], i)`.
fn map(f: Declaration) -> KernelGraph {
    let k = Kernel::new();
    let y = k.param_mut("y", F32, 50);
    let x = k.param("x", F32, 50);
    let i = k.range(50, AxisType::Global);
    let value = k.custom(f, [x.at(i).load(), i.cast(F32)]);
    y.at(i).store(value).end(i).sink("map").unwrap_or_else(|error| panic!("{error}"))
}

fn map_inputs() -> Vec<Data> {
    let x = (0..50).map(|i| (i as f32 - 20.0) * 1.37).collect();
    vec![Data::of::<f32>(vec![0.0; 50]), Data::of::<f32>(x)]
}

#[test]
fn a_body_serves_every_target() {
    let kernel = map(horner());
    everywhere(&kernel, &map_inputs(), &tools::c_compilers("custom"));
    // Where there is a template, it is what is written.
    // SAFETY: this is compiled, and has no effect.
    let spelled =
        unsafe { horner().template("c", "({0} < {1} ? ({0} * 0.1f + {1}) * {0} - 0.3f : 2.0f)") };
    let c = c_source(&map(spelled));
    assert!(
        c.contains("const float v1 = (x_0 < v0 ? (x_0 * 0.1f + v0) * x_0 - 0.3f : 2.0f);"),
        "{c}"
    );
}

/// `x / y`, which there is no op for.
fn divide() -> Declaration {
    Declaration::new("divide").value(F32).value(F32).result(F32)
}

extern "C" fn divide_floats(x: f32, y: f32) -> f32 {
    x / y
}

fn divide_constants(args: &mut [Argument]) -> Option<Const> {
    let [Argument::Value(x), Argument::Value(y)] = args else { return None };
    Some(Const::from(x.as_float()? as f32 / y.as_float()? as f32))
}

#[test]
fn a_function_serves_what_has_no_body() {
    let kernel = map(divide());
    // SAFETY: the function is what is declared.
    let cpu = unsafe { Device::cpu().with_function(&divide(), divide_floats as *const ()) };
    let interp = Device::interp().with_closure("divide", divide_constants);
    let want = run(&interp, &kernel, &map_inputs(), 1);
    assert_eq!(want[0].get(30).as_float(), Some(f64::from(10.0 * 1.37_f32 / 30.0)));
    for threads in [1, 2] {
        agree("the CPU", &want, &run(&cpu, &kernel, &map_inputs(), threads));
    }
}

/// One of each kind of argument.
fn mix() -> Declaration {
    Declaration::new("mix")
        .pointer_to(DType::I16, 2)
        .pointer(DType::BF16)
        .value(DType::Bool)
        .value(DType::I8)
        .value(DType::U16)
        .value(DType::F16)
        .value(DType::F64)
        .result(DType::Bool)
        .effect(Effect::Writes)
}

/// # Safety
///
/// As declared.
unsafe extern "C" fn mix_it(p: *mut i16, q: *mut u16, a: u8, b: i8, c: u16, d: u16, e: f64) -> u8 {
    // SAFETY: the footprint is two elements, and one.
    unsafe {
        *p = i16::from(b) - i16::from(a);
        *p.add(1) = c as i16;
        *q = d;
    }
    u8::from(e > 0.0)
}

#[test]
fn arguments_are_of_their_machine_types() {
    let k = Kernel::new();
    let p = k.param_mut("p", DType::I16, [6, 2]);
    let q = k.param_mut("q", DType::BF16, 6);
    let r = k.param_mut("r", DType::Bool, 6);
    let i = k.range(6, AxisType::Global);
    let gate = i.lt(5);
    let args: [Val<'_>; 8] = [
        p.at([i, k.int(0)]),
        q.at(i),
        i.lt(2),
        (i - 3).cast(DType::I8),
        (i * 13_000).cast(DType::U16),
        i.cast(DType::F16),
        (i - 2).cast(DType::F64),
        gate,
    ];
    let positive = k.custom(mix(), args);
    let kernel = r.at(i).store(positive).end(i).sink("mix").unwrap_or_else(|e| panic!("{e}"));
    let inputs = vec![
        Data::of::<i16>(vec![7; 12]),
        Data::zeros(DType::BF16, 6).expect("it is stored"),
        Data::zeros(DType::Bool, 6).expect("it is stored"),
    ];
    // SAFETY: the function is what is declared.
    let cpu = unsafe { Device::cpu().with_function(&mix(), mix_it as *const ()) };
    let interp = Device::interp().with_closure("mix", |args| {
        let [Argument::Elements(p), Argument::Elements(q), rest @ ..] = args else { return None };
        let value = |k: usize| match &rest[k] {
            Argument::Value(value) => *value,
            Argument::Elements(_) => panic!("a value"),
        };
        let int = |k: usize| value(k).as_int().expect("an integer");
        let first = i128::from(value(0) == Const::Bool(true));
        p[0] = Const::Int(int(1) - first);
        p[1] = Const::Int(DType::I16.wrap(int(2)));
        let Const::F16(bits) = value(3) else { panic!("a half") };
        q[0] = Const::BF16(bits);
        Some(Const::Bool(value(4).as_float()? > 0.0))
    });
    let want = run(&interp, &kernel, &inputs, 1);
    assert_eq!(want[0].get(0), Const::Int(-4));
    assert_eq!(want[0].get(11), Const::Int(7), "a gate was false");
    for threads in [1, 2] {
        agree("the CPU", &want, &run(&cpu, &kernel, &inputs, threads));
    }
}

#[track_caller]
fn refused(device: &Device, kernel: &KernelGraph, want: Expect) {
    let error = device.compile(kernel).expect_err("something is missing").to_string();
    want.assert_eq(error.split_once(".rs:").map_or(&*error, |(_, rest)| rest));
}

#[test]
fn what_is_missing_is_missed_early() {
    let kernel = map(divide());
    refused(
        &Device::cpu(),
        &kernel,
        expect![
            "165:19: %7: custom `divide` has no body, and no function is registered for the CPU: add one of them"
        ],
    );
    refused(
        &Device::interp(),
        &kernel,
        expect![
            "165:19: %7: custom `divide` has no body, and no function is registered for the interpreter: add one of them"
        ],
    );
    refused(
        &Device::amd(),
        &kernel,
        expect![
            "165:19: %7: custom `divide` has no body, and no template for hip: add one of them"
        ],
    );
    // A function is called for what it was registered for.
    let other = divide().value(F32);
    // SAFETY: it is never called.
    let cpu = unsafe { Device::cpu().with_function(&other, divide_floats as *const ()) };
    refused(
        &cpu,
        &kernel,
        expect![
            "165:19: %7: the function for custom `divide` was registered for another declaration: their arguments, result and effect must be equal"
        ],
    );
}

#[test]
fn closures_keep_to_the_declaration() {
    let kernel = map(divide());
    let device = Device::interp().with_closure("divide", |_| None);
    let compiled = device.compile(&kernel).unwrap_or_else(|error| panic!("{error}"));
    let mut results = map_inputs();
    let mut buffers: Vec<Buffer<'_>> = results.iter_mut().map(Buffer::from).collect();
    let error = compiled.launch(&mut buffers, &LaunchOptions::default());
    let error = error.expect_err("it has a result").to_string();
    assert!(error.contains("gives other values than are declared"), "{error}");
}
