//! The errors of one attempt of a call: a message for people, and advice for the retry loop.
//!
//! No message shows a key or a whole address. A provider's own words are quoted only as a short, cleaned
//! excerpt: strangers wrote them, and they may repeat the prompt.

use std::time::Duration;

use serde_json::Value;

use super::cache::Marks;
use super::families::ModelProfile;
use super::provider::{Provider, Wire};
use super::refusal::Refusal;
use crate::error::{Code, Failure};
use crate::host::network::CertificateFault;
use crate::host::secret::{KeySource, Secret};
use crate::model::text::{clean, excerpt};

/// Why an attempt failed, and whether a further attempt makes sense.
#[derive(Debug)]
pub(super) struct AttemptError {
    pub(super) failure: Failure,
    pub(super) retry: RetryAdvice,
    /// The server's refusal, where it refused the request for its contents.
    pub(super) refusal: Option<Box<Refusal>>,
}

/// Whether and when to try again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RetryAdvice {
    Never,
    /// After a wait that the retry loop chooses.
    Backoff,
    /// Not before this much time has passed: the provider said so.
    After(Duration),
}

/// What an attempt is about: everything that a message may need to name.
#[derive(Clone, Copy)]
pub(super) struct CallContext<'a> {
    pub(super) provider: &'a Provider,
    /// The model, without the provider's name.
    pub(super) model: &'a str,
    pub(super) key: Option<&'a Secret>,
    pub(super) profile: &'a ModelProfile,
    /// What the server is asked to keep of the request.
    pub(super) marks: Marks,
    /// Whether the model is asked to show what it thinks.
    pub(super) wants_thoughts: bool,
}

