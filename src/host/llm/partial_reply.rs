//! A reply that is still being assembled, as both wire formats need it.

use serde_json::Value;

use super::attempt_error::{AttemptError, CallContext};
use super::{schema, state};
use crate::model::chat::{ChatReply, ChatRequest, FinishReason, ToolCall, Usage};

/// How complete a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyStage {
    Streaming,
    /// All of the text has arrived; only the token counts may still come.
    TextComplete,
    /// Nothing more will come.
    Ended,
}

/// What arrives of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyPiece<'p> {
    Text(&'p str),
    /// What the model thinks, where the provider shows it.
    Thought(&'p str),
    /// Anything else, as a sign of progress.
    Sign,
}

/// Gets the pieces of a reply at once.
pub(super) type OnPiece<'a> = &'a mut dyn FnMut(ReplyPiece<'_>);

/// Assembles a reply from the events of one wire format.
pub(super) trait Assemble {
    /// Adds the data of one event, and passes on what is in it.
    fn push_event(&mut self, data: &str, on_piece: OnPiece<'_>) -> Result<ReplyStage, AttemptError>;

    /// Adds a reply that came in one piece, from a server that does not stream.
    fn push_body(&mut self, body: &str, on_piece: OnPiece<'_>) -> Result<(), AttemptError>;

    /// Returns the reply, or an error if the reply is incomplete.
    fn into_reply(self: Box<Self>) -> Result<ChatReply, AttemptError>;
}

/// The parts that have arrived.
pub(super) struct PartialReply<'a> {
    pub(super) context: CallContext<'a>,
    wants_json: bool,
    has_tools: bool,
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    /// The model's thinking, in the form of its API.
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

    /// Adds text, and passes it on.
    pub(super) fn add(&mut self, text: &str, on_piece: OnPiece<'_>) {
        if !text.is_empty() {
            self.text.push_str(text);
            on_piece(ReplyPiece::Text(text));
        }
    }

    /// Parses one piece of JSON from the server.
    pub(super) fn parse<'j, T: serde::Deserialize<'j>>(&self, data: &'j str) -> Result<T, AttemptError> {
        // The parser's message may quote the data, so only the position is shown.
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
        // Without tools the conversation does not continue, so no model wants its thinking back.
        let state = self.state.filter(|_| self.has_tools).map(|what| state::keep(self.context, &what));
        Ok(ChatReply {
            text: self.text,
            tool_calls: self.calls,
            state,
            usage: self.usage,
            model: self.model,
            finish,
            cost: None,
            refused: Vec::new(),
            lost: None,
        })
    }
}
