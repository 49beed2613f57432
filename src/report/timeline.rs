//! What happened side by side: one row for each task that waited for something, as bars over time.

use serde::Serialize;

use super::busy::BusyTime;
use super::history::RunHistory;

/// The width of the picture, in its own units.
pub(super) const WIDTH: f64 = 1000.0;
/// The height of a row.
const ROW: f64 = 22.0;
/// The most rows, and the most bars: the longest ones. What more there is stands in the list of effects.
const ROWS: usize = 60;
const BARS: usize = 1_000;
/// The narrowest bar that can be seen and pointed at.
const NARROWEST: f64 = 2.0;

#[derive(Debug, Serialize)]
pub(super) struct Timeline {
    pub height: f64,
    pub bars: Vec<Bar>,
    pub gaps: Vec<f64>,
    /// The effects that have no bar.
    pub left_out: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Bar {
    /// The line of the effect, which is its address.
    pub line: u64,
    pub x: f64,
    pub y: f64,
    pub width: f64,
    /// `chat`, `ask`, or `other`.
    pub class: &'static str,
    pub failed: bool,
    pub who: String,
    pub kind: String,
    pub milliseconds: u64,
    /// Where in it a call waited before it was made again.
    pub waits: Vec<Wait>,
}

#[derive(Debug, Serialize)]
pub(super) struct Wait {
    pub x: f64,
    pub width: f64,
    pub milliseconds: u64,
    pub reason: String,
}

/// Returns the timeline of a run; `None` where nothing took time.
pub(super) fn of(run: &RunHistory) -> Option<Timeline> {
    let mut lasting: Vec<_> = run.effects.iter().filter(|effect| effect.duration() > 0).collect();
    let time = BusyTime::new(
        lasting
            .iter()
            .filter(|effect| effect.kind != "ask")
            .map(|effect| (effect.began, effect.began + effect.duration())),
    );
    if time.length() <= 0.0 {
        return None;
    }
    let scale = WIDTH / time.length();
    let mut left_out = lasting.len().saturating_sub(BARS);
    if left_out > 0 {
        lasting.sort_by_key(|effect| std::cmp::Reverse(effect.duration()));
        lasting.truncate(BARS);
        lasting.sort_by_key(|effect| effect.line);
    }
    // The moment at which each row is free again.
    let mut rows: Vec<u64> = Vec::new();
    let mut bars = Vec::new();
    for effect in lasting {
        let ended = effect.began + effect.duration();
        let row = match rows.iter().position(|free| *free <= effect.began) {
            Some(row) => row,
            None if rows.len() < ROWS => {
                rows.push(0);
                rows.len() - 1
            }
            None => {
                left_out += 1;
                continue;
            }
        };
        rows[row] = ended;
        let place = |moment: u64| time.place(moment.clamp(effect.began, ended)) * scale;
        let x = place(effect.began);
        let waits = effect.retries().filter(|retry| retry.wait_ms > 0).map(|retry| {
            let from = effect.began.saturating_add(retry.after_ms);
            let (from, to) = (place(from), place(from.saturating_add(retry.wait_ms)));
            Wait { x: tenth(from), width: tenth(to - from), milliseconds: retry.wait_ms, reason: retry.reason }
        });
        bars.push(Bar {
            line: effect.line,
            x: tenth(x),
            y: row as f64 * ROW,
            width: tenth((place(ended) - x).max(NARROWEST)),
            class: match effect.kind.as_str() {
                "chat" => "chat",
                "ask" => "ask",
                _ => "other",
            },
            failed: !effect.failure.is_null(),
            who: effect.label.clone().unwrap_or_else(|| effect.scope.clone()),
            kind: effect.kind.clone(),
            milliseconds: effect.duration(),
            waits: waits.collect(),
        });
    }
    let gaps = time.gaps.iter().map(|gap| tenth(gap * scale)).collect();
    Some(Timeline { height: rows.len() as f64 * ROW, bars, gaps, left_out })
}

fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::of;
    use crate::report::history::{RecordedEffect, RunHistory};

    #[test]
    fn a_call_shows_where_it_waited_before_it_was_made_again() {
        let retries = json!([
            { "after_ms": 100, "wait_ms": 200, "reason": "busy" }, { "after_ms": 400, "wait_ms": 9000, "reason": "slow" },
        ]);
        let call = RecordedEffect {
            line: 2,
            key: String::new(),
            kind: "chat".to_owned(),
            scope: "/".to_owned(),
            label: None,
            shown: false,
            request: Value::Null,
            outcome: json!({ "retries": retries }),
            failure: Value::Null,
            began: 5_000,
            ended: Some(6_000),
        };
        let timeline = of(&RunHistory { effects: vec![call], ..RunHistory::default() }).expect("something took time");
        let waits: Vec<(f64, f64)> = timeline.bars[0].waits.iter().map(|wait| (wait.x, wait.width)).collect();
        assert_eq!(waits, [(100.0, 200.0), (400.0, 600.0)], "the second lasts to the end, at most");
        assert_eq!(timeline.bars[0].waits[1].reason, "slow");
    }
}
