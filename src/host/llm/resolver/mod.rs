//! Decides which model a name means, which model is the default, and why.

use std::cell::OnceCell;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::OnceCell as AsyncOnceCell;

use super::agents::{ACP, Agents};
use super::families;
use super::http;
use super::local_config::{NamedWeights, with_whole_path};
use super::provider::{LOCAL, Provider, Wire};
use super::settings::ClientSettings;
use super::stream;
use crate::error::{Code, Failure, Result, nearest};
use crate::host::Models;
use crate::host::secret::KeySource;
use crate::model::chat::Effort;
use crate::model::text::excerpt;

/// Why the configured model is the default.
const CONFIGURED: &str = "it is models.default in the configuration";

/// How long a server on this machine may take to answer a probe.
const PROBE_LIMIT: Duration = Duration::from_millis(300);

/// The model for callers that name none.
#[derive(Clone, Debug, PartialEq)]
pub struct DefaultModel {
    /// As `provider/model`.
    pub model: String,
    pub why: String,
}

/// One line of `nietz models`: a provider and what is needed to use it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderSummary {
    pub provider: String,
    /// The model that `--model <provider>` means.
    pub model: Option<String>,
    pub key: KeyState,
    /// Why this provider's model is the default, if it is.
    pub chosen: Option<String>,
}

/// Whether there is a key, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyState {
    NotNeeded,
    /// The variable that holds the key.
    Variable(String),
    Command,
    /// Where nietz keeps the key, as the end of a sentence.
    Stored(&'static str),
    /// The variables that could hold the key.
    Missing(Vec<String>),
}

/// What is known of a model without asking any server.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFacts {
    /// As `provider/model`; absent where a server has to be asked.
    pub model: Option<String>,
    pub why: String,
    /// Its provider, if that is one over the network.
    pub provider: Option<ProviderFacts>,
    /// The steps of thinking that it has, if that is known.
    pub efforts: Option<Vec<Effort>>,
}

/// A provider as it is used, without secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderFacts {
    pub name: String,
    /// Without a user, a password and a query, which may be secrets; absent if it has none.
    pub address: Option<String>,
    pub wire: Wire,
    pub key: KeyState,
}

impl ProviderFacts {
    fn of(provider: &Provider, model: &str) -> ProviderFacts {
        let is_set = !matches!(provider.key, KeySource::NoAddress(_));
        let address = format!("{}{}", provider.base.origin().ascii_serialization(), provider.base.path());
        ProviderFacts {
            name: provider.name.clone(),
            address: is_set.then_some(address),
            wire: families::profile(provider, model).wire_at(provider),
            key: KeyState::of(&provider.key),
        }
    }
}

impl KeyState {
    pub(super) fn of(key: &KeySource) -> KeyState {
        match key {
            KeySource::NotNeeded => KeyState::NotNeeded,
            KeySource::Variable { name, .. } => KeyState::Variable(name.clone()),
            KeySource::Command(_) => KeyState::Command,
            KeySource::Stored(key) => KeyState::Stored(key.place()),
            KeySource::Missing(names) | KeySource::NoAddress(names) => KeyState::Missing(names.clone()),
        }
    }
}

/// The adapter of the provider `local`, and its default model.
pub(super) struct LocalProvider {
    pub(super) models: Box<dyn Models>,
    pub(super) model: String,
}

/// Why there is no local model in a build without one.
const NOT_BUILT_IN: &str = "this build of nietz runs no local model";

/// Resolves names to models. Each server is asked once.
pub(super) struct Resolver {
    pub(super) settings: ClientSettings,
    pub(super) local: Option<LocalProvider>,
    /// Why there is none, if there is none.
    pub(super) no_local: String,
    /// The files of weights that the user has named.
    pub(super) named_weights: NamedWeights,
    pub(super) agents: Agents,
    choice: AsyncOnceCell<DefaultModel>,
    /// The first model of the local server that lists its models, if it answered.
    found: AsyncOnceCell<Option<String>>,
    http: OnceCell<reqwest::Client>,
}

impl Resolver {
    pub(super) fn new(settings: ClientSettings) -> Resolver {
        let named_weights = NamedWeights::default();
        settings.agents.named.iter().for_each(|model| named_weights.allow(model));
        Resolver {
            agents: Agents::new(settings.agents.clone()),
            settings,
            local: None,
            no_local: NOT_BUILT_IN.to_owned(),
            named_weights,
            choice: AsyncOnceCell::new(),
            found: AsyncOnceCell::new(),
            http: OnceCell::new(),
        }
    }

    /// Returns the HTTP client, which is built at first need.
    pub(super) fn http(&self) -> Result<&reqwest::Client> {
        if let Some(client) = self.http.get() {
            return Ok(client);
        }
        let client = http::client(&self.settings.network)?;
        Ok(self.http.get_or_init(|| client))
    }

    pub(super) async fn resolve(&self, name: Option<&str>) -> Result<String> {
        match name {
            Some(name) => self.expand(name).await,
            None => Ok(self.default_model().await?.model.clone()),
        }
    }

