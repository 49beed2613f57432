//! The promise: a flow of one's own runs within minutes. What `nietz new` writes works at once, and has its test.

use insta::assert_snapshot;

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

#[test]
fn a_new_flow_runs_and_its_test_passes() {
    let server = ModelServer::start(|request| {
        let wants_value = request.body["response_format"].is_object();
        Response::text(if wants_value { r#"{"decides":"taste","next_step":"Ask them."}"# } else { "Well." })
    });
    let env = Env::with(&server);
    let ended = env.nietz(["new", "flow", "two-sides"]).go().exits(0);
    assert_snapshot!(ended.stdout, @r#"
    wrote flows/two-sides.lua
    wrote flows/two-sides/prompts/side.md
    wrote flows/two-sides/prompts/verdict.md
    wrote tests/cassettes/two-sides/run.jsonl
    run it: nietz run flows/two-sides.lua "Tabs or spaces?"   test it: nietz test flows/two-sides.lua
    "#);
    env.nietz(["test"]).go().exits(0);
    env.nietz(["check", "flows/two-sides.lua"]).go().exits(0);
    let ended = env.run(["flows/two-sides.lua", "Tea or coffee?"]).go().exits(0);
    assert_eq!(ended.result()["decides"], "taste");
    assert_eq!(server.calls(), 3);
    let text = env.read("tests/cassettes/two-sides/run.jsonl");
    assert!(text.contains("flows/two-sides.lua") && !text.contains("NAME"), "{text}");
}

#[test]
fn new_personas_quotes_and_packs_are_valid() {
    let env = Env::new();
    for kind in ["persona", "quotes", "pack"] {
        env.nietz(["new", kind, "deep-thought"]).go().exits(0);
    }
    env.nietz(["check", "personas/deep-thought.md", "quotes/deep-thought.yaml"]).go().exits(0);
    env.nietz(["test", "deep-thought"]).go().exits(0);
    assert!(env.read("personas/deep-thought.md").contains("name: Deep Thought"));
    assert!(env.read("deep-thought/pack.yaml").contains("name: deep-thought"));
}

#[test]
fn nothing_is_written_over_and_odd_names_are_refused() {
    let env = Env::new().flow("mine", "return 1");
    let ended = env.nietz(["new", "flow", "mine"]).go().exits(2);
    assert!(ended.stderr.contains("is there already"), "{}", ended.stderr);
    for name in ["../mine", "Mine", "", "-x", "a/b"] {
        env.nietz(["new", "flow", "--", name]).go().exits(2);
    }
    assert_eq!(env.documents().len(), 1);
}
