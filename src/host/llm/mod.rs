//! The models: every provider over the network and the local engine, behind one [`Client`].
//!
//! # Layout
//!
//! - `config`, `provider_defaults`, `settings`: the user's settings, the built-in defaults, and the `provider`s that
//!   result from both.
//! - `resolver`: which model a name means, and which model is the default.
//! - `client`: one call: its key, its place in the queue, its attempts. `retry` decides about the next attempt.
//! - `http`, `stream`, `sse`: one attempt, and the events of its response.
//! - `openai`, `anthropic`: the two wire formats. Each writes a request and assembles a reply. They share
//!   `partial_reply` for the reply and `schema` for its JSON Schema.
//! - `families`: what models refuse. `refusal` reads what a server says about that, and `state` keeps the opaque
//!   thinking that a model wants back.
//! - `served`: the list of models that a provider serves now.
//! - `prices`, `windows`: the price of a call and the context window of a model, where they are known.
//! - `attempt_error`: the messages of failed attempts.
//!
//! A call gives a whole reply or a failure. Nothing here validates a reply, keeps a record, or knows a budget.

mod anthropic;
mod model_table;
mod resolver;
mod client;
mod config;
mod partial_reply;
mod families;
mod attempt_error;
mod http;
#[cfg(feature = "local")]
pub(crate) mod local;
mod openai;
mod prices;
mod provider;
mod provider_defaults;
mod refusal;
mod retry;
mod schema;
mod served;
mod settings;
pub mod sse;
mod state;
mod stream;
mod windows;

pub use client::Client;
pub use config::{ModelsConfig, ProviderConfig, RetryConfig};
pub use prices::as_of as prices_as_of;
pub use provider::{MaxTokensField, Wire};
pub use provider_defaults::AS_OF as DEFAULTS_AS_OF;
pub use resolver::{DefaultModel, KeyState, ModelFacts, ProviderFacts, ProviderSummary};
pub use served::ServedModel;
pub use settings::{ClientSettings, without_keys};
pub use windows::window;

#[cfg(test)]
mod tests;
