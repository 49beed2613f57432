//! Products of sixteen stored rows with many rows of 8-bit numbers, for processors with AVX-512 and VNNI: how prompts are
//! read.
//!
//! A block of sixteen stored rows is unpacked once, so that one register holds four numbers of each row, and one
//! instruction multiplies them with four numbers of a row of `x`. The sums of the sixteen rows lie side by side and are
//! never added up across. Registers have names of their own instead of places in arrays, so that the compiler keeps
//! them in registers even if it optimises for size.

use std::arch::x86_64::*;

use super::block::{LONG, Small};
use super::dot::{Kernels, StoredRows, scales_of_q4k};

/// How many stored rows are multiplied together.
pub(super) const ROWS: usize = 16;
/// From how many rows of `x` on this is done: unpacking pays only for so many.
const LEAST: usize = 16;

/// Tells whether so many rows are multiplied so on this processor.
pub(super) fn is_used(count: usize) -> bool {
    count >= LEAST && Kernels::detect() == Kernels::Avx512
}

/// Returns how many places products of so many rows need.
pub(super) fn places(count: usize) -> usize {
    count.next_multiple_of(8)
}

/// What products need of a block of `x` beside its numbers.
#[derive(Clone)]
pub(super) struct Sums {
    of_sixteen: [f32; 16],
    of_thirty_two: [f32; 8],
}

impl Sums {
    pub(super) fn of(x: &Small<LONG>) -> Sums {
        let pair = |at: usize| f32::from(x.sums[2 * at]) + f32::from(x.sums[2 * at + 1]);
        Sums { of_sixteen: x.sums.map(f32::from), of_thirty_two: std::array::from_fn(pair) }
    }
}

/// Sixteen unpacked blocks: four numbers of each row, one row after the other, then the next four.
#[repr(align(64))]
struct Tile {
    numbers: [[u8; 64]; LONG / 4],
    /// The factors of the parts, by part and row: 8 parts in `Q4_K`, 16 in `Q6_K`.
    scales: [[f32; ROWS]; 16],
    /// What is to be taken away for each unit of a part's sum.
    offsets: [[f32; ROWS]; 16],
}

/// The formats that are multiplied so.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Format {
    Q4K,
    Q6K,
}

/// Multiplies sixteen stored rows with each row of `x`: of each of its rows, the sixteen products come together. There are
/// places for whole eights of rows.
pub(super) fn multiply(
    format: Format,
    rows: StoredRows<'_>,
    (x, sums): (&[Small<LONG>], &[Sums]),
    count: usize,
    products: &mut [[f32; ROWS]],
) {
    let size = if format == Format::Q4K { 144 } else { 210 };
    let blocks = rows.stride / size;
    let is_whole =
        rows.stride.is_multiple_of(size) && rows.bytes.len() == ROWS * rows.stride && x.len() == blocks * count;
    assert!(is_whole && x.len() == sums.len() && count > 0 && products.len() == places(count));
    let mut tile = Tile { numbers: [[0; 64]; LONG / 4], scales: [[0.0; ROWS]; 16], offsets: [[0.0; ROWS]; 16] };
    products.fill([0.0; ROWS]);
    for nth in 0..blocks {
        let block = |row: usize| &rows.bytes[row * rows.stride + nth * size..][..size];
        let stored: [&[u8]; ROWS] = std::array::from_fn(block);
        // SAFETY: `Kernels::detect` has asked the processor before anything comes here.
        unsafe {
            match format {
                Format::Q4K => unpack_q4k(&stored, &mut tile),
                Format::Q6K => unpack_q6k(&stored, &mut tile),
            }
        }
        for (eighth, products) in products.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            // Where rows are lacking, the last one fills the places.
            let at = |row: usize| (eighth * 8 + row).min(count - 1) * blocks + nth;
            let x: [(&Small<LONG>, &Sums); 8] = std::array::from_fn(|row| (&x[at(row)], &sums[at(row)]));
            // SAFETY: as above.
            unsafe {
                match format {
                    Format::Q4K => eight_q4k(&tile, &x, products),
                    Format::Q6K => eight_q6k(&tile, &x, products),
                }
            }
        }
    }
}

macro_rules! load {
    ($from:expr) => {
        // SAFETY: what is loaded has 64 bytes, and the load needs no alignment.
        unsafe { _mm512_loadu_si512(($from).cast()) }
    };
}

