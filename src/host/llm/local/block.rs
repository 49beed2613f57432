//! The blocks in which weights are stored and multiplied.

/// How many numbers a block has: `LONG` in `Q4_K` and `Q6_K`, `SHORT` in `Q8_0` and the other simple formats.
pub(super) const LONG: usize = 256;
pub(super) const SHORT: usize = 32;

/// A block of floats, quantized to 8 bits.
#[derive(Clone)]
#[repr(C, align(32))]
pub(super) struct Small<const N: usize> {
    pub(super) numbers: [i8; N],
    /// The sums of 16 numbers each. A shorter block leaves the rest zero.
    pub(super) sums: [i16; 16],
    pub(super) scale: f32,
}

/// Reads a 16-bit float.
#[inline(always)]
pub(super) fn half(bytes: &[u8], at: usize) -> f32 {
    let bits = u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let (sign, exponent, fraction) = (bits >> 15 << 31, bits >> 10 & 31, bits & 1023);
    let magnitude = match exponent {
        // A subnormal number: each unit of the fraction is 2^-24.
        0 => return f32::from_bits(sign | (fraction as f32 * f32::from_bits(0x3380_0000)).to_bits()),
        31 => 0x7f80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}
