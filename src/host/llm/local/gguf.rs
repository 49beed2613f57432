//! A model file in GGUF: its metadata, and its tensors as the engine wants them.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

use memmap2::Mmap;

use super::{broken, mapped};
use crate::error::{Code, Failure, Result};

pub(super) struct Gguf {
    pub(super) content: Content,
    file: BufReader<File>,
    map: Arc<Mmap>,
}

impl Gguf {
    pub(super) fn open(path: &Path) -> Result<Gguf> {
        let file = File::open(path).map_err(|error| Failure::io(path, "read", &error))?;
        // SAFETY: whoever shortens a file while it is mapped stops the process that reads it. Model files
        // are only ever replaced by a rename, and this process is a child that may be stopped.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| Failure::io(path, "map", &error))?;
        let mut file = BufReader::new(file);
        let content = Content::read(&mut file).map_err(|error| {
            Failure::new(Code::ModelBroken, format!("{} is no usable model file", path.display()))
                .because(error)
                .hint("remove it with `nietz models remove`, and it is fetched again")
        })?;
        Ok(Gguf { content, file, map: Arc::new(map) })
    }

    fn value(&self, key: &str) -> Result<&Value> {
        self.content.metadata.get(key).ok_or_else(|| broken(format!("the model file has no {key}")))
    }

    pub(super) fn text(&self, key: &str) -> Result<&str> {
        self.value(key)?.to_string().map(String::as_str).map_err(broken)
    }

    pub(super) fn number(&self, key: &str) -> Result<usize> {
        self.value(key)?.to_u32().map(|number| number as usize).map_err(broken)
    }

    pub(super) fn float(&self, key: &str) -> Result<f32> {
        self.value(key)?.to_f32().map_err(broken)
    }

    pub(super) fn list(&self, key: &str) -> Result<&[Value]> {
        self.value(key)?.to_vec().map(Vec::as_slice).map_err(broken)
    }

    pub(super) fn has_tensor(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// Returns a matrix, kept quantized, and in the file where that can be. Kinds for which candle has no vector instructions become 8-bit
    /// ones: twice the memory of those tensors, and four times their speed.
    pub(super) fn matrix(&mut self, name: &str) -> Result<QTensor> {
        if let Some(info) = self.content.tensor_infos.get(name) {
            let start = usize::try_from(self.content.tensor_data_offset.saturating_add(info.offset)).map_err(broken)?;
            if let Some(mapped) = mapped::matrix(&self.map, info.ggml_dtype, info.shape.dims(), start) {
                return mapped.map_err(broken);
            }
        }
        let tensor = self.content.tensor(&mut self.file, name, &Device::Cpu).map_err(broken)?;
        match tensor.dtype() {
            GgmlDType::Q4_1 | GgmlDType::Q5_0 | GgmlDType::Q5_1 => {
                let plain = tensor.dequantize(&Device::Cpu).map_err(broken)?;
                QTensor::quantize(&plain, GgmlDType::Q8_0).map_err(broken)
            }
            _ => Ok(tensor),
        }
    }

    /// Reads a small tensor (a norm, a bias) as plain numbers.
    pub(super) fn vector(&mut self, name: &str) -> Result<Tensor> {
        let tensor = self.content.tensor(&mut self.file, name, &Device::Cpu).map_err(broken)?;
        tensor.dequantize(&Device::Cpu).map_err(broken)
    }
}
