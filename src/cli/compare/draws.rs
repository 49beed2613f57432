//! How sure a figure is: what it would have been, had other ones of the same runs been compared.

/// How often runs are drawn anew for an interval.
const DRAWS: usize = 2_000;
/// Below so many, nothing can be said of how much they differ.
const LEAST: usize = 3;
/// How much of the draws lies outside of an interval at either end.
const OUTSIDE: f64 = 0.025;

/// Returns between what a figure lies 95 of 100 times, by drawing groups anew: always the same for the same groups. What belongs
/// to one run is one group, because it does not differ by itself.
pub(super) fn interval<T: Copy>(groups: &[Vec<T>], figure: impl Fn(&[T]) -> Option<f64>) -> Option<(f64, f64)> {
    if groups.len() < LEAST {
        return None;
    }
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut draw = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        &groups[((mixed ^ (mixed >> 31)) % groups.len() as u64) as usize]
    };
    let drawn = (0..DRAWS).filter_map(|_| {
        let all: Vec<T> = (0..groups.len()).flat_map(|_| draw().iter().copied()).collect();
        figure(&all)
    });
    let mut drawn: Vec<f64> = drawn.collect();
    drawn.sort_by(f64::total_cmp);
    let at = |part: f64| drawn.get(((drawn.len() as f64 * part) as usize).min(drawn.len().saturating_sub(1))).copied();
    at(OUTSIDE).zip(at(1.0 - OUTSIDE))
}

#[cfg(test)]
mod tests {
    use super::interval;

    #[test]
    fn an_interval_is_as_wide_as_the_runs_differ() {
        let mean = |all: &[f64]| Some(all.iter().sum::<f64>() / all.len() as f64);
        let each = |values: &[f64]| values.iter().map(|value| vec![*value]).collect::<Vec<_>>();
        assert_eq!(interval(&each(&[0.5, 0.5, 0.5]), mean), Some((0.5, 0.5)));
        let (least, most) = interval(&each(&[0.0, 1.0, 0.5, 1.0]), mean).unwrap();
        assert!(least < 0.4 && most > 0.8, "{least} {most}");
        assert_eq!(interval(&each(&[0.0, 1.0, 0.5, 1.0]), mean), Some((least, most)), "it is the same each time");
        assert_eq!(interval(&each(&[0.0, 1.0]), mean), None);
        assert_eq!(interval(&each(&[1.0; 9]), |_: &[f64]| None), None);
    }
}
