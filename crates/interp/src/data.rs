//! The memory of a PARAM.

use std::hint::black_box;

use uop::{Const, DType};

/// The elements of one argument, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Of dtype `bool`.
    Bool(Vec<bool>),
    /// Of dtype `i32`.
    I32(Vec<i32>),
    /// Of dtype `i64`.
    I64(Vec<i64>),
    /// Of dtype `f32`.
    F32(Vec<f32>),
}

impl Data {
    /// `len` zeros of `dtype`; `None` if `dtype` is never stored, or there is no memory for as many.
    pub fn zeros(dtype: DType, len: usize) -> Option<Data> {
        match dtype {
            DType::Bool => zeroed(len).map(Data::Bool),
            DType::I32 => zeroed(len).map(Data::I32),
            DType::I64 => zeroed(len).map(Data::I64),
            DType::F32 => zeroed(len).map(Data::F32),
            DType::Void | DType::Index => None,
        }
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        match self {
            Data::Bool(_) => DType::Bool,
            Data::I32(_) => DType::I32,
            Data::I64(_) => DType::I64,
            Data::F32(_) => DType::F32,
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Data::Bool(data) => data.len(),
            Data::I32(data) => data.len(),
            Data::I64(data) => data.len(),
            Data::F32(data) => data.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `position`.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn get(&self, position: usize) -> Const {
        match self {
            Data::Bool(data) => Const::Bool(data[position]),
            Data::I32(data) => Const::Int(data[position].into()),
            Data::I64(data) => Const::Int(data[position].into()),
            Data::F32(data) => Const::from(data[position]),
        }
    }

    /// Writes the element at `position`.
    ///
    /// # Panics
    ///
    /// If there is none, or `value` does not fit the dtype.
    pub fn set(&mut self, position: usize, value: Const) {
        match (self, value) {
            (Data::Bool(data), Const::Bool(value)) => data[position] = value,
            (Data::I32(data), Const::Int(value)) => {
                data[position] = i32::try_from(value).expect("the value fits the dtype");
            }
            (Data::I64(data), Const::Int(value)) => {
                data[position] = i64::try_from(value).expect("the value fits the dtype");
            }
            (Data::F32(data), Const::F32(bits)) => data[position] = f32::from_bits(bits),
            (data, value) => panic!("{value} is no {}", data.dtype()),
        }
    }

    /// Whether both hold the same bits, all NaNs counting as one: how results are compared (S7).
    pub fn agrees(&self, other: &Data) -> bool {
        match (self, other) {
            (Data::F32(a), Data::F32(b)) => {
                let same =
                    |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
                a.len() == b.len() && a.iter().zip(b).all(same)
            }
            _ => self == other,
        }
    }
}

/// `vec!` takes pages of zeros from the system, which cost nothing until they are used, but aborts
/// where there are none: so this asks for the room first.
fn zeroed<T: Clone + Default>(len: usize) -> Option<Vec<T>> {
    let mut room = Vec::<T>::new();
    room.try_reserve_exact(len).ok()?;
    drop(black_box(room));
    Some(vec![T::default(); len])
}

impl From<Vec<bool>> for Data {
    fn from(data: Vec<bool>) -> Data {
        Data::Bool(data)
    }
}

impl From<Vec<i32>> for Data {
    fn from(data: Vec<i32>) -> Data {
        Data::I32(data)
    }
}

impl From<Vec<i64>> for Data {
    fn from(data: Vec<i64>) -> Data {
        Data::I64(data)
    }
}

impl From<Vec<f32>> for Data {
    fn from(data: Vec<f32>) -> Data {
        Data::F32(data)
    }
}
