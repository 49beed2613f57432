//! The promise: the usage of a flow tells what is taken, and a word that was probably meant as one of its commands is no text.

use serde_json::{Value, json};

use crate::support::env::Env;

const FLOW: &str = r#"
local nietz = require("@nietz")
return nietz.flow {
	name = "retro", summary = "Looks back", host_api = 2,
	params = { notes = { type = "string", positional = true, help = "What happened" } },
	commands = {
		list = { summary = "Lists them", run = function() return "the list" end },
		migrate = { summary = "Brings them up to date", run = function() return "migrated" end },
	},
	run = function(ctx) return ctx.params.notes or "nothing" end,
}
"#;

fn env() -> Env {
    Env::new().flow("retro", FLOW).file("typed.txt", "lst")
}

#[test]
fn the_usage_of_a_flow_names_its_texts_only_where_no_command_stands() {
    let help = env().nietz(["run", "retro", "--help"]).go().exits(0);
    let usage = "Usage: nietz run retro [OPTIONS] [NOTES]\n       nietz run retro [OPTIONS] <COMMAND>\n";
    assert!(help.stdout.contains(usage), "{}", help.stdout);
    let help = env().nietz(["run", "retro", "list", "--help"]).go().exits(0);
    assert!(help.stdout.contains("Usage: nietz run retro list [OPTIONS]\n"), "{}", help.stdout);
    env().run(["retro", "x", "list"]).go().exits(2);
}

#[test]
fn a_word_that_is_one_letter_off_a_command_is_asked_about_and_leaves_no_run() {
    for (word, meant) in
        [("lst", "list"), ("lsit", "list"), ("lists", "list"), ("migrat", "migrate"), ("migrete", "migrate")]
    {
        let env = env();
        let refused = env.nietz(["run", "retro", word]).go().exits(2);
        let told = format!(
            "error[usage]: `{word}` is no command of retro: did you mean `{meant}`?\nhint: as NOTES, it is written '\\{word}'\n"
        );
        assert_eq!(refused.stderr, told);
        assert!(!env.path(".nietz/runs").exists(), "{word} left a run");
        let result = |call: crate::support::process::Call| -> Value { call.go().exits(0).result() };
        assert_eq!(result(env.run(["retro", &format!("\\{word}")])), json!(word));
        assert_eq!(result(env.run(["retro", "--", word]).var("NIETZ_RUN", "r2")), json!(word));
    }
    // These are texts: a neighbour that is a word, several words, what stands in a file; and a command is one.
    for (number, (words, result)) in (1..).zip([
        ("lost", "lost"),
        ("lst week", "lst week"),
        ("@typed.txt", "lst"),
        ("\\list", "list"),
        ("\\notes", "\\notes"),
        ("list", "the list"),
    ]) {
        let run = env().run(["retro", words]).var("NIETZ_RUN", &format!("r{number}")).go().exits(0);
        assert_eq!(run.result(), json!(result), "{words}");
    }
}

/// A flow with a part of its own, which only `task.spawn` begins.
pub(crate) const POLL: &str = r#"
local nietz = require("@nietz")
local task = require("@nietz/task")
return nietz.flow {
	name = "poll", summary = "Asks around", host_api = 2,
	params = { notes = { type = "string", positional = true, help = "What it is about" } },
	commands = {
		list = { summary = "Lists them", run = function() return "the list" end },
		vote = { summary = "One of them votes", internal = true, run = function() return "voted" end },
	},
	run = function(ctx) return ctx.params.notes or task.spawn("poll vote").result end,
}
"#;

#[test]
fn a_command_for_task_spawn_alone_is_shown_nowhere_and_is_no_word_of_the_command_line() {
    let env = Env::new().flow("poll", POLL);
    for words in [["run", "poll", "--help"].as_slice(), &["flows", "poll"], &["flows", "poll", "--json"]] {
        let shown = env.nietz(words.iter().copied()).go().exits(0).stdout;
        assert!(shown.contains("list") && !shown.contains("vote"), "{words:?}: {shown}");
    }
    assert_eq!(env.run(["poll"]).go().result(), "voted");
    assert_eq!(env.journal().of_kind("spawn").len(), 1);
    for (number, word) in (2..).zip(["vote", "votes", "\\vote"]) {
        let run = env.run(["poll", word]).var("NIETZ_RUN", &format!("r{number}")).go();
        assert_eq!(run.result(), word, "it is a text as any other");
    }
    env.write("flows/poll.lua", POLL.replace("internal = true", "internal = 1"));
    let checked = env.nietz(["check", "flows/poll.lua"]).go().exits(4);
    assert!(checked.stdout.contains("command `vote`: internal must be true or false"), "{}", checked.stdout);
}
