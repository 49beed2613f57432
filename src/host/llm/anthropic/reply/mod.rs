//! Assembles a reply from the stream events of Anthropic's Messages API.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{REPLY_TOOL, ReplyMethod, reply_method};
use crate::host::llm::attempt_error::{AttemptError, CallContext};
use crate::host::llm::partial_reply::{Assemble, OnPiece, PartialReply, ReplyPiece, ReplyStage};
use crate::model::chat::{ChatReply, ChatRequest, FinishReason, ToolCall, Usage};

/// A reply, as far as it has arrived.
pub(in crate::host::llm) struct Reply<'a> {
    partial: PartialReply<'a>,
    by_tool: bool,
    /// The kind of the open block: it decides where its pieces are appended.
    open: BlockKind,
    /// The thinking blocks, to be sent back with the next request.
    thought: Vec<Thought>,
}

/// A thinking block: opaque, and sent back unchanged.
#[derive(Serialize, Deserialize)]
pub(super) struct Thought {
    /// How many blocks of other kinds come before it.
    pub(super) at: usize,
    pub(super) block: Map<String, Value>,
}

/// The kinds of content blocks.
#[derive(Clone, Copy, PartialEq)]
enum BlockKind {
    Text,
    /// The structured reply.
    Reply,
    /// The last tool call of the partial reply.
    Call,
    /// The last thinking block.
    Thought,
    /// Kinds that this version does not know.
    Other,
}

/// One stream event; its `type` decides which fields it has.
#[derive(Deserialize)]
struct StreamEvent {
    r#type: String,
    message: Option<MessageFrame>,
    content_block: Option<Content>,
    delta: Option<Delta>,
    usage: Option<Counts>,
    error: Option<Value>,
}

