//! The backward of an embedding in all its variants: dtypes, sizes, shards and tokens at every edge,
//! against a plain loop, by bits. The number of tokens is a variable, so one kernel does for all.
#![forbid(unsafe_code)]

mod support;

use std::ops::AddAssign;

use half::{bf16, f16};
use interp::Data;
use support::{cc, hip, tools};
use uopc::kernels::{Embedding, EmbeddingBwd, Length, OutOfRange, Tokens};
use uopc::runtime::{Sharded, shard};
use uopc::uop::Const;
use uopc::{Buffer, Compiled, DType, Device, KernelGraph, LaunchOptions, runtime};

const DIMS: [usize; 6] = [1, 3, 64, 256, 257, 300];
const COUNTS: [usize; 4] = [0, 1, 7, MOST];
const MOST: usize = 1000;
const SHARDS: [usize; 4] = [1, 2, 3, 4];
/// No multiple of any number of shards but 1. Over 4 shards, 5 leaves the last without a row; 301 is
/// more than there are tokens of 8 bits.
const VOCABS: [usize; 2] = [5, 301];
const POLICIES: [OutOfRange; 2] = [OutOfRange::Clip, OutOfRange::Ignore];

/// A type of tokens.
trait Token: runtime::Element + interp::Element + TryFrom<i128> {
    const IDX: DType = <Self as interp::Element>::DTYPE;
}

impl<T: runtime::Element + interp::Element + TryFrom<i128>> Token for T {}

/// A type of gradients.
trait Grad: runtime::Element + interp::Element + Into<Self::Sum> {
    const GRAD: DType = <Self as interp::Element>::DTYPE;
    /// What they are added up in.
    type Sum: Sum;
    fn of(value: f64) -> Self;
}

trait Sum: Copy + AddAssign {
    fn of(value: f64) -> Self;
    fn append(self, bytes: &mut Vec<u8>);
}

macro_rules! grads {
    ($($grad:ty: $sum:ty, $of:expr;)*) => { $(
        impl Grad for $grad {
            type Sum = $sum;

            fn of(value: f64) -> $grad {
                $of(value)
            }
        }
    )* };
}

grads! {
    f32: f32, |x| x as f32;
    f16: f32, f16::from_f64;
    bf16: f32, bf16::from_f64;
    f64: f64, |x| x;
}

impl Sum for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }

    fn append(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_ne_bytes());
    }
}

impl Sum for f64 {
    fn of(value: f64) -> f64 {
        value
    }

    fn append(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_ne_bytes());
    }
}

/// Bits that look random: a linear congruential generator (Knuth's MMIX constants), high bits first.
fn random(n: usize) -> impl Iterator<Item = u64> {
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state ^ state >> 32
    };
    (0..n).map(move |_| next())
}

/// Between -1 and 1; sums depend on the order.
fn noise(n: usize) -> impl Iterator<Item = f64> {
    random(n).map(|bits| (bits as i64) as f64 / 2f64.powi(63))
}

/// Small integers: sums are exact in any order, and none is -0.0.
fn integers(n: usize) -> impl Iterator<Item = f64> {
    (0..n).map(|i| (i * 31 % 19) as f64 - 9.0)
}

/// As many tokens as there are at most: first those at every edge, of the dtype, of the vocabulary, of
/// the parts of any number of shards and of what a conversion may cut off, then others.
fn tokens(idx: DType, vocab: usize) -> Vec<i128> {
    let (lo, hi) = idx.int_range().expect("tokens are integers");
    let v = vocab as i128;
    let mut edges = vec![0, v - 1, v, lo, hi, 1, -1, -v, lo + 1, hi - 1];
    for shards in SHARDS {
        let local = vocab.div_ceil(shards) as i128;
        edges.extend((1..=shards as i128).flat_map(|k| [k * local - 1, k * local]));
    }
    for bits in [7, 8, 15, 16, 31, 32, 63] {
        let power = 1i128 << bits;
        edges.extend([power - 1, power, power + 1, power + v - 1, -power, -power + 1]);
    }
    let mut all: Vec<i128> = Vec::new();
    for edge in edges {
        if (lo..=hi).contains(&edge) && !all.contains(&edge) {
            all.push(edge);
        }
    }
    all.extend(random(MOST - all.len()).map(|bits| match bits % 8 {
        0 => lo + (i128::from(bits) * 0x1_0000_0001) % (hi - lo + 1),
        _ => (i128::from(bits >> 3) % (v + 4) - 2).clamp(lo, hi),
    }));
    all
}