/// Turns sixteen rows of 64 bytes into sixteen registers of four bytes of each row.
macro_rules! transposed {
    ($blocks:ident, $at:expr) => {{
        let mut rows = [_mm512_setzero_si512(); 16];
        for (row, block) in rows.iter_mut().zip($blocks) {
            debug_assert!($at + 64 <= block.len());
            *row = load!(block.as_ptr().wrapping_add($at));
        }
        transpose(&mut rows);
        rows
    }};
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn transpose(rows: &mut [__m512i; 16]) {
    // Pairs of rows, then of pairs, then of quarters of registers, then of halves.
    let mut next = [_mm512_setzero_si512(); 16];
    for at in 0..8 {
        let (a, b) = (rows[2 * at], rows[2 * at + 1]);
        next[2 * at] = _mm512_unpacklo_epi32(a, b);
        next[2 * at + 1] = _mm512_unpackhi_epi32(a, b);
    }
    for at in 0..4 {
        let [a, b, c, d] = [next[4 * at], next[4 * at + 1], next[4 * at + 2], next[4 * at + 3]];
        rows[4 * at] = _mm512_unpacklo_epi64(a, c);
        rows[4 * at + 1] = _mm512_unpackhi_epi64(a, c);
        rows[4 * at + 2] = _mm512_unpacklo_epi64(b, d);
        rows[4 * at + 3] = _mm512_unpackhi_epi64(b, d);
    }
    // Now `rows[4 * g + i]` has, in its quarter q, column 4 * q + i of the rows 4 * g to 4 * g + 3.
    for at in 0..4 {
        let [a, b, c, d] = [rows[at], rows[4 + at], rows[8 + at], rows[12 + at]];
        let (low, high) = (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xdd>(a, b));
        let (low_next, high_next) = (_mm512_shuffle_i32x4::<0x88>(c, d), _mm512_shuffle_i32x4::<0xdd>(c, d));
        next[at] = _mm512_shuffle_i32x4::<0x88>(low, low_next);
        next[8 + at] = _mm512_shuffle_i32x4::<0xdd>(low, low_next);
        next[4 + at] = _mm512_shuffle_i32x4::<0x88>(high, high_next);
        next[12 + at] = _mm512_shuffle_i32x4::<0xdd>(high, high_next);
    }
    *rows = next;
}

/// Returns the 16-bit floats at one place of sixteen blocks.
macro_rules! halves_of {
    ($blocks:expr, $at:expr) => {{
        let bits: [u16; ROWS] =
            std::array::from_fn(|row| u16::from_le_bytes([$blocks[row][$at], $blocks[row][$at + 1]]));
        // SAFETY: there are sixteen of them.
        _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(bits.as_ptr().cast()) })
    }};
}

macro_rules! sixteen {
    ($bytes:expr) => {
        // SAFETY: there are sixteen bytes.
        unsafe { _mm_loadu_si128($bytes.as_ptr().cast()) }
    };
}

macro_rules! store_floats {
    ($into:expr, $floats:expr) => {
        // SAFETY: there are sixteen places.
        unsafe { _mm512_storeu_ps($into.as_mut_ptr(), $floats) }
    };
}

