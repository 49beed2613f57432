//! The promise: at a terminal, a run ends as its user means it to, and none of it is lost: Ctrl-C, Ctrl-D, a window that
//! is closed, an output that nobody reads.

use std::time::Duration;

use serde_json::Value;

use crate::support::env::{Env, RUN};
use crate::support::model_server::{Gate, ModelServer, Response};
use crate::support::process::Call;
use crate::support::terminal::Seat;

const FLOW: &str = include_str!("../support/flows/ends.lua");
/// A terminal that moves its cursor, and one that does not.
const KINDS: [&str; 2] = ["xterm", "dumb"];
/// The cursor of an open question.
const CURSOR: [&str; 2] = ["\u{1b}[?25h", "> "];

fn at(env: &Env, kind: &str, verb: &[&str]) -> Call {
    env.nietz(verb.iter().copied()).var("TERM", kind)
}

const ASK: &[&str] = &["run", "--model", "openai/test", "ends", "ask"];
const TALK: &[&str] = &["run", "--model", "openai/test", "ends", "talk"];

/// The end line of the journal, as `(status, code of the failure)`.
fn end(env: &Env) -> (Value, Value) {
    let journal = env.journal();
    let end = &journal.lines.last().expect("there are lines")["is"]["end"];
    (end["status"].clone(), end["failure"]["code"].clone())
}

#[test]
fn a_closed_terminal_ends_a_run_as_ctrl_c_does_and_it_goes_on_as_if_nothing_had_been() {
    for kind in KINDS {
        for take in [Call::at_a_terminal, Call::beside_a_terminal] {
            let gate = Gate::default();
            let held = gate.clone();
            let server = ModelServer::start(move |_| Response::text("hello to you").held_by(&held));
            let env = Env::with(&server).flow("ends", FLOW);
            let mut seat: Seat = take(at(&env, kind, TALK));
            assert!(server.wait_for_calls(1, Duration::from_secs(30)));
            seat.leaves();
            assert_eq!(seat.end(), Some(130), "{kind}");
            assert_eq!(end(&env), ("interrupted".into(), "interrupted".into()));
            assert_eq!(env.journal().of_kind("chat")[0].outcome, Value::Null);
            gate.open();
            assert_eq!(env.resume().go().result(), "hello to you");
            assert_eq!(server.calls(), 2, "the call that was under way, and no other");
        }
    }
}

#[test]
fn a_terminal_that_is_closed_at_a_question_gives_no_answer_and_no_end_of_input() {
    for (kind, cursor) in KINDS.into_iter().zip(CURSOR) {
        for take in [Call::at_a_terminal, Call::beside_a_terminal] {
            let env = Env::new().flow("ends", FLOW);
            let mut seat: Seat = take(at(&env, kind, ASK));
            seat.sees("Your name?");
            seat.sees(cursor);
            seat.leaves();
            assert_eq!(seat.end(), Some(130), "{kind}");
            assert_eq!(end(&env), ("interrupted".into(), "interrupted".into()));
            assert_eq!(env.resume().stdin("Xanthippe\n").go().result(), "Xanthippe");
        }
    }
}

#[test]
fn ctrl_d_at_a_question_leaves_the_run_waiting_and_says_how_it_goes_on() {
    for (kind, cursor) in KINDS.into_iter().zip(CURSOR) {
        let env = Env::new().flow("ends", FLOW);
        let mut seat = at(&env, kind, ASK).at_a_terminal();
        seat.sees("Your name?");
        seat.sees(cursor);
        seat.types("\u{4}");
        seat.sees("resume with: nietz resume r1");
        assert_eq!(seat.end(), Some(7), "{kind}");
        assert_eq!(end(&env), ("waiting".into(), "answer-missing".into()));
        let mut seat = at(&env, kind, &["resume", RUN]).at_a_terminal();
        seat.sees("Your name?");
        seat.sees(cursor);
        seat.types("Xanthippe\r");
        assert_eq!(seat.end(), Some(0), "{kind}");
        assert_eq!(env.journal().answered(), ["name"]);
    }
}

#[test]
fn ctrl_c_at_a_question_takes_the_line_away_first_and_then_ends_the_run() {
    let env = Env::new().flow("ends", FLOW);
    let mut seat = at(&env, "xterm", ASK).at_a_terminal();
    seat.sees("Your name?");
    seat.sees(CURSOR[0]);
    seat.types("Xan");
    seat.sees("Xan");
    seat.types("\u{3}");
    // It is another answer that counts.
    seat.types("Diotima");
    seat.sees("Diotima");
    seat.types("\u{3}\u{3}");
    seat.sees("resume with: nietz resume r1");
    assert_eq!(seat.end(), Some(130));
    let mut seat = at(&env, "xterm", &["resume", RUN]).at_a_terminal();
    seat.sees("Your name?");
    seat.sees(CURSOR[0]);
    seat.types("Xan");
    seat.sees("Xan");
    seat.types("\u{3}Diotima\r");
    assert_eq!(seat.end(), Some(0));
    assert_eq!(env.journal().of_kind("ask")[0].outcome["ok"], "Diotima");
}

