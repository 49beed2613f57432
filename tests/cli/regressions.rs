//! The promise: what another model spoils in the bundled flows is found without a judge: a council whose minority is silent, a
//! debugger who gives the answer away, one who is slower and dearer; and who is as good is not accused.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::council::model::Brain;
use crate::council::table::REQUEST;
use crate::debug::desk::{PROBLEM, usual};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};

const CONFIG: &str = "models: {retry: {attempts: 1}, prices: {openai/test: {input: 2, output: 8}, openai/same: {input: 2, output: 8}, \
    openai/drops: {input: 2, output: 8}, openai/leaks: {input: 2, output: 8}, openai/dear: {input: 5, output: 20}}}\n";

/// What a model does badly it does most of the time: so many of 100 calls.
const BAD: u64 = 97;

/// Chance by a seed.
struct Chance(AtomicU64);

impl Chance {
    fn below(&self, most: u64) -> u64 {
        let mut mixed = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }
}

/// A server whose models take and cost more or less by chance. `dear` takes twice the tokens, at more than twice the price.
fn server(answer: impl Fn(&str, &Request, &Chance) -> Response + Send + Sync + 'static) -> ModelServer {
    let chance = Chance(AtomicU64::new(7));
    ModelServer::start(move |request| {
        let model = request.body["model"].as_str().unwrap_or_default();
        let response = answer(model, request, &chance);
        let much = if model == "dear" { 2 } else { 1 };
        let slow = if model == "dear" { 150 } else { 0 };
        response
            .usage(much * (900 + chance.below(200)), much * (90 + chance.below(20)))
            .delay(Duration::from_millis(slow + chance.below(5)))
    })
}

fn is_measured() -> bool {
    std::env::var_os("NIETZ_TEST_WHOLE").is_some()
}

fn count() -> usize {
    if is_measured() { 20 } else { 3 }
}

/// Compares each of these runs with the models. Returns, by model, in how many of them something was found, and by what.
fn found(env: &Env, runs: &[String], models: &str) -> Vec<(Value, usize)> {
    let words = ["compare"].into_iter().chain(runs.iter().map(String::as_str)).chain(["--models", models, "--json"]);
    let ended = env.nietz(words).patient().go().exits(0);
    let all: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let models = all["models"].as_array().expect("models").iter().map(|model| {
        let each = model["each"].as_array().expect("runs");
        // Half as much again is more than chance does here.
        let much = |value: &Value| value.as_f64().is_some_and(|ratio| ratio > 1.5);
        // What a call takes on a machine that has other work says nothing.
        let is_slower = |one: &Value| !is_measured() || much(&one["slower"]);
        let is_found = |one: &&Value| {
            one["lost"].as_array().is_some_and(|lost| !lost.is_empty()) || much(&one["dearer"]) && is_slower(one)
        };
        let found = each.iter().filter(is_found).count();
        println!(
            "{}: found in {found} of {}; {} × money, {} × time, lost {}",
            model["model"],
            each.len(),
            model["dearer"],
            model["slower"],
            model["lost"],
        );
        (model.clone(), found)
    });
    models.collect()
}

/// Keeps a page of the comparison for a browser, where one asks for it; what it shows stands in `compare`.
fn keep_page(env: &Env, runs: &[String]) {
    let Some(folder) = std::env::var_os("NIETZ_TEST_PAGES") else { return };
    let page = std::path::PathBuf::from(folder).join("comparison.html");
    let page = page.to_str().expect("UTF-8");
    let models = [
        "--models",
        "openai/same,openai/drops,openai/dear",
        "--judge",
        "openai/judge",
        "--at-least",
        "0.9",
        "-o",
        page,
    ];
    let words = ["compare"].into_iter().chain(runs.iter().map(String::as_str)).chain(models);
    env.nietz(words).patient().go().exits(8);
}

fn environment(server: &ModelServer) -> Env {
    // Times are measured, too.
    Env::with(server).config(CONFIG).without("NIETZ_CLOCK")
}

#[test]
fn a_council_whose_minority_is_silent_is_found() {
    let brain = Brain::default();
    let server = server(move |model, request, chance| {
        let properties = &request.schema()["properties"];
        if model == "judge" {
            let better = if chance.below(3) == 0 { "tie" } else { "A" };
            let said =
                json!({ "reason": "It says what to do next, and what that costs.", "better": better, "holds": true });
            let asked =
                properties.as_object().into_iter().flatten().map(|(name, _)| (name.clone(), said[name].clone()));
            return Response::text(asked.collect::<serde_json::Map<_, _>>().into_iter().collect::<Value>().to_string());
        }
        let is_silent = model == "drops" && !properties["dissents"].is_null() && chance.below(100) < BAD;
        match is_silent {
            true => Response::text(
                json!({ "hole": "", "dissents": false, "report": "It is good enough.", "would_convince": "" })
                    .to_string(),
            ),
            false => brain.answer(request),
        }
    });
    let env = environment(&server);
    let names: Vec<String> = (0..count()).map(|number| format!("council{number}")).collect();
    for name in &names {
        let flow = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/council.lua");
        let about = format!("{REQUEST} ({name})");
        let call = env.run([flow, &about, "--no-pause", "--consider", "never", "--cycles", "1"]).var("NIETZ_RUN", name);
        call.patient().go().exits(0);
    }
    let all = found(&env, &names, "openai/same,openai/drops,openai/dear");
    keep_page(&env, &names);
    let least = names.len() * 9 / 10;
    assert_eq!(all[0].1, 0, "{}", all[0].0);
    assert!(all[1].1 >= least && all[1].0["lost"].to_string().contains("minority"), "{}", all[1].0);
    assert!(all[2].1 >= least, "{}", all[2].0);
}

#[test]
fn a_debugger_who_gives_the_answer_away_is_found() {
    let server = server(|model, request, chance| {
        let properties = &request.schema()["properties"];
        let is_question = properties.is_null() && !request.prompt().starts_with("Summarise");
        match model == "leaks" && is_question && chance.below(100) < BAD {
            true => Response::text(
                "The cause is that the deploy never clears the cache. Change the key in `deploy.sh` and add a flush.",
            ),
            false => Response::text(usual(request)),
        }
    });
    let env = environment(&server);
    let names: Vec<String> = (0..count()).map(|number| format!("debug{number}")).collect();
    for name in &names {
        let flow = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/debug.lua");
        let about = format!("{PROBLEM} ({name})");
        let said = "the log shows the old price\nthe deploy ran at noon\nthe time of the entry is older\nexit\n\n";
        env.run([flow, &about]).var("NIETZ_RUN", name).stdin(said).patient().go().exits(0);
    }
    let all = found(&env, &names, "openai/same,openai/leaks,openai/dear");
    let least = names.len() * 9 / 10;
    assert_eq!(all[0].1, 0, "{}", all[0].0);
    assert!(all[1].1 >= least && all[1].0["lost"].to_string().contains("asks_itself"), "{}", all[1].0);
    assert!(all[2].1 >= least, "{}", all[2].0);
}
