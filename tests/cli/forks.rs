//! The promise: what was paid for once is not paid for again when only a part is changed, and it can be said why.

use insta::assert_snapshot;

use crate::support::env::Env;
use crate::support::model_server::{Gate, ModelServer, Response};

const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local task = require("@nietz/task")
local ui = require("@nietz/ui")

return nietz.flow {
	name = "fork",
	summary = "Two branches, a question and an end",
	params = { one = { type = "string", default = "a" }, two = { type = "string", default = "b" } },
	permissions = { llm = true },
	run = function(ctx)
		local said = task.all {
			one = function() return llm.chat { prompt = "one " .. ctx.params.one }.text end,
			two = function() return llm.chat { prompt = "two " .. ctx.params.two }.text end,
		}
		local more = ui.ask { id = "more", prompt = "What else?" }
		return llm.chat { prompt = said.one .. said.two .. more }.text
	end,
}
"#;

fn model() -> ModelServer {
    ModelServer::start(|request| Response::text(format!("<{}>", request.prompt())))
}

fn run(server: &ModelServer) -> Env {
    let env = Env::with(server).flow("fork", FLOW);
    env.run(["fork"]).stdin("that\n").go().exits(0);
    env
}

fn prompts(server: &ModelServer) -> Vec<String> {
    server.requests().iter().map(|request| request.prompt().to_owned()).collect()
}

