//! The client: which provider answers a call, with which key, how many calls run at once, and the loop of attempts.

use std::collections::BTreeMap;

use futures_util::future::LocalBoxFuture;
use tokio::sync::{Mutex, OnceCell, Semaphore};

use super::agents::ACP;
use super::attachments;
use super::attempt_error::{AttemptError, CallContext};
use super::cache::Sent;
use super::effort;
use super::families::{self, LearnedProfiles};
use super::http;
use super::lifetimes::Told;
use super::partial_reply::ReplyPiece;
use super::provider::{LOCAL, Provider};
use super::refusal::RequestPart;
use super::resolver::{DefaultModel, KeyState, LocalProvider, ModelFacts, ProviderSummary, Resolver};
use super::retry::Attempts;
use super::schema;
use super::served::{self, ServedModel};
use super::settings::ClientSettings;
use super::state;
use crate::error::{Code, Failure, Lost, Result};
use crate::host::secret::{KeySource, Secret, StoredKey, look_up, run_command};
use crate::host::{CallEvent, Models, keys};
use crate::model::budget::Price;
use crate::model::chat::{ChatReply, ChatRequest, Effort};
use crate::model::choice::ModelChoice;
use crate::model::redact::Redactor;

/// Access to all models, each by its name `provider/model`.
///
/// Building a client costs next to nothing: TLS, keys from commands and the choice of a model wait until
/// they are needed. A client belongs to one thread, as flows do.
pub struct Client {
    resolver: Resolver,
    learned: LearnedProfiles,
    sent: Sent,
    told: Told,
    /// Learns every key that a command prints, to redact it.
    redactor: Redactor,
    /// Whether somebody reads what models think.
    wants_thoughts: bool,
    /// One state for each provider, in the order of the settings.
    provider_states: Vec<ProviderState>,
}

/// What the calls to one provider share.
struct ProviderState {
    permits: Semaphore,
    /// The key that a command printed. Locked while the command runs, so that it runs once.
    key: Mutex<Option<Secret>>,
    /// The names of the models that it serves, asked for when it first refuses one; none if it does not tell.
    served: OnceCell<Vec<String>>,
}

impl Client {
    pub fn new(settings: ClientSettings) -> Client {
        let provider_state = |provider: &Provider| {
            let permits = provider.max_parallel.min(Semaphore::MAX_PERMITS);
            ProviderState { permits: Semaphore::new(permits), key: Mutex::new(None), served: OnceCell::new() }
        };
        let provider_states = settings.providers.iter().map(provider_state).collect();
        Client {
            resolver: Resolver::new(settings),
            learned: LearnedProfiles::default(),
            sent: Sent::default(),
            told: Told::default(),
            redactor: Redactor::default(),
            wants_thoughts: false,
            provider_states,
        }
    }

    /// Adds the redactor that learns every key that a command prints, before the key is used.
    pub fn with_redactor(self, redactor: Redactor) -> Client {
        Client { redactor, ..self }
    }

    /// Sets whether models are asked to show what they think, where they do so only when asked. This holds for all calls: a
    /// conversation whose settings change from one call to the next is not found in the provider's cache.
    pub fn with_thoughts(self, wanted: bool) -> Client {
        Client { wants_thoughts: wanted, ..self }
    }

    /// Adds the models that answer calls to `local/…`, and the one that is used when no other is available.
    pub fn with_local(mut self, models: Box<dyn Models>, model: impl Into<String>) -> Client {
        self.resolver.local = Some(LocalProvider { models, model: model.into() });
        self
    }

    /// Returns the full name, `provider/model`, for an alias, a provider or a full name, or for no name at all.
    ///
    /// # Errors
    ///
    /// `model-unknown` if the name means no model; without a name, the errors of [`Client::default_model`].
    pub async fn resolve(&self, name: Option<&str>) -> Result<String> {
        let model = self.resolver.resolve(name).await?;
        self.allow(&model);
        Ok(model)
    }

    /// Says why no local model is used.
    pub fn without_local(mut self, why: impl Into<String>) -> Client {
        self.resolver.no_local = why.into();
        self
    }

    /// Notes that the user has said the name of this model, which may be an agent or a file of weights. No other agent is
    /// started, and no other file read.
    pub fn allow(&self, model: &str) {
        self.resolver.agents.allow(model);
        self.resolver.named_weights.allow(model);
    }

    /// Returns the agents that are known, each with its command if that is installed.
    pub fn agents(&self) -> Vec<(String, Option<String>)> {
        self.resolver.agents.list()
    }

