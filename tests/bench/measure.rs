//! Runs processes, and says what they cost.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What one process cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub wall: Duration,
    /// Peak resident memory in MB.
    pub memory: f64,
}

/// Runs a command to its end; it must succeed.
#[allow(clippy::zombie_processes)] // It is waited for with wait4, which also says what it cost.
pub(crate) fn cost(command: &mut Command) -> Cost {
    let start = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the program is there");
    let mut errors = String::new();
    if let Some(stderr) = &mut child.stderr {
        std::io::Read::read_to_string(stderr, &mut errors).expect("its errors are text");
    }
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let pid = i32::try_from(child.id()).expect("a process id fits");
    // SAFETY: the child is ours and nobody else waits for it; both pointers live as long as the call.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    assert!(waited == pid && status == 0, "{command:?} failed: {errors}");
    #[allow(clippy::cast_precision_loss)]
    Cost { wall: start.elapsed(), memory: usage.ru_maxrss as f64 / 1024.0 }
}

/// Runs a command that leaves children behind; their peak memory is added to its own.
pub(crate) fn cost_with_children(command: &mut Command) -> Cost {
    // SAFETY: it takes numbers alone; from now on this process inherits what its children leave behind.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    let mut cost = cost(command);
    loop {
        // SAFETY: as in `cost`; no child of ours is waited for by anybody else.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: as in `cost`, too.
        if unsafe { libc::wait4(-1, std::ptr::null_mut(), 0, &raw mut usage) } <= 0 {
            return cost;
        }
        #[allow(clippy::cast_precision_loss)]
        let memory = usage.ru_maxrss as f64 / 1024.0;
        cost.memory += memory;
    }
}

/// Runs both in turn, after one run of each that does not count.
pub(crate) fn pairs(
    count: usize,
    mut ours: impl FnMut() -> Cost,
    mut floor: impl FnMut() -> Cost,
) -> (Vec<Cost>, Vec<Cost>) {
    ours();
    floor();
    (0..count).map(|_| (ours(), floor())).unzip()
}

/// One line of the result.
pub(crate) struct Row {
    what: String,
    ours: String,
    floor: String,
    figure: f64,
    /// The least and the most of what `figure` is the median of.
    spread: (f64, f64),
    aim: f64,
}

impl Row {
    /// A row whose figure is the median of some.
    fn median(what: String, ours: String, floor: String, figures: impl Iterator<Item = f64>, aim: f64) -> Row {
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| figures.get(index).copied().unwrap_or(f64::NAN);
        let spread = (at(0), at(figures.len().saturating_sub(1)));
        Row { what, ours, floor, figure: at(figures.len() / 2), spread, aim }
    }

    /// The median of the ratios of pairs.
    pub(crate) fn ratio(what: &str, ours: &[Cost], floors: &[Cost], aim: f64) -> Row {
        let ratios = ours.iter().zip(floors).map(|(ours, floor)| ours.wall.as_secs_f64() / floor.wall.as_secs_f64());
        Row::median(what.to_owned(), shown(ours), shown(floors), ratios, aim)
    }

    /// The median in milliseconds.
    pub(crate) fn wall(what: &str, ours: &[Cost], aim: f64) -> Row {
        let figures = ours.iter().map(|cost| cost.wall.as_secs_f64() * 1000.0);
        Row::median(format!("{what} (ms)"), shown(ours), "-".to_owned(), figures, aim)
    }

    /// The median of the ratios of the peak memory.
    pub(crate) fn memory_ratio(what: &str, ours: &[Cost], floors: &[Cost], aim: f64) -> Row {
        let shown = |costs: &[Cost]| format!("{:.0} MB", median(costs.iter().map(|cost| cost.memory)));
        let figures = ours.iter().zip(floors).map(|(ours, floor)| ours.memory / floor.memory);
        Row::median(what.to_owned(), shown(ours), shown(floors), figures, aim)
    }

    /// A size in MB, which is the same each time.
    pub(crate) fn size(what: &str, figure: f64, aim: f64) -> Row {
        let ours = format!("{figure:.2} MB");
        Row::median(format!("{what} (MB)"), ours, "-".to_owned(), std::iter::once(figure), aim)
    }

    /// A figure that was measured once, with its unit in its name.
    #[cfg(feature = "postgres")]
    pub(crate) fn figure(what: &str, figure: f64, aim: f64) -> Row {
        Row::median(what.to_owned(), "-".to_owned(), "-".to_owned(), std::iter::once(figure), aim)
    }

    /// The median of the peak memory in MB.
    pub(crate) fn memory(what: &str, ours: &[Cost], aim: f64) -> Row {
        let ours: Vec<f64> = ours.iter().map(|cost| cost.memory).collect();
        let shown = format!("{:.1} MB", median(ours.iter().copied()));
        Row::median(format!("{what} (MB)"), shown, "-".to_owned(), ours.into_iter(), aim)
    }
}

/// The median of the wall time, in seconds.
pub(crate) fn median_seconds(costs: &[Cost]) -> f64 {
    median(costs.iter().map(|cost| cost.wall.as_secs_f64()))
}

fn shown(costs: &[Cost]) -> String {
    format!("{:.2} ms", median(costs.iter().map(|cost| cost.wall.as_secs_f64() * 1000.0)))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints the table.
pub(crate) fn print(rows: &[Row]) {
    println!(
        "{:58} {:>12} {:>12} {:>8} {:>16} {:>8}",
        "what (medians)", "nietz", "floor", "figure", "least to most", "aim"
    );
    for row in rows {
        let aim = if row.aim.is_finite() { format!("≤ {}", row.aim) } else { "-".to_owned() };
        let met = if row.figure <= row.aim { "" } else { "  MISSED" };
        let spread = format!("{:.2} to {:.2}", row.spread.0, row.spread.1);
        println!("{:58} {:>12} {:>12} {:>8.2} {spread:>16} {aim:>8}{met}", row.what, row.ours, row.floor, row.figure);
    }
}
