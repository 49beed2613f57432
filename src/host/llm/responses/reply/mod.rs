//! Assembles a reply from the stream events of the Responses API.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Item, message};
use crate::host::llm::attempt_error::{AttemptError, CallContext};
use crate::host::llm::partial_reply::{Assemble, OnPiece, PartialReply, ReplyPiece, ReplyStage};
use crate::model::chat::{ChatReply, ChatRequest, FinishReason, ToolCall, Usage};

/// What stands between two messages of one turn.
const BETWEEN: &str = "\n\n";

/// The most items of a reply: each has an entry here.
const MOST_ITEMS: usize = 1000;

/// A reply, as far as it has arrived.
pub(in crate::host::llm) struct Reply<'a> {
    partial: PartialReply<'a>,
    wants_json: bool,
    /// The items that are there whole, by their place in the reply.
    items: BTreeMap<u64, Item>,
    /// The place of each tool call, with its entry of `partial.calls`.
    calls: BTreeMap<u64, usize>,
    /// The message that is being written: its place, and where its text begins.
    open: Option<(u64, usize)>,
    refusal: String,
}

/// One stream event; its `type` decides which fields it has.
#[derive(Deserialize)]
struct StreamEvent {
    r#type: String,
    output_index: Option<u64>,
    delta: Option<Value>,
    item: Option<Map<String, Value>>,
    response: Option<Frame>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// A whole response.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Frame {
    status: Option<String>,
    model: Option<String>,
    output: Vec<Map<String, Value>>,
    usage: Option<Counts>,
    error: Option<Value>,
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl<'a> Reply<'a> {
    pub(in crate::host::llm) fn new(context: CallContext<'a>, request: &'a ChatRequest) -> Reply<'a> {
        Reply {
            partial: PartialReply::new(context, request),
            wants_json: request.schema.is_some(),
            items: BTreeMap::new(),
            calls: BTreeMap::new(),
            open: None,
            refusal: String::new(),
        }
    }

    /// Begins an item: a message or a tool call. Others are taken when they are whole.
    fn begin(&mut self, place: u64, item: &Map<String, Value>, on_piece: OnPiece<'_>) {
        match text_of(item, "type") {
            "message" => {
                if self.wants_json {
                    // The last message is the structured reply; what was said before goes back whole.
                    self.set_earlier_messages_apart();
                    self.partial.clear_text();
                } else if !self.partial.text.is_empty() {
                    self.partial.add(BETWEEN, on_piece);
                }
                self.open = Some((place, self.partial.text.len()));
            }
            "function_call" => {
                self.calls.insert(place, self.partial.calls.len());
                self.partial.calls.push(ToolCall {
                    id: text_of(item, "call_id").to_owned(),
                    name: text_of(item, "name").to_owned(),
                    arguments: String::new(),
                });
            }
            _ => {}
        }
    }

    /// Takes an item that is whole.
    fn end(&mut self, place: u64, mut item: Map<String, Value>, on_piece: OnPiece<'_>) -> Result<(), AttemptError> {
        if self.items.len() >= MOST_ITEMS {
            return Err(self.partial.context.broken_reply(&format!("has more than {MOST_ITEMS} items")));
        }
        let kind = text_of(&item, "type").to_owned();
        let begun = match kind.as_str() {
            "message" => self.open.is_some_and(|(open, _)| open == place),
            "function_call" => self.calls.contains_key(&place),
            _ => true,
        };
        if !begun {
            self.begin(place, &item, on_piece);
        }
        let kept = match kind.as_str() {
            "message" => {
                let (_, from) = self.open.take().unwrap_or_default();
                if self.partial.text.len() == from {
                    // A server that does not stream its texts in pieces.
                    let content = item.get("content").and_then(Value::as_array).into_iter().flatten();
                    let parts: Vec<(&str, &str)> = content
                        .filter_map(|part| Some((part.get("type")?.as_str()?, part)))
                        .map(|(kind, part)| (kind, part.get(if kind == "refusal" { "refusal" } else { "text" })))
                        .filter_map(|(kind, text)| Some((kind, text?.as_str()?)))
                        .collect();
                    for (kind, text) in parts {
                        match kind {
                            "refusal" if self.refusal.is_empty() => self.refusal.push_str(text),
                            "output_text" => self.partial.add(text, on_piece),
                            _ => {}
                        }
                    }
                }
                let to = self.partial.text.len();
                let beside = beside(&mut item, &["id", "status", "phase"]);
                Item::Text { from, to, beside }
            }
            "function_call" => {
                let call = &mut self.partial.calls[self.calls[&place]];
                // What was streamed is the same; the whole counts.
                if let Some(Value::String(arguments)) = item.remove("arguments") {
                    call.arguments = arguments;
                }
                Item::Call { beside: beside(&mut item, &["id", "status"]) }
            }
            _ => Item::Whole(item),
        };
        self.items.insert(place, kept);
        Ok(())
    }

    /// Keeps messages as they came: their texts are no part of the reply's.
    fn set_earlier_messages_apart(&mut self) {
        for item in self.items.values_mut() {
            if let Item::Text { from, to, beside } = item {
                let text = self.partial.text.get(*from..*to).unwrap_or_default();
                *item = Item::Whole(message(std::mem::take(beside), text));
            }
        }
    }