    /// Returns the model for callers that name none: the configured one, else that of the first provider
    /// with a key, else one of a running Ollama, else the local one.
    ///
    /// # Errors
    ///
    /// `key-missing` if there is no model at all, `model-unknown` if the configured one does not exist.
    pub async fn default_model(&self) -> Result<&DefaultModel> {
        self.resolver.default_model().await
    }

    /// Returns a summary of each provider, and why the default one was chosen.
    pub async fn provider_summaries(&self) -> Vec<ProviderSummary> {
        self.resolver.provider_summaries().await
    }

    /// Returns where the key of a provider comes from.
    ///
    /// # Errors
    ///
    /// `model-unknown` if there is no such provider over the network.
    pub fn key_state(&self, provider: &str) -> Result<KeyState> {
        Ok(KeyState::of(&self.provider(provider)?.0.key))
    }

    /// Returns what is known of a model, or of the one for callers that name none, without asking any server.
    ///
    /// # Errors
    ///
    /// `model-unknown` if the name means no model.
    pub fn facts(&self, name: Option<&str>) -> Result<ModelFacts> {
        self.resolver.facts(name)
    }

    /// Returns where the key of each provider comes from.
    pub fn key_states(&self) -> impl Iterator<Item = (&str, KeyState)> {
        self.resolver.settings.providers.iter().map(|provider| (provider.name.as_str(), KeyState::of(&provider.key)))
    }

    /// Returns the short names that the user gave to models.
    pub fn aliases(&self) -> &BTreeMap<String, ModelChoice> {
        &self.resolver.settings.aliases
    }

    /// Returns the notice that `provider/model` is switched off soon, once.
    pub fn retirement(&self, model: &str) -> Option<String> {
        let (name, _) = model.split_once('/')?;
        let settings = &self.resolver.settings;
        let provider = settings.providers.iter().find(|provider| provider.name == name)?;
        self.told.retirement(provider, model, settings.today)
    }

    /// Returns the effort that comes with a name, if it is an alias; without a name, with that of the configured default.
    pub fn effort_of(&self, name: Option<&str>) -> Option<Effort> {
        let settings = &self.resolver.settings;
        settings.aliases.get(name.or(settings.default.as_deref())?)?.effort
    }

    /// Asks a provider for the list of its models.
    ///
    /// # Errors
    ///
    /// `model-unknown` if there is no such provider, otherwise why there is no list.
    pub async fn served(&self, provider: &str) -> Result<Vec<ServedModel>> {
        let (provider, provider_state) = self.provider(provider)?;
        let key = self.key(provider, provider_state).await?;
        served::list(self.resolver.http()?, provider, key.as_ref()).await
    }

