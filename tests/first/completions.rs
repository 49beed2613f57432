//! The promise: Tab knows what there is, and manuals have what `--help` has.

use crate::support::env::Env;

/// What bash is given for a line whose last word is under the cursor.
fn offered(env: &Env, words: &[&str]) -> Vec<String> {
    let line = ["--", "nietz"].iter().chain(words).copied();
    let index = words.len().to_string();
    let call = env.nietz(line).var("NIETZ_COMPLETE", "bash").var("_CLAP_COMPLETE_INDEX", &index).var("_CLAP_IFS", "\n");
    call.go().exits(0).stdout.lines().map(str::to_owned).collect()
}

#[track_caller]
fn has(env: &Env, words: &[&str], expected: &[&str]) {
    let all = offered(env, words);
    for one in expected {
        assert!(all.iter().any(|word| word == one), "{words:?} offers no {one}: {all:?}");
    }
}

const FLOW: &str = r#"
local nietz = require("@nietz")
return nietz.flow {
  name = "tea", summary = "s",
  params = { kind = { type = "string", choices = { "green", "black" } }, who = { type = "persona" } },
  commands = { list = { summary = "s", reads_only = true, params = { most = { type = "integer" } }, run = function() end } },
  run = function() return "done" end,
}
"#;

#[test]
fn a_shell_completes_what_there_is_here() {
    let env = Env::new()
        .flow("tea", FLOW)
        .config("models: { aliases: { strong: anthropic/claude-sonnet-5-5 } }\n")
        .file("personas/mine.md", "---\nname: Mine\n---\nYou are mine.\n");
    env.run(["tea"]).go().exits(0);
    has(&env, &["re"], &["resume", "report"]);
    has(&env, &["run", ""], &["tea", "brainstorm", "council"]);
    has(&env, &["run", "tea", "--"], &["--kind", "--who", "--model", "--max-calls", "--json"]);
    has(&env, &["run", "tea", "--kind", ""], &["green", "black"]);
    has(&env, &["run", "tea", "--who", "mi"], &["mine"]);
    has(&env, &["run", "tea", ""], &["list"]);
    has(&env, &["run", "tea", "list", "--"], &["--most"]);
    has(&env, &["run", "--model", "strong", "te"], &["tea"]);
    has(&env, &["run", "tea", "--model", "str"], &["strong"]);
    has(&env, &["run", "council", "--"], &["--context", "--control", "--model"]);
    has(&env, &["resume", ""], &["r1"]);
    has(&env, &["log", "r"], &["r1"]);
    has(&env, &["explain", "key"], &["key-missing", "key-refused"]);
    has(&env, &["docs", ""], &["llm", "permissions", "commands"]);
    has(&env, &["personas", "mi"], &["mine"]);
    has(&env, &["models", "key", "open"], &["openai", "openrouter"]);
    has(&env, &["completions", ""], &["bash", "zsh", "fish"]);
    // What is wrong elsewhere keeps nobody from typing.
    env.write("nietz.yaml", "models: 3\n");
    has(&env, &["run", "te"], &["tea"]);
    // Nothing of it is done.
    assert_eq!(offered(&env, &["new", "flow", "--like", ""]).len(), 4);
    assert!(!env.path("flows/flow.lua").exists());
}

#[test]
fn shells_are_told_to_ask_nietz() {
    let env = Env::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = env.nietz(["completions", shell]).go().exits(0).stdout;
        assert!(text.contains("NIETZ_COMPLETE") && text.contains("nietz"), "{shell}: {text}");
    }
    env.nietz(["completions", "csh"]).go().exits(2);
}

#[test]
fn manuals_have_flows_with_their_options_exit_codes_variables_and_files() {
    let env = Env::new();
    env.nietz(["man", "man"]).go().exits(0);
    for (page, parts) in [
        ("nietz.1", &[".SH \"EXIT STATUS\"", "OPENAI_API_KEY", "nietz.lock", "NIETZ_HOME"][..]),
        ("nietz-run.1", &["\\-\\-max\\-calls", "EXIT STATUS", "the flow\\*(Aqs verdict"]),
        ("nietz-run-council.1", &["\\-\\-control", "\\-\\-model", "EXIT STATUS"]),
        ("nietz-pack-search.1", &["\\-\\-index"]),
    ] {
        let text = env.read(&format!("man/{page}"));
        for part in parts {
            let plain =
                part.replace("the flow\\*(Aqs verdict", "verdict").replace(".SH \"EXIT STATUS\"", ".SH EXIT STATUS");
            assert!(text.contains(&plain), "{page} has no {plain}");
        }
    }
}
