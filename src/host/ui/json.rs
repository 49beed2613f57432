//! The front end for programs: standard output is JSON lines and nothing else.
//!
//! Each line is an event with `v`, `seq`, `type` and `run`; `events.schema.json` beside this file describes all
//! fields. The first line names the run, the last is always `run_ended`. Where no run began, that is the only one, and its
//! `run` is empty.
//!
//! A program answers with lines of its own: `{"id": "topic", "answer": "tea"}`, in any order and even
//! before the question, or plain text, which goes to the question that has been open longest. `effect` in place of `id` answers
//! one question alone, the one that `asked` had with it; `by` says that the person did not give the answer themselves. After an
//! invalid answer, and after `/help`, comes a `notice`, and the question stays open.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;

use super::answer::{self, Said};
use super::help;
use super::lines::Lines;
use super::out::OutputStream;
use crate::error::{Code, Failure, Result};
use crate::host::FrontEnd;
use crate::model::chat::Usage;
use crate::model::event::{EndStatus, Event};
use crate::model::question::{AnsweredBy, Question};
use crate::model::text::{excerpt, json};

/// The published schema of a line.
#[cfg(test)]
const SCHEMA: &str = include_str!("events.schema.json");

/// Whether this process has written an event.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Tells whether this process has written an event: then a run has begun, and its own events say how it ended.
pub(super) fn has_begun() -> bool {
    BEGUN.load(Ordering::Relaxed)
}

/// The version of the lines. A changed or missing field makes a new version, an added field does not.
const VERSION: u32 = 1;

/// JSON lines in, JSON lines out.
pub(crate) struct Json {
    run: String,
    lines: Lines,
    out: OutputStream,
    /// Whether a program may answer: standard input is not nothing.
    is_read: bool,
    seq: Cell<u64>,
    ended: Cell<bool>,
    /// Running calls whose text is not meant for the user: a flow may reject a reply after validating it.
    hidden: RefCell<HashSet<String>>,
    /// Answers whose question is not open yet.
    early: RefCell<HashMap<Addressee, VecDeque<GivenAnswer>>>,
    /// By effect, who gave answers that the person did not give themselves.
    by: RefCell<HashMap<String, AnsweredBy>>,
    /// Notified of a new entry in `early`, which may be for another open question.
    arrived: Notify,
}

#[derive(Serialize)]
struct EventLine<'a> {
    v: u32,
    seq: u64,
    run: &'a str,
    #[serde(flatten)]
    event: &'a Event,
    /// Of a question: what an answer to it alone is addressed by.
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<&'a str>,
}

/// A line in which a program answers one question.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerLine {
    id: Option<String>,
    effect: Option<String>,
    answer: Value,
    by: Option<AnsweredBy>,
}

/// What an answer is addressed to.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Addressee {
    /// Any question with this id.
    Id(String),
    /// The question of this effect.
    Effect(String),
}

struct GivenAnswer {
    answer: Value,
    by: Option<AnsweredBy>,
}

impl Json {
    pub(crate) fn new(run: &str, is_read: bool, input: Box<dyn BufRead + Send>, out: Box<dyn Write + Send>) -> Json {
        Json {
            run: run.to_owned(),
            lines: Lines::new(input),
            out: OutputStream::standard_output(out),
            is_read,
            seq: Cell::new(0),
            ended: Cell::new(false),
            hidden: RefCell::default(),
            early: RefCell::default(),
            by: RefCell::default(),
            arrived: Notify::new(),
        }
    }

    fn notice(&self, text: String) {
        self.show(&Event::Notice { text });
    }

    async fn answer(&self, question: &Question) -> Result<Value> {
        loop {
            let given = self.next(question).await?;
            let why = match answer::check(question, &given.answer) {
                Ok(Said::Answer(value)) => match answer::counts_from(question, &value, given.by) {
                    Ok(()) => {
                        let effect = question.effect.clone().zip(given.by);
                        effect.map(|(effect, by)| self.by.borrow_mut().insert(effect, by));
                        return Ok(value);
                    }
                    Err(why) => why,
                },
                Ok(Said::Help) => {
                    self.notice(help::lines(question, "").join("\n"));
                    continue;
                }
                Err(why) => answer::refusal(question, &why),
            };
            self.notice(format!("the answer to `{}` is not valid: {why}", excerpt(&question.id)));
        }
    }

