//! Products of a stored row with rows of 8-bit numbers: plain code for every processor, and vectors where there is AVX2.
//!
//! Each stored block is unpacked once for four rows. Sums are made in the same order in either case of a number of rows,
//! so that a row's product is the same alone and among others.

use super::quantized::{LONG, SHORT, Small, half};

/// Which code this processor runs.
#[derive(Clone, Copy)]
pub(super) struct Kernels {
    vectors: bool,
}

/// Returns the scales of the eight parts of a `Q4_K` block, and what is taken off them.
#[inline(always)]
pub(super) fn scales_of_q4k(block: &[u8]) -> ([u8; 8], [u8; 8]) {
    let packed = &block[4..16];
    let (mut scales, mut mins) = ([0; 8], [0; 8]);
    for part in 0..4 {
        scales[part] = packed[part] & 63;
        mins[part] = packed[part + 4] & 63;
        scales[part + 4] = packed[part + 8] & 15 | packed[part] >> 6 << 4;
        mins[part + 4] = packed[part + 8] >> 4 | packed[part + 4] >> 6 << 4;
    }
    (scales, mins)
}

/// Unpacks the numbers of a `Q6_K` block, which count from -32.
pub(super) fn unpack_q6k(block: &[u8], into: &mut [u8; LONG]) {
    for (at, number) in into.iter_mut().enumerate() {
        let (side, part, place) = (at / 128, at % 128 / 32, at % 32);
        let low = block[side * 64 + part % 2 * 32 + place] >> (part / 2 * 4) & 15;
        let high = block[128 + side * 32 + place] >> (2 * part) & 3;
        *number = low | high << 4;
    }
}

impl Kernels {
    pub(super) fn get() -> Kernels {
        #[cfg(target_arch = "x86_64")]
        let vectors = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
        #[cfg(not(target_arch = "x86_64"))]
        let vectors = false;
        Kernels { vectors }
    }

    /// Multiplies a row of `Q4_K` with each of the rows in `x`.
    pub(super) fn q4k(self, row: &[u8], x: &[Small<LONG>], products: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if self.vectors {
            // SAFETY: the processor was asked.
            return unsafe { avx2::each(row, x, products, 144, avx2::q4k::<4>, avx2::q4k::<1>) };
        }
        plain(row, x, products, 144, |block, x| {
            let (scales, mins) = scales_of_q4k(block);
            let (mut sum, mut least) = (0, 0);
            for part in 0..8 {
                let nibbles = &block[16 + part / 2 * SHORT..][..SHORT];
                let shift = 4 * (part % 2);
                let x = &x.numbers[part * SHORT..][..SHORT];
                let own: i32 = nibbles.iter().zip(x).map(|(a, b)| i32::from(a >> shift & 15) * i32::from(*b)).sum();
                sum += own * i32::from(scales[part]);
            }
            for part in 0..8 {
                least += (i32::from(x.sums[2 * part]) + i32::from(x.sums[2 * part + 1])) * i32::from(mins[part]);
            }
            x.scale * (half(block, 0) * sum as f32 - half(block, 2) * least as f32)
        });
    }

    /// Multiplies a row of `Q6_K` with each of the rows in `x`.
    pub(super) fn q6k(self, row: &[u8], x: &[Small<LONG>], products: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if self.vectors {
            // SAFETY: the processor was asked.
            return unsafe { avx2::each(row, x, products, 210, avx2::q6k::<4>, avx2::q6k::<1>) };
        }
        plain(row, x, products, 210, |block, x| {
            let mut numbers = [0; LONG];
            unpack_q6k(block, &mut numbers);
            let mut sum = 0;
            for part in 0..16 {
                let (numbers, x) = (&numbers[part * 16..][..16], &x.numbers[part * 16..][..16]);
                let own: i32 = numbers.iter().zip(x).map(|(a, b)| (i32::from(*a) - 32) * i32::from(*b)).sum();
                sum += own * i32::from(block[192 + part] as i8);
            }
            x.scale * half(block, 208) * sum as f32
        });
    }