fn typed<I: Token>(tokens: &[i128]) -> Vec<I> {
    let typed = |&token| I::try_from(token).ok().expect("it is in range");
    tokens.iter().map(typed).collect()
}

/// The row that a token counts for.
fn row(token: i128, vocab: usize, out_of_range: OutOfRange) -> Option<usize> {
    let last = vocab as i128 - 1;
    match out_of_range {
        OutOfRange::Clip => Some(token.clamp(0, last) as usize),
        OutOfRange::Ignore => (0..=last).contains(&token).then_some(token as usize),
    }
}

/// A kernel but for its shards.
#[derive(Clone, Copy, Debug)]
struct Variant {
    dim: usize,
    vocab: usize,
    out_of_range: OutOfRange,
    padding: Option<usize>,
}

impl Variant {
    /// The `turn`-th of all: some have a padding row.
    fn new(dim: usize, vocab: usize, out_of_range: OutOfRange, turn: usize) -> Variant {
        let padding = [None, Some(0), None, Some(vocab - 1), Some(vocab / 2)][turn % 5];
        Variant { dim, vocab, out_of_range, padding }
    }

    fn kernel(self, idx: DType, grad: DType, shards: usize) -> KernelGraph {
        let Variant { dim, vocab, out_of_range, padding } = self;
        let kernel = EmbeddingBwd {
            shards: shards as i64,
            idx,
            grad,
            out_of_range,
            padding_idx: padding.map(|row| row as i64),
            ..EmbeddingBwd::new(0..=MOST as i64, dim as i64, vocab as i64)
        };
        kernel.build().unwrap_or_else(|error| panic!("{self:?}, {shards} shards: {error}"))
    }

    /// The bytes of one of the parts of the sums.
    fn part(self, bytes: &[u8], shards: usize, number: usize, size: usize) -> &[u8] {
        let len = self.vocab.div_ceil(shards) * self.dim * size;
        &bytes[number * len..][..len]
    }
}

/// Gradients, and what the sums start as: enough for all variants.
struct Values<G: Grad> {
    grad: Vec<G>,
    start: Vec<G::Sum>,
}

impl<G: Grad> Values<G> {
    fn new(values: impl Iterator<Item = f64>) -> Values<G> {
        let values: Vec<f64> = values.collect();
        Values {
            grad: values.iter().map(|&x| G::of(x)).collect(),
            start: values.iter().rev().map(|&x| G::Sum::of(x)).collect(),
        }
    }

    fn noise() -> Values<G> {
        Values::new(noise(MOST * 300))
    }

    fn integers() -> Values<G> {
        Values::new(integers(MOST * 300))
    }

    /// What the sums start as and end as, with the unused rows of the last shards: a loop over the
    /// tokens, then the columns, as the kernel has them.
    fn bytes(&self, variant: Variant, tokens: &[i128]) -> [Vec<u8>; 2] {
        let Variant { dim, vocab, out_of_range, padding } = variant;
        let mut sums = self.start[..(vocab + SHARDS.len()) * dim].to_vec();
        let start = bytes(&sums);
        for (&token, values) in tokens.iter().zip(self.grad.chunks_exact(dim)) {
            if let Some(row) = row(token, vocab, out_of_range).filter(|&row| Some(row) != padding) {
                for (sum, &value) in sums[row * dim..][..dim].iter_mut().zip(values) {
                    *sum += value.into();
                }
            }
        }
        [start, bytes(&sums)]
    }
}

fn bytes<S: Sum>(values: &[S]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * 8);
    values.iter().for_each(|value| value.append(&mut bytes));
    bytes
}

fn compile(device: &Device, kernel: &KernelGraph) -> Compiled {
    device.compile(kernel).unwrap_or_else(|error| panic!("{error}"))
}

/// What shard `number` of `shards` makes of `sums`, the bytes of its part.
fn launch<I: Token, G: Grad>(
    compiled: &Compiled,
    (shards, number): (usize, usize),
    threads: usize,
    sums: &[u8],
    (grad, idx): (&[G], &[I]),
) -> Data {
    let param = &compiled.params()[0];
    let size = param.dtype.size().expect("a float");
    let mut data = Data::zeros(param.dtype, sums.len() / size).expect("there is memory");
    data.bytes_mut().copy_from_slice(sums);
    let variables = [("tokens", idx.len() as i64), ("_device_num", number as i64)];
    let variables = if shards > 1 { &variables } else { &variables[..1] };
    let options = LaunchOptions { threads: Some(threads), variables };
    let buffers = &mut [Buffer::from(&mut data), grad.into(), idx.into()];
    compiled.launch(buffers, &options).unwrap_or_else(|error| panic!("{error}"));
    data
}

