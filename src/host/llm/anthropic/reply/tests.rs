//! Replies of the Messages API that hold more than text.

use serde_json::json;

use super::*;
use crate::host::llm::families::ModelProfile;
use crate::host::llm::{ClientSettings, ModelsConfig};

/// Assembles a reply to a request with a schema from these events, and returns what was shown of the model's thinking.
fn assemble_with_thought(events: &[serde_json::Value]) -> Result<(ChatReply, String), AttemptError> {
    let settings = ClientSettings::from_environment(&Default::default(), &ModelsConfig::default()).unwrap();
    let context = CallContext {
        provider: &settings.providers[1],
        model: "m",
        key: None,
        profile: &ModelProfile::default(),
        marks: Default::default(),
        wants_thoughts: false,
    };
    let mut request = crate::host::llm::tests::request("anthropic/m", "x");
    request.schema = Some(json!({"type": "object"}));
    let mut reply = Box::new(Reply::new(context, &request));
    let mut thought = String::new();
    for event in events {
        reply.push_event(&event.to_string(), &mut |piece| {
            if let ReplyPiece::Thought(text) = piece {
                thought.push_str(text);
            }
        })?;
    }
    reply.into_reply().map(|reply| (reply, thought))
}

fn assemble(events: &[serde_json::Value]) -> Result<ChatReply, AttemptError> {
    assemble_with_thought(events).map(|(reply, _)| reply)
}

fn start(block: serde_json::Value) -> serde_json::Value {
    json!({"type": "content_block_start", "index": 0, "content_block": block})
}

fn delta(delta: serde_json::Value) -> serde_json::Value {
    json!({"type": "content_block_delta", "index": 0, "delta": delta})
}

fn stop(reason: &str) -> serde_json::Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}})
}

#[test]
fn a_structured_reply_is_the_argument_of_its_tool_alone() {
    let reply = assemble(&[
        json!({"type": "message_start", "message": {"model": "m-1", "usage":
            {"input_tokens": 1, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 4}}}),
        start(json!({"type": "thinking", "thinking": ""})),
        delta(json!({"type": "thinking_delta", "thinking": "hm"})),
        json!({"type": "content_block_stop", "index": 0}),
        start(json!({"type": "text", "text": "Here "})),
        delta(json!({"type": "text_delta", "text": "it is"})),
        start(json!({"type": "tool_use", "id": "r", "name": REPLY_TOOL, "input": {}})),
        delta(json!({"type": "input_json_delta", "partial_json": "{\"a\""})),
        delta(json!({"type": "input_json_delta", "partial_json": ": 1}"})),
        json!({"type": "something_new"}),
        stop("tool_use"),
    ])
    .unwrap();
    assert_eq!((reply.text.as_str(), reply.finish, reply.model.as_str()), ("{\"a\": 1}", FinishReason::Stop, "m-1"));
    assert_eq!(reply.usage, Usage { input: 7, output: 5, cached: 4, cache_written: 2, ..Usage::default() });
}

#[test]
fn what_is_thought_is_shown_and_counted_and_its_signature_is_not_shown() {
    let mut end = stop("end_turn");
    end["usage"]["output_tokens_details"] = json!({"thinking_tokens": 3});
    let (reply, thought) = assemble_with_thought(&[
        start(json!({"type": "thinking", "thinking": "let ", "signature": ""})),
        delta(json!({"type": "thinking_delta", "thinking": "me"})),
        delta(json!({"type": "signature_delta", "signature": "sealed"})),
        start(json!({"type": "redacted_thinking", "data": "sealed"})),
        start(json!({"type": "text", "text": "{}"})),
        end,
    ])
    .unwrap();
    assert_eq!((thought.as_str(), reply.text.as_str()), ("let me", "{}"));
    assert_eq!(reply.usage, Usage { output: 5, reasoning: 3, ..Usage::default() });
}

#[test]
fn a_real_tool_beside_the_one_of_the_reply_is_a_tool_call() {
    let reply = assemble(&[
        start(json!({"type": "tool_use", "id": "t", "name": "look", "input": {}})),
        stop("tool_use"),
        json!({"type": "message_stop"}),
    ])
    .unwrap();
    assert_eq!((reply.tool_calls[0].arguments.as_str(), reply.finish), ("{}", FinishReason::ToolCalls));
}

#[test]
fn errors_and_refusals_in_the_stream_have_their_codes() {
    use crate::error::Code;
    for (event, code) in [
        (json!({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}), Code::ModelOverloaded),
        (json!({"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}), Code::ModelOverloaded),
        (json!({"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}), Code::ModelRefused),
        (json!({"type": "error", "error": {"type": "authentication_error", "message": "x"}}), Code::KeyRefused),
        (json!({"type": "error", "error": {"type": "api_error", "message": "x"}}), Code::ModelBroken),
        (json!({"type": "error"}), Code::ModelBroken),
        (stop("refusal"), Code::ModelRefused),
        (json!({"type": "ping"}), Code::ModelBroken),
    ] {
        assert_eq!(assemble(std::slice::from_ref(&event)).unwrap_err().failure.code, code, "{event}");
    }
}
