//! Reads model files in the GGUF format: their metadata, and their tensors as the engine wants them.
//!
//! The file stays mapped into memory: large matrices are read in place, loading takes no time, and the system can
//! take their pages back. No length in the file is trusted: each is checked against the rest of the file.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

use super::engine_failure;
use super::quantized::{Matrix, TensorType};
use crate::error::{Code, Failure, Result};

/// A value in the metadata.
#[derive(Debug)]
pub(super) enum MetadataValue {
    Integer(i128),
    Float(f64),
    Bool(bool),
    Text(String),
    List(Vec<MetadataValue>),
}

struct TensorInfo {
    /// `None` if the engine does not know how it is stored.
    kind: Option<TensorType>,
    /// The lengths of the dimensions, columns first.
    shape: Vec<usize>,
    offset: usize,
}

pub(super) struct Gguf {
    metadata: HashMap<String, MetadataValue>,
    tensors: HashMap<String, TensorInfo>,
    /// Where the tensors' data begins.
    data: usize,
    map: Arc<Mmap>,
}

/// How deeply lists may be nested.
const DEPTH: usize = 4;

impl Gguf {
    pub(super) fn open(path: &Path) -> Result<Gguf> {
        let file = File::open(path).map_err(|error| Failure::io(path, "read", &error))?;
        // SAFETY: shortening a mapped file would kill the process that reads it. Model files are only ever
        // replaced by a rename, and this process is a child that may be killed.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| Failure::io(path, "map", &error))?;
        Gguf::read(Arc::new(map)).map_err(|failure| {
            Failure::new(Code::ModelBroken, format!("{} is not a usable model file", path.display()))
                .because(failure)
                .hint("if nietz fetched it, `nietz models remove` takes it away, and it is fetched again")
        })
    }

    fn read(map: Arc<Mmap>) -> Result<Gguf> {
        let mut reader = ByteReader { bytes: &map, at: 0 };
        if reader.take(4)? != b"GGUF" {
            return Err(engine_failure("it does not begin with GGUF"));
        }
        let version = reader.u32()?;
        if !(2..=3).contains(&version) {
            return Err(engine_failure(format!("GGUF version {version} is not known")));
        }
        let (tensor_count, value_count) = (reader.u64()?, reader.u64()?);
        let mut metadata = HashMap::new();
        for _ in 0..value_count {
            let key = reader.text()?;
            let kind = reader.u32()?;
            metadata.insert(key, reader.value(kind, DEPTH)?);
        }
        let mut tensors = HashMap::new();
        for _ in 0..tensor_count {
            let name = reader.text()?;
            let dimensions = reader.u32()?;
            if dimensions > 4 {
                return Err(engine_failure(format!("tensor {name} has {dimensions} dimensions")));
            }
            let shape = (0..dimensions).map(|_| reader.length()).collect::<Result<Vec<_>>>()?;
            let kind = TensorType::from_number(reader.u32()?);
            tensors.insert(name, TensorInfo { kind, shape, offset: reader.length()? });
        }
        let alignment = match metadata.get("general.alignment") {
            Some(MetadataValue::Integer(bytes)) => usize::try_from(*bytes).ok().filter(|bytes| bytes.is_power_of_two()),
            _ => Some(32),
        };
        let alignment = alignment.ok_or_else(|| engine_failure("its alignment is not a power of two"))?;
        let data = reader.at.next_multiple_of(alignment);
        Ok(Gguf { metadata, tensors, data, map })
    }

    /// Returns the bytes before the tensors' data: the metadata, with the vocabulary, and where and how tensors are stored.
    pub(super) fn header(&self) -> &[u8] {
        self.map.get(..self.data).unwrap_or_default()
    }

    fn value(&self, key: &str) -> Result<&MetadataValue> {
        self.metadata.get(key).ok_or_else(|| engine_failure(format!("the model file has no {key}")))
    }

    fn typed_value<'a, T>(&'a self, key: &str, what: &str, read: impl Fn(&'a MetadataValue) -> Option<T>) -> Result<T> {
        read(self.value(key)?).ok_or_else(|| engine_failure(format!("the model file's {key} is no {what}")))
    }

    pub(super) fn text(&self, key: &str) -> Result<&str> {
        self.typed_value(key, "text", MetadataValue::text)
    }

    pub(super) fn number(&self, key: &str) -> Result<usize> {
        self.typed_value(key, "size", |value| match value {
            MetadataValue::Integer(number) => u32::try_from(*number).ok().map(|number| number as usize),
            _ => None,
        })
    }

    pub(super) fn float(&self, key: &str) -> Result<f32> {
        self.typed_value(key, "number", |value| match value {
            MetadataValue::Float(number) => Some(*number as f32),
            _ => None,
        })
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        matches!(self.metadata.get(key), Some(MetadataValue::Bool(true)))
    }

    pub(super) fn list(&self, key: &str) -> Result<&[MetadataValue]> {
        self.typed_value(key, "list", |value| match value {
            MetadataValue::List(values) => Some(values.as_slice()),
            _ => None,
        })
    }

