//! The exponential function for many numbers at once, which is half of what a network does besides products: the gate of a
//! layer and the weights of attention.
//!
//! Both are as exact as 32-bit floats are, up to two of the last digits. A number's result depends on its place only in that the
//! last seven of a list may be computed one by one.

use super::dot::Kernels;

/// Turns each gate into `gate / (1 + e^-gate) * up`.
pub(super) fn gate(kernels: Kernels, gates: &mut [f32], up: &[f32]) {
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if kernels != Kernels::Plain {
        // SAFETY: the processor was asked.
        done = unsafe { avx2::gate(gates, up) };
    }
    let rest = gates.iter_mut().zip(up).skip(done);
    rest.for_each(|(gate, up)| *gate = *gate / (1.0 + (-*gate).exp()) * up);
}

/// Turns scores into weights that add up to 1.
pub(super) fn softmax(kernels: Kernels, scores: &mut [f32]) {
    let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if kernels != Kernels::Plain {
        // SAFETY: the processor was asked.
        done = unsafe { avx2::powers(scores, max) };
    }
    scores[done..].iter_mut().for_each(|score| *score = (*score - max).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= sum);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    /// Computes whole eights, and returns how many numbers that were.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn gate(gates: &mut [f32], up: &[f32]) -> usize {
        let (eights, ups) = (gates.as_chunks_mut::<8>().0, up.as_chunks::<8>().0);
        let one = _mm256_set1_ps(1.0);
        for (gates, up) in eights.iter_mut().zip(ups) {
            // SAFETY: both have eight numbers.
            let (gate, up) = unsafe { (_mm256_loadu_ps(gates.as_ptr()), _mm256_loadu_ps(up.as_ptr())) };
            let below = _mm256_add_ps(one, power(_mm256_sub_ps(_mm256_setzero_ps(), gate)));
            let product = _mm256_mul_ps(_mm256_div_ps(gate, below), up);
            // SAFETY: as above.
            unsafe { _mm256_storeu_ps(gates.as_mut_ptr(), product) };
        }
        eights.len().min(ups.len()) * 8
    }

    /// Turns each score into `e^(score - max)`; returns how many were done.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn powers(scores: &mut [f32], max: f32) -> usize {
        let eights = scores.as_chunks_mut::<8>().0;
        let max = _mm256_set1_ps(max);
        for scores in eights.iter_mut() {
            // SAFETY: they are eight.
            let score = unsafe { _mm256_loadu_ps(scores.as_ptr()) };
            let power = power(_mm256_sub_ps(score, max));
            // SAFETY: as above.
            unsafe { _mm256_storeu_ps(scores.as_mut_ptr(), power) };
        }
        eights.len() * 8
    }

    /// Returns e^x: a power of two by the exponent's bits, and a polynomial (Cephes' `expf`) for what is left of x.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn power(x: __m256) -> __m256 {
        // Beyond these, the result is 0 or infinite for all that follows.
        let x = _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(88.0)), _mm256_set1_ps(-87.0));
        let twos = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(_mm256_mul_ps(
            x,
            _mm256_set1_ps(std::f32::consts::LOG2_E),
        ));
        // ln 2 in two parts, so that nothing is lost.
        let left = _mm256_fnmadd_ps(twos, _mm256_set1_ps(0.693_359_4), x);
        let left = _mm256_fnmadd_ps(twos, _mm256_set1_ps(-2.121_944_4e-4), left);
        let mut sum = _mm256_set1_ps(1.987_569_1e-4);
        sum = _mm256_fmadd_ps(sum, left, _mm256_set1_ps(1.398_2e-3));
        sum = _mm256_fmadd_ps(sum, left, _mm256_set1_ps(8.333_452e-3));
        sum = _mm256_fmadd_ps(sum, left, _mm256_set1_ps(4.166_579_6e-2));
        sum = _mm256_fmadd_ps(sum, left, _mm256_set1_ps(1.666_666_5e-1));
        sum = _mm256_fmadd_ps(sum, left, _mm256_set1_ps(0.5));
        let square = _mm256_mul_ps(left, left);
        let sum = _mm256_add_ps(_mm256_fmadd_ps(sum, square, left), _mm256_set1_ps(1.0));
        let exponent = _mm256_slli_epi32::<23>(_mm256_add_epi32(_mm256_cvtps_epi32(twos), _mm256_set1_epi32(127)));
        _mm256_mul_ps(sum, _mm256_castsi256_ps(exponent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_as_exact_as_floats_are() {
        let scores: Vec<f32> = (0..2003).map(|at| at as f32 * -0.043).collect();
        let mut weights = scores.clone();
        softmax(Kernels::detect(), &mut weights);
        let total: f64 = scores.iter().map(|score| f64::from(*score).exp()).sum();
        for (score, weight) in scores.iter().zip(&weights) {
            let exact = f64::from(*score).exp() / total;
            assert!((f64::from(*weight) - exact).abs() <= exact * 1e-6 + 1e-38, "{score}: {weight} for {exact}");
        }
        let mut gates: Vec<f32> = (-1000..1003).map(|at| at as f32 * 0.1).collect();
        let exact: Vec<f64> =
            gates.iter().map(|gate| f64::from(*gate)).map(|gate| gate / (1.0 + (-gate).exp()) * 0.5).collect();
        gate(Kernels::detect(), &mut gates, &[0.5; 2003]);
        for (gate, exact) in gates.iter().zip(exact) {
            assert!((f64::from(*gate) - exact).abs() <= exact.abs() * 1e-6 + 1e-30, "{gate} for {exact}");
        }
    }
}
