//! A whole session: six iterations and more, a party, a panel, `back 2`, `save`, a kill in the middle of a model call,
//! `resume`, `finish`. Its journal is kept as a cassette, which replays with no model, no key and nobody to answer.
//!
//! After a change of a prompt it is recorded anew: `NIETZ_RECORD=1 cargo test --locked survives_a_kill`.
//! A session with the local 1.5B model, held by hand in an empty folder, is kept with `nietz test --from-run RUN --name local`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::model::Brain;
use super::table::{SLUG, TOPIC, last_words, path, yaml};
use crate::support::env::{Env, RUN};
use crate::support::journal::Journal;
use crate::support::model_server::{Gate, ModelServer, Request, Response};
use crate::support::process::{Ended, Running};

/// The answers to the questions of the iterations; whatever else is asked has one answer.
const BEFORE: &[&str] = &[
    "Orders stay in our own ledger first",
    "a",
    "",
    "party",
    "A worker retries every payment each minute",
    "",
    "",
    "party exit",
    "Support people see pending orders daily",
    "",
    "",
    "back 2",
    "continue",
    "continue",
    "panel",
    "save",
    "panel exit",
    "The ledger is the only truth",
    "",
    "",
    LAST,
    "",
    "",
];
/// Weighing this answer is the call that is under way when the program is killed.
const LAST: &str = "We will refund customers after two days";
const AFTER: &[&str] = &["Ann writes the worker by Friday", "a", "", "status", "finish"];

fn other(id: &str) -> &'static str {
    match id {
        "party" | "panel" => "About a day",
        "technique" => "yes",
        "energy" | "checkpoint" => "continue",
        id => panic!("nobody expected the question {id}"),
    }
}

/// Answers what is asked until these are used up.
fn answer(running: &mut Running, answers: &[&str]) {
    let mut answers = answers.iter();
    while answers.len() > 0 {
        let asked = running.wait_for("asked");
        let line = match asked["question"]["id"].as_str().unwrap_or_default() {
            "answer" => answers.next().expect("there is one more"),
            id => other(id),
        };
        running.say(&format!("{line}\n"));
    }
}

/// Plays the session with the scripted model. The flow is the bundled one, so that the journal names no path of ours.
fn play() -> (Env, ModelServer, Ended) {
    let gate = Gate::default();
    let held = gate.clone();
    let brain = Brain { claims: 60, ..Brain::default() };
    let weighs = |request: &Request| last_words(request).iter().any(|words| words == LAST);
    let server = ModelServer::start(move |request| {
        let reply = Response::text(brain.reply(request).to_string());
        if weighs(request) { reply.held_by(&held) } else { reply }
    });
    let env = Env::with(&server);
    let mut running = env.run(["brainstorm", TOPIC, "--no-clarify"]).spawn();
    answer(&mut running, BEFORE);
    loop {
        // Counted before it is looked at: a call that comes in between is not waited for.
        let seen = server.calls();
        if server.requests().last().is_some_and(weighs) {
            break;
        }
        assert!(server.wait_for_calls(seen + 1, Duration::from_secs(30)), "the call never comes");
    }
    running.kill();
    gate.open();
    let mut running = env.resume().spawn();
    answer(&mut running, AFTER);
    running.close();
    let ended = running.end();
    (env, server, ended)
}

fn cassette() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cassettes/brainstorm/whole.jsonl")
}

#[test]
fn a_whole_session_survives_a_kill_and_its_files_are_in_order() {
    let (env, server, ended) = play();
    assert_eq!(ended.result()["status"], "completed");
    let session = yaml(&env.read(&path(SLUG)))["session"].clone();
    let length = |name: &str| session[name].as_array().map_or(0, Vec::len);
    assert!(length("history") >= 6 && length("party_history") >= 1 && length("panel_history") >= 1, "{session:#}");
    assert!(length("techniques_history") >= 1);
    assert_eq!((&session["status"], &session["iteration"]), (&"completed".into(), &length("history").into()));
    for (index, entry) in session["history"].as_array().expect("a list").iter().enumerate() {
        assert_eq!(entry["iteration"], index + 1);
    }
    let journal = env.journal();
    let calls = journal.of_kind("chat").len();
    assert_eq!(server.calls(), calls + 1, "only the call that was killed is made twice");
    for name in ["brief", "journal"] {
        let text = env.read(&format!("docs/briefs/{SLUG}/{name}-2026-01-09.md"));
        assert!(text.contains(LAST) || name == "brief", "{text}");
    }
    let checked = env.nietz(["check", &path(SLUG)]).go();
    assert_eq!(checked.code, Some(0), "{checked:?}");
    if std::env::var_os("NIETZ_RECORD").is_some() {
        env.nietz(["test", "--from-run", RUN, "--name", "whole"]).go().exits(0);
        std::fs::copy(env.path("tests/cassettes/brainstorm/whole.jsonl"), cassette()).expect("it can be written");
    }
}

/// No model listens, nobody answers: all of it comes from the journal.
#[test]
fn the_cassette_of_a_whole_session_replays() {
    let recorded = Journal::read(&cassette());
    let env = Env::new();
    std::fs::create_dir_all(env.journal_path().parent().expect("a journal is in a folder")).expect("it can be made");
    std::fs::copy(cassette(), env.journal_path()).expect("it can be copied");
    env.own(RUN);
    let ended = env.resume().go();
    assert_eq!(ended.code, Some(0), "record it anew with NIETZ_RECORD=1 cargo test survives_a_kill: {ended:?}");
    let end = recorded.lines.iter().rev().find_map(|line| line["is"].get("end")).expect("it was taken to its end");
    assert_eq!(ended.result(), end["result"]);
    let notices: Vec<Value> = ended.of_type("notice");
    assert!(
        notices.iter().any(|notice| notice["text"].as_str().unwrap_or_default().contains("nothing was done again")),
        "{notices:?}"
    );
    assert_eq!(env.journal().of_kind("chat").len(), recorded.of_kind("chat").len());
}
