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

/// The gradient of an embedding: an atomic scatter-add.
///
/// `grad_weight[clip(idx[i]), j] += grad_emb[i, j]`, with `grad_weight` `f32[vocab, dim]` (mutable,
/// zeroed by the caller), `grad_emb` `f32[tokens, dim]` and `idx` `i32[tokens]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingBwd {
    /// The number of tokens.
    pub tokens: i64,
    /// The length of a row.
    pub dim: i64,
    /// The number of rows.
    pub vocab: i64,
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

/// The forward: `out[i, j] = weight[clip(idx[i]), j]`, with `weight` `f32[vocab, dim]`, `idx`
/// `i32[tokens]` and `out` `f32[tokens, dim]` (mutable).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Embedding {
    /// The number of tokens.
    pub tokens: i64,
    /// The length of a row.
    pub dim: i64,
    /// The number of rows.
    pub vocab: i64,
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
    /// The graph is refused.
    #[error(transparent)]
    Build(#[from] BuildErrors),
}

impl EmbeddingBwd {
    /// With the defaults: LOCAL columns, clipped tokens, a padded last block.
    pub fn new(tokens: i64, dim: i64, vocab: i64) -> EmbeddingBwd {
        EmbeddingBwd {
            tokens,
            dim,
            vocab,
            axes: Axes::default(),
            out_of_range: OutOfRange::default(),
            padding_idx: None,
            strict: false,
        }
    }

    /// The kernel `embedding_bwd`, with the arguments grad_weight, grad_emb, idx.
    ///
    /// # Errors
    ///
    /// A size or a padding row that makes no sense; with `strict`, a `dim` that is no multiple of
    /// the block.
    pub fn build(&self) -> Result<KernelGraph, KernelError> {
        check_sizes(self.tokens, self.dim, self.vocab, ["grad_emb", "grad_weight"])?;
        let block = self.dim.min(MAX_BLOCK);
        if self.strict && self.dim % block != 0 {
            return Err(KernelError::Indivisible { dim: self.dim, block });
        }
        if let Some(found) = self.padding_idx.filter(|row| !(0..self.vocab).contains(row)) {
            return Err(KernelError::Padding { found, vocab: self.vocab });
        }
        let k = Kernel::new();
        let grad_weight = k.param_mut("grad_weight", DType::F32, [self.vocab, self.dim]);
        let grad_emb = k.param("grad_emb", DType::F32, [self.tokens, self.dim]);
        let idx = k.param("idx", DType::I32, self.tokens);

        let i = k.range(self.tokens, AxisType::Global);
        let columns = Columns::new(&k, self.dim, self.axes);
        let j = columns.j;
        let (token, hit) = row(idx.at(i).load(), self.vocab, self.out_of_range);
        let address = grad_weight.at([token, j]);
        let padding = self.padding_idx.map(|padding| token.ne(padding));
        let gate = both(both(hit, padding), columns.gate);
        let update = match gate {
            Some(gate) => address.atomic_add_if(gate, grad_emb.at([i, j]).load_if(gate)),
            None => address.atomic_add(grad_emb.at([i, j]).load()),
        };
        Ok(update.end([i, columns.outer, columns.inner]).sink("embedding_bwd")?)
    }
}

impl Embedding {
    /// With the defaults: LOCAL columns, clipped tokens.
    pub fn new(tokens: i64, dim: i64, vocab: i64) -> Embedding {
        Embedding { tokens, dim, vocab, axes: Axes::default(), out_of_range: OutOfRange::default() }
    }

    /// The kernel `embedding`, with the arguments out, weight, idx.
    ///
    /// # Errors
    ///
    /// A size that makes no sense.
    pub fn build(&self) -> Result<KernelGraph, KernelError> {
        check_sizes(self.tokens, self.dim, self.vocab, ["out", "weight"])?;
        let k = Kernel::new();
        let out = k.param_mut("out", DType::F32, [self.tokens, self.dim]);
        let weight = k.param("weight", DType::F32, [self.vocab, self.dim]);
        let idx = k.param("idx", DType::I32, self.tokens);

        let i = k.range(self.tokens, AxisType::Global);
        let columns = Columns::new(&k, self.dim, self.axes);
        let j = columns.j;
        let (token, hit) = row(idx.at(i).load(), self.vocab, self.out_of_range);
        let value = match both(hit, columns.gate) {
            Some(gate) => weight.at([token, j]).load_if(gate),
            None => weight.at([token, j]).load(),
        };
        let store = match columns.gate {
            Some(gate) => out.at([i, j]).store_if(gate, value),
            None => out.at([i, j]).store(value),
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

/// Both of two optional gates.
fn both<'k>(a: Option<Val<'k>>, b: Option<Val<'k>>) -> Option<Val<'k>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a & b),
        (a, b) => a.or(b),
    }
}

/// Checks the sizes and those of the arrays `f32[tokens, dim]` and `f32[vocab, dim]`, called `names`.
fn check_sizes(
    tokens: i64,
    dim: i64,
    vocab: i64,
    names: [&'static str; 2],
) -> Result<(), KernelError> {
    check_size("tokens", tokens, 0)?;
    check_size("dim", dim, 1)?;
    check_size("vocab", vocab, 1)?;
    check_bytes(names[0], DType::F32, &[tokens, dim])?;
    check_bytes(names[1], DType::F32, &[vocab, dim])?;
    check_bytes("idx", DType::I32, &[tokens])
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
