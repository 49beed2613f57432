//! The promise: how much a model is to think is said once, by whoever knows it best; it stands in the journal, and what a model
//! thought is counted as a part of what it said.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;

const CONFIG: &str = "models:
  retry: {attempts: 3, total_seconds: 20, base_delay_ms: 1}
  aliases:
    deep: {model: openai/test, effort: high}
    plain: openai/test
";

const PERSONA: &str = "---\nname: Quick\neffort: minimal\n---\nYou are quick.\n";

/// One call for each way to say it.
const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local personas = require("@nietz/personas")

return nietz.flow {
	name = "efforts",
	summary = "Calls that say how much to think, and calls that do not",
	permissions = { llm = true },
	run = function()
		local quick = personas.get("quick")
		llm.chat { prompt = "call", persona = quick, model = "deep", effort = "max" }
		llm.chat { prompt = "persona", persona = quick, model = "deep" }
		llm.chat { prompt = "alias", model = "deep" }
		llm.chat { prompt = "plain", model = "plain" }
		llm.chat { prompt = "own" }
		return "done"
	end,
}
"#;

fn model() -> ModelServer {
    ModelServer::start(|request| Response::text(format!("<{}>", request.prompt())))
}

fn env(server: &ModelServer) -> Env {
    Env::with(server).config(CONFIG).flow("efforts", FLOW).file("personas/quick.md", PERSONA)
}

/// Returns the effort of each call that was sent, by its prompt.
fn efforts(ended: &Ended) -> Vec<(String, Value)> {
    let sent = ended.of_type("call_sent");
    let one = |event: &Value| {
        let request = &event["request"];
        let last = request["messages"].as_array().and_then(|all| all.last());
        (last.map(|message| message["content"].as_str().unwrap_or_default().to_owned()), request["effort"].clone())
    };
    sent.iter().map(one).map(|(prompt, effort)| (prompt.unwrap_or_default(), effort)).collect()
}

fn expected(of: [Value; 5]) -> Vec<(String, Value)> {
    ["call", "persona", "alias", "plain", "own"].map(str::to_owned).into_iter().zip(of).collect()
}

#[test]
fn the_call_counts_before_the_persona_the_alias_and_the_command_line() {
    let server = model();
    let env = env(&server);
    let null = Value::Null;
    let run = |id: &str, model: &str, more: &[&str]| {
        let call =
            env.nietz(["run", "efforts", "--json", "--seed", "1", "--verbose", "--model", model]).var("NIETZ_RUN", id);
        efforts(&call.args(more.iter().copied()).go().exits(0))
    };
    let without = expected(["max".into(), "minimal".into(), "high".into(), null.clone(), null.clone()]);
    assert_eq!(run("r1", "openai/test", &[]), without);
    let low = expected(["max".into(), "minimal".into(), "high".into(), "low".into(), "low".into()]);
    assert_eq!(run("r2", "openai/test", &["--effort", "low"]), low);
    // The alias of the run's own model is for the calls that name none, unless the user says another effort beside it.
    let deep = expected(["max".into(), "minimal".into(), "high".into(), null, "high".into()]);
    assert_eq!(run("r3", "deep", &[]), deep);
    assert_eq!(run("r4", "deep", &["--effort", "low"]), low);
    let config = CONFIG.replace("models:\n", "models:\n  effort: low\n");
    let env = env.config(&config);
    let run = |id: &str, more: &[&str]| {
        let call = env.nietz(["run", "efforts", "--json", "--seed", "1", "--verbose"]).var("NIETZ_RUN", id);
        efforts(&call.args(more.iter().copied()).go().exits(0))
    };
    assert_eq!(run("r5", &["--model", "openai/test"]), low, "the configuration says it for all runs");
    let low_but_own = expected(["max".into(), "minimal".into(), "high".into(), "low".into(), "high".into()]);
    assert_eq!(run("r6", &["--model", "deep"]), low_but_own);
    let none = expected(["max".into(), "minimal".into(), "high".into(), "none".into(), "none".into()]);
    assert_eq!(run("r7", &["--model", "deep", "--effort", "none"]), none);
    let forked = env.nietz(["fork", "r6", "--json", "--verbose"]).var("NIETZ_RUN", "r8").go().exits(0);
    assert_eq!((efforts(&forked), server.calls()), (Vec::new(), 35), "a fork keeps all of them");
}

