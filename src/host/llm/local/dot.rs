//! Products of stored rows with rows of 8-bit numbers: scalar code for every processor, and vector code for AVX2 and for
//! AVX-512 with VNNI.
//!
//! Each stored block is unpacked once for four rows of `x`. The order of summation does not depend on the number of rows,
//! so that a row has the same product alone and among others.

use super::block::{LONG, SHORT, Small, half};

/// Stored rows, one after another.
#[derive(Clone, Copy)]
pub(super) struct StoredRows<'a> {
    pub(super) bytes: &'a [u8],
    /// How many bytes each row takes.
    pub(super) stride: usize,
}

/// The code that this processor runs.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) enum Kernels {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Returns the scales and the minimums of the eight parts of a `Q4_K` block: 6 bits each, packed four at a time.
#[inline(always)]
pub(super) fn scales_of_q4k(block: &[u8]) -> ([u8; 8], [u8; 8]) {
    let word = |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let (first, second, third) = (word(4), word(8), word(12));
    let (low, high) = (0x0f0f_0f0f, 0x3030_3030);
    let both = |near: u32, far: u32| u64::from(near) | u64::from(far) << 32;
    let scales = both(first & (low | high), third & low | first >> 2 & high);
    let mins = both(second & (low | high), third >> 4 & low | second >> 2 & high);
    (scales.to_le_bytes(), mins.to_le_bytes())
}

/// Unpacks the numbers of a `Q6_K` block. They are stored with an offset of 32, which is not subtracted here.
pub(super) fn unpack_q6k(block: &[u8], into: &mut [u8; LONG]) {
    for (at, number) in into.iter_mut().enumerate() {
        let (side, part, place) = (at / 128, at % 128 / 32, at % 32);
        let low = block[side * 64 + part % 2 * 32 + place] >> (part / 2 * 4) & 15;
        let high = block[128 + side * 32 + place] >> (2 * part) & 3;
        *number = low | high << 4;
    }
}

impl Kernels {
    pub(super) fn detect() -> Kernels {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            let wide = std::is_x86_feature_detected!("avx512bw") && std::is_x86_feature_detected!("avx512vnni");
            return if wide { Kernels::Avx512 } else { Kernels::Avx2 };
        }
        Kernels::Plain
    }

    /// Multiplies each row of `Q4_K` with each row of `x`. The products of the first stored row come first.
    pub(super) fn q4k(self, rows: StoredRows<'_>, x: &[Small<LONG>], products: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        match self {
            Kernels::Plain => {}
            Kernels::Avx2 => return avx2::multiply_rows(rows, x, products, (avx2::q4k_four, avx2::q4k_one)),
            Kernels::Avx512 => return avx2::multiply_rows(rows, x, products, (avx512::q4k_four, avx512::q4k_one)),
        }
        multiply_scalar(rows, x, products, 144, |block, x| {
            let (scales, mins) = scales_of_q4k(block);
            let (mut sum, mut min_sum) = (0, 0);
            for part in 0..8 {
                let nibbles = &block[16 + part / 2 * SHORT..][..SHORT];
                let shift = 4 * (part % 2);
                let x = &x.numbers[part * SHORT..][..SHORT];
                let part_sum: i32 =
                    nibbles.iter().zip(x).map(|(a, b)| i32::from(a >> shift & 15) * i32::from(*b)).sum();
                sum += part_sum * i32::from(scales[part]);
            }
            for (sums, min) in x.sums.as_chunks::<2>().0.iter().zip(mins) {
                min_sum += (i32::from(sums[0]) + i32::from(sums[1])) * i32::from(min);
            }
            x.scale * (half(block, 0) * sum as f32 - half(block, 2) * min_sum as f32)
        });
    }

    /// Multiplies each row of `Q6_K` with each row of `x`.
    pub(super) fn q6k(self, rows: StoredRows<'_>, x: &[Small<LONG>], products: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        match self {
            Kernels::Plain => {}
            Kernels::Avx2 => return avx2::multiply_rows(rows, x, products, (avx2::q6k_four, avx2::q6k_one)),
            Kernels::Avx512 => return avx2::multiply_rows(rows, x, products, (avx512::q6k_four, avx512::q6k_one)),
        }
        multiply_scalar(rows, x, products, 210, |block, x| {
            let mut numbers = [0; LONG];
            unpack_q6k(block, &mut numbers);
            let mut sum = 0;
            for part in 0..16 {
                let (numbers, x) = (&numbers[part * 16..][..16], &x.numbers[part * 16..][..16]);
                let part_sum: i32 = numbers.iter().zip(x).map(|(a, b)| (i32::from(*a) - 32) * i32::from(*b)).sum();
                sum += part_sum * i32::from(block[192 + part] as i8);
            }
            x.scale * half(block, 208) * sum as f32
        });
    }

    /// Multiplies each row of `Q8_0` with each row of `x`.
    pub(super) fn q8(self, rows: StoredRows<'_>, x: &[Small<SHORT>], products: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if self != Kernels::Plain {
            return avx2::multiply_rows(rows, x, products, (avx2::q8_four, avx2::q8_one));
        }
        multiply_scalar(rows, x, products, 34, |block, x| {
            let sum: i32 = block[2..].iter().zip(&x.numbers).map(|(a, b)| i32::from(*a as i8) * i32::from(*b)).sum();
            x.scale * half(block, 0) * sum as f32
        });
    }

    /// Returns the dot product of two rows of floats.
    pub(super) fn floats(self, a: &[f32], b: &[f32]) -> f32 {
        #[cfg(target_arch = "x86_64")]
        if self != Kernels::Plain {
            // SAFETY: the processor was asked.
            return unsafe { avx2::floats(a, b) };
        }
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// Adds `b` times `factor` to `a`.
    pub(super) fn add(self, a: &mut [f32], b: &[f32], factor: f32) {
        #[cfg(target_arch = "x86_64")]
        if self != Kernels::Plain {
            // SAFETY: the processor was asked.
            return unsafe { avx2::add(a, b, factor) };
        }
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b * factor);
    }
}

