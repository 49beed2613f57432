//! A reply that is still being put together, and what both wires have in common in doing so.

use serde_json::Value;

use super::attempt_error::{AttemptError, CallContext};
use super::{schema, state};
use crate::model::chat::{ChatReply, ChatRequest, FinishReason, ToolCall, Usage};

/// How far a reply is after one more event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyStage {
    Streaming,
    /// All of the text is there; only the count of tokens may still come.
    TextComplete,
    /// Nothing more will come.
    Ended,
}

/// Puts a reply together from the events of one wire.
pub(super) trait Assemble {
    /// Takes in the data of one event; new text is given on at once, and an empty text for what goes on otherwise.
    fn push_event(&mut self, data: &str, on_text: &mut dyn FnMut(&str)) -> Result<ReplyStage, AttemptError>;

    /// Takes in a reply that came in one piece, from a server that does not stream.
    fn push_body(&mut self, body: &str, on_text: &mut dyn FnMut(&str)) -> Result<(), AttemptError>;

    /// Returns the reply, or the fault that it is none: an end before the end.
    fn into_reply(self: Box<Self>) -> Result<ChatReply, AttemptError>;
}

/// The parts that have come.
pub(super) struct PartialReply<'a> {
    pub(super) context: CallContext<'a>,
    wants_json: bool,
    has_tools: bool,
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    /// What the model thought, in the words of its wire.
    pub(super) state: Option<Value>,
    pub(super) usage: Usage,
    pub(super) model: String,
    pub(super) finish: Option<FinishReason>,
    pub(super) ended: bool,
}

impl<'a> PartialReply<'a> {
    pub(super) fn new(context: CallContext<'a>, request: &ChatRequest) -> PartialReply<'a> {
        PartialReply {
            context,
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
    pub(super) fn parse<'j, T: serde::Deserialize<'j>>(&self, data: &'j str) -> Result<T, AttemptError> {
        // The parser's words may quote the data; its place in it is enough.
        serde_json::from_str(data).map_err(|error| {
            let kind = if error.is_data() { "has not the form it should have" } else { "is not JSON" };
            self.context.broken_reply(&format!("{kind} (column {})", error.column()))
        })
    }

    pub(super) fn stage(&self) -> ReplyStage {
        match (self.ended, self.finish) {
            (true, _) => ReplyStage::Ended,
            (false, Some(_)) => ReplyStage::TextComplete,
            (false, None) => ReplyStage::Streaming,
        }
    }

    pub(super) fn into_reply(mut self) -> Result<ChatReply, AttemptError> {
        let finish = match self.finish {
            // Some servers say "stop" although they ask for tools.
            Some(FinishReason::Stop) if !self.calls.is_empty() => FinishReason::ToolCalls,
            Some(finish) => finish,
            None if !self.ended => return Err(self.context.broken_reply("ended early")),
            None if !self.calls.is_empty() => FinishReason::ToolCalls,
            None if !self.text.is_empty() => FinishReason::Stop,
            None => return Err(self.context.broken_reply("is empty")),
        };
        for (index, call) in self.calls.iter_mut().enumerate() {
            if call.name.is_empty() {
                return Err(self.context.broken_reply("asks for a tool without naming it"));
            }
            if call.id.is_empty() {
                call.id = format!("call_{index}");
            }
            if call.arguments.is_empty() {
                call.arguments.push_str("{}");
            }
        }
        if self.wants_json {
            let json = schema::strip_fence(&self.text);
            if json.len() != self.text.len() {
                self.text = json.to_owned();
            }
        }
        if self.model.is_empty() {
            self.model = self.context.model.to_owned();
        }
        // No model wants it back where there are no tools to go on with.
        let kept = self.state.filter(|_| self.has_tools).map(|what| state::keep(self.context, &what));
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
