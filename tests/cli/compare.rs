//! The promise: what another model would do to runs is shown by fields of results, by the flow's own checks, by cost and by time; only
//! what differs is paid for, and the second time nothing.

use std::time::Duration;

use serde_json::{Value, json};

use super::report::{PAYLOADS, elements};
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
    // The recorded model once more: all its calls are made anew, also those that name their model.
    let plan = compare(&env, &runs, &["--models", "control", "--plan"], 0);
    assert_eq!((&plan[0]["calls"], &plan[0]["usage"]["input"]), (&json!(6), &json!(6000)), "{plan}");
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
        format!("{}{}", refused.stdout, refused.stderr).contains("checks must be functions, or questions"),
        "{refused:?}"
    );
}

/// What a flow brings as a text, with a question about it for a judge.
const ADVICE: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
return nietz.flow {
  name = "advice", summary = "Advises", host_api = 2, permissions = { llm = true },
  params = { about = { type = "string", positional = true, required = true } },
  run = function(ctx) return llm.chat({ prompt = "Advise on " .. ctx.params.about }).text end,
  checks = { is_kind = "Is it kind?" },
}"#;

/// Models that advise, one better than the others, and a judge who prefers the long advice, or whatever stands first.
fn advisers() -> ModelServer {
    ModelServer::start(|request| {
        let model = request.body["model"].as_str().unwrap_or_default().to_owned();
        let prompt = request.prompt();
        let first = |long: &str| {
            prompt.find("Text A came out").is_some_and(|a| {
                prompt.find(long).is_some_and(|at| at > a && at < prompt.find("Text B came out").unwrap_or(0))
            })
        };
        let response = match model.as_str() {
            "judge" if prompt.contains("Is it kind?") => {
                let holds = !prompt.contains("Curtly");
                Response::text(json!({ "reason": "By its tone.", "holds": holds }).to_string())
            }
            "judge" => {
                let better = if first("In all detail") { "A" } else { "B" };
                let better = if prompt.contains("In all detail") { better } else { "tie" };
                Response::text(json!({ "reason": "It says more.", "better": better }).to_string())
            }
            "first" => Response::text(json!({ "reason": "I like what I read first.", "better": "A" }).to_string()),
            "thorough" => Response::text(format!("In all detail, as {model} has it:\n\n- drink {prompt}\n- rest")),
            "curt" => Response::text(format!("Curtly, as openai/{model} has it:\n\n- {prompt}")),
            _ => Response::text(format!("As openai/{model} has it:\n\n- drink {prompt}")),
        };
        response.usage(500, 50)
    })
}

fn advised(env: &Env, count: usize) -> Vec<String> {
    let names: Vec<String> = (0..count).map(|number| format!("run{number}")).collect();
    for name in &names {
        env.run(["advice", &format!("topic {name}")]).var("NIETZ_RUN", name).go().exits(0);
    }
    names
}