    /// Takes an answer that came before its question.
    fn early_answer(&self, addressees: &[Addressee]) -> Option<GivenAnswer> {
        let mut early = self.early.borrow_mut();
        addressees.iter().find_map(|to| early.get_mut(to).and_then(VecDeque::pop_front))
    }

    /// Waits for an answer to this question, valid or not.
    async fn next(&self, question: &Question) -> Result<GivenAnswer> {
        let addressees: Vec<Addressee> = (question.effect.clone().map(Addressee::Effect).into_iter())
            .chain([Addressee::Id(question.id.clone())])
            .collect();
        loop {
            if let Some(given) = self.early_answer(&addressees) {
                return Ok(given);
            }
            let line = tokio::select! {
                biased;
                () = self.arrived.notified() => continue,
                line = self.lines.next() => line,
            };
            let Some(line) = line else { return Err(self.lines.end_failure(question, &self.run)) };
            if !line.trim_start().starts_with('{') {
                return Ok(GivenAnswer { answer: Value::from(line), by: None });
            }
            match serde_json::from_str::<AnswerLine>(&line) {
                Ok(AnswerLine { id, effect, answer, by }) => {
                    let Some(to) = effect.map(Addressee::Effect).or(id.map(Addressee::Id)) else {
                        self.notice(format!("a line of the input says neither `id` nor `effect`: {}", excerpt(&line)));
                        continue;
                    };
                    self.early.borrow_mut().entry(to).or_default().push_back(GivenAnswer { answer, by });
                    self.arrived.notify_waiters();
                }
                Err(error) => {
                    let line = excerpt(&line);
                    self.notice(format!("a line of the input is no {{\"id\", \"answer\"}}: {error}: {line}"));
                }
            }
        }
    }
}

impl FrontEnd for Json {
    fn show(&self, event: &Event) {
        // Nothing follows the end of the run: the reader may close its side as soon as it has read the end.
        if self.ended.get() {
            return;
        }
        self.ended.set(matches!(event, Event::RunEnded { .. }));
        BEGUN.store(true, Ordering::Relaxed);
        match event {
            Event::CallStarted { call, show: false, .. } => {
                self.hidden.borrow_mut().insert(call.clone());
            }
            Event::CallEnded { call, .. } => {
                self.hidden.borrow_mut().remove(call);
            }
            Event::CallDelta { call, .. } | Event::CallThought { call, .. } if self.hidden.borrow().contains(call) => {
                return;
            }
            _ => {}
        }
        let effect = if let Event::Asked { question } = event { question.effect.as_deref() } else { None };
        let line = EventLine { v: VERSION, seq: self.seq.replace(self.seq.get() + 1), run: &self.run, event, effect };
        if let Ok(text) = serde_json::to_string(&line) {
            self.out.put(&format!("{}\n", json(&text)));
        }
    }

    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, Result<Value>> {
        self.answer(question).boxed_local()
    }

    fn attended(&self) -> bool {
        self.is_read
    }

    fn answered_by(&self, effect: &str) -> Option<AnsweredBy> {
        self.by.borrow().get(effect).copied()
    }
}

