//! Arrays in .npy files: versions 1 to 3 of the format, either byte order, rows or columns first
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).
//!
//! What a file says of itself is compared with what is expected before anything is made of it; so
//! no file, however malformed, takes more memory than the kernel asks for. As in numpy, what comes
//! after the last element is ignored.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use interp::Data;
use uop::DType;

use super::files::Output;
use super::{Failure, shown};

/// The longest header that is read, in bytes. Numpy's own limit is 10,000.
const MAX_HEADER: u32 = 1 << 16;

/// How many bytes are read at a time: whole elements of any type.
const CHUNK: usize = 1 << 16;

/// What numpy calls the dtypes that it has, behind the byte order.
const DESCR: [(DType, &str); 12] = [
    (DType::Bool, "b1"),
    (DType::I8, "i1"),
    (DType::I16, "i2"),
    (DType::I32, "i4"),
    (DType::I64, "i8"),
    (DType::U8, "u1"),
    (DType::U16, "u2"),
    (DType::U32, "u4"),
    (DType::U64, "u8"),
    (DType::F16, "f2"),
    (DType::F32, "f4"),
    (DType::F64, "f8"),
];

/// Fills `data` from the array in `path`, which must have its dtype and this shape.
pub(crate) fn read(path: &Path, data: &mut Data, shape: &[u64]) -> Result<(), Failure> {
    open(path, data.dtype(), shape, |file| read_from(file, data, shape))
}

/// Checks that the array in `path` has this dtype and shape, as it says; reads no element.
pub(crate) fn check(path: &Path, dtype: DType, shape: &[u64]) -> Result<(), Failure> {
    open(path, dtype, shape, |file| {
        let text = header_text(file).map_err(failed)?;
        Header::expect(&text, dtype, shape).map(drop)
    })
}

/// What `read` makes of the file in `path`; its message follows what was expected.
fn open(
    path: &Path,
    dtype: DType,
    shape: &[u64],
    read: impl FnOnce(&mut File) -> Result<(), String>,
) -> Result<(), Failure> {
    let fail = |what: String| Failure::new(format!("cannot read {}: {what}", shown(path)));
    let mut file = File::open(path).map_err(|error| fail(error.to_string()))?;
    let through = if dtype == DType::BF16 { " (its bits, as u16)" } else { "" };
    read(&mut file)
        .map_err(|what| fail(format!("expected {dtype}{through} [{}]{what}", list(shape))))
}

fn failed(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "; the file ends early".into(),
        _ => format!("; {error}"),
    }
}

/// As [`read`]; the message follows what was expected.
fn read_from(file: &mut dyn Read, data: &mut Data, shape: &[u64]) -> Result<(), String> {
    let text = header_text(file).map_err(failed)?;
    let header = Header::expect(&text, data.dtype(), shape)?;
    fill(file, &header, data).map_err(failed)
}