#[test]
fn long_texts_are_judged_blind_in_both_orders_and_paid_for_once() {
    let server = advisers();
    let env = Env::with(&server).flow("advice", ADVICE).config(PRICES);
    let runs = advised(&env, 6);
    let words = ["--models", "openai/thorough,openai/curt,openai/other", "--judge", "openai/judge"];
    let plan = compare(&env, &runs, &[&words[..], &["--plan"]].concat(), 0);
    // Six answers to the question about each of four, and a pair in both orders for each of three.
    assert_eq!((&plan[3]["model"], &plan[3]["calls"]), (&json!("openai/judge"), &json!(6 * 4 + 6 * 3 * 2)), "{plan}");
    let before = server.calls();
    let all = compare(&env, &runs, &words, 0);
    let judging = |model: &str| {
        let is_his = |request: &crate::support::model_server::Request| request.body["model"] == model;
        server.requests().into_iter().filter(is_his).collect::<Vec<_>>()
    };
    // One model says the same but for its name, which the judge does not read: nothing is asked about that again.
    let asked = 6 * 3 + 6 * 2 * 2;
    assert_eq!(judging("judge").len(), asked);
    assert_eq!(server.calls(), before + 6 * 3 + asked);
    for request in judging("judge") {
        let heard = request.prompt();
        for name in ["openai/", "thorough", "curt has", "test"] {
            assert!(!heard.contains(name), "the judge reads {name:?} in {heard}");
        }
    }
    let [thorough, curt, other] = [0, 1, 2].map(|at| &all["models"][at]);
    assert_eq!((&thorough["judged"]["verdict"], &thorough["judged"]["better"]), (&json!("better"), &json!(6)), "{all}");
    assert_eq!((&other["judged"]["verdict"], &other["judged"]["ties"]), (&json!(null), &json!(6)), "{all}");
    assert_eq!(curt["lost"], json!(vec!["is_kind"; 6]), "{curt}");
    assert_eq!((&thorough["share"], &curt["share"]), (&json!(1.0), &json!(0.0)), "{all}");
    // Paid for once.
    let before = server.calls();
    assert_eq!(compare(&env, &runs, &words, 0), all);
    assert_eq!(server.calls(), before);
    assert_eq!(compare(&env, &runs, &[&words[..], &["--plan"]].concat(), 0)[3]["calls"], 0);
    compare(&env, &runs, &["--models", "openai/thorough", "--judge", "openai/judge", "--at-least", "1"], 0);
    compare(&env, &runs, &["--models", "openai/curt", "--judge", "openai/judge", "--at-least", "0.9"], 8);
}

#[test]
fn who_prefers_what_stands_first_decides_nothing_and_neither_do_a_few_verdicts() {
    let server = advisers();
    let env = Env::with(&server).flow("advice", &ADVICE.replace("checks = { is_kind = \"Is it kind?\" },", ""));
    let env = env.config(PRICES);
    let runs = advised(&env, 6);
    let all = compare(&env, &runs, &["--models", "openai/thorough", "--judge", "openai/first"], 0);
    let judged = &all["models"][0]["judged"];
    assert_eq!((&judged["verdict"], &judged["ties"]), (&json!(null), &json!(6)), "{all}");
    let all = compare(&env, &runs[..5], &["--models", "openai/thorough", "--judge", "openai/judge"], 0);
    let judged = &all["models"][0]["judged"];
    assert_eq!((&judged["verdict"], &judged["better"]), (&json!(null), &json!(5)), "{all}");
    // Whoever names no judge is told that nobody read them.
    let told = env.nietz(["compare", &runs[0], "--models", "openai/thorough"]).patient().go().exits(0);
    assert!(told.stdout.contains("--judge MODEL names who reads them"), "{told:?}");
}

/// What a flow brings as two texts. One of them may be short, and an option says what it must be like.
const HELP: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
return nietz.flow {
  name = "help", summary = "Helps", host_api = 2, permissions = { llm = true },
  params = {
    question = { type = "string", positional = true, required = true },
    reader = { type = "string", default = "anybody" }, tone = { type = "string", default = "plain" },
  },
  run = function(ctx)
    local answer = llm.chat { prompt = "Answer: " .. ctx.params.question }
    local caution = llm.chat { prompt = "What to look out for: " .. ctx.params.question }
    return { answer = answer.text, caution = caution.text }
  end,
}"#;

