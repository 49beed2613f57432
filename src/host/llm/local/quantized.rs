//! A model's matrices in GGUF's storage formats, and their products with rows of floats.
//!
//! Three formats are multiplied as they lie in the file: `Q4_K`, `Q6_K` and `Q8_0`. The others are converted to `Q8_0` at
//! loading: these tensors then take twice the memory, but need no further kernels. Rows of floats are quantized to
//! 8 bits first, so that a product is one of small integers; `dot` has the kernels.
//!
//! A row of a product depends neither on the number of threads nor on the rows beside it. Where many rows are computed at
//! once, `wide` adds in another order, so that they differ in their last digits from those of fewer rows.

use std::ops::Range;
use std::sync::Arc;

use memmap2::Mmap;
use rayon::prelude::*;

use super::block::{LONG, SHORT, Small, half};
use super::dot::{self, StoredRows};
#[cfg(target_arch = "x86_64")]
use super::wide;

/// How many rows of a matrix one thread takes at a time.
const PART: usize = 16;

/// A storage format, by its name in GGUF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TensorType {
    F32,
    F16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4K,
    Q6K,
}

impl TensorType {
    pub(super) fn from_number(number: u32) -> Option<TensorType> {
        Some(match number {
            0 => TensorType::F32,
            1 => TensorType::F16,
            2 => TensorType::Q4_0,
            3 => TensorType::Q4_1,
            6 => TensorType::Q5_0,
            7 => TensorType::Q5_1,
            8 => TensorType::Q8_0,
            12 => TensorType::Q4K,
            14 => TensorType::Q6K,
            _ => return None,
        })
    }

    /// Returns how many numbers and how many bytes a block has.
    fn block(self) -> (usize, usize) {
        match self {
            TensorType::F32 => (1, 4),
            TensorType::F16 => (1, 2),
            TensorType::Q4_0 => (SHORT, 18),
            TensorType::Q4_1 => (SHORT, 20),
            TensorType::Q5_0 => (SHORT, 22),
            TensorType::Q5_1 => (SHORT, 24),
            TensorType::Q8_0 => (SHORT, 34),
            TensorType::Q4K => (LONG, 144),
            TensorType::Q6K => (LONG, 210),
        }
    }

    /// Returns how many bytes this many numbers take; `None` if they do not fill whole blocks.
    pub(super) fn bytes(self, numbers: usize) -> Option<usize> {
        let (length, bytes) = self.block();
        (numbers.is_multiple_of(length)).then_some(numbers / length)?.checked_mul(bytes)
    }

    /// Turns stored numbers into floats. `bytes` holds exactly as many numbers as `numbers` takes.
    pub(super) fn dequantize(self, bytes: &[u8], numbers: &mut [f32]) {
        let (length, size) = self.block();
        for (block, numbers) in bytes.chunks_exact(size).zip(numbers.chunks_exact_mut(length)) {
            match self {
                TensorType::F32 => numbers[0] = f32::from_le_bytes([block[0], block[1], block[2], block[3]]),
                TensorType::F16 => numbers[0] = half(block, 0),
                TensorType::Q8_0 => {
                    let scale = half(block, 0);
                    numbers
                        .iter_mut()
                        .zip(&block[2..])
                        .for_each(|(number, byte)| *number = scale * f32::from(*byte as i8));
                }
                TensorType::Q4_0 | TensorType::Q4_1 | TensorType::Q5_0 | TensorType::Q5_1 => {
                    dequantize_simple(self, block, numbers)
                }
                TensorType::Q4K => {
                    let (scale, min) = (half(block, 0), half(block, 2));
                    let (scales, mins) = dot::scales_of_q4k(block);
                    for (part, numbers) in numbers.chunks_exact_mut(SHORT).enumerate() {
                        let nibbles = &block[16 + part / 2 * SHORT..][..SHORT];
                        let (scale, min) = (scale * f32::from(scales[part]), min * f32::from(mins[part]));
                        for (number, byte) in numbers.iter_mut().zip(nibbles) {
                            *number = scale * f32::from(byte >> (4 * (part % 2)) & 15) - min;
                        }
                    }
                }
                TensorType::Q6K => {
                    let scale = half(block, 208);
                    let mut small = [0u8; LONG];
                    dot::unpack_q6k(block, &mut small);
                    for (at, (number, small)) in numbers.iter_mut().zip(small).enumerate() {
                        let part_scale = scale * f32::from(block[192 + at / 16] as i8);
                        *number = part_scale * (f32::from(small) - 32.0);
                    }
                }
            }
        }
    }
}

