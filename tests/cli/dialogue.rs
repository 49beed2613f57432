//! The promise: an answer that is given back is seen, and one that belongs to another dialogue is not given back but asked for
//! again, at a terminal, in a pipe, by a file of answers and in an editor; what was paid for stays.

use serde_json::{Value, json};

use crate::support::env::{Env, RUN};
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local task = require("@nietz/task")
local ui = require("@nietz/ui")
return nietz.flow {
	name = "walk", summary = "Asks, and goes back when told to", host_api = 2, permissions = { llm = true },
	run = function()
		local thought = llm.chat { prompt = "Think." }.text
		local beside = task.all { function() return ui.ask { id = "beside", prompt = "Beside?" } end }
		local first = ui.ask { id = "first", prompt = "First?" }
		local colour = ui.choose { id = "colour", prompt = "Which?", options = { "red", { value = "green", label = "Deep green" } } }
		local sure = ui.confirm { id = "sure", prompt = "Sure?" }
		local commands = { { name = "back", summary = "goes back", words = { "back" } } }
		local said, command = ui.ask { id = "next", prompt = "A list:\n- one\n\nWhat next?", commands = commands }
		local last = ui.ask { id = "last", prompt = "Last?" }
		return { thought, beside[1], first, colour, tostring(sure), command or said, last }
	end,
}
"#;

fn env(server: &ModelServer) -> Env {
    Env::with(server).flow("walk", FLOW)
}

fn server() -> ModelServer {
    ModelServer::start(|_| Response::text("a thought"))
}

/// Plays the flow up to its last question, edits its first one, and returns the folder.
fn edited(server: &ModelServer) -> Env {
    let env = env(server);
    env.run(["walk"]).stdin("here\none\ngreen\ny\nback\n").go().exits(7);
    env.write("flows/walk.lua", FLOW.replace("First?", "At first?"));
    env
}

#[test]
fn what_is_given_back_is_shown_in_its_place_and_the_question_that_waits_behind_it() {
    let server = server();
    let shown = ["Beside? › here", "First? › one", "Which? › Deep green", "Sure? › yes", "What next? › back"];
    let env = env(&server);
    env.run(["walk"]).stdin("here\none\ngreen\ny\nback\n").go().exits(7);
    let resumed = env.nietz(["resume", RUN]).stdin("end\n").go().exits(0);
    let lines: String = shown.iter().map(|line| format!("? {line} (as before)\n")).collect();
    assert!(resumed.stdout.starts_with(&format!("{lines}? Last?\n> end\n")), "{}", resumed.stdout);
    let env = self::env(&server);
    env.run(["walk"]).stdin("here\none\ngreen\ny\nback\n").go().exits(7);
    let mut seat = env.nietz(["resume", RUN]).var("TERM", "xterm").at_a_terminal();
    seat.sees("6 recorded effects given back");
    shown.iter().for_each(|line| seat.sees(&format!("{line} (as before)")));
    seat.sees("Last?");
    // The answers can be brought back and changed.
    seat.types("\u{1b}[A\u{1b}[A!\r");
    assert_eq!(seat.end(), Some(0));
    assert_eq!(env.journal().of_kind("ask").iter().find(|ask| ask.outcome["ok"] == "one!").map(|_| ()), Some(()));
    let env = self::env(&server);
    env.run(["walk"]).stdin("here\none\ngreen\ny\nback\n").go().exits(7);
    let resumed = env.resume().stdin("end\n").go().exits(0);
    let given: Vec<Value> = resumed.of_type("given_back").iter().map(|event| event["answer"].clone()).collect();
    assert_eq!(given, [json!("here"), json!("one"), json!("green"), json!(true), json!("back")]);
    assert_eq!(resumed.asked(), ["last"], "what is given back is asked of nobody");
}

