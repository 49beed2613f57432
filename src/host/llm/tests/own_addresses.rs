//! What is sent to providers at their own addresses alone, and read from them: marks, names of conversations, costs.

use serde_json::{Value, json};

use super::model_server::{ModelServer, Response};
use super::{KEY, message, request};
use crate::host::llm::attempt_error::CallContext;
use crate::host::llm::cache::Marks;
use crate::host::llm::families::ModelProfile;
use crate::host::llm::partial_reply::Assemble;
use crate::host::llm::provider::Provider;
use crate::host::llm::{Client, ClientSettings, ModelsConfig, http, openai};
use crate::host::{CallEvent, Models};
use crate::model::chat::{ChatRequest, Role, Usage};

fn provider(name: &str) -> Provider {
    let settings = ClientSettings::from_environment(&Default::default(), &ModelsConfig::default());
    let providers = settings.expect("nothing is set").providers;
    providers.into_iter().find(|provider| provider.name == name).expect("it is known")
}

/// A conversation with a tool that goes on, long enough to be kept.
fn conversation(model: &str) -> ChatRequest {
    let mut request = request(model, &"long ".repeat(2000));
    request.tools = serde_json::from_value(json!([{"name": "look", "parameters": {}}])).expect("it is a tool");
    request.messages.extend([message(Role::Assistant, "well"), message(Role::User, "so?")]);
    request
}

fn sent(request: &ChatRequest, marks: Marks) -> (Value, reqwest::header::HeaderMap) {
    let (name, model) = request.model.split_once('/').expect("a model has a provider");
    let (provider, profile) = (provider(name), ModelProfile::default());
    let context =
        CallContext { provider: &provider, model, key: None, profile: &profile, marks, wants_thoughts: false };
    let http = http::request(context, request).expect("there is no key that could be wrong");
    let body = http.body().and_then(reqwest::Body::as_bytes).expect("it stands in memory");
    (serde_json::from_slice(body).expect("it is JSON"), http.headers().clone())
}

#[test]
fn marks_go_through_openrouter_on_parts_of_messages() {
    let marks = Marks { start: true, turns: true };
    let mark = json!({"type": "ephemeral"});
    let mut request = conversation("openrouter/anthropic/claude-sonnet-5.5");
    let (body, _) = sent(&request, marks);
    assert_eq!(body["messages"][0]["content"][0]["cache_control"], mark);
    assert_eq!(
        (&body["messages"][1]["content"], &body["messages"][2]["content"][0]["text"]),
        (&json!("well"), &json!("so?"))
    );
    assert_eq!(body.to_string().matches("cache_control").count(), 2, "a short tool is not marked: {body}");
    request.system = Some("long ".repeat(2000));
    let (body, _) = sent(&request, marks);
    assert_eq!(
        (&body["messages"][0]["role"], &body["messages"][0]["content"][0]["cache_control"]),
        (&json!("system"), &mark)
    );
    request.system = None;
    request.tools[0].description = "long ".repeat(2000);
    let (body, _) = sent(&request, marks);
    assert_eq!((&body["tools"][0]["cache_control"], &body["tools"][0]["function"]["name"]), (&mark, &json!("look")));
    let (body, _) = sent(&request, Marks::default());
    assert!(!body.to_string().contains("cache_control"));
}

#[test]
fn a_conversation_is_named_to_those_who_find_more_by_its_name() {
    let name = |body: &Value| body["prompt_cache_key"].as_str().map(str::to_owned);
    let mut request = conversation("openai/gpt-4.1");
    let first = name(&sent(&request, Marks::default()).0);
    assert!(first.is_some());
    request.messages.push(message(Role::User, "and?"));
    assert_eq!(name(&sent(&request, Marks::default()).0), first);
    request.provider_options.insert("prompt_cache_key".to_owned(), "mine".into());
    assert_eq!(name(&sent(&request, Marks::default()).0).as_deref(), Some("mine"));
    let (body, headers) = sent(&conversation("xai/grok-4.7"), Marks::default());
    assert!(headers.contains_key("x-grok-conv-id") && name(&body).is_none());
    let (body, headers) = sent(&conversation("groq/openai/gpt-oss-120b"), Marks::default());
    assert!(!headers.contains_key("x-grok-conv-id") && name(&body).is_none());
}

#[test]
fn more_than_a_model_can_write_is_not_asked_of_it() {
    for (model, member, most) in [
        ("anthropic/claude-haiku-4-5", "max_tokens", 64_000),
        ("groq/qwen/qwen3.8-27b", "max_tokens", 16_384),
        ("openai/gpt-4.1", "max_completion_tokens", 32_768),
    ] {
        let mut request = request(model, "hello");
        request.max_tokens = Some(500_000);
        assert_eq!(sent(&request, Marks::default()).0[member], most, "{model}");
        request.max_tokens = Some(7);
        assert_eq!(sent(&request, Marks::default()).0[member], 7, "{model}");
    }
}

#[test]
fn what_a_reply_says_that_it_cost_is_what_it_cost() {
    let (provider, profile) = (provider("openrouter"), ModelProfile::default());
    let context = CallContext {
        provider: &provider,
        model: "m",
        key: None,
        profile: &profile,
        marks: Marks::default(),
        wants_thoughts: false,
    };
    let request = request("openrouter/m", "hello");
    let mut reply = Box::new(openai::Reply::new(context, &request));
    let body = json!({
        "model": "m", "choices": [{"message": {"content": "well"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "cost": 0.25, "is_byok": false,
            "cost_details": {"upstream_inference_cost": null},
            "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}},
    });
    reply.push_body(&body.to_string(), &mut |_| {}).expect("it is a reply");
    let reply = reply.into_reply().expect("it is whole");
    let usage = Usage { input: 9, output: 2, cached: 4, cache_written: 3, ..Usage::default() };
    assert_eq!((reply.cost, reply.usage), (Some(0.25), usage));
}

#[tokio::test]
async fn a_model_that_answers_for_another_one_is_told_of_once() {
    let server = ModelServer::start(|_| {
        let message = json!({"content": "well"});
        let body = json!({"model": "gemini-3.8-flash", "choices": [{"message": message, "finish_reason": "stop"}]});
        Response::plain(200, body.to_string()).header("content-type", "application/json")
    });
    let variables = [("GEMINI_API_KEY", KEY.to_owned()), ("GEMINI_BASE_URL", server.url())];
    let variables = variables.map(|(name, value)| (name.to_owned(), value)).into();
    let mut settings = ClientSettings::from_environment(&variables, &ModelsConfig::default()).expect("they are valid");
    // As if the server stood at the provider's own address.
    settings.providers.iter_mut().for_each(|provider| provider.moved = false);
    let client = Client::new(settings);
    let mut notices = Vec::new();
    for model in ["gemini/gemini-2.5-pro", "gemini/gemini-2.5-pro", "gemini/gemini-3.8-flash"] {
        let mut report = |event: CallEvent<'_>| {
            if let CallEvent::Notice(text) = event {
                notices.push(text.to_owned());
            }
        };
        client.chat(&request(model, "hello"), &mut report).await.expect("it answers");
    }
    let [notice] = notices.as_slice() else { panic!("{notices:?}") };
    assert!(notice.contains("gemini-2.5-pro was asked for, and gemini-3.8-flash answered"), "{notice}");
}
