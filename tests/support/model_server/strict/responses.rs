//! Replies on the wire of OpenAI's Responses: items, each with an event of its beginning and of its end.

use serde_json::{Value, json};

use super::voice::{Said, pieces, seal};
use super::{list, word};

/// The body of a reply, as a stream or in one piece.
pub(super) fn render(body: &Value, said: &Said) -> String {
    let items = items(body, said);
    let mut whole = response(body, said, &items);
    if body["stream"] != true {
        return whole.to_string();
    }
    let last = if said.too_long { "response.incomplete" } else { "response.completed" };
    let mut begun = whole.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    begun["incomplete_details"] = Value::Null;
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    for (index, item) in items.iter().enumerate() {
        events.extend(streamed(index, item));
    }
    events.push(json!({"type": last, "response": whole.take()}));
    let line = |(number, mut event): (usize, Value)| {
        event["sequence_number"] = json!(number);
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    events.into_iter().enumerate().map(line).collect()
}

fn response(body: &Value, said: &Said, items: &[Value]) -> Value {
    let (status, details) = match said.too_long {
        true => ("incomplete", json!({"reason": "max_output_tokens"})),
        false => ("completed", Value::Null),
    };
    let tokens = said.tokens;
    let output = tokens.output + tokens.thought;
    json!({"id": "resp_1", "object": "response", "created_at": 1_795_500_000, "status": status, "error": null,
        "incomplete_details": details, "model": body["model"], "output": items, "store": body["store"],
        "reasoning": {"effort": "medium", "summary": null}, "text": body["text"], "tools": body["tools"],
        "usage": {"input_tokens": tokens.input, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": tokens.thought},
            "total_tokens": tokens.input + output}})
}

fn items(body: &Value, said: &Said) -> Vec<Value> {
    let mut items = Vec::new();
    if said.thinks {
        let id = format!("rs_{}", word(&body["input"]));
        let asked = list(&body["include"]).iter().any(|one| one == "reasoning.encrypted_content");
        let sealed = if asked { json!(seal(body, &json!(id))) } else { Value::Null };
        items.push(json!({"id": id, "type": "reasoning", "summary": [], "encrypted_content": sealed}));
    }
    if !said.text.is_empty() {
        let part = json!({"type": "output_text", "text": said.text, "annotations": [], "logprobs": []});
        items.push(json!({"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
            "phase": "final_answer", "content": [part]}));
    }
    for (index, call) in said.calls.iter().enumerate() {
        items.push(json!({"id": format!("fc_{index}"), "type": "function_call", "status": "completed",
            "call_id": call.id, "name": call.name, "arguments": call.arguments}));
    }
    items
}

fn streamed(index: usize, item: &Value) -> Vec<Value> {
    let mut start = item.clone();
    let id = &item["id"];
    let mut events = Vec::new();
    match item["type"].as_str() {
        Some("message") => {
            start["content"] = json!([]);
            start["status"] = json!("in_progress");
            let part = &item["content"][0];
            let within = |kind: &str| json!({"type": kind, "item_id": id, "output_index": index, "content_index": 0});
            let with = |kind: &str, name: &str, value: &Value| {
                let mut event = within(kind);
                event[name] = value.clone();
                event
            };
            let empty = json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
            events.push(with("response.content_part.added", "part", &empty));
            for piece in pieces(part["text"].as_str().unwrap_or_default()) {
                events.push(with("response.output_text.delta", "delta", &json!(piece)));
            }
            events.push(with("response.output_text.done", "text", &part["text"]));
            events.push(with("response.content_part.done", "part", part));
        }
        Some("function_call") => {
            start["arguments"] = json!("");
            start["status"] = json!("in_progress");
            for piece in pieces(item["arguments"].as_str().unwrap_or_default()) {
                events.push(json!({"type": "response.function_call_arguments.delta", "item_id": id,
                    "output_index": index, "delta": piece}));
            }
            events.push(json!({"type": "response.function_call_arguments.done", "item_id": id,
                "output_index": index, "arguments": item["arguments"]}));
        }
        // What begins is not whole yet.
        _ => start["encrypted_content"] = json!("cut-off"),
    }
    let added = json!({"type": "response.output_item.added", "output_index": index, "item": start});
    let done = json!({"type": "response.output_item.done", "output_index": index, "item": item});
    std::iter::once(added).chain(events).chain([done]).collect()
}

/// A call of this turn that came back without what was thought before it.
pub(super) fn lost(body: &Value) -> Option<String> {
    let input = list(&body["input"]);
    let begins = input.iter().rposition(|item| item["role"] == "user")?;
    let mut thought = false;
    for item in input.iter().skip(begins + 1) {
        match item["type"].as_str() {
            Some("reasoning") => thought = true,
            Some("function_call_output") => thought = false,
            Some("function_call") if !thought => {
                return Some(format!("the reasoning item of call {} did not come back", item["call_id"]));
            }
            _ => {}
        }
    }
    None
}
