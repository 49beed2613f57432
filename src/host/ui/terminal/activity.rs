//! The current activity: model calls, the flow's status, its progress. It is shown below the text and disappears when
//! it is over.

use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};

use super::style::{DIM, StyledLine};
use crate::host::ui::ending::{duration, thousands};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long each frame of the spinner is shown.
pub(super) const TICK: Duration = Duration::from_millis(80);
/// The most progress bars shown at once; the oldest are left out.
const BARS: usize = 4;

struct ActiveCall {
    key: String,
    label: String,
    started: Instant,
    /// Pieces of text so far; most servers send one token per piece.
    pieces: u64,
    /// The number of the current attempt, if it is not the first, and the reason for the retry.
    retry: Option<(u32, String)>,
}

struct Bar {
    label: String,
    done: u64,
    total: u64,
}

#[derive(Default)]
pub(super) struct Activity {
    calls: Vec<ActiveCall>,
    bars: Vec<Bar>,
    /// The lines of the flow's status.
    status: Vec<String>,
    /// Since when a person waits: the start of the first call after something was said or asked.
    waiting_since: Option<Instant>,
}

impl Activity {
    pub(super) fn call_started(&mut self, key: &str, label: &str, now: Instant) {
        self.waiting_since.get_or_insert(now);
        let shown = if label.is_empty() { "model" } else { label };
        let call = ActiveCall { key: key.to_owned(), label: shown.to_owned(), started: now, pieces: 0, retry: None };
        self.calls.push(call);
    }

