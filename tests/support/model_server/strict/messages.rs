//! Replies on Anthropic's wire, and the seals of what Claude thought.

use serde_json::{Value, json};

use super::super::cache::unmarked;
use super::voice::{Said, Thought, Voice, pieces, seal, thought};
use super::{list, word};

/// The body of a reply, as a stream or in one piece.
pub(super) fn render(voice: &Voice, body: &Value, said: &Said) -> String {
    let blocks = blocks(voice, body, said);
    let stop = match (said.too_long, said.calls.is_empty()) {
        (true, _) => "max_tokens",
        (false, false) => "tool_use",
        (false, true) => "end_turn",
    };
    let tokens = said.tokens;
    let usage = json!({"input_tokens": tokens.input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": tokens.output + tokens.thought,
        "output_tokens_details": {"thinking_tokens": tokens.thought}, "service_tier": "standard"});
    let mut message = json!({"id": "msg_01", "type": "message", "role": "assistant", "model": body["model"],
        "content": blocks, "stop_reason": stop, "stop_sequence": null, "usage": usage});
    if body["stream"] != true {
        return message.to_string();
    }
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, block) in blocks.iter().enumerate() {
        let (start, deltas) = streamed(block);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        if index == 0 {
            events.push(json!({"type": "ping"}));
        }
        let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
    events.push(json!({"type": "message_stop"}));
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(line).collect()
}

fn blocks(voice: &Voice, body: &Value, said: &Said) -> Vec<Value> {
    let mut blocks = Vec::new();
    if let (Thought::Block { words, bound }, true) = (voice.thought, said.thinks) {
        let thinking = if words { thought(body) } else { String::new() };
        let signature = signature(body, list(&body["messages"]).len(), &json!(thinking), bound);
        blocks.push(json!({"type": "thinking", "thinking": thinking, "signature": signature}));
    }
    if !said.text.is_empty() {
        blocks.push(json!({"type": "text", "text": said.text}));
    }
    for call in &said.calls {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        blocks.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}));
    }
    blocks
}

/// How a block begins, and the pieces of the rest.
fn streamed(block: &Value) -> (Value, Vec<Value>) {
    let cut = |name: &str| pieces(block[name].as_str().unwrap_or_default());
    match block["type"].as_str() {
        Some("thinking") => {
            let words = cut("thinking").into_iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
            let seal = json!({"type": "signature_delta", "signature": block["signature"]});
            (json!({"type": "thinking", "thinking": "", "signature": ""}), words.chain([seal]).collect())
        }
        Some("tool_use") => {
            let start = json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}});
            let input = block["input"].to_string();
            let piece = |piece| json!({"type": "input_json_delta", "partial_json": piece});
            (start, pieces(&input).into_iter().map(piece).collect())
        }
        _ => {
            let text = cut("text").into_iter().map(|piece| json!({"type": "text_delta", "text": piece}));
            (json!({"type": "text", "text": ""}), text.collect())
        }
    }
}

/// The seal of a thought that comes behind so many messages. A bound one holds for what came before it alone.
pub(super) fn signature(body: &Value, before: usize, thinking: &Value, bound: bool) -> String {
    if !bound {
        return seal(body, thinking);
    }
    let messages: Vec<Value> = list(&body["messages"]).iter().take(before).map(as_blocks).collect();
    let all = json!([body["model"], text(&body["system"]), body["tools"], messages, thinking]);
    // Marks of what is to be cached move from request to request, and change nothing of what is said.
    format!("sealed-{}", word(&unmarked(&all)))
}

/// A part of a request with its contents as blocks: a mark for the cache makes a list of one of a text.
fn as_blocks(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let one = |(name, value): (&String, &Value)| match value {
                Value::String(text) if name == "content" => (name.clone(), json!([{"type": "text", "text": text}])),
                value => (name.clone(), as_blocks(value)),
            };
            Value::Object(members.iter().map(one).collect())
        }
        Value::Array(all) => all.iter().map(as_blocks).collect(),
        value => value.clone(),
    }
}

/// The text of a content, whether it is one or blocks.
pub(super) fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        blocks => list(blocks).iter().filter_map(|block| block["text"].as_str()).collect(),
    }
}
