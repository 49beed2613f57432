//! Tests what families decide: the wire, and how much a model is asked to think.

use serde_json::{Value, json};

use super::model_server::{ModelServer, Response};
use super::{Client, ClientSettings, ModelsConfig, client_with, quick, request};
use crate::host::llm::attempt_error::CallContext;
use crate::host::llm::{ProviderConfig, Wire, families, http};
use crate::host::{CallEvent, Models};
use crate::model::chat::{ChatRequest, Effort, Role};

/// Returns the wire and the address of a call to a provider at its own address, or at another.
fn goes(variables: &[(&str, &str)], config: &ModelsConfig, name: &str) -> (Wire, String) {
    let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let settings = ClientSettings::from_environment(&variables, config).unwrap();
    let (provider, model) = name.split_once('/').unwrap();
    let provider = settings.providers.iter().find(|one| one.name == provider).unwrap();
    let profile = families::profile(provider, model);
    let context =
        CallContext { provider, model, key: None, profile: &profile, marks: Default::default(), wants_thoughts: false };
    (context.wire(), http::request(context, &request(name, "x")).unwrap().url().to_string())
}

#[test]
fn the_wire_follows_the_family_at_the_providers_own_address_unless_the_user_names_one() {
    let config = ModelsConfig::default();
    let home = |name: &str| goes(&[], &config, name);
    let responses = (Wire::Responses, "https://api.openai.com/v1/responses".to_owned());
    let chat = (Wire::OpenAi, "https://api.openai.com/v1/chat/completions".to_owned());
    for model in ["openai/gpt-6.1-terra", "openai/gpt-5", "openai/o3", "openai/not-born-yet"] {
        assert_eq!(home(model), responses, "{model}");
    }
    for model in ["openai/gpt-4.1-mini", "openai/gpt-5-chat-latest"] {
        assert_eq!(home(model), chat, "{model}");
    }
    let moved = goes(&[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")], &config, "openai/gpt-6.1-terra");
    assert_eq!(moved.1, "http://127.0.0.1:9/v1/chat/completions");
    let mut named = ModelsConfig::default();
    let wire = |wire: Wire| ProviderConfig { wire: Some(wire), ..ProviderConfig::default() };
    named.providers.insert("openai".to_owned(), wire(Wire::OpenAi));
    assert_eq!(goes(&[], &named, "openai/gpt-6.1-terra"), chat);
    named.providers.insert("openai".to_owned(), wire(Wire::Responses));
    assert_eq!(goes(&[], &named, "openai/gpt-4.1"), responses);
}

/// Asks once; returns the body, the parts that were left out, and what was told.
async fn ask(client: &Client, server: &ModelServer, request: &ChatRequest) -> (Value, Vec<String>, Vec<String>) {
    let mut told = Vec::new();
    let mut report = |event: CallEvent<'_>| {
        if let CallEvent::Notice(text) = event {
            told.push(text.to_owned());
        }
    };
    let reply = client.chat(request, &mut report).await.unwrap();
    (server.requests().last().unwrap().body.clone(), reply.refused, told)
}

#[tokio::test]
async fn an_effort_goes_out_in_the_words_of_the_family_and_in_its_nearest_step() {
    let server = ModelServer::start(|_| Response::text("so"));
    let mut config = quick();
    let here = || ProviderConfig { base_url: Some(server.url()), ..ProviderConfig::default() };
    for name in ["deepseek", "gemini", "xai", "groq"] {
        config.providers.insert(name.to_owned(), here());
    }
    let responses = ProviderConfig { wire: Some(Wire::Responses), ..here() };
    config.providers.insert("azure".to_owned(), ProviderConfig { model: Some("m".into()), ..responses });
    let client = client_with(&server, &config);
    let disabled = json!({"thinking": {"type": "disabled"}});
    for (model, effort, sent) in [
        ("openai/gpt-6-luna", Effort::Max, json!({"reasoning_effort": "xhigh"})),
        ("openai/gpt-6-luna", Effort::None, json!({"reasoning_effort": "none"})),
        ("openai/gpt-6-astra", Effort::None, json!({"reasoning_effort": "low"})),
        ("openai/unheard-of", Effort::Minimal, json!({"reasoning_effort": "minimal"})),
        ("deepseek/deepseek-flash", Effort::None, disabled.clone()),
        ("deepseek/deepseek-flash", Effort::Medium, json!({"reasoning_effort": "high"})),
        ("gemini/gemini-3.8-flash", Effort::Max, json!({"reasoning_effort": "high"})),
        ("xai/grok-4.7", Effort::None, json!({"reasoning_effort": "low"})),
        ("groq/openai/gpt-oss-120b", Effort::High, json!({"reasoning_effort": "high"})),
        ("anthropic/claude-sonnet-5-5", Effort::High, json!({"output_config": {"effort": "high"}})),
        ("anthropic/claude-sonnet-5-5", Effort::None, json!({"thinking": {"type": "between_tools"}})),
        (
            "anthropic/claude-opus-4-7",
            Effort::Low,
            json!({"output_config": {"effort": "low"}, "thinking": {"type": "adaptive"}}),
        ),
    ] {
        let mut asked = request(model, "x");
        asked.effort = Some(effort);
        let (body, refused, told) = ask(&client, &server, &asked).await;
        let said: serde_json::Map<String, Value> = ["reasoning_effort", "thinking", "output_config", "reasoning"]
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), body.get(name)?.clone())))
            .collect();
        assert_eq!((Value::Object(said), refused.len(), told.len()), (sent, 0, 0), "{model} {effort:?}");
    }
}