fn multiply_scalar<const N: usize>(
    rows: StoredRows,
    x: &[Small<N>],
    products: &mut [f32],
    size: usize,
    product: impl Fn(&[u8], &Small<N>) -> f32,
) {
    let count = products.len() / (rows.bytes.len() / rows.stride);
    for (row, products) in rows.bytes.chunks_exact(rows.stride).zip(products.chunks_exact_mut(count)) {
        for (x, into) in x.chunks_exact(x.len() / count).zip(products) {
            *into = row.chunks_exact(size).zip(x).map(|(block, x)| product(block, x)).sum();
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{LONG, SHORT, Small, StoredRows, half, scales_of_q4k};

    type Product<const N: usize, const COUNT: usize> = unsafe fn(&[u8], [&[Small<N>]; COUNT]) -> [f32; COUNT];

    /// Goes through `x` four rows at a time, so that these rows stay in the nearest cache for all stored rows, and then
    /// through the remaining rows.
    pub(super) fn multiply_rows<const N: usize>(
        rows: StoredRows,
        x: &[Small<N>],
        products: &mut [f32],
        (four, one): (Product<N, 4>, Product<N, 1>),
    ) {
        let count = products.len() / (rows.bytes.len() / rows.stride);
        let x: Vec<&[Small<N>]> = x.chunks_exact(x.len() / count).collect();
        let (fours, ones) = x.as_chunks::<4>();
        for (at, four_of_x) in fours.iter().enumerate() {
            for (row, products) in rows.bytes.chunks_exact(rows.stride).zip(products.chunks_exact_mut(count)) {
                // SAFETY: `Kernels::detect` returns a vector kernel only if the processor has its instructions.
                products[4 * at..][..4].copy_from_slice(&unsafe { four(row, *four_of_x) });
            }
        }
        for (at, one_of_x) in ones.iter().enumerate() {
            for (row, products) in rows.bytes.chunks_exact(rows.stride).zip(products.chunks_exact_mut(count)) {
                // SAFETY: as above.
                [products[4 * fours.len() + at]] = unsafe { one(row, [one_of_x]) };
            }
        }
    }

    /// Prefetches the bytes that are read a little later: processors themselves do not look beyond a memory page.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn ahead<const N: usize>(block: &[u8; N]) {
        let later = block.as_ptr().wrapping_add(2048);
        for line in 0..N.div_ceil(64) {
            // A prefetch reads nothing, and does nothing where there is no memory.
            _mm_prefetch::<_MM_HINT_T0>(later.wrapping_add(line * 64).cast());
        }
    }

    /// Returns the sum of the eight numbers.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn horizontal_sum(sums: __m256) -> f32 {
        let sums = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums));
        let sums = _mm_add_ps(sums, _mm_movehl_ps(sums, sums));
        _mm_cvtss_f32(_mm_add_ss(sums, _mm_movehdup_ps(sums)))
    }

    /// Loads 32 bytes of a block of `N` bytes.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn load<const N: usize>(block: &[u8; N], at: usize) -> __m256i {
        debug_assert!(at + 32 <= N);
        // SAFETY: each caller's `at` leaves 32 bytes, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(block.as_ptr().add(at).cast()) }
    }

    /// Loads 32 numbers of 8 bits.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn small<const N: usize>(x: &Small<N>, at: usize) -> __m256i {
        debug_assert!(at + 32 <= N);
        // SAFETY: as above.
        unsafe { _mm256_loadu_si256(x.numbers.as_ptr().add(at).cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn sums<const N: usize>(x: &Small<N>) -> __m256i {
        // SAFETY: `x.sums` has 16 numbers of 16 bits, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(x.sums.as_ptr().cast()) }
    }

    /// Defines the product functions of a format, for four rows and for one. Each row has variables of its own, so that
    /// the compiler keeps their sums in registers even if it optimises for size.
    macro_rules! products {
        ($four:ident, $one:ident, $body:ident) => {
            $body!($four, 4: 0 a whole_a sum_a, 1 b whole_b sum_b, 2 c whole_c sum_c, 3 d whole_d sum_d);
            $body!($one, 1: 0 a whole_a sum_a);
        };
    }

    macro_rules! q4k {
        ($name:ident, $count:literal: $($at:literal $x:ident $whole:ident $sum:ident),+) => {
            #[target_feature(enable = "avx2,fma")]
            pub(super) fn $name(row: &[u8], x: [&[Small<LONG>]; $count]) -> [f32; $count] {
                let nibble = _mm256_set1_epi8(15);
                $(let mut $whole = _mm256_setzero_ps();)+
                for (nth, block) in row.as_chunks::<144>().0.iter().enumerate() {
                    ahead(block);
                    let (scale, min_scale) = (half(block, 0), half(block, 2));
                    let (scales, mins) = scales_of_q4k(block);
                    // The minimum of a part applies to two sums of 16 numbers each.
                    let mins = _mm_cvtepu8_epi16(_mm_set_epi64x(0, i64::from_le_bytes(mins)));
                    let mins = _mm256_set_m128i(_mm_unpackhi_epi16(mins, mins), _mm_unpacklo_epi16(mins, mins));
                    $(let $x = &x[$at][nth];)+
                    $(let mut $sum = _mm256_setzero_si256();)+
                    for pair in 0..4 {
                        let packed = load(block, 16 + pair * 32);
                        let low = _mm256_and_si256(packed, nibble);
                        let high = _mm256_and_si256(_mm256_srli_epi16::<4>(packed), nibble);
                        let low_scale = _mm256_set1_epi16(i16::from(scales[2 * pair]));
                        let high_scale = _mm256_set1_epi16(i16::from(scales[2 * pair + 1]));
                        $(
                            let first = _mm256_maddubs_epi16(low, small($x, pair * 64));
                            let second = _mm256_maddubs_epi16(high, small($x, pair * 64 + 32));
                            $sum = _mm256_add_epi32($sum, _mm256_madd_epi16(first, low_scale));
                            $sum = _mm256_add_epi32($sum, _mm256_madd_epi16(second, high_scale));
                        )+
                    }
                    $(
                        let min_sums = _mm256_cvtepi32_ps(_mm256_madd_epi16(mins, sums($x)));
                        $whole = _mm256_fmadd_ps(_mm256_set1_ps($x.scale * scale), _mm256_cvtepi32_ps($sum), $whole);
                        $whole = _mm256_fnmadd_ps(_mm256_set1_ps($x.scale * min_scale), min_sums, $whole);
                    )+
                }
                [$(horizontal_sum($whole)),+]
            }
        };
    }
    pub(super) use products;
    products!(q4k_four, q4k_one, q4k);

    macro_rules! q6k {
        ($name:ident, $count:literal: $($at:literal $x:ident $whole:ident $sum:ident),+) => {
            #[target_feature(enable = "avx2,fma")]
            pub(super) fn $name(row: &[u8], x: [&[Small<LONG>]; $count]) -> [f32; $count] {
                let nibble = _mm256_set1_epi8(15);
                let upper = _mm256_set1_epi8(0x30);
                $(let mut $whole = _mm256_setzero_ps();)+
                for (nth, block) in row.as_chunks::<210>().0.iter().enumerate() {
                    ahead(block);
                    let scale = half(block, 208);
                    $(let $x = &x[$at][nth];)+
                    $(let mut $sum = _mm256_setzero_si256();)+
                    for side in 0..2 {
                        let mut bits = load(block, 128 + side * 32);
                        let (mut low, mut next) = (load(block, side * 64), load(block, side * 64 + 32));
                        for part in 0..4 {
                            // Each byte holds two bits for each of the four parts, the first part in the lowest.
                            let high = _mm256_and_si256(_mm256_slli_epi16::<4>(bits), upper);
                            let numbers = _mm256_or_si256(_mm256_and_si256(low, nibble), high);
                            bits = _mm256_srli_epi16::<2>(bits);
                            // The low nibbles of both halves come first, then the high ones.
                            (low, next) = (next, _mm256_srli_epi16::<4>(low));
                            let scale_at = 192 + side * 8 + part * 2;
                            let scales = _mm256_set_m128i(
                                _mm_set1_epi16(i16::from(block[scale_at + 1] as i8)),
                                _mm_set1_epi16(i16::from(block[scale_at] as i8)),
                            );
                            $(
                                let product = _mm256_maddubs_epi16(numbers, small($x, side * 128 + part * 32));
                                $sum = _mm256_add_epi32($sum, _mm256_madd_epi16(product, scales));
                            )+
                        }
                    }
                    // The numbers count from -32.
                    // SAFETY: 16 bytes are there, and the load asks for no alignment.
                    let scales = _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(block.as_ptr().add(192).cast()) });
                    $(
                        let offset = _mm256_slli_epi32::<5>(_mm256_madd_epi16(scales, sums($x)));
                        let sum = _mm256_cvtepi32_ps(_mm256_sub_epi32($sum, offset));
                        $whole = _mm256_fmadd_ps(_mm256_set1_ps($x.scale * scale), sum, $whole);
                    )+
                }
                [$(horizontal_sum($whole)),+]
            }
        };
    }
    products!(q6k_four, q6k_one, q6k);

    macro_rules! q8 {
        ($name:ident, $count:literal: $($at:literal $x:ident $whole:ident $sum:ident),+) => {
            #[target_feature(enable = "avx2,fma")]
            pub(super) fn $name(row: &[u8], x: [&[Small<SHORT>]; $count]) -> [f32; $count] {
                $(let mut $whole = _mm256_setzero_ps();)+
                for (nth, block) in row.as_chunks::<34>().0.iter().enumerate() {
                    ahead(block);
                    let scale = half(block, 0);
                    let numbers = load(block, 2);
                    let sizes = _mm256_sign_epi8(numbers, numbers);
                    $(
                        let $x = &x[$at][nth];
                        let $sum = _mm256_maddubs_epi16(sizes, _mm256_sign_epi8(small($x, 0), numbers));
                        let $sum = _mm256_cvtepi32_ps(_mm256_madd_epi16($sum, _mm256_set1_epi16(1)));
                        $whole = _mm256_fmadd_ps(_mm256_set1_ps($x.scale * scale), $sum, $whole);
                    )+
                }
                [$(horizontal_sum($whole)),+]
            }
        };
    }
    products!(q8_four, q8_one, q8);

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn floats(a: &[f32], b: &[f32]) -> f32 {
        let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
        let (mut first, mut second) = (_mm256_setzero_ps(), _mm256_setzero_ps());
        for (a, b) in a.iter().zip(b) {
            first = _mm256_fmadd_ps(eight(a, 0), eight(b, 0), first);
            second = _mm256_fmadd_ps(eight(a, 8), eight(b, 8), second);
        }
        let rest: f32 = rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum();
        horizontal_sum(_mm256_add_ps(first, second)) + rest
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn add(a: &mut [f32], b: &[f32], factor: f32) {
        let ((a, rest_a), (b, rest_b)) = (a.as_chunks_mut::<16>(), b.as_chunks::<16>());
        let factors = _mm256_set1_ps(factor);
        for (a, b) in a.iter_mut().zip(b) {
            let first = _mm256_fmadd_ps(eight(b, 0), factors, eight(a, 0));
            let second = _mm256_fmadd_ps(eight(b, 8), factors, eight(a, 8));
            // SAFETY: `a` has 16 numbers: eight from either place.
            unsafe {
                _mm256_storeu_ps(a.as_mut_ptr(), first);
                _mm256_storeu_ps(a.as_mut_ptr().add(8), second);
            }
        }
        rest_a.iter_mut().zip(rest_b).for_each(|(a, b)| *a += b * factor);
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn eight(numbers: &[f32; 16], at: usize) -> __m256 {
        debug_assert!(at <= 8);
        // SAFETY: `at` is 0 or 8.
        unsafe { _mm256_loadu_ps(numbers.as_ptr().add(at)) }
    }
}

/// The same products in registers of twice the width, on processors that add products of 16 bits in one step.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::avx2::{ahead, horizontal_sum, load, products, sums};
    use super::{LONG, Small, half, scales_of_q4k};

    /// Loads 64 numbers of 8 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma")]
    fn small<const N: usize>(x: &Small<N>, at: usize) -> __m512i {
        debug_assert!(at + 64 <= N);
        // SAFETY: each caller's `at` leaves 64 bytes, and the load needs no alignment.
        unsafe { _mm512_loadu_si512(x.numbers.as_ptr().add(at).cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma")]
    fn both(first: __m256i, second: __m256i) -> __m512i {
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), second)
    }

    /// Adds the upper half to the lower one.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma")]
    fn halves(sum: __m512i) -> __m256i {
        _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64::<1>(sum))
    }

    macro_rules! q4k {
        ($name:ident, $count:literal: $($at:literal $x:ident $whole:ident $sum:ident),+) => {
            #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma")]
            pub(super) fn $name(row: &[u8], x: [&[Small<LONG>]; $count]) -> [f32; $count] {
                let nibble = _mm256_set1_epi8(15);
                $(let mut $whole = _mm256_setzero_ps();)+
                for (nth, block) in row.as_chunks::<144>().0.iter().enumerate() {
                    ahead(block);
                    let (scale, min_scale) = (half(block, 0), half(block, 2));
                    let (scales, mins) = scales_of_q4k(block);
                    let scales = _mm_cvtepu8_epi16(_mm_set_epi64x(0, i64::from_le_bytes(scales)));
                    let scales = _mm512_castsi128_si512(scales);
                    let mins = _mm_cvtepu8_epi16(_mm_set_epi64x(0, i64::from_le_bytes(mins)));
                    let mins = _mm256_set_m128i(_mm_unpackhi_epi16(mins, mins), _mm_unpacklo_epi16(mins, mins));
                    $(let $x = &x[$at][nth];)+
                    $(let mut $sum = _mm512_setzero_si512();)+
                    let mut spread = both(_mm256_setzero_si256(), _mm256_set1_epi16(1));
                    for pair in 0..4 {
                        let packed = load(block, 16 + pair * 32);
                        let high = _mm256_and_si256(_mm256_srli_epi16::<4>(packed), nibble);
                        let numbers = both(_mm256_and_si256(packed, nibble), high);
                        let part_scales = _mm512_permutexvar_epi16(spread, scales);
                        spread = _mm512_add_epi16(spread, _mm512_set1_epi16(2));
                        $($sum = _mm512_dpwssd_epi32($sum, _mm512_maddubs_epi16(numbers, small($x, pair * 64)), part_scales);)+
                    }
                    $(
                        let min_sums = _mm256_cvtepi32_ps(_mm256_madd_epi16(mins, sums($x)));
                        let sum = _mm256_cvtepi32_ps(halves($sum));
                        $whole = _mm256_fmadd_ps(_mm256_set1_ps($x.scale * scale), sum, $whole);
                        $whole = _mm256_fnmadd_ps(_mm256_set1_ps($x.scale * min_scale), min_sums, $whole);
                    )+
                }
                [$(horizontal_sum($whole)),+]
            }
        };
    }
    products!(q4k_four, q4k_one, q4k);

    macro_rules! q6k {
        ($name:ident, $count:literal: $($at:literal $x:ident $whole:ident $sum:ident),+) => {
            #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma")]
            pub(super) fn $name(row: &[u8], x: [&[Small<LONG>]; $count]) -> [f32; $count] {
                let nibble = _mm512_set1_epi8(15);
                let upper = _mm512_set1_epi8(0x30);
                $(let mut $whole = _mm256_setzero_ps();)+
                for (nth, block) in row.as_chunks::<210>().0.iter().enumerate() {
                    ahead(block);
                    let scale = half(block, 208);
                    // SAFETY: 16 bytes are there, and the load asks for no alignment.
                    let scales = _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(block.as_ptr().add(192).cast()) });
                    let all_scales = _mm512_castsi256_si512(scales);
                    // Each scale is for sixteen numbers, which are eight products by now.
                    let mut spread = _mm512_set_epi64(
                        0x0003_0003_0003_0003, 0x0003_0003_0003_0003, 0x0002_0002_0002_0002, 0x0002_0002_0002_0002,
                        0x0001_0001_0001_0001, 0x0001_0001_0001_0001, 0, 0,
                    );
                    $(let $x = &x[$at][nth];)+
                    $(let mut $sum = _mm512_setzero_si512();)+
                    for side in 0..2 {
                        let bits = load(block, 128 + side * 32);
                        // The first two parts of a side are in the low nibbles, the other two in the high ones.
                        let mut low = both(load(block, side * 64), load(block, side * 64 + 32));
                        let mut bits = both(bits, _mm256_srli_epi16::<2>(bits));
                        for pair in 0..2 {
                            let high = _mm512_and_si512(_mm512_slli_epi16::<4>(bits), upper);
                            let numbers = _mm512_or_si512(_mm512_and_si512(low, nibble), high);
                            low = _mm512_srli_epi16::<4>(low);
                            bits = _mm512_srli_epi16::<4>(bits);
                            let part_scales = _mm512_permutexvar_epi16(spread, all_scales);
                            spread = _mm512_add_epi16(spread, _mm512_set1_epi16(4));
                            $(
                                let product = _mm512_maddubs_epi16(numbers, small($x, side * 128 + pair * 64));
                                $sum = _mm512_dpwssd_epi32($sum, product, part_scales);
                            )+
                        }
                    }
                    // The numbers count from -32.
                    $(
                        let offset = _mm256_slli_epi32::<5>(_mm256_madd_epi16(scales, sums($x)));
                        let sum = _mm256_cvtepi32_ps(_mm256_sub_epi32(halves($sum), offset));
                        $whole = _mm256_fmadd_ps(_mm256_set1_ps($x.scale * scale), sum, $whole);
                    )+
                }
                [$(horizontal_sum($whole)),+]
            }
        };
    }
    products!(q6k_four, q6k_one, q6k);
}

