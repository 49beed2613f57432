//! Sample events of each kind, for the tests of every front end. A test here fails for a new kind without a sample.

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

pub(super) fn next() -> Question {
    question(json!({"id": "next", "type": "ask", "prompt": "What next?", "optional": true, "commands": [
        {"name": "idea", "summary": "adds an idea of yours", "text": "TEXT"},
        {"name": "back", "summary": "goes back", "number": "[N]", "words": ["back"]},
        {"name": "panel", "summary": "asks experts", "choices": ["debate", "exit"], "words": ["panel"]},
    ]}))
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

pub(super) fn thought(label: &str, text: &str) -> Event {
    Event::CallThought { call: label.to_owned(), text: text.to_owned() }
}

pub(super) fn delta(label: &str, text: &str) -> Event {
    Event::CallDelta { call: label.to_owned(), text: text.to_owned() }
}

pub(super) fn retried(label: &str) -> Event {
    Event::CallRetried { call: label.to_owned(), attempt: 2, reason: "503".to_owned(), wait_ms: 500 }
}

pub(super) fn sent(label: &str) -> Event {
    let request = json!({
        "model": "test/model", "system": "You build.", "messages": [{"role": "user", "content": "Tea?\nOr \u{1b}[2J?"}],
        "max_tokens": 9, "effort": "low",
    });
    let request = serde_json::from_value(request).expect("the test's request is well formed");
    Event::CallSent { call: label.to_owned(), request }
}

pub(super) fn received(label: &str) -> Event {
    let call = json!({"id": "c1", "name": "boil", "arguments": "{}"});
    let reply = json!({
        "text": "Tea.", "tool_calls": [call], "usage": {"input": 10, "output": 5}, "model": "model", "finish": "tool_calls",
    });
    let reply = serde_json::from_value(reply).expect("the test's reply is well formed");
    Event::CallReceived { call: label.to_owned(), reply }
}

pub(super) fn ended(label: &str, failure: Option<Failure>) -> Event {
    Event::CallEnded {
        call: label.to_owned(),
        usage: Usage { input: 10, output: 5, cached: 2, cache_written: 3, reasoning: 3 },
        failure,
    }
}

pub(super) fn status(text: &str) -> Event {
    Event::Status { text: text.to_owned() }
}

pub(super) fn progress(label: &str, done: u64, total: u64) -> Event {
    Event::Progress { label: label.to_owned(), done, total }
}

pub(super) fn spent(model: &str, label: &str, cost: Option<f64>) -> Spent {
    let usage = Usage { input: 10, output: 5, ..Usage::default() };
    Spent { model: model.to_owned(), label: label.to_owned(), calls: 1, usage, cost, saved: 0.0 }
}

pub(super) fn finished(status: EndStatus, failure: Option<Failure>) -> Event {
    let usage = Usage { input: 10, output: 5, ..Usage::default() };
    Event::RunEnded {
        status,
        result: Some(json!({"ok": true})),
        failure,
        usage,
        calls: 1,
        spent: vec![spent("test/model", "Hypatia", Some(0.0123))],
        verdict: None,
    }
}

/// Returns samples of every kind, in the order of the enumeration; the end of the run is last.
pub(super) fn all() -> Vec<Event> {
    let failure = || Failure::new(Code::ModelOverloaded, "too many at once").hint("wait").because("429");
    vec![
        Event::RunStarted {
            flow: "demo".to_owned(),
            resumed: true,
            journal: "/tmp/j".to_owned(),
            lang: "en".to_owned(),
        },
        Event::Replayed { effects: 3 },
        said(None, "hello"),
        said(Some("Hypatia"), "*hello*"),
        started("architect", true),
        sent("architect"),
        thought("architect", "hm \u{1b}[2J"),
        delta("architect", "a\u{1b}[2J"),
        retried("architect"),
        received("architect"),
        ended("architect", None),
        ended("architect", Some(failure())),
        status(""),
        progress("rounds", 1, 3),
        Event::Asked { question: shape() },
        Event::Asked { question: topic() },
        Event::Asked { question: save() },
        Event::Asked { question: next() },
        Event::Answered { id: "shape".to_owned(), answer: json!("round") },
        Event::Answered { id: "save".to_owned(), answer: json!(true) },
        Event::GivenBack { question: save(), answer: json!(true) },
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
        Event::CallSent { .. } => 4,
        Event::CallThought { .. } => 5,
        Event::CallDelta { .. } => 6,
        Event::CallRetried { .. } => 7,
        Event::CallReceived { .. } => 8,
        Event::CallEnded { .. } => 9,
        Event::Status { .. } => 10,
        Event::Progress { .. } => 11,
        Event::Asked { .. } => 12,
        Event::Answered { .. } => 13,
        Event::GivenBack { .. } => 14,
        Event::Notice { .. } => 15,
        Event::RunEnded { .. } => 16,
    };
    let mut places: Vec<usize> = all().iter().map(place).collect();
    places.dedup();
    assert_eq!(places, (0..17).collect::<Vec<_>>());
}
