//! Replies in the words of both wires: as streams of events, or in one piece for a caller that does not stream.

use serde_json::{Value, json};

use super::{Request, Wire};

/// The tool by which the client asks for structured replies on Anthropic's wire.
pub(super) const REPLY_TOOL: &str = "nietz_reply";

/// What a model says.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) text: String,
    /// Id, name and arguments of each.
    pub(super) calls: Vec<[String; 3]>,
    pub(super) usage: (u64, u64),
    /// Tokens of the input that were read from a cache and written to it, where there is one.
    pub(super) cache: Option<(u64, u64)>,
    /// How much of the output was thought.
    pub(super) reasoning: u64,
    pub(super) too_long: bool,
    pub(super) without_end: bool,
    /// Kind and message.
    pub(super) error: Option<(String, String)>,
}

impl Reply {
    pub(super) fn new(text: String) -> Reply {
        // About four characters to a token, as everybody's rule of thumb has it.
        let usage = (10, text.len() as u64 / 4 + 1);
        let (calls, cache, error) = (Vec::new(), None, None);
        Reply { text, calls, usage, cache, reasoning: 0, too_long: false, without_end: false, error }
    }
}

/// Returns the type of the body and its pieces.
pub(super) fn render(request: &Request, reply: &Reply) -> (&'static str, Vec<Vec<u8>>) {
    if request.body["stream"] != true {
        return ("application/json", vec![whole(request, reply).to_string().into_bytes()]);
    }
    let events = match request.wire() {
        Wire::OpenAi => openai(request, reply),
        Wire::Anthropic => anthropic(request, reply),
    };
    ("text/event-stream", events.into_iter().map(String::into_bytes).collect())
}

/// Cuts a text into a few pieces, as a model streams it.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(chars.len().div_ceil(4).max(1)).map(|piece| piece.iter().collect()).collect()
}

fn openai(request: &Request, reply: &Reply) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        json!({"id": "c1", "object": "chat.completion.chunk", "model": request.body["model"], "choices": choices})
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    events.extend(pieces(&reply.text).into_iter().map(|piece| chunk(json!({"content": piece}), Value::Null)));
    for (index, [id, name, arguments]) in reply.calls.iter().enumerate() {
        let head = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        events.push(chunk(json!({"tool_calls": [head]}), Value::Null));
        for piece in pieces(arguments) {
            let piece = json!({"index": index, "function": {"arguments": piece}});
            events.push(chunk(json!({"tool_calls": [piece]}), Value::Null));
        }
    }
    if let Some((kind, message)) = &reply.error {
        events.push(json!({"error": {"type": kind, "message": message}}));
    }
    let mut out: Vec<String> = Vec::new();
    if !reply.without_end && reply.error.is_none() {
        events.push(chunk(json!({}), finish_reason(reply).into()));
        if request.body["stream_options"]["include_usage"] == true {
            events.push(json!({"model": request.body["model"], "choices": [], "usage": openai_usage(reply)}));
        }
        out.push("data: [DONE]\n\n".to_owned());
    }
    events.iter().map(|event| format!("data: {event}\n\n")).chain(out).collect()
}

fn finish_reason(reply: &Reply) -> &'static str {
    match (reply.too_long, reply.calls.is_empty()) {
        (true, _) => "length",
        (false, false) => "tool_calls",
        (false, true) => "stop",
    }
}

fn openai_usage(reply: &Reply) -> Value {
    let (input, output) = reply.usage;
    let mut usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
    if let Some((read, written)) = reply.cache {
        usage["prompt_tokens_details"] = json!({"cached_tokens": read, "cache_write_tokens": written});
    }
    if reply.reasoning > 0 {
        usage["completion_tokens_details"] = json!({"reasoning_tokens": reply.reasoning});
    }
    usage
}

fn anthropic_usage(reply: &Reply, output: u64) -> Value {
    let input = reply.usage.0;
    let mut usage = match reply.cache {
        Some((read, written)) => json!({"input_tokens": input - read - written, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written, "output_tokens": output}),
        None => json!({"input_tokens": input, "output_tokens": output}),
    };
    if reply.reasoning > 0 {
        usage["output_tokens_details"] = json!({"thinking_tokens": reply.reasoning});
    }
    usage
}

fn stop_reason(reply: &Reply, blocks: &[Value]) -> &'static str {
    match (reply.too_long, blocks.last().is_some_and(|block| block["type"] == "tool_use")) {
        (true, _) => "max_tokens",
        (false, true) => "tool_use",
        (false, false) => "end_turn",
    }
}

/// Returns the blocks of a message, the structured reply as the call of its tool.
fn blocks(request: &Request, reply: &Reply) -> Vec<Value> {
    let by_tool = request.body["tools"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == REPLY_TOOL));
    let mut blocks = Vec::new();
    if by_tool && reply.calls.is_empty() {
        blocks.push(json!({"type": "tool_use", "id": "r1", "name": REPLY_TOOL, "arguments": reply.text}));
    } else if !reply.text.is_empty() {
        blocks.push(json!({"type": "text", "text": reply.text}));
    }
    for [id, name, arguments] in &reply.calls {
        blocks.push(json!({"type": "tool_use", "id": id, "name": name, "arguments": arguments}));
    }
    blocks
}

fn anthropic(request: &Request, reply: &Reply) -> Vec<String> {
    let usage = anthropic_usage(reply, 1);
    let message = json!({"id": "m1", "type": "message", "role": "assistant", "model": request.body["model"],
        "content": [], "stop_reason": null, "usage": usage});
    let mut events = vec![json!({"type": "message_start", "message": message}), json!({"type": "ping"})];
    let blocks = blocks(request, reply);
    for (index, block) in blocks.iter().enumerate() {
        let text = block["text"].as_str();
        let start = match text {
            Some(_) => json!({"type": "text", "text": ""}),
            None => json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}),
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for piece in pieces(text.or(block["arguments"].as_str()).unwrap_or_default()) {
            let delta = match text {
                Some(_) => json!({"type": "text_delta", "text": piece}),
                None => json!({"type": "input_json_delta", "partial_json": piece}),
            };
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    if let Some((kind, message)) = &reply.error {
        events.push(json!({"type": "error", "error": {"type": kind, "message": message}}));
    } else if !reply.without_end {
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop_reason(reply, &blocks)},
            "usage": anthropic_usage(reply, reply.usage.1)}));
        events.push(json!({"type": "message_stop"}));
    }
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(line).collect()
}

/// The reply in one piece.
fn whole(request: &Request, reply: &Reply) -> Value {
    match request.wire() {
        Wire::OpenAi => {
            let calls: Vec<Value> = reply
                .calls
                .iter()
                .map(|[id, name, arguments]| {
                    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
                })
                .collect();
            let message = json!({"role": "assistant", "content": reply.text, "tool_calls": calls});
            let choices = json!([{"index": 0, "message": message, "finish_reason": finish_reason(reply)}]);
            json!({"model": request.body["model"], "choices": choices, "usage": openai_usage(reply)})
        }
        Wire::Anthropic => {
            let mut blocks = blocks(request, reply);
            for block in blocks.iter_mut().filter_map(Value::as_object_mut) {
                if let Some(Value::String(arguments)) = block.remove("arguments") {
                    block.insert("input".to_owned(), serde_json::from_str(&arguments).unwrap_or(Value::Null));
                }
            }
            let usage = anthropic_usage(reply, reply.usage.1);
            json!({"type": "message", "role": "assistant", "model": request.body["model"],
                "stop_reason": stop_reason(reply, &blocks), "content": blocks, "usage": usage})
        }
    }
}