#[test]
fn texts_of_several_fields_are_judged_by_field_and_as_a_whole() {
    let answer = "Take the second road at the church, which is longer and has no stairs at all.";
    let server = ModelServer::start(move |request| {
        let model = request.body["model"].as_str().unwrap_or_default().to_owned();
        let prompt = request.prompt();
        let response = match (model.as_str(), prompt.starts_with("Answer")) {
            ("judge", _) => {
                let good_first = prompt.find("Mind the stairs").unwrap_or(0) < prompt.find("None.").unwrap_or(0);
                let good = if good_first { "A" } else { "B" };
                let parts = json!({ "answer": "tie", "caution": good });
                Response::text(json!({ "reason": "One warns.", "parts": parts, "better": good }).to_string())
            }
            ("careless-2", true) => Response::text(format!("As CARELESS-2 says: {answer}")),
            (_, true) => Response::text(answer),
            ("careless-2", false) => Response::text("None."),
            _ => Response::text("Mind the stairs behind the mill, where somebody falls each winter: they are icy."),
        };
        response.usage(500, 50)
    });
    let env = Env::with(&server).flow("help", HELP).config(PRICES);
    for name in ["run0", "run1"] {
        let words = ["help", &format!("How do I get up there, {name}?"), "--reader", "a walker of eighty"];
        env.run(words).var("NIETZ_RUN", name).go().exits(0);
    }
    let runs = ["run0".to_owned(), "run1".to_owned()];
    let all = compare(&env, &runs, &["--models", "openai/careless-2", "--judge", "openai/judge"], 0);
    let judged = &all["models"][0]["judged"];
    let fields = json!({
        "answer": { "better": 0, "ties": 2, "worse": 0 }, "caution": { "better": 0, "ties": 0, "worse": 2 },
    });
    assert_eq!((&judged["worse"], &judged["fields"]), (&json!(2), &fields), "{all}");
    assert_eq!(all["models"][0]["each"][0]["judged"]["fields"], json!({ "answer": "tie", "caution": "worse" }));
    let is_his = |request: &crate::support::model_server::Request| request.body["model"] == "judge";
    let heard: Vec<_> = server.requests().into_iter().filter(is_his).collect();
    assert_eq!(heard.len(), 4);
    for request in heard {
        let prompt = request.prompt();
        // A short text stands where its longer one would, and what was given but not what is so anyway.
        for part in ["## answer", "## caution\n\nNone.", "- reader: a walker of eighty", "As [model] says"] {
            assert!(prompt.contains(part), "{part} is missing in {prompt}");
        }
        for part in ["plain", "CARELESS"] {
            assert!(!prompt.contains(part), "{part} stands in {prompt}");
        }
    }
    let told =
        env.nietz(["compare", "run0", "--models", "openai/careless-2", "--judge", "openai/judge", "-o", "page.html"]);
    let told = told.patient().go().exits(0).stdout;
    assert!(
        told.contains("texts by field: answer: better 0, alike 1, worse 0; caution: better 0, alike 0, worse 1"),
        "{told}"
    );
    assert!(env.read("page.html").contains("answer: alike<br>caution: worse"));
}

/// Asks in words of the model's own, twice.
const TALK: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
  name = "talk", summary = "Talks", host_api = 2, permissions = { llm = true },
  run = function()
    local said = {}
    for turn = 1, 2 do
      local question = llm.chat { prompt = "Ask question " .. turn }
      table.insert(said, ui.ask { id = "answer", prompt = question.text })
    end
    return said
  end,
}"#;

#[test]
fn people_say_the_same_when_another_model_asks_in_other_words() {
    let server = ModelServer::start(|request| {
        Response::text(format!("{}: {}", request.body["model"], request.prompt())).usage(10, 10)
    });
    let env = Env::with(&server).flow("talk", TALK).config(PRICES);
    env.run(["talk"]).var("NIETZ_RUN", "talk").stdin("the log\nthe clock\n").go().exits(0);
    let all = compare(&env, &["talk".to_owned()], &["--models", "openai/same,control"], 0);
    for model in [0, 1] {
        assert_eq!((&all["models"][model]["done"], &all["models"][model]["same"]), (&json!(1), &json!(2)), "{all}");
    }
}

