//! The devices and what they refuse to compile.

mod common;

use common::{compile, launch, saxpy, scatter};
use runtime::{Buffer, CompileError, Device, LaunchOptions};
use uop::{Arg, Const, DType, Graph, KernelGraph, Node, Op, Param};

#[test]
fn names() {
    for (name, want) in
        [("cpu", "cpu"), ("CPU", "cpu"), ("Interp", "interp"), ("NULL", "null"), ("AMD", "amd")]
    {
        assert_eq!(Device::from_name(name).map(|device| device.name()), Ok(want));
    }
    let all: Vec<&str> = Device::all().map(|device| device.name()).collect();
    assert_eq!(all, ["cpu", "interp", "null", "amd"]);
    for name in ["metal", "", "cpu "] {
        let error = Device::from_name(name).expect_err("there is none");
        let names: Vec<&str> =
            Device::all().filter(Device::has_atomics).map(|device| device.name()).collect();
        let names = names.join(", ");
        assert_eq!(
            error.to_string(),
            format!("no device `{name}`; devices with atomics are {names}")
        );
    }
    let error = Device::from_name("metal").expect_err("there is none");
    let want = "no device `metal`; devices with atomics are cpu, interp, null, amd";
    assert_eq!(error.to_string(), want);
}

#[test]
fn compiled_knows_its_kernel() {
    for device in Device::all() {
        let compiled = compile(&device, &scatter(3, 2, 5));
        assert_eq!(compiled.name(), "scatter");
        assert_eq!(compiled.device().name(), device.name());
        assert!(!compiled.compile_time().is_zero());
        let params: Vec<_> = compiled
            .params()
            .iter()
            .map(|p| (p.name.as_str(), p.dtype, p.shape_at(&[]).expect("constants"), p.mutable))
            .collect();
        let want = [
            ("table", DType::F32, vec![5, 2], true),
            ("grad", DType::F32, vec![3, 2], false),
            ("idx", DType::I32, vec![3], false),
        ];
        assert_eq!(params, want);
        assert_eq!(compiled.source().is_some(), device.name() == "amd");
    }
}

#[test]
fn amd_gives_source_and_refuses_to_run() {
    let device = Device::amd();
    let compiled = compile(&device, &saxpy(4));
    let source = compiled.source().expect("amd writes source");
    assert!(source.contains("extern \"C\" __global__ void"), "{source}");
    let (mut y, x) = ([0.0_f32; 4], [1.0_f32; 4]);
    let buffers = &mut [Buffer::from(&mut y), Buffer::from(&x)];
    let error = compiled.launch(buffers, &LaunchOptions::default());
    let want = "kernel `saxpy`: device amd runs nothing; export the source (`Compiled::source`), \
                build it with clang or hipcc, and launch it where the GPU is";
    assert_eq!(error.expect_err("it is refused").to_string(), want);
    assert_eq!(device.launches(), 0);
}

#[test]
fn null_counts_launches_and_runs_nothing() {
    let device = Device::null();
    let compiled = compile(&device, &saxpy(4));
    let (mut y, x) = ([0.0_f32; 4], [1.0_f32; 4]);
    for _ in 0..3 {
        let buffers = &mut [Buffer::from(&mut y), Buffer::from(&x)];
        assert_eq!(launch(&compiled, buffers, 2).threads, 0);
    }
    assert_eq!(y, [0.0; 4]);
    assert_eq!(device.launches(), 3);
    assert_eq!(device.clone().launches(), 3);
    assert_eq!(Device::null().launches(), 0);

    // It checks arguments as the others do.
    let result = compiled.launch(&mut [Buffer::from(&x)], &LaunchOptions::default());
    assert!(result.is_err());
    assert_eq!(device.launches(), 3);
}

/// A PARAM whose node is right.
fn param(graph: &mut Graph, slot: u32) -> uop::Id {
    let length = graph.index(4);
    let param = Param { slot, name: format!("p{slot}").into(), mutable: true };
    let node = Node::new(Op::Param, DType::F32, [length]);
    graph.intern(node.with_arg(Arg::Param(Box::new(param))))
}

/// Graphs that only hands can make.
fn malformed() -> Vec<KernelGraph> {
    let mut kernels = Vec::new();
    let mut add = |build: &dyn Fn(&mut Graph) -> uop::Id| {
        let mut graph = Graph::new();
        let sink = build(&mut graph);
        kernels.push(KernelGraph::new(graph, sink));
    };
    let name = || Arg::Sink("bad".into());
    // No sink.
    add(&|g| g.index(0));
    // A sink of nothing, without a name, of a value.
    add(&|g| g.intern(Node::new(Op::Sink, DType::Void, []).with_arg(name())));
    add(&|g| g.intern(Node::new(Op::Sink, DType::Void, [])));
    add(&|g| {
        let value = g.index(0);
        g.intern(Node::new(Op::Sink, DType::Void, [value]).with_arg(name()))
    });
    // A param without a slot, a constant without a value, a range without an axis.
    for &op in Op::ALL {
        add(&|g| {
            let value = g.constant(DType::I32, Const::Int(1));
            let odd = g.intern(Node::new(op, DType::F32, [value, value]));
            g.intern(Node::new(Op::Sink, DType::Void, [odd]).with_arg(name()))
        });
    }
    // Stores to a second slot where there is no first, and out of all proportion.
    add(&|g| {
        let (buffer, zero) = (param(g, 1), g.index(0));
        let address = g.intern(Node::new(Op::Index, DType::F32, [buffer, zero]));
        let value = g.constant(DType::F32, Const::from(1.0));
        let store = Node::new(Op::Store, DType::Void, [address, value]);
        let store = g.intern(store.with_arg(Arg::Access(uop::Access::default())));
        g.intern(Node::new(Op::Sink, DType::Void, [store]).with_arg(name()))
    });
    kernels
}

#[test]
fn a_malformed_graph_is_an_error() {
    for kernel in malformed() {
        for device in Device::all() {
            let error = device.compile(&kernel).expect_err("it is malformed");
            assert!(matches!(error, CompileError::Verify { .. }), "{error}");
        }
    }
}

#[test]
fn a_sink_of_another_graph_is_an_error() {
    let KernelGraph { sink, .. } = saxpy(4);
    let graph = Graph::new();
    let kernel = KernelGraph::new(graph, sink);
    for device in Device::all() {
        let error = device.compile(&kernel).expect_err("there is no such node").to_string();
        let number = sink.index();
        let want = "expected the sink to be a node of the graph, found number ";
        assert_eq!(error, format!("{want}{number} of 0 nodes"));
    }
}