/// A whole message, or the head of a streamed one (`message_start`).
#[derive(Deserialize)]
struct MessageFrame {
    model: Option<String>,
    #[serde(default)]
    content: Vec<Content>,
    stop_reason: Option<String>,
    usage: Option<Counts>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Content {
    r#type: String,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Value>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Default, Deserialize)]
struct Delta {
    thinking: Option<String>,
    signature: Option<String>,
    text: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

/// Passes on what the model thinks. Many models leave it out, and send its signature alone.
fn think(text: Option<&str>, on_piece: OnPiece<'_>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        on_piece(ReplyPiece::Thought(text));
    }
}

impl<'a> Reply<'a> {
    pub(in crate::host::llm) fn new(context: CallContext<'a>, request: &'a ChatRequest) -> Reply<'a> {
        let by_tool = matches!(reply_method(context.profile, request), Some(ReplyMethod::Tool));
        Reply { partial: PartialReply::new(context, request), by_tool, open: BlockKind::Other, thought: Vec::new() }
    }

    fn begin(&mut self, content: &Content, on_piece: OnPiece<'_>) {
        self.open = match content.r#type.as_str() {
            "text" => {
                self.partial.add(content.text.as_deref().unwrap_or_default(), on_piece);
                BlockKind::Text
            }
            "tool_use" if self.by_tool && content.name.as_deref() == Some(REPLY_TOOL) => {
                // Text before the structured reply is not part of it.
                self.partial.clear_text();
                BlockKind::Reply
            }
            "tool_use" => {
                self.partial.calls.push(ToolCall {
                    id: content.id.clone().unwrap_or_default(),
                    name: content.name.clone().unwrap_or_default(),
                    arguments: String::new(),
                });
                BlockKind::Call
            }
            "thinking" | "redacted_thinking" => {
                let mut block = content.other.clone();
                block.insert("type".to_owned(), Value::String(content.r#type.clone()));
                think(block.get("thinking").and_then(Value::as_str), on_piece);
                let at = usize::from(!self.partial.text.is_empty()) + self.partial.calls.len();
                self.thought.push(Thought { at, block });
                BlockKind::Thought
            }
            _ => BlockKind::Other,
        };
    }

    fn add(&mut self, delta: &Delta, on_piece: OnPiece<'_>) {
        let text = delta.text.as_deref().unwrap_or_default();
        let json = delta.partial_json.as_deref().unwrap_or_default();
        match self.open {
            BlockKind::Text => self.partial.add(text, on_piece),
            BlockKind::Reply => self.partial.add(json, on_piece),
            BlockKind::Call => {
                if let Some(call) = self.partial.calls.last_mut() {
                    call.arguments.push_str(json);
                }
            }
            BlockKind::Thought => {
                think(delta.thinking.as_deref(), on_piece);
                let Some(thought) = self.thought.last_mut() else { return };
                for (name, piece) in [("thinking", &delta.thinking), ("signature", &delta.signature)] {
                    let Some(piece) = piece else { continue };
                    match thought.block.get_mut(name) {
                        Some(Value::String(text)) => text.push_str(piece),
                        _ => drop(thought.block.insert(name.to_owned(), Value::String(piece.clone()))),
                    }
                }
            }
            BlockKind::Other => {}
        }
    }

    /// Adds token counts. Those at the end of the stream repeat and complete those at its start.
    fn count(&mut self, counts: &Counts) {
        let usage = &mut self.partial.usage;
        if let Some(fresh) = counts.input_tokens {
            let cached = counts.cache_read_input_tokens.unwrap_or(0);
            let created = counts.cache_creation_input_tokens.unwrap_or(0);
            let input = fresh.saturating_add(cached).saturating_add(created);
            if input > 0 {
                *usage = Usage { input, cached, cache_written: created, ..*usage };
            }
        }
        usage.output = counts.output_tokens.unwrap_or(usage.output);
        if let Some(thinking) = counts.output_tokens_details.as_ref().and_then(|details| details.thinking_tokens) {
            usage.reasoning = thinking.min(usage.output);
        }
    }

    fn stop(&mut self, reason: &str) -> Result<(), AttemptError> {
        self.partial.finish = Some(match reason {
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" => return Err(self.partial.context.refusal_error("")),
            "tool_use" if !self.partial.calls.is_empty() => FinishReason::ToolCalls,
            // `REPLY_TOOL` is ours: the caller did not ask for that tool call.
            _ => FinishReason::Stop,
        });
        Ok(())
    }

    fn start(&mut self, message: MessageFrame) {
        self.partial.model = message.model.unwrap_or_default();
        if let Some(counts) = &message.usage {
            self.count(counts);
        }
    }
}

impl Assemble for Reply<'_> {
    fn push_event(&mut self, data: &str, on_piece: OnPiece<'_>) -> Result<ReplyStage, AttemptError> {
        let event: StreamEvent = self.partial.parse(data)?;
        if event.r#type != "ping" {
            on_piece(ReplyPiece::Sign);
        }
        match event.r#type.as_str() {
            "message_start" => event.message.into_iter().for_each(|message| self.start(message)),
            "content_block_start" => {
                event.content_block.iter().for_each(|content| self.begin(content, on_piece));
            }
            "content_block_delta" => event.delta.iter().for_each(|delta| self.add(delta, on_piece)),
            "content_block_stop" => self.open = BlockKind::Other,
            "message_delta" => {
                if let Some(counts) = &event.usage {
                    self.count(counts);
                }
                if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
                    self.stop(&reason)?;
                }
            }
            "message_stop" => self.partial.ended = true,
            "error" => return Err(self.partial.context.stream_error(&event.error.unwrap_or_default())),
            // Pings, and events that this version does not know: the API announces that it will add some.
            _ => {}
        }
        Ok(self.partial.stage(on_piece))
    }

    fn push_body(&mut self, body: &str, on_piece: OnPiece<'_>) -> Result<(), AttemptError> {
        let mut message: MessageFrame = self.partial.parse(body)?;
        if let Some(error) = &message.error {
            return Err(self.partial.context.stream_error(error));
        }
        for content in std::mem::take(&mut message.content) {
            self.begin(&content, on_piece);
            let partial_json = content.input.map(|input| input.to_string());
            self.add(&Delta { partial_json, ..Delta::default() }, on_piece);
        }
        let reason = message.stop_reason.take();
        self.start(message);
        reason.map_or(Ok(()), |reason| self.stop(&reason))?;
        self.partial.stage(on_piece);
        Ok(())
    }

    fn into_reply(mut self: Box<Self>) -> Result<ChatReply, AttemptError> {
        if !self.thought.is_empty() {
            self.partial.state = serde_json::to_value(&self.thought).ok();
        }
        self.partial.into_reply()
    }
}

#[cfg(test)]
mod tests;
