//! What a council looks like at a terminal of 80 columns.

use super::model::{Brain, stuck};
use super::table::{LARGE, REQUEST, Table};
use crate::support::process::Call;

/// The cursor of an open question.
const CURSOR: &str = "\u{1b}[?25h";

/// What a terminal shows, without styles; what moves the cursor ends a line.
fn plain(shown: &str) -> String {
    let (styles, moves) = ("\u{1b}\\[[0-9;]*m", "\u{1b}\\[[0-9;?]*[a-zA-Z]|\r");
    let without = regex::Regex::new(styles).expect("a pattern").replace_all(shown, "").into_owned();
    regex::Regex::new(moves).expect("a pattern").replace_all(&without, "\n").into_owned()
}

/// A text in one line: only where a word was broken is it another.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn fits(shown: &str) {
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{line:?}");
    }
}

fn at_a_terminal(call: Call) -> crate::support::terminal::Seat {
    call.var("TERM", "xterm").at_a_terminal_of(80)
}

#[test]
fn prompts_are_read_without_their_marks_and_no_word_of_the_report_is_broken() {
    let rounds = vec![vec![("Which deadline binds the migration?", "None before June")]];
    let table = Table::large(Brain { rounds, stand: stuck, ..Brain::default() });
    let flow = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/council.lua");
    let arguments = ["run", "--seed", "1", "--model", LARGE, flow, REQUEST, "--consider", "never", "--cycles", "1"];
    let mut seat = at_a_terminal(table.env.nietz(arguments).args(["--control"]));
    for prompt in
        ["Which deadline binds the migration?", "Enter if not", "Enter has the answer written", "Enter takes it"]
    {
        seat.sees(prompt);
        seat.sees(CURSOR);
        seat.types("\r");
    }
    let shown = plain(&seat.finish());
    for mark in ["**", "*Why", "*Enter"] {
        assert!(!shown.contains(mark), "{mark} in {shown}");
    }
    assert!(shown.lines().any(|line| line.trim_start().starts_with("Why: It changes the costs.")), "{shown}");
    fits(&shown);
    let journal = table.env.journal();
    let tokens = &journal.lines.last().expect("it ended")["is"]["end"]["result"]["metadata"]["control"]["tokens"];
    let [council, control, plain, judge] = ["council", "control", "plain", "judge"].map(|arm| tokens[arm].to_string());
    let cost = format!(
        "Cost: council {council} tokens, control {control} tokens, plain {plain} tokens, judging {judge} tokens."
    );
    assert!(one_line(&shown).contains(&cost), "{cost} in {shown}");
}

#[test]
fn no_word_of_a_hint_is_broken() {
    let table = Table::large(Brain::default());
    let env = &table.env;
    let arguments = ["run", "council", REQUEST, "--model", LARGE, "--personas", "Wizard"];
    let hint = env.nietz(arguments).args(["--json"]).go().ending()["failure"]["hint"].as_str().expect("one").to_owned();
    assert!(hint.len() > 80, "it takes more than a line: {hint}");
    let shown = plain(&at_a_terminal(env.nietz(arguments).var("NIETZ_RUN", "r2")).finish());
    fits(&shown);
    assert!(one_line(&shown).contains(&one_line(&hint)), "{hint} in {shown}");
}
