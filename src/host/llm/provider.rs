//! One provider as it is used: its wire, its address, its key and its limits.

use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;

use super::secret::KeySource;

/// The name of the provider that another adapter serves.
pub(super) const LOCAL: &str = "local";

/// One provider, as it will be used. No `Debug`: its address may hold a password.
#[derive(Clone)]
pub(super) struct Provider {
    pub(super) name: String,
    pub(super) wire: Wire,
    pub(super) base: Url,
    /// Whether that is another address than the provider's own.
    pub(super) moved: bool,
    pub(super) key: KeySource,
    pub(super) model: Option<String>,
    pub(super) models_path: Option<&'static str>,
    pub(super) max_parallel: usize,
    pub(super) silence: Duration,
    /// How long a whole call may take.
    pub(super) call_limit: Duration,
    /// Whether a schema is sent as `response_format`.
    pub(super) json_schema: bool,
    /// Whether a schema is also spelled out in the system prompt: wherever one cannot be sure that
    /// the other end heeds `response_format`.
    pub(super) schema_in_prompt: bool,
    pub(super) max_tokens_field: MaxTokensField,
}

/// The format that a provider's requests and replies have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Wire {
    /// Chat completions, as OpenAI has them and nearly everybody else too.
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic's messages.
    #[serde(rename = "anthropic")]
    Anthropic,
}

/// What the field for the most tokens of a reply is called. OpenAI refuses the old name for its newer
/// models; other servers may not know the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    MaxTokens,
    MaxCompletionTokens,
}
