//! The op table: one declaration per op. Printing, parsing, arity, result dtype and properties
//! derive from it; docs/ir.md says what each op means.

use std::fmt;

use crate::dtype::DType;

/// How many sources an op takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly this many.
    Fixed(usize),
    /// This many or more.
    AtLeast(usize),
    /// From the first to the second, both included.
    Between(usize, usize),
}

impl Arity {
    /// Whether `n` sources are right.
    pub const fn admits(self, n: usize) -> bool {
        match self {
            Arity::Fixed(k) => n == k,
            Arity::AtLeast(k) => n >= k,
            Arity::Between(lo, hi) => lo <= n && n <= hi,
        }
    }
}

impl fmt::Display for Arity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Arity::Fixed(1) => f.write_str("1 source"),
            Arity::Fixed(k) => write!(f, "{k} sources"),
            Arity::AtLeast(1) => f.write_str("at least 1 source"),
            Arity::AtLeast(k) => write!(f, "at least {k} sources"),
            Arity::Between(lo, hi) => write!(f, "{lo} to {hi} sources"),
        }
    }
}

/// Where the dtype of a node comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// Stated by the node itself: `const.f32`.
    Stated,
    /// That of the source with this number.
    SameAs(usize),
    /// Always this.
    Always(DType),
    /// `index`, or in lowered graphs the i32 or i64 that it became.
    Sized,
}

impl ResultType {
    /// The dtype of a node that states `stated`, if it is the node's to state; `source` gives the
    /// dtype of a source.
    pub fn dtype(self, stated: DType, source: impl Fn(usize) -> DType) -> DType {
        match self {
            ResultType::Stated | ResultType::Sized => stated,
            ResultType::SameAs(k) => source(k),
            ResultType::Always(dtype) => dtype,
        }
    }
}

/// A property that derived code may rely on. It permits nothing by itself: reassociating a float
/// `add` is the kernel author's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// A pure function of its sources: no memory, no order. Only these reach a backend as
    /// arithmetic.
    Arithmetic,
    /// Swapping the two sources keeps the value (for floats up to the payload of a NaN).
    Commutative,
}

macro_rules! ops {
    ($( $(#[doc = $doc:literal])+ $variant:ident $text:literal $arity:expr, $result:expr, [$($property:ident)*], $arg:literal; )+) => {
        /// An op; see docs/ir.md for what each means.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Op {
            $( $(#[doc = $doc])+ $variant, )+
        }

        impl Op {
            /// Every op, in the order of the table.
            pub const ALL: &'static [Op] = &[$(Op::$variant),+];

            /// The name in the text form.
            pub const fn name(self) -> &'static str {
                match self { $(Op::$variant => $text,)+ }
            }

            /// How many sources it takes.
            pub const fn arity(self) -> Arity {
                use Arity::*;
                match self { $(Op::$variant => $arity,)+ }
            }

            /// Where its dtype comes from.
            pub const fn result(self) -> ResultType {
                use ResultType::*;
                use DType::*;
                match self { $(Op::$variant => $result,)+ }
            }

            /// Its properties.
            pub const fn properties(self) -> &'static [Property] {
                match self { $(Op::$variant => &[$(Property::$property),*],)+ }
            }

            /// What its arg is, for messages.
            pub const fn arg(self) -> &'static str {
                match self { $(Op::$variant => $arg,)+ }
            }

            /// What the table says of it, in one paragraph.
            pub const fn doc(self) -> &'static str {
                match self { $(Op::$variant => concat!($($doc),+),)+ }
            }
        }
    };
}

