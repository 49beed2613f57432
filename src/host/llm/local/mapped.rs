//! Quantized matrices that stay in the model's file, mapped into memory.
//!
//! candle copies each matrix out of the file, and on most processors makes a second copy in the order that
//! its fast products read. Here the file itself is the first copy: loading takes no time, and the system
//! can take those pages back whenever memory is short, since only the second copy is read after the first
//! use. With the default model that is 0.7 GB.

use std::marker::PhantomData;
use std::sync::Arc;

use candle_core::quantized::k_quants::{self, BlockQ4K, BlockQ6K, BlockQ8_0};
use candle_core::quantized::{GgmlDType, GgmlType, QStorage, QTensor, QuantizedType};
use candle_core::{CpuStorage, Result};
use half::f16;
use memmap2::Mmap;

struct Mapped<T> {
    file: Arc<Mmap>,
    start: usize,
    blocks: usize,
    kind: PhantomData<T>,
}

/// Returns the matrix that lies at a place of the file; `None` for kinds that are not worth mapping.
pub(super) fn matrix(file: &Arc<Mmap>, kind: GgmlDType, shape: &[usize], start: usize) -> Option<Result<QTensor>> {
    Some(match kind {
        GgmlDType::Q4K => Mapped::<BlockQ4K>::tensor(file, shape, start),
        GgmlDType::Q6K => Mapped::<BlockQ6K>::tensor(file, shape, start),
        GgmlDType::Q8_0 => Mapped::<BlockQ8_0>::tensor(file, shape, start),
        _ => return None,
    })
}

impl<T: GgmlType + 'static> Mapped<T> {
    fn tensor(file: &Arc<Mmap>, shape: &[usize], start: usize) -> Result<QTensor> {
        let elements = shape.iter().try_fold(1usize, |all, side| all.checked_mul(*side)).unwrap_or(usize::MAX);
        let blocks = elements / T::BLCK_SIZE;
        let end = blocks.checked_mul(size_of::<T>()).and_then(|bytes| start.checked_add(bytes));
        let place = end.and_then(|end| file.get(start..end));
        // Both hold for each well-made file; `slice` relies on them.
        if place.is_none_or(|place| !place.as_ptr().cast::<T>().is_aligned()) || elements % T::BLCK_SIZE != 0 {
            candle_core::bail!("a matrix of the model does not fit into its file");
        }
        let mapped = Mapped { file: file.clone(), start, blocks, kind: PhantomData::<T> };
        QTensor::new(QStorage::Cpu(Box::new(mapped)), shape)
    }

    fn slice(&self) -> &[T] {
        let first = self.file[self.start..].as_ptr().cast::<T>();
        // SAFETY: `tensor` checked that this many blocks lie in the map and are aligned, and the map lives
        // as long as `self`. A block is numbers in `repr(C)`, for which any bytes are valid.
        unsafe { std::slice::from_raw_parts(first, self.blocks) }
    }
}

impl<T: GgmlType + 'static> QuantizedType for Mapped<T> {
    fn dtype(&self) -> GgmlDType {
        T::DTYPE
    }

    fn matmul_t(&self, mkn: (usize, usize, usize), lhs: &[f32], dst: &mut [f32]) -> Result<()> {
        k_quants::matmul(mkn, lhs, self.slice(), dst)
    }

    fn matmul_t_f16(&self, mkn: (usize, usize, usize), lhs: &[f16], dst: &mut [f16]) -> Result<()> {
        k_quants::matmul_f16(mkn, lhs, self.slice(), dst)
    }

    fn embedding(&self, ids: &[u32], rows: usize, hidden: usize) -> Result<CpuStorage> {
        let blocks = hidden / T::BLCK_SIZE;
        let mut numbers = vec![0.0; ids.len() * hidden];
        for (id, numbers) in ids.iter().zip(numbers.chunks_exact_mut(hidden)) {
            let row = *id as usize;
            if row >= rows {
                candle_core::bail!("token {row} is not one of {rows}");
            }
            T::to_float(&self.slice()[row * blocks..(row + 1) * blocks], numbers);
        }
        Ok(CpuStorage::F32(numbers))
    }

    fn dequantize(&self, elements: usize) -> Result<CpuStorage> {
        let mut numbers = vec![0.0; elements];
        T::to_float(self.slice(), &mut numbers);
        Ok(CpuStorage::F32(numbers))
    }

    fn storage_size_in_bytes(&self) -> usize {
        self.blocks * size_of::<T>()
    }

    fn as_ptr(&self) -> *const u8 {
        self.slice().as_ptr().cast()
    }

    fn block_size(&self) -> usize {
        T::BLCK_SIZE
    }

    // The file is only read; nothing in the engine quantizes into a matrix of it.
    fn from_float(&mut self, _: &[f32]) {}

    fn from_float_imatrix(&mut self, _: &[f32], _: &[f32], _: usize) {}

    fn size(&self) -> usize {
        self.storage_size_in_bytes()
    }
}
