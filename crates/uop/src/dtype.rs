//! Scalar types and their constants.

use std::fmt;

use half::{bf16, f16};

/// The type of a value, or of the elements of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// The type of an effect: no value.
    Void,
    /// `false` or `true`; one byte in memory, 0 or 1.
    Bool,
    /// 8-bit two's-complement integer; arithmetic wraps, as for every sized integer.
    I8,
    /// 16-bit two's-complement integer.
    I16,
    /// 32-bit two's-complement integer.
    I32,
    /// 64-bit two's-complement integer.
    I64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// IEEE 754 binary16; each op is that of `f32`, rounded once more.
    F16,
    /// bfloat16, the upper half of a binary32; each op is that of `f32`, rounded once more.
    BF16,
    /// IEEE 754 binary32; round to nearest even, with subnormals.
    F32,
    /// IEEE 754 binary64; round to nearest even, with subnormals.
    F64,
    /// The mathematical integer, for ranges and addresses. It has no size: `lower` picks one.
    Index,
}

impl DType {
    /// Every dtype, in the order of the documentation.
    pub const ALL: [DType; 15] = {
        use DType::*;
        [Void, Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, Index]
    };

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        const NAMES: [&str; 15] = [
            "void", "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16",
            "f32", "f64", "index",
        ];
        NAMES[self as usize]
    }

    /// The size of one element in memory, in bytes; `None` for what is never stored.
    pub const fn size(self) -> Option<usize> {
        match self {
            DType::Void | DType::Index => None,
            DType::Bool | DType::I8 | DType::U8 => Some(1),
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => Some(2),
            DType::I32 | DType::U32 | DType::F32 => Some(4),
            DType::I64 | DType::U64 | DType::F64 => Some(8),
        }
    }

    /// Whether this is an integer: sized, or `index`.
    pub const fn is_int(self) -> bool {
        self.is_signed() || self.is_unsigned() || matches!(self, DType::Index)
    }

    /// Whether this is `index`, or a type that it becomes in lowered graphs.
    pub const fn is_index(self) -> bool {
        matches!(self, DType::Index | DType::I32 | DType::I64)
    }

    /// Whether this is a sized two's-complement integer.
    pub const fn is_signed(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// Whether this is an unsigned integer.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        self.is_half() || matches!(self, DType::F32 | DType::F64)
    }

    /// Whether this is a float of 16 bits, whose ops are those of `f32`.
    pub const fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::BF16)
    }

    /// Whether values of this type can be added and compared.
    pub const fn is_number(self) -> bool {
        self.is_int() || self.is_float()
    }

    /// The inclusive bounds of a sized integer; `None` for every other type.
    pub const fn int_range(self) -> Option<(i128, i128)> {
        match self.size() {
            Some(bytes) if self.is_signed() => {
                let half = 1 << (8 * bytes - 1);
                Some((-half, half - 1))
            }
            Some(bytes) if self.is_unsigned() => Some((0, (1 << (8 * bytes)) - 1)),
            _ => None,
        }
    }

    /// `value` reduced to this sized integer's range, as its arithmetic wraps; other types keep it.
    pub const fn wrap(self, value: i128) -> i128 {
        match self.int_range() {
            // Exact modulo 2^128, of which the width is a divisor.
            Some((lo, hi)) => value.wrapping_sub(lo).rem_euclid(hi - lo + 1) + lo,
            None => value,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The value of a CONST. Floats are kept by bits, so that NaN and -0.0 intern like any other value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Const {
    /// A `bool`.
    Bool(bool),
    /// An integer within the range of its dtype.
    Int(i128),
    /// The bits of an `f16`.
    F16(u16),
    /// The bits of a `bf16`.
    BF16(u16),
    /// The bits of an `f32`.
    F32(u32),
    /// The bits of an `f64`.
    F64(u64),
}

impl Const {
    /// The constant of `dtype` whose value is `value` exactly; `None` if there is none.
    pub fn int(dtype: DType, value: i128) -> Option<Const> {
        match dtype {
            DType::Void => None,
            DType::Bool => (0..=1).contains(&value).then_some(Const::Bool(value == 1)),
            _ if dtype.is_int() => (dtype.wrap(value) == value).then_some(Const::Int(value)),
            _ => {
                let float = Const::float(dtype, value as f64)?;
                (float.as_float()? as i128 == value).then_some(float)
            }
        }
    }

    /// The float of `dtype` nearest to `value`, ties to even; `None` if `dtype` is no float.
    pub fn float(dtype: DType, value: f64) -> Option<Const> {
        match dtype {
            DType::F16 => Some(Const::F16(f16::from_f32(to_odd(value)).to_bits())),
            DType::BF16 => Some(Const::BF16(bf16::from_f32(to_odd(value)).to_bits())),
            DType::F32 => Some(Const::F32((value as f32).to_bits())),
            DType::F64 => Some(Const::F64(value.to_bits())),
            _ => None,
        }
    }

    /// The float of `dtype` with these bits; `None` if `dtype` is no float, or has fewer bits.
    pub fn float_bits(dtype: DType, bits: u64) -> Option<Const> {
        match dtype {
            DType::F16 => bits.try_into().ok().map(Const::F16),
            DType::BF16 => bits.try_into().ok().map(Const::BF16),
            DType::F32 => bits.try_into().ok().map(Const::F32),
            DType::F64 => Some(Const::F64(bits)),
            _ => None,
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
            Const::F16(_) => dtype == DType::F16,
            Const::BF16(_) => dtype == DType::BF16,
            Const::F32(_) => dtype == DType::F32,
            Const::F64(_) => dtype == DType::F64,
        }
    }

    /// The integer value, if this is an integer.
    pub const fn as_int(self) -> Option<i128> {
        match self {
            Const::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The value, which every float type shares with `f64`, if this is a float.
    pub fn as_float(self) -> Option<f64> {
        match self {
            Const::Bool(_) | Const::Int(_) => None,
            Const::F16(bits) => Some(f16::from_bits(bits).to_f64()),
            Const::BF16(bits) => Some(bf16::from_bits(bits).to_f64()),
            Const::F32(bits) => Some(f32::from_bits(bits).into()),
            Const::F64(bits) => Some(f64::from_bits(bits)),
        }
    }

    /// Whether this is a NaN.
    pub fn is_nan(self) -> bool {
        self.as_float().is_some_and(f64::is_nan)
    }
}

/// The f32 towards 0 from `value`, with its last bit set if it is another number: rounded once more,
/// to fewer bits, it gives what `value` does (Boldo and Melquiond, "When double rounding is odd",
/// 2005).
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) == value || value.is_nan() {
        return near;
    }
    let away = u32::from(f64::from(near.abs()) > value.abs());
    f32::from_bits((near.to_bits() - away) | 1)
}

impl From<f32> for Const {
    fn from(value: f32) -> Const {
        Const::F32(value.to_bits())
    }
}

impl From<f64> for Const {
    fn from(value: f64) -> Const {
        Const::F64(value.to_bits())
    }
}

impl fmt::Display for Const {
    /// Booleans and integers as usual; floats as the shortest decimal that reads back to the same
    /// bits (of 16 bits, the shortest `f32`), and as `0x` and the hexadecimal digits of their bits
    /// where no decimal does (NaN).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Const::Bool(value) => write!(f, "{value}"),
            Const::Int(value) => write!(f, "{value}"),
            Const::F16(bits) | Const::BF16(bits) if self.is_nan() => write!(f, "0x{bits:04x}"),
            Const::F32(bits) if self.is_nan() => write!(f, "0x{bits:08x}"),
            Const::F64(bits) if self.is_nan() => write!(f, "0x{bits:016x}"),
            Const::F16(bits) => write!(f, "{:?}", f16::from_bits(bits).to_f32()),
            Const::BF16(bits) => write!(f, "{:?}", bf16::from_bits(bits).to_f32()),
            Const::F32(bits) => write!(f, "{:?}", f32::from_bits(bits)),
            Const::F64(bits) => write!(f, "{:?}", f64::from_bits(bits)),
        }
    }
}
