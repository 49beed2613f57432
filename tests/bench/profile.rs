//! The growth profile of many sessions, beside a process that reads and parses the same files with serde_json alone.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::measure::{Row, cost, pairs};

/// Two heaps of sessions: the same time for each, and the same memory for both.
const MANY: usize = 20_000;
const FEW: usize = 2_000;
const TURNS: usize = 10;

const FLOW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/debug.lua");
const SESSIONS: &str = ".nietzschian/sessions";

/// Writes sessions as the flow would have saved them, of different times, outcomes and lengths of answers.
fn sessions(folder: &Path, count: usize) {
    let place = folder.join(SESSIONS);
    std::fs::create_dir_all(&place).expect("a folder");
    for number in 0..count {
        let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let id = format!("{:08x}-0000-4000-8000-{number:012x}", mixed >> 32);
        let day = |second: usize| format!("2026-{:02}-{:02}T10:30:{second:02}Z", number % 12 + 1, number % 28 + 1);
        let turns: Vec<Value> = (1..=TURNS)
            .map(|turn| {
                json!({
                    "turnNumber": turn,
                    "question": "Which line reads that value, at which moment, and what did the log say about it then?",
                    "response": "I looked at the log again; the key was written before the deploy, ".repeat(1 + (number + turn) % 4),
                    "model": "anthropic/claude-sonnet-5-5", "quoteUsed": null,
                    "behaviorTags": ["checked-logs"], "timestamp": day(turn),
                })
            })
            .collect();
        let tags: Vec<Value> = (1..=TURNS)
            .map(|turn| match (number + turn) % 3 {
                0 => json!({"turnNumber": turn, "tag": "guessed-without-evidence", "dimension": "evidenceGathering"}),
                1 => json!({"turnNumber": turn, "tag": "checked-logs", "dimension": "evidenceGathering"}),
                _ => json!({"turnNumber": turn, "tag": "narrowed-scope", "dimension": "rootCauseSpeed"}),
            })
            .collect();
        let session = json!({
            "schemaVersion": 1, "id": id, "timestamp": day(0), "endTimestamp": day(59),
            "problemDescription": "the cache returns stale prices after a deploy", "intensity": "nietzsche",
            "outcome": if number % 3 == 0 { "abandoned" } else { "solved" }, "questionsToRootCause": TURNS,
            "codeFiles": ["src/price.py"], "transcript": turns,
            "skillScores": {"assumptionChecking": number % 10 + 1, "evidenceGathering": 5, "rootCauseSpeed": 7},
            "behaviorTags": tags, "scoredBy": "model",
        });
        let text = serde_json::to_string_pretty(&session).expect("it is JSON");
        std::fs::write(place.join(format!("{id}.json")), text).expect("a file");
    }
}

/// Each with its own folder, so that neither sees the other's sessions.
struct Heap(tempfile::TempDir);

impl Heap {
    fn new(count: usize) -> Heap {
        let folder = tempfile::tempdir().expect("a temporary folder");
        sessions(folder.path(), count);
        Heap(folder)
    }

    fn profile(&self) -> crate::measure::Cost {
        let _ = std::fs::remove_dir_all(self.0.path().join(".nietz"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_nietz"));
        command.args(["run", FLOW, "--json", "profile"]).current_dir(self.0.path()).env_clear();
        cost(command.env("NIETZ_HOME", self.0.path().join("home")).env("OPENAI_API_KEY", "a-key-that-opens-nothing"))
    }

    fn floor(&self) -> crate::measure::Cost {
        let this = std::env::current_exe().expect("this program has a path");
        cost(Command::new(this).args(["floor", "sessions", SESSIONS]).current_dir(self.0.path()))
    }
}

/// The floor: every file read and parsed, and nothing done with it.
pub(crate) fn floor(folder: &str) {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let bytes = std::fs::read(entry.expect("it can be listed").path()).expect("a file can be read");
        let session: Value = serde_json::from_slice(&bytes).expect("it is JSON");
        count += session["transcript"].as_array().map_or(0, Vec::len);
    }
    assert!(count > 0 && count.is_multiple_of(TURNS));
}

pub(crate) fn rows(count: usize) -> Vec<Row> {
    let (many, few) = (Heap::new(MANY), Heap::new(FEW));
    let (ours, floors) = pairs(count.min(5), || many.profile(), || many.floor());
    let (small, _) = pairs(count.min(5), || few.profile(), || few.floor());
    vec![
        Row::ratio(&format!("profile of {MANY} sessions of {TURNS} turns"), &ours, &floors, 2.0),
        Row::memory(&format!("its peak memory, {FEW} sessions"), &small, f64::INFINITY),
        Row::memory_ratio(&format!("the same, {MANY} sessions beside {FEW}"), &ours, &small, 1.2),
    ]
}
