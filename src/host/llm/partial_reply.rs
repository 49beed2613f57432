//! A reply that is still being assembled, as all wire formats need it.

use serde_json::Value;

use super::attempt_error::{AttemptError, CallContext};
use super::refusal::RequestPart;
use super::stop_texts::StopTexts;
use super::tagged_thought::TaggedThought;
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
    request: &'a ChatRequest,
    /// The stop texts of a request whose server takes none, so that the reply is cut here.
    stops: StopTexts<'a>,
    is_cut: bool,
    tagged_thought: TaggedThought,
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    /// The model's thinking, in the form of its API.
    pub(super) state: Option<Value>,
    pub(super) usage: Usage,
    /// What the provider says that the call cost, in US dollars.
    pub(super) cost: Option<f64>,
    pub(super) model: String,
    pub(super) finish: Option<FinishReason>,
    pub(super) ended: bool,
}

impl<'a> PartialReply<'a> {
    pub(super) fn new(context: CallContext<'a>, request: &'a ChatRequest) -> PartialReply<'a> {
        let cuts = context.profile.refuses(RequestPart::Stop) && request.schema.is_none();
        PartialReply {
            context,
            request,
            stops: StopTexts::new(if cuts { &request.stop } else { &[] }),
            is_cut: false,
            tagged_thought: TaggedThought::new(context.profile.thinks_in_text.as_deref()),
            text: String::new(),
            calls: Vec::new(),
            state: None,
            usage: Usage::default(),
            cost: None,
            model: String::new(),
            finish: None,
            ended: false,
        }
    }

    /// Adds text, and passes it on as far as no stop text may begin in it.
    pub(super) fn add(&mut self, text: &str, on_piece: OnPiece<'_>) {
        let text = self.tagged_thought.text_of(text);
        self.show(&text, on_piece);
    }

    fn show(&mut self, text: &str, on_piece: OnPiece<'_>) {
        if !text.is_empty() && !self.is_cut {
            self.text.push_str(text);
            self.is_cut = self.stops.cut(&mut self.text);
            self.stops.show(&self.text, self.is_cut, &mut |text| on_piece(ReplyPiece::Text(text)));
        }
    }

    /// Takes back all text: it was no part of the reply.
    pub(super) fn clear_text(&mut self) {
        self.text.clear();
        self.stops.start_again();
    }

    /// Parses one piece of JSON from the server.
    pub(super) fn parse<'j, T: serde::Deserialize<'j>>(&self, data: &'j str) -> Result<T, AttemptError> {
        // The parser's message may quote the data, so only the position is shown.
        serde_json::from_str(data).map_err(|error| {
            let kind = if error.is_data() { "has not the form it should have" } else { "is not JSON" };
            self.context.broken_reply(&format!("{kind} (column {})", error.column()))
        })
    }

    /// Returns how complete the reply is, and passes on what was held back once its text is complete.
    pub(super) fn stage(&mut self, on_piece: OnPiece<'_>) -> ReplyStage {
        if self.ended || self.finish.is_some() {
            let rest = self.tagged_thought.rest();
            self.show(&rest, on_piece);
            self.stops.show(&self.text, true, &mut |text| on_piece(ReplyPiece::Text(text)));
        }
        match (self.ended, self.finish) {
            (true, _) => ReplyStage::Ended,
            (false, Some(_)) => ReplyStage::TextComplete,
            (false, None) => ReplyStage::Streaming,
        }
    }

    pub(super) fn into_reply(mut self) -> Result<ChatReply, AttemptError> {
        if self.is_cut {
            // The server would have ended it there, before all else that it says.
            self.calls.clear();
            self.finish = self.finish.map(|_| FinishReason::Stop);
        }
        let finish = match self.finish {
            // Some servers say "stop" although they ask for tools.
            Some(FinishReason::Stop) if !self.calls.is_empty() => FinishReason::ToolCalls,
            Some(finish) => finish,
            None if !self.ended => return Err(self.context.broken_reply("ended early")),
            None if !self.calls.is_empty() => FinishReason::ToolCalls,
            None if !self.text.is_empty() || self.is_cut => FinishReason::Stop,
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
        if self.request.schema.is_some() {
            let json = schema::json_of(self.context, self.request, &self.text);
            if *json != self.text {
                self.text = json.into_owned();
            }
        }
        if self.model.is_empty() {
            self.model = self.context.model.to_owned();
        }
        // Without tools the conversation does not continue, so no model wants its thinking back.
        let state = self.state.filter(|_| !self.request.tools.is_empty()).map(|what| state::keep(self.context, &what));
        Ok(ChatReply {
            text: self.text,
            tool_calls: self.calls,
            state,
            usage: self.usage,
            model: self.model,
            finish,
            cost: self.cost,
            saved: 0.0,
            refused: Vec::new(),
            retries: Vec::new(),
            lost: None,
        })
    }
}