macro_rules! store {
    ($tile:ident, $at:expr, $numbers:expr) => {
        // SAFETY: each entry has 64 bytes.
        unsafe { _mm512_storeu_si512($tile.numbers[$at].as_mut_ptr().cast(), $numbers) }
    };
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn unpack_q4k(blocks: &[&[u8]; ROWS], tile: &mut Tile) {
    let nibble = _mm512_set1_epi8(15);
    for side in 0..2 {
        let packed = transposed!(blocks, 16 + side * 64);
        for (at, packed) in packed.into_iter().enumerate() {
            // 32 bytes hold a part in their low nibbles and the next one in their high nibbles.
            let place = side * 32 + at / 8 * 16 + at % 8;
            store!(tile, place, _mm512_and_si512(packed, nibble));
            store!(tile, place + 8, _mm512_and_si512(_mm512_srli_epi16::<4>(packed), nibble));
        }
    }
    let (mut scales, mut mins) = ([[0; ROWS]; 8], [[0; ROWS]; 8]);
    for (row, block) in blocks.iter().enumerate() {
        let (scales_of_row, mins_of_row) = scales_of_q4k(block);
        for part in 0..8 {
            scales[part][row] = scales_of_row[part];
            mins[part][row] = mins_of_row[part];
        }
    }
    let (scale, min_scale) = (halves_of!(blocks, 0), halves_of!(blocks, 2));
    for part in 0..8 {
        let of_part = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(sixteen!(scales[part])));
        store_floats!(tile.scales[part], _mm512_mul_ps(scale, of_part));
        let of_part = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(sixteen!(mins[part])));
        store_floats!(tile.offsets[part], _mm512_mul_ps(min_scale, of_part));
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn unpack_q6k(blocks: &[&[u8]; ROWS], tile: &mut Tile) {
    let (nibble, upper) = (_mm512_set1_epi8(15), _mm512_set1_epi8(0x30));
    let bits = transposed!(blocks, 128);
    for side in 0..2 {
        let packed = transposed!(blocks, side * 64);
        for (at, packed) in packed.into_iter().enumerate() {
            // The low nibbles are the first two parts of 32 numbers, the high ones the other two.
            let bits = bits[side * 8 + at % 8];
            let (low, high) = if at < 8 {
                (_mm512_slli_epi16::<4>(bits), bits)
            } else {
                (_mm512_slli_epi16::<2>(bits), _mm512_srli_epi16::<2>(bits))
            };
            let place = side * 32 + at;
            let low = _mm512_or_si512(_mm512_and_si512(packed, nibble), _mm512_and_si512(low, upper));
            let packed = _mm512_and_si512(_mm512_srli_epi16::<4>(packed), nibble);
            store!(tile, place, low);
            store!(tile, place + 16, _mm512_or_si512(packed, _mm512_and_si512(high, upper)));
        }
    }
    let mut scales = [[0; ROWS]; 16];
    for (row, block) in blocks.iter().enumerate() {
        for part in 0..16 {
            scales[part][row] = block[192 + part];
        }
    }
    let (scale, offset) = (halves_of!(blocks, 208), _mm512_set1_ps(32.0));
    for ((scales, into), offsets) in scales.iter().zip(&mut tile.scales).zip(&mut tile.offsets) {
        let scale = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(sixteen!(scales))));
        store_floats!(into, scale);
        // The numbers count from -32.
        store_floats!(offsets, _mm512_mul_ps(scale, offset));
    }
}

/// Defines the products of a tile with eight rows of `x`: parts of so many steps of four numbers each.
macro_rules! eight {
    ($name:ident, $parts:literal, $steps:literal, $sums:ident: $($at:literal $x:ident $sum:ident $whole:ident $of:ident),+) => {
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        fn $name(tile: &Tile, x: &[(&Small<LONG>, &Sums); 8], products: &mut [[f32; ROWS]; 8]) {
            $(let mut $whole = _mm512_setzero_ps();)+
            $(let $x = x[$at].0.numbers.as_ptr();)+
            $(let $of = x[$at].1.$sums.as_ptr();)+
            for part in 0..$parts {
                $(let mut $sum = _mm512_setzero_si512();)+
                for step in part * $steps..(part + 1) * $steps {
                    let numbers = load!(tile.numbers.as_ptr().wrapping_add(step));
                    // SAFETY: a block of `x` has four numbers for each step.
                    $($sum = _mm512_dpbusd_epi32($sum, numbers, _mm512_set1_epi32(unsafe { $x.add(step * 4).cast::<i32>().read_unaligned() }));)+
                }
                // SAFETY: both have sixteen numbers for each part.
                let (scales, offsets) = unsafe {
                    (_mm512_loadu_ps(tile.scales.as_ptr().add(part).cast()), _mm512_loadu_ps(tile.offsets.as_ptr().add(part).cast()))
                };
                $(
                    $whole = _mm512_fmadd_ps(_mm512_cvtepi32_ps($sum), scales, $whole);
                    // SAFETY: there is a sum for each part.
                    $whole = _mm512_fnmadd_ps(_mm512_set1_ps(unsafe { *$of.add(part) }), offsets, $whole);
                )+
            }
            $(
                // SAFETY: an entry has sixteen numbers.
                unsafe {
                    let into = products[$at].as_mut_ptr();
                    _mm512_storeu_ps(into, _mm512_fmadd_ps($whole, _mm512_set1_ps(x[$at].0.scale), _mm512_loadu_ps(into)));
                }
            )+
        }
    };
}

eight!(eight_q4k, 8, 8, of_thirty_two: 0 xa sa wa oa, 1 xb sb wb ob, 2 xc sc wc oc, 3 xd sd wd od, 4 xe se we oe, 5 xf sf wf of, 6 xg sg wg og, 7 xh sh wh oh);
eight!(eight_q6k, 16, 4, of_sixteen: 0 xa sa wa oa, 1 xb sb wb ob, 2 xc sc wc oc, 3 xd sd wd od, 4 xe se we oe, 5 xf sf wf of, 6 xg sg wg og, 7 xh sh wh oh);
