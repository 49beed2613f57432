//! Sampling: chooses the next token, either the likeliest or a random one among the likely.

/// Chooses tokens. The same seed gives the same choices.
pub(super) struct Sampler {
    temperature: f32,
    top_p: f32,
    state: u64,
}

/// Tokens are drawn from only this many of the likeliest ones, and among these from the likeliest that
/// together have this probability, as the makers of the default model recommend.
pub(super) const TOP_K: usize = 20;
pub(super) const TOP_P: f32 = 0.8;
/// A recently generated token counts this much less, since small models repeat themselves.
pub(super) const REPEATED: f32 = 1.05;

impl Sampler {
    pub(super) fn new(temperature: f64, top_p: Option<f64>, seed: u64) -> Sampler {
        Sampler { temperature: temperature as f32, top_p: top_p.map_or(TOP_P, |top_p| top_p as f32), state: seed }
    }

    /// Chooses a token by its logit. Impossible tokens have a logit of minus infinity; `None` if all have.
    pub(super) fn choose(&mut self, logits: &[f32]) -> Option<u32> {
        let mut best: Vec<(u32, f32)> = Vec::with_capacity(TOP_K + 1);
        let limit = if self.temperature > 0.0 { TOP_K } else { 1 };
        for (token, &logit) in logits.iter().enumerate() {
            let fits = best.len() < limit || best.last().is_some_and(|last| logit > last.1);
            if logit > f32::NEG_INFINITY && fits {
                let at = best.partition_point(|(_, other)| *other >= logit);
                best.insert(at, (token as u32, logit));
                best.truncate(limit);
            }
        }
        let max_logit = best.first()?.1;
        if best.len() == 1 {
            return Some(best[0].0);
        }
        let weights: Vec<f32> = best.iter().map(|(_, logit)| ((logit - max_logit) / self.temperature).exp()).collect();
        let total: f32 = weights.iter().sum();
        let (mut kept, mut sum) = (0, 0.0);
        while kept < weights.len() && sum < self.top_p * total {
            sum += weights[kept];
            kept += 1;
        }
        let mut dart = self.unit() * sum;
        for (token, weight) in best.iter().zip(&weights).take(kept) {
            if dart < *weight {
                return Some(token.0);
            }
            dart -= weight;
        }
        Some(best[kept - 1].0)
    }

    /// Returns a random number from 0 to 1 (SplitMix64: small, good enough here, and the same on every machine).
    fn unit(&mut self) -> f32 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 40) as f32 / (1u32 << 24) as f32
    }
}

/// Makes recently generated tokens less likely.
pub(super) fn discourage(logits: &mut [f32], recent: &[u32]) {
    for (nth, token) in recent.iter().enumerate() {
        // Each token once, however often it was generated.
        if let Some(logit) = logits.get_mut(*token as usize).filter(|_| !recent[..nth].contains(token)) {
            *logit = if *logit > 0.0 { *logit / REPEATED } else { *logit * REPEATED };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_choices_and_another_makes_others() {
        let logits: Vec<f32> = (0..50).map(|token| (token % 7) as f32 / 7.0).collect();
        let draw = |seed| {
            let mut sampler = Sampler::new(1.0, None, seed);
            (0..40).map(|_| sampler.choose(&logits)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn impossible_tokens_are_never_chosen() {
        let never = f32::NEG_INFINITY;
        let mut sampler = Sampler::new(2.0, None, 3);
        assert!((0..100).all(|_| sampler.choose(&[never, 0.1, never, 0.2]).is_some_and(|token| token % 2 == 1)));
        assert_eq!(sampler.choose(&[never, never]), None);
        assert_eq!(Sampler::new(0.0, None, 1).choose(&[0.5, 0.9, 0.9]), Some(1));
    }
}
