//! Whole sessions, kept as cassettes that `nietz test` plays with no model, no repository and no program at all: one whose first
//! attempt reached the goal, one that was broken down into parts, one whose work was tampered with; and one of the debug memory.
//!
//! After a change of a prompt or of a tool, `NIETZ_RECORD=1 cargo test --locked shots::whole` records them anew by real runs with
//! the scripted model. Each file of the folders is played here, whoever recorded it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::basics::{CHECK, call, call_of, divided, good, step};
use crate::debug_memory;
use crate::support::env::{Env, RUN};
use crate::support::git::init;
use crate::support::journal::Journal;
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;

fn cassettes(mode: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cassettes").join(mode)
}

/// Plays a session in a repository of these files, and keeps it where that is asked for.
fn play(
    (mode, name): (&str, &str),
    script: impl Fn(&Request) -> Response + Send + Sync + 'static,
    files: &[(&str, &str)],
    run: impl Fn(&Env) -> Ended,
) -> Value {
    let server = ModelServer::start(script);
    let records = std::env::var_os("NIETZ_RECORD").is_some();
    let env = if records { Env::to_record(&format!("{mode}-{name}")) } else { Env::new() };
    let env = env.var("OPENAI_BASE_URL", &server.url());
    let env = files.iter().fold(env, |env, (path, text)| env.file(path, text));
    init(&env.workspace());
    let ended = run(&env);
    let result = ended.ending()["result"].clone();
    assert!(matches!(ended.code, Some(0 | 8)), "{ended:?}");
    if records {
        env.nietz(["test", "--from-run", RUN, "--name", name]).go().exits(0);
        std::fs::create_dir_all(cassettes(mode)).expect("it can be made");
        let file = format!("{name}.jsonl");
        std::fs::copy(env.path(&format!("tests/cassettes/{mode}/{file}")), cassettes(mode).join(file))
            .expect("it can be written");
    }
    result
}

/// A goal that is reached when `work.txt` says so.
const WORK: &[(&str, &str)] = &[
    ("work.txt", "one\ntodo\nthree\n"),
    ("check.sh", "grep -q '^done$' work.txt && echo fine\n"),
    ("big/README", "read me\n"),
];

fn shots(name: &str, script: fn(&Request) -> Response, options: &[&str]) -> Value {
    play(("shots-on-goal", name), script, WORK, |env| call_of(env, options).patient().go())
}

#[test]
fn a_session_reaches_its_goal_at_once() {
    assert_eq!(shots("success", good, &["--validate", CHECK])["status"], "success");
}

#[test]
fn a_session_reaches_its_goal_in_parts() {
    // One part after the other, so that the session is the same each time that it is recorded.
    let options = ["--validate", CHECK, "--run", "grep", "--parallel", "1"];
    assert_eq!(shots("breakdown", divided, &options)["status"], "success");
}

/// A model that makes the check say yes, and then says that all is done.
fn tampering(request: &Request) -> Response {
    match step(request) {
        0 => call("read_file", &json!({ "path": "check.sh" })),
        1 => call("write_file", &json!({ "path": "check.sh", "text": "exit 0\n" })),
        2 => call("run", &json!({ "command": CHECK })),
        _ => Response::text("It validates.").usage(10, 5),
    }
}

#[test]
fn a_session_whose_check_was_tampered_with_does_not_reach_its_goal() {
    let result = shots("tampered", tampering, &["--validate", CHECK, "--max-breakdowns", "0"]);
    assert_eq!(result["status"], "failed", "{result}");
}

/// A sum that loses its last number, and what tests it.
const SUMS: &[(&str, &str)] = &[
    ("sums.py", "def total(numbers):\n    return sum(numbers[:-1])\n"),
    (
        "test_sums.py",
        "import unittest\nfrom sums import total\n\n\nclass Sums(unittest.TestCase):\n    def test_all(self):\n        \
         self.assertEqual(total([1, 2, 3]), 6)\n\n    def test_none(self):\n        self.assertEqual(total([]), 0)\n",
    ),
];

#[test]
fn a_session_of_the_debug_memory_mends_a_bug_with_its_second_fix() {
    if !super::guarded::has("python3") {
        return;
    }
    let fixes = debug_memory::edits(
        "sums.py",
        &[("return sum(numbers[:-1])", "return sum(numbers[1:])"), ("return sum(numbers[1:])", "return sum(numbers)")],
    );
    let test = ["debug-memory", "--test", "python3 -B -m unittest -v"];
    let result = play(("debug-memory", "scripted-second-fix"), fixes, SUMS, |env| env.run(test).patient().go());
    assert_eq!((&result["status"], &result["executions"]), (&json!("passed"), &json!(3)), "{result}");
}

/// The rows that a session has added to a table, in their order.
fn added(journal: &Journal, table: &str) -> Vec<Value> {
    let added = journal.of_kind("append").into_iter().filter(|effect| effect.request["collection"] == table);
    let mut rows: Vec<Value> = added.map(|effect| effect.request["row"].clone()).collect();
    rows.sort_by_key(|row| row["id"].as_u64());
    rows
}

#[test]
fn every_cassette_plays_without_a_model_without_git_and_without_any_program() {
    let mut seen = 0;
    for mode in ["shots-on-goal", "debug-memory"] {
        for entry in std::fs::read_dir(cassettes(mode)).expect("there are cassettes") {
            let path = entry.expect("it can be listed").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            seen += 1;
            let text = std::fs::read_to_string(&path).expect("it is text");
            // An empty folder, and no program at all.
            let env = Env::new().var("PATH", "").file(&format!("tests/cassettes/{mode}/{name}"), &text);
            let ended = env.nietz(["test"]).go();
            assert_eq!(ended.code, Some(0), "{mode}/{name} (this file says how it is recorded anew): {ended:?}");
            assert!(ended.stdout.contains("1 passed"), "{mode}/{name}: {ended:?}");
            let text = text.replace(&format!("/tmp/nietz-{mode}-{}", name.trim_end_matches(".jsonl")), "TEMPORARY");
            for of_a_machine in [env!("CARGO_MANIFEST_DIR"), "/root", "\"/home/", " /home/", "/.tmp", "/Users/"] {
                assert!(!text.contains(of_a_machine), "{mode}/{name} names a place below {of_a_machine}");
            }
        }
    }
    assert!(seen >= 4, "{seen} cassettes");
}

#[test]
fn the_cassettes_hold_what_they_are_kept_for() {
    let read = |name: &str| Journal::read(&cassettes("shots-on-goal").join(format!("{name}.jsonl")));
    let status = |journal: &Journal| -> Vec<Value> {
        added(journal, "attempt_result").into_iter().map(|row| row["status"].clone()).collect()
    };
    assert_eq!(status(&read("success")), ["success"]);
    let breakdown = read("breakdown");
    assert_eq!(status(&breakdown)[..2], ["completed", "success"]);
    assert_eq!(added(&breakdown, "goal").len(), 4, "the whole and three parts");
    let tampered = read("tampered");
    let detail = added(&tampered, "attempt_result")[0]["status_detail"].to_string();
    assert!(detail.contains("tampered: check.sh; "), "{detail}");
    assert!(!status(&tampered).contains(&json!("success")));
}