    pub(super) fn call_delta(&mut self, key: &str) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.key == key) {
            call.pieces += 1;
        }
    }

    pub(super) fn call_retried(&mut self, key: &str, attempt: u32, reason: &str) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.key == key) {
            call.pieces = 0;
            call.retry = Some((attempt, reason.to_owned()));
        }
    }

    /// Ends a call and returns its label.
    pub(super) fn call_ended(&mut self, key: &str) -> Option<String> {
        let place = self.calls.iter().position(|call| call.key == key)?;
        Some(self.calls.remove(place).label)
    }

    /// Notes that something was said or asked: whoever waits from here on waits for the next thing.
    pub(super) fn wait_ended(&mut self) {
        self.waiting_since = self.calls.iter().map(|call| call.started).min();
    }

    pub(super) fn status(&mut self, text: &str) {
        let lines = text.trim_matches('\n').lines().map(str::trim_end);
        self.status = if text.trim().is_empty() { Vec::new() } else { lines.map(str::to_owned).collect() };
    }

    /// Updates a bar, and removes it when it is full.
    pub(super) fn progress(&mut self, label: &str, done: u64, total: u64) {
        self.bars.retain(|bar| bar.label != label);
        if done < total {
            self.bars.push(Bar { label: label.to_owned(), done, total });
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Activity::default();
    }

    /// Returns whether the display changes without further events, as the spinner does.
    pub(super) fn moves(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Returns the lines of all activity; the status gets at most half of the screen's height.
    pub(super) fn lines(&self, now: Instant, width: usize, height: usize) -> Vec<StyledLine> {
        let hidden = self.bars.len().saturating_sub(BARS);
        let mut lines: Vec<StyledLine> = self.bars.iter().skip(hidden).map(|bar| bar.line(width)).collect();
        lines.extend(self.block((height / 2).max(2)));
        lines.extend(self.spinner(now, width));
        lines.iter().map(|line| line.cut(width)).collect()
    }

    /// Returns the status: one line with a mark, or several lines unchanged, of which the first are left out if there is no
    /// room.
    fn block(&self, room: usize) -> Vec<StyledLine> {
        if let [only] = self.status.as_slice() {
            return vec![StyledLine::new("· ", DIM).with(only.trim(), DIM)];
        }
        let hidden = if self.status.len() > room { self.status.len() + 1 - room } else { 0 };
        let above = (hidden > 0).then(|| StyledLine::new(&format!("… {hidden} lines above"), DIM));
        let shown = self.status.iter().skip(hidden).map(|line| StyledLine::new(line, DIM));
        above.into_iter().chain(shown).collect()
    }

    /// Returns the line of the calls: what they are for, the time, how long a person waits if that is longer, and the number of
    /// tokens so far.
    fn spinner(&self, now: Instant, width: usize) -> Option<StyledLine> {
        let elapsed = now.saturating_duration_since(self.calls.iter().map(|call| call.started).min()?);
        let waited = self.waiting_since.map_or(elapsed, |since| now.saturating_duration_since(since));
        let shown = |time: Duration| duration(time).replace('s', " s").replace('m', " min ");
        let frame = usize::try_from(elapsed.as_millis() / TICK.as_millis()).unwrap_or(0) % FRAMES.len();
        let mut facts = format!(" · {}", shown(elapsed));
        if waited >= elapsed + Duration::from_secs(1) {
            facts.push_str(&format!(" of {}", shown(waited)));
        }
        let pieces: u64 = self.calls.iter().map(|call| call.pieces).sum();
        if pieces > 0 {
            facts.push_str(&format!(" · {} token{}", thousands(pieces), if pieces == 1 { "" } else { "s" }));
        }
        let names: Vec<String> = self.calls.iter().map(ActiveCall::name).collect();
        // If there is little room, the names are cut and not the numbers, which change.
        let room = width.saturating_sub(2 + StyledLine::new(&facts, DIM).width()).max(8);
        let mut line = StyledLine::new(FRAMES[frame], AnsiColor::Cyan.on_default()).with(" ", Style::new());
        line.append(&StyledLine::new(&names.join(", "), Style::new()).cut(room));
        Some(line.with(&facts, DIM))
    }
}

impl ActiveCall {
    fn name(&self) -> String {
        match &self.retry {
            Some((attempt, reason)) => format!("{} (attempt {attempt}: {reason})", self.label),
            None => self.label.clone(),
        }
    }
}

impl Bar {
    fn line(&self, width: usize) -> StyledLine {
        let numbers = format!(" {}/{}", thousands(self.done), thousands(self.total));
        let label = StyledLine::new(&self.label, Style::new()).cut(width / 2);
        let room = width.saturating_sub(label.width() + numbers.len() + 1).min(30);
        let part = u128::from(self.done) * room as u128 / u128::from(self.total.max(1));
        let full = usize::try_from(part).unwrap_or(room).min(room);
        let mut line = label.with(" ", Style::new());
        line.push(&"━".repeat(full), AnsiColor::Cyan.on_default());
        line.push(&"─".repeat(room - full), DIM);
        line.with(&numbers, DIM)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use insta::assert_snapshot;

    use super::Activity;

    fn seen(activity: &Activity, now: Instant, width: usize) -> String {
        let lines = activity.lines(now, width, 8);
        let text: Vec<String> = lines.iter().map(|line| line.chars().map(|(c, _)| c).collect()).collect();
        text.join("\n")
    }

    #[test]
    fn a_status_of_several_lines_is_a_block_that_leaves_room_for_the_rest() {
        let mut activity = Activity::default();
        let now = Instant::now();
        activity.status("• goal 1\n    • attempt 1: run (3)\n  • goal 2\n");
        assert_snapshot!(seen(&activity, now, 22), @r"
        • goal 1
            • attempt 1: run …
          • goal 2
        ");
        activity.status("a\nb\nc\nd\ne\u{1b}[2J");
        assert_snapshot!(seen(&activity, now, 22), @r"
        … 2 lines above
        c
        d
        e␛[2J
        ");
        activity.status("\n \n");
        assert_eq!(seen(&activity, now, 22), "");
    }

    #[test]
    fn calls_status_and_progress_have_a_line_each() {
        let mut activity = Activity::default();
        let start = Instant::now();
        activity.call_started("a", "architect", start);
        activity.call_started("s", "security", start + Duration::from_secs(3));
        (0..1340).for_each(|_| activity.call_delta("a"));
        activity.status("weighing the ideas");
        activity.progress("rounds", 1, 3);
        assert_snapshot!(seen(&activity, start + Duration::from_millis(12_170), 60), @r"
        rounds ━━━━━━━━━━──────────────────── 1/3
        · weighing the ideas
        ⠹ architect, security · 12 s · 1,340 tokens
        ");
        activity.call_retried("a", 2, "503");
        assert_snapshot!(seen(&activity, start + Duration::from_secs(75), 30), @r"
        rounds ━━━━━━───────────── 1/3
        · weighing the ideas
        ⠧ architect (att… · 1 min 15 s
        ");
        activity.progress("rounds", 3, 3);
        activity.status("");
        assert_eq!(activity.call_ended("a").as_deref(), Some("architect"));
        assert!(activity.moves());
        // What is done next says so, and since when the person waits.
        activity.call_ended("s");
        activity.call_started("c", "Checking", start + Duration::from_secs(80));
        assert_snapshot!(seen(&activity, start + Duration::from_millis(84_800), 60), @"⠋ Checking · 4 s of 1 min 24 s");
        activity.wait_ended();
        assert_snapshot!(seen(&activity, start + Duration::from_millis(84_800), 60), @"⠋ Checking · 4 s");
        activity.call_ended("c");
        assert!(!activity.moves());
        assert_eq!(seen(&activity, start, 60), "");
    }
}
