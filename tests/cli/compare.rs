//! The promise: what another model would do to runs is shown by fields of results, by the flow's own checks, by cost and by time; only
//! what differs is paid for, and the second time nothing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

/// A flow whose result has a schema, and which asks a person between two calls.
const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
local schema = { type = "object", required = { "option", "minority" }, additionalProperties = false,
  properties = { option = { type = "string" }, minority = { type = "array", items = { type = "string" } } } }
return nietz.flow {
  name = "votes", summary = "Votes", host_api = 2, permissions = { llm = true },
  params = { about = { type = "string", positional = true, required = true } },
  run = function(ctx)
    local weight = ui.ask { id = "weight", prompt = "What counts?" }
    local hint = llm.chat { model = "openai/fixed", prompt = "What is asked by " .. ctx.params.about }
    local vote = llm.chat { prompt = "Vote on " .. ctx.params.about .. " by " .. weight .. " and " .. hint.text, schema = schema }
    local reason = llm.chat { prompt = "Say why, without the secret word" }
    return { option = vote.value.option, minority = vote.value.minority, reason = reason.text }
  end,
  checks = {
    minority = function(run) return #run.result.minority > 0 end,
    keeps_secret = function(run) return string.find(run.result.reason, "xyzzy", 1, true) == nil end,
  },
}"#;

const PRICES: &str = "models: {retry: {attempts: 1}, prices: {openai/test: {input: 2, output: 8}, openai/fixed: {input: 1, output: 1}, \
    openai/same: {input: 2, output: 8}, openai/drops: {input: 2, output: 8}, openai/leaks: {input: 2, output: 8}, \
    openai/dear: {input: 20, output: 80}}}\n";

fn server() -> ModelServer {
    ModelServer::start(|request| {
        let model = request.body["model"].as_str().unwrap_or_default().to_owned();
        let prompt = request.prompt();
        let response = if prompt.starts_with("Vote") {
            let minority = if model == "drops" { json!([]) } else { json!(["too slow"]) };
            Response::text(json!({ "option": "B", "minority": minority }).to_string())
        } else if prompt.starts_with("Say why") {
            let secret = if model == "leaks" { "It is xyzzy. " } else { "" };
            Response::text(format!(
                "{secret}It is the one that most of them can live with, says {model}, after some thought."
            ))
        } else {
            Response::text("a committee")
        };
        // Long enough to be seen on a machine that has other work.
        let slow = if model == "dear" { 1000 } else { 1 };
        response.usage(1000, 100).delay(Duration::from_millis(slow))
    })
}

/// So many runs that are done, by their names.
fn recorded(env: &Env, count: usize) -> Vec<String> {
    let names: Vec<String> = (0..count).map(|number| format!("run{number}")).collect();
    for name in &names {
        env.run(["votes", &format!("topic {name}")]).var("NIETZ_RUN", name).stdin("cost\n").go().exits(0);
    }
    names
}

