//! The promise: a command line that comes to no run says why, to people and to programs, and what to type instead.

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str =
    r#"return require("@nietz").flow { name = "tea", summary = "s", run = function() return "done" end }"#;

#[test]
fn a_flow_in_place_of_a_verb_is_answered_with_the_line_that_runs_it() {
    let env = Env::new().flow("tea", FLOW);
    for (words, hint) in [
        (&["brainstorm", "a kettle"][..], "hint: nietz run brainstorm 'a kettle'\n"),
        (&["tea", "--json"], "hint: nietz run tea --json\n"),
        (&["flows/tea.lua"], "hint: nietz run flows/tea.lua\n"),
        (&["bundled/council"], "hint: nietz run bundled/council\n"),
    ] {
        let ended = env.nietz(words.iter().copied()).go().exits(2);
        assert!(ended.stderr.starts_with("error[usage]: `") && ended.stderr.ends_with(hint), "{}", ended.stderr);
    }
    let ended = env.nietz(["brainstrom"]).go().exits(2);
    assert!(ended.stderr.contains("unrecognized subcommand"), "{}", ended.stderr);
}

/// The one event of a command line that came to no run.
fn event(env: &Env, words: &[&str], code: i32) -> Value {
    let ended = env.nietz(words.iter().copied()).go().exits(code);
    assert_eq!(ended.stdout.lines().count(), 1, "{ended:?}");
    let event: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&event["type"], &event["run"], &event["status"], &event["seq"]),
        (&json!("run_ended"), &json!(""), &json!("failed"), &json!(0))
    );
    assert!(!ended.stderr.is_empty(), "people are told as well");
    event["failure"].clone()
}

#[test]
fn a_program_is_told_why_no_run_began() {
    let env = Env::new().flow("tea", FLOW).trusting("");
    assert_eq!(event(&env, &["run", "coffee", "--json"], 2)["code"], "flow-not-found");
    assert_eq!(event(&env, &["run", "tea", "--json", "--sugar"], 2)["message"], "unexpected argument '--sugar' found");
    assert_eq!(event(&env, &["resume", "--json"], 2)["code"], "run-not-found");
    let broken = Env::new().flow("tea", FLOW).config("models: 3\n");
    assert_eq!(event(&broken, &["run", "tea", "--json"], 1)["code"], "config-invalid");
    let files = r#"return require("@nietz").flow { name = "f", summary = "s", permissions = { files = true }, run = function() end }"#;
    let untrusted = Env::new().flow("f", files).trusting("");
    assert_eq!(event(&untrusted, &["run", "f", "--json"], 5)["code"], "folder-untrusted");
    // A run that began says itself how it ended, and other verbs write no events.
    let ended = env.run(["tea"]).go().exits(0);
    assert_eq!(ended.stdout.matches("run_ended").count(), 1, "{}", ended.stdout);
    assert_eq!(env.nietz(["log", "no-such-run", "--json"]).go().exits(2).stdout, "");
}

#[test]
fn what_a_run_says_into_a_full_disk_is_a_failure_and_a_reader_that_leaves_is_none() {
    let server = ModelServer::start(|_| Response::text("hello to you"));
    let env = Env::with(&server).without("NIETZ_RUN");
    let full = |words: &str| {
        let line = format!("exec \"$0\" {words} > /dev/full");
        env.nietz(["-c", &line, env!("CARGO_BIN_EXE_nietz")]).instead("sh").go()
    };
    for words in ["run ask hello --model openai/test", "run ask hello --model openai/test --json", "flows"] {
        let ended = full(words).exits(1);
        assert!(
            ended.stderr.contains("error[disk-failed]: cannot write to standard output: No space left"),
            "{ended:?}"
        );
    }
    // What a run ended with stays.
    let ended = full("run ask hello --model openai/test --max-calls 0").exits(6);
    assert!(ended.stderr.contains("budget-used-up"), "{ended:?}");
    let line = "\"$0\" run ask hello --model openai/test | true";
    env.nietz(["-c", line, env!("CARGO_BIN_EXE_nietz")]).instead("sh").go().exits(0);
    assert_eq!(env.nietz(["run", "ask", "hello", "--model", "openai/test"]).unheard(), Some(0));
}

#[test]
fn the_source_of_a_flow_is_shown_to_who_writes_it_and_resuming_is_advised_where_it_helps() {
    let own = r#"
local nietz = require("@nietz")
local template = require("@nietz/template")
return nietz.flow { name = "own", summary = "s", run = function() template.text("{{ nobody }}", {}) end }
"#;
    let env = Env::new().flow("own", own);
    let ended = env.nietz(["run", "own"]).go().exits(1);
    assert!(
        ended.stderr.contains("| return nietz.flow") && ended.stderr.contains("resume with: nietz resume r1"),
        "{ended:?}"
    );
    // The same flow in a pack is somebody else's.
    let pack = "name: shelf\nversion: 1.0.0\nsummary: s\nlicence: MIT\nhost_api: 1\npermissions:\n  own: {}\n";
    let shelf = Env::new().flow("own", own).file("pack.yaml", pack);
    let user = Env::new();
    let folder = shelf.workspace().display().to_string();
    user.nietz(["pack", "add", &folder, "--yes"]).go().exits(0);
    let ended = user.nietz(["run", "own"]).go().exits(1);
    assert!(ended.stderr.contains("-->") && !ended.stderr.contains("return nietz.flow"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("called from") && !ended.stderr.contains("resume with"), "{}", ended.stderr);
    let ended = user.nietz(["run", "own", "--trace"]).var("NIETZ_RUN", "r2").go().exits(1);
    assert!(ended.stderr.contains("| return nietz.flow"), "{}", ended.stderr);
    // Nothing goes on with a recording, whose folder is gone.
    let ended = env.nietz(["test", "--record", "own", "--name", "bad"]).go().exits(1);
    assert!(!ended.stderr.contains("resume with"), "{}", ended.stderr);
}

#[test]
fn a_configuration_that_is_wrong_is_invalid_for_check_as_every_file_is() {
    let env = Env::new().flow("tea", FLOW).file("nietz.yaml", "models: 3\n");
    assert!(env.nietz(["check", "nietz.yaml"]).go().exits(4).stdout.contains("nietz.yaml:1:9"));
    // It is told, whatever is checked, and ends every other verb.
    assert!(env.nietz(["check", "flows/tea.lua"]).go().exits(4).stderr.contains("error[config-invalid]"));
    env.nietz(["flows"]).go().exits(1);
}