    pub(super) async fn default_model(&self) -> Result<&DefaultModel> {
        self.choice.get_or_try_init(|| self.choose()).await
    }

    pub(super) async fn provider_summaries(&self) -> Vec<ProviderSummary> {
        let choice = self.default_model().await.ok();
        let chosen = |name: &str| {
            let choice = choice?;
            (choice.model.split_once('/')?.0 == name).then(|| format!("{}: {}", choice.model, choice.why))
        };
        let mut rows = Vec::new();
        for provider in &self.settings.providers {
            rows.push(ProviderSummary {
                provider: provider.name.clone(),
                model: self.model_of(provider).await.map(str::to_owned),
                key: KeyState::of(&provider.key),
                chosen: chosen(&provider.name),
            });
        }
        if let Some(local) = &self.local {
            rows.push(ProviderSummary {
                provider: LOCAL.to_owned(),
                model: Some(local.model.clone()),
                key: KeyState::NotNeeded,
                chosen: chosen(LOCAL),
            });
        }
        rows
    }

    async fn choose(&self) -> Result<DefaultModel> {
        if let Some(name) = &self.settings.default {
            let model = self.expand(name).await?;
            return Ok(DefaultModel { model, why: CONFIGURED.to_owned() });
        }
        if let Some(choice) = self.choice_by_key() {
            return Ok(choice);
        }
        for provider in self.settings.providers.iter().filter(|provider| provider.models_path.is_some()) {
            // The server is probed even if a model is configured, to see whether it runs.
            if let Some(listed) = self.probe(provider).await {
                let model = provider.model.as_deref().unwrap_or(listed);
                let why = format!("there is no key, and {} answers", provider.name);
                return Ok(DefaultModel { model: format!("{}/{model}", provider.name), why });
            }
        }
        if let Some(LocalProvider { model, .. }) = &self.local {
            let why = "there is no key, and no server answers".to_owned();
            return Ok(DefaultModel { model: format!("{LOCAL}/{model}"), why });
        }
        let variables = super::provider_defaults::ALL.iter().filter(|defaults| defaults.needs_key);
        let variables: Vec<&str> = variables.filter_map(|defaults| defaults.key_variables.first().copied()).collect();
        Err(Failure::new(Code::KeyMissing, "there is no model: no key is set, and no local one can be had")
            .because(&self.no_local)
            .hint(format!("put a key into one of {}, or start Ollama", variables.join(", "))))
    }

    /// Returns the model of the first provider with a key.
    fn choice_by_key(&self) -> Option<DefaultModel> {
        let keyed = |provider: &&Provider| !matches!(provider.key, KeySource::Missing(_) | KeySource::NoAddress(_));
        for provider in self.settings.providers.iter().filter(keyed) {
            let why = match (&provider.key, provider.models_path) {
                (_, Some(_)) => continue,
                (KeySource::Variable { name, .. }, _) => format!("{name} is set"),
                (KeySource::Stored(key), _) => format!("its key is {}", key.place()),
                _ => format!("models.providers.{} is configured", provider.name),
            };
            if let Some(model) = &provider.model {
                return Some(DefaultModel { model: format!("{}/{model}", provider.name), why });
            }
        }
        None
    }

    async fn expand(&self, name: &str) -> Result<String> {
        if let Some(model) = self.expand_known(name)? {
            return Ok(model);
        }
        let name = self.plain(name);
        let provider = self.settings.providers.iter().find(|provider| provider.name == name);
        let found = match provider {
            Some(provider) => self.probe(provider).await,
            None => None,
        };
        found.map(|model| format!("{name}/{model}")).ok_or_else(|| unsaid(name))
    }

    /// Returns the full name for a name; `None` where a server has to be asked which model it means.
    fn expand_known(&self, name: &str) -> Result<Option<String>> {
        let name = self.plain(name);
        if name.contains('/') {
            let (provider, _) = self.split(name)?;
            if provider == LOCAL {
                self.local()?;
                return with_whole_path(name).map(Some);
            }
            if let Some((ACP, agent)) = name.split_once('/') {
                self.agents.check(agent)?;
            }
            return Ok(Some(name.to_owned()));
        }
        if name == ACP {
            return Err(
                unsaid(ACP).hint("write acp/ and an agent: claude, codex, gemini, or one of your configuration")
            );
        }
        if name == LOCAL {
            return Ok(Some(format!("{LOCAL}/{}", self.local()?.model)));
        }
        let provider = self.settings.providers.iter().find(|provider| provider.name == name);
        let provider = provider.ok_or_else(|| self.unknown(name))?;
        match (&provider.model, provider.models_path) {
            (Some(model), _) => Ok(Some(format!("{name}/{model}"))),
            (None, Some(_)) => Ok(None),
            (None, None) => Err(unsaid(name)),
        }
    }

    /// Returns what an alias stands for, or the name itself.
    fn plain<'n>(&'n self, name: &'n str) -> &'n str {
        self.settings.aliases.get(name).map_or(name, |choice| choice.model.as_str()).trim()
    }

