//! The promise: what a flow was given, and what a second try depends on, is on the disk before anything follows from it.
//! After a power cut the journal has only what was synced.

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

const CALLS: &str = r#"local llm = require("@nietz/llm")
return require("@nietz").flow { name = "calls", summary = "Calls twice", permissions = { llm = true },
  run = function()
    local one = llm.chat { prompt = "one" }.text
    return { one = one, two = llm.chat { prompt = "two" }.text }
  end }
"#;

const ROWS: &str = r#"local documents = require("@nietz/documents")
return require("@nietz").flow { name = "rows", summary = "Appends a row",
  collections = { rows = { path = "rows.jsonl", schema = { type = "object" } } },
  run = function() documents.collection("rows"):append { id = 1 } end }
"#;

const TWICE: &str = r#"local documents = require("@nietz/documents")
return require("@nietz").flow { name = "twice", summary = "Appends a row twice",
  collections = { rows = { path = "rows.jsonl", schema = { type = "object" } } },
  run = function() for _ = 1, 2 do documents.collection("rows"):append { id = 1 } end end }
"#;

/// Runs a flow whose power is cut after the line with the intent or the outcome (`what`) of its last effect of this kind.
#[track_caller]
fn cut(server: &ModelServer, name: &str, source: &str, what: &str) -> Env {
    let whole = Env::with(server).flow(name, source);
    whole.run([name]).go().exits(0);
    let lines = whole.journal().lines;
    let at = lines.iter().rposition(|line| line["is"].get(what).is_some()).expect("there is one") + 1;
    let env = Env::with(server).flow(name, source);
    let ended = env.run([name]).var("NIETZ_FAULT", &format!("power@{at}")).go();
    assert_eq!(ended.signal, Some(9), "{ended:?}");
    assert!(env.journal().lines.len() < at, "the line that was written last was not synced");
    env
}

#[test]
fn an_outcome_is_on_the_disk_before_the_flow_goes_on() {
    let server = ModelServer::start(|request| Response::text(format!("{}: done", request.prompt())));
    let env = cut(&server, "calls", CALLS, "intent");
    let ended = env.resume().go().exits(0);
    assert_eq!(ended.of_type("call_started").len(), 1, "the first call was given to the flow, and is not made again");
}

#[test]
fn an_effect_that_is_looked_for_has_its_intent_on_the_disk_before_it_begins() {
    let server = ModelServer::start(|_| Response::text("nobody asks"));
    let env = cut(&server, "rows", ROWS, "outcome");
    assert_eq!(env.read("rows.jsonl"), "{\"id\":1}\n");
    env.resume().go().exits(0);
    assert_eq!(env.read("rows.jsonl"), "{\"id\":1}\n", "the row was there, and is not appended again");
}

#[test]
fn a_row_is_looked_for_where_it_would_stand_and_not_where_one_like_it_does() {
    let env = Env::new().flow("twice", TWICE);
    env.run(["twice"]).go().exits(0);
    let second =
        env.journal().lines.iter().rposition(|line| line["is"].get("intent").is_some()).expect("there is one") + 1;
    let env = Env::new().flow("twice", TWICE);
    assert_eq!(env.run(["twice"]).var("NIETZ_FAULT", &format!("kill@{second}")).go().signal, Some(9));
    assert_eq!(env.read("rows.jsonl"), "{\"id\":1}\n");
    env.resume().go().exits(0);
    assert_eq!(env.read("rows.jsonl"), "{\"id\":1}\n{\"id\":1}\n");
}
