//! What is no kernel is an error that names its node, and nothing panics.

mod common;

use common::{Kernel, f32s, i32s};
use interp::{Data, ErrorKind, Options, run};
use uop::AxisType::{Global, Local, Loop, Thread};
use uop::{Access, Arg, Axis, AxisType, Const, DType, Graph, Id, Node, Op, Param, Special};

/// `x[i] = 0.0` for i in 0..4 of this kind.
fn fill(kind: AxisType) -> (Kernel, [Id; 3]) {
    let mut k = Kernel::new();
    let x = k.param(0, DType::F32, &[4]);
    let i = k.range(4, kind);
    let zero = k.float(0.0);
    let store = k.store(x, &[i], zero);
    (k, [x, i, store])
}

#[track_caller]
fn fails(k: &mut Kernel, effect: Id, want: &str) {
    let error = k.try_run(effect, vec![f32s(&[1.0; 4]), f32s(&[1.0; 4])], &Options::default());
    assert_eq!(error.unwrap_err().to_string(), want);
}

#[test]
fn arguments_must_fit() {
    let (mut k, [x, i, store]) = fill(Global);
    let end = k.end(store, &[i]);
    assert_eq!(k.fail(end, vec![]), ErrorKind::MissingParam { slot: 0, got: 0 });
    let (want, got) = (DType::F32, DType::I32);
    assert_eq!(k.fail(end, vec![i32s(&[0; 4])]), ErrorKind::ParamDType { slot: 0, want, got });
    let error = k.try_run(end, vec![f32s(&[0.0; 3])], &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("{x}: argument 0 has 3 elements, not 4"));
}

#[test]
fn ranges_must_be_closed_once() {
    let (mut k, [_, i, store]) = fill(Global);
    let sink = k.sink(store);
    fails(&mut k, store, &format!("{sink}: {i} is not bound here"));

    let (mut k, [_, i, store]) = fill(Loop);
    let (a, b) = (k.end(store, &[i]), k.end(store, &[i]));
    assert_eq!(a, b, "equal nodes are one node");
    let j = k.range(2, Loop);
    let b = k.end(store, &[i, j]);
    let group = k.op(Op::Group, &[a, b]);
    fails(&mut k, group, &format!("{store}: an effect lies under two ends that bind one range"));

    // The bound of i is open in a range that is closed inside it.
    let mut k = Kernel::new();
    let x = k.param(0, DType::F32, &[4]);
    let j = k.range(4, Loop);
    let i = k.range_to(j, Loop);
    let zero = k.float(0.0);
    let store = k.store(x, &[i], zero);
    let end = k.end(store, &[i, j]);
    let good = k.end(store, &[j, i]);
    fails(&mut k, end, &format!("{j}: {j} is not bound here"));
    assert_eq!(k.run(good, vec![f32s(&[1.0; 4])])[0], f32s(&[0.0, 0.0, 0.0, 1.0]));
}

#[test]
fn loops_must_nest() {
    let (mut k, [x, i, store]) = fill(Global);
    let j = k.range(2, Loop);
    let at = k.op(Op::Mul, &[i, j]);
    let other = k.store(x, &[at], k.graph[store].src[1]);
    let end = k.end(other, &[j, i]);
    let want = format!("{end}: {j} is serial and outside {i}, which is parallel");
    fails(&mut k, end, &want);
    let group = k.op(Op::Group, &[store, other]);
    let end = k.end(group, &[i, j]);
    assert!(matches!(k.fail(end, vec![f32s(&[0.0; 4])]), ErrorKind::Race { .. }));

    let (mut k, [x, i, store]) = fill(Loop);
    let j = k.range(1, Loop);
    let at = k.op(Op::Add, &[i, j]);
    let other = k.store(x, &[at], k.graph[store].src[1]);
    let group = k.op(Op::Group, &[store, other]);
    let end = k.end(group, &[j, i]);
    fails(&mut k, end, &format!("{store}: depends on {i} and not on {j}, which is outside it"));
}

#[test]
fn lowered_graphs_are_refused() {
    let (mut k, [_, i, store]) = fill(Thread);
    let end = k.end(store, &[i]);
    fails(&mut k, end, &format!("{i}: range occurs only in lowered graphs"));
    let four = k.int(4);
    let x = k.param(0, DType::F32, &[4]);
    let block = k.node(Op::Special, DType::Index, &[four], Arg::Special(Special::Block(0)));
    let zero = k.float(0.0);
    let store = k.store(x, &[block], zero);
    fails(&mut k, store, &format!("{block}: special occurs only in lowered graphs"));
}

