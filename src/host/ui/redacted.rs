//! Keeps secrets off the screen: all shown text and all read lines pass through here.
//!
//! A reply arrives in pieces that may cut a key in two. So if the end of a piece may be the start of a key, it
//! is held back until the next piece or the end of the call decides. The terminal itself shows what a person
//! types; lines of a pipe are redacted as they are read, because they are echoed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::path::Path;

use futures_util::future::LocalBoxFuture;
use serde_json::Value;

use super::Sources;
use crate::error::{Failure, Result};
use crate::host::FrontEnd;
use crate::model::event::Event;
use crate::model::question::{AnsweredBy, Question};
use crate::model::redact::Redactor;

/// The longest line, in bytes, that is redacted as one.
const LONGEST: u64 = 1024 * 1024;

/// How a file that comes with nietz is shown, and how a line of a traceback begins.
const BUNDLED: &str = "bundled:";
const CALLED_FROM: &str = "called from ";

/// A front end that removes secrets from events before its inner front end shows them.
pub(super) struct RedactingFrontEnd {
    inner: Box<dyn FrontEnd>,
    sources: Sources,
    redactor: Redactor,
    /// For each call, the end of its text that is not shown yet.
    held: RefCell<HashMap<String, HeldText>>,
    /// For each call, the same of what its model thinks.
    held_thoughts: RefCell<HashMap<String, HeldText>>,
}

#[derive(Default)]
struct HeldText {
    text: String,
    /// A long text is not searched with each piece, but only once it has this length.
    look_at: usize,
}

/// Texts up to this length, in bytes, are searched with each piece.
const SHORT: usize = 4096;

impl RedactingFrontEnd {
    pub(super) fn new(inner: Box<dyn FrontEnd>, sources: Sources, redactor: Redactor) -> RedactingFrontEnd {
        RedactingFrontEnd { inner, sources, redactor, held: RefCell::default(), held_thoughts: RefCell::default() }
    }

    fn text(&self, text: &str) -> String {
        self.redactor.text(text).into_owned()
    }

    fn delta(&self, call: &str, text: &str) {
        // Text ends a thought, which is shown in front of it.
        self.end_thought(call);
        if let Some(text) = self.held.borrow_mut().entry(call.to_owned()).or_default().add(text, &self.redactor) {
            self.inner.show(&Event::CallDelta { call: call.to_owned(), text });
        }
    }

    fn thought(&self, call: &str, text: &str) {
        let mut held = self.held_thoughts.borrow_mut();
        if let Some(text) = held.entry(call.to_owned()).or_default().add(text, &self.redactor) {
            self.inner.show(&Event::CallThought { call: call.to_owned(), text });
        }
    }

    /// Shows the end of what the model of a call has thought.
    fn end_thought(&self, call: &str) {
        let rest = self.held_thoughts.borrow_mut().remove(call);
        if let Some(rest) = rest.filter(|rest| !rest.text.is_empty()) {
            self.inner.show(&Event::CallThought { call: call.to_owned(), text: self.text(&rest.text) });
        }
    }
}

impl Sources {
    /// Returns a failure without the lines of flows that are not the user's own.
    fn without_others(&self, mut failure: Failure) -> Failure {
        let Sources::WithoutPacks(packs) = self else { return failure };
        let is_other = |file: &str| file.starts_with(BUNDLED) || Path::new(file).starts_with(packs);
        let Some(place) = failure.place.as_mut().filter(|place| is_other(&place.file)) else { return failure };
        place.excerpt = None;
        failure.details.retain(|detail| !detail.starts_with(CALLED_FROM));
        failure
    }
}

impl HeldText {
    /// Adds a piece, and returns what can be shown by now.
    fn add(&mut self, text: &str, redactor: &Redactor) -> Option<String> {
        let HeldText { text: rest, look_at } = self;
        // Held text ends with a word that may become a key, or with the blanks before such a word. While the word or the
        // blanks continue, nothing can be shown, so the text is not searched again, however long it gets.
        let blank = |byte: u8| byte == b' ' || byte == b'\t';
        let goes_on = match rest.as_bytes().last() {
            Some(last) if blank(*last) => text.bytes().all(blank) || text.bytes().all(Redactor::is_of_a_word),
            Some(_) => text.bytes().all(Redactor::is_of_a_word),
            None => false,
        };
        rest.push_str(text);
        if goes_on || rest.len() < *look_at {
            return None;
        }
        let settled = redactor.settled_length(rest);
        let shown = (settled > 0).then(|| redactor.text(&rest[..settled]).into_owned());
        if shown.is_some() {
            rest.drain(..settled);
            *look_at = 0;
        }
        if rest.len() > SHORT {
            *look_at = rest.len() + rest.len() / 8;
        }
        shown
    }
}

