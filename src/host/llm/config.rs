//! The user's settings for models in `config.yaml`, under `models:`.
//!
//! Only the user's own file may hold them: a base URL or a key command decides where keys go, so a
//! project's `nietz.yaml` must not be able to set one.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use serde::Deserialize;

use super::agents::{ACP, AgentConfig};
use super::local_config::LocalConfig;
use super::provider::{LOCAL, MaxTokensField, Wire};
use super::provider_defaults;
use crate::model::budget::Price;
use crate::model::chat::Effort;
use crate::model::choice::ModelChoice;

/// The `models:` part of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelsConfig {
    /// The model of calls that name none: `provider/model`, an alias, or a provider.
    pub default: Option<String>,
    /// Short names for models.
    pub aliases: BTreeMap<String, ModelChoice>,
    /// How much models are to think, where nothing else says it.
    pub effort: Option<Effort>,
    /// Changes to the built-in providers, and further providers under names of the user's choice.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// The user's agents, and changes to those that are known.
    pub agents: BTreeMap<String, AgentConfig>,
    /// The engine of local models.
    pub local: LocalConfig,
    pub retry: RetryConfig,
    /// Prices by `provider/model`, which replace the built-in ones.
    pub prices: BTreeMap<String, Price>,
    /// Context windows in tokens by `provider/model`, which replace the built-in ones.
    pub windows: BTreeMap<String, u64>,
}

impl ModelsConfig {
    /// Returns the names of all providers: the built-in ones and the user's.
    pub fn providers(&self) -> Vec<String> {
        let own = self.providers.keys().map(String::as_str);
        let all: BTreeSet<&str> =
            provider_defaults::ALL.iter().map(|defaults| defaults.name).chain(own).chain([LOCAL]).collect();
        all.into_iter().map(str::to_owned).collect()
    }

    /// Returns the model of each provider that a run gets which names the provider alone.
    pub fn usual_models(&self) -> Vec<String> {
        let built_in = provider_defaults::ALL.iter().filter_map(|defaults| Some((defaults.name, defaults.model?)));
        let own = self.providers.iter().filter_map(|(name, own)| Some((name.as_str(), own.model.as_deref()?)));
        built_in.chain(own).map(|(provider, model)| format!("{provider}/{model}")).collect()
    }

    /// Tells whether a name is a provider's: a built-in one or one of the user's.
    pub fn is_provider(&self, name: &str) -> bool {
        name == LOCAL
            || name == ACP
            || provider_defaults::ALL.iter().any(|defaults| defaults.name == name)
            || self.providers.contains_key(name)
    }
}

/// One provider. Absent fields keep the provider's defaults.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderConfig {
    /// The address before `/chat/completions`, `/responses` or `/v1/messages`. It may have a query, and `{model}` in its path.
    pub base_url: Option<String>,
    pub wire: Option<Wire>,
    /// The variable that holds the key. A provider of the user's own without this field needs no key.
    pub key_env: Option<String>,
    /// A command that prints the key. It runs when the key is first needed and the variable is not set, and once more when
    /// the key is refused: it may have expired.
    pub key_command: Option<Vec<String>>,
    /// The header that takes the key alone, such as `api-key`, in place of the wire's usual one.
    pub key_header: Option<String>,
    /// The model for `--model <provider>`, and where no model is named at all.
    pub model: Option<String>,
    /// How many calls may run at once.
    pub max_parallel: Option<NonZeroUsize>,
    /// How long the provider may be silent before the attempt is given up.
    pub timeout_seconds: Option<f64>,
    /// How long a whole call may take, including all attempts, waits and thinking.
    pub call_seconds: Option<f64>,
    /// Whether the provider enforces a JSON Schema (`response_format`) by itself.
    pub json_schema: Option<bool>,
    pub max_tokens_field: Option<MaxTokensField>,
}

/// How often and how long a call is tried.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    /// The most attempts of one call, including the first.
    pub attempts: u32,
    /// How long after the first error attempts may still be repeated.
    pub total_seconds: f64,
    /// The first wait. Each further wait is twice as long, and chance adds up to as much again.
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