/// Writes the last line if the host ends without one.
impl Drop for Json {
    fn drop(&mut self) {
        if self.seq.get() > 0 && !self.ended.get() {
            let failure = Failure::new(Code::Internal, "the host ended without a word")
                .hint(format!("`nietz resume {}` goes on from the last thing that was recorded", self.run));
            let (usage, status) = (Usage::default(), EndStatus::Failed);
            self.show(&Event::RunEnded {
                status,
                result: None,
                failure: Some(failure),
                usage,
                calls: 0,
                spent: Vec::new(),
                verdict: None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use insta::assert_snapshot;
    use serde_json::{Value, json};

    use super::super::out::tests::Captured;
    use super::super::samples;
    use super::{Json, SCHEMA};
    use crate::error::Code;
    use crate::host::FrontEnd;
    use crate::model::question::Question;

    fn json_end(input: &'static str) -> (Json, Captured) {
        let out = Captured::default();
        (Json::new("r1", true, Box::new(Cursor::new(input)), out.stream()), out)
    }

    #[test]
    fn text_that_is_not_meant_for_the_user_is_not_written() {
        let (front, out) = json_end("");
        for (label, show) in [("a", false), ("b", true)] {
            front.show(&samples::started(label, show));
        }
        front.show(&samples::thought("a", "the secret doubt"));
        front.show(&samples::delta("a", "the secret"));
        front.show(&samples::delta("b", "the news"));
        assert!(out.text().contains("the news") && !out.text().contains("the secret"), "{}", out.text());
    }

    fn ask(id: &str) -> Question {
        serde_json::from_value(json!({"id": id, "type": "confirm", "prompt": "Sure?"})).expect("well formed")
    }

    #[tokio::test]
    async fn every_event_is_a_line_that_is_valid_by_the_published_schema() {
        let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
        let validator = jsonschema::draft202012::new(&schema).expect("the schema is a schema");
        let (front, out) = json_end("");
        let all = samples::all();
        for event in &all {
            front.show(event);
        }
        let text = out.text();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
        assert_eq!(lines.len(), all.len());
        for line in &lines {
            let errors: Vec<String> = validator.iter_errors(line).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{line}: {errors:?}");
        }
        let mut types: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
        types.dedup();
        let known: Vec<&str> = schema["properties"]["type"]["enum"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        assert_eq!(types, known, "the schema and the samples name the same events, in the same order");
        assert!(validator.validate(&json!({"v": 1, "seq": 0, "run": "r", "type": "status"})).is_err());
        assert!(
            validator.validate(&json!({"v": 1, "seq": 0, "run": "r", "type": "status", "text": "", "x": 1})).is_err()
        );
    }

    #[tokio::test]
    async fn answers_are_found_by_id_in_any_order_and_bad_ones_are_told() {
        let (front, out) =
            json_end("{\"id\":\"b\",\"answer\":true}\n{\"id\":\"a\",\"answer\":\"perhaps\"}\n{\"id\":\"a\"\nno\n");
        let (a, b) = (ask("a"), ask("b"));
        let (a, b) = tokio::join!(front.ask(&a), front.ask(&b));
        assert_eq!((a.ok(), b.ok()), (Some(json!(false)), Some(json!(true))));
        let failure = front.ask(&ask("c")).await.expect_err("the input has ended");
        assert_eq!(failure.code, Code::AnswerMissing);
        assert_snapshot!(out.text(), @r#"
        {"v":1,"seq":0,"run":"r1","type":"notice","text":"the answer to `a` is not valid: `perhaps` is neither yes nor no; answer with yes or no"}
        {"v":1,"seq":1,"run":"r1","type":"notice","text":"a line of the input is no {\"id\", \"answer\"}: EOF while parsing an object at line 1 column 9: {\"id\":\"a\""}
        "#);
    }

    #[test]
    fn a_line_holds_nothing_that_a_terminal_obeys() {
        let (front, out) = json_end("");
        front.show(&samples::status("é\u{9b}2J\u{1b}\u{7f}\u{202e}"));
        let text = out.text();
        assert!(text.contains(r"é\u009b2J\u001b\u007f\u202e"), "{text}");
        let line: Value = serde_json::from_str(&text).expect("it is still JSON");
        assert_eq!(line["text"], "é\u{9b}2J\u{1b}\u{7f}\u{202e}");
    }

    #[test]
    fn the_last_line_is_the_end_even_when_the_host_forgets_it() {
        let (front, out) = json_end("");
        front.show(&samples::status("working"));
        drop(front);
        assert_snapshot!(out.text(), @r#"
        {"v":1,"seq":0,"run":"r1","type":"status","text":"working"}
        {"v":1,"seq":1,"run":"r1","type":"run_ended","status":"failed","failure":{"code":"internal","message":"the host ended without a word","hint":"`nietz resume r1` goes on from the last thing that was recorded"},"usage":{"input":0,"output":0},"calls":0,"spent":[]}
        "#);
    }
}
