use std::ops::{Range, RangeInclusive};

use thiserror::Error;
use uop::{AxisType, BuildErrors, DType, Kernel, KernelGraph, Val};

/// The most columns that one block works on.
const MAX_BLOCK: i64 = 256;

/// Where the columns of one block run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axes {
    /// As work-items of a block (LOCAL). Right for every device.
    #[default]
    Gpu,
    /// As a loop (LOOP), as the reference kernel has it for a CPU.
    Cpu,
}

/// What a token outside `0..vocab` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfRange {
    /// Counts as the nearest row.
    #[default]
    Clip,
    /// Reads as a row of zeros, and adds nothing.
    Ignore,
}

/// The length of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Known now.
    Fixed(i64),
    /// Stated by each launch, from `lo` to `hi`, both included.
    Between {
        /// The least.
        lo: i64,
        /// The greatest.
        hi: i64,
    },
}

/// The lengths of the leading axes of arrays of tokens: `[n]`, or `[batch, sequence]`. A length that
/// launches state is the variable `tokens`, or one of `tokens_0`, `tokens_1`, … where there are
/// several axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens(pub Vec<Length>);

impl From<i64> for Tokens {
    fn from(n: i64) -> Tokens {
        Tokens(vec![Length::Fixed(n)])
    }
}

impl<const N: usize> From<[i64; N]> for Tokens {
    fn from(lengths: [i64; N]) -> Tokens {
        Tokens(lengths.map(Length::Fixed).to_vec())
    }
}

impl From<RangeInclusive<i64>> for Tokens {
    /// One axis, whose length each launch states.
    fn from(range: RangeInclusive<i64>) -> Tokens {
        Tokens(vec![Length::Between { lo: *range.start(), hi: *range.end() }])
    }
}

impl Tokens {
    /// The lengths as values of `k`.
    fn build<'k>(&self, k: &'k Kernel) -> Vec<Val<'k>> {
        let name = |axis: usize| match self.0.len() {
            1 => "tokens".to_string(),
            _ => format!("tokens_{axis}"),
        };
        let length = |(axis, length): (usize, &Length)| match *length {
            Length::Fixed(n) => k.int(n),
            Length::Between { lo, hi } => k.variable(&name(axis), lo, hi),
        };
        self.0.iter().enumerate().map(length).collect()
    }

    /// Checks the lengths and returns the greatest.
    fn check(&self) -> Result<Vec<i64>, KernelError> {
        check_size("the number of axes of tokens", self.0.len() as i64, 1)?;
        let mut greatest = Vec::with_capacity(self.0.len());
        for &length in &self.0 {
            let (lo, hi) = match length {
                Length::Fixed(n) => (n, n),
                Length::Between { lo, hi } => (lo, hi),
            };
            check_size("tokens", lo, 0)?;
            check_size("the greatest number of tokens", hi, lo)?;
            greatest.push(hi);
        }
        Ok(greatest)
    }
}

/// The gradient of an embedding: an atomic scatter-add.
///
/// `grad_weight[clip(idx[i]), j] += grad_emb[i, j]`, with `grad_weight` `f32[rows, dim]` (mutable,
/// zeroed by the caller; f64 if `grad` is), `grad_emb` `grad[tokens…, dim]` and `idx`
/// `idx[tokens…]`; leading axes are flattened. `rows` is `vocab`, or what one shard owns of it.
///
/// With `shards`, the launch of shard k has `_device_num` = k and owns `local` = ceil(vocab / shards)
/// rows from k · `local` on; all shards have arrays of `local` rows. A token of another shard adds
/// nothing, so the shards together are the kernel without shards, whatever `out_of_range` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingBwd {
    /// The number of tokens.
    pub tokens: Tokens,
    /// The length of a row.
    pub dim: i64,
    /// The number of rows, over all shards.
    pub vocab: i64,
    /// Over how many devices the rows are spread.
    pub shards: i64,
    /// The type of the tokens: a sized integer.
    pub idx: DType,
    /// The type of the gradients: f32, f16, bf16 or f64.
    pub grad: DType,
    /// Where the columns of a block run.
    pub axes: Axes,
    /// What bad tokens do.
    pub out_of_range: OutOfRange,
    /// A row that gets no gradient, as of a token that only fills up short sequences; a token that
    /// is clipped to it counts as one of its own.
    pub padding_idx: Option<i64>,
    /// Refuse a `dim` that is no multiple of the block, instead of padding the last block.
    pub strict: bool,
}

