//! What can go wrong in one attempt of a call, in words for people and with a verdict for the retry loop.
//!
//! Nothing here shows a key or a whole address, and what a provider said is quoted only in a short,
//! cleaned piece: it was written by a stranger and may have come from the prompt.

use std::time::Duration;

use serde_json::Value;

use super::families::ModelProfile;
use super::provider::Provider;
use super::refusal::Refusal;
use super::secret::Secret;
use crate::error::{Code, Failure};
use crate::model::text::excerpt;

/// Why an attempt failed, and whether another one makes sense.
#[derive(Debug)]
pub(super) struct AttemptError {
    pub(super) failure: Failure,
    pub(super) retry: RetryAdvice,
    /// What was said, where the request was refused for what stands in it.
    pub(super) refusal: Option<Box<Refusal>>,
}

/// Whether and when to try again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RetryAdvice {
    Never,
    /// After a wait of our own choice.
    Backoff,
    /// Not before this long, says the provider.
    After(Duration),
}

/// What an attempt is about: all that a message may need to name.
#[derive(Clone, Copy)]
pub(super) struct CallContext<'a> {
    pub(super) provider: &'a Provider,
    /// The model, without the provider's name.
    pub(super) model: &'a str,
    pub(super) key: Option<&'a Secret>,
    pub(super) profile: &'a ModelProfile,
}

impl AttemptError {
    fn new(again: RetryAdvice, code: Code, message: String) -> AttemptError {
        AttemptError { failure: Failure::new(code, message), retry: again, refusal: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> AttemptError {
        self.failure = self.failure.hint(hint);
        self
    }
}

impl CallContext<'_> {
    /// Returns where the provider is, without a password that may stand in the address.
    pub(super) fn origin(&self) -> String {
        self.provider.base.origin().ascii_serialization()
    }

    fn quote(&self, text: &str) -> String {
        excerpt(&Secret::remove_from(self.key, text))
    }

    /// The provider could not be reached, or went silent.
    pub(super) fn unreachable_error(&self, why: &str) -> AttemptError {
        let message = format!("{} at {} {why}", self.provider.name, self.origin());
        AttemptError::new(RetryAdvice::Backoff, Code::ModelUnreachable, message)
            .hint("look whether the service runs and the network is there, then resume the run")
    }

    /// Nothing came for longer than is waited.
    pub(super) fn silence_error(&self, time: Duration) -> AttemptError {
        self.unreachable_error(&format!("was silent for {} s", time.as_secs_f64()))
    }

    /// What came cannot be read, or ended before its end.
    pub(super) fn broken_reply(&self, why: &str) -> AttemptError {
        let message = format!("the reply of {}/{} {why}", self.provider.name, self.model);
        AttemptError::new(RetryAdvice::Backoff, Code::ModelBroken, message).hint("resume the run to ask again")
    }

    /// What answers there is no model service; asking again would not make it one.
    pub(super) fn not_a_service(&self, why: &str) -> AttemptError {
        let message = format!("{} {why}, which no model service does", self.origin());
        AttemptError::new(RetryAdvice::Never, Code::ModelBroken, message)
            .hint(format!("look at the base URL of {}", self.provider.name))
    }

    /// The model did not want to, or a filter did not let it.
    pub(super) fn refusal_error(&self, said: &str) -> AttemptError {
        let name = &self.provider.name;
        let message = if said.is_empty() {
            format!("{name}/{} stopped: the provider's content filter held the reply back", self.model)
        } else {
            format!("{name}/{} declined to answer: {}", self.model, self.quote(said))
        };
        AttemptError::new(RetryAdvice::Never, Code::ModelRefused, message)
            .hint("change the prompt, or ask another model")
    }

    /// An answer that is an error by its status.
    pub(super) fn status_error(&self, status: u16, retry_after: Option<Duration>, body: &str) -> AttemptError {
        let said = ServerError::read(body);
        // What some providers say with a status that means something else at the others.
        let meant = match status {
            429 if said.kind.contains("insufficient_quota") => 402,
            400 if said.kind.contains("model_not_found") => 404,
            400 if said.message.to_ascii_lowercase().contains("api key") => 401,
            status => status,
        };
        let mut fault = self.error_for_status(meant, retry_after, &said.message);
        // What a server of Python's does not know of a body, it refuses with 422.
        fault.refusal = matches!(meant, 400 | 422).then(|| Box::new(said.refusal));
        fault
    }

    /// An error that came within a stream whose status was good.
    pub(super) fn stream_error(&self, error: &Value) -> AttemptError {
        let said = ServerError::from_json(error);
        let kind = said.kind.to_ascii_lowercase();
        let status = match kind.split_whitespace().next().and_then(|word| word.parse::<u16>().ok()) {
            Some(status @ 400..=599) => status,
            _ if kind.contains("quota") => 402,
            _ if kind.contains("overloaded") => 529,
            _ if kind.contains("rate_limit") => 429,
            _ if kind.contains("authentication") || kind.contains("api_key") => 401,
            _ if kind.contains("permission") => 403,
            _ if kind.contains("not_found") => 404,
            _ if kind.contains("invalid_request") => 400,
            _ => 500,
        };
        self.error_for_status(status, None, &said.message)
    }

    fn error_for_status(&self, status: u16, retry_after: Option<Duration>, said: &str) -> AttemptError {
        let (name, model) = (&self.provider.name, self.model);
        let soon = retry_after.map_or(RetryAdvice::Backoff, RetryAdvice::After);
        let quoted = if said.is_empty() { String::new() } else { format!(": {}", self.quote(said)) };
        match status {
            300..=399 => self.not_a_service(&format!("answered with a redirect ({status})")),
            401 | 403 => {
                let source = self.provider.key.describe(name);
                AttemptError::new(
                    RetryAdvice::Never,
                    Code::KeyRefused,
                    format!("{name} refused the key in {source} ({status})"),
                )
                .hint(format!("put a valid key into {source}, or check that it may use {model}"))
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
                None => "`nietz models` shows which models can be named".to_owned(),
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

/// What an error body says, in the many forms that there are.
struct ServerError {
    message: String,
    /// The machine's words for it, with blanks between: code (a word or a number), type, status.
    kind: String,
    refusal: Refusal,
}

impl ServerError {
    fn read(body: &str) -> ServerError {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => ServerError::from_json(&value),
            // A page of HTML says nothing to a reader of one line.
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
            // Gemini wraps it into a list.
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
        // Whoever stands between hands on what the provider said.
        let raw = error.pointer("/metadata/raw").and_then(Value::as_str).unwrap_or_default();
        let refusal = Refusal { message: format!("{message} {raw} {}", validation_details(error)), param };
        ServerError { message: message.to_owned(), kind, refusal }
    }
}

/// Returns what servers of Python's list, `loc` and `msg` of each, in one text.
fn validation_details(error: &Value) -> String {
    let list = error.get("detail").or(error.pointer("/message/detail")).and_then(Value::as_array);
    let place = |fault: &Value| -> Vec<String> {
        let parts = fault["loc"].as_array().map(Vec::as_slice).unwrap_or_default();
        parts.iter().filter_map(Value::as_str).chain(fault["msg"].as_str()).map(str::to_owned).collect()
    };
    list.into_iter().flatten().flat_map(place).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "tests/fault.rs"]
mod tests;