    /// Returns the names of a provider's models, which it is asked for once.
    async fn served_names<'a>(&self, provider: &Provider, provider_state: &'a ProviderState) -> &'a [String] {
        let ask = async || {
            if provider.own_names {
                return None;
            }
            let key = self.key(provider, provider_state).await.ok()?;
            let client = self.resolver.http().ok()?;
            let listed = served::list(client, provider, key.as_ref());
            let listed = tokio::time::timeout(served::TIME_LIMIT_OF_A_REFUSAL, listed).await.ok()?.ok()?;
            Some(listed.into_iter().map(|model| model.name).collect())
        };
        provider_state.served.get_or_init(async || ask().await.unwrap_or_default()).await
    }

    fn provider(&self, name: &str) -> Result<(&Provider, &ProviderState)> {
        let mut providers = self.resolver.settings.providers.iter().zip(&self.provider_states);
        providers.find(|(provider, _)| provider.name == name).ok_or_else(|| self.resolver.unknown_provider(name))
    }

    /// Returns the key of a provider; `None` if it needs none.
    async fn key(&self, provider: &Provider, provider_state: &ProviderState) -> Result<Option<Secret>> {
        match &provider.key {
            KeySource::NotNeeded => Ok(None),
            KeySource::Variable { key, .. } => Ok(Some(key.clone())),
            KeySource::Missing(variables) => {
                let names = variables.join(" or ");
                Err(Failure::new(Code::KeyMissing, format!("there is no key for {}", provider.name)).hint(format!(
                    "put the key into the variable {names} or store it (`nietz models key {}`), or name another model",
                    provider.name
                )))
            }
            KeySource::NoAddress(variables) => {
                Err(Failure::new(Code::ConfigInvalid, format!("{} has no address", provider.name))
                    .hint(format!("set {}, or name another model", variables.join(" and "))))
            }
            KeySource::Stored(StoredKey::InFile(key)) => Ok(Some(key.clone())),
            KeySource::Command(command) | KeySource::Stored(StoredKey::InKeyring(command)) => {
                let mut cached_key = provider_state.key.lock().await;
                if cached_key.is_none() {
                    let environment = &self.resolver.settings.child_environment;
                    let (place, key) = match provider.key {
                        KeySource::Command(_) => {
                            let place = provider.key.describe(&provider.name);
                            let key = run_command(&place, command, environment).await?;
                            (place, key)
                        }
                        _ => (keys::shown_name(&provider.name), look_up(&provider.name, command, environment).await?),
                    };
                    key.tell(&self.redactor, &place);
                    *cached_key = Some(key);
                }
                Ok(cached_key.clone())
            }
        }
    }

    /// Returns the provider of `provider/model`, and the model without it.
    fn provider_of<'m>(&self, model: &'m str) -> Option<(&Provider, &'m str)> {
        let (name, model) = model.split_once('/')?;
        Some((self.resolver.settings.providers.iter().find(|provider| provider.name == name)?, model))
    }

    /// Keeps what a server refused for all later calls of the run, and says it once.
    fn learn(&self, provider: &Provider, model: &str, part: RequestPart, report: &mut dyn FnMut(CallEvent<'_>)) {
        if self.learned.learn(provider, model, part) {
            report(CallEvent::Notice(&part.notice(&format!("{}/{model}", provider.name))));
        }
    }

    async fn call(&self, request: &ChatRequest, report: &mut dyn FnMut(CallEvent<'_>)) -> Result<ChatReply> {
        let (name, model) = self.resolver.split(&request.model)?;
        attachments::check(&self.resolver.settings, request)?;
        if name == LOCAL {
            self.resolver.named_weights.check(&request.model)?;
            if let Some(notice) = self.told.small(&request.model) {
                report(CallEvent::Notice(&notice));
            }
            return self.resolver.local()?.models.chat(request, report).await;
        }
        if name == ACP {
            return self.resolver.agents.chat(model, request, &self.redactor, report).await;
        }
        let (provider, provider_state) = self.provider(name)?;
        if let Some(notice) = self.retirement(&request.model) {
            report(CallEvent::Notice(&notice));
        }
        let mut lost = Lost::default();
        let calling = self.call_with_retries((provider, provider_state), model, request, report, &mut lost);
        let outcome = match tokio::time::timeout(provider.call_limit, calling).await {
            Ok(outcome) => outcome,
            Err(_) => Err(took_too_long(provider, &request.model)),
        };
        let outcome = match outcome {
            Err(failure) if failure.code == Code::ModelUnknown => {
                let served = self.served_names(provider, provider_state).await;
                Err(served::with_served(failure, provider, model, served))
            }
            outcome => outcome,
        };
        let lost = (lost.attempts > 0).then_some(lost);
        match outcome {
            Ok(reply) => Ok(ChatReply { lost, ..reply }),
            Err(failure) => Err(Failure { lost: lost.map(Box::new), ..failure }),
        }
    }

    /// Asks a provider, and repeats the attempt where that can help. `lost` counts incomplete replies from their first
    /// piece on, because the caller may drop this future at any time.
    async fn call_with_retries(
        &self,
        (provider, provider_state): (&Provider, &ProviderState),
        model: &str,
        request: &ChatRequest,
        report: &mut dyn FnMut(CallEvent<'_>),
        lost: &mut Lost,
    ) -> Result<ChatReply> {
        let mut key = self.key(provider, provider_state).await?;
        let mut renewed = false;
        let client = self.resolver.http()?;
        let mut attempts = Attempts::new(&self.resolver.settings.retry);
        // The parts that the server refused in this call. The list grows with each such refusal, so the loop ends.
        let mut without: Vec<RequestPart> = Vec::new();
        loop {
            let (outcome, refused) = {
                // The permit is not held during the wait: a pausing call leaves its place to others.
                let _permit = provider_state.permits.acquire().await.expect("the semaphore is never closed");
                // Read only now, so that what other calls have learnt meanwhile counts here, too.
                let mut profile = self.learned.profile(provider, model);
                without.iter().for_each(|part| profile.learn(*part));
                if effort::is_left_out(&profile, request) && !profile.refuses(RequestPart::ReasoningEffort) {
                    without.push(RequestPart::ReasoningEffort);
                    profile.learn(RequestPart::ReasoningEffort);
                    self.learn(provider, model, RequestPart::ReasoningEffort, report);
                }
                let context = CallContext {
                    provider,
                    model,
                    key: key.as_ref(),
                    profile: &profile,
                    marks: self.sent.marks(provider, &profile, request),
                    wants_thoughts: self.wants_thoughts,
                };
                let http = http::request(context, request)?;
                let copy = http.try_clone().expect("a body that stands in memory can be sent twice");
                let before = *lost;
                let mut on_piece = |piece: ReplyPiece<'_>| {
                    lost.attempts = before.attempts + 1;
                    let (bytes, event) = match piece {
                        ReplyPiece::Text(text) => (text.len(), CallEvent::Delta(text)),
                        // It is paid for as text is.
                        ReplyPiece::Thought(text) => (text.len(), CallEvent::Thought(text)),
                        ReplyPiece::Sign => (0, CallEvent::Alive),
                    };
                    lost.bytes += bytes as u64;
                    report(event);
                };
                let outcome = http::attempt(client, http, context, request, &mut on_piece).await;
                if let Ok(reply) = &outcome {
                    *lost = before;
                    if schema::is_ignored(context, request, reply) {
                        without.push(RequestPart::IgnoredSchema);
                        self.learn(provider, model, RequestPart::IgnoredSchema, report);
                    }
                }
                let body = copy.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
                let refused = outcome.as_ref().err().and_then(|error| dispensable_part(context, request, error, body));
                (outcome, refused)
            };
            let error = match outcome {
                Ok(mut reply) => {
                    self.sent.note(provider, request);
                    if let Some(notice) = self.told.other(provider, &request.model, &reply.model) {
                        report(CallEvent::Notice(&notice));
                    }
                    let name = |part: &RequestPart| serde_json::to_value(part).ok()?.as_str().map(str::to_owned);
                    reply.refused = without.iter().filter_map(name).collect();
                    return Ok(reply);
                }
                Err(error) => error,
            };
            if let Some(part) = refused.filter(|part| !without.contains(part)) {
                without.push(part);
                self.learn(provider, model, part, report);
                continue;
            }
            if error.failure.code == Code::KeyRefused && matches!(provider.key, KeySource::Command(_)) {
                // Keys from commands may be short-lived. Another call may have asked for a new one meanwhile.
                let mut cached_key = provider_state.key.lock().await;
                if *cached_key == key {
                    *cached_key = None;
                }
                drop(cached_key);
                if !std::mem::replace(&mut renewed, true) {
                    key = self.key(provider, provider_state).await?;
                    continue;
                }
            }
            let wait = attempts.wait_after(&error)?;
            report(CallEvent::Retry {
                attempt: attempts.next_number(),
                reason: &error.failure.message,
                wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            });
            tokio::time::sleep(wait).await;
        }
    }
}

fn took_too_long(provider: &Provider, model: &str) -> Failure {
    let message = format!("the call to {model} took longer than {} seconds in all", provider.call_limit.as_secs_f64());
    Failure::new(Code::ModelUnreachable, message).hint(format!(
        "more is allowed in config.yaml: models: {{ providers: {{ {}: {{ call_seconds: … }} }} }}",
        provider.name
    ))
}

/// Returns the refused part, if the request can do without it.
fn dispensable_part(
    context: CallContext<'_>,
    request: &ChatRequest,
    error: &AttemptError,
    body: &[u8],
) -> Option<RequestPart> {
    let refusal = error.refusal.as_ref()?;
    if refusal.is_of_state() && state::goes_back(context, request) {
        return Some(RequestPart::State);
    }
    let part = refusal.part(context.wire(), body)?;
    let alternative = match part {
        RequestPart::MaxTokens => RequestPart::MaxCompletionTokens,
        RequestPart::MaxCompletionTokens => RequestPart::MaxTokens,
        // If the model also refuses `reasoning_effort`, nothing can stop its thinking.
        RequestPart::Thinking => RequestPart::ReasoningEffort,
        _ => return Some(part),
    };
    (!context.profile.refuses(alternative)).then_some(part)
}

impl Models for Client {
    fn price(&self, model: &str) -> Option<Price> {
        self.resolver.settings.price(model)
    }

    fn thinks(&self, model: &str) -> u32 {
        self.provider_of(model).map_or(0, |(provider, model)| families::profile(provider, model).thinks)
    }

    fn recall(&self, model: &str, refused: &[String]) {
        let Some((provider, model)) = self.provider_of(model) else { return };
        let parts = refused.iter().filter_map(|name| serde_json::from_value(name.as_str().into()).ok());
        parts.for_each(|part| _ = self.learned.learn(provider, model, part));
    }

    /// Only the local engine is seeded. Providers do not promise it, and some refuse a seed.
    fn is_seeded(&self, model: &str) -> bool {
        model.starts_with("local/")
    }

    /// Asks the model that the request names. Attempts count from 1, so the first `Retry` event has number 2.
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        report: &'a mut dyn FnMut(CallEvent<'_>),
    ) -> LocalBoxFuture<'a, Result<ChatReply>> {
        Box::pin(self.call(request, report))
    }
}