    /// Returns what is known of a model, or of the one for callers that name none, without asking any server.
    pub(super) fn facts(&self, name: Option<&str>) -> Result<ModelFacts> {
        let (model, why) = match (name, &self.settings.default) {
            (Some(name), _) => (self.expand_known(name)?, "named".to_owned()),
            (None, Some(name)) => (self.expand_known(name)?, CONFIGURED.to_owned()),
            (None, None) => match self.choice_by_key() {
                Some(DefaultModel { model, why }) => (Some(model), why),
                None => {
                    (None, "there is no key: a server of this machine is asked, else the local model is".to_owned())
                }
            },
        };
        let facts = |model: &str| {
            let (name, model) = model.split_once('/')?;
            let provider = self.settings.providers.iter().find(|provider| provider.name == name)?;
            let efforts = families::profile(provider, model).efforts.map(|efforts| efforts.into_iter().collect());
            Some((ProviderFacts::of(provider, model), efforts))
        };
        let (provider, efforts) = model.as_deref().and_then(facts).unzip();
        Ok(ModelFacts { provider, efforts: efforts.flatten(), model, why })
    }

    /// Returns the model that a provider's bare name means.
    async fn model_of<'a>(&'a self, provider: &'a Provider) -> Option<&'a str> {
        match (&provider.model, provider.models_path) {
            (Some(model), _) => Some(model),
            (None, Some(_)) => self.probe(provider).await,
            (None, None) => None,
        }
    }

    /// Splits a full name, and checks that its provider is known.
    pub(super) fn split<'n>(&self, name: &'n str) -> Result<(&'n str, &'n str)> {
        let is_known = |name: &str| {
            name == LOCAL || name == ACP || self.settings.providers.iter().any(|provider| provider.name == name)
        };
        name.split_once('/')
            .filter(|(provider, model)| is_known(provider) && !model.is_empty())
            .ok_or_else(|| self.unknown(name))
    }

    pub(super) fn local(&self) -> Result<&LocalProvider> {
        self.local.as_ref().ok_or_else(|| {
            Failure::new(Code::ModelUnknown, self.no_local.clone())
                .hint("name a model of a provider; `nietz models` shows them")
        })
    }

    /// Returns the failure for a name that means no provider, with the nearest known one.
    pub(super) fn unknown_provider(&self, name: &str) -> Failure {
        let failure = Failure::new(Code::ModelUnknown, format!("there is no provider named {}", excerpt(name)));
        match nearest(name, self.settings.providers.iter().map(|provider| provider.name.as_str())) {
            Some(suggestion) => failure.hint(format!("did you mean {suggestion}?")),
            None => failure.hint("`nietz models` shows the providers; config.yaml can name more"),
        }
    }

    /// Returns the failure for a name that means no model, with the nearest known name.
    pub(super) fn unknown(&self, name: &str) -> Failure {
        let providers = || self.settings.providers.iter().map(|provider| provider.name.as_str()).chain([LOCAL]);
        let failure = Failure::new(Code::ModelUnknown, format!("there is no model named {}", excerpt(name)));
        let suggestion = match name.split_once('/') {
            Some((provider, model)) if !model.is_empty() => {
                nearest(provider, providers()).map(|suggestion| format!("{suggestion}/{}", excerpt(model)))
            }
            Some((provider, _)) => nearest(provider, providers()).map(|suggestion| format!("{suggestion}/<model>")),
            None => {
                nearest(name, self.settings.aliases.keys().map(String::as_str).chain(providers())).map(str::to_owned)
            }
        };
        match suggestion {
            Some(suggestion) => failure.hint(format!("did you mean {suggestion}?")),
            None => {
                failure.hint("write provider/model, such as openai/gpt-6.1-terra; `nietz models` shows the providers")
            }
        }
    }

    /// Asks a server for its models, once, and returns the first; `None` if the server does not answer at once.
    async fn probe(&self, provider: &Provider) -> Option<&str> {
        self.found.get_or_init(|| self.ask_for_models(provider)).await.as_deref()
    }

    async fn ask_for_models(&self, provider: &Provider) -> Option<String> {
        #[derive(Deserialize)]
        struct ModelList {
            models: Vec<ListedModel>,
        }
        #[derive(Deserialize)]
        struct ListedModel {
            name: String,
        }
        let mut url = provider.base.clone();
        url.set_path(provider.models_path?);
        let answer = async {
            let response = self.http().ok()?.get(url).send().await.ok()?;
            if !response.status().is_success() {
                return None;
            }
            serde_json::from_str::<ModelList>(&stream::read_start(response).await).ok()
        };
        let list = tokio::time::timeout(PROBE_LIMIT, answer).await.ok()??;
        list.models.into_iter().next().map(|entry| entry.name)
    }
}

fn unsaid(provider: &str) -> Failure {
    Failure::new(Code::ModelUnknown, format!("{provider} is a provider, and which model is not said"))
        .hint(format!("write {provider}/<model>"))
}

#[cfg(test)]
mod tests;
