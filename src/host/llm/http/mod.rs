//! One attempt of a call over HTTP: send the request, check the status, read the reply.

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, Utc};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Request, Url};

use super::attempt_error::{AttemptError, CallContext};
use super::partial_reply::{Assemble, OnPiece, ReplyStage};
use super::provider::Wire;
use super::stream::{self, ResponseBody};
use super::{anthropic, cache, openai, responses};
use crate::error::{Code, Failure, Result};
use crate::host::network::{self, Network};
use crate::model::chat::{ChatReply, ChatRequest};
use crate::model::text::excerpt_within;

/// The most letters of a cause that are told.
const TOLD: usize = 200;

/// Builds the one HTTP client of the process for calls.
pub(super) fn client(network: &Network) -> Result<reqwest::Client> {
    network
        .client()?
        // A redirect would send the key to another place.
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| Failure::new(Code::Internal, format!("cannot set up HTTP: {error}")))
}

/// Writes the request of one attempt.
pub(super) fn request(context: CallContext<'_>, request: &ChatRequest) -> Result<Request> {
    let CallContext { provider, model, .. } = context;
    let (path, body) = match context.wire() {
        Wire::OpenAi => (openai::PATH, openai::body(context, request)),
        Wire::Anthropic => (anthropic::PATH, anthropic::body(context, request)),
        Wire::Responses => (responses::PATH, responses::body(context, request)),
    };
    let mut http = Request::new(Method::POST, endpoint(&provider.base, model, path));
    *http.body_mut() = Some(body.into());
    let headers = http.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // xAI finds what it has of a conversation on the server that answered before.
    if let Some(name) = cache::conversation(provider, request).filter(|_| provider.name == "xai") {
        headers.extend(HeaderValue::try_from(name).map(|name| (HeaderName::from_static("x-grok-conv-id"), name)));
    }
    authorize(context, headers)?;
    Ok(http)
}

/// Adds the headers by which a provider knows the wire and the user.
pub(super) fn authorize(context: CallContext<'_>, headers: &mut HeaderMap) -> Result<()> {
    let CallContext { provider, key, .. } = context;
    let (usual_header, usual_prefix) = match context.wire() {
        Wire::OpenAi | Wire::Responses => (AUTHORIZATION, "Bearer "),
        Wire::Anthropic => {
            headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
            (HeaderName::from_static("x-api-key"), "")
        }
    };
    let (name, prefix) = match provider.key_header.clone() {
        // This header takes a key by its scheme, whatever the wire's usual header is.
        Some(name) if name == AUTHORIZATION => (name, "Bearer "),
        Some(name) => (name, ""),
        None => (usual_header, usual_prefix),
    };
    if let Some(key) = key {
        let value = key.header(prefix).ok_or_else(|| {
            let source = provider.key.describe(&provider.name);
            Failure::new(Code::KeyRefused, format!("the key in {source} has characters that no key can have"))
                .hint(format!("put the key alone into {source}, without line ends"))
        })?;
        headers.insert(name, value);
    }
    Ok(())
}

/// Returns the address of an endpoint. People write base URLs with and without a slash at the end, and
/// with and without the `v1` that Anthropic's path already contains. A query stays where it is.
pub(super) fn endpoint(base: &Url, model: &str, path: &str) -> Url {
    let mut url = base.clone();
    // The braces of `{model}` are escaped in a URL.
    let with_model = base.path().replace("%7Bmodel%7D", model);
    let mut prefix = with_model.trim_end_matches('/');
    if path.starts_with("v1/") {
        prefix = prefix.strip_suffix("/v1").unwrap_or(prefix);
    }
    let full_path = format!("{prefix}/{path}");
    url.set_path(&full_path);
    url
}

/// Makes one attempt.
pub(super) async fn attempt(
    client: &reqwest::Client,
    http: Request,
    context: CallContext<'_>,
    request: &ChatRequest,
    on_piece: OnPiece<'_>,
) -> Result<ChatReply, AttemptError> {
    let silence = context.provider.silence;
    let response = match tokio::time::timeout(silence, client.execute(http)).await {
        Err(_) => return Err(context.silence_error(silence)),
        Ok(Err(error)) => return Err(send_error(context, &error)),
        Ok(Ok(response)) => response,
    };
    let status = response.status().as_u16();
    if status != 200 {
        let wait = retry_after(response.headers(), Utc::now());
        return Err(context.status_error(status, wait, &stream::read_start(response).await));
    }
    let mut reply: Box<dyn Assemble + '_> = match context.wire() {
        Wire::OpenAi => Box::new(openai::Reply::new(context, request)),
        Wire::Anthropic => Box::new(anthropic::Reply::new(context, request)),
        Wire::Responses => Box::new(responses::Reply::new(context, request)),
    };
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind.contains("json") {
        reply.push_body(&stream::read_whole(response, silence, context).await?, on_piece)?;
        return reply.into_reply();
    }
    if kind.starts_with("text/html") {
        return Err(context.not_a_service("answered with a web page"));
    }
    let mut body = ResponseBody::new(response, silence);
    let mut stage = ReplyStage::Streaming;
    loop {
        let data = match stage {
            ReplyStage::Streaming => body.event(context).await?,
            ReplyStage::TextComplete => body.event_after_end(context).await,
            ReplyStage::Ended => {
                body.drain().await;
                break;
            }
        };
        let Some(data) = data else { break };
        stage = match (stage, reply.push_event(&data, on_piece)) {
            (_, Ok(next)) => next,
            // The reply is complete and paid for: nonsense after it is not worth another call.
            (ReplyStage::TextComplete, Err(_)) => break,
            (_, Err(error)) => return Err(error),
        };
    }
    reply.into_reply()
}

pub(super) fn send_error(context: CallContext<'_>, error: &reqwest::Error) -> AttemptError {
    if let Some(fault) = network::certificate_fault(error) {
        return context.certificate_error(&fault);
    }
    if network::is_refused(error) && context.provider.is_on_this_machine() {
        return context.not_running();
    }
    let mut attempt_error = match (error.is_connect(), error.is_timeout()) {
        (true, true) => context.unreachable_error("cannot be reached: connecting took too long"),
        (true, false) => context.unreachable_error("cannot be reached"),
        (false, true) => context.unreachable_error("took too long"),
        (false, false) => context.unreachable_error("closed the connection without an answer"),
    };
    // The innermost cause is the telling one, such as "connection refused".
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    if let Some(cause) = cause {
        attempt_error.failure = attempt_error.failure.because(excerpt_within(&cause.to_string(), TOLD));
    }
    attempt_error
}

/// Returns how long the provider asks to wait, from whichever header it uses.
fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = |name: &HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let millis = text(&HeaderName::from_static("retry-after-ms")).and_then(|text| text.parse::<f64>().ok());
    if let Some(wait) = millis.and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok()) {
        return Some(wait);
    }
    let value = text(&RETRY_AFTER)?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    // HTTP has two older date formats besides.
    let older = |text: &str| {
        let forms = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
        forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok()).map(|date| date.and_utc())
    };
    let date = |text: &str| {
        DateTime::parse_from_rfc2822(text).map(|date| date.with_timezone(&Utc)).ok().or_else(|| older(text))
    };
    // The server's own clock, if it sends a date, so that a wrong clock here does no harm.
    let now = text(&DATE).and_then(date).unwrap_or(now);
    Some((date(value)? - now).to_std().unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests;
