//! One event of each kind, for the tests of every front end. A new event that has no sample fails here.

use serde_json::json;

use crate::error::{Code, Failure};
use crate::model::budget::Spent;
use crate::model::chat::Usage;
use crate::model::event::{EndStatus, Event};
use crate::model::question::Question;

pub(super) fn question(json: serde_json::Value) -> Question {
    serde_json::from_value(json).expect("the test's question is well formed")
}

pub(super) fn shape() -> Question {
    question(json!({"id": "shape", "type": "choose", "prompt": "Which shape?", "options": [
        {"value": "round", "label": "Round", "hint": "no corners"},
        {"value": "square", "label": "Square"},
    ]}))
}

pub(super) fn topic() -> Question {
    question(json!({"id": "topic", "type": "ask", "prompt": "What about?", "complete": ["/done", "/help"]}))
}

pub(super) fn save() -> Question {
    question(json!({"id": "save", "type": "confirm", "prompt": "Save it?", "default": false}))
}

pub(super) fn said(from: Option<&str>, markdown: &str) -> Event {
    Event::Said { markdown: markdown.to_owned(), from: from.map(str::to_owned) }
}

pub(super) fn started(label: &str, show: bool) -> Event {
    Event::CallStarted { call: label.to_owned(), model: "test/model".to_owned(), label: label.to_owned(), show }
}

pub(super) fn delta(label: &str, text: &str) -> Event {
    Event::CallDelta { call: label.to_owned(), text: text.to_owned() }
}

pub(super) fn retried(label: &str) -> Event {
    Event::CallRetried { call: label.to_owned(), attempt: 2, reason: "503".to_owned(), wait_ms: 500 }
}

pub(super) fn ended(label: &str, failure: Option<Failure>) -> Event {
    Event::CallEnded { call: label.to_owned(), usage: Usage { input: 10, output: 5, cached: 2 }, failure }
}

pub(super) fn status(text: &str) -> Event {
    Event::Status { text: text.to_owned() }
}

pub(super) fn progress(label: &str, done: u64, total: u64) -> Event {
    Event::Progress { label: label.to_owned(), done, total }
}

pub(super) fn spent(model: &str, label: &str, cost: Option<f64>) -> Spent {
    let usage = Usage { input: 10, output: 5, cached: 0 };
    Spent { model: model.to_owned(), label: label.to_owned(), calls: 1, usage, cost }
}

pub(super) fn finished(status: EndStatus, failure: Option<Failure>) -> Event {
    let usage = Usage { input: 10, output: 5, cached: 0 };
    Event::RunEnded {
        status,
        result: Some(json!({"ok": true})),
        failure,
        usage,
        calls: 1,
        spent: vec![spent("test/model", "Hypatia", Some(0.0123))],
    }
}

/// Returns samples of every kind, the kinds in the order of the enumeration, the end last.
pub(super) fn all() -> Vec<Event> {
    let failure = || Failure::new(Code::ModelOverloaded, "too many at once").hint("wait").because("429");
    vec![
        Event::RunStarted { flow: "demo".to_owned(), resumed: true, journal: "/tmp/j".to_owned() },
        Event::Replayed { effects: 3 },
        said(None, "hello"),
        said(Some("Hypatia"), "*hello*"),
        started("architect", true),
        delta("architect", "a\u{1b}[2J"),
        retried("architect"),
        ended("architect", None),
        ended("architect", Some(failure())),
        status(""),
        progress("rounds", 1, 3),
        Event::Asked { question: shape() },
        Event::Asked { question: topic() },
        Event::Asked { question: save() },
        Event::Answered { id: "shape".to_owned(), answer: json!("round") },
        Event::Answered { id: "save".to_owned(), answer: json!(true) },
        Event::Notice { text: "by the way".to_owned() },
        finished(EndStatus::Waiting, Some(failure())),
    ]
}

#[test]
fn there_is_a_sample_of_every_event() {
    let place = |event: &Event| match event {
        Event::RunStarted { .. } => 0,
        Event::Replayed { .. } => 1,
        Event::Said { .. } => 2,
        Event::CallStarted { .. } => 3,
        Event::CallDelta { .. } => 4,
        Event::CallRetried { .. } => 5,
        Event::CallEnded { .. } => 6,
        Event::Status { .. } => 7,
        Event::Progress { .. } => 8,
        Event::Asked { .. } => 9,
        Event::Answered { .. } => 10,
        Event::Notice { .. } => 11,
        Event::RunEnded { .. } => 12,
    };
    let mut places: Vec<usize> = all().iter().map(place).collect();
    places.dedup();
    assert_eq!(places, (0..13).collect::<Vec<_>>());
}
