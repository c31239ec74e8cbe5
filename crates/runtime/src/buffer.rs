//! Views of the caller's memory.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr;

use interp::Data;
use uop::DType;

/// A type whose values lie in memory as those of a dtype.
///
/// # Safety
///
/// `Self` has the size of `DTYPE` and any bits that a kernel may store for it are valid: all of
/// them, or 0 and 1 for `bool`. Whatever `Self` holds are bits that a kernel may load.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The dtype.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty: $dtype:ident,)*) => { $(
        // SAFETY: as many bits here and there, all of them valid; a `bool` is one byte, 0 or 1.
        unsafe impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        }
    )* };
}

elements! {
    bool: Bool,
    i8: I8,
    i16: I16,
    i32: I32,
    i64: I64,
    u8: U8,
    u16: U16,
    u32: U32,
    u64: U64,
    half::f16: F16,
    half::bf16: BF16,
    f32: F32,
    f64: F64,
}

/// An argument of a launch: a typed view of memory that the caller owns, `dtype[shape…]` in
/// row-major order. Nothing is copied.
///
/// Made from slices, arrays and vectors by reference; one from a `&mut` may be given for a
/// parameter that the kernel writes.
#[derive(Debug)]
pub struct Buffer<'a> {
    dtype: DType,
    pointer: *mut u8,
    /// In elements.
    len: usize,
    /// `None` is one axis of `len`.
    shape: Option<Vec<usize>>,
    mutable: bool,
    /// Without memory; then nothing is at `pointer`.
    absent: bool,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: it stands for a `&'a [T]` or `&'a mut [T]` of an `Element`, which is `Send` and `Sync`, or
// for nothing; `from_raw_parts` asks for no less.
unsafe impl Send for Buffer<'_> {}

// SAFETY: as above; through a shared `Buffer` the memory is only read.
unsafe impl Sync for Buffer<'_> {}

impl<'a> Buffer<'a> {
    /// A view of `len` elements of `dtype` at `pointer`.
    ///
    /// Whether it is aligned, and overlaps no other buffer that it must not overlap, is for the
    /// launch to check.
    ///
    /// # Safety
    ///
    /// If `len` is not 0: for as long as `'a`, the memory is valid for reads, and for writes too if
    /// `mutable`, from any thread; it holds values of `dtype` (a `bool` is one byte, 0 or 1); and
    /// nobody but the holders of `Buffer`s writes it, nor reads it if `mutable`. During a launch,
    /// nobody but that launch accesses what its kernel writes, nor writes what it reads.
    pub unsafe fn from_raw_parts(
        dtype: DType,
        pointer: *mut u8,
        len: usize,
        mutable: bool,
    ) -> Buffer<'a> {
        Buffer { dtype, pointer, len, shape: None, mutable, absent: false, memory: PhantomData }
    }

    /// `len` elements of `dtype` without memory: for [`Device::null`](crate::Device::null), which
    /// counts what a launch would do; whatever runs refuses it.
    pub fn absent(dtype: DType, len: usize, mutable: bool) -> Buffer<'static> {
        let pointer = ptr::null_mut();
        Buffer { dtype, pointer, len, shape: None, mutable, absent: true, memory: PhantomData }
    }

    /// The same memory with these axis lengths, row-major; without, it has one axis.
    ///
    /// A launch compares them with the shape of the parameter if there are two or more, and only
    /// the number of elements otherwise. That their product is the number of elements is checked
    /// there too.
    #[must_use]
    pub fn with_shape(self, shape: &[usize]) -> Buffer<'a> {
        Buffer { shape: Some(shape.to_vec()), ..self }
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

    /// The lengths of the axes.
    pub fn shape(&self) -> &[usize] {
        self.shape.as_deref().unwrap_or(std::slice::from_ref(&self.len))
    }

    /// Whether a kernel may write it.
    pub fn is_mutable(&self) -> bool {
        self.mutable
    }

    /// Whether it has no memory: it was made by [`absent`](Buffer::absent).
    pub fn is_absent(&self) -> bool {
        self.absent
    }

    pub(crate) fn pointer(&self) -> *mut u8 {
        self.pointer
    }

    /// The addresses that it covers; none if it is absent.
    pub(crate) fn addresses(&self) -> Range<usize> {
        let start = self.pointer.addr();
        let size = if self.absent { 0 } else { self.dtype.size().unwrap_or(0) };
        start..start.saturating_add(self.len.saturating_mul(size))
    }

    /// The same memory, to be read only.
    pub(crate) fn shared(&self) -> Buffer<'_> {
        let shape = self.shape.clone();
        Buffer { shape, mutable: false, ..*self }
    }

    /// `parts` pieces of `len` elements, one after the other; `None` if those are not all.
    pub(crate) fn split(&mut self, parts: usize, len: usize) -> Option<Vec<Buffer<'_>>> {
        if parts.checked_mul(len) != Some(self.len) {
            return None;
        }
        let bytes = len * self.dtype.size().unwrap_or(0);
        // Within the memory, or a pointer that nobody follows.
        let piece = |i: usize| Buffer {
            pointer: self.pointer.wrapping_add(i * bytes),
            len,
            shape: None,
            ..*self
        };
        Some((0..parts).map(piece).collect())
    }

    /// A copy of the elements; `None` if the dtype is never stored, or there is no memory for it.
    ///
    /// # Panics
    ///
    /// If the buffer is absent.
    pub(crate) fn to_data(&self) -> Option<Data> {
        let mut data = Data::zeros(self.dtype, self.len)?;
        let to = data.bytes_mut();
        assert!(!self.absent);
        // SAFETY: both sides have `len` elements of `dtype`, here by the promise of whoever made the
        // buffer, which is not absent; `to` is memory of its own. Bytes need no alignment.
        unsafe { ptr::copy_nonoverlapping(self.pointer, to.as_mut_ptr(), to.len()) };
        Some(data)
    }

    /// Replaces the elements.
    ///
    /// # Panics
    ///
    /// If the buffer is read-only or absent, or `data` has another dtype or length.
    pub(crate) fn set_data(&mut self, data: &Data) {
        assert!(
            !self.absent && self.mutable && self.dtype == data.dtype() && self.len == data.len()
        );
        let from = data.bytes();
        // SAFETY: as in `to_data`; the buffer is mutable, and `self` is borrowed mutably.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.pointer, from.len()) };
    }
}

