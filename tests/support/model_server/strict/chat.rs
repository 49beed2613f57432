//! Replies on the wire of chat completions, with what is each provider's own.

use serde_json::{Map, Value, json};

use super::at;
use super::voice::{Call, Calls, Counts, Said, Thought, Voice, pieces, seal, thought};

/// The body of a reply, as a stream or in one piece.
pub(super) fn render(voice: &Voice, body: &Value, said: &Said) -> String {
    if body["stream"] == true { streamed(voice, body, said) } else { whole(voice, body, said).to_string() }
}

fn streamed(voice: &Voice, body: &Value, said: &Said) -> String {
    let beside: Map<String, Value> = serde_json::from_str(voice.beside).expect("it is an object");
    let chunk = |delta: Value, finish: Value| {
        let mut chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_795_500_000,
            "model": body["model"], "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": null}]});
        chunk.as_object_mut().expect("it is one").extend(beside.clone());
        chunk
    };
    let piece = |delta: Value| chunk(delta, Value::Null);
    let mut events = Vec::new();
    if !voice.first.is_empty() {
        events.push(serde_json::from_str(voice.first).expect("it is JSON"));
    }
    events.push(piece(json!({"role": "assistant", "content": ""})));
    if said.thinks {
        events.extend(thoughts(voice, body).into_iter().map(piece));
    }
    for (index, text) in pieces(&text_of(voice, body, said)).into_iter().enumerate() {
        let content = match voice.thought {
            Thought::Parts if said.thinks => json!([{"type": "text", "text": text}]),
            _ => json!(text),
        };
        let mut delta = json!({"content": content});
        // A text is sealed, too; nobody checks that.
        if index == 0 && voice.thought == Thought::AtCall && said.thinks && said.calls.is_empty() {
            delta["extra_content"] = json!({"google": {"thought_signature": seal(body, &Value::Null)}});
        }
        events.push(piece(delta));
    }
    for (index, call) in said.calls.iter().enumerate() {
        events.extend(
            calling(voice, body, said, index, call).into_iter().map(|call| piece(json!({"tool_calls": [call]}))),
        );
    }
    let mut last = chunk(json!({}), finish(said, voice.called).into());
    let usage = (voice.usage)(said.tokens);
    let asked = at(body, "/stream_options/include_usage") == true;
    match voice.counts {
        Counts::WithTheLast => last["usage"] = usage.clone(),
        Counts::XGroq => last["x_groq"] = json!({"id": "req_1", "usage": usage}),
        Counts::WhenAsked | Counts::Always => {}
    }
    events.push(last);
    if voice.counts == Counts::Always || (asked && voice.counts != Counts::WithTheLast) {
        events.push(json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_795_500_000,
            "model": body["model"], "choices": [], "usage": usage}));
    }
    let mut out = String::new();
    for (index, event) in events.iter().enumerate() {
        if index < 2 && !voice.waits.is_empty() {
            out.push_str(&format!(": {}\n\n", voice.waits));
        }
        out.push_str(&format!("data: {event}\n\n"));
    }
    out + "data: [DONE]\n\n"
}

/// The pieces in which a thought is streamed.
fn thoughts(voice: &Voice, body: &Value) -> Vec<Value> {
    let thought = thought(body);
    match voice.thought {
        Thought::Beside(member) => {
            let piece = |piece: String| {
                let mut delta = json!({"content": null});
                delta[member] = json!(piece);
                delta
            };
            pieces(&thought).into_iter().map(piece).collect()
        }
        Thought::Details => {
            let detail = |more: Value| {
                let mut detail = json!({"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0});
                detail.as_object_mut().expect("it is one").extend(more.as_object().cloned().unwrap_or_default());
                detail
            };
            let piece = |piece: String| json!({"content": "", "reasoning": piece, "reasoning_details": [detail(json!({"text": piece}))]});
            let signature = detail(json!({"signature": seal(body, &json!(thought))}));
            let last = json!({"content": "", "reasoning": null, "reasoning_details": [signature]});
            pieces(&thought).into_iter().map(piece).chain([last]).collect()
        }
        Thought::Parts => {
            let part = |piece: String| json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]});
            pieces(&thought).into_iter().map(part).collect()
        }
        Thought::Unseen | Thought::AtCall | Thought::InText | Thought::Block { .. } | Thought::Item => Vec::new(),
    }
}

/// The text, with what is thought where that stands within it.
fn text_of(voice: &Voice, body: &Value, said: &Said) -> String {
    match voice.thought {
        Thought::InText if said.thinks => format!("<reasoning>{}</reasoning>{}", thought(body), said.text),
        _ => said.text.clone(),
    }
}

/// The pieces in which a call is streamed.
fn calling(voice: &Voice, body: &Value, said: &Said, index: usize, call: &Call) -> Vec<Value> {
    let mut whole = call_of(voice, body, said, index, call);
    match voice.calls {
        Calls::WholeWithoutIndex => vec![whole],
        Calls::Whole => {
            whole["index"] = json!(index);
            vec![whole]
        }
        Calls::InPieces => {
            whole["index"] = json!(index);
            whole["function"]["arguments"] = json!("");
            let piece = |piece: String| json!({"index": index, "function": {"arguments": piece}});
            std::iter::once(whole).chain(pieces(&call.arguments).into_iter().map(piece)).collect()
        }
    }
}

fn call_of(voice: &Voice, body: &Value, said: &Said, index: usize, call: &Call) -> Value {
    let function = json!({"name": call.name, "arguments": call.arguments});
    let mut whole = json!({"id": call.id, "type": "function", "function": function});
    if index == 0 && voice.thought == Thought::AtCall && said.thinks {
        whole["extra_content"] =
            json!({"google": {"thought_signature": seal(body, &json!([call.name, call.arguments]))}});
    }
    whole
}

fn finish<'a>(said: &Said, called: &'a str) -> &'a str {
    match (said.too_long, said.calls.is_empty()) {
        (true, _) => "length",
        (false, false) => called,
        (false, true) => "stop",
    }
}

fn whole(voice: &Voice, body: &Value, said: &Said) -> Value {
    let calls = said.calls.iter().enumerate();
    let calls: Vec<Value> = calls.map(|(index, call)| call_of(voice, body, said, index, call)).collect();
    let mut message = json!({"role": "assistant", "content": text_of(voice, body, said)});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    if let (Thought::Beside(member), true) = (voice.thought, said.thinks) {
        message[member] = json!(thought(body));
    }
    let choices = json!([{"index": 0, "message": message, "finish_reason": finish(said, "tool_calls")}]);
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1_795_500_000, "model": body["model"],
        "choices": choices, "usage": (voice.usage)(said.tokens)})
}
