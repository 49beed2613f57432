//! One attempt of a call over HTTP: send, look at the status, read the reply.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, Utc};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Request, Url};

use super::attempt_error::{AttemptError, CallContext};
use super::partial_reply::{Assemble, ReplyStage};
use super::provider::Wire;
use super::stream::{self, ResponseBody};
use super::{anthropic, openai};
use crate::error::{Code, Failure, Result};
use crate::model::chat::{ChatReply, ChatRequest};

const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Builds the one HTTP client of the process. Roots are compiled in: reading those of the system would
/// cost more than the rest of the start together.
pub(in crate::host) fn client() -> Result<reqwest::Client> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots: rustls::RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    let unusable = |error: &dyn std::fmt::Display| Failure::new(Code::Internal, format!("cannot set up TLS: {error}"));
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        // A redirect would take the key to another place.
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_LIMIT)
        .user_agent(concat!("nietz/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| unusable(&error))
}

/// Writes the request of one attempt.
pub(super) fn request(context: CallContext<'_>, request: &ChatRequest) -> Result<Request> {
    let CallContext { provider, key, .. } = context;
    let (path, body) = match provider.wire {
        Wire::OpenAi => (openai::PATH, openai::body(context, request)),
        Wire::Anthropic => (anthropic::PATH, anthropic::body(context, request)),
    };
    let mut http = Request::new(Method::POST, endpoint(&provider.base, path));
    *http.body_mut() = Some(body.into());
    let headers = http.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let (name, before) = match provider.wire {
        Wire::OpenAi => (AUTHORIZATION, "Bearer "),
        Wire::Anthropic => {
            headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
            (HeaderName::from_static("x-api-key"), "")
        }
    };
    if let Some(key) = key {
        let value = key.header(before).ok_or_else(|| {
            let source = provider.key.describe(&provider.name);
            Failure::new(Code::KeyRefused, format!("the key in {source} has characters that no key can have"))
                .hint(format!("put the key alone into {source}, without line ends"))
        })?;
        headers.insert(name, value);
    }
    Ok(http)
}

/// Returns the address of an endpoint. People write base URLs with and without a slash at the end, and
/// with and without the `v1` that is part of one wire's path already.
fn endpoint(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let mut before = base.path().trim_end_matches('/');
    if path.starts_with("v1/") {
        before = before.strip_suffix("/v1").unwrap_or(before);
    }
    let whole = format!("{before}/{path}");
    url.set_path(&whole);
    url
}

/// Makes one attempt.
pub(super) async fn attempt(
    client: &reqwest::Client,
    http: Request,
    context: CallContext<'_>,
    request: &ChatRequest,
    on_text: &mut dyn FnMut(&str),
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
    let mut reply: Box<dyn Assemble + '_> = match context.provider.wire {
        Wire::OpenAi => Box::new(openai::Reply::new(context, request)),
        Wire::Anthropic => Box::new(anthropic::Reply::new(context, request)),
    };
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind.contains("json") {
        reply.push_body(&stream::read_whole(response, silence, context).await?, on_text)?;
        return reply.into_reply();
    }
    if kind.starts_with("text/html") {
        return Err(context.not_a_service("answered with a web page"));
    }
    let mut body = ResponseBody::new(response, silence);
    let mut step = ReplyStage::Streaming;
    loop {
        let data = match step {
            ReplyStage::Streaming => body.event(context).await?,
            ReplyStage::TextComplete => body.event_after_end(context).await,
            ReplyStage::Ended => {
                body.drain().await;
                break;
            }
        };
        let Some(data) = data else { break };
        step = match (step, reply.push_event(&data, on_text)) {
            (_, Ok(next)) => next,
            // The reply is whole and paid for: nonsense after it is not worth another call.
            (ReplyStage::TextComplete, Err(_)) => break,
            (_, Err(fault)) => return Err(fault),
        };
    }
    reply.into_reply()
}

fn send_error(context: CallContext<'_>, error: &reqwest::Error) -> AttemptError {
    let mut fault = match (error.is_connect(), error.is_timeout()) {
        (true, true) => context.unreachable_error("cannot be reached: connecting took too long"),
        (true, false) => context.unreachable_error("cannot be reached"),
        (false, true) => context.unreachable_error("took too long"),
        (false, false) => context.unreachable_error("closed the connection without an answer"),
    };
    // The innermost cause is the one that says something, such as "connection refused".
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    if let Some(cause) = cause {
        fault.failure = fault.failure.because(crate::model::text::excerpt(&cause.to_string()));
    }
    fault
}

/// Returns how long the provider wants us to wait, from whichever header it uses.
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
    // HTTP knows two older forms of a date besides.
    let older = |text: &str| {
        let forms = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
        forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok()).map(|date| date.and_utc())
    };
    let date = |text: &str| {
        DateTime::parse_from_rfc2822(text).map(|date| date.with_timezone(&Utc)).ok().or_else(|| older(text))
    };
    // The server's own clock, where it tells, so that a wrong clock here does no harm.
    let now = text(&DATE).and_then(date).unwrap_or(now);
    Some((date(value)? - now).to_std().unwrap_or(Duration::ZERO))
}

#[cfg(test)]
#[path = "tests/http.rs"]
mod tests;