    /// Multiplies a row of `Q8_0` with each of the rows in `x`.
    pub(super) fn q8(self, row: &[u8], x: &[Small<SHORT>], products: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if self.vectors {
            // SAFETY: the processor was asked.
            return unsafe { avx2::each(row, x, products, 34, avx2::q8::<4>, avx2::q8::<1>) };
        }
        plain(row, x, products, 34, |block, x| {
            let sum: i32 = block[2..].iter().zip(&x.numbers).map(|(a, b)| i32::from(*a as i8) * i32::from(*b)).sum();
            x.scale * half(block, 0) * sum as f32
        });
    }

    /// Multiplies two rows of plain numbers.
    pub(super) fn floats(self, a: &[f32], b: &[f32]) -> f32 {
        #[cfg(target_arch = "x86_64")]
        if self.vectors {
            // SAFETY: the processor was asked.
            return unsafe { avx2::floats(a, b) };
        }
        floats(a, b, |a, b, sum| a * b + sum)
    }

    /// Adds `b` times `factor` to `a`.
    pub(super) fn add(self, a: &mut [f32], b: &[f32], factor: f32) {
        #[cfg(target_arch = "x86_64")]
        if self.vectors {
            // SAFETY: the processor was asked.
            return unsafe { avx2::add(a, b, factor) };
        }
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b * factor);
    }
}

fn plain<const N: usize>(
    row: &[u8],
    x: &[Small<N>],
    products: &mut [f32],
    size: usize,
    product: impl Fn(&[u8], &Small<N>) -> f32,
) {
    let blocks = row.len() / size;
    for (x, into) in x.chunks_exact(blocks).zip(products) {
        *into = row.chunks_exact(size).zip(x).map(|(block, x)| product(block, x)).sum();
    }
}