    fn close(&mut self, frame: Frame, on_piece: OnPiece<'_>) -> Result<(), AttemptError> {
        if let Some(counts) = &frame.usage {
            let input = counts.input_tokens_details.as_ref();
            self.partial.usage = Usage {
                input: counts.input_tokens,
                output: counts.output_tokens,
                cached: input.and_then(|details| details.cached_tokens).unwrap_or(0),
                cache_written: input.and_then(|details| details.cache_write_tokens).unwrap_or(0),
                reasoning: counts
                    .output_tokens_details
                    .as_ref()
                    .and_then(|details| details.reasoning_tokens)
                    .unwrap_or(0),
            };
        }
        self.partial.model = frame.model.unwrap_or(std::mem::take(&mut self.partial.model));
        if let Some(error) = frame.error.filter(|error| !error.is_null()) {
            let code = error.get("code").and_then(Value::as_str).unwrap_or_default();
            if code == "invalid_prompt" || code.contains("policy") {
                let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
                return Err(self.partial.context.refusal_error(message));
            }
            return Err(self.partial.context.stream_error(&error));
        }
        // What was not streamed stands here alone.
        for (place, item) in (0..).zip(frame.output) {
            if !self.items.contains_key(&place) {
                self.end(place, item, on_piece)?;
            }
        }
        let reason = frame.incomplete_details.and_then(|details| details.reason).unwrap_or_default();
        self.partial.finish = match (frame.status.as_deref(), reason.as_str()) {
            (_, "content_filter") => return Err(self.partial.context.refusal_error(&self.refusal)),
            (Some("incomplete"), _) => Some(FinishReason::Length),
            (Some("completed") | None, _) => Some(FinishReason::Stop),
            (Some(_), _) => return Err(self.partial.context.broken_reply("was broken off by the provider")),
        };
        self.partial.ended = true;
        Ok(())
    }
}

/// Returns a text of an item; empty if it has none.
fn text_of<'i>(item: &'i Map<String, Value>, name: &str) -> &'i str {
    item.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Takes these members out of an item, where it has them.
fn beside(item: &mut Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let taken = names.iter().filter_map(|name| item.remove_entry(*name));
    taken.filter(|(_, value)| !value.is_null()).collect()
}

impl Assemble for Reply<'_> {
    fn push_event(&mut self, data: &str, on_piece: OnPiece<'_>) -> Result<ReplyStage, AttemptError> {
        if data.trim() == "[DONE]" {
            // No event of this API, but some servers that imitate it end with it.
            self.partial.ended = true;
            return Ok(self.partial.stage(on_piece));
        }
        let event: StreamEvent = self.partial.parse(data)?;
        on_piece(ReplyPiece::Sign);
        let place = event.output_index.unwrap_or_default();
        let delta = event.delta.as_ref().and_then(Value::as_str).unwrap_or_default();
        match event.r#type.as_str() {
            "response.created" | "response.in_progress" => {
                self.partial.model = event.response.and_then(|frame| frame.model).unwrap_or_default();
            }
            "response.output_item.added" => event.item.iter().for_each(|item| self.begin(place, item, on_piece)),
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.end(place, item, on_piece)?;
                }
            }
            "response.output_text.delta" => self.partial.add(delta, on_piece),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                on_piece(ReplyPiece::Thought(delta));
            }
            // Several summaries are paragraphs.
            "response.reasoning_summary_part.done" => on_piece(ReplyPiece::Thought("\n\n")),
            "response.refusal.delta" => self.refusal.push_str(delta),
            "response.function_call_arguments.delta" => {
                if let Some(call) = self.calls.get(&place).and_then(|at| self.partial.calls.get_mut(*at)) {
                    call.arguments.push_str(delta);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.close(event.response.unwrap_or_default(), on_piece)?;
            }
            "error" => {
                let error = event.other.get("error").cloned().unwrap_or(Value::Object(event.other));
                return Err(self.partial.context.stream_error(&error));
            }
            // The API has many more, and announces that it will add some.
            _ => {}
        }
        Ok(self.partial.stage(on_piece))
    }

    fn push_body(&mut self, body: &str, on_piece: OnPiece<'_>) -> Result<(), AttemptError> {
        let frame: Frame = self.partial.parse(body)?;
        self.close(frame, on_piece)?;
        self.partial.stage(on_piece);
        Ok(())
    }

    fn into_reply(mut self: Box<Self>) -> Result<ChatReply, AttemptError> {
        if !self.refusal.is_empty() && self.partial.text.is_empty() {
            return Err(self.partial.context.refusal_error(&self.refusal));
        }
        let items: Vec<&Item> = self.items.values().collect();
        let is_wanted_back = |item: &&Item| match item {
            Item::Whole(_) => true,
            Item::Text { beside, .. } => beside.contains_key("phase"),
            Item::Call { .. } => false,
        };
        if items.iter().any(is_wanted_back) {
            self.partial.state = serde_json::to_value(&items).ok();
        }
        self.partial.into_reply()
    }
}

#[cfg(test)]
mod tests;