#[test]
fn nodes_must_be_well_formed() {
    let mut k = Kernel::new();
    let x = k.param(0, DType::F32, &[4]);
    let (zero, value) = (k.int(0), k.float(0.0));
    let address = k.at(x, &[zero]);

    let bad = k.op(Op::Index, &[x, zero, zero]);
    let store = k.op(Op::Store, &[bad, value]);
    fails(&mut k, store, &format!("{bad}: 2 indexes into 1 axes"));

    let bad = k.op(Op::Store, &[address, zero]);
    fails(&mut k, bad, &format!("{bad}: source 1 of store cannot be {zero}"));

    let bad = k.op(Op::Add, &[address, value]);
    let store = k.op(Op::Store, &[address, bad]);
    fails(&mut k, store, &format!("{bad}: source 0 of add cannot be {address}"));

    let bad = k.node(Op::Add, DType::F32, &[value], Arg::None);
    let store = k.op(Op::Store, &[address, bad]);
    fails(&mut k, store, &format!("{bad}: add takes 2 sources, not 1"));

    let bad = k.node(Op::Const, DType::F32, &[], Arg::Const(Const::Int(1)));
    let store = k.op(Op::Store, &[address, bad]);
    fails(&mut k, store, &format!("{bad}: const cannot carry this arg"));

    let param = Param { slot: 1, name: "y".into(), mutable: false };
    let four = k.int(4);
    let y = k.node(Op::Param, DType::F32, &[four], Arg::Param(Box::new(param)));
    let store = k.store(y, &[zero], value);
    fails(&mut k, store, &format!("{store}: writes {y}, which is read-only"));

    let twice = k.param(0, DType::I32, &[2]);
    let read = k.load(twice, &[zero]);
    let read = k.cast(read, DType::F32);
    let store = k.op(Op::Store, &[address, read]);
    fails(&mut k, store, &format!("{twice}: slot 0 is also that of {x}"));

    let (two, three) = (k.int(2), k.int(3));
    let bad = k.op(Op::Reshape, &[x, two, three]);
    let store = k.store(bad, &[zero, zero], value);
    fails(&mut k, store, &format!("{bad}: 4 elements seen as 6"));

    let i = k.range(4, Loop);
    let length = k.node(Op::Buffer, DType::F32, &[i], Arg::Buffer(9));
    let store = k.store(length, &[zero], value);
    fails(&mut k, store, &format!("{length}: a length must follow from constants"));

    let huge = k.buffer(DType::F32, &[i64::MAX, i64::MAX, i64::MAX]);
    let store = k.store(huge, &[zero, zero, zero], value);
    fails(&mut k, store, &format!("{huge}: too large for the oracle"));

    let l = k.range(i64::MAX, Local);
    let store = k.store(x, &[l], value);
    let end = k.end(store, &[l]);
    fails(&mut k, end, &format!("{l}: too large for the oracle"));

    let sink = k.sink(store);
    let outer = k.sink(sink);
    fails(&mut k, sink, &format!("{outer}: source 0 of sink cannot be {sink}"));
    let error = run(&k.graph, store, &mut [], &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("{store}: a kernel has one sink, at its root"));
    let error = run(&Graph::new(), sink, &mut [], &Options::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotASink);
}

#[test]
fn an_empty_group_and_empty_storage_do_nothing() {
    let (mut k, [_, i, store]) = fill(Global);
    let l = k.range(0, Local);
    let x = k.param(1, DType::F32, &[0, 1 << 62, 1 << 62]);
    let zero = k.int(0);
    let value = k.float(0.0);
    let never = k.store(x, &[l, i, zero], value);
    let group = k.op(Op::Group, &[store, never]);
    let end = k.end(group, &[i, l]);
    let got = k.run(end, vec![f32s(&[1.0; 4]), f32s(&[])]);
    assert_eq!(got[0], f32s(&[0.0; 4]));
}

/// Xorshift; Marsaglia, "Xorshift RNGs" (2003).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// A kernel with a bit of everything.
fn rich() -> (Graph, Id) {
    let mut k = Kernel::new();
    let out = k.param(0, DType::F32, &[3, 4]);
    let x = k.param(1, DType::F32, &[12]);
    let n = k.param(2, DType::I32, &[4]);
    let (three, four) = (k.int(3), k.int(4));
    let view = k.op(Op::Reshape, &[x, three, four]);
    let acc = k.buffer(DType::F32, &[2]);
    let (g, l) = (k.range(3, Global), k.range(4, Local));
    let bound = k.load(n, &[l]);
    let bound = k.cast(bound, DType::Index);
    let (r, s) = (k.range_to(bound, Loop), k.range(2, Loop));
    let value = k.float(0.5);
    let init = k.store(acc, &[s], value);
    let init = k.end(init, &[s]);
    let inside = k.after(acc, &[init, r]);
    let (old, term) = (k.load(inside, &[s]), k.load(view, &[g, r]));
    let low = k.op(Op::CmpLt, &[r, three]);
    let term = k.op(Op::Where, &[low, term, value]);
    let sum = k.op(Op::Add, &[old, term]);
    let step = k.store(inside, &[s], sum);
    let step = k.end(step, &[r, s]);
    let acc = k.after(acc, &[step]);
    let one = k.int(1);
    let result = k.load(acc, &[one]);
    let effect = k.atomic_add(out, &[g, l], result);
    let end = k.end(effect, &[g, l]);
    let sink = k.sink(end);
    (k.graph, sink)
}