impl<'a> From<&'a mut Data> for Buffer<'a> {
    fn from(data: &'a mut Data) -> Buffer<'a> {
        let (dtype, len) = (data.dtype(), data.len());
        let pointer = data.bytes_mut().as_mut_ptr();
        // SAFETY: the bytes of `len` elements of `dtype`, borrowed mutably for `'a`; a kernel stores
        // no bool but 0 and 1, and `Data` takes any.
        unsafe { Buffer::from_raw_parts(dtype, pointer, len, true) }
    }
}

impl<'a, T: Element> From<&'a [T]> for Buffer<'a> {
    fn from(slice: &'a [T]) -> Buffer<'a> {
        let pointer = slice.as_ptr().cast_mut().cast();
        // SAFETY: `slice` is borrowed for `'a`; it is only read, as the buffer is read-only.
        unsafe { Buffer::from_raw_parts(T::DTYPE, pointer, slice.len(), false) }
    }
}

impl<'a, T: Element> From<&'a mut [T]> for Buffer<'a> {
    fn from(slice: &'a mut [T]) -> Buffer<'a> {
        let pointer = slice.as_mut_ptr().cast();
        // SAFETY: `slice` is borrowed mutably for `'a`, and an `Element` takes what a kernel writes.
        unsafe { Buffer::from_raw_parts(T::DTYPE, pointer, slice.len(), true) }
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for Buffer<'a> {
    fn from(array: &'a [T; N]) -> Buffer<'a> {
        Buffer::from(array.as_slice())
    }
}

impl<'a, T: Element, const N: usize> From<&'a mut [T; N]> for Buffer<'a> {
    fn from(array: &'a mut [T; N]) -> Buffer<'a> {
        Buffer::from(array.as_mut_slice())
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Buffer<'a> {
    fn from(vec: &'a Vec<T>) -> Buffer<'a> {
        Buffer::from(vec.as_slice())
    }
}

impl<'a, T: Element> From<&'a mut Vec<T>> for Buffer<'a> {
    fn from(vec: &'a mut Vec<T>) -> Buffer<'a> {
        Buffer::from(vec.as_mut_slice())
    }
}
