//! Where a run is killed. After lines of its journal: a few, spread over all, or each where `NIETZ_TEST_WHOLE` is set
//! (`.ci/long kill`). Or at moments drawn by chance.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::env::Env;
use crate::support::process::{Call, Ended};

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

/// Ends a run by `kill -9` up to `times` times, each when its journal has grown to a length drawn by chance (of those up
/// to `length`, which is that of a run left alone), wherever the program is at that moment. The last process is left alone.
///
/// A length and not a time: a loaded machine changes nothing.
pub(crate) fn anywhere(
    env: &Env,
    chance: &mut Chance,
    (times, length): (usize, u64),
    begin: Call,
    resume: impl Fn() -> Call,
) -> Ended {
    let mut lengths: Vec<u64> = (0..times).map(|_| 1 + chance.below(length)).collect();
    lengths.sort_unstable();
    let mut begin = Some(begin);
    for wanted in lengths {
        let call = begin.take().unwrap_or_else(&resume);
        let mut running = call.spawn();
        running.close();
        let grown = || std::fs::metadata(env.journal_path()).is_ok_and(|found| found.len() >= wanted);
        if !running.until_or_over(|_| grown()) {
            running.end();
            break;
        }
        running.kill();
        let first = std::fs::read(env.journal_path()).is_ok_and(|bytes| bytes.contains(&b'\n'));
        assert!(first, "the first line is written whole");
    }
    resume().go()
}

/// Files of a workspace that a killed process left, which nobody asked for.
pub(crate) fn strays(env: &Env) -> Vec<String> {
    let all = walkdir::WalkDir::new(env.workspace()).into_iter().flatten();
    let all = all.filter(|entry| !entry.path().components().any(|part| part.as_os_str() == ".git"));
    let names = all.map(|entry| entry.path().strip_prefix(env.workspace()).expect("it is below").display().to_string());
    let stray = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.starts_with(".nietz-") || name.ends_with(".tmp") || name.ends_with(".new") || name.ends_with(".bak")
    };
    let mut found: Vec<String> = names.filter(stray).collect();
    found.sort();
    found
}

/// How many runs of a mode are killed, and how often each: sixty kills where all is wanted.
pub(crate) fn rounds() -> (Vec<u64>, usize) {
    if whole() { ((1..=15).collect(), 4) } else { (vec![1, 2], 2) }
}

/// Numbers that are the same for the same seed.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// Returns a number below another (splitmix64).
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % end.max(1)
    }
}
