//! Every arithmetic op on every dtype, on every pair of edge values: the same bits everywhere.
#![forbid(unsafe_code)]

mod support;

use interp::Data;
use support::edges::{STORED, arity, data, differ, edges, ops_on};
use support::{cc, hip, tools};
use uopc::runtime::ProgramParam;
use uopc::uop::Op;
use uopc::{AxisType, Buffer, DType, Device, Kernel, KernelGraph, LaunchOptions, Val};

/// `out_K[i, j] = op(x[i], x[j])` for every op of two operands of `dtype` and WHERE,
/// `out_K[i] = op(x[i])` for the others.
fn every_op(dtype: DType, n: i64) -> KernelGraph {
    let k = Kernel::new();
    let ops = ops_on(dtype);
    let name = |(op, to): &(Op, DType)| format!("{op}_{to}");
    let outs: Vec<Val<'_>> = ops
        .iter()
        .map(|of| match arity(of.0) {
            1 => k.param_mut(&name(of), of.1, [n]),
            _ => k.param_mut(&name(of), of.1, [n, n]),
        })
        .collect();
    let picked = k.param_mut("where", dtype, [n, n]);
    let values = k.param("x", dtype, [n]);
    let (i, j) = (k.range(n, AxisType::Global), k.range(n, AxisType::Loop));
    let (x, y) = (values.at(i).load(), values.at(j).load());
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    for (&(op, to), &out) in ops.iter().zip(&outs) {
        match arity(op) {
            1 => rows.push(out.at(i).store(if op == Op::Neg { -x } else { x.cast(to) })),
            _ => cells.push(out.at([i, j]).store(binary(op, x, y))),
        }
    }
    cells.push(picked.at([i, j]).store(i.lt(j).where_(x, y)));
    rows.push(k.group(cells).end(j));
    k.group(rows).end(i).sink("every_op").unwrap_or_else(|error| panic!("{error}"))
}

fn binary<'k>(op: Op, x: Val<'k>, y: Val<'k>) -> Val<'k> {
    match op {
        Op::Add => x + y,
        Op::Sub => x - y,
        Op::Mul => x * y,
        Op::Max => x.max(y),
        Op::Min => x.min(y),
        Op::And => x & y,
        Op::Or => x | y,
        Op::CmpLt => x.lt(y),
        Op::CmpNe => x.ne(y),
        Op::CmpEq => x.eq(y),
        op => panic!("{op} has not two operands"),
    }
}

#[test]
fn every_op_everywhere() {
    for dtype in STORED {
        let edges = edges(dtype);
        let kernel = every_op(dtype, edges.len() as i64);
        let run = |device: Device, threads: usize| {
            let compiled = device.compile(&kernel).unwrap_or_else(|error| panic!("{error}"));
            let shapes = compiled.shapes(&[]).expect("there are no variables");
            let zeros = |(param, shape): (&ProgramParam, Vec<u64>)| {
                let len = shape.iter().product::<u64>() as usize;
                Data::zeros(param.dtype, len).expect("it is stored")
            };
            let mut buffers: Vec<Data> = compiled.params().iter().zip(shapes).map(zeros).collect();
            *buffers.last_mut().expect("the values") = data(dtype, &edges);
            let inputs = buffers.clone();
            let mut views: Vec<Buffer<'_>> = buffers.iter_mut().map(Buffer::from).collect();
            let options = LaunchOptions::threads(threads);
            compiled.launch(&mut views, &options).unwrap_or_else(|error| panic!("{error}"));
            drop(views);
            (inputs, buffers)
        };
        let (inputs, want) = run(Device::interp(), 1);
        let program = lower::lower(&kernel.graph, kernel.sink, &text::C.caps).expect("it lowers");
        let compare = |who: &str, got: &[Data]| {
            for ((param, got), want) in program.params.iter().zip(got).zip(&want) {
                let Some(at) = differ(got, want) else { continue };
                let (i, j) = match param.shape.len() {
                    2 => (at / edges.len(), at % edges.len()),
                    _ => (at, at),
                };
                panic!(
                    "{who}: {} of {dtype} {} and {} is {}, not {}",
                    param.name,
                    edges[i],
                    edges[j],
                    got.get(at),
                    want.get(at)
                );
            }
        };
        for threads in [1, 2] {
            compare(&format!("JIT, {threads} threads"), &run(Device::cpu(), threads).1);
        }
        let bytes: Vec<Vec<u8>> = inputs.iter().map(|data| data.bytes().to_vec()).collect();
        for build in cc::builds(&format!("every op on {dtype}"), &program) {
            let mut got = inputs.clone();
            for (data, bytes) in got.iter_mut().zip(build.run("whole", &[], &bytes)) {
                data.bytes_mut().copy_from_slice(&bytes);
            }
            compare(&build.label, &got);
        }
    }
}

#[test]
fn every_op_compiles_for_every_chip() {
    let Some(compiler) = tools::hip_compiler("every op as HIP") else {
        return;
    };
    for dtype in STORED {
        let kernel = every_op(dtype, edges(dtype).len() as i64);
        let program = lower::lower(&kernel.graph, kernel.sink, &text::HIP.caps).expect("it lowers");
        let source = text::emit(&program, &text::HIP).expect("HIP has all of it");
        for chip in hip::CHIPS {
            hip::compile(compiler, &source, chip, &[]);
        }
    }
}