/// Every variant with these dtypes, on the interpreter and the JIT.
fn every_variant<I: Token, G: Grad>() {
    let (noise, integers) = (Values::<G>::noise(), Values::<G>::integers());
    let mut turn = 0;
    for vocab in VOCABS {
        let all = tokens(I::IDX, vocab);
        for dim in DIMS {
            for out_of_range in POLICIES {
                turn += 1;
                let variant = Variant::new(dim, vocab, out_of_range, turn);
                let runs = COUNTS.map(|n| {
                    // Few tokens are others in each variant.
                    let tokens = &all[if n == MOST { 0 } else { turn }..][..n];
                    let idx = typed::<I>(tokens);
                    (idx, noise.bytes(variant, tokens), integers.bytes(variant, tokens))
                });
                for shards in SHARDS {
                    let kernel = variant.kernel(I::IDX, G::GRAD, shards);
                    let (cpu, interp) =
                        (compile(&Device::cpu(), &kernel), compile(&Device::interp(), &kernel));
                    for (idx, by_noise, by_integers) in &runs {
                        let n = idx.len();
                        let ways = [
                            (&cpu, 1, &noise, by_noise),
                            (&cpu, 2, &integers, by_integers),
                            (&interp, 1, &integers, by_integers),
                        ];
                        for (compiled, threads, values, [start, want]) in ways {
                            let slow = n * dim > INTERPRETED;
                            if slow && compiled.device().name() == "interp" {
                                continue;
                            }
                            for number in 0..shards {
                                let size = compiled.params()[0].dtype.size().expect("a float");
                                let part = |bytes| variant.part(bytes, shards, number, size);
                                let data = (&values.grad[..n * dim], &idx[..]);
                                let at = (shards, number);
                                let sums = launch(compiled, at, threads, part(start), data);
                                assert!(
                                    sums.bytes() == part(want),
                                    "{variant:?}, {} and {}, {n} tokens, shard {number} of {shards}, \
                                     {} with {threads} threads",
                                    I::IDX,
                                    G::GRAD,
                                    compiled.device().name()
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

/// How many gradients the interpreter adds up at most: it is slow.
const INTERPRETED: usize = 1000;

fn every_grad<I: Token>() {
    every_variant::<I, f32>();
    every_variant::<I, f16>();
    every_variant::<I, bf16>();
    every_variant::<I, f64>();
}

#[test]
fn i8_tokens() {
    every_grad::<i8>();
}

#[test]
fn u8_tokens() {
    every_grad::<u8>();
}

#[test]
fn i16_tokens() {
    every_grad::<i16>();
}

#[test]
fn u16_tokens() {
    every_grad::<u16>();
}

#[test]
fn i32_tokens() {
    every_grad::<i32>();
}

#[test]
fn u32_tokens() {
    every_grad::<u32>();
}

#[test]
fn i64_tokens() {
    every_grad::<i64>();
}

#[test]
fn u64_tokens() {
    every_grad::<u64>();
}

/// Every length of rows with every number of shards. The rest changes from `turn` to `turn`, which is
/// 0..32 for the pairs of dtypes.
fn variants(turn: usize) -> impl Iterator<Item = (Variant, usize)> {
    let sizes = SHARDS.into_iter().flat_map(|shards| DIMS.map(|dim| (dim, shards)));
    sizes.enumerate().map(move |(i, (dim, shards))| {
        let (vocab, policy) = (VOCABS[(turn + i) % 2], POLICIES[(turn / 2 + i / 3) % 2]);
        (Variant::new(dim, vocab, policy, turn + i), shards)
    })
}

fn program(kernel: &KernelGraph, dialect: &text::Dialect) -> lower::Program {
    lower::lower(&kernel.graph, kernel.sink, &dialect.caps)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Variants in C: on noise in the order of the loop, on integers in any.
fn in_c<I: Token, G: Grad>(turn: usize) {
    let compilers = tools::c_compilers("matrix");
    let values = [(Values::<G>::noise(), "whole"), (Values::integers(), "threads")];
    for (i, (variant, shards)) in variants(turn).enumerate() {
        let program = program(&variant.kernel(I::IDX, G::GRAD, shards), &text::C);
        // Every compiler at every level takes its time.
        let builds = if i == turn % 24 && turn % 7 == 3 {
            cc::builds("matrix", &program)
        } else {
            let compilers = compilers.iter().cycle().skip(i).take(compilers.len().min(1));
            compilers.map(|cc| cc::build(cc, &["-O1"], &program)).collect()
        };
        for build in &builds {
            for (values, mode) in &values {
                is_right::<I, G>(build, &program, (variant, shards), values, mode);
            }
        }
    }
}

/// Runs a build of a variant with every number of tokens, for every shard.
fn is_right<I: Token, G: Grad>(
    build: &cc::Build,
    program: &lower::Program,
    (variant, shards): (Variant, usize),
    values: &Values<G>,
    mode: &str,
) {
    let size = program.params[0].dtype.size().expect("a float");
    let all = tokens(I::IDX, variant.vocab);
    for n in COUNTS {
        let [start, want] = values.bytes(variant, &all[..n]);
        let idx = Data::of(typed::<I>(&all[..n])).bytes().to_vec();
        let grad = Data::of(values.grad[..n * variant.dim].to_vec()).bytes().to_vec();
        for number in 0..shards {
            let part = |bytes| variant.part(bytes, shards, number, size);
            let inputs = [part(&start).to_vec(), grad.clone(), idx.clone()];
            let value = |name: &str| if name == "tokens" { n as i64 } else { number as i64 };
            let values: Vec<i64> = program.variables.iter().map(|v| value(&v.name)).collect();
            let sums = &build.run(mode, &values, &inputs)[0];
            assert!(
                sums == part(&want),
                "{variant:?}, {} and {}, {n} tokens, shard {number} of {shards}, {} {mode}",
                I::IDX,
                G::GRAD,
                build.label
            );
        }
    }
}

fn every_grad_in_c<I: Token>(number: usize) {
    in_c::<I, f32>(number);
    in_c::<I, f16>(number + 8);
    in_c::<I, bf16>(number + 16);
    in_c::<I, f64>(number + 24);
}

#[test]
fn signed_tokens_in_c() {
    every_grad_in_c::<i8>(0);
    every_grad_in_c::<i16>(1);
    every_grad_in_c::<i32>(2);
    every_grad_in_c::<i64>(3);
}

#[test]
fn unsigned_tokens_in_c() {
    every_grad_in_c::<u8>(4);
    every_grad_in_c::<u16>(5);
    every_grad_in_c::<u32>(6);
    every_grad_in_c::<u64>(7);
}

const IDXS: [DType; 8] =
    [DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64];
const GRADS: [DType; 4] = [DType::F32, DType::F16, DType::BF16, DType::F64];

/// Variants in HIP, to code for every chip. Those of a pair of dtypes are one text, as starting the
/// compiler takes more time than a kernel.
fn in_hip(grad: usize) {
    let Some(compiler) = tools::hip_compiler("matrix") else { return };
    for (i, idx) in IDXS.into_iter().enumerate() {
        let mut all = String::new();
        for (number, (variant, shards)) in variants(grad * 8 + i).enumerate() {
            let kernel = variant.kernel(idx, GRADS[grad], shards);
            let source = text::emit(&program(&kernel, &text::HIP), &text::HIP);
            let source = source.unwrap_or_else(|error| panic!("{error:?}"));
            let at = source.find("extern \"C\"").expect("a kernel");
            let (head, kernel) = source.split_at(at);
            if all.is_empty() {
                all += head;
            }
            all += &kernel.replace(" embedding_bwd(", &format!(" embedding_bwd_{number}("));
        }
        for chip in hip::CHIPS {
            let asm = hip::compile(compiler, &all, chip, &[]);
            assert_eq!(asm.matches(".amdhsa_kernel embedding_bwd_").count(), 24, "{idx} {chip}");
            assert!(asm.matches("atomic").count() >= 24, "{idx} for {chip}: {asm}");
        }
    }
}

#[test]
fn f32_gradients_in_hip() {
    in_hip(0);
}

#[test]
fn f16_gradients_in_hip() {
    in_hip(1);
}

#[test]
fn bf16_gradients_in_hip() {
    in_hip(2);
}

#[test]
fn f64_gradients_in_hip() {
    in_hip(3);
}

/// Runs `kernel` on the only buffer that it writes, and others.
fn run(device: &Device, kernel: &KernelGraph, variables: &[(&str, i64)], args: [Buffer<'_>; 3]) {
    let options = LaunchOptions { threads: Some(2), variables };
    let mut args = args;
    let done = compile(device, kernel).launch(&mut args, &options);
    done.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn forward_and_backward_agree_on_bad_tokens() {
    let (dim, vocab) = (3, 5);
    for idx_dtype in [DType::I16, DType::U64] {
        let all = tokens(idx_dtype, vocab);
        let n = all.len();
        let mut idx = Data::zeros(idx_dtype, n).expect("there is memory");
        for (i, &token) in all.iter().enumerate() {
            idx.set(i, Const::Int(token));
        }
        // Row r of the weights is r + 1, which is what a row of the output tells apart.
        let weight: Vec<f32> = (0..vocab * dim).map(|i| (i / dim + 1) as f32).collect();
        let grad: Vec<f32> = integers(n * dim).map(|x| x as f32 + 10.0).collect();
        for (out_of_range, device) in
            POLICIES.into_iter().flat_map(|p| [(p, Device::cpu()), (p, Device::interp())])
        {
            let (tokens, dim, vocab) = (0..=MOST as i64, dim as i64, vocab as i64);
            let new = Embedding::new(tokens.clone(), dim, vocab);
            let forward = Embedding { idx: idx_dtype, out_of_range, ..new };
            let new = EmbeddingBwd::new(tokens, dim, vocab);
            let backward = EmbeddingBwd { idx: idx_dtype, out_of_range, ..new };
            let (dim, vocab) = (dim as usize, vocab as usize);
            let variables = &[("tokens", n as i64)];
            let mut out = vec![9.0f32; n * dim];
            let args = [(&mut out).into(), (&weight).into(), Buffer::from(&mut idx)];
            run(&device, &forward.build().expect("it is a kernel"), variables, args);
            let mut sums = vec![0.0f32; vocab * dim];
            let args = [(&mut sums).into(), (&grad).into(), Buffer::from(&mut idx)];
            run(&device, &backward.build().expect("it is a kernel"), variables, args);

            // The forward says which row a token is, 0 for none; the backward used that.
            let mut want = vec![0.0f32; (vocab + 1) * dim];
            for ((rows, values), &token) in
                out.chunks_exact(dim).zip(grad.chunks_exact(dim)).zip(&all)
            {
                let row = row(token, vocab, out_of_range).map_or(0, |row| row + 1);
                assert_eq!(rows, vec![row as f32; dim], "{token} {out_of_range:?}");
                for (sum, value) in want[row * dim..][..dim].iter_mut().zip(values) {
                    *sum += value;
                }
            }
            assert_eq!(sums, want[dim..], "{out_of_range:?}");
            let lost: f32 = want[..dim].iter().sum();
            let total: f32 = grad.iter().sum();
            assert_eq!(sums.iter().sum::<f32>(), total - lost, "{out_of_range:?}");
            assert_eq!(lost == 0.0, out_of_range == OutOfRange::Clip);
        }
    }
}

/// Leading axes, the variables of a launch, and the lengths that they come to.
type Axes<'a> = (Tokens, &'a [(&'a str, i64)], &'a [usize]);

#[test]
fn leading_axes_are_flattened() {
    let (batch, length, dim, vocab) = (3, 5, 300, 7);
    let n = batch * length;
    let idx: Vec<i32> = typed(&tokens(DType::I32, vocab)[..n]);
    let grad: Vec<f32> = integers(n * dim).map(|x| x as f32).collect();
    let weight: Vec<f32> = noise(vocab * dim).map(|x| x as f32).collect();
    let (b, t) = (batch as i64, length as i64);
    let any = |hi| Length::Between { lo: 0, hi };
    let fixed = Length::Fixed;
    let flat: Axes<'_> = (Tokens::from(n as i64), &[], &[n]);
    let axes: [Axes<'_>; 5] = [
        (Tokens::from([b, t]), &[], &[batch, length]),
        (Tokens(vec![any(8), fixed(t)]), &[("tokens_0", b)], &[batch, length]),
        (Tokens(vec![fixed(b), any(9)]), &[("tokens_1", t)], &[batch, length]),
        (Tokens(vec![any(8), any(9)]), &[("tokens_1", t), ("tokens_0", b)], &[batch, length]),
        (Tokens(vec![fixed(1), any(8), fixed(t)]), &[("tokens_1", b)], &[1, batch, length]),
    ];
    for (device, out_of_range) in
        [Device::cpu(), Device::interp()].into_iter().flat_map(|d| POLICIES.map(|p| (d.clone(), p)))
    {
        let both = |(tokens, variables, shape): &Axes<'_>| {
            let (d, v) = (dim as i64, vocab as i64);
            let forward = Embedding { out_of_range, ..Embedding::new(tokens.clone(), d, v) };
            let new = EmbeddingBwd::new(tokens.clone(), d, v);
            let backward = EmbeddingBwd { out_of_range, ..new };
            let rows = [shape, &[dim][..]].concat();
            let idx = || Buffer::from(&idx).with_shape(shape);
            let mut out = vec![9.0f32; n * dim];
            let args = [Buffer::from(&mut out).with_shape(&rows), (&weight).into(), idx()];
            run(&device, &forward.build().expect("it is a kernel"), variables, args);
            let mut sums = vec![1.0f32; vocab * dim];
            let args = [(&mut sums).into(), Buffer::from(&grad).with_shape(&rows), idx()];
            run(&device, &backward.build().expect("it is a kernel"), variables, args);
            (out, sums)
        };
        let want = both(&flat);
        for axes in &axes {
            assert!(both(axes) == want, "{:?}, {out_of_range:?}, {}", axes.0, device.name());
        }
    }
}

#[test]
fn shards_own_disjoint_rows_that_are_all_there_are() {
    for (vocab, shards) in (1..=40i64).flat_map(|v| (1..=8i64).map(move |s| (v, s))) {
        let kernel = EmbeddingBwd { shards, ..EmbeddingBwd::new(0..=100, 1, vocab) };
        let rows: Vec<i64> = (0..shards).flat_map(|k| kernel.rows(k)).collect();
        assert_eq!(rows, (0..vocab).collect::<Vec<i64>>(), "vocab {vocab}, {shards} shards");
        let local = kernel.local_rows();
        assert!((0..shards).all(|k| kernel.rows(k).count() as i64 <= local));

        // The oracle, on each token, also on what the last shards have room for but not own.
        let idx: Vec<i32> = (-2..(shards * local) as i32 + 2).collect();
        let ones = vec![1.0f32; idx.len()];
        for out_of_range in POLICIES {
            let kernel = EmbeddingBwd { out_of_range, ..kernel.clone() };
            let kernel = kernel.build().unwrap_or_else(|error| panic!("{error}"));
            let mut counts: Vec<f32> = Vec::new();
            let compiled = compile(&Device::interp(), &kernel);
            for number in 0..shards as usize {
                let zeros = vec![0; local as usize * 4];
                let data = (&ones[..], &idx[..]);
                let sums = launch(&compiled, (shards as usize, number), 1, &zeros, data);
                counts.extend(sums.to_vec::<f32>().expect("they are f32"));
            }
            let mut want = vec![1.0; vocab as usize];
            if out_of_range == OutOfRange::Clip {
                // The tokens outside count as the nearest.
                want[0] += 2.0;
                want[vocab as usize - 1] += (shards * local - vocab + 2) as f32;
            }
            want.resize(counts.len(), 0.0);
            assert_eq!(counts, want, "vocab {vocab}, {shards} shards, {out_of_range:?}");
        }
    }
}

/// A vocabulary above what the dtype holds, or nearly so, over so many shards that each is small.
fn giant<I: Token>(vocab: i64, shards: i64, numbers: &[i64]) {
    for out_of_range in POLICIES {
        let kernel = EmbeddingBwd {
            shards,
            idx: I::IDX,
            out_of_range,
            ..EmbeddingBwd::new(0..=MOST as i64, 1, vocab)
        };
        let local = kernel.local_rows();
        let built = kernel.build().unwrap_or_else(|error| panic!("{error}"));
        let program = program(&built, &text::C);
        let cc = tools::c_compilers("matrix").into_iter().next();
        let build = cc.map(|cc| cc::build(cc, &["-O1"], &program));
        for &number in numbers {
            let rows = kernel.rows(number);
            let (lo, hi) = I::IDX.int_range().expect("tokens are integers");
            let mut all = vec![0, -1, lo, hi, i128::from(vocab) - 1, i128::from(vocab), 1 << 63];
            for at in [rows.start, rows.end, number * local, vocab / 2] {
                all.extend([-2, -1, 0, 1].map(|offset| i128::from(at) + offset));
            }
            all.retain(|token| (lo..=hi).contains(token));
            let mut want = vec![0.0f32; local as usize];
            for &token in &all {
                let token = match out_of_range {
                    OutOfRange::Clip => token.clamp(0, i128::from(vocab) - 1),
                    OutOfRange::Ignore => token,
                };
                if (i128::from(rows.start)..i128::from(rows.end)).contains(&token) {
                    want[(token - i128::from(rows.start)) as usize] += 1.0;
                }
            }
            let (idx, ones) = (typed::<I>(&all), vec![1.0f32; all.len()]);
            let what = format!("{}, {vocab} over {shards}, shard {number}", I::IDX);
            for device in [Device::cpu(), Device::interp()] {
                let mut sums = vec![0.0f32; local as usize];
                let args = [(&mut sums).into(), (&ones).into(), Buffer::from(&idx)];
                let variables = &[("tokens", all.len() as i64), ("_device_num", number)];
                run(&device, &built, variables, args);
                assert_eq!(sums, want, "{what}, {out_of_range:?}, {}", device.name());
            }
            if let Some(build) = &build {
                let idx = Data::of(idx).bytes().to_vec();
                let inputs = [vec![0; want.len() * 4], bytes(&ones), idx];
                let values: Vec<i64> = program
                    .variables
                    .iter()
                    .map(|v| if v.name == "tokens" { all.len() as i64 } else { number })
                    .collect();
                let sums = &build.run("whole", &values, &inputs)[0];
                assert!(*sums == bytes(&want), "{what}, {out_of_range:?}, {}", build.label);
            }
        }
    }
}

#[test]
fn vocabularies_above_the_dtype() {
    let vocab = (1i64 << 32) + 5;
    let shards = 1 << 27;
    let numbers = [0, 1, shards / 2 - 1, shards / 2, (vocab - 1) / 33, shards - 1];
    giant::<u32>(vocab, shards, &numbers);
    giant::<i32>(vocab, shards, &numbers);
    giant::<i64>(vocab, shards, &numbers);
    giant::<u64>(vocab, shards, &numbers);
    let (vocab, shards) = ((1i64 << 60) + 1, 1i64 << 56);
    let numbers = [0, 1, shards / 2, (vocab - 1) / 17, shards - 1];
    giant::<i64>(vocab, shards, &numbers);
    giant::<u64>(vocab, shards, &numbers);
    giant::<u8>(vocab, shards, &numbers);
    giant::<i16>(70_001, 3, &[0, 1, 2]);
    giant::<u16>(70_001, 3, &[0, 1, 2]);
}

#[test]
fn several_devices_share_the_work() {
    let (dim, n) = (300, 100);
    for vocab in VOCABS {
        for out_of_range in POLICIES {
            let variant = Variant { dim, vocab, out_of_range, padding: None };
            let all = tokens(DType::I64, vocab);
            let idx: Vec<i64> = typed(&all[..n]);
            let values = Values::<bf16>::integers();
            let [start, want] = values.bytes(variant, &all[..n]);
            let grad = &values.grad[..n * dim];
            for (device, shards) in
                [Device::cpu(), Device::interp()].iter().flat_map(|d| SHARDS.map(|s| (d, s)))
            {
                let kernel = variant.kernel(DType::I64, DType::BF16, shards);
                let len = vocab.div_ceil(shards) * shards * dim;
                let mut sums = Data::zeros(DType::F32, len).expect("there is memory");
                sums.bytes_mut().copy_from_slice(&start[..len * 4]);
                let args = &mut [
                    Sharded::Split(Buffer::from(&mut sums)),
                    Sharded::Shared(Buffer::from(grad)),
                    Sharded::Shared(Buffer::from(&idx)),
                ];
                let variables = &[("tokens", n as i64)];
                let options = LaunchOptions { threads: None, variables };
                let devices = vec![device.clone(); shards];
                let done = shard(&devices, &kernel, args, &options);
                assert_eq!(done.unwrap_or_else(|error| panic!("{error}")).len(), shards);
                assert!(
                    sums.bytes() == &want[..len * 4],
                    "{variant:?}, {shards} of {}",
                    device.name()
                );
            }
        }
    }
}