#[tokio::test]
async fn a_family_without_steps_is_asked_for_none_which_is_told_once_and_a_flows_own_word_wins() {
    let server = ModelServer::start(|_| Response::text("so"));
    let client = client_with(&server, &quick());
    let mut asked = request("openai/gpt-4.1", "x");
    asked.effort = Some(Effort::High);
    let (body, refused, told) = ask(&client, &server, &asked).await;
    assert_eq!((body.get("reasoning_effort"), refused, told.len()), (None, vec!["reasoning_effort".to_owned()], 1));
    let (_, refused, told) = ask(&client, &server, &asked).await;
    assert_eq!((refused.len(), told.len()), (0, 0), "it is known by now");
    let mut own = request("openai/gpt-6-luna", "x");
    (own.effort, own.provider_options) =
        (Some(Effort::High), json!({"reasoning_effort": "low"}).as_object().unwrap().clone());
    assert_eq!(ask(&client, &server, &own).await.0["reasoning_effort"], "low");
}

#[tokio::test]
async fn deepseek_gets_the_field_of_thoughts_with_each_call_of_a_tool_also_an_empty_one() {
    let server = ModelServer::start(|_| Response::text("so"));
    let mut config = quick();
    let here = ProviderConfig { base_url: Some(server.url()), ..ProviderConfig::default() };
    config.providers.insert("deepseek".to_owned(), here);
    let client = client_with(&server, &config);
    let mut asked = request("deepseek/deepseek-flash", "x");
    let mut turn = super::message(Role::Assistant, "");
    turn.tool_calls =
        vec![crate::model::chat::ToolCall { id: "c".into(), name: "look".into(), arguments: "{}".into() }];
    let mut result = super::message(Role::Tool, "a ledger");
    result.tool_call_id = Some("c".into());
    asked.messages.extend([turn, result, super::message(Role::Assistant, "There is a ledger.")]);
    let body = ask(&client, &server, &asked).await.0;
    let fields: Vec<Option<&Value>> =
        body["messages"].as_array().unwrap().iter().map(|message| message.get("reasoning_content")).collect();
    assert_eq!(fields, [None, Some(&json!("")), None, None]);
}
