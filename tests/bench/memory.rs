//! A question to 10,000 memory files, beside parsing the same files with the YAML library alone; without the index,
//! and with it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::measure::{Cost, Row, cost, pairs};

const FILES: usize = 10_000;
const SESSIONS: &str = ".nietz/debug-memory/sessions";

/// The first question, when no index is there, and one when it is; both beside the library alone.
pub(crate) fn rows(count: usize) -> [Row; 2] {
    let memory = Memory::new();
    let cold = || {
        // There is none before the first.
        let _ = std::fs::remove_dir_all(memory.folder.path().join("home/index"));
        memory.query()
    };
    let (ours, floors) = pairs(count, cold, || memory.bare());
    let cold = Row::ratio("a query of 10,000 memory files, no index", &ours, &floors, 1.5);
    let (ours, floors) = pairs(count, || memory.query(), || memory.bare());
    [cold, Row::ratio("the same with the index", &ours, &floors, 0.1)]
}

/// A workspace with many sessions.
struct Memory {
    folder: tempfile::TempDir,
    next: std::cell::Cell<u32>,
}

impl Memory {
    fn new() -> Memory {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let sessions = folder.path().join("work").join(SESSIONS);
        std::fs::create_dir_all(&sessions).expect("a folder");
        for index in 0..FILES {
            let (id, session) = session(index);
            let text = serde_yaml::to_string(&session).expect("YAML");
            std::fs::write(sessions.join(format!("{id}.yaml")), text).expect("a file");
        }
        Memory { folder, next: std::cell::Cell::new(0) }
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn query(&self) -> Cost {
        self.next.set(self.next.get() + 1);
        let home = self.folder.path().join("home");
        let mut command = Command::new(env!("CARGO_BIN_EXE_nietz"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("NIETZ_HOME", &home).env("HOME", &home);
        command.env("NIETZ_RUN", format!("q{}", self.next.get())).current_dir(self.work());
        command.args(["run", "debug-memory", "--json", "query", "find_similar_failures"]);
        cost(command.args(["--error-type", "TypeError", "--file", "src/part7/%"]))
    }

    fn bare(&self) -> Cost {
        let this = std::env::current_exe().expect("this program has a path");
        cost(Command::new(this).args(["floor", "yaml"]).arg(self.work().join(SESSIONS)))
    }
}

/// A session of two executions, as a real one is: about 2.5 kB.
fn session(index: usize) -> (String, Value) {
    let id = format!("00000000-0000-4000-8000-{index:012}");
    let error = ["TypeError", "AssertionError", "RuntimeError", "Other"][index % 4];
    let (file, day) = (format!("src/part{}/file{}.ts", index % 50, index % 7), 1 + index % 28);
    let status = ["escalated", "passed", "passed"][index % 3];
    let failures: Vec<Value> = (0..3)
        .map(|number| {
            json!({
                "test_name": format!("part {} should take case {number}", index % 50),
                "test_file": "test/part.test.ts", "test_line": 10 + number, "error_type": error,
                "error_message": "Cannot read properties of undefined (reading 'length')",
                "stack_trace": "at validate (src/validate.ts:15:22)\n    at Object.<anonymous> (test/part.test.ts:42:5)\n".repeat(3),
                "source_location": { "file": file, "line": 15, "function": "validate" },
            })
        })
        .collect();
    let session = json!({
        "session_id": id, "file_path": file, "status": status,
        "created_at": format!("2026-01-{day:02}T15:00:00Z"), "updated_at": format!("2026-01-{day:02}T15:20:00Z"),
        "executions": [
            {
                "attempt": 1, "timestamp": format!("2026-01-{day:02}T15:00:00Z"), "code_hash": "0".repeat(64),
                "environment": { "runtime": "node", "runtime_version": "20.11.0", "test_framework": "jest" },
                "test_results": { "total": 10, "passed": 7, "failed": 3, "errors": 0, "duration_ms": 1500 },
                "failures": failures,
                "analysis": {
                    "root_cause": "validate() reads the length of its input without asking whether there is one",
                    "root_cause_category": "null_undefined_access", "confidence": 0.9,
                    "fix_strategy": "return early at the top of validate() when there is no input",
                },
                "fix_applied": { "description": "an early return", "diff_summary": "+3/-0 lines", "verification": "passed" },
            },
            {
                "attempt": 2, "timestamp": format!("2026-01-{day:02}T15:10:00Z"), "code_hash": "1".repeat(64),
                "test_results": { "total": 10, "passed": 10, "failed": 0 },
            },
        ],
        "learnings": { "patterns_identified": [{ "pattern": "access_without_check", "category": "null_undefined_access",
            "frequency": 1, "fix_template": "Check first", "effectiveness": 1.0 }] },
    });
    (id, session)
}

/// The floor: each file read, and parsed by the library.
pub(crate) fn floor(folder: &str) {
    let mut read = 0;
    for entry in std::fs::read_dir(Path::new(folder)).expect("the folder is there") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a file");
        let value: Value = serde_yaml::from_str(&text).expect("YAML");
        read += value["executions"].as_array().map_or(0, Vec::len);
    }
    assert_eq!(read, 2 * FILES);
}
