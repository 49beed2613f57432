//! What a user may say about models in `config.yaml`, under `models:`.
//!
//! Only the user's own file may hold this: a base URL or a key command decides where keys go, so a
//! project's `nietz.yaml` must not be able to set them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use serde::Deserialize;

use super::provider::{LOCAL, MaxTokensField, Wire};
use super::provider_defaults;
use crate::model::budget::Price;

/// The `models:` part of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelsConfig {
    /// The model of calls that name none: `provider/model`, an alias, or a provider.
    pub default: Option<String>,
    /// Short names for models.
    pub aliases: BTreeMap<String, String>,
    /// Changes to the known providers, and further ones by names of the user's choice.
    pub providers: BTreeMap<String, ProviderConfig>,
    pub retry: RetryConfig,
    /// What models cost, by `provider/model`: instead of the prices that nietz knows.
    pub prices: BTreeMap<String, Price>,
    /// How many tokens models take in one call, by `provider/model`: instead of what nietz knows.
    pub windows: BTreeMap<String, u64>,
}

impl ModelsConfig {
    /// Tells whether a name means a provider: one that nietz knows, or one of the user's.
    pub fn is_provider(&self, name: &str) -> bool {
        name == LOCAL
            || provider_defaults::ALL.iter().any(|facts| facts.name == name)
            || self.providers.contains_key(name)
    }
}

/// One provider; what is absent is as the provider's facts say.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderConfig {
    /// The address before `/chat/completions` or `/v1/messages`.
    pub base_url: Option<String>,
    pub wire: Option<Wire>,
    /// The variable that holds the key. A provider of the user's own that names none needs no key.
    pub key_env: Option<String>,
    /// A command that prints the key, run when it is first needed and the variable is not set.
    pub key_command: Option<Vec<String>>,
    /// The model of `--model <provider>`, and of no choice at all.
    pub model: Option<String>,
    /// How many calls may be under way at once.
    pub max_parallel: Option<NonZeroUsize>,
    /// How long the provider may be silent before the attempt is given up.
    pub timeout_seconds: Option<f64>,
    /// How long a whole call may take, with all attempts, waits and thoughts.
    pub call_seconds: Option<f64>,
    /// Whether it holds replies to a JSON Schema (`response_format`) by itself.
    pub json_schema: Option<bool>,
    pub max_tokens_field: Option<MaxTokensField>,
}

/// How often and how long a call is tried.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    /// The most attempts of one call, the first one counted.
    pub attempts: u32,
    /// How long a call may go on after its first fault.
    pub total_seconds: f64,
    /// The first wait; each further one is twice as long, and chance adds up to as much again.
    pub base_delay_ms: u64,
}

impl Default for RetryConfig {
    fn default() -> RetryConfig {
        RetryConfig { attempts: 5, total_seconds: 120.0, base_delay_ms: 500 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_configuration_is_read() {
        let config: ModelsConfig = serde_yaml::from_str(
            "default: fast\naliases: {fast: gate/small}\nretry: {attempts: 2}\nproviders:\n  gate:\n    \
             base_url: https://gate.example/v1\n    wire: anthropic\n    key_command: [pass, show, gate]\n    \
             max_parallel: 4\n    timeout_seconds: 30\n",
        )
        .expect("it is valid");
        let gate = &config.providers["gate"];
        assert_eq!((gate.wire, gate.timeout_seconds), (Some(Wire::Anthropic), Some(30.0)));
        assert_eq!(config.retry, RetryConfig { attempts: 2, ..RetryConfig::default() });
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let error = serde_yaml::from_str::<ModelsConfig>("providers: {x: {base-url: y}}").unwrap_err().to_string();
        assert!(error.contains("base-url"), "{error}");
    }
}