#[test]
fn cassettes_are_compared_elsewhere_without_a_model_by_what_was_kept() {
    let server = server();
    let env = Env::with(&server).flow("votes", FLOW).config(PRICES);
    let runs = recorded(&env, 2);
    let read = |run: &str| std::fs::read(env.path(&format!(".nietz/runs/{run}/journal.jsonl"))).expect("a journal");
    let journal = read(&runs[0]);
    let cassette = "tests/cassettes/votes/whole.jsonl";
    env.write(cassette, &journal);
    let words = ["--models", "openai/same,openai/drops", "--kept", "tests/compared"];
    let all = compare(&env, &[cassette.to_owned()], &words, 0);
    assert_eq!(all["models"][1]["lost"], json!(["minority"]), "{all}");
    let kept: Vec<String> = env.documents().into_keys().filter(|path| path.starts_with("tests/compared/")).collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    // Another machine, where nothing listens.
    let elsewhere = Env::new().flow("votes", FLOW).config(PRICES).file(cassette, &journal);
    for (path, text) in env.documents() {
        elsewhere.write(&path, text);
    }
    let offline = [&words[..], &["--offline"]].concat();
    let found = compare(&elsewhere, &[cassette.to_owned()], &[&offline[..], &["--at-least", "0.9"]].concat(), 8);
    assert_eq!(found["models"], {
        let mut models = all["models"].clone();
        models[1]["below"] = json!(true);
        models
    });
    let only = ["--models", "openai/same", "--kept", "tests/compared", "--offline", "--at-least", "0.9"];
    compare(&elsewhere, &[cassette.to_owned()], &only, 0);
    // What nobody kept is told and not made up.
    let refused = elsewhere.nietz(["compare", cassette, "--models", "openai/dear", "--offline"]).go().exits(2);
    assert!(refused.stderr.contains("whole with openai/dear is not kept"), "{}", refused.stderr);
    // A cassette that was recorded anew is another run.
    elsewhere.write(cassette, read(&runs[1]));
    elsewhere
        .nietz(["compare", cassette, "--models", "openai/same", "--kept", "tests/compared", "--offline"])
        .go()
        .exits(2);
    // What a cassette was allowed, nobody else is.
    elsewhere.nietz(["fork", cassette, "--json"]).go().exits(2);
}

#[test]
fn a_page_has_all_of_a_comparison_side_by_side_and_no_markup_of_others() {
    let hostile: &'static str = Box::leak(PAYLOADS.join("\n\n").into_boxed_str());
    let server = ModelServer::start(move |request| {
        let response = match (request.body["model"].as_str(), request.prompt().contains("Is it kind?")) {
            (Some("judge"), true) => Response::text(json!({ "reason": &hostile[..300], "holds": true }).to_string()),
            (Some("judge"), false) => Response::text(json!({ "reason": &hostile[..300], "better": "A" }).to_string()),
            (model, _) => Response::text(format!("{model:?}\n\n{hostile}")),
        };
        response.usage(10, 10)
    });
    let env = Env::with(&server).flow("advice", ADVICE).config(PRICES);
    env.run(["advice", hostile]).var("NIETZ_RUN", "bad").go().exits(0);
    let words =
        ["compare", "bad", "--models", "openai/same,openai/drops", "--judge", "openai/judge", "-o", "page.html"];
    env.nietz(words).patient().go().exits(0);
    let page = env.read("page.html").replace("&#x2f;", "/").replace("&#x27;", "'");
    for part in
        ["openai/same, openai/drops beside what was recorded", "The judge: as good as", "Recorded</h4>", "id=\"run1\""]
    {
        assert!(page.contains(part), "{part} is missing: {page}");
    }
    assert!(page.contains("content=\"default-src 'none'; style-src 'sha256-"), "{page}");
    let foreign =
        ["script", "img", "iframe", "object", "embed", "base", "link", "video", "audio", "math", "form", "input"];
    for (name, attributes) in elements(page.split_once("</style>").expect("a style").1) {
        assert!(!foreign.contains(&name.as_str()), "<{name} {attributes}>");
        let names = attributes.split('"').step_by(2).flat_map(str::split_whitespace);
        let mut names = names.filter(|word| word.ends_with('='));
        assert!(!names.any(|word| word.starts_with("on") || word == "style="), "<{name} {attributes}>");
        let target = attributes.split_once("href=\"").map_or("#", |(_, target)| target);
        assert!(["#", "https://", "http://", "mailto:"].iter().any(|start| target.starts_with(start)), "{attributes}");
    }
}
