//! Tests which parts of a request are left out for a model, by its built-in profile and by its server's refusals.

use std::sync::Mutex;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::model_server::strict::{Provider, Strict};
use super::model_server::{Gate, ModelServer, Response};
use super::{client, request};
use crate::error::{Code, Result};
use crate::host::llm::Client;
use crate::host::{CallEvent, Models};
use crate::model::chat::{ChatReply, ChatRequest, Tool, ToolChoice};

fn strict(provider: Provider) -> ModelServer {
    ModelServer::start(Strict::new(provider).quick().before(|_| Response::text("{\"a\": \"b\"}")))
}

/// Makes a call, and returns its reply and the notices to the user.
async fn told(client: &Client, request: &ChatRequest) -> (Result<ChatReply>, Vec<String>) {
    let mut notices = Vec::new();
    let mut report = |event: CallEvent<'_>| {
        if let CallEvent::Notice(text) = event {
            notices.push(text.to_owned());
        }
    };
    (client.chat(request, &mut report).await, notices)
}

/// Returns a request with every part that a server may refuse.
fn demanding(model: &str) -> ChatRequest {
    let parameters = json!({"type": "object"});
    ChatRequest {
        temperature: Some(0.2),
        max_tokens: Some(99),
        tools: vec![Tool { name: "look".into(), description: "Looks.".into(), parameters }],
        tool_choice: Some(ToolChoice::Required),
        ..request(model, "x")
    }
}

fn bodies(server: &ModelServer) -> Vec<Value> {
    server.requests().into_iter().map(|request| request.body).collect()
}

#[tokio::test]
async fn what_is_refused_is_left_out_told_once_and_remembered() {
    for (provider, model, parts) in [
        (Provider::OpenAi, "openai/stranger", &["temperature", "max_completion_tokens", "tools while it thinks"][..]),
        (Provider::Anthropic, "anthropic/stranger", &["temperature", "cannot be made to call a tool"]),
    ] {
        let server = strict(provider);
        let client = client(&server);
        let chat_request = demanding(model);
        let (reply, notices) = told(&client, &chat_request).await;
        assert_eq!(reply.unwrap().text, "{\"a\": \"b\"}");
        assert_eq!(notices.len(), parts.len(), "{notices:?}");
        for (notice, part) in notices.iter().zip(parts) {
            assert!(notice.starts_with(model) && notice.contains(part), "{notice}");
        }
        assert_eq!(server.calls(), parts.len() + 1);
        let (reply, notices) = told(&client, &chat_request).await;
        assert!(reply.is_ok() && notices.is_empty(), "{notices:?}");
        assert_eq!(server.calls(), parts.len() + 2, "nothing is refused any more");
    }
}

#[tokio::test]
async fn calls_side_by_side_are_told_about_once() {
    let gate = Gate::default();
    let (server_gate, call_count) = (gate.clone(), Mutex::new(0));
    let strict = Strict::new(Provider::OpenAi).before(|_| Response::text("b"));
    let server = ModelServer::start(move |request| {
        // The first four calls wait for each other, so that all of them are refused.
        let mut seen = call_count.lock().unwrap();
        *seen += 1;
        if *seen == 4 {
            server_gate.open();
        }
        let early = *seen <= 4;
        drop(seen);
        let reply = strict(request);
        if early { reply.held_by(&server_gate) } else { reply }
    });
    let client = client(&server);
    let chat_request = ChatRequest { temperature: Some(0.2), ..request("openai/stranger", "x") };
    let outcomes = join_all((0..4).map(|_| told(&client, &chat_request))).await;
    assert!(outcomes.iter().all(|(reply, _)| reply.is_ok()));
    assert_eq!(outcomes.iter().map(|(_, notices)| notices.len()).sum::<usize>(), 1);
    assert_eq!(server.calls(), 8);
}

#[tokio::test]
async fn nothing_is_refused_of_what_is_known() {
    for (provider, model) in [
        (Provider::OpenAi, "openai/gpt-6.1-terra"),
        (Provider::Anthropic, "anthropic/claude-sonnet-5-5"),
        (Provider::DeepSeek, "deepseek/deepseek-flash"),
    ] {
        let server = strict(provider);
        let variables = super::variables(&server).into_iter().chain([
            ("DEEPSEEK_API_KEY".to_owned(), super::KEY.to_owned()),
            ("DEEPSEEK_BASE_URL".to_owned(), server.url()),
        ]);
        let settings =
            crate::host::llm::ClientSettings::from_environment(&variables.collect(), &super::quick()).unwrap();
        let (reply, notices) = told(&Client::new(settings), &demanding(model)).await;
        assert!(reply.is_ok() && notices.is_empty() && server.calls() == 1, "{model}: {reply:?} {notices:?}");
        // Where a tool cannot be forced, the system prompt asks for one, if it may differ from call to call.
        let instructed = server.requests()[0].system().contains("Begin with a tool");
        assert_eq!(instructed, provider == Provider::DeepSeek, "{model}");
    }
}

#[tokio::test]
async fn a_schema_goes_natively_where_no_tool_can_be_forced_and_in_words_where_that_is_refused() {
    let server = ModelServer::start(|request| match request.body["output_config"].is_null() {
        true => Response::text("{\"a\": \"b\"}"),
        false if request.body["model"] == "claude-sonnet-5-5" => Response::text("{\"a\": \"b\"}"),
        false => Response::error(400, "output_config.format.schema: Schema is too complex and not supported"),
    });
    let client = client(&server);
    let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "maxLength": 9}}});
    for (model, notices) in
        [("anthropic/claude-sonnet-5-5", 0), ("anthropic/claude-opus-5-5", 1), ("anthropic/claude-opus-5-5", 0)]
    {
        let chat_request = ChatRequest { schema: Some(schema.clone()), ..request(model, "x") };
        let (reply, shown_notices) = told(&client, &chat_request).await;
        assert_eq!(
            (reply.unwrap().text.as_str(), shown_notices.len()),
            ("{\"a\": \"b\"}", notices),
            "{shown_notices:?}"
        );
    }
    let bodies = bodies(&server);
    let narrow = json!({"type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"type": "string", "description": "(maxLength: 9)"}}});
    assert_eq!(bodies[0]["output_config"]["format"], json!({"type": "json_schema", "schema": narrow}));
    for body in &bodies[2..] {
        assert!(body["output_config"].is_null() && body["tools"].is_null() && body["tool_choice"].is_null());
        assert!(body["system"].as_str().unwrap().contains("JSON Schema"), "{body}");
    }
}

#[tokio::test]
async fn a_request_that_is_refused_whatever_is_left_out_fails_soon() {
    for message in [
        "Unsupported value: 'temperature' does not support 0.2 with this model.",
        "Unsupported parameter: 'max_tokens' is not supported with this model; nor is 'max_completion_tokens'",
        "Function tools with reasoning_effort are not supported. To use function tools, set reasoning_effort to 'none'.",
    ] {
        let server = ModelServer::start(move |_| Response::error(400, message));
        let (reply, _) = told(&client(&server), &demanding("openai/stranger")).await;
        let failure = reply.unwrap_err();
        assert_eq!(failure.code, Code::ModelRefused, "{failure}");
        assert!(server.calls() <= 4, "{message}: {}", server.calls());
    }
}
