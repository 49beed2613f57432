//! Derives the client's settings from the environment and the configuration, once.
//!
//! The client itself reads no variable. Its builder passes the environment in as a map, so that tests and
//! `--env`-like options have the same effect as the real environment.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use chrono::{NaiveDate, Utc};
use reqwest::Url;
use reqwest::header::HeaderName;

use super::agents::{ACP, AgentSettings};
use super::config::{ModelsConfig, ProviderConfig, RetryConfig};
use super::prices;
use super::provider::{self, LOCAL, MaxTokensField, Provider, Wire};
use super::provider_defaults::{self, ProviderDefaults};
use crate::error::{Code, Failure, Result};
use crate::host::keys::StoredKeys;
use crate::host::network::Network;
use crate::host::secret::{KeySource, Secret};
use crate::model::budget::Price;
use crate::model::choice::ModelChoice;
use crate::model::text::excerpt;

/// The parallel calls to a public provider, below the limits that such providers set.
const PARALLEL_PUBLIC: usize = 16;

/// The parallel calls to a server of the user's own, which refuses by itself what is too much.
const PARALLEL_OWN: usize = 128;

/// How long a provider may be silent. Models that think first can take a minute until the first word.
const SILENCE: Duration = Duration::from_secs(120);

/// The address of providers whose own is not known: no server can have it.
const NOWHERE: &str = "https://unset.invalid";

/// How long a whole call may take, even if the server keeps sending signs of life.
const WHOLE_CALL: Duration = Duration::from_secs(60 * 60);

/// Everything that a [`Client`](super::Client) needs to know.
#[derive(Clone)]
pub struct ClientSettings {
    pub(super) providers: Vec<Provider>,
    pub(super) aliases: BTreeMap<String, ModelChoice>,
    pub(super) default: Option<String>,
    pub(super) prices: BTreeMap<String, Price>,
    /// The day by which prices and retirements count.
    pub(super) today: NaiveDate,
    pub(super) retry: RetryLimits,
    pub(super) network: Network,
    pub(super) agents: AgentSettings,
    /// The environment of key commands: the given one without the known keys.
    pub(super) child_environment: BTreeMap<String, String>,
}

/// The limits of repeated attempts.
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
    /// Derives the settings from the environment variables and the user's configuration.
    ///
    /// # Errors
    ///
    /// `config-invalid` if a configured value or an address in a variable is unusable.
    pub fn from_environment(variables: &BTreeMap<String, String>, config: &ModelsConfig) -> Result<ClientSettings> {
        let mut providers = Vec::new();
        let nothing = ProviderConfig::default();
        for defaults in provider_defaults::ALL {
            let user_config = config.providers.get(defaults.name).unwrap_or(&nothing);
            providers.push(known_provider(defaults, user_config, variables)?);
        }
        for (name, user_config) in &config.providers {
            if !provider_defaults::ALL.iter().any(|defaults| defaults.name == name) {
                providers.push(custom_provider(name, user_config, variables)?);
            }
        }
        Ok(ClientSettings {
            providers,
            aliases: config.aliases.clone(),
            default: config.default.clone(),
            prices: check_prices(&config.prices)?,
            today: Utc::now().date_naive(),
            retry: RetryLimits::new(&config.retry)?,
            network: Network::from_environment(variables)?,
            agents: agents(variables, config)?,
            child_environment: without_keys(variables, config),
        })
    }

    /// Sets the day by which prices and retirements count, for clocks that are not the system's.
    pub(crate) fn on(self, today: NaiveDate) -> ClientSettings {
        ClientSettings { today, ..self }
    }

    /// Gives stored keys to the providers for which neither a variable nor a command in the configuration has one.
    #[must_use]
    pub fn with_stored_keys(mut self, keys: &StoredKeys, config: &ModelsConfig) -> ClientSettings {
        for provider in &mut self.providers {
            let has_command =
                config.providers.get(&provider.name).is_some_and(|user_config| user_config.key_command.is_some());
            let gives_way = match &provider.key {
                KeySource::Missing(_) | KeySource::NotNeeded => true,
                KeySource::Command(_) => !has_command,
                KeySource::Variable { .. } | KeySource::Stored(_) | KeySource::NoAddress(_) => false,
            };
            if let Some(key) = keys.get(&provider.name).filter(|_| gives_way) {
                provider.key = KeySource::Stored(key.clone());
            }
        }
        self
    }

    /// Returns the price of `provider/model`, if it is known.
    pub fn price(&self, model: &str) -> Option<Price> {
        prices::price(&self.prices, &self.providers, model, self.today)
    }
}

