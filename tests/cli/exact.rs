//! The promise: a run that is killed, or that waits, and goes on later has one history. What was recorded is given
//! back as it was given, also to branches that share a table; what failed in the end is tried again, and only that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::lua::exact::{Chance, flow};
use crate::shots::basics::{column, env as repository, good, shoot};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};

/// Nobody made a row twice, or with another's number.
#[track_caller]
fn is_on_record_once(env: &Env) {
    env.nietz(["check"]).go().exits(0);
    for table in ["attempt", "attempt_tool", "tool_call", "branch", "worktree"] {
        let mut ids: Vec<i64> = column(env, table, "id").iter().filter_map(Value::as_i64).collect();
        let all = ids.len();
        assert!(all > 0, "{table}");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "{table}");
    }
}

#[test]
fn shots_side_by_side_that_ran_out_of_calls_go_on_without_a_row_twice() {
    let server = ModelServer::start(good);
    let env = repository(&server);
    let more = ["--validate", "sh check.sh", "--shots", "3", "--max-calls", "8"];
    shoot(&env, &more).exits(6);
    let result = env.resume().args(["--max-calls", "60"]).go().result();
    assert_eq!(result["status"], "success", "{result}");
    is_on_record_once(&env);
}

#[test]
fn shots_side_by_side_that_were_killed_go_on_without_a_row_twice() {
    let server = ModelServer::start(good);
    let reference = repository(&server);
    let more = ["--validate", "sh check.sh", "--shots", "3"];
    shoot(&reference, &more).exits(0);
    let lines = reference.journal().lines.len() as u64;
    for line in crate::support::kills::points(lines, 4) {
        let server = ModelServer::start(good);
        let env = repository(&server);
        let models = ["shots-on-goal", "--model-a", "openai/a", "--model-b", "openai/b"];
        let call = env.run(models.into_iter().chain(more)).args(["say done in work.txt"]);
        let killed = call.var("NIETZ_FAULT", &format!("kill@{line}")).go();
        // Side by side, not each run has as many lines as the other.
        if killed.signal == Some(9) {
            env.resume().go().exits(0);
        }
        is_on_record_once(&env);
    }
}

fn slow(request: &Request) -> Response {
    let prompt = request.prompt();
    match prompt.starts_with("refuse") {
        true => Response::error(400, "it refuses"),
        false => Response::text(format!("r-{}", prompt.split('|').next().unwrap_or_default())),
    }
}

/// Thirty drawn flows, each killed by a real SIGKILL up to three times.
#[test]
fn drawn_flows_that_were_killed_have_one_history() {
    let cases: Vec<u64> = (1001..=1030).collect();
    crate::support::kills::for_each(&cases, |seed| {
        let mut chance = Chance::new(seed);
        let server = ModelServer::start(slow);
        let env = Env::with(&server).flow("exact", &flow(seed));
        let mut kill = || format!("kill@{}", 2 + chance.below(60));
        let mut ended = env.run(["exact"]).var("NIETZ_FAULT", &kill()).go();
        for _ in 0..2 {
            ended = env.resume().var("NIETZ_FAULT", &kill()).go();
        }
        if ended.code != Some(0) {
            ended = env.resume().go();
        }
        let result = ended.result();
        let (trace, text) = (result["trace"].as_str().expect("it says it"), env.read("rows.jsonl"));
        let rows: Vec<Value> = text.lines().map(|row| serde_json::from_str(row).expect("it is JSON")).collect();
        assert_eq!(result["count"], rows.len(), "seed {seed}");
        let begins = |seen: &str| trace == seen || seen.is_empty() || trace.starts_with(&format!("{seen} "));
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(row["id"], at + 1, "seed {seed}: {text}");
            assert!(begins(row["seen"].as_str().expect("it says it")), "seed {seed}: {row}\nthe end: {trace}");
        }
        for request in server.requests() {
            let prompt = request.prompt();
            let seen = prompt.split_once('|').map(|(_, seen)| seen);
            assert!(seen.is_none_or(begins), "seed {seed}: {prompt}\nthe end: {trace}");
        }
        let again = env.resume().go();
        assert_eq!((again.result(), env.read("rows.jsonl")), (result, text), "seed {seed}");
    });
}