/// Turns a block of a 4-bit or 5-bit format into floats.
fn dequantize_simple(kind: TensorType, block: &[u8], numbers: &mut [f32]) {
    let scale = half(block, 0);
    let (min, high, nibbles) = match kind {
        TensorType::Q4_0 => (-8.0 * scale, 0, &block[2..]),
        TensorType::Q4_1 => (half(block, 2), 0, &block[4..]),
        TensorType::Q5_0 => (-16.0 * scale, u32::from_le_bytes([block[2], block[3], block[4], block[5]]), &block[6..]),
        _ => (half(block, 2), u32::from_le_bytes([block[4], block[5], block[6], block[7]]), &block[8..]),
    };
    for (at, number) in numbers.iter_mut().enumerate() {
        let low = nibbles[at % 16] >> (4 * (at / 16)) & 15;
        let fifth = (high >> at & 1) as u8;
        *number = scale * f32::from(low | fifth << 4) + min;
    }
}

/// Rounds to a 16-bit float: to the nearest, and to the even one of two that are equally near.
fn to_half(number: f32) -> [u8; 2] {
    let bits = number.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    let rounded = if magnitude >= 0x4780_0000 {
        0x7c00
    } else if magnitude < 0x3880_0000 {
        (f32::from_bits(magnitude) * 16_777_216.0).round_ties_even() as u32
    } else {
        (magnitude + 0x0fff + (magnitude >> 13 & 1) - (112 << 23)) >> 13
    };
    (sign | rounded as u16).to_le_bytes()
}

enum MatrixData {
    File(Arc<Mmap>, Range<usize>),
    Memory(Vec<u8>),
}

/// A matrix whose rows are stored one after another.
pub(super) struct Matrix {
    kind: TensorType,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// How many bytes a row takes.
    stride: usize,
    data: MatrixData,
}

impl Matrix {
    /// Returns the matrix that begins at this byte of the file; `None` if the file does not hold all of it.
    pub(super) fn new(map: &Arc<Mmap>, kind: TensorType, rows: usize, columns: usize, start: usize) -> Option<Matrix> {
        let stride = kind.bytes(columns)?;
        let range = start..start.checked_add(stride.checked_mul(rows)?)?;
        let bytes = map.get(range.clone())?;
        if matches!(kind, TensorType::Q4K | TensorType::Q6K | TensorType::Q8_0) {
            return Some(Matrix { kind, rows, columns, stride, data: MatrixData::File(map.clone(), range) });
        }
        let q8_stride = TensorType::Q8_0.bytes(columns)?;
        let mut memory = vec![0; q8_stride * rows];
        memory.par_chunks_exact_mut(q8_stride).zip(bytes.par_chunks_exact(stride)).for_each(|(into, row)| {
            let mut numbers = vec![0.0; columns];
            kind.dequantize(row, &mut numbers);
            store_q8(&numbers, into);
        });
        Some(Matrix { kind: TensorType::Q8_0, rows, columns, stride: q8_stride, data: MatrixData::Memory(memory) })
    }

    fn bytes(&self) -> &[u8] {
        match &self.data {
            MatrixData::File(map, range) => &map[range.clone()],
            MatrixData::Memory(memory) => memory,
        }
    }

    fn rows_from(&self, row: usize, count: usize) -> StoredRows<'_> {
        StoredRows { bytes: &self.bytes()[row * self.stride..][..count * self.stride], stride: self.stride }
    }

    /// Appends a row as floats; returns `false` if there is no such row.
    pub(super) fn append_row(&self, row: usize, numbers: &mut Vec<f32>) -> bool {
        if row >= self.rows {
            return false;
        }
        let start = numbers.len();
        numbers.resize(start + self.columns, 0.0);
        self.kind.dequantize(self.rows_from(row, 1).bytes, &mut numbers[start..]);
        true
    }

    /// Multiplies each row of `x` with each row of the matrix: `x` is `[n, columns]`, the result `[n, rows]`.
    pub(super) fn multiply(&self, x: &QuantizedRows) -> Vec<f32> {
        #[cfg(target_arch = "x86_64")]
        if let Some(products) = self.multiply_wide(x) {
            return products;
        }
        let mut transposed = vec![0.0; self.rows * x.count];
        let kernels = dot::Kernels::detect();
        transposed.par_chunks_mut(PART * x.count).enumerate().for_each(|(part, products)| {
            let rows = self.rows_from(part * PART, products.len() / x.count);
            match self.kind {
                TensorType::Q4K => kernels.q4k(rows, &x.long, products),
                TensorType::Q6K => kernels.q6k(rows, &x.long, products),
                _ => kernels.q8(rows, &x.short, products),
            }
        });
        if x.count == 1 {
            return transposed;
        }
        let mut products = vec![0.0; transposed.len()];
        products.par_chunks_exact_mut(self.rows).enumerate().for_each(|(at, row)| {
            row.iter_mut().enumerate().for_each(|(column, product)| *product = transposed[column * x.count + at]);
        });
        products
    }

    /// Multiplies many rows at once; `None` if they are too few, or the processor or the format is another.
    #[cfg(target_arch = "x86_64")]
    fn multiply_wide(&self, x: &QuantizedRows) -> Option<Vec<f32>> {
        let format = match self.kind {
            TensorType::Q4K => wide::Format::Q4K,
            TensorType::Q6K => wide::Format::Q6K,
            _ => return None,
        };
        if x.sums.is_empty() || !self.rows.is_multiple_of(wide::ROWS) {
            return None;
        }
        let places = wide::places(x.count);
        let mut parts = vec![[0.0; wide::ROWS]; self.rows / wide::ROWS * places];
        parts.par_chunks_exact_mut(places).enumerate().for_each(|(part, products)| {
            let rows = self.rows_from(part * wide::ROWS, wide::ROWS);
            wide::multiply(format, rows, (&x.long, &x.sums), x.count, products);
        });
        let mut products = vec![0.0; self.rows * x.count];
        products.par_chunks_exact_mut(self.rows).enumerate().for_each(|(at, row)| {
            let sixteens = row.as_chunks_mut::<{ wide::ROWS }>().0.iter_mut();
            sixteens.zip(parts.chunks_exact(places)).for_each(|(row, part)| *row = part[at]);
        });
        Some(products)
    }

    /// Tells whether the matrix is multiplied in long blocks.
    pub(super) fn is_long(&self) -> bool {
        self.kind != TensorType::Q8_0
    }
}

