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
//!   servers that know none.
//! - `families`: how models are asked. `refusal` reads what a server says about that, and `state` keeps the opaque
//!   thinking that a model wants back.
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
mod effort;
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
mod responses;
mod retry;
mod schema;
mod settings;
pub mod sse;
mod state;
mod stop_texts;
mod stream;
mod windows;

pub use client::Client;
pub use config::{ModelsConfig, ProviderConfig, RetryConfig};
pub use prices::as_of as prices_as_of;
pub use provider::{MaxTokensField, Wire};
pub use resolver::{DefaultModel, KeyState, ProviderSummary};
pub use settings::{ClientSettings, without_keys};
pub use windows::window;

#[cfg(test)]
mod tests;
