//! The promise: a journal that came with a checkout takes no more memory and time than its lines are worth, and gets
//! nothing of what the user said in a run of their own.

use std::path::PathBuf;

use nietz::journal::lines::{IntentRecord, OpenRecord, OutcomeRecord, Record, TextRecord};
use nietz::journal::writer::{JournalTail, JournalWriter};
use nietz::model::digest::Digest;
use serde_json::{Value, json};

use crate::support::env::{Env, RUN};
use crate::support::model_server::{ModelServer, Response};
use crate::support::process::Call;

const ASKS: &str = r#"return require("@nietz").flow { name = "asks", summary = "Asks",
  run = function() return require("@nietz/ui").ask { id = "private", prompt = "?" } end }
"#;
const TAKES: &str = r#"return require("@nietz").flow { name = "takes", summary = "Takes",
  params = { of = { type = "run" } }, run = function(ctx) return ctx.params.of and ctx.params.of.result or "nothing" end }
"#;

/// Runs a call where the system gives it no more memory or time than this.
fn within(limit: &str, call: Call) -> Call {
    call.by("sh", ["-c", &format!("ulimit {limit}; exec \"$@\""), "sh"])
}

fn path(env: &Env, run: &str) -> PathBuf {
    let folder = env.path(&format!(".nietz/runs/{run}"));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder.join("journal.jsonl")
}

/// Begins a journal of a run that somebody else says there is.
fn brought(env: &Env, run: &str, change: Value) -> JournalWriter {
    let mut open = json!({
        "run": run, "flow": "asks", "source": "flows/asks.lua", "params": {}, "lang": "en", "seed": 1, "files": {},
        "host": "nietz", "at": "2026-01-09T10:30:00Z",
    });
    for (name, value) in change.as_object().expect("members") {
        open[name] = value.clone();
    }
    let open: OpenRecord = serde_json::from_value(open).expect("a first line");
    let mut writer = JournalWriter::open(&path(env, run), JournalTail::default(), None).expect("a journal can be made");
    writer.append(&Record::Open(Box::new(open))).expect("it can be written");
    writer
}

#[test]
fn many_references_to_one_long_text_are_counted_and_refused() {
    let env = Env::new().flow("asks", ASKS);
    let mut writer = brought(&env, "r2", json!({}));
    let text = "x".repeat(1 << 20);
    let id = Digest::of(text.as_bytes()).to_string();
    writer.append(&Record::Text(TextRecord { id: &id, text: Some(&text), parts: None })).unwrap();
    let request = Value::Array(vec![json!({ "$text": id }); 3000]);
    let key = "1".repeat(32);
    let intent = IntentRecord {
        key: &key,
        kind: "ask",
        scope: "/",
        request: &request,
        prepared: None,
        anew: false,
        label: None,
        shown: false,
        at: 1,
    };
    writer.append(&Record::Intent(intent)).unwrap();
    let ok = request.clone();
    writer
        .append(&Record::Outcome(OutcomeRecord {
            key: &key,
            ok: Some(&ok),
            failure: None,
            held: false,
            by: None,
            at: 2,
        }))
        .unwrap();
    writer.sync().unwrap();
    for arguments in [&["log", "r2"][..], &["log", "r2", "--json"], &["verify", "r2"], &["why", "r2", "3"]] {
        let ended = within("-v 900000", env.nietz(arguments.iter().copied())).go();
        let told =
            ended.stderr.contains("error[journal-broken]") && ended.stderr.contains("stands for more than 68 MB");
        assert!(told, "{arguments:?}: {ended:?}");
    }
}

#[test]
fn rows_are_looked_for_once_however_many_lines_there_are() {
    let env = Env::new().flow("asks", ASKS).file("rows.jsonl", "{}\n".repeat(250_000));
    let mut writer = brought(&env, "r2", json!({}));
    for row in 0..8_000_u64 {
        let key = format!("{row:032x}");
        let (request, ok) = (json!({ "row": { "id": row } }), json!({ "path": "rows.jsonl", "at": 900_000 + row }));
        let intent = IntentRecord {
            key: &key,
            kind: "append",
            scope: "/",
            request: &request,
            prepared: None,
            anew: false,
            label: None,
            shown: false,
            at: 1,
        };
        writer.append(&Record::Intent(intent)).unwrap();
        writer
            .append(&Record::Outcome(OutcomeRecord {
                key: &key,
                ok: Some(&ok),
                failure: None,
                held: false,
                by: None,
                at: 2,
            }))
            .unwrap();
    }
    writer.sync().unwrap();
    // Seconds of computing, which a loaded machine does not make more of.
    let ended = within("-t 20", env.nietz(["verify", "r2"])).go().exits(4);
    assert!(ended.stderr.contains("rows.jsonl: and 7990 more"), "{}", ended.stderr);
}

