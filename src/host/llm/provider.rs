//! One provider as it is used: its wire format, its address, its key and its limits.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderName;
use serde::Deserialize;

use crate::host::secret::KeySource;

/// The name of the local provider, which another adapter serves.
pub(super) const LOCAL: &str = "local";

/// One provider, with all settings resolved. It has no `Debug`, because its address may hold a password.
#[derive(Clone)]
pub(super) struct Provider {
    pub(super) name: String,
    pub(super) wire: Wire,
    pub(super) base: Url,
    /// Whether the family of a model may choose another wire: at the provider's own address, where nobody set one.
    pub(super) wire_by_family: bool,
    /// Whether `base` is not the provider's own address.
    pub(super) moved: bool,
    pub(super) key: KeySource,
    /// The header that takes the key, if it is not the wire's usual one.
    pub(super) key_header: Option<HeaderName>,
    pub(super) model: Option<String>,
    pub(super) models_path: Option<&'static str>,
    /// Whether its models are called by names that the user gave them, which its list does not have.
    pub(super) own_names: bool,
    pub(super) max_parallel: usize,
    pub(super) silence: Duration,
    /// How long a whole call may take.
    pub(super) call_limit: Duration,
    /// Whether the provider holds replies to a schema by itself, where nothing is known of the model's family.
    pub(super) json_schema: bool,
    /// Whether what is known of a family goes before `json_schema`: the user's own word goes before both.
    pub(super) schema_by_family: bool,
    /// Whether the server may ignore a schema without a word, so that its replies are looked at.
    pub(super) may_ignore_schemas: bool,
    pub(super) max_tokens_field: MaxTokensField,
}

impl Provider {
    /// Tells whether what is known of the provider holds here: at its own address, or on a server that is always one's own.
    pub(super) fn is_at_home(&self) -> bool {
        !self.moved || self.models_path.is_some()
    }

    /// Tells whether the provider's address is one of this machine.
    pub(super) fn is_on_this_machine(&self) -> bool {
        is_on_this_machine(&self.base)
    }
}

/// Tells whether an address is one of this machine.
pub(super) fn is_on_this_machine(address: &Url) -> bool {
    let host = address.host_str().unwrap_or_default();
    let number = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    number.map_or(host == "localhost", |number| number.is_loopback())
}

/// The format of a provider's requests and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Wire {
    /// OpenAI's Chat Completions, which nearly all other providers speak, too.
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic's Messages.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// OpenAI's Responses, which its newer models need for tools while they think.
    #[serde(rename = "responses")]
    Responses,
}

/// The name of the field that limits the tokens of a reply. OpenAI refuses the old name for its newer
/// models; other servers may not know the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    MaxTokens,
    MaxCompletionTokens,
}
