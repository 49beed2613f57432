//! Providers as strict as they are: what they refuse, in their words, what they want back, and how they answer.
//!
//! Each file beside this one that is named in [`Provider`] is a server for one generation of models: [`Rules`], which are data,
//! with the source and the date of each. What they share stands in `errors` (the forms of refusals), `turns` and `schemas` (what a
//! rule may look for), `chat`, `messages` and `responses` (how the wires answer), and `neutral` (what a script is shown).
//!
//! A [`Strict`] stands in front of a script: what the provider would refuse never reaches the script, and what it wants back is
//! checked. Nothing is kept: what a model thought is sealed by what it was sent.

mod anthropic_4_5;
mod anthropic_5;
mod anthropic_5_5;
mod azure;
mod bedrock;
mod bedrock_claude;
mod chat;
mod deepseek;
mod errors;
mod gemini;
mod groq;
mod llama_cpp;
mod messages;
mod mistral;
mod neutral;
mod ollama;
mod openai_4_1;
mod openai_chat;
mod openai_responses;
mod openrouter;
mod responses;
mod rules;
mod schemas;
mod turns;
mod voice;
mod xai;

use std::sync::{Arc, Mutex};

use serde_json::Value;

pub use rules::{Refusal, Rules};

use super::{Kind, Request, Response};

/// A server for one generation of a provider's models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    OpenAi41,
    /// GPT-5.6 and later on chat completions.
    OpenAi,
    Responses,
    Anthropic45,
    Anthropic5,
    Anthropic,
    Gemini,
    DeepSeek,
    Xai,
    Groq,
    OpenRouter,
    Mistral,
    Ollama,
    LlamaCpp,
    Azure,
    /// Azure with deployments whose names tell nothing.
    AzureOwnNames,
    Bedrock,
    BedrockClaude,
}

impl Provider {
    /// In the order of the README's table.
    pub const ALL: [Provider; 18] = [
        Provider::OpenAi41,
        Provider::OpenAi,
        Provider::Responses,
        Provider::Anthropic45,
        Provider::Anthropic5,
        Provider::Anthropic,
        Provider::Gemini,
        Provider::DeepSeek,
        Provider::Xai,
        Provider::Groq,
        Provider::OpenRouter,
        Provider::Mistral,
        Provider::Ollama,
        Provider::LlamaCpp,
        Provider::Azure,
        Provider::AzureOwnNames,
        Provider::Bedrock,
        Provider::BedrockClaude,
    ];

    /// What this server refuses, and how it answers.
    pub fn rules(self) -> &'static Rules {
        match self {
            Provider::OpenAi41 => &openai_4_1::RULES,
            Provider::OpenAi => &openai_chat::RULES,
            Provider::Responses => &openai_responses::RULES,
            Provider::Anthropic45 => &anthropic_4_5::RULES,
            Provider::Anthropic5 => &anthropic_5::RULES,
            Provider::Anthropic => &anthropic_5_5::RULES,
            Provider::Gemini => &gemini::RULES,
            Provider::DeepSeek => &deepseek::RULES,
            Provider::Xai => &xai::RULES,
            Provider::Groq => &groq::RULES,
            Provider::OpenRouter => &openrouter::RULES,
            Provider::Mistral => &mistral::RULES,
            Provider::Ollama => &ollama::RULES,
            Provider::LlamaCpp => &llama_cpp::RULES,
            Provider::Azure => &azure::RULES,
            Provider::AzureOwnNames => &azure::OWN_NAMES,
            Provider::Bedrock => &bedrock::RULES,
            Provider::BedrockClaude => &bedrock_claude::RULES,
        }
    }
}

/// What a server was asked for, and what it refused.
#[derive(Debug, Default)]
pub struct Seen {
    /// The words of each refusal, in their order.
    pub refused: Vec<String>,
    /// What no provider refuses, and what is wrong all the same: a thought that did not come back, a schema that came twice.
    pub wrong: Vec<String>,
    /// How many calls asked for a schema, had tools, were streamed.
    pub schemas: usize,
    pub tools: usize,
    pub streams: usize,
    /// In which ways schemas were asked for.
    pub ways: std::collections::BTreeSet<&'static str>,
}

