//! Puts a reply together from the events of a message.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{By, REPLY_TOOL, replies_by};
use crate::host::llm::draft::{Assemble, Draft, Step};
use crate::host::llm::fault::{Fault, Subject};
use crate::model::chat::{ChatReply, ChatRequest, Finish, ToolCall, Usage};

/// A reply of this wire, as far as it has come.
pub(in crate::host::llm) struct Reply<'a> {
    draft: Draft<'a>,
    by_tool: bool,
    /// What the pieces of the block that is open now are added to.
    open: Block,
    /// What was thought, as it goes back.
    thought: Vec<Thought>,
}

/// A block of what was thought: opaque, and to be given back as it is.
#[derive(Serialize, Deserialize)]
pub(super) struct Thought {
    /// How many of the other blocks come before it.
    pub(super) at: usize,
    pub(super) block: Map<String, Value>,
}

/// A block that pieces are added to.
#[derive(Clone, Copy, PartialEq)]
enum Block {
    Text,
    /// The structured reply.
    Reply,
    /// The last of the draft's tool calls.
    Call,
    /// The last of what was thought.
    Thought,
    /// Kinds of blocks that came after this was written.
    Other,
}

/// One event; which fields it has depends on `type`.
#[derive(Deserialize)]
struct Event {
    r#type: String,
    message: Option<Message>,
    content_block: Option<Content>,
    delta: Option<Delta>,
    usage: Option<Counts>,
    error: Option<Value>,
}

/// A message: the frame of a streamed one, or a whole one.
#[derive(Deserialize)]
struct Message {
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
}

impl<'a> Reply<'a> {
    pub(in crate::host::llm) fn new(subject: Subject<'a>, request: &ChatRequest) -> Reply<'a> {
        let by_tool = matches!(replies_by(subject.manner, request), Some(By::Tool));
        Reply { draft: Draft::new(subject, request), by_tool, open: Block::Other, thought: Vec::new() }
    }

    fn begin(&mut self, content: &Content, on_text: &mut dyn FnMut(&str)) {
        self.open = match content.r#type.as_str() {
            "text" => {
                self.draft.add(content.text.as_deref().unwrap_or_default(), on_text);
                Block::Text
            }
            "tool_use" if self.by_tool && content.name.as_deref() == Some(REPLY_TOOL) => {
                // Words before the structured reply are not part of it.
                self.draft.text.clear();
                Block::Reply
            }
            "tool_use" => {
                self.draft.calls.push(ToolCall {
                    id: content.id.clone().unwrap_or_default(),
                    name: content.name.clone().unwrap_or_default(),
                    arguments: String::new(),
                });
                Block::Call
            }
            "thinking" | "redacted_thinking" => {
                let mut block = content.other.clone();
                block.insert("type".to_owned(), Value::String(content.r#type.clone()));
                let at = usize::from(!self.draft.text.is_empty()) + self.draft.calls.len();
                self.thought.push(Thought { at, block });
                Block::Thought
            }
            _ => Block::Other,
        };
    }

    fn add(&mut self, delta: &Delta, on_text: &mut dyn FnMut(&str)) {
        let text = delta.text.as_deref().unwrap_or_default();
        let json = delta.partial_json.as_deref().unwrap_or_default();
        match self.open {
            Block::Text => self.draft.add(text, on_text),
            Block::Reply => self.draft.add(json, on_text),
            Block::Call => {
                if let Some(call) = self.draft.calls.last_mut() {
                    call.arguments.push_str(json);
                }
            }
            Block::Thought => {
                let Some(thought) = self.thought.last_mut() else { return };
                for (name, piece) in [("thinking", &delta.thinking), ("signature", &delta.signature)] {
                    let Some(piece) = piece else { continue };
                    match thought.block.get_mut(name) {
                        Some(Value::String(text)) => text.push_str(piece),
                        _ => drop(thought.block.insert(name.to_owned(), Value::String(piece.clone()))),
                    }
                }
            }
            Block::Other => {}
        }
    }

    /// Takes in counts. Those of the end repeat and complete those of the start.
    fn count(&mut self, counts: &Counts) {
        let usage = &mut self.draft.usage;
        if let Some(fresh) = counts.input_tokens {
            let cached = counts.cache_read_input_tokens.unwrap_or(0);
            let created = counts.cache_creation_input_tokens.unwrap_or(0);
            let input = fresh.saturating_add(cached).saturating_add(created);
            if input > 0 {
                *usage = Usage { input, cached, ..*usage };
            }
        }
        usage.output = counts.output_tokens.unwrap_or(usage.output);
    }

    fn stop(&mut self, reason: &str) -> Result<(), Fault> {
        self.draft.finish = Some(match reason {
            "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            "refusal" => return Err(self.draft.subject.declined("")),
            "tool_use" if !self.draft.calls.is_empty() => Finish::ToolCalls,
            // The tool of the structured reply is no tool to whoever asked.
            _ => Finish::Stop,
        });
        Ok(())
    }

    fn start(&mut self, message: Message) {
        self.draft.model = message.model.unwrap_or_default();
        if let Some(counts) = &message.usage {
            self.count(counts);
        }
    }
}

impl Assemble for Reply<'_> {
    fn event(&mut self, data: &str, on_text: &mut dyn FnMut(&str)) -> Result<Step, Fault> {
        let event: Event = self.draft.parse(data)?;
        if event.r#type != "ping" {
            on_text("");
        }
        match event.r#type.as_str() {
            "message_start" => event.message.into_iter().for_each(|message| self.start(message)),
            "content_block_start" => {
                event.content_block.iter().for_each(|content| self.begin(content, on_text));
            }
            "content_block_delta" => event.delta.iter().for_each(|delta| self.add(delta, on_text)),
            "content_block_stop" => self.open = Block::Other,
            "message_delta" => {
                if let Some(counts) = &event.usage {
                    self.count(counts);
                }
                if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
                    self.stop(&reason)?;
                }
            }
            "message_stop" => self.draft.ended = true,
            "error" => return Err(self.draft.subject.in_stream(&event.error.unwrap_or_default())),
            // Pings, and events that came after this was written: the wire promises to add some.
            _ => {}
        }
        Ok(self.draft.step())
    }

    fn whole(&mut self, body: &str, on_text: &mut dyn FnMut(&str)) -> Result<(), Fault> {
        let mut message: Message = self.draft.parse(body)?;
        if let Some(error) = &message.error {
            return Err(self.draft.subject.in_stream(error));
        }
        for content in std::mem::take(&mut message.content) {
            self.begin(&content, on_text);
            let partial_json = content.input.map(|input| input.to_string());
            self.add(&Delta { partial_json, ..Delta::default() }, on_text);
        }
        let reason = message.stop_reason.take();
        self.start(message);
        reason.map_or(Ok(()), |reason| self.stop(&reason))
    }

    fn reply(mut self: Box<Self>) -> Result<ChatReply, Fault> {
        if !self.thought.is_empty() {
            self.draft.state = serde_json::to_value(&self.thought).ok();
        }
        self.draft.into_reply()
    }
}

#[cfg(test)]
#[path = "../tests/anthropic.rs"]
mod tests;
