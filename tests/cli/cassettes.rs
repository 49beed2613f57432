//! The promise: a run is a test. It replays with no model, no key and nobody there; it fails where anything differs,
//! with the exact difference; and it never goes live.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::env::{Env, KEY};
use crate::support::model_server::{ModelServer, Request, Response};

const SHORT: &str = include_str!("../support/flows/short.lua");
const CASSETTE: &str = "tests/cassettes/short/run.jsonl";

fn talk(request: &Request) -> Response {
    Response::text(format!("you said {}", request.prompt()))
}

/// A workspace with the flow and a cassette of it; its model service is gone.
fn recorded() -> Env {
    let server = ModelServer::start(talk);
    let env = Env::with(&server).flow("short", SHORT);
    env.run(["short"]).stdin("more\n").go().exits(0);
    let ended = env.nietz(["test", "--from-run", "r1"]).go().exits(0);
    assert_eq!(ended.stdout, format!("recorded {CASSETTE}: 4 effects\n"));
    env.var("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
}

/// Takes out what differs from run to run.
fn plain(env: &Env, text: &str) -> String {
    regex::Regex::new(r"in \d+ ms").expect("a pattern").replace_all(&env.normal(text), "in N ms").into_owned()
}

#[test]
fn a_run_becomes_a_test_that_needs_nothing() {
    let env = recorded();
    std::fs::remove_dir_all(env.path(".nietz")).expect("it is there");
    std::fs::remove_dir_all(env.path("notes")).expect("it is there");
    let ended = env.nietz(["test"]).var("OPENAI_API_KEY", "").go().exits(0);
    assert_snapshot!(plain(&env, &ended.stdout), @r"
    passed short/run: 4 effects in N ms
    1 passed, 0 failed
    ");
    assert!(!env.path("notes").exists() && !env.path(".nietz").exists(), "a replay touches nothing");
    // It can be named by its flow, its folder and itself.
    for path in ["short", "flows/short.lua", "tests/cassettes/short", CASSETTE, "."] {
        let ended = env.nietz(["test", path, "--json"]).go().exits(0);
        let line: Value = serde_json::from_str(ended.stdout.trim()).expect("one line");
        assert_eq!((&line["case"], &line["passed"]), (&"short/run".into(), &true.into()), "{path}");
    }
    let text = env.read(CASSETTE);
    assert!(!text.contains("/tmp") && text.contains("\"source\":\"flows/short.lua\""), "it names a machine: {text}");
}

#[test]
fn a_changed_prompt_is_missed_with_the_exact_difference() {
    let env = recorded().flow("short", &SHORT.replace("talk about", "speak of"));
    let ended = env.nietz(["test"]).go().exits(1);
    assert_snapshot!(plain(&env, &ended.stdout), @r#"
    FAILED short/run
    error[cassette-missed]: the flow asks for a `chat` that /tmp/test/work/tests/cassettes/short/run.jsonl does not have
      - the nearest is line 2; from it to what is asked for now:
      - /messages/0/content: "talk about tea"
      + /messages/0/content: "speak of tea"
    hint: if that is as it should be, record it anew: nietz test --record
    0 passed, 1 failed
    "#);
    assert_eq!(ended.stderr, "");
}

#[test]
fn a_saved_document_is_compared_as_a_whole_and_by_the_schema_of_today() {
    let other = SHORT.replace(
        "return notes:save { slug = \"first\", said = said }",
        "table.insert(said, \"extra\")\n\t\treturn notes:save { slug = \"first\", said = said }",
    );
    let env = recorded().flow("short", &other);
    let ended = env.nietz(["test"]).go().exits(1);
    assert_snapshot!(plain(&env, &ended.stdout), @r#"
    FAILED short/run
    error[cassette-missed]: the flow asks for a `save` that /tmp/test/work/tests/cassettes/short/run.jsonl does not have
      - the nearest is line 7; from it to what is asked for now:
      + /value/said/2: "extra"
    hint: if that is as it should be, record it anew: nietz test --record
    0 passed, 1 failed
    "#);
    let stricter = SHORT.replace("items = { type = \"string\" }", "items = { type = \"string\", maxLength = 5 }");
    let ended = env.flow("short", &stricter).nietz(["test"]).go().exits(1);
    assert!(ended.stdout.contains("[document-invalid]") && ended.stdout.contains("/said/0"), "{}", ended.stdout);
}

#[test]
fn an_end_that_differs_fails() {
    let env = recorded();
    let cases = [
        ("return notes:save", "notes:save { slug = \"first\", said = said }\n\t\treturn 3, notes", "cassette-missed"),
        (
            "return notes:save { slug = \"first\", said = said }",
            "notes:save { slug = \"first\", said = said }\n\t\treturn 3",
            "cassette-differs",
        ),
        ("ui.say(\"Saved.\")", "", "cassette-differs"),
        ("run = function(ctx)", "run = function(ctx)\n\t\terror(\"oh no\")", "flow-error"),
        ("permissions = { llm = true },", "", "permission-refused"),
        ("said = {}", "said = { llm.chat { prompt = \"once more\" }.text }", "cassette-missed"),
    ];
    for (from, to, code) in cases {
        assert!(SHORT.contains(from), "{from}");
        let source = if code == "cassette-missed" && from.starts_with("return") {
            SHORT.replace("said = said }", "said = {} }")
        } else {
            SHORT.replace(from, to)
        };
        env.write("flows/short.lua", source);
        let ended = env.nietz(["test", "--json"]).go().exits(1);
        let line: Value = serde_json::from_str(ended.stdout.trim()).expect("one line");
        assert_eq!(line["failure"]["code"], code, "{to}: {line:#}");
    }
}

/// Only what the change touches is asked of the model again.
#[test]
fn recording_anew_asks_only_for_what_changed() {
    let env = recorded();
    let two = SHORT.replace(
        "\t\ttable.insert(said, (ui.ask",
        "\t\ttable.insert(said, llm.chat { prompt = \"and now?\" }.text)\n\t\ttable.insert(said, (ui.ask",
    );
    let server = ModelServer::start(talk);
    let env = env.flow("short", &two).var("OPENAI_BASE_URL", &server.url());
    env.nietz(["test"]).go().exits(1);
    let ended = env.nietz(["test", "--record", "short"]).go().exits(0);
    assert!(ended.stdout.contains("recorded short/run: 5 effects"), "{}", ended.stdout);
    assert_eq!(server.requests().iter().map(Request::prompt).collect::<Vec<_>>(), ["and now?"]);
    assert!(!env.path("notes").join("first.yaml.new").exists());
    env.nietz(["test"]).go().exits(0);
    let ended = env.nietz(["test", "--record"]).go().exits(0);
    assert!(ended.stdout.contains("passed short/run"), "what replays is left alone: {}", ended.stdout);
    assert_eq!(server.calls(), 1);
}

#[test]
fn a_new_cassette_is_recorded_in_a_folder_of_its_own_and_holds_no_secret() {
    let server = ModelServer::start(|request| Response::text(format!("{} {KEY}", request.prompt())));
    let env = Env::with(&server).flow("short", SHORT);
    let arguments =
        ["test", "--record", "short", "--name", "coffee", "--", "coffee", "--model", "openai/test", "--seed", "1"];
    env.nietz(arguments).stdin(format!("{KEY}\n")).go().exits(0);
    assert_eq!(env.documents().keys().collect::<Vec<_>>(), ["flows/short.lua", "tests/cassettes/short/coffee.jsonl"]);
    let text = env.read("tests/cassettes/short/coffee.jsonl");
    assert!(text.contains("[redacted:OPENAI_API_KEY]") && !text.contains(KEY), "{text}");
    env.nietz(["test"]).go().exits(0);
    // On a machine that has no key.
    env.nietz(["test"]).var("OPENAI_API_KEY", "").go().exits(0);
}

#[test]
fn what_cannot_be_a_test_is_refused() {
    let env = Env::new().flow("short", SHORT);
    assert_eq!(env.nietz(["test"]).go().exits(2).stdout, "");
    env.run(["short"]).go().exits(3);
    env.nietz(["test", "--from-run", "r1"]).go().exits(1);
    assert!(!env.path(CASSETTE).exists(), "a run that failed is no test by itself");
    // A cassette that names a flow elsewhere.
    let env = recorded();
    let other = Env::new().flow("short", SHORT);
    let journal = env.read(CASSETTE);
    assert!(journal.contains("\"source\":\"flows/short.lua\""));
    other.write("packs/tests/cassettes/short/run.jsonl", &journal);
    let ended = other.nietz(["test", "packs"]).go().exits(1);
    assert!(ended.stdout.contains("[flow-not-found]"), "only its own pack's flow is played: {}", ended.stdout);
    let text = env.read(CASSETTE).replace("you said", "you sayd");
    env.write(CASSETTE, text);
    let ended = env.nietz(["test"]).go().exits(1);
    assert!(ended.stdout.contains("[journal-broken]"), "{}", ended.stdout);
}

/// Bundled flows carry their tests as everybody's do.
#[test]
fn every_cassette_of_this_repository_replays() {
    let ended = Env::new().nietz(["test", env!("CARGO_MANIFEST_DIR")]).var("OPENAI_API_KEY", "").go().exits(0);
    assert!(ended.stdout.contains("passed brainstorm/whole"), "{}", ended.stdout);
}

/// What git and commands gave back is in the cassette: it replays where there is neither.
#[test]
fn a_flow_that_works_with_git_and_commands_replays_without_them() {
    let env = Env::new()
        .flow("worktree", include_str!("../support/flows/worktree.lua"))
        .file("README", "read me\n")
        .file(".gitignore", ".nietz\n");
    crate::support::git::init(&env.workspace());
    env.run(["worktree", "echo made > made.txt; cat made.txt"]).go().exits(0);
    env.nietz(["test", "--from-run", "r1"]).go().exits(0);
    std::fs::remove_dir_all(env.path(".git")).expect("it is there");
    let ended = env.nietz(["test"]).var("PATH", "/nonexistent").go().exits(0);
    assert_snapshot!(plain(&env, &ended.stdout), @r"
    passed worktree/run: 5 effects in N ms
    1 passed, 0 failed
    ");
}

#[test]
fn what_a_flow_may_not_do_any_more_no_cassette_does_for_it() {
    let flow = |permissions: &str| {
        format!(
            "return require('@nietz').flow {{ name = 'x', summary = 's', permissions = {{ {permissions} }}, run = function()\n\
             return require('@nietz/files').read('a.txt').text end }}"
        )
    };
    let env = Env::new().file("a.txt", "one").flow("x", &flow("files = true"));
    env.run(["x"]).go().exits(0);
    env.nietz(["test", "--from-run", "r1", "--name", "n"]).go().exits(0);
    env.nietz(["test"]).go().exits(0);
    env.write("flows/x.lua", flow(""));
    let ended = env.nietz(["test"]).go().exits(1);
    assert!(ended.stdout.contains("permission-refused"), "{}", ended.stdout);
}
