//! Servers that mean harm, or do not know the protocol.

use serde_json::json;

use super::{CALLER, asked, calls, config, with};
use crate::support::env::{Env, KEY};

/// What a flow is told of a call to a server that behaves like this.
fn told(mode: &str, more: &str) -> serde_json::Value {
    told_within("50", mode, more)
}

fn told_within(seconds: &str, mode: &str, more: &str) -> serde_json::Value {
    let env = Env::new().flow("caller", CALLER).config(&config(mode, more));
    env.run(["caller", "--catch", "--seconds", seconds]).go().exits(0).result()
}

#[test]
fn a_message_of_100_mb_ends_the_server_and_not_the_run() {
    let told = told("long", ", seconds: 50");
    assert_eq!(told["code"], "server-failed", "{told}");
    assert_eq!(told["message"], "the MCP server `docs`: it sent a message of more than 16 MB");
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let silent = told("silent", ", seconds: 1");
    let why = "the MCP server `docs`: it does not answer `initialize` within 1 s";
    assert_eq!((&silent["code"], &silent["message"]), (&json!("server-failed"), &json!(why)));
    let mute = told_within("1", "mute", ", seconds: 50");
    let why = "the MCP server `docs`: it does not answer the call within 1 s";
    assert_eq!((&mute["code"], &mute["message"]), (&json!("server-failed"), &json!(why)));
}

#[test]
fn wrong_types_and_versions_are_told_and_not_believed() {
    for (mode, code, why) in [
        ("wrong", "tool-failed", "what it gave back has no list of contents"),
        ("wrong-list", "server-failed", "is no list of tools"),
        ("version", "server-failed", "it speaks the protocol of `1999-01-01`"),
        ("dies", "server-failed", "ended with exit status 7"),
        ("errors", "server-failed", "ended with exit status 3"),
    ] {
        let told = told(mode, ", seconds: 50");
        assert_eq!(told["code"], code, "{mode}: {told}");
        assert!(told["message"].as_str().is_some_and(|told| told.contains(why)), "{mode}: {told}");
    }
    // What is written beside the protocol does no harm.
    assert_eq!(told("talks", ", seconds: 50")["ok"], true);
}

#[test]
fn names_with_escapes_are_not_offered_and_reach_no_terminal() {
    let env = with("ansi");
    let ended = env.nietz(["run", "caller"]).go().exits(0);
    let all = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!all.contains('\u{1b}'), "{all:?}");
    assert!(all.contains("␛[31mred` is not offered") && all.contains("`two words` is not offered"), "{all}");
    let tools =
        env.journal().of_kind("mcp").into_iter().find(|effect| effect.request["op"] == "tools").expect("a look");
    assert_eq!(tools.outcome["ok"].as_array().map(Vec::len), Some(1), "{tools:?}");
}

#[test]
fn a_secret_in_what_a_server_says_is_kept_out_of_everything() {
    let env = with("secret");
    let ended = env.run(["caller"]).go().exits(0);
    assert_eq!(ended.result()["text"], "the key is [redacted:OPENAI_API_KEY]");
    let journal = env.read(".nietz/runs/r1/journal.jsonl");
    assert!(!ended.stdout.contains(KEY) && !journal.contains(KEY));
    let env = with("errors");
    let ended = env.run(["caller"]).go().exits(3);
    assert!(ended.stdout.contains("cannot find [redacted:OPENAI_API_KEY]") && !ended.stdout.contains(KEY), "{ended:?}");
    // Nor is one sent there.
    let env = with("good");
    env.run(["caller", "--arguments", &json!({ "query": KEY }).to_string()]).go().exits(0);
    let log = std::fs::read_to_string(env.home().join("servers/docs/asked.jsonl")).expect("it was asked");
    assert!(!log.contains(KEY) && log.contains("[redacted:OPENAI_API_KEY]"), "{log}");
}

#[test]
fn a_tool_that_becomes_another_after_it_was_looked_at_is_not_called() {
    let env = with("rug");
    let refused = env.run(["caller"]).go().exits(5);
    assert!(refused.stdout.contains("tool-changed"), "{refused:?}");
    assert_eq!((calls(&env), asked(&env).last().map(String::as_str)), (0, Some("tools/list")));
}

#[test]
fn a_server_is_given_no_model_and_a_ping_is_answered() {
    let env = with("asks");
    env.run(["caller"]).go().exits(0);
    assert_eq!(asked(&env)[4..], ["answer 1", "answer 2"]);
    let log = std::fs::read_to_string(env.home().join("servers/docs/asked.jsonl")).expect("it was asked");
    assert!(log.contains("nietz does not offer sampling/createMessage"), "{log}");
}
