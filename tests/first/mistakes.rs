//! The promise: whoever makes a mistake is told what happened, where, and what to do, before anything is paid for.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::env::Env;

const TEA: &str = r#"
local nietz = require("@nietz")
return nietz.flow { name = "tea", summary = "s", host_api = 2, params = { kind = { type = "string", positional = true, required = true } },
  run = function(ctx) return ctx.params.kind end }
"#;
const SAY: &str = r#"
local llm = require("@nietz/llm")
return require("@nietz").flow { name = "say", summary = "s", host_api = 2, permissions = { llm = true },
  run = function() return llm.chta { prompt = "hello" }.text end }
"#;

/// What a mistake is answered with: the words after `nietz`, the exit status, and the parts of what is told.
struct Mistake(&'static [&'static str], i32, &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    Mistake(&["rnu", "tea"], 2, &["unrecognized subcommand 'rnu'", "'runs'"]),
    Mistake(&["run", "brainstrom", "x"], 2, &["there is no flow `brainstrom`", "did you mean `brainstorm`?"]),
    Mistake(&["run", "flows/tee.lua"], 2, &["there is no flow `flows/tee.lua`", "did you mean `tea`?"]),
    Mistake(&["run", "tea"], 2, &["<KIND>", "Usage: nietz run tea <KIND>"]),
    Mistake(&["run", "tea", "green", "--modle", "x"], 2, &["'--modle'", "'--model'"]),
    Mistake(
        &["run", "ask", "x", "@notse.md"],
        2,
        &["there is no file notse.md", "did you mean @notes.md? ", ": \\\\@notse.md\n"],
    ),
    Mistake(
        &["run", "ask", "x", "@sub/notse.md"],
        2,
        &["there is no file sub/notse.md", "did you mean @sub/notes.md?"],
    ),
    Mistake(
        &["run", "ask", "x", "--max-calls", "many"],
        2,
        &["'many'", "--max-calls", "a whole number is needed, such as 50"],
    ),
    Mistake(
        &["run", "ask", "x", "--max-cost", "lots"],
        2,
        &["'lots'", "an amount of US dollars is needed, such as 0.50"],
    ),
    Mistake(&["run", "ask", "x", "--max-time", "soon"], 2, &["'soon'", "90s, 10m or 1h30m"]),
    Mistake(
        &["run", "ask", "x", "--model", "opnai/gpt-6.1-terra"],
        1,
        &["opnai/gpt-6.1-terra", "did you mean openai/gpt-6.1-terra?"],
    ),
    Mistake(
        &["run", "ask", "x", "--model", "anthropic/claude-sonnet-5-5"],
        1,
        &["there is no key for anthropic", "ANTHROPIC_API_KEY", "nietz models key"],
    ),
    Mistake(
        &["run", "ask", "x", "--model", "openai/test"],
        3,
        &["nothing listens at http://127.0.0.1:1", "start the server"],
    ),
    Mistake(
        &["run", "tea", "x", "--answers", "none.yaml"],
        2,
        &["the answers file none.yaml", "relative to the folder that you are in"],
    ),
    Mistake(
        &["run", "tea", "x", "--answers", "broken.yaml"],
        2,
        &["broken.yaml: line 1 column 4", "--> broken.yaml:1:4", "a line each"],
    ),
    Mistake(&["resume"], 2, &["there are no runs here", "`nietz where` tells which this is"]),
    Mistake(&["log"], 2, &["there are no runs here", "-C FOLDER names another"]),
    Mistake(&["log", "monday"], 2, &["there is no run `monday` here", "-C FOLDER names another"]),
    Mistake(&["-C", "nowhere", "runs"], 2, &["the workspace nowhere cannot be used", "nietz -C FOLDER"]),
    Mistake(&["test"], 2, &["there is no cassette here", "nietz test --from-run RUN"]),
    Mistake(&["eject", "cuoncil"], 2, &["there is no flow `cuoncil`", "did you mean `council`?"]),
    Mistake(&["explain", "key-mising"], 2, &["`key-mising`", "did you mean `key-missing`?"]),
    Mistake(&["pack", "add", "nosuch"], 2, &["`nosuch`: there is no such folder or archive", "a name in an index"]),
    Mistake(&["pack", "add", "https://example.org/tea.git"], 2, &["say which tag or commit", "URL#TAG"]),
    Mistake(&["new", "flow", "tea"], 2, &["flows/tea.lua is there already", "choose another name"]),
    Mistake(&["new", "flow", "Tea Pot"], 2, &["`Tea Pot` is not a valid name", "lower-case letters"]),
    Mistake(
        &["run", "say", "--model", "openai/test"],
        1,
        &["attempt to call a nil value", "flows/say.lua:4", "`nietz check` names functions"],
    ),
    Mistake(&["check", "flows/say.lua"], 4, &["@nietz/llm has no `chta`; did you mean `chat`?", "flows/say.lua:4:"]),
    Mistake(&["run", "broken"], 4, &["Expected", "flows/broken.lua:1"]),
    Mistake(&["install", "emcas"], 2, &["'emcas'", "vscode"]),
];

