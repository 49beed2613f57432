//! Councils whose journals are kept as cassettes: a whole one, with a skip, cycles, a direct address and a revisit; the same with a
//! small mind (`small`); one that is cancelled; one that reaches its limit. They replay with no model, no key and nobody to answer,
//! and the session that each of them holds is rebuilt from its turns alone.
//!
//! After a change of a prompt they are recorded anew: `NIETZ_RECORD=1 cargo test --locked council_is_played`. A real one, with the
//! model of this machine, is recorded by hand: `nietz run council …`, then `nietz test --from-run RUN --name local`. Nothing below
//! depends on what a model said.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::model::{Brain, restless};
use super::table::{LARGE, REQUEST, SMALL, Table, each, list, turns};
use crate::support::env::{Env, RUN};
use crate::support::journal::Journal;

const NAMES: [&str; 4] = ["whole", "small", "cancelled", "limit"];

fn cassette(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cassettes/council/{name}.jsonl"))
}

/// The result in a cassette's last line.
fn result(name: &str) -> Value {
    let journal = Journal::read(&cassette(name));
    let end = journal.lines.iter().rev().find_map(|line| line["is"].get("end")).expect("it was taken to its end");
    end["result"].clone()
}

/// Plays a council with the bundled flow, so that the journal names no path of ours.
fn play(name: &str, model: &str, stand: super::model::Stand, options: &[&str], lines: &[&str]) -> Value {
    let rounds = vec![
        vec![("Which deadline binds the migration?", "None before June"), ("Who pays for outages today?", "")],
        vec![("What may it cost at most?", "Two months of two people")],
    ];
    let table = Table::with(Brain { rounds, stand, ..Brain::default() });
    let stdin: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ended = table.env.run_on(model, ["council", REQUEST]).args(options.iter().copied()).stdin(stdin).go();
    let session = ended.result();
    if std::env::var_os("NIETZ_RECORD").is_some() {
        std::fs::copy(table.env.journal_path(), cassette(name)).expect("it can be written");
    }
    session
}

/// What stands in the whole one, whoever spoke in it.
fn whole(session: &Value) {
    assert_eq!(session["status"], "completed");
    let questions = list(&session["clarificationQuestions"]);
    assert!(turns(session, "answer").iter().any(|turn| turn["metadata"]["skipCommand"] == true), "a skip");
    assert!(turns(session, "question").iter().any(|turn| turn["metadata"]["revisit"] == true), "a revisit");
    assert!(each(questions, "status").contains(&"answered"));
    assert!(session["debateCycles"].as_u64() >= Some(2), "at least two cycles");
    assert!(turns(session, "discussion").iter().any(|turn| turn["recipient"]["type"] == "user"), "a direct address");
    assert!(session["finalAnswer"].as_str().is_some_and(|answer| answer.contains("contract tests")));
}

#[test]
fn a_whole_council_is_played() {
    let lines = ["skip", "The shop does", "", "", "@QA Engineer how would we know?", "", "", "revisit", "In May", ""];
    whole(&play("whole", LARGE, Brain::default().stand, &[], &lines));
    whole(&play("small", SMALL, Brain::default().stand, &[], &lines));
}

#[test]
fn a_cancelled_council_is_played() {
    let session =
        play("cancelled", LARGE, Brain::default().stand, &[], &["skip", "The shop does", "skip", "", "cancel"]);
    assert_eq!(session["status"], "cancelled");
}

#[test]
fn a_limited_council_is_played() {
    let session = play("limit", LARGE, restless, &["--clarify", "never", "--cycles", "3", "--no-pause"], &[]);
    assert_eq!(session["metadata"]["outcome"], "limit_reached");
}

#[test]
fn the_cassettes_replay_and_hold_what_they_are_kept_for() {
    for name in NAMES {
        let env = Env::new();
        std::fs::create_dir_all(env.journal_path().parent().expect("a journal is in a folder"))
            .expect("it can be made");
        std::fs::copy(cassette(name), env.journal_path()).expect("it can be copied");
        env.own(RUN);
        let ended = env.resume().go();
        assert_eq!(
            ended.code,
            Some(0),
            "{name}: record it anew with NIETZ_RECORD=1 cargo test council_is_played: {ended:?}"
        );
        assert_eq!(ended.result(), result(name), "{name}");
        let chats = |journal: &Journal| journal.of_kind("chat").len();
        assert_eq!(chats(&env.journal()), chats(&Journal::read(&cassette(name))), "{name}: nothing was called");
    }
    whole(&result("whole"));
    whole(&result("small"));
    assert_eq!(result("cancelled")["status"], "cancelled");
    assert!(!list(&result("cancelled")["messageTurns"]).is_empty(), "what was said is kept");
    let limited = result("limit");
    assert_eq!(list(&limited["councilDiscussions"]).last().expect("a cycle")["status"], "limit_reached");
}

/// The session of each cassette, in a flow that has nothing but its turns.
const REBUILD: &str = r#"
local nietz = require("@nietz")
local documents = require("@nietz/documents")
local session = require("./council/session")
return nietz.flow {
  name = "rebuild", summary = "Rebuilds a session", params = { file = { type = "string", positional = true } },
  collections = { turns = { path = "{*}", format = "json", schema = { type = "object" } } },
  run = function(ctx) return session.replay(documents.collection("turns"):load(ctx.params.file).turns) end,
}
"#;

#[test]
fn the_session_of_each_cassette_is_rebuilt_from_its_turns_alone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("flows/council");
    let mut env = Env::new().flow("rebuild", REBUILD);
    env = env.file("flows/council/session.lua", std::fs::read(folder.join("session.lua")).expect("it can be read"));
    for name in NAMES {
        let session = result(name);
        let file = format!("{name}.json");
        env.write(&file, serde_json::json!({"turns": session["messageTurns"]}).to_string());
        let ended = env.run(["rebuild", &file]).var("NIETZ_RUN", name).go();
        assert_eq!(ended.result(), session, "{name}");
    }
}

/// Each cassette holds a document that `nietz check` takes.
#[test]
fn the_sessions_of_the_cassettes_are_valid() {
    let env = Env::new();
    for name in NAMES {
        let file = format!("{name}.json");
        env.write(&file, result(name).to_string());
        let checked = env.nietz(["check", "--as", "council:sessions", &file]).go();
        assert_eq!((checked.code, checked.stdout.trim()), (Some(0), format!("{file}: valid").as_str()), "{checked:?}");
    }
}
