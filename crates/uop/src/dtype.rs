//! Scalar types and their constants.

use std::fmt;
use std::str::FromStr;

/// The type of a value, or of the elements of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// The type of an effect: no value.
    Void,
    /// `false` or `true`; one byte in memory, 0 or 1.
    Bool,
    /// 32-bit two's-complement integer; arithmetic wraps.
    I32,
    /// 64-bit two's-complement integer; arithmetic wraps.
    I64,
    /// IEEE 754 binary32; round to nearest even, with subnormals.
    F32,
    /// The mathematical integer, for ranges and addresses. It has no size: `lower` picks one.
    Index,
}

impl DType {
    /// Every dtype, in the order of the documentation.
    pub const ALL: [DType; 6] =
        [DType::Void, DType::Bool, DType::I32, DType::I64, DType::F32, DType::Index];

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Void => "void",
            DType::Bool => "bool",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F32 => "f32",
            DType::Index => "index",
        }
    }

    /// The size of one element in memory, in bytes; `None` for what is never stored.
    pub const fn size(self) -> Option<usize> {
        match self {
            DType::Void | DType::Index => None,
            DType::Bool => Some(1),
            DType::I32 | DType::F32 => Some(4),
            DType::I64 => Some(8),
        }
    }

    /// Whether this is an integer: sized, or `index`.
    pub const fn is_int(self) -> bool {
        matches!(self, DType::I32 | DType::I64 | DType::Index)
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32)
    }

    /// Whether values of this type can be added and compared.
    pub const fn is_number(self) -> bool {
        self.is_int() || self.is_float()
    }

    /// The inclusive bounds of a sized integer; `None` for every other type.
    pub const fn int_range(self) -> Option<(i128, i128)> {
        match self {
            DType::I32 => Some((i32::MIN as i128, i32::MAX as i128)),
            DType::I64 => Some((i64::MIN as i128, i64::MAX as i128)),
            DType::Void | DType::Bool | DType::F32 | DType::Index => None,
        }
    }

    /// `value` reduced to this sized integer's range, as its arithmetic wraps; other types keep it.
    pub const fn wrap(self, value: i128) -> i128 {
        match self {
            DType::I32 => value as i32 as i128,
            DType::I64 => value as i64 as i128,
            DType::Void | DType::Bool | DType::F32 | DType::Index => value,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = ();

    fn from_str(s: &str) -> Result<DType, ()> {
        DType::ALL.into_iter().find(|d| d.name() == s).ok_or(())
    }
}

/// The value of a CONST. Floats are kept by bits, so that NaN and -0.0 intern like any other value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Const {
    /// A `bool`.
    Bool(bool),
    /// An integer within the range of its dtype.
    Int(i128),
    /// The bits of an `f32`.
    F32(u32),
}

impl Const {
    /// The constant of `dtype` whose value is `value` exactly; `None` if there is none.
    pub fn int(dtype: DType, value: i128) -> Option<Const> {
        match dtype {
            DType::Bool => match value {
                0 => Some(Const::Bool(false)),
                1 => Some(Const::Bool(true)),
                _ => None,
            },
            DType::F32 => {
                let float = value as f32;
                (float as i128 == value).then(|| Const::from(float))
            }
            DType::Index => Some(Const::Int(value)),
            DType::I32 | DType::I64 => (dtype.wrap(value) == value).then_some(Const::Int(value)),
            DType::Void => None,
        }
    }

    /// Zero of `dtype`: `false`, 0 or +0.0.
    ///
    /// # Panics
    ///
    /// If `dtype` is `void`, which has no values.
    pub fn zero(dtype: DType) -> Const {
        Const::int(dtype, 0).expect("every type but void has a zero")
    }

    /// Whether this can be the value of a CONST of `dtype`.
    pub fn fits(self, dtype: DType) -> bool {
        match self {
            Const::Bool(_) => dtype == DType::Bool,
            Const::Int(value) => dtype.is_int() && dtype.wrap(value) == value,
            Const::F32(_) => dtype == DType::F32,
        }
    }

    /// The integer value, if this is an integer.
    pub const fn as_int(self) -> Option<i128> {
        match self {
            Const::Int(value) => Some(value),
            Const::Bool(_) | Const::F32(_) => None,
        }
    }
}

impl From<f32> for Const {
    fn from(value: f32) -> Const {
        Const::F32(value.to_bits())
    }
}

impl fmt::Display for Const {
    /// Booleans and integers as usual; floats as the shortest decimal that reads back to the same
    /// bits, and as `0x` and eight hexadecimal digits of their bits where no decimal does (NaN).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Const::Bool(value) => write!(f, "{value}"),
            Const::Int(value) => write!(f, "{value}"),
            Const::F32(bits) => {
                let value = f32::from_bits(bits);
                if value.is_nan() { write!(f, "0x{bits:08x}") } else { write!(f, "{value:?}") }
            }
        }
    }
}