#[test]
fn each_mistake_of_a_newcomer_is_told_with_what_to_do() {
    for Mistake(words, code, parts) in MISTAKES {
        let env = Env::new()
            .flow("tea", TEA)
            .flow("say", SAY)
            .flow("broken", "return {")
            .file("notes.md", "x")
            .file("sub/notes.md", "x")
            .file("broken.yaml", "a: [");
        let ended = env.nietz(words.iter().copied()).go();
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.code, Some(*code), "{words:?}: {told}");
        for part in *parts {
            assert!(told.contains(part), "{words:?} does not say {part:?}: {told}");
        }
    }
}

#[test]
fn who_types_nothing_or_asks_for_help_is_told_how_to_begin() {
    let env = Env::new();
    for (words, code) in [(&["--help"][..], 0), (&[], 2)] {
        let ended = env.nietz(words.iter().copied()).go().exits(code);
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(told.contains("To begin: `nietz run ask") && told.contains("nietz doctor"), "{told}");
    }
}

/// What a flow gives a function of the host is told by its name, and by nothing of how it is read.
#[test]
fn an_option_of_a_choice_that_is_none_is_told_with_what_it_may_be() {
    for (option, parts) in [
        (
            r#"{ value = "red", label = "Red", hnit = "as roses" }"#,
            ["ui.choose: option 2 has no field `hnit`", "did you mean `hint`?"],
        ),
        (
            r#"{ value = "red", detail = "as roses" }"#,
            ["ui.choose: option 2 has no field `detail`", "known are value, label, hint"],
        ),
        (r#"{ value = "red" }"#, ["ui.choose: option 2: missing field `label`", "flows/pick.lua:4"]),
        (r#"{ value = "red", label = 3 }"#, ["ui.choose: option 2: ", "what it takes: nietz docs ui.choose"]),
    ] {
        let flow = format!(
            "local ui = require(\"@nietz/ui\")\n\
             return require(\"@nietz\").flow {{ name = \"pick\", summary = \"s\", run = function()\n\
             \t\n\
             \tui.choose {{ id = \"c\", prompt = \"Which?\", options = {{ \"green\", {option} }} }}\n\
             end }}\n"
        );
        let told = Env::new().flow("pick", &flow).nietz(["run", "pick"]).go().exits(1).stderr;
        for part in parts {
            assert!(told.contains(part) && !told.contains("untagged"), "{part}: {told}");
        }
    }
}

#[test]
fn a_folder_without_a_repository_or_a_right_is_told_with_what_mends_it() {
    let env = Env::new();
    env.nietz(["new", "flow", "review", "--like", "review"]).go().exits(0);
    let none = env.nietz(["run", "review", "--ci", "--trust", "--model", "openai/test"]).go().exits(1).stderr;
    for part in ["is not the top folder of a git repository", "(or any of the parent directories): .git\n", "git init"]
    {
        assert!(none.contains(part), "{part}: {none}");
    }
    // To root, every folder is writable, and every file readable.
    if !rustix::process::geteuid().is_root() {
        let env = Env::new().flow("tea", TEA);
        let set =
            |mode| std::fs::set_permissions(env.workspace(), PermissionsExt::from_mode(mode)).expect("it is ours");
        set(0o555);
        let told = env.nietz(["run", "tea", "green"]).go().exits(1).stderr;
        set(0o755);
        assert!(told.contains("Permission denied") && told.contains("make it writable for you"), "{told}");
    }
}

/// What a system says of a name that it cannot find is not cut.
#[test]
fn a_network_that_is_not_there_is_told_whole() {
    let alone = Command::new("unshare").args(["-rn", "true"]).status().is_ok_and(|status| status.success());
    if !alone {
        return println!("SKIPPED: this system lets nobody have a network of their own");
    }
    let env = Env::new()
        .without("OPENAI_BASE_URL")
        .config("models: {retry: {attempts: 1, total_seconds: 5, base_delay_ms: 1}}\n");
    let call = env.nietz(["run", "ask", "x", "--model", "openai/gpt-6.1-terra"]).by("unshare", ["-rn"]);
    let told = call.go().exits(3).stderr;
    assert!(told.contains("openai at https://api.openai.com cannot be reached") && !told.contains('…'), "{told}");
    assert!(told.contains("the network is there"), "{told}");
}
