//! Arrays in .npy files.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use interp::Data;
use ndarray::{ArrayD, ArrayViewD, IxDyn};
use ndarray_npy::{ReadNpyError, ReadNpyExt, ReadableElement, WritableElement, WriteNpyExt};
use uop::DType;

use super::Failure;
use super::files::Output;

/// Reads the array in `path`, which must be `dtype[shape…]`.
pub(crate) fn read(path: &Path, dtype: DType, shape: &[u64]) -> Result<Data, Failure> {
    match dtype {
        DType::Bool => read_as(path, dtype, shape).map(Data::Bool),
        DType::I32 => read_as(path, dtype, shape).map(Data::I32),
        DType::I64 => read_as(path, dtype, shape).map(Data::I64),
        DType::F32 => read_as(path, dtype, shape).map(Data::F32),
        DType::Void | DType::Index => unreachable!("the verifier rejects a param of {dtype}"),
    }
}

fn read_as<T: ReadableElement + Clone>(
    path: &Path,
    dtype: DType,
    shape: &[u64],
) -> Result<Vec<T>, Failure> {
    let fail = |what: String| Failure(format!("cannot read {}: {what}", path.display()));
    let expected = || format!("expected {dtype} [{}]", list(shape));
    let file = File::open(path).map_err(|error| fail(error.to_string()))?;
    let array = ArrayD::<T>::read_npy(BufReader::new(file)).map_err(|error| match error {
        ReadNpyError::WrongDescriptor(found) => {
            fail(format!("{}, found an array of {found}", expected()))
        }
        error => fail(format!("{}; {error}", expected())),
    })?;
    let found: Vec<u64> = array.shape().iter().map(|&n| n as u64).collect();
    if found != shape {
        return Err(fail(format!("{}, found {dtype} [{}]", expected(), list(&found))));
    }
    if array.is_standard_layout() {
        return Ok(array.into_raw_vec_and_offset().0);
    }
    Ok(array.iter().cloned().collect())
}

/// Writes `data` as an array of this shape.
pub(crate) fn write(output: Output, data: &Data, shape: &[u64]) -> Result<(), Failure> {
    match data {
        Data::Bool(data) => write_as(output, data, shape),
        Data::I32(data) => write_as(output, data, shape),
        Data::I64(data) => write_as(output, data, shape),
        Data::F32(data) => write_as(output, data, shape),
    }
}

fn write_as<T: WritableElement>(output: Output, data: &[T], shape: &[u64]) -> Result<(), Failure> {
    let shape: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
    let view = ArrayViewD::from_shape(IxDyn(&shape), data)
        .expect("a buffer has as many elements as its shape");
    output.write(|file| {
        let mut writer = BufWriter::new(file);
        view.write_npy(&mut writer).map_err(io::Error::other)?;
        writer.flush()
    })
}

fn list(shape: &[u64]) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<String>>().join(", ")
}