#[test]
fn a_fork_does_only_what_the_change_touches() {
    let server = model();
    let env = run(&server);
    let ended = env.nietz(["fork", "r1", "--set", "two=c", "--json"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert_eq!(ended.result(), "<<one a><two c>that>");
    assert_eq!(prompts(&server)[3..], ["two c", "<one a><two c>that"]);
    // The fork is a run of its own: it is done, and needs its donor no more.
    std::fs::remove_dir_all(env.path(".nietz/runs/r1")).expect("it is there");
    let ended = env.nietz(["resume", "r2", "--json"]).go().exits(0);
    assert!(ended.stdout.contains("is gone, which this one was forked from"), "{}", ended.stdout);
    assert_eq!(server.calls(), 5);
}

/// What branches did to each other stays as it was, although nothing is waited for any more.
#[test]
fn a_fork_is_given_what_the_run_was_given_in_the_same_order() {
    const ORDER: &str = r#"
local llm = require("@nietz/llm")
local task = require("@nietz/task")
return require("@nietz").flow { name = "order", summary = "x", permissions = { llm = true },
	run = function()
		local seen, branches = {}, {}
		for _, name in { "a", "b", "c" } do
			branches[name] = function()
				for turn = 1, 2 do
					llm.chat { prompt = name .. turn }
					table.insert(seen, name .. turn)
				end
			end
		end
		task.all(branches)
		return table.concat(seen, " ")
	end }
"#;
    // Each is answered when those are that come before it.
    const ANSWERED: [&str; 6] = ["c1", "a1", "c2", "b1", "b2", "a2"];
    let gates = ANSWERED.map(|_| Gate::default());
    gates[0].open();
    let (held, next) = (gates.clone(), gates);
    let at = |prompt: &str| ANSWERED.iter().position(|one| *one == prompt).expect("it is one of them");
    let server = ModelServer::start(move |request| Response::text("said").held_by(&held[at(&request.prompt())]));
    let env = Env::with(&server).flow("order", ORDER);
    let mut running = env.run(["order"]).spawn();
    for gate in &next[1..] {
        running.wait_for("call_ended");
        gate.open();
    }
    let result = running.end().result();
    assert_eq!(result, ANSWERED.join(" "));
    let ended = env.nietz(["fork", "r1", "--json"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert_eq!((ended.result(), server.calls()), (result, ANSWERED.len()));
}

#[test]
fn a_fork_at_an_effect_does_it_and_what_follows_anew() {
    let server = model();
    let env = run(&server);
    let log = env.nietz(["log", "r1"]).go().exits(0).stdout;
    let line = log
        .lines()
        .find(|line| line.contains("ask"))
        .expect("it was asked")
        .split_whitespace()
        .next()
        .expect("a number");
    let ended = env.nietz(["fork", "r1", "--at", line, "--json"]).var("NIETZ_RUN", "r2").stdin("this\n").go().exits(0);
    assert_eq!(ended.result(), "<<one a><two b>this>");
    assert_eq!(server.calls(), 4);
    env.nietz(["fork", "r1", "--at", "999"]).var("NIETZ_RUN", "r3").go().exits(2);
    env.nietz(["fork", "r1", "--set", "too=c"]).var("NIETZ_RUN", "r3").go().exits(2);
    // Another model was not asked yet; what the user said stands.
    let ended = env.nietz(["fork", "r1", "--model", "openai/other", "--json"]).var("NIETZ_RUN", "r3").go().exits(0);
    assert_eq!(ended.result(), "<<one a><two b>that>");
    assert_eq!(server.calls(), 7);
}

/// A fork that is killed goes on with its donor.
#[test]
fn a_killed_fork_pays_nothing_twice() {
    let server = model();
    let env = run(&server);
    for line in 2..9 {
        let id = format!("k{line}");
        let fault = format!("kill@{line}");
        env.nietz(["fork", "r1", "--set", "two=c", "--json"]).var("NIETZ_RUN", &id).var("NIETZ_FAULT", &fault).go();
        let ended = env.nietz(["resume", &id, "--json"]).go().exits(0);
        assert_eq!(ended.result(), "<<one a><two c>that>", "killed at line {line}");
    }
    let asked = prompts(&server);
    assert_eq!(asked.iter().filter(|prompt| *prompt == "one a").count(), 1, "{asked:?}");
}

#[test]
fn a_fork_into_another_folder_leaves_the_documents_of_the_run_alone() {
    let server = ModelServer::start(|request| Response::text(request.prompt()));
    let env = Env::with(&server).flow("short", include_str!("../support/flows/short.lua"));
    env.run(["short"]).stdin("more\n").go().exits(0);
    let before = env.read("notes/first.yaml");
    env.nietz(["fork", "r1", "--into", "other", "--set", "topic=coffee"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert_eq!(env.read("notes/first.yaml"), before);
    assert!(
        env.read("other/notes/first.yaml").contains("coffee") && env.read("other/notes/first.yaml").contains("more")
    );
    assert_eq!(server.calls(), 2);
    // In the same folder, what the run has saved is not written over, and it is said what helps.
    let ended = env.nietz(["fork", "r1", "--set", "topic=cocoa"]).var("NIETZ_RUN", "r3").go().exits(1);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("[document-changed]") && said.contains("--into FOLDER"), "{said}");
    assert_eq!(env.read("notes/first.yaml"), before);
}

#[test]
fn why_says_what_would_be_done_again() {
    let server = model();
    let env = run(&server);
    let ended = env.nietz(["why", "r1", "2"]).go().exits(0);
    assert_snapshot!(ended.stdout, @r#"
    line 2: chat in /one {"model":"openai/test","messages":[{"content":"one a","role"…
    It was done once, and its outcome is recorded.
    With the files of now, the flow asks for just the same: it is given back, and not done again.
    "#);
    let env = env.flow("fork", &FLOW.replace("\"two \"", "\"second \""));
    let ended = env.nietz(["why", "r1", "3"]).go().exits(0);
    assert_snapshot!(env.normal(&ended.stdout), @r#"
    line 3: chat in /two {"model":"openai/test","messages":[{"content":"two b","role"…
    It was done once, and its outcome is recorded.
    Changed since the run began: flows/fork.lua.
    With the files of now, it is not given back: before it, or in its place, the flow asks for something else.
    the nearest is line 3; from it to what is asked for now:
    - /messages/0/content: "two b"
    + /messages/0/content: "second b"
    "#);
    assert_eq!(server.calls(), 3, "it asks nobody");
}

/// Personas are looked for while a flow runs: those that nobody has touched are not said to have changed.
#[test]
fn why_names_no_file_that_is_as_it_was() {
    const FLOW: &str = r#"
local personas = require("@nietz/personas")
return require("@nietz").flow { name = "voices", summary = "s", permissions = { llm = true },
	run = function() return require("@nietz/llm").chat { prompt = `{#personas.list({})} of them` }.text end }
"#;
    let server = model();
    let env = Env::with(&server).flow("voices", FLOW);
    env.run(["voices"]).go().exits(0);
    let told = env.nietz(["why", "r1", "2"]).go().exits(0).stdout;
    assert!(told.contains("it is given back") && !told.contains("Changed since"), "{told}");
}

#[test]
fn a_plan_tells_what_a_fork_would_be_given_and_what_it_would_pay_and_does_nothing() {
    const CONFIG: &str =
        "models: {prices: {openai/test: {input: 20000, output: 100000}, openai/big: {input: 200000, output: 0}}}\n";
    let server = model();
    let env = run(&server).config(CONFIG);
    let plan = |words: &[&str], code| {
        let line = ["fork", "latest", "--plan"].into_iter().chain(words.iter().copied());
        env.nietz(line).var("NIETZ_RUN", "r2").go().exits(code)
    };
    assert_snapshot!(plan(&[], 0).stdout, @"
    given back: 4 effects, 3 model calls (30 tokens in, 10 out, $1.60), 1 question
    anew: nothing
    ");
    assert_snapshot!(plan(&["--set", "two=c"], 0).stdout, @r#"
    given back: 1 effect, 1 model call (10 tokens in, 2 out, $0.40)
    anew, at most: 3 effects, 2 model calls (20 tokens in, 8 out, $1.20), 1 question, if it goes on as it went; a flow that goes another way takes others
    the nearest is line 3; from it to what is asked for now:
    - /messages/0/content: "two b"
    + /messages/0/content: "two c"
    "#);
    let told: serde_json::Value = serde_json::from_str(&plan(&["--model", "openai/big", "--json"], 0).stdout).unwrap();
    assert_eq!((&told["given_back"]["calls"], &told["at_most_anew"]["calls"]), (&0.into(), &3.into()));
    assert_eq!(told["at_most_anew"]["cost"], 6.0, "{told}");
    let anew = plan(&["--calls-anew"], 0).stdout;
    assert!(anew.contains("anew, at most: 4 effects, 3 model calls"), "{anew}");
    assert!(anew.contains("line 2 is done anew\nline 3 is done anew\n"), "{anew}");
    let log = env.nietz(["log", "r1"]).go().exits(0).stdout;
    let asked = log.lines().find(|line| line.contains("ask")).expect("it was asked");
    let line = asked.split_whitespace().next().expect("a number");
    let from_there = plan(&["--at", line], 0).stdout;
    assert!(from_there.starts_with("given back: 2 effects, 2 model calls"), "{from_there}");
    plan(&["--into", "other"], 2);
    // An edit that breaks the flow is seen before it costs anything.
    env.write("flows/fork.lua", FLOW.replace("\"What else?\"", "ctx.params.none.none"));
    let broken = plan(&[], 0).stdout;
    assert!(broken.contains("with the files of now, it fails: "), "{broken}");
    assert_eq!(server.calls(), 3, "it asks nobody");
    assert!(!env.path(".nietz/runs/r2").exists() && !env.path("other").exists(), "and leaves nothing");
}