/// The forward: `out[i, j] = weight[clip(idx[i]), j]`, with `weight` `dtype[vocab, dim]`, `idx`
/// `idx[tokens…]` and `out` `dtype[tokens…, dim]` (mutable); leading axes are flattened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Embedding {
    /// The number of tokens.
    pub tokens: Tokens,
    /// The length of a row.
    pub dim: i64,
    /// The number of rows.
    pub vocab: i64,
    /// The type of the tokens: a sized integer.
    pub idx: DType,
    /// The type of the rows: any that is stored.
    pub dtype: DType,
    /// Where the columns of a block run.
    pub axes: Axes,
    /// What bad tokens do.
    pub out_of_range: OutOfRange,
}

/// Why there is no such kernel.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum KernelError {
    /// A size is below what makes sense.
    #[error("{name} must be at least {least}, found {found}")]
    Size {
        /// Which size.
        name: &'static str,
        /// The least value.
        least: i64,
        /// The value given.
        found: i64,
    },
    /// The padding row is none of the rows.
    #[error("padding_idx must be a row, 0 to {}, found {found}", vocab - 1)]
    Padding {
        /// The row given.
        found: i64,
        /// The number of rows.
        vocab: i64,
    },
    /// `strict`, and a row is no whole number of blocks.
    #[error("dim {dim} is not divisible by the block of {block} columns; pad it, or drop strict")]
    Indivisible {
        /// The length of a row.
        dim: i64,
        /// The columns of one block.
        block: i64,
    },
    /// An array has more bytes than can be counted.
    #[error("{name} of shape {shape:?} is more than {} bytes", i64::MAX)]
    Bytes {
        /// Which array.
        name: &'static str,
        /// The lengths of its axes.
        shape: Vec<i64>,
    },
    /// A type that the kernel does not take there.
    #[error("{name} is {found}, expected {expected}")]
    DType {
        /// What has it.
        name: &'static str,
        /// The type given.
        found: DType,
        /// What it may be.
        expected: &'static str,
    },
    /// The graph is refused.
    #[error(transparent)]
    Build(#[from] BuildErrors),
}

impl EmbeddingBwd {
    /// With the defaults: one shard, f32 gradients, i32 tokens, LOCAL columns, clipped tokens, a
    /// padded last block.
    pub fn new(tokens: impl Into<Tokens>, dim: i64, vocab: i64) -> EmbeddingBwd {
        EmbeddingBwd {
            tokens: tokens.into(),
            dim,
            vocab,
            shards: 1,
            idx: DType::I32,
            grad: DType::F32,
            axes: Axes::default(),
            out_of_range: OutOfRange::default(),
            padding_idx: None,
            strict: false,
        }
    }

    /// The type of the sums: f32, or f64 if the gradients are.
    pub fn sum(&self) -> DType {
        if self.grad == DType::F64 { DType::F64 } else { DType::F32 }
    }

    /// The rows of every shard's array, ceil(vocab / shards).
    pub fn local_rows(&self) -> i64 {
        let shards = self.shards.max(1);
        self.vocab / shards + i64::from(self.vocab % shards > 0)
    }

    /// The rows of the vocabulary that `shard` owns: the first rows of its array, all of them but for
    /// the last shards.
    pub fn rows(&self, shard: i64) -> Range<i64> {
        let row = |shard: i64| shard.saturating_mul(self.local_rows()).min(self.vocab).max(0);
        row(shard)..row(shard.saturating_add(1))
    }

