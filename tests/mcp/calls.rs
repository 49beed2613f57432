//! Calls: what comes of them, what is recorded, and what is given back without a server.

use serde_json::{Value, json};

use super::{CALLER, asked, calls, config, with};
use crate::support::env::{Env, RUN};
use crate::support::model_server::{ModelServer, Response};

#[test]
fn a_tool_is_called_and_what_it_brought_is_recorded_and_given_back_without_the_server() {
    let env = with("good");
    let ended = env.run(["caller"]).go().exits(0);
    let expected = json!({ "text": "1 page about tea", "value": { "count": 1, "query": "tea" } });
    assert_eq!(ended.result(), expected);
    assert_eq!(
        asked(&env),
        ["initialize", "notifications/initialized", "tools/list", "tools/call search"],
        "one handshake, one look, one call"
    );
    let recorded = env.journal().of_kind("mcp");
    let call = recorded.iter().find(|effect| effect.request["op"] == "call").expect("the call is recorded");
    assert_eq!(call.request["arguments"], json!({ "query": "tea" }));
    assert_eq!((&call.request["repeatable"], &call.outcome["ok"]), (&json!(true), &expected));

    // The server is gone, and so is its name: a resume, a cassette and a fork need none.
    let env = env.config("{}\n");
    env.nietz(["resume", RUN]).go();
    env.nietz(["test", "--from-run", RUN, "--name", "found"]).go().exits(0);
    env.nietz(["test"]).go().exits(0);
    let forked = env.nietz(["fork", RUN, "--json"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert_eq!((forked.result(), calls(&env)), (expected, 1));
}

#[test]
fn a_model_is_offered_tools_and_the_user_is_asked_about_those_that_change_something() {
    let flow = r#"
local llm = require("@nietz/llm")
local mcp = require("@nietz/mcp")
local nietz = require("@nietz")
return nietz.flow {
  name = "agent", summary = "Works", host_api = 2, permissions = { llm = true, mcp = { "docs" } },
  run = function()
    local reply = llm.chat { prompt = "go", tools = mcp.tools("docs", { only = { "search", "note" } }) }
    return { text = reply.text, messages = #reply.messages }
  end,
}"#;
    let server = ModelServer::start(|request| {
        assert_eq!(request.body["tools"].as_array().map(Vec::len), Some(2), "{}", request.body);
        let results: Vec<String> =
            request.turns().into_iter().filter(|(role, _)| role == "tool").map(|(_, text)| text).collect();
        match results.is_empty() {
            true => Response::text("").tool_call("t1", "search", r#"{"query": "tea"}"#).tool_call(
                "t2",
                "note",
                r#"{"text": "a"}"#,
            ),
            false => Response::text(results.join(" | ")),
        }
    });
    let env = Env::with(&server).flow("agent", flow).config(&config("good", ", seconds: 50"));
    let env = env.file("answers.yaml", "approve-note: no\n");
    let ended = env.run(["agent", "--answers", "answers.yaml"]).go().exits(0);
    let text = ended.result()["text"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("1 page about tea") && text.contains("does not allow this call"), "{text}");
    assert_eq!(calls(&env), 1, "what the user refused is not called");
}

#[test]
fn a_tool_s_own_failure_and_a_tool_that_is_not_there_are_told_by_their_words() {
    let env = with("good");
    let failed = env.run(["caller", "--tool", "fail", "--arguments", "{}", "--catch"]).go().exits(0).result();
    assert_eq!(failed["code"], "tool-failed");
    assert_eq!(failed["message"], "`fail` of the MCP server `docs`: there is no page of that name");
    let env = with("good");
    let missing = env.run(["caller", "--tool", "serach"]).go().exits(1);
    assert!(missing.stdout.contains("has no tool") && missing.stdout.contains("it has about, fail"), "{missing:?}");
}

#[test]
fn a_server_that_shakes_no_hands_is_spoken_to_as_since_2026() {
    let env = with("modern");
    env.run(["caller"]).go().exits(0);
    assert_eq!(asked(&env), ["initialize", "server/discover", "tools/list", "tools/call search"]);
    let log = std::fs::read_to_string(env.home().join("servers/docs/asked.jsonl")).expect("it was asked");
    let last: Value = serde_json::from_str(log.lines().last().expect("there are lines")).expect("it is JSON");
    assert_eq!(last["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
}

#[test]
fn only_servers_that_the_manifest_names_and_the_user_has_are_used() {
    // The manifest names another one.
    let other = CALLER.replace("mcp = { \"docs\" }", "mcp = { \"notes\" }");
    let env = Env::new().flow("caller", &other).config(&config("good", ""));
    let refused = env.run(["caller"]).go().exits(5);
    assert!(refused.stdout.contains("does not name the MCP server `docs`"), "{refused:?}");
    // The user has none of that name.
    let env = Env::new().flow("caller", CALLER);
    let missing = env.run(["caller"]).go().exits(1);
    assert!(missing.stdout.contains("server-missing"), "{missing:?}");
    // The manifest says nothing of it: seen before the run, and refused in it.
    let silent = CALLER.replace("permissions = { mcp = { \"docs\" } },", "");
    let env = Env::new().flow("caller", &silent).config(&config("good", ""));
    let checked = env.nietz(["check", "flows/caller.lua"]).go();
    assert!(
        checked.stdout.contains("permission-refused") || checked.stderr.contains("permission-refused"),
        "{checked:?}"
    );
    env.run(["caller"]).go().exits(5);
    assert_eq!(calls(&env), 0);
}

#[test]
fn the_user_is_asked_for_it_by_the_server_s_name_and_a_plan_says_what_that_may() {
    let env = with("good").trusting("");
    let refused = env.run(["caller"]).go().exits(5);
    assert!(refused.stdout.contains("folder-untrusted") && refused.stdout.contains("mcp=docs"), "{refused:?}");
    let plan = env.nietz(["run", "caller", "--plan", "--trust"]).go().exits(0).stdout;
    assert!(plan.contains("calls tools of docs") && plan.contains("in a sandbox, with the network"), "{plan}");
    env.trusting("mcp=docs").run(["caller"]).go().exits(0);
}

#[test]
fn a_project_names_no_server_and_says_where_it_is_told() {
    let env = with("good").file("nietz.yaml", "budget: {calls: 3}\nmcp: {docs: {command: [evil]}}\n");
    let refused = env.run(["caller"]).go().exits(1);
    let told = format!("{}{}", refused.stdout, refused.stderr);
    assert!(
        told.contains("nietz.yaml:2:1: mcp: MCP servers are programs that run") && told.contains("config-invalid"),
        "{told}"
    );
    assert_eq!(calls(&env), 0);
}

#[test]
fn what_is_wrong_in_the_configuration_is_told_with_its_line() {
    for (text, told) in [
        ("mcp:\n  docs: {}\n", "config.yaml:2:3: mcp.docs: it needs a command or a url"),
        ("mcp:\n  docs:\n    url: http://a.example\n", "config.yaml:3:5: mcp.docs.url: http goes to this machine only"),
        ("mcp:\n  Docs: {command: [a]}\n", "Docs"),
    ] {
        let env = Env::new().flow("caller", CALLER).config(text);
        let refused = env.run(["caller"]).go();
        let all = format!("{}{}", refused.stdout, refused.stderr);
        assert!(refused.code != Some(0) && all.contains(told), "{text}: {all}");
    }
}

#[test]
fn doctor_sees_the_servers_and_starts_them_where_it_is_asked_to() {
    let env = with("good");
    let told = env.nietz(["doctor"]).go().stdout;
    assert!(told.contains("mcp") && told.contains("docs: `/usr/bin/python3") && asked(&env).is_empty(), "{told}");
    let env = env.config("mcp: {docs: {command: [no-such-program]}}\n");
    let told = env.nietz(["doctor"]).go().stdout;
    assert!(told.contains("there is no program no-such-program"), "{told}");
}
