//! Tests the client against a real server on the loopback: what must hold for both wire formats.

#[path = "../../../../tests/support/model_server.rs"]
pub(super) mod model_server;

mod families;
mod faults;
mod limits;
mod manners;
mod own_addresses;
mod wires;

use std::collections::BTreeMap;

use super::{Client, ClientSettings, ModelsConfig, RetryConfig};
use crate::error::Result;
use crate::host::{CallEvent, Models};
use crate::model::chat::{ChatReply, ChatRequest, Message, Role};
use model_server::ModelServer;

/// The key that must not be shown anywhere.
pub(super) const KEY: &str = "planted-key-0123";

/// Returns the variables by which both wire formats reach this server.
pub(super) fn variables(server: &ModelServer) -> BTreeMap<String, String> {
    [
        ("OPENAI_API_KEY", KEY.to_owned()),
        ("OPENAI_BASE_URL", server.url()),
        ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ("ANTHROPIC_BASE_URL", server.url()),
        // Never reach an Ollama that happens to run on the machine.
        ("OLLAMA_HOST", "http://127.0.0.1:1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Returns a configuration with next to no waits.
pub(super) fn quick() -> ModelsConfig {
    ModelsConfig { retry: RetryConfig { base_delay_ms: 1, ..RetryConfig::default() }, ..ModelsConfig::default() }
}

pub(super) fn client_with(server: &ModelServer, config: &ModelsConfig) -> Client {
    Client::new(ClientSettings::from_environment(&variables(server), config).expect("the settings are valid"))
}

pub(super) fn client(server: &ModelServer) -> Client {
    client_with(server, &quick())
}

pub(super) fn message(role: Role, content: &str) -> Message {
    Message {
        attachments: Vec::new(),
        role,
        content: content.to_owned(),
        state: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    }
}

pub(super) fn request(model: &str, prompt: &str) -> ChatRequest {
    ChatRequest {
        model: model.to_owned(),
        system: None,
        messages: vec![message(Role::User, prompt)],
        schema: None,
        tools: Vec::new(),
        tool_choice: None,
        max_tokens: None,
        temperature: None,
        top_p: None,
        stop: Vec::new(),
        provider_options: serde_json::Map::new(),
        seed: None,
        effort: None,
    }
}

/// Makes a call, and returns its reply, the pieces of text, and `(attempt, wait)` of each retry.
pub(super) async fn call(client: &Client, request: &ChatRequest) -> (Result<ChatReply>, Vec<String>, Vec<(u32, u64)>) {
    let (mut texts, mut retries) = (Vec::new(), Vec::new());
    let mut report = |event: CallEvent<'_>| match event {
        CallEvent::Delta(text) => texts.push(text.to_owned()),
        CallEvent::Alive | CallEvent::Thought(_) | CallEvent::Notice(_) => {}
        CallEvent::Retry { attempt, wait_ms, .. } => retries.push((attempt, wait_ms)),
    };
    let outcome = client.chat(request, &mut report).await;
    (outcome, texts, retries)
}

/// One model for each wire format.
pub(super) const BOTH: [&str; 2] = ["openai/small", "anthropic/small"];
