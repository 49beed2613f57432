//! The promises of model calls: what is asked of a model reaches its provider, what nietz sets itself cannot be set by a flow,
//! and a tool that needs approval waits for it.

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

fn flow(options: &str) -> String {
    format!(
        r#"return require("@nietz").flow {{
  name = "calls", summary = "Calls", host_api = 2, permissions = {{ llm = true }},
  run = function() return require("@nietz/llm").chat {{ prompt = "Hello", {options} }}.text end,
}}"#
    )
}

/// Runs a flow that makes one call with these options; returns the body that the server got.
fn sent(options: &str) -> Value {
    let server = ModelServer::start(|_| Response::text("hello"));
    let env = Env::with(&server).flow("calls", &flow(options));
    assert_eq!(env.run(["calls"]).go().result(), "hello", "{options}");
    server.requests()[0].body.clone()
}

#[test]
fn what_a_flow_sets_reaches_the_server_and_what_it_does_not_set_is_not_sent() {
    let options = r#"top_p = 0.5, stop = { "END" }, temperature = 0.2, provider_options = {
      openai = { logit_bias = { ["50256"] = -100 }, reasoning_effort = "low" }, other = { thing = true } }"#;
    let body = sent(options);
    assert_eq!((&body["top_p"], &body["stop"], &body["temperature"]), (&json!(0.5), &json!(["END"]), &json!(0.2)));
    assert_eq!((&body["logit_bias"], &body["reasoning_effort"]), (&json!({ "50256": -100 }), &json!("low")));
    assert_eq!(body.get("thing"), None, "what is for another provider stays here: {body}");
    let plain = sent("");
    for name in ["top_p", "stop", "logit_bias", "reasoning_effort"] {
        assert_eq!(plain.get(name), None, "{name}");
    }
}

#[test]
fn what_nietz_sets_itself_and_what_is_no_value_is_refused_before_any_call() {
    let server = ModelServer::start(|_| Response::text("hello"));
    for (options, said) in [
        (r#"provider_options = { openai = { model = "other" } }"#, "cannot set `model`"),
        (r#"provider_options = { anthropic = { Stream = false } }"#, "cannot set `Stream`"),
        (r#"provider_options = { openai = { messages = {} } }"#, "cannot set `messages`"),
        (r#"provider_options = { openai = { api_key = "x" } }"#, "cannot set `api_key`"),
        (r#"provider_options = { openai = { n = 8 } }"#, "cannot set `n`"),
        (r#"provider_options = { openai = "low" }"#, "a table for each provider"),
        ("top_p = 0", "top_p is above 0"),
        ("top_p = 1.1", "top_p is above 0"),
        (r#"stop = { "" }"#, "stop has at most"),
        (r#"top_k = 3"#, "did you mean `top_p`?"),
    ] {
        let env = Env::with(&server).flow("calls", &flow(options));
        let refused = env.run(["calls"]).go();
        let told = refused.ending().to_string();
        assert!(refused.code != Some(0) && told.contains(said), "{options}: {refused:?}");
    }
    assert_eq!(server.calls(), 0);
}

const APPROVED: &str = r#"
local llm = require("@nietz/llm")
return require("@nietz").flow {
  name = "acts", summary = "Acts", host_api = 2, permissions = { llm = true },
  run = function()
    local done = {}
    local reply = llm.chat {
      prompt = "Act.",
      tools = { send = {
        description = "Sends", approve = true, parameters = { type = "object", properties = { to = { type = "string" } } },
        run = function(arguments) table.insert(done, arguments.to) return "sent" end,
      } },
    }
    return { text = reply.text, done = done }
  end,
}"#;

fn server(arguments: &'static str) -> ModelServer {
    ModelServer::start(move |request| match request.turns().iter().any(|(role, _)| role == "tool") {
        true => Response::text(request.turns().last().map(|(_, text)| text.clone()).unwrap_or_default()),
        false => Response::text("").tool_call("t1", "send", arguments),
    })
}

#[test]
fn a_tool_that_needs_approval_waits_for_it_and_is_never_asked_about_twice() {
    let server = server(r#"{"to": "ann", "key": "planted-key-5f1d9a77c3"}"#);
    let env = Env::with(&server).flow("acts", APPROVED);
    let waiting = env.run(["acts"]).go().exits(7);
    let question = waiting.of_type("asked").remove(0)["question"].clone();
    assert_eq!((&question["id"], &question["type"]), (&json!("approve-send"), &json!("confirm")), "{question}");
    let prompt = question["prompt"].as_str().expect("a prompt");
    assert!(prompt.contains("`send`") && prompt.contains(r#""to":"ann""#), "{prompt}");
    assert!(!waiting.stdout.contains("planted-key"), "{waiting:?}");
    let done = env.nietz(["resume", "r1", "--json"]).stdin("yes\n").go().exits(0);
    assert_eq!(done.result()["done"], json!(["ann"]));
    let asked = |text: &str| text.matches("approve-send").count();
    let before = asked(&std::fs::read_to_string(env.journal_path()).expect("a journal"));
    // Again from the journal: nobody is asked, and no model.
    let calls = server.calls();
    env.nietz(["test", "--from-run", "r1"]).go().exits(0);
    env.nietz(["test"]).go().exits(0);
    assert_eq!(server.calls(), calls);
    assert!(before > 0);
}

#[test]
fn a_no_is_told_to_the_model_and_the_tool_does_not_run() {
    let server = server(r#"{"to": "ann"}"#);
    let env = Env::with(&server).flow("acts", APPROVED).file("answers.yaml", "approve-send: no\n");
    let ended = env.run(["acts", "--answers", "answers.yaml"]).go().exits(0);
    let result = ended.result();
    assert!(result["text"].as_str().expect("a text").contains("the user does not allow this call"), "{result}");
    assert_eq!(result["done"], json!({}));
}
