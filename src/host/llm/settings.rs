//! From the environment and the configuration to what the client works with: one decision, made once.
//!
//! The client itself reads no variable. Whoever builds it passes the environment in as a map, so that
//! tests and `--env`-like options mean the same thing as the real environment.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use reqwest::Url;

use super::config::{ModelsConfig, ProviderConfig, RetryConfig};
use super::prices;
use super::provider::{LOCAL, MaxTokensField, Provider, Wire};
use super::provider_defaults::{self, ProviderDefaults};
use super::secret::{KeySource, Secret};
use crate::error::{Code, Failure, Result};
use crate::model::budget::Price;

/// Providers with public addresses limit how much may be under way at once; this stays below it.
const PARALLEL_PUBLIC: usize = 16;

/// A server of the user's own says itself when it is too much.
const PARALLEL_OWN: usize = 128;

/// How long a provider may be silent. Models that think first can take a minute to the first word.
const SILENCE: Duration = Duration::from_secs(120);

/// How long a whole call may take. Whatever a server sends as a sign of life, it is over then.
const WHOLE_CALL: Duration = Duration::from_secs(60 * 60);

/// Everything that a [`Client`](super::Client) needs to know.
#[derive(Clone)]
pub struct ClientSettings {
    pub(super) providers: Vec<Provider>,
    pub(super) aliases: BTreeMap<String, String>,
    pub(super) default: Option<String>,
    pub(super) prices: BTreeMap<String, Price>,
    pub(super) retry: RetryLimits,
    /// The environment of key commands: the given one without the keys that are known.
    pub(super) child_environment: BTreeMap<String, String>,
}

/// The limits of trying again.
#[derive(Clone, Debug)]
pub(super) struct RetryLimits {
    pub(super) attempts: u32,
    pub(super) total: Duration,
    pub(super) base_delay: Duration,
}

impl std::fmt::Debug for ClientSettings {
    /// Names the providers and leaves out the rest: the environment of key commands holds secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.providers.iter().map(|provider| provider.name.as_str()).collect();
        f.debug_struct("Settings").field("providers", &names).field("aliases", &self.aliases).finish_non_exhaustive()
    }
}

impl ClientSettings {
    /// Decides what holds, from the variables of the environment and the user's configuration.
    pub fn from_environment(variables: &BTreeMap<String, String>, config: &ModelsConfig) -> Result<ClientSettings> {
        let mut list = Vec::new();
        let nothing = ProviderConfig::default();
        for facts in provider_defaults::ALL {
            let own = config.providers.get(facts.name).unwrap_or(&nothing);
            list.push(known_provider(facts, own, variables)?);
        }
        for (name, own) in &config.providers {
            if !provider_defaults::ALL.iter().any(|facts| facts.name == name) {
                list.push(custom_provider(name, own, variables)?);
            }
        }
        let mut child_environment = variables.clone();
        for name in provider_defaults::ALL.iter().flat_map(|facts| facts.key_variables) {
            child_environment.remove(*name);
        }
        for name in config.providers.values().filter_map(|own| own.key_env.as_deref()) {
            child_environment.remove(name);
        }
        Ok(ClientSettings {
            providers: list,
            aliases: config.aliases.clone(),
            default: config.default.clone(),
            prices: check_prices(&config.prices)?,
            retry: RetryLimits::new(&config.retry)?,
            child_environment,
        })
    }

    /// Returns the price of `provider/model`, if it is known.
    pub fn price(&self, model: &str) -> Option<Price> {
        prices::price(&self.prices, &self.providers, model)
    }
}

fn check_prices(prices: &BTreeMap<String, Price>) -> Result<BTreeMap<String, Price>> {
    for (model, price) in prices {
        if let Some(problem) = price.problem() {
            return Err(Failure::new(Code::ConfigInvalid, format!("models.prices.{model}: {problem}")));
        }
    }
    Ok(prices.clone())
}

impl RetryLimits {
    fn new(config: &RetryConfig) -> Result<RetryLimits> {
        if config.attempts == 0 {
            return Err(Failure::new(Code::ConfigInvalid, "models.retry.attempts is 0; a call needs one attempt"));
        }
        Ok(RetryLimits {
            attempts: config.attempts,
            total: seconds("models.retry.total_seconds", config.total_seconds)?,
            base_delay: Duration::from_millis(config.base_delay_ms),
        })
    }
}

