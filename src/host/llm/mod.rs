//! Whatever answers model calls: every provider over the network, behind one [`Client`].
//!
//! # Layout
//!
//! - `config`, `providers`, `settings`: what the user says, what is known, and what follows from both: each `provider`.
//! - `choice`: which model a name means, and which one is meant by no name.
//! - `client`: one call: its key, its place in the queue, its attempts. `retry` decides about the next one.
//! - `http`, `stream`, `sse`: one attempt, and the events of its response.
//! - `openai`, `anthropic`: the two wires. Each writes a request and assembles a reply; `draft` is what
//!   they share of a reply, `schema` what they do with a JSON Schema.
//! - `families`: how models are asked: what they refuse. `refusal` is what a server says about that, and `state` what a model
//!   thought and wants back.
//! - `prices`, `windows`: what a call costs and how much a model takes, where that is known.
//! - `fault`, `secret`: what is said when it fails, and never said at all.
//!
//! A reply is whole or it is a failure. Nothing here validates a reply, keeps a record, or knows a budget.

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
mod secret;
mod settings;
pub mod sse;
mod state;
mod stream;
mod windows;

pub use client::Client;
pub use config::{ModelsConfig, ProviderConfig, RetryConfig};
pub(in crate::host) use http::client as http_client;
pub use prices::as_of as prices_as_of;
pub use provider::{MaxTokensField, Wire};
pub use resolver::{DefaultModel, KeyState, ProviderSummary};
pub use settings::ClientSettings;
pub use windows::window;

#[cfg(test)]
mod tests;
