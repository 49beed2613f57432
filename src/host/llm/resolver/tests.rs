//! Tests which model a name means.

use futures_util::future::LocalBoxFuture;

use super::*;
use crate::host::llm::tests::model_server::{ModelServer, Response};
use crate::host::llm::{Client, ModelsConfig};
use crate::host::{CallEvent, Models};
use crate::model::chat::{ChatReply, ChatRequest, FinishReason, Usage};

/// A local model that replies with the name by which it was called.
struct Echo;

impl Models for Echo {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _: &'a mut dyn FnMut(CallEvent<'_>),
    ) -> LocalBoxFuture<'a, Result<ChatReply>> {
        Box::pin(async {
            Ok(ChatReply {
                text: request.model.clone(),
                tool_calls: Vec::new(),
                state: None,
                usage: Usage::default(),
                model: "echo".into(),
                finish: FinishReason::Stop,
                cost: None,
                saved: 0.0,
                refused: Vec::new(),
                retries: Vec::new(),
                lost: None,
            })
        })
    }
}

fn client(variables: &[(&str, &str)], config: &str) -> Client {
    let config: ModelsConfig = serde_yaml::from_str(config).unwrap();
    // Unless a test sets another address, no Ollama answers: nothing listens on port 1.
    let variables = [("OLLAMA_HOST", "127.0.0.1:1")]
        .iter()
        .chain(variables)
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    Client::new(ClientSettings::from_environment(&variables, &config).unwrap())
}

fn ollama() -> ModelServer {
    ModelServer::start(|request| match request.path.as_str() {
        "/api/tags" => Response::plain(200, r#"{"models": [{"name": "qwen3:4b"}, {"name": "other"}]}"#),
        _ => Response::text("from ollama"),
    })
}

#[tokio::test]
async fn names_aliases_and_providers_are_resolved() {
    let client =
        client(&[], "{default: fast, aliases: {fast: groq/quick, big: anthropic}}").with_local(Box::new(Echo), "tiny");
    for (name, full) in [
        (None, "groq/quick"),
        (Some("fast"), "groq/quick"),
        (Some("big"), "anthropic/claude-sonnet-5-5"),
        (Some("openai"), "openai/gpt-6.1-terra"),
        (Some("openrouter/anthropic/claude-sonnet-5.5"), "openrouter/anthropic/claude-sonnet-5.5"),
        (Some("local"), "local/tiny"),
        (Some("local/other"), "local/other"),
    ] {
        assert_eq!(client.resolve(name).await.unwrap(), full);
    }
}

#[tokio::test]
async fn a_name_that_means_nothing_gets_the_nearest_that_does() {
    let client = client(&[], "{aliases: {fast: groq/quick}, providers: {mine: {base_url: 'http://127.0.0.1:1'}}}");
    for (name, hint) in [
        ("opnai/gpt-6-luna", "did you mean openai/gpt-6-luna?"),
        ("fats", "did you mean fast?"),
        ("opena", "did you mean openai?"),
        ("openai/", "did you mean openai/<model>?"),
        ("gpt-4.1", "write provider/model"),
        ("mine", "write mine/<model>"),
        ("ollama", "write ollama/<model>"),
        ("local/x", "name a model of a provider"),
    ] {
        let failure = client.resolve(Some(name)).await.unwrap_err();
        assert_eq!(failure.code, Code::ModelUnknown);
        assert!(failure.hint.as_deref().unwrap().contains(hint), "{name}: {failure:?}");
    }
}

#[tokio::test]
async fn no_choice_means_the_first_key_then_ollama_then_local() {
    let server = ollama();
    let host = server.url();
    let keys = [("OLLAMA_HOST", host.as_str()), ("XAI_API_KEY", "k1"), ("GROQ_API_KEY", "k2")];
    let keyed = client(&keys, "{}").with_local(Box::new(Echo), "tiny");
    let choice = keyed.default_model().await.unwrap();
    assert_eq!((choice.model.as_str(), choice.why.as_str()), ("groq/openai/gpt-oss-120b", "GROQ_API_KEY is set"));
    assert_eq!(server.calls(), 0, "nobody was asked");

    let served = client(&keys[..1], "{}").with_local(Box::new(Echo), "tiny");
    assert_eq!(served.resolve(None).await.unwrap(), "ollama/qwen3:4b");
    assert_eq!(served.resolve(Some("ollama")).await.unwrap(), "ollama/qwen3:4b");
    assert_eq!(server.calls(), 1, "it was asked once");

    let bare = client(&[], "{}").with_local(Box::new(Echo), "tiny");
    assert_eq!(bare.resolve(None).await.unwrap(), "local/tiny");
    let (reply, ..) = crate::host::llm::tests::call(&bare, &crate::host::llm::tests::request("local/tiny", "x")).await;
    assert_eq!(reply.unwrap().text, "local/tiny");

    let failure = client(&[], "{}").resolve(None).await.unwrap_err();
    assert_eq!(failure.code, Code::KeyMissing);
    assert!(failure.hint.unwrap().contains("OPENAI_API_KEY, ANTHROPIC_API_KEY"));
}

#[tokio::test]
async fn a_silent_ollama_is_soon_given_up() {
    let server = ModelServer::start(|_| Response::silence());
    let client = client(&[("OLLAMA_HOST", &server.url())], "{}").with_local(Box::new(Echo), "tiny");
    assert_eq!(client.resolve(None).await.unwrap(), "local/tiny");
}

#[tokio::test]
async fn the_table_says_whence_each_key_is_and_shows_none() {
    let client = client(
        &[("GEMINI_API_KEY", "planted-key")],
        "providers: {mine: {base_url: 'http://127.0.0.1:1', key_command: [pass, show, mine], model: m}}",
    )
    .with_local(Box::new(Echo), "tiny");
    let rows = client.provider_summaries().await;
    let row = |name: &str| rows.iter().find(|row| row.provider == name).unwrap();
    assert_eq!(row("openai").key, KeyState::Missing(vec!["OPENAI_API_KEY".into()]));
    assert_eq!(row("gemini").key, KeyState::Variable("GEMINI_API_KEY".into()));
    assert_eq!(row("gemini").chosen.as_deref(), Some("gemini/gemini-3.8-flash: GEMINI_API_KEY is set"));
    assert_eq!((&row("mine").key, row("mine").model.as_deref()), (&KeyState::Command, Some("m")));
    assert_eq!((&row("local").key, row("local").model.as_deref()), (&KeyState::NotNeeded, Some("tiny")));
    assert_eq!(rows.iter().filter(|row| row.chosen.is_some()).count(), 1);
    assert!(!format!("{rows:?}").contains("planted"));
}