/// A provider, and what it has seen.
pub struct Strict {
    provider: Provider,
    /// Whether it is at its own address, with its own key, and knows its models by their names.
    at_home: bool,
    /// Whether it takes its time, and so many tokens.
    slow: bool,
    seen: Arc<Mutex<Seen>>,
}

impl Strict {
    pub fn new(provider: Provider) -> Strict {
        Strict { provider, at_home: false, slow: true, seen: Arc::default() }
    }

    /// Is asked at the provider's own address, with a key, for models that it has.
    pub fn at_home(self) -> Strict {
        Strict { at_home: true, ..self }
    }

    /// Thinks next to nothing before it speaks.
    pub fn quick(self) -> Strict {
        Strict { slow: false, ..self }
    }

    /// What it sees from now on.
    pub fn seen(&self) -> Arc<Mutex<Seen>> {
        self.seen.clone()
    }

    /// Puts this provider before a script, which at home is shown each request as one of chat completions.
    pub fn before(
        self,
        script: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> impl Fn(&Request) -> Response + Send + Sync + 'static {
        move |request| {
            let rules = self.provider.rules();
            let refusal = if self.at_home { rules.refuses(request) } else { rules.refuses_body(&request.body) };
            if let Some(refusal) = refusal {
                let more = if refusal.message.contains(&refusal.param) { "" } else { &refusal.param };
                self.see(|seen| seen.refused.push(format!("{} {more}", refusal.message).trim_end().to_owned()));
                let body = (rules.errors)(&refusal).to_string();
                return Response::plain(refusal.status, body).header("content-type", "application/json");
            }
            // Elsewhere a script is shown what a plain server would show it, so that the two can be compared.
            let shown = if self.at_home { neutral::chat(request) } else { request.clone() };
            self.note(request, &shown);
            let quiet = !rules.voice.thinks(&request.body);
            let limit = neutral::limit(&request.body);
            let response = if self.slow && !quiet && limit.is_some_and(|limit| limit < rules.voice.thinks) {
                Response::text("").too_long()
            } else {
                script(&shown)
            };
            rules.voice.says(request, response, self.at_home)
        }
    }

    fn see(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().expect("nobody panics while it is held"));
    }

    /// Notes what a request asks for, and what is wrong with it although it is not refused.
    fn note(&self, request: &Request, shown: &Request) {
        let rules = self.provider.rules();
        let ways = neutral::schema_ways(&request.body);
        let lost = rules.voice.lost(&request.body);
        self.see(|seen| {
            seen.schemas += usize::from(!ways.is_empty());
            seen.tools += usize::from(!shown.body["tools"].is_null());
            seen.streams += usize::from(request.body["stream"] == true);
            if ways.len() > 1 {
                seen.wrong.push(format!("the schema came {}", ways.join(" and ")));
            }
            seen.ways.extend(ways);
            seen.wrong.extend(lost);
        });
    }
}

impl Response {
    /// Takes out what a model says, for a provider that says it in its own way.
    fn reply_of(&self) -> Option<&super::wire::Reply> {
        match &self.kind {
            Kind::Reply(reply) => Some(reply),
            Kind::Plain { .. } => None,
        }
    }

    /// Puts the words of a provider in the place of a reply.
    fn in_words(mut self, content_type: &str, body: String) -> Response {
        self.kind = Kind::Plain { status: 200, body: body.into_bytes() };
        self.headers.push(("content-type".to_owned(), content_type.to_owned()));
        // Pieces end anywhere: within an event, and within a character.
        self.piece = self.piece.or(Some(997));
        self
    }
}

/// A member of a body by its pointer; null where there is none.
fn at<'b>(body: &'b Value, pointer: &str) -> &'b Value {
    body.pointer(pointer).unwrap_or(&Value::Null)
}

/// The elements of a list; none where there is no list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A word for all of this.
fn word(of: &Value) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    of.to_string().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
