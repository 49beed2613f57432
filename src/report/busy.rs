//! The time of a run without what nothing happened in: where all wait for a person, or for the next process, a picture
//! shows a short gap.

/// The part of the busy time that a gap is shown as, at most.
const GAP: f64 = 0.02;

/// Maps moments of a run, in milliseconds, to places on a picture.
#[derive(Debug)]
pub(super) struct BusyTime {
    /// Moments and the places that they are shown at, both rising.
    points: Vec<(u64, f64)>,
    /// The gaps that are shortened: their places.
    pub gaps: Vec<f64>,
}

impl BusyTime {
    /// Takes the spans in which something happened.
    pub(super) fn new(spans: impl IntoIterator<Item = (u64, u64)>) -> BusyTime {
        let mut spans: Vec<(u64, u64)> = spans.into_iter().filter(|(began, ended)| ended >= began).collect();
        spans.sort_unstable();
        let mut busy: Vec<(u64, u64)> = Vec::new();
        for (began, ended) in spans {
            match busy.last_mut() {
                Some(last) if began <= last.1 => last.1 = last.1.max(ended),
                _ => busy.push((began, ended)),
            }
        }
        let total: u64 = busy.iter().map(|(began, ended)| ended - began).sum();
        let longest_gap = (total as f64 * GAP).max(1.0);
        let (mut points, mut gaps, mut place, mut last) = (Vec::new(), Vec::new(), 0.0, None);
        for (began, ended) in busy {
            if let Some(before) = last {
                let gap = (began - before) as f64;
                if gap > longest_gap {
                    gaps.push(place + longest_gap / 2.0);
                }
                place += gap.min(longest_gap);
            }
            points.push((began, place));
            place += (ended - began) as f64;
            points.push((ended, place));
            last = Some(ended);
        }
        BusyTime { points, gaps }
    }

    /// Returns the place of the last moment.
    pub(super) fn length(&self) -> f64 {
        self.points.last().map_or(0.0, |(_, place)| *place)
    }

    /// Returns the place of a moment.
    pub(super) fn place(&self, moment: u64) -> f64 {
        let after = self.points.partition_point(|(at, _)| *at < moment);
        match (after.checked_sub(1).map(|before| self.points[before]), self.points.get(after)) {
            (_, Some((at, place))) if *at == moment => *place,
            (Some((from, a)), Some((to, b))) => a + (b - a) * (moment - from) as f64 / (to - from).max(1) as f64,
            (Some((_, place)), None) | (None, Some(&(_, place))) => place,
            (None, None) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BusyTime;

    #[test]
    fn a_long_wait_is_a_short_gap() {
        let time = BusyTime::new([(1_000, 1_400), (1_200, 1_500), (1_000_000, 1_000_500)]);
        assert_eq!(time.gaps.len(), 1);
        assert_eq!((time.place(1_000), time.place(1_250), time.place(1_500)), (0.0, 250.0, 500.0));
        assert_eq!((time.place(1_000_000), time.place(1_000_500), time.length()), (520.0, 1020.0, 1020.0));
    }
}