/// A run that asks between its calls, so that it waits.
const WAITING: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")

return nietz.flow {
	name = "waiting",
	summary = "Two calls, a question and a call",
	permissions = { llm = true },
	run = function()
		local own = llm.chat { prompt = "own", effort = "high" }.text
		local one = llm.chat { prompt = "one" }.text
		local more = ui.ask { id = "more", prompt = "What else?" }
		return own .. one .. llm.chat { prompt = more }.text
	end,
}
"#;

fn prompts(server: &ModelServer) -> Vec<String> {
    server.requests().iter().map(Request::prompt).collect()
}

#[test]
fn a_resumed_run_thinks_as_it_was_begun() {
    let server = model();
    let env = env(&server).flow("waiting", WAITING);
    env.run(["waiting", "--effort", "low"]).go().exits(7);
    let first = &env.journal().lines[0]["is"]["open"]["efforts"];
    assert_eq!(*first, json!({"run": "low", "aliases": {"deep": "high"}}));
    let ended = env.resume().args(["--verbose"]).stdin("more\n").go().exits(0);
    assert_eq!(efforts(&ended), [("more".to_owned(), json!("low"))], "{ended:?}");
    assert_eq!(prompts(&server), ["own", "one", "more"]);
    let kept: Vec<Value> = env.journal().of_kind("chat").iter().map(|call| call.request["effort"].clone()).collect();
    assert!(kept.contains(&json!("low")) && kept.contains(&json!("high")), "{kept:?}");
}

#[test]
fn a_fork_with_another_effort_pays_for_the_calls_that_name_none() {
    let server = model();
    let env = env(&server).flow("waiting", WAITING);
    env.run(["waiting"]).stdin("more\n").go().exits(0);
    let fork = |id: &str, more: &[&str]| {
        let before = server.calls();
        let call = env.nietz(["fork", "r1", "--json", "--verbose"]).args(more.iter().copied()).var("NIETZ_RUN", id);
        let ended = call.stdin("more\n").go().exits(0);
        (prompts(&server)[before..].to_vec(), efforts(&ended))
    };
    let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(fork("r2", &[]).0, texts(&[]));
    let (paid, asked) = fork("r3", &["--effort", "max"]);
    assert_eq!(paid, texts(&["one", "more"]));
    assert!(asked.iter().all(|(_, effort)| effort == "max"), "{asked:?}");
    // The fork of a fork keeps what it was begun with.
    let call = env.nietz(["fork", "r3", "--json"]).var("NIETZ_RUN", "r4");
    call.stdin("more\n").go().exits(0);
    assert_eq!(prompts(&server).len(), 5);
}

#[test]
fn an_effort_that_there_is_not_is_refused_where_it_stands() {
    let server = model();
    let env = env(&server);
    let ended = env.nietz(["run", "efforts", "--effort", "lo"]).go().exits(2);
    assert!(ended.stderr.contains("none, minimal, low, medium, high, xhigh, max"), "{ended:?}");
    let flow = FLOW.replace("\"max\"", "\"lots\"");
    let env = env.flow("efforts", &flow);
    let ended = env.run(["efforts"]).go();
    assert_eq!(ended.failure(), "request-invalid");
    assert!(
        ended.stdout.contains("an effort is one of none, minimal, low, medium, high, xhigh, max; found `lots`"),
        "{ended:?}"
    );
    let env = env.config("models: {aliases: {deep: {model: openai/test, effort: lots}}}\n");
    let ended = env.run(["efforts"]).go();
    assert!(ended.stdout.contains("config-invalid") || ended.stderr.contains("config-invalid"), "{ended:?}");
    assert_eq!(server.calls(), 0);
}