/// A flow that saves a document with this version, and says that documents have that one.
fn saves(version: &str, declared: &str) -> String {
    format!(
        r#"local llm, documents = require("@nietz/llm"), require("@nietz/documents")
return require("@nietz").flow {{ name = "saves", summary = "Saves", permissions = {{ llm = true }},
  collections = {{ notes = {{ path = "notes/{{slug}}.yaml", keys = {{ slug = "/slug" }},
    schema = {{ type = "object", required = {{ "slug", "v" }}, properties = {{ v = {{ const = "{declared}" }} }} }},
    version = {{ field = "/v", current = "{declared}" }} }} }},
  run = function()
    local said = llm.chat {{ prompt = "once" }}.text
    return documents.collection("notes"):save {{ slug = "one", v = "{version}", said = said }}
  end }}
"#
    )
}

#[test]
fn however_many_edits_failed_a_flow_that_is_mended_goes_on() {
    let server = ModelServer::start(|_| Response::text("said"));
    let env = Env::with(&server).flow("saves", &saves("1", "2"));
    let first = env.run(["saves"]).go();
    assert_ne!(first.code, Some(0), "{first:?}");
    for (version, declared) in [("3", "2"), ("1", "2"), ("4", "2")] {
        env.write("flows/saves.lua", saves(version, declared));
        let failed = env.resume().go();
        assert_ne!(failed.code, Some(0), "{version} {declared}: {failed:?}");
    }
    // The same document as at first: only what is declared about it was wrong.
    env.write("flows/saves.lua", saves("1", "1"));
    let ended = env.resume().go().exits(0);
    assert_eq!(server.calls(), 1, "{ended:?}");
    assert!(env.read("notes/one.yaml").contains("said: said"), "{}", env.read("notes/one.yaml"));
}

/// Each edit asks for something else that fails; the first was right, once the world is.
#[test]
fn a_failure_before_another_is_tried_again_too() {
    let asks = |prompt: &str| {
        format!(
            "return require('@nietz').flow {{ name = 'asks', summary = 'Asks', permissions = {{ llm = true }}, run = function()\n\
             return require('@nietz/llm').chat {{ prompt = '{prompt}' }}.text\nend }}\n"
        )
    };
    let mended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&mended);
    let server = ModelServer::start(move |_| match seen.load(Ordering::SeqCst) {
        true => Response::text("fine"),
        false => Response::error(400, "never"),
    });
    let env = Env::with(&server).flow("asks", &asks("one"));
    env.run(["asks"]).go().exits(1);
    env.write("flows/asks.lua", asks("two"));
    env.resume().go().exits(1);
    mended.store(true, Ordering::SeqCst);
    env.write("flows/asks.lua", asks("one"));
    let forked = env.nietz(["fork", "r1", "--json"]).var("NIETZ_RUN", "r2").go();
    assert_eq!((forked.result(), server.calls()), (json!("fine"), 3));
    assert_eq!((env.resume().go().result(), server.calls()), (json!("fine"), 4));
}

/// A failure that a flow notes down before it gives up is the one that it ended with.
#[test]
fn what_a_flow_gave_up_over_is_tried_again_and_what_it_went_on_after_is_not() {
    let source = r#"local llm, documents = require("@nietz/llm"), require("@nietz/documents")
return require("@nietz").flow { name = "gives-up", summary = "Gives up", permissions = { llm = true },
  collections = { rows = { path = "rows.jsonl", schema = { type = "object" } } },
  run = function()
    local rows = documents.collection("rows")
    local ok, problem = pcall(llm.chat, { prompt = "handled" })
    rows:append { what = problem.code }
    local fine, reply = pcall(llm.chat, { prompt = "needed" })
    if not fine then
      rows:append { what = "gave up" }
      error(reply)
    end
    return { said = reply.text }
  end }
"#;
    let mended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&mended);
    let server = ModelServer::start(move |request| match request.prompt().as_str() {
        "needed" if seen.load(Ordering::SeqCst) => Response::text("fine"),
        _ => Response::error(400, "never"),
    });
    let env = Env::with(&server).flow("gives-up", source);
    assert_eq!(env.run(["gives-up"]).go().failure(), "model-refused");
    assert_eq!(server.calls(), 2);
    assert_eq!(env.resume().go().failure(), "model-refused");
    assert_eq!(server.calls(), 3, "the one that was handled is not asked again");
    mended.store(true, Ordering::SeqCst);
    assert_eq!(env.resume().go().result(), json!({ "said": "fine" }));
    assert_eq!(server.calls(), 4);
}