fn header_text(file: &mut dyn Read) -> io::Result<String> {
    let mut start = [0; 8];
    file.read_exact(&mut start)?;
    let [b'\x93', b'N', b'U', b'M', b'P', b'Y', version, _] = start else {
        return Err(io::Error::other("this is no .npy file"));
    };
    let mut len = [0; 4];
    match version {
        1 => file.read_exact(&mut len[..2])?,
        2 | 3 => file.read_exact(&mut len)?,
        _ => return Err(io::Error::other(format!("version {version} of .npy is not known"))),
    }
    let len = u32::from_le_bytes(len);
    if len > MAX_HEADER {
        return Err(io::Error::other(format!("the header has {len} bytes")));
    }
    let mut text = vec![0; len as usize];
    file.read_exact(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What a file says of its array.
struct Header<'a> {
    /// The dtype in numpy's words.
    descr: &'a str,
    /// Whether the first axis is the fastest.
    fortran: bool,
    shape: Vec<u64>,
}

impl<'a> Header<'a> {
    /// Reads one that must be of an array of `dtype` and `shape`.
    fn expect(text: &'a str, dtype: DType, shape: &[u64]) -> Result<Header<'a>, String> {
        let header = Header::parse(text).ok_or("; the header is malformed")?;
        let found = header.dtype();
        // Numpy has no bf16: its bits travel as u16.
        let expected = if dtype == DType::BF16 { DType::U16 } else { dtype };
        if found == Some(expected) && header.shape == shape {
            return Ok(header);
        }
        let found = found.map(|dtype| dtype.to_string());
        let found = found.unwrap_or_else(|| shown(format!("`{:.40}`", header.descr)));
        let shape = &header.shape;
        Err(match shape.len() {
            0..=32 => format!(", found {found} [{}]", list(shape)),
            axes => format!(", found {found} with {axes} axes"),
        })
    }

    /// Reads a Python dict, `{'descr': '<f4', 'fortran_order': False, 'shape': (6, 4), }`.
    fn parse(text: &'a str) -> Option<Header<'a>> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        while !rest.is_empty() {
            let (key, value) = quoted(rest)?;
            let value = value.trim_start().strip_prefix(':')?.trim_start();
            rest = match key {
                "descr" if value.starts_with('[') => {
                    // Records, which no parameter has.
                    let (records, rest) = value.split_at(value.rfind(']')? + 1);
                    descr = Some(records);
                    rest
                }
                "descr" => {
                    let (text, rest) = quoted(value)?;
                    descr = Some(text);
                    rest
                }
                "fortran_order" => {
                    fortran = Some(value.starts_with("True"));
                    value.strip_prefix("True").or(value.strip_prefix("False"))?
                }
                "shape" => {
                    let (axes, rest) = value.strip_prefix('(')?.split_once(')')?;
                    let axes = axes.trim_end();
                    // A tuple of one has a comma.
                    let axes = axes.strip_suffix(',').unwrap_or(axes).trim();
                    let axes = axes.split(',').filter(|_| !axes.is_empty());
                    // Python 2 writes 6L.
                    let axes = axes.map(|n| n.trim().trim_end_matches('L').parse().ok());
                    shape = Some(axes.collect::<Option<_>>()?);
                    rest
                }
                _ => return None,
            };
            rest = rest.trim_start();
            rest = match rest.strip_prefix(',') {
                Some(rest) => rest.trim_start(),
                None if rest.is_empty() => rest,
                None => return None,
            };
        }
        Some(Header { descr: descr?, fortran: fortran?, shape: shape? })
    }

    fn dtype(&self) -> Option<DType> {
        match self.descr.strip_prefix(['<', '>', '=', '|']).unwrap_or(self.descr) {
            "?" => Some(DType::Bool),
            name => DESCR.iter().find(|(_, descr)| *descr == name).map(|&(dtype, _)| dtype),
        }
    }

    fn is_big_endian(&self) -> bool {
        match self.descr.as_bytes().first() {
            Some(b'<') => false,
            Some(b'>') => true,
            _ => cfg!(target_endian = "big"),
        }
    }
}

/// A string in quotes, and what comes after it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}

/// Reads as many elements as `data` has.
fn fill(file: &mut dyn Read, header: &Header<'_>, data: &mut Data) -> io::Result<()> {
    let dtype = data.dtype();
    let size = dtype.size().unwrap_or(1);
    for bytes in data.bytes_mut().chunks_mut(CHUNK) {
        file.read_exact(bytes)?;
        if dtype == DType::Bool
            && let Some(byte) = bytes.iter().find(|&&byte| byte > 1)
        {
            return Err(io::Error::other(format!("a bool is 0 or 1, found {byte}")));
        }
        if header.is_big_endian() != cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
    }
    if header.fortran && !data.is_empty() {
        rows_first(data.bytes_mut(), size, &header.shape)?;
    }
    Ok(())
}

/// Puts the elements of a non-empty array that has its first axis fastest in an order with the last
/// axis fastest.
fn rows_first(data: &mut [u8], size: usize, shape: &[u64]) -> io::Result<()> {
    let mut strides = vec![size; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1] as usize;
    }
    let mut columns = Vec::new();
    columns.try_reserve_exact(data.len())?;
    columns.extend_from_slice(data);
    let (mut index, mut from) = (vec![0; shape.len()], 0);
    for element in data.chunks_exact_mut(size) {
        element.copy_from_slice(&columns[from..][..size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            from += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
            from -= strides[axis] * shape[axis] as usize;
        }
    }
    Ok(())
}

/// Writes `data` as an array of this shape.
pub(crate) fn write(output: Output, data: &Data, shape: &[u64]) -> Result<(), Failure> {
    output.write(|file| {
        let mut file = BufWriter::new(file);
        write_to(&mut file, data, shape)?;
        file.flush()
    })
}

fn write_to(file: &mut impl Write, data: &Data, shape: &[u64]) -> io::Result<()> {
    let dtype = data.dtype();
    let known = DESCR.iter().find(|(known, _)| *known == dtype);
    // Numpy has no bf16: its bits travel as u16.
    let descr = known.map_or("u2", |(_, descr)| descr);
    let order = match (dtype.size(), cfg!(target_endian = "big")) {
        (Some(1), _) => "|",
        (_, false) => "<",
        (_, true) => ">",
    };
    let comma = if shape.len() == 1 { "," } else { "" };
    let shape = list(shape);
    let header = format!(
        "{{'descr': '{order}{descr}', 'fortran_order': False, 'shape': ({shape}{comma}), }}"
    );
    // The elements start at a multiple of 64 bytes, after the ten in front of the header.
    let len = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let short =
        u16::try_from(len).map_err(|_| io::Error::other("too many axes for a .npy file"))?;
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&short.to_le_bytes())?;
    writeln!(file, "{header:0$}", len - 1)?;
    file.write_all(data.bytes())
}

fn list(shape: &[u64]) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, header: &str, elements: &[u8]) -> Vec<u8> {
        let len = (header.len() as u32).to_le_bytes();
        let len = if version == 1 { &len[..2] } else { &len };
        [&b"\x93NUMPY"[..], &[version, 0], len, header.as_bytes(), elements].concat()
    }

    fn header(descr: &str, fortran: &str, shape: &str) -> String {
        format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n")
    }

    /// The six elements of an `i32[2, 3]`.
    fn read_i32(file: &[u8]) -> Result<Vec<i32>, String> {
        let mut data = Data::of(vec![0i32; 6]);
        read_from(&mut &file[..], &mut data, &[2, 3])?;
        let data = data.to_vec::<i32>().expect("the dtype stays");
        Ok(data)
    }

    #[test]
    fn what_is_written_is_read() {
        let arrays = [
            (Data::of(vec![true, false]), vec![2]),
            (Data::of(vec![i32::MIN, 7]), vec![1, 2]),
            (Data::of(vec![i64::MIN]), vec![]),
            (Data::of(vec![-0.0, 1.5, f32::NAN, f32::MAX]), vec![2, 2]),
            (Data::of(Vec::<u16>::new()), vec![0]),
            (Data::of(vec![i8::MIN]), vec![1]),
            (Data::of(vec![u64::MAX, 1]), vec![2]),
            (Data::of(vec![1e300f64]), vec![1]),
            (Data::of(vec![half::f16::MAX, half::f16::NEG_ZERO]), vec![2]),
            (Data::of(vec![half::bf16::MAX, half::bf16::NEG_ZERO]), vec![2]),
            (Data::of(Vec::<f32>::new()), vec![0, 1 << 62, 1 << 62]),
        ];
        for (data, shape) in arrays {
            let mut file = Vec::new();
            write_to(&mut file, &data, &shape).unwrap();
            assert_eq!(file.iter().position(|&byte| byte == b'\n').map(|i| (i + 1) % 64), Some(0));
            let mut got = Data::zeros(data.dtype(), data.len()).unwrap();
            read_from(&mut &file[..], &mut got, &shape).unwrap();
            assert!(data.agrees(&got), "{data:?} {got:?}");
        }
    }

    #[test]
    fn versions_orders_and_spellings() {
        let little: Vec<u8> = (0..6).flat_map(i32::to_le_bytes).collect();
        let big: Vec<u8> = (0..6).flat_map(i32::to_be_bytes).collect();
        let native: Vec<u8> = (0..6).flat_map(i32::to_ne_bytes).collect();
        for version in 1..=3 {
            for (descr, elements) in
                [("'<i4'", &little), ("\">i4\"", &big), ("'=i4'", &native), ("'i4'", &native)]
            {
                let rows = file(version, &header(descr, "False", "(2, 3)"), elements);
                assert_eq!(read_i32(&rows).unwrap(), [0, 1, 2, 3, 4, 5]);
                let columns = file(version, &header(descr, "True", "(2L,3L,)"), elements);
                assert_eq!(read_i32(&columns).unwrap(), [0, 2, 4, 1, 3, 5]);
                let more = [&rows[..], b"what comes after"].concat();
                assert_eq!(read_i32(&more).unwrap(), [0, 1, 2, 3, 4, 5]);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_a_few_words() {
        let fails = |header: &str, want: &str| {
            assert_eq!(read_i32(&file(2, header, &[0; 24])), Err(want.to_string()));
        };
        fails(&header("'<i4'", "False", "(1099511627776,)"), ", found i32 [1099511627776]");
        fails(&header("'<c16'", "False", "()"), ", found `<c16` []");
        fails(
            &header("[('a', '<i4', (2,))]", "False", "(6,)"),
            ", found `[('a', '<i4', (2,))]` [6]",
        );
        fails(
            &header(&format!("'{}'", "x".repeat(9999)), "False", "(6,)"),
            &format!(", found `{}` [6]", "x".repeat(40)),
        );
        fails(
            &header("'<i4'", "False", &format!("({})", "1,".repeat(9999))),
            ", found i32 with 9999 axes",
        );
        for shape in ["(-1,)", "(99999999999999999999,)", "(1,,)", "6", "(", &"(".repeat(60_000)] {
            fails(&header("'<i4'", "False", shape), "; the header is malformed");
        }
        fails(&"x".repeat(65_537), "; the header has 65537 bytes");
    }

    #[test]
    fn no_garbage_panics() {
        let whole = file(1, &header("'<i4'", "True", "(2, 3)"), &[7; 24]);
        assert_eq!(read_i32(&whole), Ok(vec![0x0707_0707; 6]));
        for len in 0..whole.len() {
            read_i32(&whole[..len]).unwrap_err();
        }
        for at in 0..whole.len() {
            for byte in 0..=255 {
                let mut file = whole.clone();
                file[at] = byte;
                let _ = read_i32(&file);
                // As well a piece left out.
                file.drain(at..(at + usize::from(byte) / 8).min(whole.len()));
                let _ = read_i32(&file);
            }
        }
    }
}