    /// The kernel `embedding_bwd`, with the arguments grad_weight, grad_emb, idx.
    ///
    /// # Errors
    ///
    /// A size, a type or a padding row that makes no sense; with `strict`, a `dim` that is no
    /// multiple of the block.
    pub fn build(&self) -> Result<KernelGraph, KernelError> {
        let (dim, vocab) = (self.dim, self.vocab);
        check_dtype("grad", self.grad, DType::is_float, "f32, f16, bf16 or f64")?;
        check_dtype("idx", self.idx, |dtype| dtype.int_range().is_some(), "a sized integer")?;
        check_size("shards", self.shards, 1)?;
        check_sizes(
            &self.tokens,
            dim,
            vocab,
            (self.idx, self.grad, self.sum()),
            ["grad_emb", "grad_weight"],
        )?;
        // The last shard's rows are counted from here on.
        check_bytes("grad_weight", self.sum(), &[self.local_rows(), self.shards, dim])?;
        let block = dim.min(MAX_BLOCK);
        if self.strict && dim % block != 0 {
            return Err(KernelError::Indivisible { dim, block });
        }
        if let Some(found) = self.padding_idx.filter(|row| !(0..vocab).contains(row)) {
            return Err(KernelError::Padding { found, vocab });
        }
        let k = Kernel::new();
        let tokens = self.tokens.build(&k);
        let local = self.local_rows();
        let grad_weight = k.param_mut("grad_weight", self.sum(), [local, dim]);
        let grad_emb = k.param("grad_emb", self.grad, &[&tokens[..], &[k.int(dim)]].concat()[..]);
        let idx = k.param("idx", self.idx, &tokens[..]).flatten();

        let i = k.range(idx.lengths()[0], AxisType::Global);
        let columns = Columns::new(&k, dim, self.axes);
        let j = columns.j;
        let (token, hit) = row(idx.at(i).load(), vocab, self.out_of_range);
        let padding = self.padding_idx.map(|padding| token.ne(padding));
        let (row, hit) = if self.shards == 1 {
            (token, hit)
        } else {
            let offset = k.variable("_device_num", 0, self.shards - 1) * local;
            let mine = token.ge(offset) & token.lt(offset + local);
            // A token below the offset is no row; one from vocab on may be in the last shard's array.
            let above = self.out_of_range == OutOfRange::Ignore && local * self.shards > vocab;
            let hit = if above { mine & token.lt(vocab) } else { mine };
            ((token - offset).clip(0, local - 1), Some(hit))
        };
        let address = grad_weight.at([row, j]);
        let value = rows(grad_emb).at([i, j]);
        let gate = both(both(hit, padding), columns.gate);
        let update = match gate {
            Some(gate) => address.atomic_add_if(gate, value.load_if(gate).cast(self.sum())),
            None => address.atomic_add(value.load().cast(self.sum())),
        };
        Ok(update.end([i, columns.outer, columns.inner]).sink("embedding_bwd")?)
    }
}

impl Embedding {
    /// With the defaults: f32 rows, i32 tokens, LOCAL columns, clipped tokens.
    pub fn new(tokens: impl Into<Tokens>, dim: i64, vocab: i64) -> Embedding {
        Embedding {
            tokens: tokens.into(),
            dim,
            vocab,
            idx: DType::I32,
            dtype: DType::F32,
            axes: Axes::default(),
            out_of_range: OutOfRange::default(),
        }
    }

    /// The kernel `embedding`, with the arguments out, weight, idx.
    ///
    /// # Errors
    ///
    /// A size or a type that makes no sense.
    pub fn build(&self) -> Result<KernelGraph, KernelError> {
        let (dim, vocab) = (self.dim, self.vocab);
        check_dtype("dtype", self.dtype, |dtype| dtype.size().is_some(), "bool or a sized number")?;
        check_dtype("idx", self.idx, |dtype| dtype.int_range().is_some(), "a sized integer")?;
        check_sizes(
            &self.tokens,
            dim,
            vocab,
            (self.idx, self.dtype, self.dtype),
            ["out", "weight"],
        )?;
        let k = Kernel::new();
        let tokens = self.tokens.build(&k);
        let out = k.param_mut("out", self.dtype, &[&tokens[..], &[k.int(dim)]].concat()[..]);
        let weight = k.param("weight", self.dtype, [vocab, dim]);
        let idx = k.param("idx", self.idx, &tokens[..]).flatten();

        let i = k.range(idx.lengths()[0], AxisType::Global);
        let columns = Columns::new(&k, dim, self.axes);
        let j = columns.j;
        let (token, hit) = row(idx.at(i).load(), vocab, self.out_of_range);
        let value = match both(hit, columns.gate) {
            Some(gate) => weight.at([token, j]).load_if(gate),
            None => weight.at([token, j]).load(),
        };
        let address = rows(out).at([i, j]);
        let store = match columns.gate {
            Some(gate) => address.store_if(gate, value),
            None => address.store(value),
        };
        Ok(store.end([i, columns.outer, columns.inner]).sink("embedding")?)
    }
}