    pub(super) fn has_tensor(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Returns a matrix, still quantized, and in place in the file where its format allows it.
    pub(super) fn matrix(&self, name: &str) -> Result<Matrix> {
        let info = self.tensor(name)?;
        let [columns, rows] = info.shape[..] else { return Err(engine_failure(format!("{name} is not a matrix"))) };
        let start = self.data.checked_add(info.offset).ok_or_else(|| misplaced(name))?;
        Matrix::new(&self.map, self.kind(name)?, rows, columns, start).ok_or_else(|| misplaced(name))
    }

    /// Reads a small tensor (a norm, a bias) as floats.
    pub(super) fn vector(&self, name: &str) -> Result<Vec<f32>> {
        let info = self.tensor(name)?;
        let [length] = info.shape[..] else { return Err(engine_failure(format!("{name} is not a vector"))) };
        let start = self.data.checked_add(info.offset).ok_or_else(|| misplaced(name))?;
        let kind = self.kind(name)?;
        let bytes = kind.bytes(length).and_then(|bytes| self.map.get(start..start.checked_add(bytes)?));
        let mut numbers = vec![0.0; length];
        kind.dequantize(bytes.ok_or_else(|| misplaced(name))?, &mut numbers);
        Ok(numbers)
    }

    /// Returns the most tokens that the model was trained for.
    pub(super) fn context(&self) -> Result<usize> {
        self.number(&format!("{}.context_length", self.text("general.architecture")?))
    }

    /// Returns the first tensor that is stored in a way which the engine does not know.
    pub(super) fn unknown_tensor(&self) -> Option<&str> {
        self.tensors.iter().filter(|(_, info)| info.kind.is_none()).map(|(name, _)| name.as_str()).min()
    }

    fn kind(&self, name: &str) -> Result<TensorType> {
        self.tensor(name)?.kind.ok_or_else(|| engine_failure(format!("the engine does not know how {name} is stored")))
    }

    fn tensor(&self, name: &str) -> Result<&TensorInfo> {
        self.tensors.get(name).ok_or_else(|| engine_failure(format!("the model file has no {name}")))
    }
}

impl MetadataValue {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            MetadataValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn integer(&self) -> Option<i128> {
        match self {
            MetadataValue::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

fn misplaced(name: &str) -> Failure {
    engine_failure(format!("{name} does not fit into its file"))
}

/// Reads little-endian values, and never reads past the end.
struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ByteReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count);
        let piece =
            end.and_then(|end| self.bytes.get(self.at..end)).ok_or_else(|| engine_failure("it ends too early"))?;
        self.at += count;
        Ok(piece)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(engine_failure)
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn length(&mut self) -> Result<usize> {
        usize::try_from(self.u64()?).map_err(engine_failure)
    }

    fn text(&mut self) -> Result<String> {
        let length = self.length()?;
        String::from_utf8(self.take(length)?.to_vec()).map_err(engine_failure)
    }

    fn value(&mut self, kind: u32, depth: usize) -> Result<MetadataValue> {
        Ok(match kind {
            0 => MetadataValue::Integer(i128::from(u8::from_le_bytes(self.array()?))),
            1 => MetadataValue::Integer(i128::from(i8::from_le_bytes(self.array()?))),
            2 => MetadataValue::Integer(i128::from(u16::from_le_bytes(self.array()?))),
            3 => MetadataValue::Integer(i128::from(i16::from_le_bytes(self.array()?))),
            4 => MetadataValue::Integer(i128::from(self.u32()?)),
            5 => MetadataValue::Integer(i128::from(i32::from_le_bytes(self.array()?))),
            6 => MetadataValue::Float(f64::from(f32::from_le_bytes(self.array()?))),
            7 => MetadataValue::Bool(self.array::<1>()? != [0]),
            8 => MetadataValue::Text(self.text()?),
            9 if depth > 0 => {
                let (kind, length) = (self.u32()?, self.length()?);
                let mut list = Vec::new();
                for _ in 0..length {
                    list.push(self.value(kind, depth - 1)?);
                }
                MetadataValue::List(list)
            }
            10 => MetadataValue::Integer(i128::from(self.u64()?)),
            11 => MetadataValue::Integer(i128::from(i64::from_le_bytes(self.array()?))),
            12 => MetadataValue::Float(f64::from_le_bytes(self.array()?)),
            _ => return Err(engine_failure(format!("its metadata has a value of kind {kind}"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn opened(bytes: &[u8]) -> Result<Gguf> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(bytes).expect("it can be written");
        Gguf::open(file.path())
    }

    /// A file with one value and one vector.
    fn small() -> Vec<u8> {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend([1u64, 1].iter().flat_map(|count| count.to_le_bytes()));
        let text = |bytes: &mut Vec<u8>, text: &str| {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        };
        text(&mut bytes, "name");
        bytes.extend(8u32.to_le_bytes());
        text(&mut bytes, "toy");
        text(&mut bytes, "norm");
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(2u64.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(0u64.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes.extend([1.5f32, -2.0].iter().flat_map(|number| number.to_le_bytes()));
        bytes
    }

    #[test]
    fn values_and_tensors_are_read() {
        let file = opened(&small()).expect("it is whole");
        assert_eq!(file.text("name").expect("it is there"), "toy");
        assert_eq!(file.vector("norm").expect("it is there"), [1.5, -2.0]);
    }

    #[test]
    fn a_file_cut_anywhere_is_refused_and_never_read_past_its_end() {
        let whole = small();
        for end in 0..whole.len() {
            let failed = match opened(&whole[..end]) {
                Ok(file) => file.vector("norm").is_err(),
                Err(failure) => failure.code == Code::ModelBroken || end == 0,
            };
            assert!(failed, "cut at {end}");
        }
    }

    #[test]
    fn lengths_that_no_file_can_have_are_refused() {
        let mut bytes = small();
        bytes[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(opened(&bytes).is_err());
    }
}
