//! Assembles a reply from chat completion chunks, and copes with the deviations of many servers.

pub(super) mod details;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::host::llm::attempt_error::{AttemptError, CallContext};
use crate::host::llm::partial_reply::{Assemble, OnPiece, PartialReply, ReplyPiece, ReplyStage};
use crate::host::llm::prices::ToldCost;
use crate::model::chat::{ChatReply, ChatRequest, FinishReason, ToolCall, Usage};

/// A reply, as far as it has arrived.
pub(in crate::host::llm) struct Reply<'a> {
    partial: PartialReply<'a>,
    /// The entry of `partial.calls` that each index of the stream means now.
    places: Vec<(u64, usize)>,
    refusal: String,
    thought: Thought,
}

/// The most tool calls of a reply: a search among them follows each piece, so there must be a limit.
const MOST_CALLS: usize = 1000;

/// The model's thinking, and the signed thinking of tool calls by the position of the call.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Thought {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reasoning_content: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) calls: BTreeMap<usize, Value>,
    /// OpenRouter's form, whatever the model behind it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) details: Vec<Map<String, Value>>,
}

impl Thought {
    fn is_empty(&self) -> bool {
        self.reasoning_content.is_empty() && self.calls.is_empty() && self.details.is_empty()
    }
}

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<ChunkChoice>>,
    usage: Option<Counts>,
    model: Option<String>,
    error: Option<Value>,
    /// Groq's field for the token counts.
    x_groq: Option<Extra>,
}

#[derive(Deserialize)]
struct Extra {
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct ChunkChoice {
    /// A reply in one piece calls it `message`.
    #[serde(alias = "message")]
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Content>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    /// The same by the name that OpenRouter, Groq and Ollama have for it. They do not want it back.
    reasoning: Option<String>,
    reasoning_details: Option<Vec<Map<String, Value>>>,
    tool_calls: Option<Vec<CallPiece>>,
}

/// The text of a reply: as it is, or in parts (Mistral, where the model thinks).
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
struct ContentPart {
    text: Option<String>,
}

impl Content {
    fn into_text(self) -> String {
        match self {
            Content::Text(text) => text,
            Content::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
        }
    }
}

#[derive(Deserialize)]
struct CallPiece {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionPiece>,
    /// Gemini's field for the signature of its thinking.
    extra_content: Option<Value>,
}

#[derive(Deserialize)]
struct FunctionPiece {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    completion_tokens_details: Option<ReplyDetails>,
    /// DeepSeek's field for the cached input tokens.
    prompt_cache_hit_tokens: Option<u64>,
    /// What the provider says that the call cost.
    #[serde(flatten)]
    told: ToldCost,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct ReplyDetails {
    reasoning_tokens: Option<u64>,
}

impl Counts {
    fn usage(&self) -> Usage {
        let details = self.prompt_tokens_details.unwrap_or_default();
        let cached = details.cached_tokens.or(self.prompt_cache_hit_tokens).unwrap_or(0);
        let cache_written = details.cache_write_tokens.unwrap_or(0);
        let told = self.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens).unwrap_or(0);
        // Most servers count thinking in `completion_tokens`. xAI counts it beside them, and Gemini's endpoint in the total
        // alone: it is what the total has more.
        let sum = self.prompt_tokens.saturating_add(self.completion_tokens);
        let beside = self.total_tokens.unwrap_or(0).saturating_sub(sum);
        let (reasoning, apart) = match (told, beside) {
            (0, beside) if beside == cached => (0, 0),
            (0, beside) => (beside, beside),
            (told, beside) if beside >= told => (told, told),
            (told, _) => (told.min(self.completion_tokens), 0),
        };
        let output = self.completion_tokens.saturating_add(apart);
        Usage { input: self.prompt_tokens, output, cached, cache_written, reasoning }
    }
}

impl<'a> Reply<'a> {
    pub(in crate::host::llm) fn new(context: CallContext<'a>, request: &'a ChatRequest) -> Reply<'a> {
        Reply {
            partial: PartialReply::new(context, request),
            places: Vec::new(),
            refusal: String::new(),
            thought: Thought::default(),
        }
    }