ops! { // variant, text, sources, result, properties, arg

    // Sources.

    /// An argument of the kernel: one source per axis, its length. `arg` is the slot, the name and
    /// whether the kernel may write it.
    Param "param" AtLeast(0), Stated, [], "a param";
    /// Storage of one work-item (REG), undefined at first: one source per axis, its length. `arg`
    /// is a number that tells buffers apart.
    Buffer "buffer" AtLeast(0), Stated, [], "the number of a buffer";
    /// The value in `arg`.
    Const "const" Fixed(0), Stated, [], "a constant";
    /// An integer that a launch states; `arg` is its name and its inclusive bounds.
    Variable "variable" Fixed(0), Sized, [], "a variable";
    /// An argument of a declared operation, in its body: `arg` is its number and whether it is an
    /// address.
    Argument "argument" Fixed(0), Stated, [], "an argument";
    /// Loop variable counting `0..src[0]`; `arg` is the axis number and its `AxisType`.
    Range "range" Fixed(1), Sized, [], "an axis";
    /// The index of this work-item within a launch of extent `src[0]`; `arg` is the hardware
    /// dimension. Not in graphs as built.
    Special "special" Fixed(1), Sized, [], "a hardware index";

    // Shapes.

    /// `src[0]` seen with the axis lengths `src[1..]`, in row-major order; moves nothing.
    Reshape "reshape" AtLeast(1), SameAs(0), [], "nothing";

    // Memory and order.

    /// The address of one element of the buffer `src[0]`: one index per axis. Not a value: only
    /// LOAD, STORE and CUSTOM take it.
    Index "index" AtLeast(1), SameAs(0), [], "nothing";
    /// The element at address `src[0]`; with a gate `src[1]` that is false, `src[2]` (default 0)
    /// and no access.
    Load "load" Between(1, 3), SameAs(0), [], "an access";
    /// Writes `src[1]` at address `src[0]`, if the gate `src[2]` is there and true or absent.
    Store "store" Between(2, 3), Always(Void), [], "an access";
    /// The operation in `arg` on `src`, as its contract says; one more source is a gate.
    Custom "custom" AtLeast(0), Stated, [], "an operation";
    /// `src[0]`, whose users come after every one of `src[1..]`.
    After "after" AtLeast(2), SameAs(0), [], "nothing";
    /// The unordered union of effects.
    Group "group" AtLeast(1), Always(Void), [], "nothing";
    /// The effect `src[0]` for every point of the ranges `src[1..]`, outermost first.
    End "end" AtLeast(2), Always(Void), [], "nothing";
    /// The whole kernel; `arg` is its name.
    Sink "sink" Fixed(1), Always(Void), [], "the name of a kernel";

    // Arithmetic: integers wrap, `index` is exact, floats follow IEEE 754.

    /// `-src[0]`; of a float, the sign bit flipped.
    Neg "neg" Fixed(1), SameAs(0), [Arithmetic], "nothing";
    /// Sum.
    Add "add" Fixed(2), SameAs(0), [Arithmetic Commutative], "nothing";
    /// Difference.
    Sub "sub" Fixed(2), SameAs(0), [Arithmetic], "nothing";
    /// Product.
    Mul "mul" Fixed(2), SameAs(0), [Arithmetic Commutative], "nothing";
    /// `src[1] < src[0] ? src[0] : src[1]`: the second if either is NaN.
    Max "max" Fixed(2), SameAs(0), [Arithmetic], "nothing";
    /// `src[0] < src[1] ? src[0] : src[1]`: the second if either is NaN.
    Min "min" Fixed(2), SameAs(0), [Arithmetic], "nothing";
    /// Bitwise and, of booleans or sized integers.
    And "and" Fixed(2), SameAs(0), [Arithmetic Commutative], "nothing";
    /// Bitwise or, of booleans or sized integers.
    Or "or" Fixed(2), SameAs(0), [Arithmetic Commutative], "nothing";
    /// `src[0] < src[1]`; false if either is NaN.
    CmpLt "cmplt" Fixed(2), Always(Bool), [Arithmetic], "nothing";
    /// `src[0] != src[1]`; true if either is NaN.
    CmpNe "cmpne" Fixed(2), Always(Bool), [Arithmetic Commutative], "nothing";
    /// `src[0] == src[1]`; false if either is NaN.
    CmpEq "cmpeq" Fixed(2), Always(Bool), [Arithmetic Commutative], "nothing";
    /// `src[1]` where `src[0]` holds, else `src[2]`; both are evaluated.
    Where "where" Fixed(3), SameAs(1), [Arithmetic], "nothing";
    /// `src[0]` converted to the stated dtype: float to integer truncates and saturates, NaN
    /// gives 0; integers wrap; to `bool` is `!= 0`; to a float rounds to nearest even.
    Cast "cast" Fixed(1), Stated, [Arithmetic], "nothing";
}

impl Op {
    /// Whether it is a pure function of its sources.
    pub fn is_arithmetic(self) -> bool {
        self.properties().contains(&Property::Arithmetic)
    }

    /// Whether its two sources may be swapped.
    pub fn is_commutative(self) -> bool {
        self.properties().contains(&Property::Commutative)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
