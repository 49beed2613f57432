//! What is said to the server: is it ready, how a template and texts become tokens, and one completion.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Response, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::attempts::TEMPERATURE;
use super::super::engine_failure;
use super::super::grammar::{ReplyForm, with_options};
use super::super::prompt::{MARK, messages};
use super::super::sample::{REPEATED, TOP_K, TOP_P};
use crate::error::{Code, Failure, Result};
use crate::host::llm::{http, sse};
use crate::host::network::Network;
use crate::model::chat::{ChatRequest, FinishReason};
use crate::model::text::excerpt;

/// How many of the last tokens are discouraged as repetitions.
const LATELY: usize = 64;
/// How long the server may take to say whether it is ready.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes of a reply: a token has about a hundred on the wire.
const LARGEST: usize = 16 << 20;

/// The address of a server, and the token that it knows this process by.
#[derive(Clone)]
pub(super) struct Wire {
    http: reqwest::Client,
    base: Url,
    token: String,
}

/// A finished completion.
#[derive(Debug)]
pub(super) struct Completion {
    pub(super) text: String,
    pub(super) finish: FinishReason,
    pub(super) tokens: u64,
    /// How many tokens of the prompt were computed before.
    pub(super) cached: u64,
}

/// What a completion is to be like.
pub(super) struct Terms {
    pub(super) max_tokens: usize,
    pub(super) seed: u64,
    pub(super) form: Option<ReplyForm>,
}

impl Wire {
    pub(super) fn new(port: u16, token: String) -> Result<Wire> {
        let base = Url::parse(&format!("http://127.0.0.1:{port}/")).map_err(engine_failure)?;
        // The loopback has no proxy, whatever the user's variables say.
        Ok(Wire { http: http::client(&Network::from_environment(&BTreeMap::new())?)?, base, token })
    }

    /// Returns a text of the server's without the token.
    pub(super) fn without_token(&self, text: &str) -> String {
        text.replace(&self.token, "…")
    }

    /// Tells whether the weights are loaded.
    pub(super) async fn is_ready(&self) -> bool {
        let Ok(url) = self.base.join("health") else { return false };
        let asked = self.http.get(url).timeout(PATIENCE).send().await;
        asked.is_ok_and(|response| response.status().is_success())
    }

    /// Returns a request's prompt as tokens. The template is filled with marks, and each text becomes tokens by itself, so
    /// that a control token's name in a text (`<|im_end|>`) is only text.
    pub(super) async fn prompt(&self, request: &ChatRequest) -> Result<Vec<u32>> {
        let messages = messages(request);
        let mark = |(nth, (role, _)): (usize, &(&str, String))| json!({ "role": role, "content": format!("{MARK}{nth}{MARK}") });
        let marked: Vec<Value> = messages.iter().enumerate().map(mark).collect();
        // A model that thinks is kept from it where its template can do that: a small one would use up its reply.
        let body = json!({ "messages": marked, "chat_template_kwargs": { "enable_thinking": false } });
        #[derive(Deserialize)]
        struct Filled {
            prompt: String,
        }
        let Filled { prompt } = self.ask("apply-template", &body).await?;
        let mut tokens = Vec::new();
        for (nth, piece) in prompt.split(MARK).enumerate() {
            let text = match nth % 2 {
                0 => Some(piece),
                _ => piece.parse().ok().and_then(|nth: usize| messages.get(nth)).map(|(_, text)| text.as_str()),
            };
            let text = text.ok_or_else(|| engine_failure("the model's chat template is not usable"))?;
            if nth == 0 || !text.is_empty() {
                // The first piece is the template's: a model that wants a token in front of all gets it there.
                tokens.extend(self.tokens(text, nth == 0, nth % 2 == 0).await?);
            }
        }
        Ok(tokens)
    }

    async fn tokens(&self, text: &str, is_first: bool, is_template: bool) -> Result<Vec<u32>> {
        #[derive(Deserialize)]
        struct Tokens {
            tokens: Vec<u32>,
        }
        let body = json!({ "content": text, "add_special": is_first, "parse_special": is_template });
        Ok(self.ask::<Tokens>("tokenize", &body).await?.tokens)
    }

