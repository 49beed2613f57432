//! After which lines of its journal a run is killed: a few, spread over all, or each where `NIETZ_TEST_WHOLE` is set
//! (`.ci/long kill`).

use std::sync::atomic::{AtomicUsize, Ordering};

/// Tells whether all is wanted that takes too long for each day.
pub(crate) fn whole() -> bool {
    std::env::var_os("NIETZ_TEST_WHOLE").is_some()
}

/// Returns the lines from 1 to `lines` after which to kill: `few` of them are enough for each day.
pub(crate) fn points(lines: u64, few: u64) -> Vec<u64> {
    if whole() || lines <= few {
        return (1..=lines).collect();
    }
    (0..few).map(|step| 1 + step * (lines - 1) / (few - 1)).collect()
}

/// Does `each` for every point, on a few threads.
pub(crate) fn for_each<T: Copy + Sync>(points: &[T], each: impl Fn(T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(point) = points.get(next.fetch_add(1, Ordering::SeqCst)) {
                    each(*point);
                }
            });
        }
    });
}