/// Returns a provider of the table, with the user's changes.
fn known_provider(
    facts: &ProviderDefaults,
    own: &ProviderConfig,
    variables: &BTreeMap<String, String>,
) -> Result<Provider> {
    let variable = nonempty_variable(variables, facts.base_variable);
    let base = match (&own.base_url, variable) {
        (Some(url), _) => address(&format!("models.providers.{}.base_url", facts.name), url)?,
        (None, Some(value)) if facts.base_variable == "OLLAMA_HOST" => {
            address(facts.base_variable, &ollama_address(value))?
        }
        (None, Some(url)) => address(facts.base_variable, url)?,
        (None, None) => address(facts.name, facts.base_url)?,
    };
    let moved = own.base_url.is_some() || variable.is_some();
    let names = match &own.key_env {
        Some(name) => vec![name.clone()],
        None => facts.key_variables.iter().map(|&name| name.to_owned()).collect(),
    };
    let json_schema = own.json_schema.unwrap_or(facts.json_schema);
    Ok(Provider {
        wire: own.wire.unwrap_or(facts.wire),
        key: key_source(names, facts.needs_key, own, variables),
        model: own.model.clone().or_else(|| facts.model.map(str::to_owned)),
        models_path: facts.models_path,
        max_parallel: parallel(own, moved || facts.models_path.is_some()),
        silence: limit(facts.name, "timeout_seconds", own.timeout_seconds, SILENCE)?,
        call_limit: limit(facts.name, "call_seconds", own.call_seconds, WHOLE_CALL)?,
        json_schema,
        schema_in_prompt: moved || facts.models_path.is_some() || !json_schema,
        max_tokens_field: own.max_tokens_field.unwrap_or(if moved {
            MaxTokensField::MaxTokens
        } else {
            facts.max_tokens_field
        }),
        name: facts.name.to_owned(),
        base,
        moved,
    })
}

/// Returns a provider that only the user knows.
fn custom_provider(name: &str, own: &ProviderConfig, variables: &BTreeMap<String, String>) -> Result<Provider> {
    let invalid = |why: &str| Failure::new(Code::ConfigInvalid, format!("models.providers.{name}: {why}"));
    if name == LOCAL {
        return Err(invalid("this name stands for the models that nietz runs itself").hint("choose another name"));
    }
    if name.is_empty() || name.contains('/') {
        return Err(invalid("a provider's name has at least one character and no slash"));
    }
    let Some(url) = &own.base_url else {
        let known = provider_defaults::ALL.iter().map(|facts| facts.name);
        let failure = invalid("it has no base_url, and it is not a provider that nietz knows");
        return Err(match crate::error::nearest(name, known) {
            Some(near) => failure.hint(format!("did you mean {near}? otherwise add its base_url")),
            None => failure.hint("add its base_url"),
        });
    };
    Ok(Provider {
        name: name.to_owned(),
        wire: own.wire.unwrap_or(Wire::OpenAi),
        base: address(&format!("models.providers.{name}.base_url"), url)?,
        moved: true,
        key: key_source(own.key_env.iter().cloned().collect(), own.key_env.is_some(), own, variables),
        model: own.model.clone(),
        models_path: None,
        max_parallel: parallel(own, true),
        silence: limit(name, "timeout_seconds", own.timeout_seconds, SILENCE)?,
        call_limit: limit(name, "call_seconds", own.call_seconds, WHOLE_CALL)?,
        json_schema: own.json_schema.unwrap_or(true),
        schema_in_prompt: true,
        max_tokens_field: own.max_tokens_field.unwrap_or(MaxTokensField::MaxTokens),
    })
}

fn key_source(
    names: Vec<String>,
    needed: bool,
    own: &ProviderConfig,
    variables: &BTreeMap<String, String>,
) -> KeySource {
    for name in &names {
        if let Some(key) = variables.get(name).and_then(|value| Secret::new(value)) {
            return KeySource::Variable { name: name.clone(), key };
        }
    }
    match &own.key_command {
        Some(command) => KeySource::Command(command.clone()),
        None if needed => KeySource::Missing(names),
        None => KeySource::NotNeeded,
    }
}

fn parallel(own: &ProviderConfig, moved: bool) -> usize {
    own.max_parallel.map_or(if moved { PARALLEL_OWN } else { PARALLEL_PUBLIC }, NonZeroUsize::get)
}

fn limit(name: &str, field: &str, given: Option<f64>, usual: Duration) -> Result<Duration> {
    given.map_or(Ok(usual), |given| seconds(&format!("models.providers.{name}.{field}"), given))
}

fn seconds(field: &str, given: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(given)
        .map_err(|_| Failure::new(Code::ConfigInvalid, format!("{field} is {given}; it must be a number of seconds")))
}

fn nonempty_variable<'a>(variables: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// Reads a base URL. The URL itself is not shown: it may hold a password.
fn address(whence: &str, url: &str) -> Result<Url> {
    let invalid = |why: &str| {
        Failure::new(Code::ConfigInvalid, format!("{whence} is not an address of a model service: {why}"))
            .hint("write it like http://127.0.0.1:8000/v1")
    };
    let url = Url::parse(url.trim()).map_err(|error| invalid(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("it begins with neither http:// nor https://"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(invalid("it has a ? or # part"));
    }
    Ok(url)
}

/// Returns the address that `OLLAMA_HOST` means. Ollama's own server reads the same variable as the
/// address to listen on, so it may have no scheme, no port, or the address of "everywhere".
fn ollama_address(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/').trim_end_matches("/v1");
    let rest = if rest.starts_with(':') { format!("127.0.0.1{rest}") } else { rest.to_owned() };
    let after_address = rest.rsplit(']').next().unwrap_or(&rest);
    let with_port = if after_address.contains(':') || scheme == "https" { rest } else { format!("{rest}:11434") };
    format!("{scheme}://{}/v1", with_port.replacen("0.0.0.0", "127.0.0.1", 1))
}

#[cfg(test)]
#[path = "tests/settings.rs"]
mod tests;