impl FrontEnd for RedactingFrontEnd {
    fn show(&self, event: &Event) {
        let shown = match event {
            Event::CallThought { call, text } => return self.thought(call, text),
            Event::CallDelta { call, text } => return self.delta(call, text),
            Event::CallRetried { call, attempt, reason, wait_ms } => {
                self.held.borrow_mut().remove(call);
                self.held_thoughts.borrow_mut().remove(call);
                let (call, reason) = (call.clone(), self.text(reason));
                Event::CallRetried { call, attempt: *attempt, reason, wait_ms: *wait_ms }
            }
            Event::CallEnded { call, usage, failure } => {
                self.end_thought(call);
                if let Some(rest) = self.held.borrow_mut().remove(call).filter(|rest| !rest.text.is_empty()) {
                    self.inner.show(&Event::CallDelta { call: call.clone(), text: self.text(&rest.text) });
                }
                let failure = failure.clone().map(|failure| self.redactor.failure(failure));
                Event::CallEnded { call: call.clone(), usage: *usage, failure }
            }
            Event::Said { markdown, from } => {
                Event::Said { markdown: self.text(markdown), from: from.as_deref().map(|from| self.text(from)) }
            }
            Event::CallStarted { call, model, label, show } => {
                let (call, model) = (call.clone(), model.clone());
                Event::CallStarted { call, model, label: self.text(label), show: *show }
            }
            // The gate has already redacted the request, because the request determines its content key.
            Event::CallSent { .. } => return self.inner.show(event),
            Event::CallReceived { call, reply } => {
                let mut reply = reply.clone();
                let redacted = |text: &str| self.redactor.json_text(text).into_owned();
                reply.text = redacted(&reply.text);
                reply.tool_calls.iter_mut().for_each(|call| call.arguments = redacted(&call.arguments));
                Event::CallReceived { call: call.clone(), reply }
            }
            Event::Status { text } => Event::Status { text: self.text(text) },
            Event::Progress { label, done, total } => {
                Event::Progress { label: self.text(label), done: *done, total: *total }
            }
            Event::Answered { id, answer } => {
                let mut answer = answer.clone();
                self.redactor.value(&mut answer);
                Event::Answered { id: id.clone(), answer }
            }
            Event::GivenBack { question, answer } => {
                let mut answer = answer.clone();
                self.redactor.value(&mut answer);
                Event::GivenBack { question: question.clone(), answer }
            }
            Event::Notice { text } => Event::Notice { text: self.text(text) },
            Event::RunEnded { status, result, failure, usage, calls, spent, verdict } => {
                let mut result = result.clone();
                result.iter_mut().for_each(|result| self.redactor.value(result));
                let failure =
                    failure.clone().map(|failure| self.sources.without_others(self.redactor.failure(failure)));
                let mut spent = spent.clone();
                spent.iter_mut().for_each(|spent| spent.label = self.text(&spent.label));
                let mut verdict = verdict.clone();
                verdict.iter_mut().filter_map(|verdict| verdict.why.as_mut()).for_each(|why| *why = self.text(why));
                Event::RunEnded { status: *status, result, failure, usage: *usage, calls: *calls, spent, verdict }
            }
            // These hold no foreign text; the gate has already redacted questions.
            Event::RunStarted { .. } | Event::Replayed { .. } | Event::Asked { .. } => return self.inner.show(event),
        };
        self.inner.show(&shown);
    }

    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, Result<Value>> {
        self.inner.ask(question)
    }

    fn answered_by(&self, effect: &str) -> Option<AnsweredBy> {
        self.inner.answered_by(effect)
    }

    fn attended(&self) -> bool {
        self.inner.attended()
    }
}

