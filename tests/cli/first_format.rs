//! The promise: a journal of the first format, made by a program of that time, is read for good. It can be shown,
//! played as a cassette, forked, and gone on with.
//!
//! `tests/journals/v1` holds them, with the flows of two of them as they were.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::env::{Env, RUN};
use crate::support::journal::sealed;
use crate::support::model_server::{ModelServer, Request, Response};

const EVERYTHING: &str = include_str!("../journals/v1/everything.lua");
const BRANCHES: &str = include_str!("../journals/v1/branches.lua");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals/v1")
}

fn journal(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name).with_extension("jsonl")).expect("it is there")
}

/// Puts a journal where the run of a test has it.
fn place(env: &Env, name: &str) {
    env.write(&format!(".nietz/runs/{RUN}/journal.jsonl"), journal(name));
    assert_eq!(env.journal().lines[0]["v"], 1);
}

#[test]
fn of_each_bundled_flow_there_is_one_and_it_is_shown() {
    for name in ["brainstorm", "council", "debug", "debug-memory", "shots-on-goal", "everything", "branches"] {
        let env = Env::new();
        place(&env, name);
        let told = env.nietz(["log", RUN, "--json"]).go().exits(0).stdout;
        let texts = env.journal().lines.iter().filter(|line| line["is"].get("text").is_some()).count();
        assert_eq!(told.lines().count(), env.journal().lines.len() - texts, "{name}");
        env.nietz(["runs"]).go().exits(0);
    }
}

#[test]
fn one_is_a_cassette_and_what_is_recorded_of_it_is_one_too() {
    let env = Env::new().flow("everything", EVERYTHING);
    env.write("tests/cassettes/everything/run.jsonl", journal("everything"));
    let ended = env.nietz(["test"]).var("OPENAI_API_KEY", "").go().exits(0);
    assert!(ended.stdout.contains("passed everything/run"), "{}", ended.stdout);
}

#[test]
fn one_is_forked_and_nothing_of_it_is_paid_again() {
    let server = ModelServer::start(reply);
    let env = Env::with(&server).flow("branches", BRANCHES);
    place(&env, "branches");
    let recorded = finished(&env);
    let ended =
        env.nietz(["fork", RUN, "--json", "--", "branches", "--model", "openai/test"]).var("NIETZ_RUN", "r2").go();
    assert_eq!(ended.result()["said"], 6, "{ended:?}");
    assert_eq!(server.calls(), 7 - recorded);
}

#[test]
fn one_goes_on_where_it_was_killed_and_says_once_what_it_does_not_know() {
    let server = ModelServer::start(reply);
    let env = Env::with(&server).flow("branches", BRANCHES);
    place(&env, "branches");
    let before = std::fs::read(env.journal_path()).expect("it is there");
    let recorded = finished(&env);
    let ended = env.nietz(["resume", RUN, "--json", "--", "branches", "--model", "openai/test"]).go();
    assert_eq!(
        ended.result(),
        json!({ "said": 6, "last": "last 2026-01-09T10:30:00Z: done",
            "ends": { "a": "a second: done", "b": "b second: done", "c": "c second: done" } }),
    );
    assert_eq!(server.calls(), 7 - recorded, "what is recorded is not asked again");
    let older = ended.of_type("notice").iter().filter(|it| it.to_string().contains("an older format")).count();
    assert_eq!(older, 1, "{ended:?}");
    let after = std::fs::read(env.journal_path()).expect("it is there");
    assert!(after.starts_with(&before), "lines are never rewritten");
    assert_eq!(env.journal().lines.last().expect("it has an end")["v"], 2);
    // And again, from both formats.
    let again = env.nietz(["resume", RUN, "--json", "--", "branches", "--model", "openai/test"]).go();
    assert_eq!((again.result(), server.calls()), (ended.result(), 7 - recorded));
}

/// What a program of tomorrow adds to this format is passed over, and kept.
#[test]
fn what_a_newer_program_adds_is_no_fault() {
    let source = "local llm = require('@nietz/llm')
        return require('@nietz').flow { name = 'newer', summary = 's', permissions = { llm = true }, run = function()
          local ok, problem = pcall(llm.chat, { prompt = 'refused' })
          return { code = problem.code, said = llm.chat { prompt = 'said' }.text } end }";
    let server = ModelServer::start(|request| match request.prompt().as_str() {
        "refused" => Response::error(400, "never"),
        _ => Response::text("fine"),
    });
    let env = Env::with(&server).flow("newer", source);
    env.run(["newer"]).go().exits(0);
    let mut lines = env.journal().lines;
    lines[0]["is"]["open"]["weather"] = json!("fair");
    for line in &mut lines {
        if line["is"]["outcome"]["failure"].is_object() {
            line["is"]["outcome"]["failure"]["code"] = json!("model-sulks");
            line["is"]["outcome"]["failure"]["mood"] = json!("bad");
        }
    }
    let last = lines.pop().expect("it has an end");
    let seq = lines.len() + 1;
    let request = json!({ "key": "ab".repeat(16), "kind": "weather", "scope": "/", "request": {}, "at": 1 });
    lines.push(json!({ "v": 2, "seq": seq, "is": { "intent": request } }));
    let mut last = last;
    last["seq"] = json!(seq + 1);
    lines.push(last);
    env.write(&format!(".nietz/runs/{RUN}/journal.jsonl"), sealed(&lines));
    env.own(RUN);
    let before = std::fs::read(env.journal_path()).expect("it is there");
    let calls = server.calls();
    let ended = env.resume().go();
    assert_eq!(ended.result(), json!({ "code": "model-sulks", "said": "fine" }));
    assert_eq!((server.calls(), std::fs::read(env.journal_path()).expect("it is there")), (calls, before));
    assert!(env.nietz(["log", RUN]).go().exits(0).stdout.contains("[model-sulks]"));
    env.nietz(["check", &format!(".nietz/runs/{RUN}/journal.jsonl")]).go().exits(0);
}

/// Counts what is recorded; some is, and some is not.
fn finished(env: &Env) -> usize {
    let count = env.journal().effects().into_values().filter(|effect| effect.finished()).count();
    assert!((3..7).contains(&count), "{count}");
    count
}

fn reply(request: &Request) -> Response {
    Response::text(format!("{}: done", request.prompt()))
}
