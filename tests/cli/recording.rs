//! The promise: what is recorded is true. A run that fails where the old one did not, waits or is interrupted makes no
//! test and takes none away; what files and git said comes from the old recording, and never from an empty folder.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::env::{Env, RUN};
use crate::support::git;
use crate::support::model_server::{Gate, ModelServer, Request, Response};

const SHORT: &str = include_str!("../support/flows/short.lua");
const CASSETTE: &str = "tests/cassettes/short/run.jsonl";

fn talk(request: &Request) -> Response {
    Response::text(format!("you said {}", request.prompt()))
}

/// A workspace with a flow and a cassette of a run of it; the prompt of the flow has changed since then.
fn changed() -> Env {
    let server = ModelServer::start(talk);
    let env = Env::with(&server).flow("short", SHORT);
    env.run(["short"]).stdin("more\n").go().exits(0);
    env.nietz(["test", "--from-run", RUN]).go().exits(0);
    env.flow("short", &SHORT.replace("talk about", "speak of")).var("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
}

/// A server that wants a key: one on this machine needs none.
const ELSEWHERE: &str = "https://models.invalid/v1";

/// Takes out what differs from run to run.
fn plain(env: &Env, text: &str) -> String {
    regex::Regex::new(r"in \d+ ms").expect("a pattern").replace_all(&env.normal(text), "in N ms").into_owned()
}

#[test]
fn a_recording_that_fails_keeps_the_old_one_and_says_how_both_ended() {
    let env = changed();
    let before = env.read(CASSETTE);
    let ended =
        env.nietz(["test", "--record"]).var("OPENAI_API_KEY", "").var("OPENAI_BASE_URL", ELSEWHERE).go().exits(1);
    assert_snapshot!(plain(&env, &ended.stdout), @r"
    FAILED short/run
    error[recording-failed]: tests/cassettes/short/run.jsonl is as it was: the run failed
      - now: key-missing: there is no key for openai
      - before: it came to its end
    hint: put that right and record it again, with another model by --model NAME; if the failure is what the test is to show: --expect-failure key-missing
    0 passed, 1 failed
    ");
    assert_eq!(env.read(CASSETTE), before);
    assert_eq!(env.documents().len(), 3, "nothing is left beside it: {:?}", env.documents().keys());
    // A service that does not know the model; for programs.
    let server = ModelServer::start(|_| Response::error(404, "no such model"));
    let ended = env.nietz(["test", "--record", "--json"]).var("OPENAI_BASE_URL", &server.url()).go().exits(1);
    let told: Value = serde_json::from_str(ended.stdout.lines().last().expect("a line")).expect("JSON");
    assert_eq!((&told["passed"], &told["failure"]["code"]), (&false.into(), &"recording-failed".into()), "{told:#}");
    assert!(told["failure"]["details"][0].as_str().is_some_and(|now| now.contains("model-unknown")), "{told:#}");
    assert_eq!(env.read(CASSETTE), before);
    // What it was kept for: it tells the change, as before.
    env.nietz(["test"]).go().exits(1);
    let server = ModelServer::start(talk);
    env.nietz(["test", "--record"]).var("OPENAI_BASE_URL", &server.url()).go().exits(0);
    assert!(env.read(CASSETTE).contains("speak of tea"));
}

const FAILS: &str = r#"
local nietz = require("@nietz")
local llm = require("@nietz/llm")
return nietz.flow {
	name = "fails", summary = "Fails when it is told so",
	params = { how = { type = "string", positional = true, default = "well" } },
	permissions = { llm = true },
	run = function(ctx)
		local text = llm.chat { prompt = "How?" }.text
		if ctx.params.how == "well" then return text end
		nietz.fail("it went " .. ctx.params.how)
	end,
}
"#;

#[test]
fn a_failure_is_a_test_only_where_its_code_is_named() {
    let server = ModelServer::start(|_| Response::text("So."));
    let env = Env::with(&server).flow("fails", FAILS);
    let path = "tests/cassettes/fails/badly.jsonl";
    let record = |more: &[&str], how: &str| {
        let call = env.nietz(["test", "--record", "fails", "--name", "badly"]).args(more.iter().copied());
        call.args(["--", how, "--model", "openai/test"]).go()
    };
    let ended = record(&[], "badly").exits(1);
    let said = ended.stderr.split_once("error[recording-failed]").map(|(_, said)| said);
    assert_snapshot!(said.unwrap_or(&ended.stderr), @r"
    : tests/cassettes/fails/badly.jsonl is not written: the run failed
      - now: flow-error: it went badly
    hint: put that right and record it again, with another model by --model NAME; if the failure is what the test is to show: --expect-failure flow-error
    ");
    assert!(!env.path(path).exists(), "the first recording that fails is none");
    let ended = record(&["--expect-failure", "key-missing"], "badly").exits(1);
    assert!(ended.stderr.contains("it was to fail with key-missing"), "{}", ended.stderr);
    let ended = record(&["--expect-failure", "flow-error"], "well").exits(1);
    assert!(ended.stderr.contains("it was to fail with flow-error"), "{}", ended.stderr);
    assert!(!env.path(path).exists());
    let ended = record(&["--expect-failure", "flow-eror"], "badly").exits(2);
    assert!(ended.stderr.contains("did you mean `flow-error`?"), "{}", ended.stderr);
    env.nietz(["test", "--expect-failure", "flow-error"]).go().exits(2);
    record(&["--expect-failure", "flow-error"], "badly").exits(0);
    // It is seen that what passes is a failure.
    let ended = env.nietz(["test"]).go().exits(0);
    assert_snapshot!(plain(&env, &ended.stdout), @r"
    passed fails/badly: 1 effect in N ms; it shows the failure flow-error
    1 passed, 0 failed
    ");
    // With the same code it is recorded anew without a word.
    env.write("flows/fails.lua", FAILS.replace("How?", "How so?"));
    let ended = env.nietz(["test", "--record", "fails"]).go().exits(0);
    assert!(ended.stdout.contains("recorded fails/badly") && ended.stdout.contains("flow-error"), "{}", ended.stdout);
    let ended = env
        .nietz(["test", "--record", "fails"])
        .var("OPENAI_API_KEY", "")
        .var("OPENAI_BASE_URL", ELSEWHERE)
        .go()
        .exits(0);
    assert!(ended.stdout.contains("passed fails/badly"), "{}", ended.stdout);
    env.write("flows/fails.lua", FAILS.replace("How?", "How then?"));
    let ended = env
        .nietz(["test", "--record", "fails"])
        .var("OPENAI_API_KEY", "")
        .var("OPENAI_BASE_URL", ELSEWHERE)
        .go()
        .exits(1);
    assert!(
        ended.stdout.contains("before: flow-error") && ended.stdout.contains("now: key-missing"),
        "{}",
        ended.stdout
    );
    // A run that failed is no test by itself either.
    env.run(["fails", "badly"]).go().exits(1);
    env.nietz(["test", "--from-run", RUN, "--name", "other"]).go().exits(1);
    env.nietz(["test", "--from-run", RUN, "--name", "other", "--expect-failure", "flow-error"]).go().exits(0);
}

#[test]
fn a_recording_that_waits_or_is_interrupted_is_none() {
    let env = changed().flow("short", &SHORT.replace("What else?", "And what else?"));
    let before = env.read(CASSETTE);
    let ended = env.nietz(["test", "--record"]).go().exits(1);
    let told = &ended.stdout;
    assert!(told.contains("a run that waits cannot be a test") && told.contains("now: answer-missing"), "{told}");
    assert_eq!(env.read(CASSETTE), before);
    // Interrupted: what comes after it is not begun.
    let gate = Gate::default();
    let held = gate.clone();
    let server = ModelServer::start(move |request| talk(request).held_by(&held));
    let env = changed();
    env.write("tests/cassettes/short/second.jsonl", env.read(CASSETTE));
    let running = env.nietz(["test", "--record"]).var("OPENAI_BASE_URL", &server.url()).spawn();
    assert!(server.wait_for_calls(1, Duration::from_secs(30)), "the call never comes");
    running.interrupt();
    let ended = running.end().exits(130);
    gate.open();
    assert!(ended.stderr.contains(&format!("{CASSETTE} is as it was")), "{ended:?}");
    assert_eq!((env.read(CASSETTE), server.calls()), (before, 1));
}

/// What a newcomer writes first: a prompt made of a file.
const SUM: &str = r#"
local nietz = require("@nietz")
local files = require("@nietz/files")
local llm = require("@nietz/llm")
return nietz.flow {
	name = "sum", summary = "Sums a file up", permissions = { llm = true, files = true },
	run = function()
		local file = files.read("notes.txt")
		return llm.chat { prompt = "Sum up: " .. (if file then file.text else "NOTHING") }.text
	end,
}
"#;

#[test]
fn a_flow_that_reads_a_file_is_recorded_replayed_and_recorded_anew() {
    let server = ModelServer::start(talk);
    let env = Env::with(&server).flow("sum", SUM).file("notes.txt", "buy milk");
    env.run(["sum"]).go().exits(0);
    env.nietz(["test", "--from-run", RUN]).go().exits(0);
    std::fs::remove_file(env.path("notes.txt")).expect("it is there");
    env.nietz(["test"]).go().exits(0);
    env.write("flows/sum.lua", SUM.replace("Sum up", "Sum this up"));
    env.nietz(["test", "--record"]).go().exits(0);
    let asked = || server.requests().last().map(Request::prompt).unwrap_or_default();
    assert_eq!(asked(), "Sum this up: buy milk");
    env.nietz(["test"]).go().exits(0);
    // Another file: an empty folder says nothing true of it.
    let before = env.read("tests/cassettes/sum/run.jsonl");
    env.write("other.txt", "buy bread");
    env.write("flows/sum.lua", SUM.replace("notes.txt", "other.txt"));
    let ended = env.nietz(["test", "--record"]).go().exits(1);
    assert_snapshot!(plain(&env, &ended.stdout), @r"
    FAILED sum/run
    error[recording-failed]: tests/cassettes/sum/run.jsonl is as it was: the run failed
      - now: cassette-missed: the flow asks for a `file` that /tmp/test/work/tests/cassettes/sum/run.jsonl does not have
      - before: it came to its end
    hint: run it where all that it works on is, then nietz test --from-run RUN --name NAME
    0 passed, 1 failed
    ");
    assert_eq!((env.read("tests/cassettes/sum/run.jsonl"), server.calls()), (before, 2));
    // What the message says to do.
    env.run(["sum"]).var("NIETZ_RUN", "r2").go().exits(0);
    env.nietz(["test", "--from-run", "r2", "--name", "run"]).go().exits(0);
    env.nietz(["test"]).go().exits(0);
    assert_eq!(asked(), "Sum up: buy bread");
}

const REVIEW: &str = r#"
local nietz = require("@nietz")
local git = require("@nietz/git")
local llm = require("@nietz/llm")
return nietz.flow {
	name = "review", summary = "Reviews what a branch says", permissions = { llm = true, git = true },
	run = function(ctx)
		local head = git.head()
		git.branch("nietz/look", head.commit)
		local tree = git.worktree { name = "look", branch = "nietz/look" }
		local text = tree:read("price.py")
		tree:remove()
		return llm.chat { prompt = `Review {#git.files(head.commit).paths} files: {text}` }.text
	end,
}
"#;

#[test]
fn a_flow_that_reads_git_is_recorded_replayed_and_recorded_anew() {
    let server = ModelServer::start(talk);
    let env = Env::with(&server).flow("review", REVIEW).file("price.py", "price = 3").file(".gitignore", ".nietz\n");
    git::init(&env.workspace());
    env.run(["review"]).go().exits(0);
    env.nietz(["test", "--from-run", RUN]).go().exits(0);
    std::fs::remove_dir_all(env.path(".git")).expect("it is there");
    std::fs::remove_file(env.path("price.py")).expect("it is there");
    env.nietz(["test"]).go().exits(0);
    env.write("flows/review.lua", REVIEW.replace("`Review", "`Review strictly"));
    env.nietz(["test", "--record"]).var("PATH", "/nonexistent").go().exits(0);
    assert_eq!(server.requests()[1].prompt(), "Review strictly 3 files: price = 3");
    env.nietz(["test"]).go().exits(0);
    // What git was not asked before is known to nobody.
    let before = env.read("tests/cassettes/review/run.jsonl");
    env.write("flows/review.lua", REVIEW.replace("price.py", "cost.py"));
    let ended = env.nietz(["test", "--record"]).go().exits(1);
    assert!(ended.stdout.contains("now: cassette-missed") && ended.stdout.contains("--from-run"), "{}", ended.stdout);
    assert_eq!((env.read("tests/cassettes/review/run.jsonl"), server.calls()), (before, 2));
}

/// A flow that goes on from a document of an earlier run would begin at nothing in an empty folder.
#[test]
fn documents_that_were_there_before_are_not_forgotten_in_silence() {
    let flow = SHORT
        .replace(
            "local said = {}",
            "local before = notes:load(\"zeroth\")\n\t\tlocal said = { if before then before.said[1] else \"none\" }",
        )
        .replace("slug = \"first\"", "slug = ctx.params.topic");
    let server = ModelServer::start(talk);
    let env = Env::with(&server).flow("short", &flow).file("notes/zeroth.yaml", "slug: zeroth\nsaid: [earlier]\n");
    env.run(["short"]).stdin("more\n").go().exits(0);
    env.nietz(["test", "--from-run", RUN]).go().exits(0);
    env.write("flows/short.lua", flow.replace("talk about", "speak of"));
    let before = env.read(CASSETTE);
    // A test that misses something says how it can be recorded, and a recording is refused before it costs anything.
    let missed = env.nietz(["test"]).go().exits(1).stdout;
    assert!(missed.contains("--from-run") && !missed.contains("--record"), "{missed}");
    let calls = server.calls();
    let ended = env.nietz(["test", "--record"]).go().exits(1);
    let told = &ended.stdout;
    assert!(told.contains("read documents that were there before") && told.contains("--from-run"), "{told}");
    assert_eq!((env.read(CASSETTE), server.calls()), (before, calls));
    // Without them it has the same start in an empty folder.
    std::fs::remove_dir_all(env.path("notes")).expect("it is there");
    env.run(["short"]).var("NIETZ_RUN", "r2").stdin("more\n").go().exits(0);
    env.nietz(["test", "--from-run", "r2", "--name", "run"]).go().exits(0);
    env.write("flows/short.lua", flow.replace("talk about", "chat about"));
    env.nietz(["test", "--record"]).go().exits(0);
    env.nietz(["test"]).go().exits(0);
}

/// Whatever model its user has: the example was said by none.
#[test]
fn what_a_newcomer_was_given_is_recorded_anew_with_the_model_there_is() {
    let server = ModelServer::start(|request| {
        let wants_value = !request.schema().is_null();
        Response::text(if wants_value { r#"{"decides":"taste","next_step":"Ask them."}"# } else { "Well." })
    });
    let url = server.url();
    let bare = || Env::new().without("OPENAI_API_KEY").without("OPENAI_BASE_URL");
    let lab = format!("models: {{providers: {{lab: {{base_url: '{url}'}}}}}}\n");
    let kinds = [
        (Env::with(&server), None, "openai/"),
        (bare().var("ANTHROPIC_API_KEY", "k").var("ANTHROPIC_BASE_URL", &url), None, "anthropic/"),
        (bare().config(&lab), Some("lab/qwen"), "lab/qwen"),
    ];
    for (env, model, recorded) in kinds {
        env.nietz(["new", "flow", "two-sides"]).go().exits(0);
        env.nietz(["test", "--record"]).go().exits(0);
        let side = env.read("flows/two-sides/prompts/side.md");
        env.write("flows/two-sides/prompts/side.md", side.replace("Two sentences", "Three sentences"));
        let more: Vec<&str> = model.iter().flat_map(|model| ["--model", model]).collect();
        let ended = env.nietz(["test", "--record"]).args(more).go().exits(0);
        assert!(ended.stdout.contains("recorded two-sides/run"), "{ended:?}");
        let first = env.read("tests/cassettes/two-sides/run.jsonl").lines().next().unwrap_or_default().to_owned();
        assert!(first.contains(&format!("\"model\":\"{recorded}")), "{first}");
        env.nietz(["test"]).go().exits(0);
    }
}