    fn take(&mut self, chunk: Chunk, on_piece: OnPiece<'_>) -> Result<(), AttemptError> {
        if let Some(error) = chunk.error {
            return Err(self.partial.context.stream_error(&error));
        }
        if let Some(model) = chunk.model.filter(|_| self.partial.model.is_empty()) {
            self.partial.model = model;
        }
        if let Some(counts) = chunk.usage.or(chunk.x_groq.and_then(|extra| extra.usage)) {
            self.partial.usage = counts.usage();
            self.partial.cost = counts.told.dollars(self.partial.context.provider);
        }
        // The request asks for one reply, so further choices would be an error of the server.
        let Some(choice) = chunk.choices.into_iter().flatten().next() else { return Ok(()) };
        if let Some(mut delta) = choice.delta {
            self.think(&mut delta, on_piece)?;
            self.partial.add(&delta.content.map(Content::into_text).unwrap_or_default(), on_piece);
            self.refusal.push_str(&delta.refusal.unwrap_or_default());
            for piece in delta.tool_calls.unwrap_or_default() {
                self.add_call(piece);
                if self.partial.calls.len() > MOST_CALLS {
                    return Err(self.partial.context.broken_reply(&format!("has more than {MOST_CALLS} tool calls")));
                }
            }
        }
        match choice.finish_reason.as_deref() {
            None | Some("") => {}
            Some("length" | "max_tokens" | "model_length") => self.partial.finish = Some(FinishReason::Length),
            Some("tool_calls" | "function_call") => self.partial.finish = Some(FinishReason::ToolCalls),
            Some("content_filter") => return Err(self.partial.context.refusal_error(&self.refusal)),
            Some("error" | "insufficient_system_resource") => {
                return Err(self.partial.context.broken_reply("was broken off by the provider"));
            }
            // Servers have many words for the normal end: stop, eos, end_turn.
            Some(_) => self.partial.finish = Some(FinishReason::Stop),
        }
        Ok(())
    }

    /// Adds what a piece has of the model's thinking. Some servers send the same in two forms: it is shown once.
    fn think(&mut self, delta: &mut Delta, on_piece: OnPiece<'_>) -> Result<(), AttemptError> {
        let content = delta.reasoning_content.take().unwrap_or_default();
        let shown = if content.is_empty() { delta.reasoning.take().unwrap_or_default() } else { content.clone() };
        let details = delta.reasoning_details.take().unwrap_or_default();
        if !shown.is_empty() {
            on_piece(ReplyPiece::Thought(&shown));
        }
        self.thought.reasoning_content.push_str(&content);
        for piece in details {
            if shown.is_empty()
                && let Some(text) = details::text(&piece)
            {
                on_piece(ReplyPiece::Thought(text));
            }
            details::add(&mut self.thought.details, piece);
            if self.thought.details.len() > MOST_CALLS {
                return Err(self
                    .partial
                    .context
                    .broken_reply(&format!("has more than {MOST_CALLS} pieces of thinking")));
            }
        }
        Ok(())
    }

    /// Adds a piece of a tool call. Some servers send no index, or index 0 for each call: then a new id means a new call.
    fn add_call(&mut self, piece: CallPiece) {
        let id = piece.id.filter(|id| !id.is_empty());
        let calls = &mut self.partial.calls;
        let existing = match piece.index {
            Some(index) => {
                self.places.iter().find(|(stream_index, _)| *stream_index == index).map(|(_, position)| *position)
            }
            None if id.is_none() => calls.len().checked_sub(1),
            None => calls.iter().position(|call| Some(&call.id) == id.as_ref()),
        };
        let existing = existing.filter(|position| match (&id, calls.get(*position)) {
            (Some(id), Some(call)) => call.id.is_empty() || call.id == *id,
            _ => true,
        });
        let position = existing.unwrap_or_else(|| {
            calls.push(ToolCall { id: String::new(), name: String::new(), arguments: String::new() });
            let position = calls.len() - 1;
            if let Some(index) = piece.index {
                self.places.retain(|(stream_index, _)| *stream_index != index);
                self.places.push((index, position));
            }
            position
        });
        if let Some(extra) = piece.extra_content {
            self.thought.calls.insert(position, extra);
        }
        let call = &mut calls[position];
        call.id = id.unwrap_or(std::mem::take(&mut call.id));
        if let Some(function) = piece.function {
            // Only the first name counts: some servers repeat it with each piece.
            if let Some(name) = function.name.filter(|_| call.name.is_empty()) {
                call.name = name;
            }
            call.arguments.push_str(&function.arguments.unwrap_or_default());
        }
    }
}

impl Assemble for Reply<'_> {
    fn push_event(&mut self, data: &str, on_piece: OnPiece<'_>) -> Result<ReplyStage, AttemptError> {
        if data.trim() == "[DONE]" {
            self.partial.ended = true;
            return Ok(ReplyStage::Ended);
        }
        let chunk = self.partial.parse(data)?;
        on_piece(ReplyPiece::Sign);
        self.take(chunk, on_piece)?;
        Ok(self.partial.stage(on_piece))
    }

    fn push_body(&mut self, body: &str, on_piece: OnPiece<'_>) -> Result<(), AttemptError> {
        let chunk = self.partial.parse(body)?;
        self.take(chunk, on_piece)?;
        self.partial.stage(on_piece);
        Ok(())
    }

    fn into_reply(mut self: Box<Self>) -> Result<ChatReply, AttemptError> {
        if !self.refusal.is_empty() && self.partial.text.is_empty() {
            return Err(self.partial.context.refusal_error(&self.refusal));
        }
        if !self.thought.is_empty() {
            self.partial.state = serde_json::to_value(&self.thought).ok();
        }
        self.partial.into_reply()
    }
}

#[cfg(test)]
mod tests;