#[cfg(test)]
mod tests {
    use super::super::block::Small;
    use super::super::quantized::TensorType;
    use super::super::quantized::tests::{bytes, stored};
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

    /// Returns all kernels that this processor can run.
    fn known() -> Vec<Kernels> {
        #[cfg(target_arch = "x86_64")]
        let all = vec![Kernels::Plain, Kernels::Avx2, Kernels::Avx512];
        #[cfg(not(target_arch = "x86_64"))]
        let all = vec![Kernels::Plain];
        all.into_iter().filter(|kernels| *kernels <= Kernels::detect()).collect()
    }

    fn compare<const N: usize>(kind: TensorType, kernel: fn(Kernels, StoredRows<'_>, &[Small<N>], &mut [f32])) {
        let blocks = 3;
        let bytes = stored(kind, N * blocks, 3);
        let rows_of = StoredRows { bytes: &bytes, stride: bytes.len() / 3 };
        let x = rows::<N>(blocks * 7);
        let products = |kernels| {
            let mut products = [0.0; 21];
            kernel(kernels, rows_of, &x, &mut products);
            products
        };
        for kernels in known() {
            for (plain, vector) in products(Kernels::Plain).into_iter().zip(products(kernels)) {
                let far = (plain - vector).abs() > 1e-4 * plain.abs().max(1.0);
                assert!(!far, "{kind:?}, {kernels:?}: {plain} and {vector}");
            }
        }
    }

    #[test]
    fn vectors_give_what_plain_code_gives() {
        compare(TensorType::Q4K, Kernels::q4k);
        compare(TensorType::Q6K, Kernels::q6k);
        compare(TensorType::Q8_0, Kernels::q8);
        let a: Vec<f32> = bytes(1, 77).into_iter().map(f32::from).collect();
        let b: Vec<f32> = bytes(2, 77).into_iter().map(f32::from).collect();
        let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        assert!((Kernels::detect().floats(&a, &b) - exact).abs() <= exact * 1e-6);
    }
}
