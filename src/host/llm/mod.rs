//! The models: every provider over the network and the local engine, behind one [`Client`].
//!
//! # Layout
//!
//! - `config`, `provider_defaults`, `settings`: the user's settings, the built-in defaults, and the `provider`s that
//!   result from both.
//! - `resolver`: which model a name means, and which model is the default.
//! - `client`: one call: its key, its place in the queue, its attempts. `retry` decides about the next attempt.
//! - `http`, `stream`, `sse`: one attempt, and the events of its response.
//! - `openai`, `responses`, `anthropic`: the wire formats. Each writes a request and assembles a reply. They share
//!   `partial_reply` for the reply, `schema` for its JSON Schema, `effort` for how much a model thinks, and `stop_texts` for
//!   servers that know none. `tagged_thought` takes out what some of them think in front of a text.
//! - `local`, `local_config`: models on this machine, by the engine that comes with nietz or an installed server.
//! - `agents`: programs of the user's as models, by the Agent Client Protocol.
//! - `attachments`: which models take images and PDFs.
//! - `families`: how models are asked. `refusal` reads what a server says about that, and `state` keeps the opaque
//!   thinking that a model wants back.
//! - `cache`: what a server is asked to keep of a request.
//! - `catalogue`, `prices`: what is known of models by name, and what a call costs. `lifetimes` tells of models that go.
//! - `served`: the list of models that a provider serves now.
//! - `attempt_error`: the messages of failed attempts.
//!
//! A call gives a whole reply or a failure. Nothing here validates a reply, keeps a record, or knows a budget.

mod agents;
mod anthropic;
mod attachments;
mod cache;
mod catalogue;
mod resolver;
mod client;
mod config;
mod partial_reply;
mod effort;
mod families;
mod attempt_error;
mod http;
mod lifetimes;
#[cfg(feature = "local")]
pub(crate) mod local;
mod local_config;
mod openai;
mod prices;
mod provider;
mod provider_defaults;
mod refusal;
mod responses;
mod retry;
mod schema;
mod served;
mod settings;
pub mod sse;
mod state;
mod stop_texts;
mod tagged_thought;
mod stream;

pub use agents::AgentConfig;
pub(crate) use agents::PREFIX as AGENT;
pub use catalogue::{as_of as catalogue_as_of, window};
pub use client::Client;
pub use config::{ModelsConfig, ProviderConfig, RetryConfig};
pub(crate) use local_config::weights_path;
pub use local_config::{EngineName, LocalConfig};
pub use provider::{MaxTokensField, Wire};
pub use provider_defaults::AS_OF as DEFAULTS_AS_OF;
pub use resolver::{DefaultModel, KeyState, ModelFacts, ProviderFacts, ProviderSummary};
pub use served::ServedModel;
pub use settings::{ClientSettings, without_keys};

#[cfg(test)]
mod tests;