#[test]
fn models_and_plans_tell_the_effort_of_an_alias() {
    let env = env(&model());
    let ended = env.nietz(["models"]).go().exits(0);
    assert!(ended.stdout.contains("alias deep = openai/test, effort high\nalias plain = openai/test\n"), "{ended:?}");
    let ended = env.nietz(["run", "efforts", "--plan", "--model", "deep"]).go().exits(0);
    assert!(ended.stdout.contains("deep means openai/test, effort high"), "{ended:?}");
    let row = |ended: &Ended| ended.stdout.lines().find(|line| line.starts_with("effort")).map(str::to_owned);
    assert_snapshot!(row(&ended).unwrap_or_default(), @"effort        high");
    let ended = env.nietz(["run", "efforts", "--plan", "--effort", "low", "--json"]).go().exits(0);
    assert_eq!(serde_json::from_str::<Value>(&ended.stdout).expect("it is JSON")["effort"], "low");
    env.write("nietz.yaml", "models: {aliases: {more: {model: openai/test, effort: max}}}\n");
    let ended = env.nietz(["models"]).go().exits(0);
    assert!(ended.stdout.contains("alias more = openai/test, effort max\n"), "a project's alias: {ended:?}");
    let ended = env.nietz(["explain", "effort"]).go().exits(0);
    assert!(ended.stdout.contains("how much a model is to think"), "{ended:?}");
}

/// Sends a reply of which most was thought.
fn thoughtful(_: &Request) -> Response {
    Response::text("Tea.").usage(10, 90).reasoning(80)
}

const TELLING: &str = "local llm = require('@nietz/llm')
return require('@nietz').flow { name = 'telling', summary = 's', permissions = { llm = true }, run = function()
    return llm.chat { prompt = 'Coffee?' }.usage end }";

#[test]
fn what_was_thought_is_told_as_a_part_of_what_came_and_counted_once() {
    let server = ModelServer::start(thoughtful);
    let env = Env::with(&server).flow("telling", TELLING);
    let ended = env.run(["telling"]).go().exits(0);
    let usage = json!({"input": 10, "output": 90, "reasoning": 80});
    assert_eq!((&ended.ending()["usage"], &ended.of_type("call_ended")[0]["usage"]), (&usage, &usage));
    let told = json!({"cache_written": 0, "cached": 0, "input": 10, "output": 90, "reasoning": 80});
    assert_eq!(ended.result(), told);
    let log = env.nietz(["log", "r1"]).go().exits(0);
    assert!(log.stdout.contains("Tea. (90 tokens, 80 of them thinking)"), "{log:?}");
    let runs = env.nietz(["runs", "--json"]).go().exits(0);
    assert!(runs.stdout.contains("\"reasoning\":80"), "{runs:?}");
    let ended = env.nietz(["run", "telling", "--model", "openai/test"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert!(ended.stderr.contains("10 tokens in, 90 out (80 of them thinking)"), "{ended:?}");
}

/// Two calls that used a hundred tokens each leave room for a third within 350, and would leave none if thoughts counted twice.
#[test]
fn a_budget_counts_what_was_thought_once() {
    let server = ModelServer::start(thoughtful);
    let source = "local llm = require('@nietz/llm')
        return require('@nietz').flow { name = 'thrice', summary = 's', permissions = { llm = true }, run = function()
          for _ = 1, 3 do llm.chat { prompt = 'Coffee?', max_tokens = 20 } end end }";
    let env = Env::with(&server).flow("thrice", source);
    env.run(["thrice", "--max-tokens", "350"]).go().exits(0);
    assert_eq!(server.calls(), 3);
}

#[test]
fn what_was_thought_is_told_of_anthropics_models_too() {
    let server = ModelServer::start(thoughtful);
    let env = Env::new().var("ANTHROPIC_BASE_URL", &server.url()).flow("telling", TELLING);
    let ended = env.run_on("anthropic/claude-sonnet-5-5", ["telling"]).go().exits(0);
    assert_eq!(ended.ending()["usage"], json!({"input": 10, "output": 90, "reasoning": 80}));
}
