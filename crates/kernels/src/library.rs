//! The kernels as a command line or a menu offers them: by name, with their settings.

use std::collections::BTreeMap;

use uop::{DType, KernelGraph};

use crate::embedding::{Axes, Embedding, EmbeddingBwd, KernelError, Length, OutOfRange, Tokens};
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
    /// Lengths of axes, which must be given; this stands for one in formulas.
    Lengths(&'static str),
    /// One of these words; the first if none is given.
    Choice(&'static [&'static str]),
    /// Given or not.
    Switch,
}

/// The values chosen for a kernel's settings.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    numbers: BTreeMap<String, i64>,
    lengths: BTreeMap<String, Vec<Length>>,
    choices: BTreeMap<String, String>,
    switches: Vec<String>,
}

impl Settings {
    /// Sets a [`Kind::Number`] or a [`Kind::Optional`].
    pub fn set_number(&mut self, name: &str, value: i64) {
        self.numbers.insert(name.into(), value);
    }

    /// Sets a [`Kind::Lengths`].
    pub fn set_lengths(&mut self, name: &str, lengths: Vec<Length>) {
        self.lengths.insert(name.into(), lengths);
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

    fn tokens(&self) -> Tokens {
        Tokens(self.lengths.get("tokens").cloned().unwrap_or_default())
    }

    /// The dtype that was chosen; `None` if none was, or the word is no dtype.
    fn dtype(&self, name: &str) -> Option<DType> {
        let chosen = self.choices.get(name)?;
        DType::ALL.into_iter().find(|dtype| dtype.name() == chosen)
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

const TOKENS: Setting = Setting {
    name: "tokens",
    about: "The number of tokens; LO..HI (both included) is one that each launch states, and \
            several axes have commas: 8,2048",
    kind: Kind::Lengths("N"),
};
const DIM: Setting = Setting { name: "dim", about: "The length of a row", kind: Kind::Number("D") };
const VOCAB: Setting =
    Setting { name: "vocab", about: "The number of rows", kind: Kind::Number("V") };
const IDX: Setting = Setting {
    name: "idx",
    about: "The type of the tokens",
    kind: Kind::Choice(&["i32", "i64", "i16", "i8", "u8", "u16", "u32", "u64"]),
};
const FLOATS: Kind = Kind::Choice(&["f32", "f16", "bf16", "f64"]);
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
                kind: Kind::Choice(&[
                    "f32", "f16", "bf16", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32",
                    "u64", "bool",
                ]),
            },
        ],
        example: "--len 1000",
        build: |settings| {
            zero(settings.number("len"), settings.dtype("dtype").unwrap_or(DType::F32))
        },
    },
    Entry {
        name: "embedding",
        about: "Look up rows: out[i, j] = weight[idx[i], j]",
        settings: &[
            TOKENS,
            DIM,
            VOCAB,
            IDX,
            Setting { name: "dtype", about: "The type of the rows", kind: FLOATS },
            AXES,
            OUT_OF_RANGE,
        ],
        example: "--tokens 16384 --dim 256 --vocab 12830",
        build: |settings| {
            Embedding {
                idx: settings.dtype("idx").unwrap_or(DType::I32),
                dtype: settings.dtype("dtype").unwrap_or(DType::F32),
                axes: settings.axes(),
                out_of_range: settings.out_of_range(),
                ..Embedding::new(
                    settings.tokens(),
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
        settings: &[
            TOKENS,
            DIM,
            VOCAB,
            Setting {
                name: "shards",
                about: "Over how many devices the rows are spread; a launch states its _device_num",
                kind: Kind::Optional("S"),
            },
            IDX,
            Setting {
                name: "grad",
                about: "The type of the gradients; sums are f32, or f64 for f64",
                kind: FLOATS,
            },
            AXES,
            OUT_OF_RANGE,
            PADDING_IDX,
            STRICT,
        ],
        example: "--tokens 1..65536 --dim 768 --vocab 50257 --shards 4 --idx i64 --grad bf16",
        build: |settings| {
            EmbeddingBwd {
                shards: settings.numbers.get("shards").copied().unwrap_or(1),
                idx: settings.dtype("idx").unwrap_or(DType::I32),
                grad: settings.dtype("grad").unwrap_or(DType::F32),
                axes: settings.axes(),
                out_of_range: settings.out_of_range(),
                padding_idx: settings.numbers.get("padding-idx").copied(),
                strict: settings.switch("strict"),
                ..EmbeddingBwd::new(
                    settings.tokens(),
                    settings.number("dim"),
                    settings.number("vocab"),
                )
            }
            .build()
        },
    },
];
