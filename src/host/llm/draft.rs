//! A reply that is still being put together, and what both wires have in common in doing so.

use serde_json::Value;

use super::fault::{Fault, Subject};
use super::{schema, state};
use crate::model::chat::{ChatReply, ChatRequest, Finish, ToolCall, Usage};

/// How far a reply is after one more event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    More,
    /// All of the text is there; only the count of tokens may still come.
    Finished,
    /// Nothing more will come.
    Ended,
}

/// Puts a reply together from the events of one wire.
pub(super) trait Assemble {
    /// Takes in the data of one event; new text is given on at once, and an empty text for what goes on otherwise.
    fn event(&mut self, data: &str, on_text: &mut dyn FnMut(&str)) -> Result<Step, Fault>;

    /// Takes in a reply that came in one piece, from a server that does not stream.
    fn whole(&mut self, body: &str, on_text: &mut dyn FnMut(&str)) -> Result<(), Fault>;

    /// Returns the reply, or the fault that it is none: an end before the end.
    fn reply(self: Box<Self>) -> Result<ChatReply, Fault>;
}

/// The parts that have come.
pub(super) struct Draft<'a> {
    pub(super) subject: Subject<'a>,
    wants_json: bool,
    has_tools: bool,
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    /// What the model thought, in the words of its wire.
    pub(super) state: Option<Value>,
    pub(super) usage: Usage,
    pub(super) model: String,
    pub(super) finish: Option<Finish>,
    pub(super) ended: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn new(subject: Subject<'a>, request: &ChatRequest) -> Draft<'a> {
        Draft {
            subject,
            wants_json: request.schema.is_some(),
            has_tools: !request.tools.is_empty(),
            text: String::new(),
            calls: Vec::new(),
            state: None,
            usage: Usage::default(),
            model: String::new(),
            finish: None,
            ended: false,
        }
    }

    /// Adds text, and gives it on.
    pub(super) fn add(&mut self, text: &str, on_text: &mut dyn FnMut(&str)) {
        if !text.is_empty() {
            self.text.push_str(text);
            on_text(text);
        }
    }

    /// Parses one piece of JSON of this wire.
    pub(super) fn parse<'j, T: serde::Deserialize<'j>>(&self, data: &'j str) -> Result<T, Fault> {
        // The parser's words may quote the data; its place in it is enough.
        serde_json::from_str(data).map_err(|error| {
            let kind = if error.is_data() { "has not the form it should have" } else { "is not JSON" };
            self.subject.broken(&format!("{kind} (column {})", error.column()))
        })
    }

    pub(super) fn step(&self) -> Step {
        match (self.ended, self.finish) {
            (true, _) => Step::Ended,
            (false, Some(_)) => Step::Finished,
            (false, None) => Step::More,
        }
    }

    pub(super) fn into_reply(mut self) -> Result<ChatReply, Fault> {
        let finish = match self.finish {
            // Some servers say "stop" although they ask for tools.
            Some(Finish::Stop) if !self.calls.is_empty() => Finish::ToolCalls,
            Some(finish) => finish,
            None if !self.ended => return Err(self.subject.broken("ended early")),
            None if !self.calls.is_empty() => Finish::ToolCalls,
            None if !self.text.is_empty() => Finish::Stop,
            None => return Err(self.subject.broken("is empty")),
        };
        for (index, call) in self.calls.iter_mut().enumerate() {
            if call.name.is_empty() {
                return Err(self.subject.broken("asks for a tool without naming it"));
            }
            if call.id.is_empty() {
                call.id = format!("call_{index}");
            }
            if call.arguments.is_empty() {
                call.arguments.push_str("{}");
            }
        }
        if self.wants_json {
            let json = schema::unfenced(&self.text);
            if json.len() != self.text.len() {
                self.text = json.to_owned();
            }
        }
        if self.model.is_empty() {
            self.model = self.subject.model.to_owned();
        }
        // No model wants it back where there are no tools to go on with.
        let kept = self.state.filter(|_| self.has_tools).map(|what| state::keep(self.subject, &what));
        Ok(ChatReply {
            text: self.text,
            tool_calls: self.calls,
            state: kept,
            usage: self.usage,
            model: self.model,
            finish,
            cost: None,
            refused: Vec::new(),
            lost: None,
        })
    }
}
