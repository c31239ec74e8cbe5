//! The memory of a PARAM.

use std::hint::black_box;

use half::{bf16, f16};
use uop::{Const, DType};

/// The elements of one argument, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    dtype: DType,
    len: usize,
    /// The bytes of the elements, and zeros up to the next multiple of 8.
    words: Vec<u64>,
}

/// A Rust type whose values are those of a dtype.
pub trait Element: Copy + Sized {
    /// The dtype.
    const DTYPE: DType;

    /// The value as a constant.
    fn to_const(self) -> Const;

    /// The value of a constant of [`Element::DTYPE`]; `None` of any other.
    fn from_const(value: Const) -> Option<Self>;
}

macro_rules! element {
    ($($type:ty, $dtype:ident, $pattern:pat => $value:expr, $to:expr;)*) => { $(
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;

            fn to_const(self) -> Const {
                $to(self)
            }

            fn from_const(value: Const) -> Option<$type> {
                match value {
                    $pattern => $value,
                    _ => None,
                }
            }
        }
    )* };
}

element! {
    bool, Bool, Const::Bool(value) => Some(value), Const::Bool;
    i8, I8, Const::Int(value) => value.try_into().ok(), |x| Const::Int(i128::from(x));
    i16, I16, Const::Int(value) => value.try_into().ok(), |x| Const::Int(i128::from(x));
    i32, I32, Const::Int(value) => value.try_into().ok(), |x| Const::Int(i128::from(x));
    i64, I64, Const::Int(value) => value.try_into().ok(), |x| Const::Int(i128::from(x));
    u8, U8, Const::Int(value) => value.try_into().ok(), |x| Const::Int(i128::from(x));
    u16, U16, Const::Int(value) => value.try_into().ok(), |x| Const::Int(i128::from(x));
    u32, U32, Const::Int(value) => value.try_into().ok(), |x| Const::Int(i128::from(x));
    u64, U64, Const::Int(value) => value.try_into().ok(), |x| Const::Int(i128::from(x));
    f16, F16, Const::F16(bits) => Some(f16::from_bits(bits)), |x: f16| Const::F16(x.to_bits());
    bf16, BF16, Const::BF16(bits) => Some(bf16::from_bits(bits)), |x: bf16| Const::BF16(x.to_bits());
    f32, F32, Const::F32(bits) => Some(f32::from_bits(bits)), Const::from;
    f64, F64, Const::F64(bits) => Some(f64::from_bits(bits)), Const::from;
}

impl Data {
    /// `len` zeros of `dtype`; `None` if `dtype` is never stored, or there is no memory for as many.
    pub fn zeros(dtype: DType, len: usize) -> Option<Data> {
        let words = zeroed(len.checked_mul(dtype.size()?)?.div_ceil(8))?;
        Some(Data { dtype, len, words })
    }

    /// These elements.
    pub fn of<T: Element>(elements: Vec<T>) -> Data {
        let data = Data::zeros(T::DTYPE, elements.len());
        let mut data = data.expect("there is memory for as much as there is already");
        for (i, element) in elements.into_iter().enumerate() {
            data.set(i, element.to_const());
        }
        data
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements as they lie in memory, aligned to 8 bytes, in the byte order of this machine; a
    /// `bool` is 0 or 1.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len * self.size()]
    }

    /// The elements as they lie in memory, to be changed. Whoever writes a `bool` other than 0 or 1
    /// finds `true`.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.len * self.size();
        &mut bytemuck::cast_slice_mut(&mut self.words)[..bytes]
    }

    /// The element at `position`.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn get(&self, position: usize) -> Const {
        let size = self.size();
        let bytes = &self.bytes()[position * size..][..size];
        let mut word = [0; 8];
        let start = if cfg!(target_endian = "big") { 8 - size } else { 0 };
        word[start..][..size].copy_from_slice(bytes);
        let bits = u64::from_ne_bytes(word);
        match self.dtype {
            DType::Bool => Const::Bool(bits != 0),
            dtype if dtype.is_int() => Const::Int(dtype.wrap(bits.into())),
            dtype => Const::float_bits(dtype, bits).expect("what is stored is bool, int or float"),
        }
    }

    /// Writes the element at `position`.
    ///
    /// # Panics
    ///
    /// If there is none, or `value` does not fit the dtype.
    pub fn set(&mut self, position: usize, value: Const) {
        assert!(value.fits(self.dtype), "{value} is no {}", self.dtype);
        let bits = match value {
            Const::Bool(value) => value.into(),
            Const::Int(value) => value as u64,
            Const::F16(bits) | Const::BF16(bits) => bits.into(),
            Const::F32(bits) => bits.into(),
            Const::F64(bits) => bits,
        };
        let size = self.size();
        let word = bits.to_ne_bytes();
        let start = if cfg!(target_endian = "big") { 8 - size } else { 0 };
        let element = &mut self.bytes_mut()[position * size..][..size];
        element.copy_from_slice(&word[start..][..size]);
    }

    /// The elements as values of `T`; `None` if that is another dtype.
    pub fn to_vec<T: Element>(&self) -> Option<Vec<T>> {
        (0..self.len)
            .map(|i| T::from_const(self.get(i)).filter(|_| self.dtype == T::DTYPE))
            .collect()
    }

    /// Whether both hold the same bits, all NaNs counting as one: how results are compared (S7).
    pub fn agrees(&self, other: &Data) -> bool {
        let same = |i| {
            let (a, b) = (self.get(i), other.get(i));
            a == b || a.is_nan() && b.is_nan()
        };
        self == other
            || self.dtype == other.dtype && self.len == other.len && (0..self.len).all(same)
    }

    fn size(&self) -> usize {
        self.dtype.size().expect("what has no size has no data")
    }
}

/// `vec!` takes pages of zeros from the system, which cost nothing until they are used, but aborts
/// where there are none: so this asks for the room first.
fn zeroed(len: usize) -> Option<Vec<u64>> {
    let mut room = Vec::<u64>::new();
    room.try_reserve_exact(len).ok()?;
    drop(black_box(room));
    Some(vec![0; len])
}

impl<T: Element> From<Vec<T>> for Data {
    fn from(elements: Vec<T>) -> Data {
        Data::of(elements)
    }
}
