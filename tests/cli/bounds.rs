//! The promise: whatever a flow, a query, a model or a server makes nietz compute, it comes to an end, and the user can end
//! it before. A child that does not end is killed after a minute, and its test fails.

use serde_json::json;

use crate::support::env::Env;
use crate::support::git::init;
use crate::support::model_server::{ModelServer, Response};

/// A flow with every module that these need, and this body.
fn flow(manifest: &str, body: &str) -> String {
    format!(
        r#"local nietz = require("@nietz")
local template = require("@nietz/template")
local documents = require("@nietz/documents")
local llm = require("@nietz/llm")
local ui = require("@nietz/ui")
local git = require("@nietz/git")
return nietz.flow {{ name = "x", summary = "s", {manifest}
run = function(ctx)
{body}
end }}"#
    )
}

const COMPARES: &str = r#"local one, other = {}, {}
for i = 1, 90000 do one[i] = 1 other[i] = 1 end
ui.say("it begins")
pcall(template.text, "{% for a in range(9999) %}{% if one == other or 2 in one %}{% endif %}{% endfor %}", { one = one, other = other })"#;

#[test]
fn a_template_that_compares_long_lists_ends_with_the_time_of_its_flow() {
    let env = Env::new().flow("x", &flow("", COMPARES));
    assert_eq!(env.run(["x"]).go().exits(1).failure(), "flow-limit");
}

/// A loop of Lua, and a template that no interrupt reaches: a minute would be theirs.
#[test]
fn ctrl_c_ends_what_computes_and_the_run_goes_on_from_there() {
    for body in ["ui.say(\"it begins\") while true do end", COMPARES] {
        let limits = "limits = { seconds = 60 }, permissions = { llm = true },";
        let server = ModelServer::start(|_| Response::text("paid"));
        let body = format!("local paid = llm.chat({{ prompt = 'p' }}).text\n{body}\nreturn paid");
        let env = Env::with(&server).flow("x", &flow(limits, &body));
        let mut running = env.run(["x"]).spawn();
        running.wait_for("said");
        running.interrupt();
        let ended = running.end().exits(130);
        assert!(ended.stderr.contains("resume with: nietz resume"), "{ended:?}");
        let env = env.flow("x", &flow(limits, "ui.say('it ends') return llm.chat({ prompt = 'p' }).text"));
        assert_eq!(env.resume().go().result(), "paid");
        assert_eq!(server.calls(), 1, "what was paid for is not paid for again");
    }
}

#[test]
fn a_flow_whose_top_level_computes_for_ever_is_checked_in_time() {
    let top = "while true do pcall(string.rep, 'x', 10) end\n";
    let env = Env::new().flow("x", &format!("{top}{}", flow("", "")));
    let ended = env.nietz(["check", "flows/x.lua"]).go();
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(format!("{}{}", ended.stdout, ended.stderr).contains("without an effect"), "{ended:?}");
}

#[test]
fn a_flow_asks_for_no_more_commands_than_a_person_reads() {
    let commands: String = (0..3000).map(|number| format!("\"c{number}\", ")).collect();
    let env = Env::new().flow("x", &flow(&format!("permissions = {{ git = true, exec = {{ {commands} }} }},"), ""));
    let ended = env.nietz(["run", "x"]).go().exits(4);
    assert!(ended.stderr.contains("more than 100 commands") && ended.stderr.len() < 1000, "{ended:?}");
}

#[test]
fn a_search_in_a_worktree_that_would_take_for_ever_is_refused() {
    let body = r#"git.branch("nietz/x", git.head().commit)
local tree = git.worktree({ name = "one", branch = "nietz/x" })
local letters, x = {}, 12345
for i = 1, 60000 do
  x = (x * 1103515245 + 12345) % 2147483648
  letters[i] = if x % 65536 > 32768 then "a" else "b"
end
tree:write("huge.txt", string.rep(table.concat(letters), 15))
tree:write("small.txt", "an error\nand none\n")
local ok, why = pcall(tree.grep, tree, "[ab]*a[ab]{12500}[cd]")
return { ok = ok, code = not ok and why.code, found = tree:grep("e[r]+or", "small*").lines }"#;
    let env = Env::new().flow("x", &flow("permissions = { git = true },", body));
    init(&env.workspace());
    let found = json!([{ "path": "small.txt", "line": 1, "text": "an error" }]);
    assert_eq!(env.run(["x"]).go().result(), json!({ "ok": false, "code": "timed-out", "found": found }));
}

#[test]
fn a_stream_of_one_long_word_is_read_as_fast_as_any() {
    let piece = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    for text in ["abcd", "    "] {
        let body = piece("bearer ") + &piece(text).repeat(150_000) + end;
        let server = ModelServer::start(move |_| Response::stream(body.clone()));
        let chat = "return #llm.chat({ prompt = 'p', stream = true }).text";
        let env = Env::with(&server).flow("x", &flow("permissions = { llm = true },", chat));
        assert!(env.run(["x"]).go().result().as_u64().is_some_and(|length| length < 700_000));
    }
}

/// Counts calls, and says how many were made before the run waited.
fn calls(usage: (u64, u64), manifest: &str, arguments: &[&str]) -> (Option<i32>, usize, Vec<String>) {
    let server = ModelServer::start(move |_| Response::text("x ".repeat(20_000)).usage(usage.0, usage.1));
    let body = "for i = 1, 30 do llm.chat({ prompt = 'p' .. i }) end";
    let flow = flow(&format!("permissions = {{ llm = true }}, {manifest}"), body);
    let env = Env::with(&server).flow("x", &flow).config(
        "models: {prices: {openai/big: {input: 500000, output: 0}}, retry: {attempts: 1, total_seconds: 20, base_delay_ms: 1}}\n",
    );
    let ended = env.run_on("openai/big", ["x"]).args(arguments.iter().copied()).go();
    let notices =
        ended.of_type("notice").into_iter().map(|notice| notice["text"].as_str().unwrap_or_default().to_owned());
    (ended.code, server.calls(), notices.collect())
}