#[test]
fn ctrl_c_at_a_question_is_no_answer_to_a_flow_that_catches_everything() {
    let env = Env::new().flow("ends", FLOW);
    let mut seat = at(&env, "xterm", &["run", "ends", "stubborn-ask"]).at_a_terminal();
    seat.sees("Your name?");
    seat.sees(CURSOR[0]);
    seat.types("\u{3}");
    assert_eq!(seat.end(), Some(130));
    assert_eq!(env.journal().of_kind("ask")[0].outcome, Value::Null);
    assert_eq!(env.resume().stdin("{\"id\": \"name\", \"answer\": \"Xan\"}\n").go().result(), "Xan");
}

#[test]
fn ctrl_c_while_a_model_answers_ends_the_run_in_either_kind_of_terminal() {
    for kind in KINDS {
        let gate = Gate::default();
        let held = gate.clone();
        let server = ModelServer::start(move |_| Response::text("hello to you").held_by(&held));
        let env = Env::with(&server).flow("ends", FLOW);
        let mut seat = at(&env, kind, TALK).at_a_terminal();
        assert!(server.wait_for_calls(1, Duration::from_secs(30)));
        seat.types("\u{3}");
        seat.sees("resume with: nietz resume r1");
        assert_eq!(seat.end(), Some(130), "{kind}");
        gate.open();
        assert_eq!(env.resume().go().result(), "hello to you");
    }
}

#[test]
fn a_run_that_is_to_outlive_its_terminal_does() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = ModelServer::start(move |_| Response::text("hello to you").held_by(&held));
    let env = Env::with(&server).flow("ends", FLOW);
    // As `nohup` does it.
    let running = env.run(["ends", "talk"]).by("sh", ["-c", "trap '' HUP; exec \"$@\"", "sh"]).spawn();
    assert!(server.wait_for_calls(1, Duration::from_secs(30)));
    running.hang_up();
    gate.open();
    assert_eq!(running.end().result(), "hello to you");
}

#[test]
fn what_nobody_reads_is_written_to_nobody_and_done_all_the_same() {
    let server = ModelServer::start(|_| Response::text("hello to you"));
    let env = Env::with(&server).flow("ends", FLOW);
    assert_eq!(env.nietz(TALK.iter().copied()).unheard(), Some(0));
    assert_eq!(end(&env).0, "done");
    // A question that nobody can see is answered by nobody.
    assert_eq!(env.nietz(ASK.iter().copied()).var("NIETZ_RUN", "r2").unheard(), Some(7));
    assert_eq!(env.run(["ends", "ask"]).var("NIETZ_RUN", "r3").unheard(), Some(7));
    // Neither is a failure told to anybody.
    assert_eq!(env.nietz(["resume", "no-such-run"]).unheard(), Some(2));
    assert_eq!(env.nietz(["no-such-verb"]).unheard(), Some(2));
    assert_eq!(env.nietz(["runs"]).unheard(), Some(0));
}

#[test]
fn resume_without_a_name_takes_the_run_that_can_go_on() {
    let env = Env::new().flow("ends", FLOW);
    let named = |name: &'static str, how: &'static str| env.run(["ends", how]).var("NIETZ_RUN", name).go();
    named("a", "ask").exits(7);
    named("b", "fine").exits(0);
    // What was called wrongly would be again.
    named("c", "usage").exits(2);
    let resumed = env.nietz(["resume", "--json"]).stdin("Xanthippe\n").go();
    assert_eq!((resumed.result(), &resumed.ending()["run"]), ("Xanthippe".into(), &"a".into()));
    let nothing = env.nietz(["resume"]).go().exits(2);
    assert!(nothing.stderr.contains("error[run-not-found]"), "{}", nothing.stderr);
    // One that was killed has no end at all; one that failed can be mended.
    named("d", "error").exits(1);
    let killed = env.run(["ends", "ask"]).var("NIETZ_RUN", "e").var("NIETZ_FAULT", "kill@2").go();
    assert_eq!(killed.signal, Some(9));
    let resumed = env.nietz(["resume", "--json"]).stdin("Diotima\n").go();
    assert_eq!((resumed.result(), &resumed.ending()["run"]), ("Diotima".into(), &"e".into()));
    assert_eq!(env.nietz(["resume", "--json"]).go().exits(1).ending()["run"], "d");
}

#[test]
fn resume_without_a_name_passes_over_a_run_that_another_process_is_at() {
    let env = Env::new().flow("ends", FLOW);
    env.run(["ends", "ask"]).var("NIETZ_RUN", "a").go().exits(7);
    let mut running = env.run(["ends", "ask"]).var("NIETZ_RUN", "b").spawn();
    running.wait_for("asked");
    let resumed = env.nietz(["resume", "--json"]).stdin("Xanthippe\n").go();
    assert_eq!(resumed.result(), "Xanthippe");
    let busy = env.nietz(["resume", "--json"]).go().exits(1);
    assert!(busy.stderr.contains("error[run-busy]"), "{}", busy.stderr);
    running.say("Diotima\n");
    assert_eq!(running.end().result(), "Diotima");
}
