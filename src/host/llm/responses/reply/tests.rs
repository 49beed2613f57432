//! Replies of the Responses API, streamed and whole, and what goes back of them.

use serde_json::json;

use super::*;
use crate::host::llm::families::ModelProfile;
use crate::host::llm::{ClientSettings, ModelsConfig, responses};
use crate::model::chat::{Message, Role, Tool};

fn request() -> ChatRequest {
    let mut request = crate::host::llm::tests::request("openai/m", "look");
    request.tools =
        vec![Tool { name: "look".into(), description: "Looks.".into(), parameters: json!({"type": "object"}) }];
    request
}

/// Assembles a reply, and writes the next request with it.
fn assemble(request: &ChatRequest, events: &[Value]) -> (Result<ChatReply, AttemptError>, Value) {
    let settings = ClientSettings::from_environment(&Default::default(), &ModelsConfig::default()).unwrap();
    let profile = ModelProfile::default();
    let context = CallContext {
        provider: &settings.providers[0],
        model: "m",
        key: None,
        profile: &profile,
        marks: Default::default(),
        wants_thoughts: false,
    };
    let mut reply = Box::new(Reply::new(context, request));
    for event in events {
        if let Err(error) = reply.push_event(&event.to_string(), &mut |_| {}) {
            return (Err(error), Value::Null);
        }
    }
    let reply = reply.into_reply();
    let mut next = request.clone();
    if let Ok(reply) = &reply {
        next.messages.push(Message {
            attachments: Vec::new(),
            role: Role::Assistant,
            content: reply.text.clone(),
            state: reply.state.clone(),
            tool_calls: reply.tool_calls.clone(),
            tool_call_id: None,
        });
    }
    let body = serde_json::from_slice(&responses::body(context, &next)).unwrap();
    (reply, body)
}

fn at(place: u64, kind: &str, more: Value) -> Value {
    let mut event = json!({"type": format!("response.{kind}"), "output_index": place, "sequence_number": 1});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "model": "m-1", "error": null, "output": [],
        "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
            "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 14}}})
}

#[test]
fn what_was_thought_said_and_called_goes_back_as_it_came() {
    let thought =
        json!({"id": "rs_1", "type": "reasoning", "content": [], "encrypted_content": "gAAA-long", "summary": []});
    let short = json!({"id": "rs_1", "type": "reasoning", "encrypted_content": "gAAA", "summary": []});
    let call = json!({"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "c1", "name": "look",
        "arguments": "{\"a\":1}"});
    let (reply, next) = assemble(
        &request(),
        &[
            at(0, "output_item.added", json!({"item": short})),
            at(0, "output_item.done", json!({"item": thought})),
            at(
                1,
                "output_item.added",
                json!({"item": {"id": "msg_1", "type": "message", "content": [], "phase": "commentary"}}),
            ),
            at(1, "output_text.delta", json!({"delta": "Let me "})),
            at(1, "output_text.delta", json!({"delta": "look."})),
            at(
                1,
                "output_item.done",
                json!({"item": {"id": "msg_1", "type": "message", "status": "completed",
                "phase": "commentary", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]}}),
            ),
            at(
                2,
                "output_item.added",
                json!({"item": {"id": "fc_1", "type": "function_call", "call_id": "c1",
                "name": "look", "arguments": ""}}),
            ),
            at(2, "function_call_arguments.delta", json!({"delta": "{\"a\""})),
            at(2, "output_item.done", json!({"item": call})),
            json!({"type": "response.something_new"}),
            completed(),
        ],
    );
    let reply = reply.map_err(|error| error.failure).unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.finish, reply.model.as_str()),
        ("Let me look.", FinishReason::ToolCalls, "m-1")
    );
    assert_eq!(reply.usage, Usage { input: 9, output: 5, cached: 4, cache_written: 2, reasoning: 3 });
    let part = json!({"type": "output_text", "text": "Let me look.", "annotations": []});
    assert_eq!(
        next["input"].as_array().unwrap()[1..],
        [
            thought,
            json!({"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "phase": "commentary",
                "content": [part]}),
            call,
        ]
    );
    assert_eq!((&next["store"], &next["include"]), (&json!(false), &json!(["reasoning.encrypted_content"])));
    assert_eq!(
        next["tools"],
        json!([{"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"},
            "strict": false}])
    );
}

#[test]
fn a_structured_reply_is_the_last_message_alone() {
    let mut request = request();
    request.schema = Some(json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}));
    let message = |text: &str| json!({"item": {"type": "message", "content": [{"type": "output_text", "text": text}]}});
    let (reply, next) = assemble(
        &request,
        &[
            at(0, "output_item.done", message("I count.")),
            at(1, "output_item.done", message("{\"a\": 1}")),
            completed(),
        ],
    );
    assert_eq!(reply.map_err(|error| error.failure).unwrap().text, "{\"a\": 1}");
    let said: Vec<&str> =
        next["input"].as_array().unwrap()[1..].iter().filter_map(|item| item["content"][0]["text"].as_str()).collect();
    assert_eq!(said, ["I count.", "{\"a\": 1}"], "{next}");
    assert_eq!((&next["text"]["format"]["type"], next.get("response_format")), (&json!("json_schema"), None));
}

#[test]
fn an_end_that_is_none_is_told() {
    let ended = |response: Value| assemble(&request(), &[json!({"type": "response.done"}), response]).0;
    let text = json!([{"type": "message", "content": [{"type": "output_text", "text": "half"}]}]);
    let cut = ended(json!({"type": "response.incomplete", "response": {"status": "incomplete", "output": text,
        "incomplete_details": {"reason": "max_output_tokens"}}}));
    let cut = cut.map_err(|error| error.failure).unwrap();
    assert_eq!((cut.text.as_str(), cut.finish), ("half", FinishReason::Length));
    for (response, code) in [
        (
            json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded",
            "message": "slow down"}}}),
            crate::error::Code::ModelOverloaded,
        ),
        (
            json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "bio_policy",
                "message": "not this"}}}),
            crate::error::Code::ModelRefused,
        ),
        (
            json!({"type": "error", "code": "server_error", "message": "oh", "param": null}),
            crate::error::Code::ModelBroken,
        ),
        (
            json!({"type": "response.incomplete", "response": {"status": "incomplete",
            "incomplete_details": {"reason": "content_filter"}}}),
            crate::error::Code::ModelRefused,
        ),
        (
            json!({"type": "response.completed", "response": {"status": "completed", "output": [{"type": "message",
            "content": [{"type": "refusal", "refusal": "No."}]}]}}),
            crate::error::Code::ModelRefused,
        ),
    ] {
        assert_eq!(ended(response.clone()).unwrap_err().failure.code, code, "{response}");
    }
    let early = assemble(&request(), &[at(0, "output_text.delta", json!({"delta": "hm"}))]).0;
    assert_eq!(early.unwrap_err().failure.code, crate::error::Code::ModelBroken);
}