    /// Completes a prompt. `on_text` gets the pieces of the text; dropping the future ends the server's work.
    pub(super) async fn complete(
        &self,
        request: &ChatRequest,
        prompt: &[u32],
        terms: &Terms,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Completion> {
        let mut response = self.send("completion", &body(request, prompt, terms)).await?;
        let mut parser = sse::Parser::default();
        let mut completion = Completion { text: String::new(), finish: FinishReason::Stop, tokens: 0, cached: 0 };
        let mut bytes = 0;
        loop {
            while let Some(data) = parser.event().map_err(|_| engine_failure("llama-server wrote no UTF-8"))? {
                let event: Event = serde_json::from_str(&data)
                    .map_err(|error| engine_failure(format!("llama-server wrote no event: {error}")))?;
                if let Some(error) = event.error {
                    return Err(refusal(&error));
                }
                if !event.content.is_empty() {
                    completion.text.push_str(&event.content);
                    on_text(&event.content);
                }
                if event.stop {
                    let was_cut = event.stop_type.as_deref() == Some("limit") || event.stopped_limit;
                    completion.finish = if was_cut { FinishReason::Length } else { FinishReason::Stop };
                    completion.tokens = event.tokens_predicted;
                    completion.cached = event.timings.cache_n;
                    return Ok(completion);
                }
            }
            let piece = response.chunk().await.map_err(|_| broken())?.ok_or_else(broken)?;
            bytes += piece.len();
            if bytes > LARGEST {
                return Err(engine_failure("llama-server wrote more than any reply should have"));
            }
            parser.push(&piece);
        }
    }

    async fn ask<T: for<'de> Deserialize<'de>>(&self, path: &str, body: &Value) -> Result<T> {
        let text = self.send(path, body).await?.bytes().await.map_err(|_| broken())?;
        serde_json::from_slice(&text).map_err(|error| engine_failure(format!("llama-server's {path}: {error}")))
    }

    async fn send(&self, path: &str, body: &Value) -> Result<Response> {
        let url = self.base.join(path).map_err(engine_failure)?;
        let sent = self.http.post(url).bearer_auth(&self.token).body(body.to_string());
        let sent = sent.header(reqwest::header::CONTENT_TYPE, "application/json").send().await;
        let response = sent.map_err(|_| broken())?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let text = response.bytes().await.map_err(|_| broken())?;
        let told = serde_json::from_slice::<Event>(&text).ok().and_then(|event| event.error);
        match (status.as_u16(), told) {
            (404, _) => Err(engine_failure(format!("llama-server is too old: it has no {path}"))
                .hint("install a newer llama.cpp, or NIETZ_LOCAL_ENGINE=built-in")),
            (_, Some(error)) => Err(refusal(&error)),
            (_, None) => Err(engine_failure(format!("llama-server answered {status} to {path}"))),
        }
    }
}

/// What comes of a completion, piece by piece. Members that are not read differ between versions.
#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    content: String,
    #[serde(default)]
    stop: bool,
    stop_type: Option<String>,
    /// How versions before `stop_type` said that the limit was reached.
    #[serde(default)]
    stopped_limit: bool,
    #[serde(default)]
    tokens_predicted: u64,
    #[serde(default)]
    timings: Timings,
    error: Option<ServerError>,
}

#[derive(Default, Deserialize)]
struct Timings {
    #[serde(default)]
    cache_n: u64,
}

#[derive(Deserialize)]
struct ServerError {
    #[serde(default)]
    message: String,
    #[serde(default)]
    r#type: String,
}

fn refusal(error: &ServerError) -> Failure {
    let told = excerpt(&error.message);
    match error.r#type.as_str() {
        "exceed_context_size_error" => Failure::new(Code::ContextExceeded, format!("llama-server: {told}"))
            .hint("make the conversation shorter, or use a model with a larger context"),
        "invalid_request_error" => Failure::new(Code::RequestInvalid, format!("llama-server: {told}")),
        _ => engine_failure(format!("llama-server: {told}")),
    }
}

fn broken() -> Failure {
    engine_failure("llama-server broke the connection off")
}

/// Returns the body of a completion, with the sampling of the built-in engine, in its order.
fn body(request: &ChatRequest, prompt: &[u32], terms: &Terms) -> Value {
    let mut body = json!({
        "prompt": prompt, "stream": true, "cache_prompt": true, "n_predict": terms.max_tokens,
        "samplers": ["penalties", "top_k", "temperature", "top_p"],
        "temperature": request.temperature.unwrap_or(TEMPERATURE), "top_k": TOP_K, "min_p": 0,
        "top_p": request.top_p.unwrap_or(f64::from(TOP_P)),
        // Both halves count; the largest number would mean a seed of the server's own.
        "seed": ((terms.seed ^ terms.seed >> 32) as u32).min(u32::MAX - 1),
    });
    match &terms.form {
        Some(ReplyForm::Value(schema)) => body["json_schema"] = with_options(schema.clone()),
        Some(ReplyForm::CallOrWords(_)) => body["grammar"] = call_or_words(request).into(),
        None => {
            body["repeat_penalty"] = REPEATED.into();
            body["repeat_last_n"] = LATELY.into();
            // What is a reply in a fixed form does not end before its form does.
            body["stop"] = request.stop.clone().into();
        }
    }
    body
}

/// Returns the grammar of a call of a tool, or of words that do not begin like one. The server has no grammar of a schema
/// beside words, so a call's arguments may be any object here; whoever runs the tool looks at them.
fn call_or_words(request: &ChatRequest) -> String {
    // A name as JSON, and that as a literal of the grammar, which escapes as JSON does.
    let name = |name: &str| Value::from(Value::from(name).to_string()).to_string();
    let names: Vec<String> = request.tools.iter().map(|tool| name(&tool.name)).collect();
    format!(
        "root ::= call | words\ncall ::= \"{{\\\"tool\\\":\" name \",\\\"arguments\\\":\" object \"}}\"\nname ::= {}\n{JSON}",
        names.join(" | ")
    )
}

const JSON: &str = r#"words ::= [^{` \t\r\n] [^\x00]*
object ::= "{" (pair ("," pair)*)? "}"
pair ::= string ":" value
array ::= "[" (value ("," value)*)? "]"
value ::= object | array | string | number | "true" | "false" | "null"
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})){0,800} "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,6})?
"#;