impl AttemptError {
    fn new(retry: RetryAdvice, code: Code, message: String) -> AttemptError {
        AttemptError { failure: Failure::new(code, message), retry, refusal: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> AttemptError {
        self.failure = self.failure.hint(hint);
        self
    }
}

impl CallContext<'_> {
    /// Returns the wire that the call goes by.
    pub(super) fn wire(&self) -> Wire {
        self.profile.wire_at(self.provider)
    }

    /// Returns the provider's scheme, host and port, without a password that may stand in the address.
    pub(super) fn origin(&self) -> String {
        self.provider.base.origin().ascii_serialization()
    }

    fn quote(&self, text: &str) -> String {
        excerpt(&Secret::remove_from(self.key, text))
    }

    /// Returns the error of a provider that could not be reached or went silent.
    pub(super) fn unreachable_error(&self, why: &str) -> AttemptError {
        let message = format!("{} at {} {why}", self.provider.name, self.origin());
        AttemptError::new(RetryAdvice::Backoff, Code::ModelUnreachable, message)
            .hint("look whether the service runs and the network is there, then resume the run")
    }

    /// Returns the error of a server whose certificate is not trusted; another attempt would not help.
    pub(super) fn certificate_error(&self, fault: &CertificateFault) -> AttemptError {
        let message = format!("the certificate of {} cannot be trusted: {}", self.origin(), excerpt(&fault.why));
        let mut error = AttemptError::new(RetryAdvice::Never, Code::ModelUnreachable, message).hint(
            "if your network has an authority of its own, put its certificates into a file and name it by SSL_CERT_FILE",
        );
        error.failure = fault.unread.iter().fold(error.failure, |failure, unread| failure.because(clean(unread)));
        error
    }

    /// Returns the error of an address of this machine where nothing listens; another attempt would not help.
    pub(super) fn not_running(&self) -> AttemptError {
        let message = format!("nothing listens at {} ({})", self.origin(), self.provider.name);
        AttemptError::new(RetryAdvice::Never, Code::ModelUnreachable, message)
            .hint("start the server, or name another model, then resume the run")
    }

    /// Returns the error of a provider that sent nothing for longer than its limit.
    pub(super) fn silence_error(&self, time: Duration) -> AttemptError {
        self.unreachable_error(&format!("was silent for {} s", time.as_secs_f64()))
    }

    /// Returns the error of a reply that cannot be parsed or is incomplete.
    pub(super) fn broken_reply(&self, why: &str) -> AttemptError {
        let message = format!("the reply of {}/{} {why}", self.provider.name, self.model);
        AttemptError::new(RetryAdvice::Backoff, Code::ModelBroken, message).hint("resume the run to ask again")
    }

    /// Returns the error of an address where no model service answers; another attempt would not help.
    pub(super) fn not_a_service(&self, why: &str) -> AttemptError {
        let message = format!("{} {why}, which no model service does", self.origin());
        AttemptError::new(RetryAdvice::Never, Code::ModelBroken, message)
            .hint(format!("look at the base URL of {}", self.provider.name))
    }

    /// Returns the error of a reply that the model declined to give or a filter held back.
    pub(super) fn refusal_error(&self, message: &str) -> AttemptError {
        let name = &self.provider.name;
        let message = if message.is_empty() {
            format!("{name}/{} stopped: the provider's content filter held the reply back", self.model)
        } else {
            format!("{name}/{} declined to answer: {}", self.model, self.quote(message))
        };
        AttemptError::new(RetryAdvice::Never, Code::ModelRefused, message)
            .hint("change the prompt, or ask another model")
    }

    /// Returns the error of a response whose HTTP status is an error.
    pub(super) fn status_error(&self, status: u16, retry_after: Option<Duration>, body: &str) -> AttemptError {
        let server_error = ServerError::read(body);
        // Some providers report these errors with a status that means something else for other providers.
        let meant = match status {
            429 if server_error.kind.contains("insufficient_quota") => 402,
            410 => 404,
            400 | 422 if server_error.is_about_an_unknown_model() => 404,
            400 if server_error.message.to_ascii_lowercase().contains("api key") => 401,
            status => status,
        };
        if matches!(meant, 400 | 413 | 422) && server_error.is_about_the_window() {
            return self.window_error(&server_error.message);
        }
        let mut error = self.error_for_status(meant, retry_after, &server_error.message);
        // Python servers refuse unknown parts of a body with 422.
        error.refusal = matches!(meant, 400 | 422).then(|| Box::new(server_error.refusal));
        error
    }

    /// Returns the error that a provider reported within a stream that began with a good status.
    pub(super) fn stream_error(&self, error: &Value) -> AttemptError {
        let server_error = ServerError::from_json(error);
        if server_error.is_about_the_window() {
            return self.window_error(&server_error.message);
        }
        let kind = server_error.kind.to_ascii_lowercase();
        let status = match kind.split_whitespace().next().and_then(|word| word.parse::<u16>().ok()) {
            Some(status @ 400..=599) => status,
            _ if kind.contains("quota") => 402,
            _ if kind.contains("overloaded") => 529,
            _ if kind.contains("rate_limit") => 429,
            _ if kind.contains("authentication") || kind.contains("api_key") => 401,
            _ if kind.contains("permission") => 403,
            _ if kind.contains("not_found") || server_error.is_about_an_unknown_model() => 404,
            _ if kind.contains("invalid_request") => 400,
            _ => 500,
        };
        self.error_for_status(status, None, &server_error.message)
    }

    /// Returns the error of a conversation that is longer than the model's window.
    fn window_error(&self, server_message: &str) -> AttemptError {
        let message = format!("{}/{} takes in no more: {}", self.provider.name, self.model, self.quote(server_message));
        AttemptError::new(RetryAdvice::Never, Code::ContextExceeded, message)
            .hint("shorten what is sent, or name a model with a longer window (`nietz models`)")
    }

    /// Returns the failure of a provider that was asked for the list of its models.
    pub(super) fn list_failure(&self, status: u16, body: &str) -> Failure {
        match status {
            401..=403 | 429 | 500.. => self.status_error(status, None, body).failure,
            // A wrong key is another status at some.
            400 if ServerError::read(body).message.to_ascii_lowercase().contains("api key") => {
                self.status_error(401, None, body).failure
            }
            _ => self.no_list(&format!("answered {status} when it was asked for its models")),
        }
    }

    /// Returns the failure of a provider whose answer is no list of models.
    pub(super) fn no_list(&self, why: &str) -> Failure {
        let message = format!("{} at {} {why}", self.provider.name, self.origin());
        Failure::new(Code::ModelBroken, message)
            .hint("not every provider has a list: its own pages name its models, and any of them can be asked")
    }

    fn error_for_status(&self, status: u16, retry_after: Option<Duration>, server_message: &str) -> AttemptError {
        let (name, model) = (&self.provider.name, self.model);
        let soon = retry_after.map_or(RetryAdvice::Backoff, RetryAdvice::After);
        let quoted =
            if server_message.is_empty() { String::new() } else { format!(": {}", self.quote(server_message)) };
        match status {
            300..=399 => self.not_a_service(&format!("answered with a redirect ({status})")),
            401 | 403 => {
                let source = self.provider.key.describe(name);
                let renew = match self.provider.key {
                    KeySource::Stored(_) => format!("store a valid key (`nietz models key {name}`)"),
                    _ => format!("put a valid key into {source}"),
                };
                AttemptError::new(
                    RetryAdvice::Never,
                    Code::KeyRefused,
                    format!("{name} refused the key in {source} ({status})"),
                )
                .hint(format!("{renew}, or check that it may use {model}"))
            }
            402 => AttemptError::new(
                RetryAdvice::Never,
                Code::BudgetUsedUp,
                format!("the quota at {name} is used up{quoted}"),
            )
            .hint("add credit there or name another model, then resume the run"),
            404 => AttemptError::new(
                RetryAdvice::Never,
                Code::ModelUnknown,
                format!("{name} at {} does not know the model {}{quoted}", self.origin(), excerpt(model)),
            )
            .hint(match self.provider.models_path {
                Some(_) => format!("pull it first: {name} pull {}", excerpt(model)),
                None => "`nietz models` shows the providers, and which model of each is asked where none is named"
                    .to_owned(),
            }),
            429 | 503 | 529 => {
                let why = if status == 429 { "asks for fewer calls" } else { "is overloaded" };
                AttemptError::new(soon, Code::ModelOverloaded, format!("{name} {why} ({status})"))
                    .hint("wait a while, or name another model, then resume the run")
            }
            408 | 409 | 425 | 500 | 502 | 504 | 520..=528 => {
                AttemptError::new(soon, Code::ModelBroken, format!("{name} has a fault of its own ({status}){quoted}"))
                    .hint("wait a while, or name another model, then resume the run")
            }
            _ => AttemptError::new(
                RetryAdvice::Never,
                Code::ModelRefused,
                format!("{name} refused the request to {} ({status}){quoted}", excerpt(model)),
            )
            .hint("the request does not suit this model: change it, or name another model"),
        }
    }
}

/// An error as the server reported it, in any of the forms that providers use.
struct ServerError {
    message: String,
    /// The error's identifiers, separated by blanks: code (a word or a number), type, status.
    kind: String,
    refusal: Refusal,
}

/// What servers say where they do not have a model, in lower case: its code, or words of its message. Some answer 400 to that.
const UNKNOWN_MODEL_CODES: &[&str] =
    &["model_not_found", "model_decommissioned", "model_not_available", "invalid_model", "model_not_exist"];
const UNKNOWN_MODEL_WORDS: &[&str] = &[
    "is not a valid model id",
    "model not found",
    "model not exist",
    "model identifier is invalid",
    "has been decommissioned",
];

/// What servers say where a request is longer than the model's window, in lower case: its code, or words of its message.
const FULL_WINDOW_CODES: &[&str] = &["context_length_exceeded", "exceed_context_size", "model_context_window_exceeded"];
const FULL_WINDOW_WORDS: &[&str] = &[
    "maximum context length",
    "maximum prompt length",
    "context window",
    "prompt is too long",
    "input is too long",
    "input token count",
    "available context size",
    "context limit",
];

impl ServerError {
    /// Tells whether the server says that the request is longer than the model's window.
    fn is_about_the_window(&self) -> bool {
        let (kind, message) = (self.kind.to_ascii_lowercase(), self.message.to_ascii_lowercase());
        FULL_WINDOW_CODES.iter().any(|code| kind.contains(code))
            || FULL_WINDOW_WORDS.iter().any(|words| message.contains(words))
    }