/// Writes numbers as blocks of `Q8_0`.
fn store_q8(numbers: &[f32], into: &mut [u8]) {
    for (numbers, block) in numbers.chunks_exact(SHORT).zip(into.chunks_exact_mut(34)) {
        let scale = largest(numbers) / 127.0;
        block[..2].copy_from_slice(&to_half(scale));
        let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        block[2..].iter_mut().zip(numbers).for_each(|(byte, number)| *byte = (number * inverse).round() as i8 as u8);
    }
}

fn largest(numbers: &[f32]) -> f32 {
    numbers.iter().fold(0.0, |most: f32, number| most.max(number.abs()))
}

/// Rows of floats, quantized to 8 bits in the blocks that matrices are multiplied with.
pub(super) struct QuantizedRows {
    pub(super) count: usize,
    /// The long blocks, row by row; empty if no matrix needs them.
    long: Vec<Small<LONG>>,
    /// What `wide` needs of each long block; empty if it is not used.
    #[cfg(target_arch = "x86_64")]
    sums: Vec<wide::Sums>,
    short: Vec<Small<SHORT>>,
}

impl QuantizedRows {
    /// Quantizes rows for products with these matrices, which all have as many columns as a row has numbers.
    pub(super) fn new(x: &[f32], matrices: &[&Matrix]) -> QuantizedRows {
        let columns = matrices[0].columns;
        let wanted = |long: bool| matrices.iter().any(|matrix| matrix.is_long() == long);
        let count = x.len() / columns;
        let long: Vec<Small<LONG>> = if wanted(true) { quantize(x) } else { Vec::new() };
        QuantizedRows {
            count,
            #[cfg(target_arch = "x86_64")]
            sums: match wide::is_used(count) {
                true => long.par_iter().with_min_len(64).map(wide::Sums::of).collect(),
                false => Vec::new(),
            },
            long,
            short: if wanted(false) { quantize(x) } else { Vec::new() },
        }
    }
}

fn quantize<const N: usize>(x: &[f32]) -> Vec<Small<N>> {
    x.par_chunks_exact(N).with_min_len(16).map(quantize_block).collect()
}

