//! A run against a provider that is as strict as it is: one whose family is known, and one that nobody has heard of.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::env::{Env, KEY};
use crate::support::model_server::strict::{Provider, Seen, Strict};
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;

/// A provider and one of its models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) provider: Provider,
    pub(crate) model: &'static str,
    /// Whether what it refuses is known before it is asked.
    pub(crate) known: bool,
}

const fn round(provider: Provider, model: &'static str, known: bool) -> Round {
    Round { provider, model, known }
}

/// Both wires.
pub(crate) const WIRES: [Round; 4] = [
    round(Provider::OpenAi, "openai/gpt-6.1-terra", true),
    round(Provider::OpenAi, "openai/unheard-of", false),
    round(Provider::Anthropic, "anthropic/claude-sonnet-5-5", true),
    round(Provider::Anthropic, "anthropic/unheard-of", false),
];

/// Everybody who has rules of their own for tools.
pub(crate) const TOOLS: [Round; 7] = [
    WIRES[0],
    WIRES[1],
    WIRES[2],
    WIRES[3],
    round(Provider::Gemini, "gemini/gemini-3.8-flash", true),
    round(Provider::DeepSeek, "deepseek/deepseek-flash", true),
    round(Provider::DeepSeek, "deepseek/unheard-of", false),
];

/// A strict server with a script behind it.
pub(crate) struct Seat {
    pub(crate) server: ModelServer,
    pub(crate) round: Round,
    seen: Arc<Mutex<Seen>>,
}

impl Round {
    pub(crate) fn serve(self, script: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Seat {
        let strict = Strict::new(self.provider);
        // Nobody knows of a stranger how much it thinks.
        let strict = if self.known { strict } else { strict.quick() };
        let seen = strict.seen();
        Seat { server: ModelServer::start(strict.before(script)), round: self, seen }
    }

    /// The model without its provider.
    pub(crate) fn bare(self) -> &'static str {
        self.model.split_once('/').expect("a model has a provider").1
    }
}

/// An environment in which all providers are at this server.
pub(crate) fn env(server: &ModelServer) -> Env {
    ["OPENAI", "ANTHROPIC", "GEMINI", "DEEPSEEK"].iter().fold(Env::new(), |env, name| {
        env.var(&format!("{name}_API_KEY"), KEY).var(&format!("{name}_BASE_URL"), &server.url())
    })
}

impl Seat {
    pub(crate) fn env(&self) -> Env {
        env(&self.server)
    }

    /// Checks that nothing was refused that is known, and that what was learnt was learnt and said once.
    #[track_caller]
    pub(crate) fn learnt_once(&self, ended: &Ended) {
        let refused = self.seen.lock().expect("nobody panics while it is held").refused.clone();
        let told: Vec<String> =
            ended.of_type("notice").iter().map(|event| event["text"].as_str().unwrap_or_default().to_owned()).collect();
        let told: Vec<&String> = told.iter().filter(|text| text.contains(self.round.model)).collect();
        if self.round.known {
            assert!(refused.is_empty() && told.is_empty(), "{:?}: {refused:#?} {told:#?}", self.round);
            return;
        }
        // Numbers differ from call to call: the temperature, the place of a message.
        let kinds: BTreeSet<String> =
            refused.iter().map(|text| text.replace(|c: char| c.is_ascii_digit() || c == '.', "")).collect();
        assert_eq!(told.len(), kinds.len(), "{:?}: {refused:#?} {told:#?}", self.round);
        assert_eq!(told.iter().collect::<BTreeSet<_>>().len(), told.len(), "said twice: {told:#?}");
    }

    /// How often something was refused.
    pub(crate) fn refusals(&self) -> usize {
        self.seen.lock().expect("nobody panics while it is held").refused.len()
    }
}

/// The keys of all model calls of the test's run.
pub(crate) fn keys(env: &Env) -> BTreeSet<String> {
    let chats = env.journal().effects().into_iter().filter(|(_, effect)| effect.kind == "chat");
    chats.map(|(key, _)| key).collect()
}

/// Whether anything of what was thought stands in the requests of the journal.
pub(crate) fn thoughts_in_requests(env: &Env) -> bool {
    env.journal().of_kind("chat").iter().any(|chat| has_thought(&chat.request))
}

fn has_thought(value: &Value) -> bool {
    value.to_string().contains("sealed-")
}