fn rich_data() -> Vec<Data> {
    let x: Vec<f32> = (0..12).map(|x| x as f32).collect();
    vec![f32s(&[0.0; 12]), f32s(&x), i32s(&[0, 4, 2, 3])]
}

#[test]
fn the_rich_kernel_runs() {
    let (graph, sink) = rich();
    let mut data = rich_data();
    run(&graph, sink, &mut data, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let want = [0.5, 4.0, 1.5, 3.5, 0.5, 16.0, 9.5, 15.5, 0.5, 28.0, 17.5, 27.5];
    assert_eq!(data[0], f32s(&want));
}

fn random_arg(random: &mut Random) -> Arg {
    let number = random.below(4) as u32;
    match random.below(8) {
        0 => Arg::Const(Const::Int(random.pick(&[0, 1, -1, 3, i128::MAX, i128::MIN]))),
        1 => Arg::Const(Const::Bool(true)),
        2 => Arg::Buffer(number),
        3 => Arg::Range(Axis { number, kind: random.pick(&AxisType::ALL) }),
        4 => Arg::Access(Access { inbounds: number & 1 == 0, assume_disjoint: number & 2 == 0 }),
        5 => Arg::Custom {
            custom: uop::atomic::add(random.pick(&DType::ALL)),
            number,
            access: Access::default(),
        },
        6 => Arg::Param(Box::new(Param { slot: number, name: "p".into(), mutable: true })),
        _ => Arg::None,
    }
}

#[test]
fn no_mutation_of_a_kernel_panics() {
    let rounds = if cfg!(debug_assertions) { 5_000 } else { 200_000 };
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut accepted, mut failed) = (0, 0);
    for _ in 0..rounds {
        let (mut graph, sink) = rich();
        let hits: Vec<usize> =
            (0..=random.below(3)).map(|_| random.below(sink.index() + 1)).collect();
        let all: Vec<Id> = graph.reachable(sink);
        let root = graph.rebuild(sink, |g, n, mut node: Node| {
            if hits.contains(&n.index()) && !node.src.is_empty() || hits[0] == n.index() {
                // Any earlier node is a source that can be interned.
                let earlier: Vec<Id> = all.iter().copied().filter(|&m| m < n).collect();
                match random.below(8) {
                    0 => node.dtype = random.pick(&DType::ALL),
                    1 => node.op = random.pick(Op::ALL),
                    2 => node.arg = random_arg(&mut random),
                    3 if !earlier.is_empty() => node.src.push(random.pick(&earlier)),
                    4 => _ = node.src.pop(),
                    _ if !earlier.is_empty() && !node.src.is_empty() => {
                        let position = random.below(node.src.len());
                        node.src[position] = random.pick(&earlier);
                    }
                    _ => {}
                }
            }
            g.intern(node)
        });
        let options = Options { seed: 1, steps: Some(5_000), ..Options::default() };
        match run(&graph, root, &mut rich_data(), &options) {
            Ok(()) => accepted += 1,
            Err(e) => {
                failed += 1;
                assert!(e.node <= root, "{e}");
            }
        }
    }
    assert!(accepted > rounds / 50 && failed > rounds / 50, "{accepted} accepted, {failed} failed");
}

#[test]
fn no_random_graph_panics() {
    let mut random = Random(88_172_645_463_325_252);
    for _ in 0..5_000 {
        let mut graph = Graph::new();
        let mut ids = vec![graph.index(2)];
        for _ in 0..random.below(20) {
            let src: Vec<Id> = (0..random.below(4)).map(|_| random.pick(&ids)).collect();
            let node = Node::new(random.pick(Op::ALL), random.pick(&DType::ALL), src);
            ids.push(graph.intern(node.with_arg(random_arg(&mut random))));
        }
        let last = random.pick(&ids);
        let sink = Node::new(Op::Sink, DType::Void, [last]).with_arg(Arg::Sink("k".into()));
        let sink = graph.intern(sink);
        let options = Options { steps: Some(1000), ..Options::default() };
        _ = run(&graph, sink, &mut rich_data(), &options);
    }
}