#[test]
fn what_a_server_counts_is_no_less_than_what_it_sent() {
    let (code, made, _) = calls((0, 0), "", &["--max-tokens", "20000"]);
    assert!(code == Some(6) && (1..=5).contains(&made), "{code:?} after {made} calls");
    // The largest numbers there are: the sum stays the largest.
    let (code, made, _) = calls((u64::MAX / 2, u64::MAX / 2), "", &["--max-tokens", "20000"]);
    assert_eq!((code, made), (Some(6), 1));
    assert_eq!(calls((u64::MAX / 2, u64::MAX / 2), "", &[]).0, Some(0));
}

#[test]
fn a_run_that_nobody_limited_says_what_it_costs_and_makes_a_thousand_calls_at_most() {
    let (code, _, notices) = calls((2, 1), "", &[]);
    let told: Vec<&str> = notices.iter().filter(|text| text.contains("has cost")).map(String::as_str).collect();
    assert_eq!(code, Some(0));
    assert_eq!(told.len(), 5, "at 1, 2, 4, 8 and 16 dollars: {notices:?}");
    assert!(told[0].starts_with("this run has cost 1.00 US dollars"), "{told:?}");
    assert!(calls((2, 1), "", &["--max-cost", "1000"]).2.is_empty(), "who set a limit is told by it alone");
    let plan = Env::new().flow("x", &flow("permissions = { llm = true },", "")).nietz(["run", "x", "--plan"]).go();
    assert!(plan.stdout.contains("1000 calls"), "{plan:?}");
}

#[test]
fn the_user_is_told_when_four_fifths_of_many_calls_are_used() {
    let server = ModelServer::start(|_| Response::text("x"));
    let body = "for i = 1, 120 do llm.chat({ prompt = 'p' .. i }) end";
    let manifest = "permissions = { llm = true }, budget = { calls = 100 },";
    let ended = Env::with(&server).flow("x", &flow(manifest, body)).run(["x"]).go().exits(6);
    assert_eq!(server.calls(), 100);
    let notices = ended.of_type("notice");
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0]["text"].as_str().is_some_and(|text| text.starts_with("80 of the 100 calls")), "{notices:?}");
}

#[test]
fn a_call_has_a_limit_in_all_whatever_its_server_says() {
    let config = "models: {retry: {attempts: 3, total_seconds: 600, base_delay_ms: 1}, \
                  providers: {openai: {timeout_seconds: 600, call_seconds: 0.3}}}\n";
    for answer in [
        || Response::stream(": ping\n\n".repeat(100)).silent_after(800),
        || Response::text("half of a reply").silent_after(150),
        || Response::error(429, "later").header("retry-after", "500"),
    ] {
        let server = ModelServer::start(move |_| answer());
        let env = Env::with(&server).flow("x", &flow("permissions = { llm = true },", "llm.chat({ prompt = 'p' })"));
        let ended = env.config(config).run(["x"]).go().exits(3);
        assert!(ended.stdout.contains("took longer than 0.3 seconds in all"), "{ended:?}");
    }
}

/// A value that takes more than a flow may have, in few bytes or in many, is a reply that cannot be used.
#[test]
fn a_reply_with_more_parts_than_a_flow_can_have_is_told_as_that() {
    for (reply, why) in [
        (format!("[{}1]", "1,".repeat(2_000_000)), "it is longer than 1048576 bytes"),
        (format!("[{}1]", "1,".repeat(500_000)), "it has too many parts"),
        (format!("[{}{{}}]", "{\"a\":1},".repeat(120_000)), "it has too many parts"),
    ] {
        let server = ModelServer::start(move |_| Response::text(&reply));
        let body = "return #llm.chat({ prompt = 'p', schema = { type = 'array', items = { type = 'string' } } }).value";
        let env = Env::with(&server).flow("x", &flow("permissions = { llm = true },", body));
        let ended = env.run(["x"]).go().exits(1);
        assert_eq!(ended.failure(), "reply-invalid", "{ended:?}");
        let message = ended.ending()["failure"]["message"].clone();
        assert_eq!(message, format!("the model's reply is not what was asked for: {why}"));
        assert_eq!(server.calls(), 1, "what is too large is not sent back");
    }
}
/// Each has its limit of 2 s; a repository can bring any number of them.
#[test]
fn many_flows_whose_top_level_computes_for_ever_are_listed_within_one_limit() {
    let env = (0..12).fold(Env::new(), |env, number| env.flow(&format!("x{number:02}"), "while true do end"));
    let env = env.flow("z", &flow("", ""));
    for arguments in [&["flows"][..], &["check"], &["trust", "add", "."]] {
        // Seconds of computing, which a loaded machine does not make more of; 12 limits are 24 s.
        let bounded = ["-c", "ulimit -t 20; exec \"$@\"", "sh"];
        let ended = env.nietz(arguments.iter().copied()).by("sh", bounded).go();
        assert!(ended.code.is_some(), "{arguments:?}: {ended:?}");
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(told.contains("was not looked at: loading the flows before it took 10 s"), "{arguments:?}: {told}");
    }
}

#[test]
fn a_little_stack_of_the_user_s_is_no_limit_of_the_flow_s() {
    let env = Env::new().flow("x", &flow("", "return template.text('{{ a }}', { a = 'done' })"));
    let ended = env.run(["x"]).by("sh", ["-c", "ulimit -s 64; exec \"$@\"", "sh"]).go();
    assert_eq!(ended.result(), "done", "{ended:?}");
}
