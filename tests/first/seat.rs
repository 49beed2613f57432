//! The promise: at a terminal, what is typed before a question is shown begins its answer, and what is shown fits.

use std::time::Duration;

use crate::support::env::Env;
use crate::support::model_server::{Gate, ModelServer, Response};

const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
  name = "talk", summary = "Talks", permissions = { llm = true },
  run = function()
    local said = llm.chat { prompt = "Say hello" }.text
    local name = ui.ask { id = "name", prompt = "Your name?" }
    local sure = ui.confirm { id = "sure", prompt = "Sure?" }
    return { said, name, if sure then "sure" else "not sure" }
  end,
}
"#;

#[test]
fn what_is_typed_while_a_model_answers_begins_the_next_answer() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = ModelServer::start(move |_| Response::text("hello to you").held_by(&held));
    let env = Env::with(&server).flow("talk", FLOW);
    let call = env.nietz(["run", "--model", "openai/test", "talk"]).var("TERM", "xterm");
    let mut seat = call.at_a_terminal();
    assert!(server.wait_for_calls(1, Duration::from_secs(60)));
    // The line discipline echoes what it has got.
    seat.types("Xant");
    seat.sees("Xant");
    gate.open();
    seat.sees("Your name?");
    seat.sees("› ");
    seat.sees("Xant");
    // Enter of the first answer, and two keys for the second one before it is shown.
    seat.types("hippe\ry");
    seat.sees("Xanthippe");
    seat.sees("Sure?");
    seat.types("\r");
    assert_eq!(seat.end(), Some(0));
    let journal = env.journal();
    assert_eq!(journal.of_kind("ask")[0].outcome["ok"], "Xanthippe");
    assert_eq!(journal.of_kind("ask")[1].outcome["ok"], true);
}

#[test]
fn an_enter_that_was_pressed_before_a_question_was_shown_answers_nothing() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = ModelServer::start(move |_| Response::text("hello to you").held_by(&held));
    let env = Env::with(&server).flow("talk", FLOW);
    let mut seat = env.nietz(["run", "--model", "openai/test", "talk"]).var("TERM", "xterm").at_a_terminal();
    assert!(server.wait_for_calls(1, Duration::from_secs(60)));
    seat.types("Xan\ry\r");
    seat.sees("Xan");
    gate.open();
    seat.sees("Your name?");
    seat.sees("Enter takes it");
    seat.types("\r");
    seat.sees("Sure?");
    seat.sees("Enter takes it");
    seat.types("\u{7f}n");
    assert_eq!(seat.end(), Some(0));
    assert_eq!(env.journal().of_kind("ask")[1].outcome["ok"], false);
}

#[test]
fn lists_fit_any_terminal_from_forty_columns_on() {
    let env = Env::new();
    for columns in [40_u16, 80, 120, 200] {
        for verb in [
            &["flows"][..],
            &["flows", "council"],
            &["personas"],
            &["quotes"],
            &["models"],
            &["explain"],
            &["explain", "key-missing"],
            &["docs"],
            &["docs", "llm.chat"],
            &["where"],
            &["doctor"],
            &["trust", "list"],
            &["pack", "list"],
            &["run", "council", "x", "--plan"],
            &["runs", "--since", "1d"],
            &["resume"],
        ] {
            let seat = env.nietz(verb.iter().copied()).var("TERM", "xterm").at_a_terminal_of(columns);
            let shown = seat.finish();
            for line in shown.lines() {
                let width = unicode_width(line);
                // What is one word, such as a path, is left whole.
                let is_one_word = line.trim().split(' ').count() == 1;
                assert!(width <= usize::from(columns) || is_one_word, "{verb:?} at {columns}: {width}: {line:?}");
            }
        }
    }
}

/// How many columns a line takes, without its escape sequences.
fn unicode_width(line: &str) -> usize {
    let escapes = regex::Regex::new("\u{1b}\\[[0-9;?]*[a-zA-Z]").expect("a pattern");
    escapes.replace_all(line.trim_end_matches('\r'), "").chars().count()
}
