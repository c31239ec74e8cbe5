//! The kernels as a command line or a menu offers them: by name, with their settings.

use std::collections::BTreeMap;

use uop::{DType, KernelGraph};

use crate::embedding::{Axes, Embedding, EmbeddingBwd, KernelError, OutOfRange};
use crate::zero::zero;

/// A kernel of the library.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it computes, in one line.
    pub about: &'static str,
    /// What it can be asked for.
    pub settings: &'static [Setting],
    /// Settings that make sense, as on a command line.
    pub example: &'static str,
    build: fn(&Settings) -> Result<KernelGraph, KernelError>,
}

/// Something that a kernel can be asked for.
#[derive(Debug)]
pub struct Setting {
    /// Its name, in words with hyphens.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// What values it has.
    pub kind: Kind,
}

/// The values of a [`Setting`].
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// An integer, which must be given; this stands for it in formulas.
    Number(&'static str),
    /// An integer that may be given; this stands for it in formulas.
    Optional(&'static str),
    /// One of these words; the first if none is given.
    Choice(&'static [&'static str]),
    /// Given or not.
    Switch,
}

/// The values chosen for a kernel's settings.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    numbers: BTreeMap<String, i64>,
    choices: BTreeMap<String, String>,
    switches: Vec<String>,
}

impl Settings {
    /// Sets a [`Kind::Number`] or a [`Kind::Optional`].
    pub fn set_number(&mut self, name: &str, value: i64) {
        self.numbers.insert(name.into(), value);
    }

    /// Sets a [`Kind::Choice`].
    pub fn set_choice(&mut self, name: &str, value: &str) {
        self.choices.insert(name.into(), value.into());
    }

    /// Sets a [`Kind::Switch`].
    pub fn set_switch(&mut self, name: &str) {
        self.switches.push(name.into());
    }

    fn number(&self, name: &str) -> i64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }

    fn chose(&self, name: &str, value: &str) -> bool {
        self.choices.get(name).is_some_and(|chosen| chosen == value)
    }

    fn switch(&self, name: &str) -> bool {
        self.switches.iter().any(|switch| switch == name)
    }

    fn axes(&self) -> Axes {
        if self.chose("axes", "cpu") { Axes::Cpu } else { Axes::Gpu }
    }

    fn out_of_range(&self) -> OutOfRange {
        if self.chose("out-of-range", "ignore") { OutOfRange::Ignore } else { OutOfRange::Clip }
    }
}

impl Entry {
    /// The kernel with these settings; a number that is not set counts as 0.
    ///
    /// # Errors
    ///
    /// Settings that make no sense.
    pub fn build(&self, settings: &Settings) -> Result<KernelGraph, KernelError> {
        (self.build)(settings)
    }
}

const TOKENS: Setting =
    Setting { name: "tokens", about: "The number of tokens", kind: Kind::Number("N") };
const DIM: Setting = Setting { name: "dim", about: "The length of a row", kind: Kind::Number("D") };
const VOCAB: Setting =
    Setting { name: "vocab", about: "The number of rows", kind: Kind::Number("V") };
const AXES: Setting = Setting {
    name: "axes",
    about: "Where the columns of a block run: as work-items (right for every device), or as a loop",
    kind: Kind::Choice(&["gpu", "cpu"]),
};
const OUT_OF_RANGE: Setting = Setting {
    name: "out-of-range",
    about: "What a token outside 0..V does: count as the nearest row, or nothing",
    kind: Kind::Choice(&["clip", "ignore"]),
};
const PADDING_IDX: Setting = Setting {
    name: "padding-idx",
    about: "A row that gets no gradient",
    kind: Kind::Optional("K"),
};
const STRICT: Setting = Setting {
    name: "strict",
    about: "Refuse a D that is no multiple of the block of columns, instead of padding",
    kind: Kind::Switch,
};

/// Every kernel of the library.
pub const LIBRARY: &[Entry] = &[
    Entry {
        name: "zero",
        about: "Fill an array with zeros: out[i] = 0",
        settings: &[
            Setting { name: "len", about: "The length of the array", kind: Kind::Number("N") },
            Setting {
                name: "dtype",
                about: "The type of its elements",
                kind: Kind::Choice(&["f32", "i32", "i64", "bool"]),
            },
        ],
        example: "--len 1000",
        build: |settings| {
            let dtypes = [DType::F32, DType::I32, DType::I64, DType::Bool];
            let dtype = dtypes.into_iter().find(|dtype| settings.chose("dtype", dtype.name()));
            zero(settings.number("len"), dtype.unwrap_or(DType::F32))
        },
    },
    Entry {
        name: "embedding",
        about: "Look up rows: out[i, j] = weight[idx[i], j]",
        settings: &[TOKENS, DIM, VOCAB, AXES, OUT_OF_RANGE],
        example: "--tokens 16384 --dim 256 --vocab 12830",
        build: |settings| {
            Embedding {
                axes: settings.axes(),
                out_of_range: settings.out_of_range(),
                ..Embedding::new(
                    settings.number("tokens"),
                    settings.number("dim"),
                    settings.number("vocab"),
                )
            }
            .build()
        },
    },
    Entry {
        name: "embedding_bwd",
        about: "Scatter rows: grad_weight[idx[i], j] += grad_emb[i, j], atomically",
        settings: &[TOKENS, DIM, VOCAB, AXES, OUT_OF_RANGE, PADDING_IDX, STRICT],
        example: "--tokens 16384 --dim 256 --vocab 12830",
        build: |settings| {
            EmbeddingBwd {
                axes: settings.axes(),
                out_of_range: settings.out_of_range(),
                padding_idx: settings.numbers.get("padding-idx").copied(),
                strict: settings.switch("strict"),
                ..EmbeddingBwd::new(
                    settings.number("tokens"),
                    settings.number("dim"),
                    settings.number("vocab"),
                )
            }
            .build()
        },
    },
];
