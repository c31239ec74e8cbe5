//! `uopc new`: kernels of the library.

use clap::{Args, Subcommand, ValueEnum};
use kernels::{Axes, Embedding, EmbeddingBwd, OutOfRange};
use uop::DType;

use super::{Failure, print};

/// What `uopc kernels` prints.
pub(crate) const LIBRARY: &str = "\
zero           out[i] = 0
               --len N [--dtype f32|i32|i64|bool]
embedding      out[i, j] = weight[idx[i], j]
               --tokens N --dim D --vocab V [--axes gpu|cpu] [--out-of-range clip|ignore]
embedding_bwd  grad_weight[idx[i], j] += grad_emb[i, j], atomically
               --tokens N --dim D --vocab V [--axes gpu|cpu] [--out-of-range clip|ignore] [--strict]

uopc new KERNEL … prints one in the text form; uopc new KERNEL --help explains its options.
";

#[derive(Subcommand)]
pub(crate) enum New {
    /// Fill an array with zeros: out[i] = 0
    Zero {
        /// The length of the array
        #[arg(long, value_name = "N")]
        len: i64,
        /// The type of its elements
        #[arg(long, value_enum, default_value_t = Element::F32)]
        dtype: Element,
    },
    /// Look up rows: out[i, j] = weight[idx[i], j]
    Embedding {
        #[command(flatten)]
        sizes: Sizes,
    },
    /// Scatter rows: grad_weight[idx[i], j] += grad_emb[i, j], atomically
    #[command(name = "embedding_bwd")]
    EmbeddingBwd {
        #[command(flatten)]
        sizes: Sizes,
        /// Refuse a dim that is no multiple of the block of columns, instead of padding
        #[arg(long)]
        strict: bool,
    },
}

#[derive(Args)]
pub(crate) struct Sizes {
    /// The number of tokens
    #[arg(long, value_name = "N")]
    tokens: i64,
    /// The length of a row
    #[arg(long, value_name = "D")]
    dim: i64,
    /// The number of rows
    #[arg(long, value_name = "V")]
    vocab: i64,
    /// Where the columns of a block run: as work-items (right for every device), or as a loop
    #[arg(long, value_enum, default_value_t = AxesArg::Gpu)]
    axes: AxesArg,
    /// What a token outside 0..V does: count as the nearest row, or nothing
    #[arg(long, value_enum, default_value_t = OutOfRangeArg::Clip)]
    out_of_range: OutOfRangeArg,
}

#[derive(Clone, Copy, ValueEnum)]
enum AxesArg {
    Gpu,
    Cpu,
}

#[derive(Clone, Copy, ValueEnum)]
enum OutOfRangeArg {
    Clip,
    Ignore,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Element {
    F32,
    I32,
    I64,
    Bool,
}

impl From<AxesArg> for Axes {
    fn from(axes: AxesArg) -> Axes {
        match axes {
            AxesArg::Gpu => Axes::Gpu,
            AxesArg::Cpu => Axes::Cpu,
        }
    }
}

impl From<OutOfRangeArg> for OutOfRange {
    fn from(out_of_range: OutOfRangeArg) -> OutOfRange {
        match out_of_range {
            OutOfRangeArg::Clip => OutOfRange::Clip,
            OutOfRangeArg::Ignore => OutOfRange::Ignore,
        }
    }
}

impl From<Element> for DType {
    fn from(element: Element) -> DType {
        match element {
            Element::F32 => DType::F32,
            Element::I32 => DType::I32,
            Element::I64 => DType::I64,
            Element::Bool => DType::Bool,
        }
    }
}

impl New {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let kernel = match self {
            New::Zero { len, dtype } => kernels::zero(len, dtype.into())?,
            New::Embedding { sizes } => {
                let Sizes { tokens, dim, vocab, axes, out_of_range } = sizes;
                let (axes, out_of_range) = (axes.into(), out_of_range.into());
                Embedding { tokens, dim, vocab, axes, out_of_range }.build()?
            }
            New::EmbeddingBwd { sizes, strict } => {
                let Sizes { tokens, dim, vocab, axes, out_of_range } = sizes;
                let (axes, out_of_range) = (axes.into(), out_of_range.into());
                EmbeddingBwd { tokens, dim, vocab, axes, out_of_range, strict }.build()?
            }
        };
        print(&kernel.to_string())
    }
}