#[test]
fn behind_a_question_that_has_changed_each_is_asked_again_and_an_empty_line_answers_as_before() {
    let server = server();
    let env = edited(&server);
    let resumed = env.nietz(["resume", RUN]).stdin("uno\n\n\n\nend\n").go().exits(0);
    assert!(resumed.stderr.contains("what was asked behind it is asked again"), "{}", resumed.stderr);
    for asked in [
        "? At first?\n> uno\n",
        "  2. Deep green (default)\n> \n  (Deep green)\n",
        "? Sure? (Y/n)\n> \n  (yes)\n",
        "What next? [back] [/help]\n> \n  (back)\n",
        "? Last?\n> end\n",
    ] {
        assert!(resumed.stdout.contains(asked), "{asked}: {}", resumed.stdout);
    }
    assert!(
        resumed.stdout.starts_with("? Beside? › here (as before)\n"),
        "another scope keeps its own: {}",
        resumed.stdout
    );
    assert_eq!(server.calls(), 1, "what was paid for is given back");
    let whole = json!(["a thought", "here", "uno", "green", "true", "back", "end"]);
    assert_eq!(env.resume().go().exits(0).result(), whole);
    let log = env.nietz(["log", RUN]).go().exits(0);
    assert!(log.stdout.contains("At first? (anew: answers before this line hold no more)"), "{}", log.stdout);
}

#[test]
fn the_dialogue_that_has_changed_goes_on_where_it_stopped_and_takes_nothing_from_the_earlier_one() {
    let server = server();
    for fault in ["none", "kill@15", "kill@16", "kill@17", "kill@18"] {
        let env = edited(&server);
        let waiting = env.resume().stdin("uno\n").var("NIETZ_FAULT", fault);
        waiting.go();
        // The second process finds a question answered that stands behind the others, and knows what is before and behind it.
        let waiting = env.resume().stdin("uno\nred\n").go();
        let asked = waiting.asked();
        assert!(asked.contains(&"colour".to_owned()) && asked.contains(&"sure".to_owned()), "{fault}: {asked:?}");
        let ended = env.resume().stdin("n\nback\nend\n").go().exits(0);
        assert_eq!(ended.result()[6], "end", "{fault}");
        assert_eq!(ended.result()[4], "false", "{fault}");
        assert_eq!(env.nietz(["check", env.journal_path().to_str().expect("it is text")]).go().code, Some(0));
    }
}

#[test]
fn a_fork_with_another_first_question_asks_the_others_again_and_one_with_the_same_asks_none() {
    let server = server();
    let env = edited(&server);
    env.write("answers.yaml", "first: uno\ncolour: null\nsure: null\nnext: null\nlast: end\n");
    let forked = env.nietz(["fork", RUN, "--json", "--answers", "answers.yaml"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert_eq!(forked.result(), json!(["a thought", "here", "uno", "green", "true", "back", "end"]));
    assert_eq!(forked.asked(), ["first", "colour", "sure", "next", "last"]);
    let before: Vec<Value> = forked.of_type("asked").iter().map(|asked| asked["question"]["before"].clone()).collect();
    assert_eq!(before, [json!(null), json!("green"), json!(true), json!("back"), json!(null)]);
    env.write("flows/walk.lua", FLOW.replace("Last?", "At last?"));
    let forked = env.nietz(["fork", RUN, "--json"]).var("NIETZ_RUN", "r3").stdin("end\n").go().exits(0);
    assert_eq!((forked.asked(), forked.of_type("given_back").len()), (vec!["last".to_owned()], 5));
    assert_eq!(server.calls(), 1);
}

#[test]
fn a_fork_that_waits_in_another_dialogue_goes_on_in_it() {
    let server = server();
    let env = edited(&server);
    let waiting = env.nietz(["fork", RUN, "--json"]).var("NIETZ_RUN", "r2").stdin("uno\nred\n").go().exits(7);
    assert_eq!(waiting.asked(), ["first", "colour", "sure"]);
    let ended = env.nietz(["resume", "r2", "--json"]).stdin("n\nback\nend\n").go().exits(0);
    assert_eq!(ended.asked(), ["sure", "next", "last"]);
    assert_eq!(ended.result(), json!(["a thought", "here", "uno", "red", "false", "back", "end"]));
}

#[test]
fn a_test_says_that_a_question_has_changed_and_plays_what_has_not() {
    let server = server();
    let env = env(&server);
    env.run(["walk"]).stdin("here\none\ngreen\ny\nback\nend\n").go().exits(0);
    env.nietz(["test", "--from-run", RUN, "--name", "walk"]).go().exits(0);
    env.nietz(["test"]).go().exits(0);
    env.write("flows/walk.lua", FLOW.replace("First?", "At first?"));
    let failed = env.nietz(["test"]).go().exits(1);
    assert!(failed.stdout.contains("At first?"), "{failed:?}");
}