    /// Tells whether the server says that it does not have the model, or has it no more.
    fn is_about_an_unknown_model(&self) -> bool {
        let (kind, message) = (self.kind.to_ascii_lowercase(), self.message.to_ascii_lowercase());
        UNKNOWN_MODEL_CODES.iter().any(|code| kind.contains(code))
            || UNKNOWN_MODEL_WORDS.iter().any(|words| message.contains(words))
    }

    fn read(body: &str) -> ServerError {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => ServerError::from_json(&value),
            // A page of HTML is of no use in a message of one line.
            Err(_) if body.trim_start().starts_with('<') => ServerError::from_text(""),
            Err(_) => ServerError::from_text(body.trim()),
        }
    }

    fn from_text(message: &str) -> ServerError {
        let refusal = Refusal { message: message.to_owned(), param: String::new() };
        ServerError { message: message.to_owned(), kind: String::new(), refusal }
    }

    fn from_json(value: &Value) -> ServerError {
        let value = match value {
            // Gemini wraps the error into a list.
            Value::Array(items) => items.first().unwrap_or(&Value::Null),
            other => other,
        };
        let error = value.get("error").unwrap_or(value);
        let message = match error {
            Value::String(message) => message.as_str(),
            _ => ["message", "detail"].iter().find_map(|name| error.get(name)?.as_str()).unwrap_or_default(),
        };
        let mut kind = String::new();
        for name in ["code", "type", "status"] {
            match error.get(name) {
                Some(Value::String(word)) => kind.push_str(word),
                Some(Value::Number(number)) => kind.push_str(&number.to_string()),
                _ => continue,
            }
            kind.push(' ');
        }
        let param = error.get("param").and_then(Value::as_str).unwrap_or_default().to_owned();
        // Gateways such as OpenRouter pass on the provider's own words here.
        let raw = error.pointer("/metadata/raw").and_then(Value::as_str).unwrap_or_default();
        let refusal = Refusal { message: format!("{message} {raw} {}", validation_details(error)), param };
        ServerError { message: message.to_owned(), kind, refusal }
    }
}

/// Returns the `loc` and `msg` of each validation error that a Python server lists, as one text.
fn validation_details(error: &Value) -> String {
    let list = error.get("detail").or(error.pointer("/message/detail")).and_then(Value::as_array);
    let describe = |item: &Value| -> Vec<String> {
        let parts = item["loc"].as_array().map(Vec::as_slice).unwrap_or_default();
        parts.iter().filter_map(Value::as_str).chain(item["msg"].as_str()).map(str::to_owned).collect()
    };
    list.into_iter().flatten().flat_map(describe).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
