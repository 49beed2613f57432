//! Long attempts: a window that fills ends nothing, what a provider has cached costs less of a limit, and what was used counts
//! however it ended.

use serde_json::{Value, json};

use super::basics::{CHECK, call, column, env, killed_at, replace, rows, shoot, step};
use crate::support::env::Env;
use crate::support::git::git;
use crate::support::model_server::{ModelServer, Request, Response};

/// The letters of the file that the model reads again and again.
const LONG: usize = 9_000;
/// How often it does.
const READS: usize = 8;
/// What the provider takes at most, in tokens.
const WINDOW: u64 = 16_000;

/// The tokens of a request, as a provider counts them.
fn tokens(request: &Request) -> u64 {
    (request.raw.len() / 4) as u64
}

/// A model that reads long outputs, in a window that is not long enough for all of them.
fn reading(request: &Request) -> Response {
    if tokens(request) > WINDOW {
        let error = json!({"error": {"code": "context_length_exceeded", "type": "invalid_request_error",
            "message": "This model's maximum context length is 16000 tokens."}});
        return Response::plain(400, error.to_string()).header("content-type", "application/json");
    }
    let response = match step(request) {
        at if at < READS => call("run", &json!({ "command": format!("head -c {LONG} /dev/zero | tr '\\0' {at}") })),
        READS => replace("todo", "done"),
        _ => Response::text("I did it."),
    };
    response.usage(tokens(request), 20)
}

/// The results of tools that stand in a request.
fn results(request: &Request) -> Vec<String> {
    request.turns().into_iter().filter(|(role, _)| role == "tool").map(|(_, text)| text).collect()
}

fn said(ended: &crate::support::process::Ended) -> String {
    ended.of_type("said").iter().map(|said| said["markdown"].to_string()).collect()
}

/// What holds for a session whose window was full.
#[track_caller]
fn is_shortened(env: &Env, server: &ModelServer, ended: &crate::support::process::Ended) {
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    let last = results(server.requests().last().expect("there was one"));
    assert!(
        last[0].starts_with("[left out, because the window is nearly full: "),
        "the oldest goes first: {}",
        last[0]
    );
    assert!(last[0].ends_with(" bytes from run. Ask again for what you still need]"), "{}", last[0]);
    assert!(last[READS - 1].len() > LONG, "the last stays");
    let count = last.iter().filter(|text| text.starts_with("[left out")).count();
    assert_eq!(column(env, "attempt_usage", "left_out"), [count], "the record says so");
    assert!(said(ended).contains("older results of tools"), "the transcript says so: {}", said(ended));
    let outputs = column(env, "tool_call", "output");
    assert!(outputs[0].as_str().is_some_and(|text| text.len() > LONG), "the record keeps what the model has read");
}

#[test]
fn old_results_are_left_out_before_a_window_that_is_known_is_full() {
    let server = ModelServer::start(reading);
    let env = env(&server).config(&format!("models: {{windows: {{openai/a: {WINDOW}}}}}\n"));
    let ended = shoot(&env, &["--validate", CHECK]);
    is_shortened(&env, &server, &ended);
    assert!(server.requests().iter().all(|request| tokens(request) <= WINDOW), "nothing was refused");
}

#[test]
fn where_nobody_knows_the_window_the_provider_says_when_it_is_full_and_the_attempt_goes_on() {
    let server = ModelServer::start(reading);
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK]);
    is_shortened(&env, &server, &ended);
    let refused = server.requests().iter().filter(|request| tokens(request) > WINDOW).count();
    assert_eq!(refused, 1, "it is told once");
}

#[test]
fn killed_after_any_line_an_attempt_whose_window_was_full_comes_to_the_same() {
    killed_at(reading, &["--validate", CHECK], 8);
}

/// What the one attempt of a session has ended with, and what it used.
fn ended_with(env: &Env) -> (Value, String, Value) {
    let end = &rows(env, "attempt_result")[0];
    (
        end["status"].clone(),
        end["status_detail"].as_str().unwrap_or_default().to_owned(),
        rows(env, "attempt_usage")[0].clone(),
    )
}

#[test]
fn a_window_that_is_too_small_for_anything_ends_the_attempt_by_its_name_and_what_was_used_counts() {
    let server = ModelServer::start(|request| match step(request) {
        0 => call("read_file", &json!({ "path": "work.txt" })),
        1 => call("write_file", &json!({ "path": "new.txt", "text": "x" })),
        _ => Response::plain(400, r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#)
            .header("content-type", "application/json"),
    });
    let env = env(&server);
    shoot(&env, &["--validate", CHECK, "--max-breakdowns", "0"]);
    let (status, detail, usage) = ended_with(&env);
    assert_eq!(status, "error");
    assert!(detail.contains("takes in no more: prompt is too long"), "{detail}");
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(20), &json!(10)), "two replies were paid");
    assert_eq!(usage["turns"], 2);
    let commit = rows(&env, "attempt_result")[0]["end_commit_sha"].as_str().expect("a text").to_owned();
    assert_eq!(git(&env.workspace(), ["show", &format!("{commit}:new.txt")]), "x", "the work is kept");
}

#[test]
fn ten_tokens_from_a_cache_count_as_one_in_limits_and_whole_in_the_record() {
    for (cached, status) in [(0, "tool_limit"), (900, "success")] {
        let server = ModelServer::start(move |request| {
            match step(request) {
                0 => replace("todo", "done"),
                1..4 => call("run", &json!({ "command": format!("echo {}", step(request)) })),
                _ => Response::text("I did it."),
            }
            .counted(1000, cached, 0)
        });
        let env = env(&server);
        shoot(&env, &["--validate", CHECK, "--attempt-tokens", "2500", "--max-breakdowns", "0"]);
        let (ended, detail, usage) = ended_with(&env);
        let by_limit = detail.contains("the limit of 2500 tokens");
        assert_eq!(by_limit, status == "tool_limit", "{cached}: {ended} {detail}");
        let calls = if by_limit { 3 } else { 5 };
        assert_eq!((&usage["input_tokens"], &usage["cached_tokens"]), (&json!(1000 * calls), &json!(cached * calls)));
    }
}