/// Sums in 32 lanes, which compilers turn into vectors.
#[inline(always)]
fn floats(a: &[f32], b: &[f32], add: impl Fn(f32, f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; 32];
    let (a, b) = (a.chunks_exact(32), b.chunks_exact(32));
    let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for lane in 0..32 {
            lanes[lane] = add(a[lane], b[lane], lanes[lane]);
        }
    }
    rest + lanes.iter().sum::<f32>()
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{LONG, SHORT, Small, half, scales_of_q4k};

    type Rows<'a, const N: usize, const COUNT: usize> = [&'a Small<N>; COUNT];

    /// Goes through `x` four rows at a time, and those that are left one by one.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn each<const N: usize>(
        row: &[u8],
        x: &[Small<N>],
        products: &mut [f32],
        size: usize,
        four: unsafe fn(&[u8], Rows<'_, N, 4>, &mut [__m256; 4]),
        one: unsafe fn(&[u8], Rows<'_, N, 1>, &mut [__m256; 1]),
    ) {
        let blocks = row.len() / size;
        let mut fours = products.chunks_exact_mut(4);
        let mut start = 0;
        for products in &mut fours {
            let mut sums = [_mm256_setzero_ps(); 4];
            for (at, block) in row.chunks_exact(size).enumerate() {
                let x = std::array::from_fn(|nth| &x[start + nth * blocks + at]);
                // SAFETY: this function has the features that it asks for.
                unsafe { four(block, x, &mut sums) };
            }
            products.iter_mut().zip(sums).for_each(|(product, sum)| *product = whole(sum));
            start += 4 * blocks;
        }
        for product in fours.into_remainder() {
            let mut sums = [_mm256_setzero_ps()];
            for (block, x) in row.chunks_exact(size).zip(&x[start..]) {
                // SAFETY: as above.
                unsafe { one(block, [x], &mut sums) };
            }
            *product = whole(sums[0]);
            start += blocks;
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn whole(sums: __m256) -> f32 {
        let sums = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums));
        let sums = _mm_add_ps(sums, _mm_movehl_ps(sums, sums));
        _mm_cvtss_f32(_mm_add_ss(sums, _mm_movehdup_ps(sums)))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn load(bytes: &[u8; 32]) -> __m256i {
        // SAFETY: 32 bytes are there, and the load asks for no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn load_small(numbers: &[i8]) -> __m256i {
        let numbers = &numbers[..32];
        // SAFETY: as above.
        unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn load_sums(sums: &[i16; 16]) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_loadu_si256(sums.as_ptr().cast()) }
    }

    #[inline]
    fn piece(block: &[u8], at: usize) -> &[u8; 32] {
        block[at..at + 32].try_into().expect("a slice of 32 bytes is an array of 32 bytes")
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn q4k<const COUNT: usize>(block: &[u8], x: Rows<'_, LONG, COUNT>, into: &mut [__m256; COUNT]) {
        let block = &block[..144];
        let (scale, least) = (half(block, 0), half(block, 2));
        let (scales, mins) = scales_of_q4k(block);
        // What is taken off a part holds for two sums of 16 numbers each.
        let mins = _mm_cvtepu8_epi16(_mm_set_epi64x(0, i64::from_le_bytes(mins)));
        let mins = _mm256_set_m128i(_mm_unpackhi_epi16(mins, mins), _mm_unpacklo_epi16(mins, mins));
        let nibble = _mm256_set1_epi8(15);
        let mut sums = [_mm256_setzero_si256(); COUNT];
        for pair in 0..4 {
            let packed = load(piece(block, 16 + pair * 32));
            let (low, high) =
                (_mm256_and_si256(packed, nibble), _mm256_and_si256(_mm256_srli_epi16::<4>(packed), nibble));
            let low_scale = _mm256_set1_epi16(i16::from(scales[2 * pair]));
            let high_scale = _mm256_set1_epi16(i16::from(scales[2 * pair + 1]));
            for (sum, x) in sums.iter_mut().zip(x) {
                let first = _mm256_maddubs_epi16(low, load_small(&x.numbers[pair * 64..]));
                let second = _mm256_maddubs_epi16(high, load_small(&x.numbers[pair * 64 + 32..]));
                let both = _mm256_add_epi32(_mm256_madd_epi16(first, low_scale), _mm256_madd_epi16(second, high_scale));
                *sum = _mm256_add_epi32(*sum, both);
            }
        }
        for ((into, sum), x) in into.iter_mut().zip(sums).zip(x) {
            let off = _mm256_cvtepi32_ps(_mm256_madd_epi16(mins, load_sums(&x.sums)));
            let sum = _mm256_cvtepi32_ps(sum);
            *into = _mm256_fmadd_ps(_mm256_set1_ps(x.scale * scale), sum, *into);
            *into = _mm256_fnmadd_ps(_mm256_set1_ps(x.scale * least), off, *into);
        }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn q6k<const COUNT: usize>(block: &[u8], x: Rows<'_, LONG, COUNT>, into: &mut [__m256; COUNT]) {
        let block = &block[..210];
        let scale = half(block, 208);
        let nibble = _mm256_set1_epi8(15);
        let upper = _mm256_set1_epi8(0x30);
        let mut sums = [_mm256_setzero_si256(); COUNT];
        for side in 0..2 {
            let (first, second) = (load(piece(block, side * 64)), load(piece(block, side * 64 + 32)));
            let bits = load(piece(block, 128 + side * 32));
            let numbers = [
                _mm256_or_si256(_mm256_and_si256(first, nibble), _mm256_and_si256(_mm256_slli_epi16::<4>(bits), upper)),
                _mm256_or_si256(
                    _mm256_and_si256(second, nibble),
                    _mm256_and_si256(_mm256_slli_epi16::<2>(bits), upper),
                ),
                _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16::<4>(first), nibble), _mm256_and_si256(bits, upper)),
                _mm256_or_si256(
                    _mm256_and_si256(_mm256_srli_epi16::<4>(second), nibble),
                    _mm256_and_si256(_mm256_srli_epi16::<2>(bits), upper),
                ),
            ];
            for (part, numbers) in numbers.into_iter().enumerate() {
                let own = &block[192 + side * 8 + part * 2..][..2];
                let scales =
                    _mm256_set_m128i(_mm_set1_epi16(i16::from(own[1] as i8)), _mm_set1_epi16(i16::from(own[0] as i8)));
                for (sum, x) in sums.iter_mut().zip(x) {
                    let small = load_small(&x.numbers[side * 128 + part * 32..]);
                    let product = _mm256_madd_epi16(_mm256_maddubs_epi16(numbers, small), scales);
                    *sum = _mm256_add_epi32(*sum, product);
                }
            }
        }
        // The numbers count from -32.
        // SAFETY: 16 bytes are there, and the load asks for no alignment.
        let scales = _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(block[192..208].as_ptr().cast()) });
        for ((into, sum), x) in into.iter_mut().zip(sums).zip(x) {
            let off = _mm256_slli_epi32::<5>(_mm256_madd_epi16(scales, load_sums(&x.sums)));
            let sum = _mm256_cvtepi32_ps(_mm256_sub_epi32(sum, off));
            *into = _mm256_fmadd_ps(_mm256_set1_ps(x.scale * scale), sum, *into);
        }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn q8<const COUNT: usize>(block: &[u8], x: Rows<'_, SHORT, COUNT>, into: &mut [__m256; COUNT]) {
        let scale = half(block, 0);
        let numbers = load(piece(block, 2));
        let sizes = _mm256_sign_epi8(numbers, numbers);
        for (into, x) in into.iter_mut().zip(x) {
            let signed = _mm256_sign_epi8(load_small(&x.numbers), numbers);
            let sum = _mm256_madd_epi16(_mm256_maddubs_epi16(sizes, signed), _mm256_set1_epi16(1));
            *into = _mm256_fmadd_ps(_mm256_set1_ps(x.scale * scale), _mm256_cvtepi32_ps(sum), *into);
        }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn floats(a: &[f32], b: &[f32]) -> f32 {
        super::floats(a, b, |a, b, sum| a.mul_add(b, sum))
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn add(a: &mut [f32], b: &[f32], factor: f32) {
        a.iter_mut().zip(b).for_each(|(a, b)| *a = b.mul_add(factor, *a));
    }
}

#[cfg(test)]
mod tests {
    use super::super::quantized::tests::{bytes, stored};
    use super::super::quantized::{Kind, Small};
    use super::*;

    fn rows<const N: usize>(count: usize) -> Vec<Small<N>> {
        let row = |seed: usize| {
            let mut small = Small { numbers: [0; N], sums: [0; 16], scale: 0.02 + seed as f32 * 0.001 };
            for (at, byte) in bytes(seed as u64 + 100, N).into_iter().enumerate() {
                small.numbers[at] = (byte as i8).max(-127);
                small.sums[at / 16] += i16::from(small.numbers[at]);
            }
            small
        };
        (0..count).map(row).collect()
    }

    fn compare<const N: usize>(kind: Kind, kernel: fn(Kernels, &[u8], &[Small<N>], &mut [f32])) {
        let blocks = 3;
        let row = stored(kind, N * blocks, 1);
        let x = rows::<N>(blocks * 7);
        let products = |vectors| {
            let mut products = [0.0; 7];
            kernel(Kernels { vectors }, &row, &x, &mut products);
            products
        };
        for (plain, vector) in products(false).into_iter().zip(products(Kernels::get().vectors)) {
            assert!((plain - vector).abs() <= 1e-4 * plain.abs().max(1.0), "{kind:?}: {plain} and {vector}");
        }
    }

    #[test]
    fn vectors_give_what_plain_code_gives() {
        compare(Kind::Q4K, Kernels::q4k);
        compare(Kind::Q6K, Kernels::q6k);
        compare(Kind::Q8_0, Kernels::q8);
        let a: Vec<f32> = bytes(1, 77).into_iter().map(f32::from).collect();
        let b: Vec<f32> = bytes(2, 77).into_iter().map(f32::from).collect();
        let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        assert!((Kernels::get().floats(&a, &b) - exact).abs() <= exact * 1e-6);
    }
}
