//! Tests both wire formats where nothing goes wrong: what is sent, and how replies are read.

use serde_json::json;

use super::model_server::{ModelServer, Response};
use super::{BOTH, KEY, call, client, message, request};
use crate::host::{CallEvent, Models};
use crate::model::chat::{FinishReason, Role, Tool, ToolCall, ToolChoice, Usage};

#[tokio::test]
async fn a_reply_comes_whole_with_its_pieces_and_its_count_of_tokens() {
    let server = ModelServer::start(|request| Response::text(format!("on: {}", request.prompt())).usage(7, 3));
    let client = client(&server);
    for model in BOTH {
        let (reply, texts, retries) = call(&client, &request(model, "être 🦀 ou ne pas être")).await;
        let reply = reply.unwrap();
        assert_eq!(reply.text, "on: être 🦀 ou ne pas être");
        assert_eq!((texts.concat(), texts.len() > 1), (reply.text.clone(), true), "it was streamed");
        assert_eq!(reply.usage, Usage { input: 7, output: 3, ..Usage::default() });
        assert_eq!((reply.model.as_str(), reply.finish, retries.len()), ("small", FinishReason::Stop, 0));
    }
    let [openai, anthropic] = server.requests().try_into().unwrap();
    assert_eq!(
        (openai.path.as_str(), openai.header("authorization")),
        ("/v1/chat/completions", "Bearer planted-key-0123")
    );
    assert_eq!((anthropic.path.as_str(), anthropic.header("x-api-key")), ("/v1/messages", KEY));
    assert_eq!(server.connections(), 1, "the connection is used again");
}

#[tokio::test]
async fn a_tool_call_is_a_sign_of_life_and_a_ping_is_none() {
    let server = ModelServer::start(|request| match request.prompt().as_str() {
        "tool" => Response::text("").tool_call("t", "look", r#"{"a": "some arguments that come in pieces"}"#),
        _ => Response::stream("event: ping\ndata: {\"type\": \"ping\"}\n\n: comment\n\n"),
    });
    let client = client(&server);
    let count = async |model: &str, prompt: &str| {
        let mut alive = 0;
        let request = request(model, prompt);
        let mut report = |event: CallEvent<'_>| alive += usize::from(event == CallEvent::Alive);
        let _ = client.chat(&request, &mut report).await;
        alive
    };
    for model in BOTH {
        assert!(count(model, "tool").await > 2, "{model}");
    }
    assert_eq!(count("anthropic/small", "ping").await, 0);
}

#[tokio::test]
async fn bytes_may_be_cut_anywhere_and_comments_mean_nothing() {
    let server = ModelServer::start(|request| match request.number {
        1 | 2 => Response::text("naïve 🦀 “quoted”\n\ttext").in_pieces(1),
        _ => Response::stream(
            ": keep-alive\r\n\r\nevent: x\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\
             \"finish_reason\":\"stop\"}]}\r\n\r\n: more\r\n\r\n",
        ),
    });
    let client = client(&server);
    for (model, text) in [
        ("openai/m", "naïve 🦀 “quoted”\n\ttext"),
        ("anthropic/m", "naïve 🦀 “quoted”\n\ttext"),
        // Neither a [DONE] nor token counts.
        ("openai/m", "ok"),
    ] {
        assert_eq!(call(&client, &request(model, "x")).await.0.unwrap().text, text);
    }
}

#[tokio::test]
async fn tool_calls_come_in_pieces_and_their_results_go_back() {
    let server = ModelServer::start(|_| {
        Response::text("Let me look.")
            .tool_call("a", "read", r#"{"path": "src/ma\"in.rs"}"#)
            .tool_call("b", "list", "{}")
    });
    let client = client(&server);
    for model in BOTH {
        let mut chat_request = request(model, "what is in it?");
        chat_request.tools = vec![Tool {
            name: "read".into(),
            description: "Reads a file".into(),
            parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        }];
        let reply = call(&client, &chat_request).await.0.unwrap();
        assert_eq!((reply.text.as_str(), reply.finish), ("Let me look.", FinishReason::ToolCalls));
        let read = ToolCall { id: "a".into(), name: "read".into(), arguments: r#"{"path": "src/ma\"in.rs"}"#.into() };
        let list = ToolCall { id: "b".into(), name: "list".into(), arguments: "{}".into() };
        assert_eq!(reply.tool_calls, [read.clone(), list.clone()]);
        let mut assistant_turn = message(Role::Assistant, "");
        assistant_turn.tool_calls = vec![read, list];
        chat_request.messages.push(assistant_turn);
        for (id, content) in [("a", "fn main() {}"), ("b", "")] {
            let mut result = message(Role::Tool, content);
            result.tool_call_id = Some(id.into());
            chat_request.messages.push(result);
        }
        call(&client, &chat_request).await.0.unwrap();
    }
    let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies[0]["tools"][0]["function"]["name"], "read");
    assert_eq!(
        bodies[1]["messages"].as_array().unwrap()[1..],
        [
            json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function",
                 "function": {"name": "read", "arguments": "{\"path\": \"src/ma\\\"in.rs\"}"}},
                {"id": "b", "type": "function", "function": {"name": "list", "arguments": "{}"}}]}),
            json!({"role": "tool", "content": "fn main() {}", "tool_call_id": "a"}),
            json!({"role": "tool", "content": "", "tool_call_id": "b"}),
        ]
    );
    assert_eq!(bodies[2]["tools"][0]["input_schema"]["type"], "object");
    assert_eq!(
        bodies[3]["messages"].as_array().unwrap()[1..],
        [
            json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "src/ma\"in.rs"}},
                {"type": "tool_use", "id": "b", "name": "list", "input": {}}]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "fn main() {}"},
                {"type": "tool_result", "tool_use_id": "b", "content": ""}]}),
        ]
    );
}