/// Returns what agents are started with.
fn agents(variables: &BTreeMap<String, String>, config: &ModelsConfig) -> Result<AgentSettings> {
    for (name, agent) in &config.agents {
        let invalid = |why: &str| Failure::new(Code::ConfigInvalid, format!("models.agents.{name}: {why}"));
        if name.is_empty() || name.contains(['/', ' ']) {
            return Err(invalid("an agent's name has at least one character, no slash and no blank"));
        }
        if agent.seconds.is_some_and(|given| !(given > 0.0 && Duration::try_from_secs_f64(given).is_ok())) {
            return Err(invalid("seconds must be a number above 0"));
        }
    }
    let named = config.default.iter().cloned().chain(config.aliases.values().map(|choice| choice.model.clone()));
    Ok(AgentSettings {
        configured: config.agents.clone(),
        variables: variables.clone(),
        child_environment: without_keys(variables, config),
        named: named.collect(),
    })
}

/// Returns the environment without the variables that hold keys of models, for commands that the user names.
pub fn without_keys(variables: &BTreeMap<String, String>, config: &ModelsConfig) -> BTreeMap<String, String> {
    let known = provider_defaults::ALL.iter().flat_map(|defaults| defaults.key_variables).copied();
    let named = config.providers.values().filter_map(|user_config| user_config.key_env.as_deref());
    let keys: Vec<&str> = known.chain(named).collect();
    let others = variables.iter().filter(|(name, _)| !keys.contains(&name.as_str()));
    others.map(|(name, value)| (name.clone(), value.clone())).collect()
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

/// Returns a built-in provider, with the user's changes.
fn known_provider(
    defaults: &ProviderDefaults,
    user_config: &ProviderConfig,
    variables: &BTreeMap<String, String>,
) -> Result<Provider> {
    let variable = nonempty_variable(variables, defaults.base_variable);
    let mut unset = Vec::new();
    let base = match (&user_config.base_url, variable) {
        (Some(url), _) => address(&format!("models.providers.{}.base_url", defaults.name), url)?,
        (None, Some(value)) if defaults.base_variable == "OLLAMA_HOST" => {
            address(defaults.base_variable, &ollama_address(value))?
        }
        (None, Some(url)) => address(defaults.base_variable, url)?,
        (None, None) => match filled(defaults.base_url, variables) {
            Ok(url) => address(defaults.name, &url)?,
            Err(names) => {
                unset = names;
                address(defaults.name, NOWHERE)?
            }
        },
    };
    let moved = user_config.base_url.is_some() || variable.is_some();
    let names = match &user_config.key_env {
        Some(name) => vec![name.clone()],
        None => defaults.key_variables.iter().map(|&name| name.to_owned()).collect(),
    };
    let json_schema = user_config.json_schema.unwrap_or(defaults.json_schema);
    Ok(Provider {
        wire: user_config.wire.unwrap_or(defaults.wire),
        wire_by_family: user_config.wire.is_none() && !moved,
        key: match unset.is_empty() {
            // Servers of one's own mostly want no key.
            true => {
                let needed = defaults.needs_key && !provider::is_on_this_machine(&base);
                key_source(names, needed, (user_config, defaults.key_command), variables)
            }
            false => KeySource::NoAddress(unset),
        },
        key_header: key_header(defaults.name, user_config.key_header.as_deref().or(defaults.key_header))?,
        model: user_config.model.clone().or_else(|| defaults.model.map(str::to_owned)),
        models_path: defaults.models_path,
        own_names: defaults.own_names,
        max_parallel: parallel(user_config, moved || defaults.models_path.is_some()),
        silence: limit(defaults.name, "timeout_seconds", user_config.timeout_seconds, SILENCE)?,
        call_limit: limit(defaults.name, "call_seconds", user_config.call_seconds, WHOLE_CALL)?,
        json_schema,
        schema_by_family: user_config.json_schema.is_none(),
        may_ignore_schemas: moved || defaults.models_path.is_some() || !json_schema,
        max_tokens_field: user_config.max_tokens_field.unwrap_or(if moved {
            MaxTokensField::MaxTokens
        } else {
            defaults.max_tokens_field
        }),
        name: defaults.name.to_owned(),
        base,
        moved,
    })
}

/// Returns a provider that exists only in the user's configuration.
fn custom_provider(name: &str, user_config: &ProviderConfig, variables: &BTreeMap<String, String>) -> Result<Provider> {
    let invalid = |why: &str| Failure::new(Code::ConfigInvalid, format!("models.providers.{name}: {why}"));
    if name == ACP {
        return Err(invalid("this name stands for agents").hint("choose another name; agents stand in models.agents"));
    }
    if name == LOCAL {
        return Err(invalid("this name stands for the models that nietz runs itself").hint("choose another name"));
    }
    if name.is_empty() || name.contains('/') {
        return Err(invalid("a provider's name has at least one character and no slash"));
    }
    let Some(url) = &user_config.base_url else {
        let known = provider_defaults::ALL.iter().map(|defaults| defaults.name);
        let failure = invalid("it has no base_url, and it is not a provider that nietz knows");
        return Err(match crate::error::nearest(name, known) {
            Some(suggestion) => failure.hint(format!("did you mean {suggestion}? otherwise add its base_url")),
            None => failure.hint("add its base_url"),
        });
    };
    Ok(Provider {
        name: name.to_owned(),
        wire: user_config.wire.unwrap_or(Wire::OpenAi),
        wire_by_family: false,
        base: address(&format!("models.providers.{name}.base_url"), url)?,
        moved: true,
        key: key_source(
            user_config.key_env.iter().cloned().collect(),
            user_config.key_env.is_some(),
            (user_config, &[]),
            variables,
        ),
        key_header: key_header(name, user_config.key_header.as_deref())?,
        model: user_config.model.clone(),
        models_path: None,
        own_names: false,
        max_parallel: parallel(user_config, true),
        silence: limit(name, "timeout_seconds", user_config.timeout_seconds, SILENCE)?,
        call_limit: limit(name, "call_seconds", user_config.call_seconds, WHOLE_CALL)?,
        json_schema: user_config.json_schema.unwrap_or(true),
        schema_by_family: false,
        may_ignore_schemas: true,
        max_tokens_field: user_config.max_tokens_field.unwrap_or(MaxTokensField::MaxTokens),
    })
}

fn key_source(
    names: Vec<String>,
    needed: bool,
    (user_config, usual_command): (&ProviderConfig, &[&str]),
    variables: &BTreeMap<String, String>,
) -> KeySource {
    for name in &names {
        if let Some(key) = variables.get(name).and_then(|value| Secret::new(value)) {
            return KeySource::Variable { name: name.clone(), key };
        }
    }
    match &user_config.key_command {
        Some(command) => KeySource::Command(command.clone()),
        None if needed && !usual_command.is_empty() => {
            KeySource::Command(usual_command.iter().map(|&word| word.to_owned()).collect())
        }
        None if needed => KeySource::Missing(names),
        None => KeySource::NotNeeded,
    }
}

fn key_header(provider: &str, name: Option<&str>) -> Result<Option<HeaderName>> {
    let Some(name) = name else { return Ok(None) };
    HeaderName::try_from(name).map(Some).map_err(|_| {
        let message = format!("models.providers.{provider}.key_header: `{}` is no name of a header", excerpt(name));
        Failure::new(Code::ConfigInvalid, message).hint("write it like api-key")
    })
}

/// Returns an address with the variables that it names, or the names of those that are not set.
fn filled(address: &str, variables: &BTreeMap<String, String>) -> std::result::Result<String, Vec<String>> {
    let (mut whole, mut unset, mut rest) = (String::new(), Vec::new(), address);
    while let Some((before, name, behind)) = rest
        .split_once('{')
        .and_then(|(before, behind)| behind.split_once('}').map(|(name, behind)| (before, name, behind)))
    {
        whole.push_str(before);
        let (name, left_out) = name.split_once(":-").map_or((name, None), |(name, word)| (name, Some(word)));
        match nonempty_variable(variables, name) {
            Some(value) if left_out == Some(value) => {}
            Some(value) if left_out.is_some() => whole.push_str(&format!("{value}-")),
            Some(value) => whole.push_str(value.trim_end_matches('/')),
            None if unset.iter().any(|one| one == name) => {}
            None => unset.push(name.to_owned()),
        }
        rest = behind;
    }
    whole.push_str(rest);
    if unset.is_empty() { Ok(whole) } else { Err(unset) }
}

fn parallel(user_config: &ProviderConfig, moved: bool) -> usize {
    user_config.max_parallel.map_or(if moved { PARALLEL_OWN } else { PARALLEL_PUBLIC }, NonZeroUsize::get)
}

fn limit(name: &str, field: &str, given: Option<f64>, default: Duration) -> Result<Duration> {
    given.map_or(Ok(default), |given| seconds(&format!("models.providers.{name}.{field}"), given))
}

fn seconds(field: &str, given: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(given)
        .map_err(|_| Failure::new(Code::ConfigInvalid, format!("{field} is {given}; it must be a number of seconds")))
}

fn nonempty_variable<'a>(variables: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// Parses a base URL. Messages do not show the URL: it may hold a password.
fn address(source: &str, url: &str) -> Result<Url> {
    let invalid = |why: &str| {
        Failure::new(Code::ConfigInvalid, format!("{source} is not an address of a model service: {why}"))
            .hint("write it like http://127.0.0.1:8000/v1")
    };
    let url = Url::parse(url.trim()).map_err(|error| invalid(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("it begins with neither http:// nor https://"));
    }
    if url.fragment().is_some() {
        return Err(invalid("it has a # part"));
    }
    Ok(url)
}

/// Returns the address that `OLLAMA_HOST` means. Ollama's own server reads the same variable as the
/// address to listen on, so it may lack scheme and port, or be the wildcard address.
fn ollama_address(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/').trim_end_matches("/v1");
    let rest = if rest.starts_with(':') { format!("127.0.0.1{rest}") } else { rest.to_owned() };
    let after_address = rest.rsplit(']').next().unwrap_or(&rest);
    let with_port = if after_address.contains(':') || scheme == "https" { rest } else { format!("{rest}:11434") };
    format!("{scheme}://{}/v1", with_port.replacen("0.0.0.0", "127.0.0.1", 1))
}

#[cfg(test)]
mod tests;