/// The columns of a row, in blocks.
struct Columns<'k> {
    outer: Val<'k>,
    inner: Val<'k>,
    j: Val<'k>,
    /// `j < dim`, if the last block is padded.
    gate: Option<Val<'k>>,
}

impl<'k> Columns<'k> {
    fn new(k: &'k Kernel, dim: i64, axes: Axes) -> Columns<'k> {
        let block = dim.min(MAX_BLOCK);
        let kind = match axes {
            Axes::Gpu => AxisType::Local,
            Axes::Cpu => AxisType::Loop,
        };
        let outer = k.range((dim - 1) / block + 1, AxisType::Global);
        let inner = k.range(block, kind);
        let j = outer * block + inner;
        let gate = (dim % block != 0).then(|| j.lt(dim));
        Columns { outer, inner, j, gate }
    }
}

/// The row of `token`, and with `Ignore` whether it is one.
fn row<'k>(token: Val<'k>, vocab: i64, out_of_range: OutOfRange) -> (Val<'k>, Option<Val<'k>>) {
    let token = token.cast(DType::Index);
    match out_of_range {
        OutOfRange::Clip => (token.clip(0, vocab - 1), None),
        OutOfRange::Ignore => (token, Some(token.ge(0) & token.lt(vocab))),
    }
}

/// An array `[tokens…, dim]` as `[n, dim]`.
fn rows(array: Val<'_>) -> Val<'_> {
    let lengths = array.lengths();
    match lengths.as_slice() {
        [first, rest @ .., dim] if !rest.is_empty() => {
            let n = rest.iter().fold(*first, |n, &length| n * length);
            array.reshape([n, *dim])
        }
        _ => array,
    }
}

/// Both of two optional gates.
fn both<'k>(a: Option<Val<'k>>, b: Option<Val<'k>>) -> Option<Val<'k>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a & b),
        (a, b) => a.or(b),
    }
}

/// Checks the sizes, and those of the arrays `idx[tokens…]`, `rows[tokens…, dim]` and
/// `table[vocab, dim]`, of which the last two are called `names`.
fn check_sizes(
    tokens: &Tokens,
    dim: i64,
    vocab: i64,
    (idx, rows, table): (DType, DType, DType),
    names: [&'static str; 2],
) -> Result<(), KernelError> {
    let mut lengths = tokens.check()?;
    check_size("dim", dim, 1)?;
    check_size("vocab", vocab, 1)?;
    lengths.push(dim);
    check_bytes(names[0], rows, &lengths)?;
    check_bytes("idx", idx, &lengths[..lengths.len() - 1])?;
    check_bytes(names[1], table, &[vocab, dim])
}

fn check_dtype(
    name: &'static str,
    found: DType,
    is_right: impl Fn(DType) -> bool,
    expected: &'static str,
) -> Result<(), KernelError> {
    if is_right(found) { Ok(()) } else { Err(KernelError::DType { name, found, expected }) }
}

pub(crate) fn check_size(name: &'static str, found: i64, least: i64) -> Result<(), KernelError> {
    if found < least { Err(KernelError::Size { name, least, found }) } else { Ok(()) }
}

/// Checks that an array has a number of bytes, its empty axes left out, as the verifier counts.
pub(crate) fn check_bytes(
    name: &'static str,
    dtype: DType,
    shape: &[i64],
) -> Result<(), KernelError> {
    let size = dtype.size().unwrap_or(1) as i64;
    match shape.iter().try_fold(size, |bytes, &n| bytes.checked_mul(n.max(1))) {
        Some(_) => Ok(()),
        None => Err(KernelError::Bytes { name, shape: shape.to_vec() }),
    }
}