#[tokio::test]
async fn a_structured_reply_is_raw_json_on_both_wires() {
    let server = ModelServer::start(|request| {
        assert!(request.wants_json());
        Response::text(if request.number == 1 { "```json\n{\"a\": \"ü\"}\n```" } else { "{\"a\": \"ü\"}" })
    });
    let client = client(&server);
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false});
    for model in BOTH {
        let mut chat_request = request(model, "give a");
        (chat_request.system, chat_request.schema, chat_request.max_tokens) =
            (Some("Be brief.".into()), Some(schema.clone()), Some(50));
        (chat_request.temperature, chat_request.seed) = (Some(1.5), Some(9));
        let reply = call(&client, &chat_request).await.0.unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.finish, reply.tool_calls.len()),
            ("{\"a\": \"ü\"}", FinishReason::Stop, 0)
        );
    }
    let [openai, anthropic] = server.requests().try_into().unwrap();
    assert_eq!(
        openai.body["response_format"],
        json!({"type": "json_schema", "json_schema": {"name": "reply", "strict": true, "schema": schema}})
    );
    assert_eq!(openai.system(), "Be brief.", "the schema is sent once");
    assert_eq!((&openai.body["max_tokens"], &openai.body["temperature"]), (&json!(50), &json!(1.5)));
    assert_eq!(openai.body["seed"], 9);
    assert_eq!(anthropic.body["tools"][0]["input_schema"], schema);
    assert_eq!(anthropic.body["tool_choice"]["type"], "tool");
    assert_eq!((anthropic.system().as_str(), &anthropic.body["temperature"]), ("Be brief.", &json!(1.0)));
    assert!(anthropic.body.get("seed").is_none(), "the wire has none");
}

#[tokio::test]
async fn a_tool_can_be_required_on_both_wires_beside_a_schema_too() {
    let server = ModelServer::start(|_| Response::text("{}"));
    let client = client(&server);
    let parameters = json!({"type": "object"});
    for model in BOTH {
        let mut chat_request = request(model, "look first");
        chat_request.schema = Some(json!({"type": "object"}));
        chat_request.tools =
            vec![Tool { name: "look".into(), description: "Looks.".into(), parameters: parameters.clone() }];
        chat_request.tool_choice = Some(ToolChoice::Required);
        call(&client, &chat_request).await.0.unwrap();
    }
    let [openai, anthropic] = server.requests().try_into().unwrap();
    assert_eq!(openai.body["tool_choice"], "required");
    assert_eq!(anthropic.body["tool_choice"], json!({"type": "any"}));
    assert_eq!(anthropic.body["tools"].as_array().unwrap().len(), 1, "the reply is no tool yet");
}

#[tokio::test]
async fn a_schema_that_is_no_object_is_spelled_out() {
    let server = ModelServer::start(|_| Response::text("```\n[1, 2]\n```"));
    let client = client(&server);
    for model in BOTH {
        let mut chat_request = request(model, "count");
        chat_request.schema = Some(json!({"type": "array", "items": {"type": "integer"}}));
        assert_eq!(call(&client, &chat_request).await.0.unwrap().text, "[1, 2]");
    }
    for request in server.requests() {
        assert!(request.body["response_format"].is_null() && request.body["tools"].is_null());
        assert!(request.system().ends_with(r#"{"type":"array","items":{"type":"integer"}}"#), "{}", request.system());
    }
}

#[tokio::test]
async fn a_reply_that_the_limit_cut_says_so() {
    let server = ModelServer::start(|_| Response::text("{\"a\":").too_long());
    let client = client(&server);
    for model in BOTH {
        let mut chat_request = request(model, "x");
        chat_request.schema = Some(json!({"type": "object"}));
        let reply = call(&client, &chat_request).await.0.unwrap();
        assert_eq!((reply.text.as_str(), reply.finish), ("{\"a\":", FinishReason::Length));
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let server = ModelServer::start(|request| {
        let body = match request.number {
            1 => json!({"model": "m-1", "usage": {"prompt_tokens": 4, "completion_tokens": 2,
                    "prompt_tokens_details": {"cached_tokens": 3}},
                "choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}),
            2 => json!({"type": "message", "model": "m-1", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": "hi"}],
                "usage": {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3}}),
            3 => json!({"error": {"code": 400, "message": "no such parameter"}}),
            _ => json!({"choices": [{"message": {"content": "half"}}]}),
        };
        Response::plain(200, body.to_string()).header("content-type", "application/json")
    });
    let client = client(&server);
    for model in BOTH {
        let reply = call(&client, &request(model, "x")).await.0.unwrap();
        assert_eq!((reply.text.as_str(), reply.model.as_str()), ("hi", "m-1"));
        assert_eq!(reply.usage, Usage { input: 4, output: 2, cached: 3, ..Usage::default() });
    }
    let failure = call(&client, &request("openai/m", "x")).await.0.unwrap_err();
    assert!(failure.message.contains("no such parameter"), "{failure}");
    let failure = call(&client, &request("openai/m", "x")).await.0.unwrap_err();
    assert!(failure.message.contains("ended early"), "{failure}");
}