fn quantize_block<const N: usize>(block: &[f32]) -> Small<N> {
    let scale = largest(block) / 127.0;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let mut small = Small { numbers: [0; N], sums: [0; 16], scale };
    for (at, number) in block.iter().enumerate() {
        // 1.5 × 2^23 leaves a float no bits for a fraction: the last bits of the sum are the nearest whole number.
        let rounded = (number * inverse + 12_582_912.0).to_bits() as i8;
        small.numbers[at] = rounded;
        small.sums[at / 16] += i16::from(rounded);
    }
    small
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn numbers_of_sixteen_bits_are_read_and_written_exactly() {
        for bits in 0..=u16::MAX {
            let number = half(&bits.to_le_bytes(), 0);
            if number.is_nan() {
                assert_eq!(bits & 0x7c00, 0x7c00);
                continue;
            }
            assert_eq!(u16::from_le_bytes(to_half(number)), bits, "{number}");
        }
        assert_eq!(half(&0x3c00u16.to_le_bytes(), 0), 1.0);
        assert_eq!(half(&0x0001u16.to_le_bytes(), 0), 5.960_464_5e-8);
        assert_eq!(half(&to_half(0.1), 0), 0.099_975_586);
    }

    /// The expected numbers follow llama.cpp's description of the formats.
    #[test]
    fn simple_forms_are_read() {
        let one = to_half(1.0);
        let two = to_half(2.0);
        let mut block = [one, two].concat();
        block.extend((0..16).map(|at| at | (15 - at) << 4));
        let mut numbers = [0.0; 32];
        TensorType::Q4_1.dequantize(&block, &mut numbers);
        assert_eq!((numbers[0], numbers[15], numbers[16], numbers[31]), (2.0, 17.0, 17.0, 2.0));
        let mut block = one.to_vec();
        block.extend(0x8000_0001u32.to_le_bytes());
        block.extend([0u8; 16]);
        TensorType::Q5_0.dequantize(&block, &mut numbers);
        assert_eq!((numbers[0], numbers[1], numbers[31]), (0.0, -16.0, 0.0));
    }

    /// Returns pseudo-random bytes (SplitMix64) that are the same in each run.
    pub(in super::super) fn bytes(seed: u64, count: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 56) as u8
        };
        (0..count).map(|_| next()).collect()
    }

    /// Returns random rows of this format, with scales of a usual size.
    pub(in super::super) fn stored(kind: TensorType, columns: usize, rows: usize) -> Vec<u8> {
        let mut stored = bytes(kind as u64 + 1, kind.bytes(columns).expect("whole blocks") * rows);
        let (_, size) = kind.block();
        for (at, block) in stored.chunks_exact_mut(size).enumerate() {
            let scale = to_half(0.01 + (at % 7) as f32 * 0.003);
            match kind {
                TensorType::Q6K => block[208..].copy_from_slice(&scale),
                TensorType::Q4K => {
                    block[..2].copy_from_slice(&scale);
                    block[2..4].copy_from_slice(&scale);
                }
                _ => block[..2].copy_from_slice(&scale),
            }
        }
        stored
    }

    #[test]
    fn a_product_of_small_numbers_is_that_of_the_plain_ones() {
        for (kind, columns) in [(TensorType::Q4K, 1024), (TensorType::Q6K, 1024), (TensorType::Q8_0, 576)] {
            let (rows, count) = (37, 6);
            let stored = stored(kind, columns, rows);
            let x: Vec<f32> = bytes(9, columns * count).iter().map(|byte| f32::from(*byte as i8) / 50.0).collect();
            let stride = kind.bytes(columns).expect("whole blocks");
            let matrix = Matrix { kind, rows, columns, stride, data: MatrixData::Memory(stored) };
            let products = matrix.multiply(&QuantizedRows::new(&x, &[&matrix]));
            for (at, product) in products.iter().enumerate() {
                let mut row = Vec::new();
                assert!(matrix.append_row(at % rows, &mut row));
                let x = &x[at / rows * columns..][..columns];
                let exact: f64 = row.iter().zip(x).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                let size: f64 = row.iter().zip(x).map(|(a, b)| f64::from(*a * *b).abs()).sum();
                assert!((f64::from(*product) - exact).abs() < size * 0.01, "{kind:?} {at}: {product} for {exact}");
            }
            // A row computed alone has the very same numbers as among a few others.
            let alone = matrix.multiply(&QuantizedRows::new(&x[2 * columns..3 * columns], &[&matrix]));
            assert_eq!(alone, products[2 * rows..3 * rows]);
            assert!(!matrix.append_row(rows, &mut Vec::new()));
        }
    }

    #[test]
    fn many_rows_have_the_products_of_few_up_to_the_last_digits_whatever_is_beside_them() {
        for kind in [TensorType::Q4K, TensorType::Q6K] {
            let (rows, columns) = (48, 1280);
            let stride = kind.bytes(columns).expect("whole blocks");
            let data = MatrixData::Memory(stored(kind, columns, rows));
            let matrix = Matrix { kind, rows, columns, stride, data };
            let x: Vec<f32> = bytes(3, columns * 64).iter().map(|byte| f32::from(*byte as i8) / 50.0).collect();
            let products = |range: Range<usize>| {
                matrix.multiply(&QuantizedRows::new(&x[range.start * columns..range.end * columns], &[&matrix]))
            };
            let all = products(0..64);
            for at in 0..64 {
                for (many, one) in all[at * rows..][..rows].iter().zip(products(at..at + 1)) {
                    assert!((many - one).abs() <= 1e-4 * one.abs().max(10.0), "{kind:?}: {many} and {one}");
                }
            }
            for range in [0..16, 3..27, 44..64] {
                assert_eq!(products(range.clone()), all[range.start * rows..range.end * rows], "{kind:?} {range:?}");
            }
        }
    }
}