/// Reads lines and removes secrets from them.
pub(super) struct RedactedLines<R> {
    source: R,
    redactor: Redactor,
    line: Vec<u8>,
    at: usize,
}

impl<R: BufRead> RedactedLines<R> {
    pub(super) fn new(source: R, redactor: Redactor) -> RedactedLines<R> {
        RedactedLines { source, redactor, line: Vec::new(), at: 0 }
    }
}

impl<R: BufRead> BufRead for RedactedLines<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.line.len() {
            self.line.clear();
            self.at = 0;
            Read::take(&mut self.source, LONGEST).read_until(b'\n', &mut self.line)?;
            let redacted = match std::str::from_utf8(&self.line).map(|line| self.redactor.text(line)) {
                Ok(std::borrow::Cow::Owned(redacted)) => Some(redacted.into_bytes()),
                Ok(std::borrow::Cow::Borrowed(_)) | Err(_) => None,
            };
            if let Some(redacted) = redacted {
                self.line = redacted;
            }
        }
        Ok(&self.line[self.at..])
    }

    fn consume(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.line.len());
    }
}

impl<R: BufRead> Read for RedactedLines<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, Cursor};

    use super::super::json::Json;
    use super::super::out::tests::Captured;
    use super::super::samples::{delta, ended, retried, thought};
    use super::{RedactedLines, RedactingFrontEnd, Sources};
    use crate::host::FrontEnd;
    use crate::model::redact::Redactor;

    fn redactor() -> Redactor {
        Redactor::new([("OPENAI_API_KEY".to_owned(), "planted-secret-1".to_owned())])
    }

    #[test]
    fn a_key_that_comes_in_pieces_is_never_shown() {
        let out = Captured::default();
        let json = Json::new("r1", true, Box::new(Cursor::new("")), out.stream());
        let front = RedactingFrontEnd::new(Box::new(json), Sources::All, redactor());
        for text in ["the key: plan", "ted-sec", "ret", "-1 and so on, plan", "ned"] {
            front.show(&delta("a", text));
        }
        front.show(&ended("a", None));
        front.show(&delta("b", "planted-"));
        front.show(&retried("b"));
        front.show(&delta("b", "secret-1"));
        front.show(&ended("b", None));
        let text = out.text();
        let pieces: Vec<String> = text
            .lines()
            .filter_map(|line| {
                serde_json::from_str::<serde_json::Value>(line).ok()?["text"].as_str().map(str::to_owned)
            })
            .collect();
        assert_eq!(pieces.concat(), "the key: [redacted:OPENAI_API_KEY] and so on, plannedsecret-1");
    }

    #[test]
    fn a_key_in_pieces_of_thought_is_never_shown_and_text_comes_after_it() {
        let out = Captured::default();
        let json = Json::new("r1", true, Box::new(Cursor::new("")), out.stream());
        let front = RedactingFrontEnd::new(Box::new(json), Sources::All, redactor());
        for text in ["is it plan", "ted-sec", "ret", "-1"] {
            front.show(&thought("a", text));
        }
        front.show(&delta("a", "no plan"));
        front.show(&thought("a", "or ted-secret-1"));
        front.show(&ended("a", None));
        let lines =
            out.text().lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()).collect::<Vec<_>>();
        let of = |kind: &str| -> String {
            lines.iter().filter(|line| line["type"] == kind).filter_map(|line| line["text"].as_str()).collect()
        };
        assert_eq!(of("call_thought"), "is it [redacted:OPENAI_API_KEY]or ted-secret-1");
        assert_eq!(of("call_delta"), "no plan");
        let first_text = lines.iter().position(|line| line["type"] == "call_delta").unwrap();
        assert!(lines[..first_text].iter().all(|line| line["type"] == "call_thought"), "{lines:?}");
    }

    #[test]
    fn lines_are_redacted_before_anybody_reads_them() {
        let mut lines = RedactedLines::new(Cursor::new("one planted-secret-1\ntwo\n\nlast"), redactor());
        let mut text = String::new();
        while lines.read_line(&mut text).expect("memory can be read") > 0 {}
        assert_eq!(text, "one [redacted:OPENAI_API_KEY]\ntwo\n\nlast");
    }
}