#[test]
fn a_broken_journal_of_many_lines_is_cut_in_one_pass() {
    let env = Env::new().flow("asks", ASKS);
    let mut writer = brought(&env, RUN, json!({}));
    for line in 0..8_000_u64 {
        let (key, request) = (format!("{line:032x}"), json!({}));
        let intent = IntentRecord {
            key: &key,
            kind: "clock",
            scope: "/",
            request: &request,
            prepared: None,
            anew: false,
            label: None,
            shown: false,
            at: 1,
        };
        writer.append(&Record::Intent(intent)).unwrap();
    }
    writer.sync().unwrap();
    let journal = path(&env, RUN);
    let whole = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, [&whole, &b"{\"v\":2}\n"[..]].concat()).unwrap();
    env.own(RUN);
    let ended = within("-t 20", env.resume().args(["--whole"])).go().exits(7);
    assert_eq!(ended.asked(), ["private"]);
}

#[test]
fn a_run_that_was_brought_along_takes_nothing_from_one_of_the_users_own() {
    let env = Env::new().flow("asks", ASKS).file("answers.yaml", "private: nobody else's\n");
    assert_eq!(env.run(["asks", "--answers", "answers.yaml"]).go().result(), "nobody else's");
    brought(&env, "r2", json!({ "fork": { "run": RUN } })).sync().unwrap();
    let ended = env.nietz(["resume", "r2", "--json", "--", "asks"]).go().exits(7);
    assert_eq!(ended.asked(), ["private"], "{ended:?}");
    assert!(ended.stdout.contains("which is your own: nothing is taken from it"), "{ended:?}");
}

#[test]
fn the_result_of_a_run_that_was_brought_along_is_told_and_is_taken_by_its_whole_name_alone() {
    let env = Env::new().flow("asks", ASKS).flow("takes", TAKES).file("answers.yaml", "private: said\n");
    let theirs = Env::new().flow("takes", TAKES);
    theirs.run(["takes"]).go().exits(0);
    let folder = env.path(".nietz/runs/brought-1");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(theirs.journal_path(), folder.join("journal.jsonl")).unwrap();
    let refused = env.run(["takes", "--of", "brought"]).go().exits(2);
    assert!(refused.stderr.contains("is given by its whole name"), "{refused:?}");
    let taken = env.run(["takes", "--of", "brought-1"]).go();
    assert_eq!(taken.result(), "nothing");
    assert!(taken.stdout.contains("the run brought-1 was not begun by you in this folder"), "{taken:?}");
    // Of one's own, a part of the name is enough, and there is nothing to tell.
    let own = env.run(["takes", "--of", "r"]).var("NIETZ_RUN", "x2").go();
    assert!(!own.stdout.contains("not begun by you"), "{own:?}");
    assert_eq!(own.result(), "nothing");
}

#[test]
fn of_many_runs_that_were_brought_along_some_are_named() {
    let env = Env::new().flow("asks", ASKS);
    for run in 0..40 {
        brought(&env, &format!("brought-{run:02}"), json!({})).sync().unwrap();
    }
    for arguments in [&["resume"][..], &["log", "brought"]] {
        let told = env.nietz(arguments.iter().copied()).go().exits(2).stderr;
        assert!(told.contains("and 35 more") && told.len() < 700, "{told}");
    }
}

#[test]
fn of_runs_that_were_begun_in_one_second_the_last_is_the_latest() {
    let server = ModelServer::start(|_| Response::text("nobody asks"));
    let env = Env::with(&server).flow("asks", ASKS);
    for run in ["m", "z", "a"] {
        let killed = env.run(["asks"]).var("NIETZ_RUN", run).var("NIETZ_FAULT", "kill@1").go();
        assert_eq!(killed.signal, Some(9), "{killed:?}");
    }
    let ended = env.nietz(["resume", "--json"]).go().exits(7);
    assert!(ended.events()[0].to_string().contains("/runs/a/"), "{ended:?}");
    assert!(env.nietz(["log"]).go().exits(0).stdout.contains("run a"));
}