fn compare(env: &Env, runs: &[String], words: &[&str], code: i32) -> Value {
    let words = ["compare"].into_iter().chain(runs.iter().map(String::as_str)).chain(words.iter().copied());
    let ended = env.nietz(words.chain(["--json"])).patient().go().exits(code);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

#[test]
fn another_model_pays_for_its_own_calls_alone_and_the_second_time_nothing() {
    let server = server();
    let env = Env::with(&server).flow("votes", FLOW).config(PRICES);
    let runs = recorded(&env, 2);
    let before = server.calls();
    assert_eq!(before, 6);
    let plan = compare(&env, &runs, &["--models", "openai/same,openai/dear", "--plan"], 0);
    assert_eq!((&plan[0]["calls"], &plan[0]["usage"]["input"]), (&json!(4), &json!(4000)), "{plan}");
    assert!((plan[1]["cost"].as_f64().unwrap() - 4.0 * (1000.0 * 20.0 + 100.0 * 80.0) / 1e6).abs() < 1e-9, "{plan}");
    assert_eq!(server.calls(), before, "a plan asks nobody");
    let all = compare(&env, &runs, &["--models", "openai/same"], 0);
    // The call that names its own model is given back.
    assert_eq!(server.calls(), before + 4);
    let same = &all["models"][0];
    assert_eq!((&same["done"], &same["share"], &same["lost"]), (&json!(2), &json!(1.0), &json!([])), "{all}");
    assert_eq!(compare(&env, &runs, &["--models", "openai/same"], 0), all);
    assert_eq!(server.calls(), before + 4, "the second time costs nothing");
    assert_eq!(compare(&env, &runs, &["--models", "openai/same", "--plan"], 0)[0]["calls"], 0);
    // The recorded model once more: all its calls are made anew.
    compare(&env, &runs, &["--models", "control"], 0);
    assert_eq!(server.calls(), before + 4 + 6);
    assert!(env.documents().keys().all(|path| path.starts_with("flows/")), "the workspace is as it was");
}

#[test]
fn planted_regressions_are_found_by_checks_fields_cost_and_time() {
    let server = server();
    // Times are measured, too.
    let env = Env::with(&server).flow("votes", FLOW).config(PRICES).without("NIETZ_CLOCK");
    let count = if std::env::var_os("NIETZ_TEST_WHOLE").is_some() { 20 } else { 3 };
    let runs = recorded(&env, count);
    let models = ["--models", "openai/same,openai/drops,openai/leaks,openai/dear", "--at-least", "0.9"];
    let all = compare(&env, &runs, &models, 8);
    let [same, drops, leaks, dear] = [0, 1, 2, 3].map(|at| &all["models"][at]);
    let lost =
        |model: &Value, check: &str| model["lost"].as_array().unwrap().iter().filter(|lost| *lost == check).count();
    assert_eq!((&same["share"], same["lost"].as_array().map(Vec::len)), (&json!(1.0), Some(0)), "{same}");
    assert_eq!((lost(drops, "minority"), lost(leaks, "keeps_secret")), (count, count), "{all}");
    assert!(drops["different"].to_string().contains("/minority"), "{drops}");
    assert!(drops["share"].as_f64() < Some(0.9) && leaks["share"].as_f64() < Some(0.9), "{all}");
    // Ten times as dear for two of three calls, and a second slower for each.
    assert!(dear["dearer"].as_f64() > Some(3.0) && dear["slower"].as_f64() > Some(1.2), "{dear}");
    assert!(same["dearer"].as_f64().is_some_and(|ratio| (ratio - 1.0).abs() < 1e-9), "{same}");
    assert!(same["interval"].is_array(), "{same}");
    // The longer texts are only counted: nobody judges them here.
    assert_eq!((&dear["texts"], &dear["same_texts"]), (&json!(count), &json!(0)), "{dear}");
    // Without a threshold, nothing is decided; what is good enough ends well.
    compare(&env, &runs, &["--models", "openai/drops"], 0);
    compare(&env, &runs, &["--models", "openai/same", "--at-least", "0.9"], 0);
}

#[test]
fn what_cannot_be_compared_is_refused_before_anything_is_paid() {
    let server = server();
    let env = Env::with(&server).flow("votes", FLOW).config(PRICES);
    env.run(["votes", "open"]).go().exits(7);
    let refused = env.nietz(["compare", "r1", "--models", "openai/same"]).go().exits(2);
    assert!(refused.stderr.contains("r1 is not done"), "{}", refused.stderr);
    env.nietz(["compare", "r1"]).go().exits(2);
    env.nietz(["compare", "r1", "--models", "openai/same", "--at-least", "7"]).go().exits(2);
    assert_eq!(server.calls(), 0);
    let broken = FLOW.replace("minority = function(run)", "minority = 7, other = function(run)");
    env.write("flows/votes.lua", broken);
    let refused = env.nietz(["check", "flows/votes.lua"]).go().exits(4);
    assert!(
        refused.stdout.contains("checks must be functions") || refused.stderr.contains("checks must be functions"),
        "{refused:?}"
    );
}
