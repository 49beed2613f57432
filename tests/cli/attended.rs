//! The promise: a flow can know whether somebody is there for its questions, and a run that goes on keeps what it was told.

use serde_json::{Value, json};

use crate::support::env::{Env, RUN};

const FLOW: &str = r#"
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
	name = "there", summary = "Asks only where somebody is", host_api = 2,
	params = { ask = { type = "boolean" } },
	commands = { look = { summary = "Tells it", reads_only = true, run = function() return ui.attended() end } },
	run = function(ctx)
		local at_first = ui.attended()
		if ctx.params.ask then ui.ask { id = "topic", prompt = "What about?" } end
		return { at_first, ui.attended() }
	end,
}
"#;

fn env() -> Env {
    Env::new().flow("there", FLOW).file("answers.yaml", "topic: tea\n")
}

/// What the flow returned, as the journal has it.
fn result(env: &Env) -> Value {
    env.journal().lines.last().expect("there are lines")["is"]["end"]["result"].clone()
}

#[test]
fn a_terminal_a_program_and_prepared_answers_are_somebody_and_a_pipe_is_nobody() {
    let there = json!([true, true]);
    let env = env();
    let seat = env.nietz(["run", "there"]).var("TERM", "xterm").at_a_terminal();
    assert_eq!((seat.end(), result(&env)), (Some(0), there.clone()), "a terminal");
    let run = |arguments: &[&str], lines: &str| {
        let env = self::env();
        env.nietz(["run", "there"].into_iter().chain(arguments.iter().copied())).stdin(lines).go().exits(0);
        result(&env)
    };
    assert_eq!(run(&["--answers", "answers.yaml"], ""), there, "a file of answers");
    assert_eq!(run(&["--answers", "-"], "tea\n"), there, "a pipe that was announced");
    assert_eq!(run(&["--json"], ""), there, "a program that reads events");
    assert_eq!(run(&[], "tea\n"), json!([false, false]), "a pipe that may be anything");
    let nothing = env.nietz(["run", "there", "--json"]).by("sh", ["-c", "exec \"$@\" </dev/null", "sh"]);
    assert_eq!(nothing.var("NIETZ_RUN", "r2").go().result(), json!([false, false]), "nothing to read");
    assert_eq!(env.run(["there", "look"]).go().result(), json!(true), "a command that only looks may know it");
}

#[test]
fn a_run_that_goes_on_keeps_what_it_was_told_and_hears_anew_what_it_asks_anew() {
    let env = env();
    env.nietz(["run", "there", "--ask"]).go().exits(7);
    env.nietz(["resume", RUN, "--answers", "answers.yaml"]).go().exits(0);
    assert_eq!(result(&env), json!([false, true]));
    env.nietz(["test", "--from-run", RUN, "--name", "there"]).go().exits(0);
    env.nietz(["test"]).go().exits(0);
}
