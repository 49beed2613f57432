//! Who may ask: a page of this server, at its own address, with the token.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::View;

/// What each response says: it is kept nowhere, shown in no other page, and its address is told to nobody.
const HEADERS: [(&str, &str); 6] = [
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    // With `no-referrer`, a browser would not say either that it is this page that sends an answer.
    ("referrer-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("content-security-policy", "frame-ancestors 'none'"),
];

/// Lets a request through, or refuses it.
pub(super) async fn guard(State(view): State<Arc<View>>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&view, &request) {
        Some((status, why)) => (status, format!("{why}\n")).into_response(),
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        let value = header::HeaderValue::from_static(value);
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
    response
}

fn refusal(view: &View, request: &Request<Body>) -> Option<(StatusCode, &'static str)> {
    let headers = request.headers();
    let host = one(headers, &header::HOST);
    if !host.is_some_and(|host| view.hosts.iter().any(|own| own == host)) {
        // A name of somebody else's that leads here.
        return Some((StatusCode::MISDIRECTED_REQUEST, "this server has another name"));
    }
    let is_own =
        |origin: &str| origin.strip_prefix("http://").is_some_and(|origin| view.hosts.iter().any(|own| own == origin));
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    match one(headers, &header::ORIGIN) {
        Some(origin) if !is_own(origin) => return Some((StatusCode::FORBIDDEN, "another page asks")),
        None if headers.contains_key(header::ORIGIN) || !reads => {
            return Some((StatusCode::FORBIDDEN, "nobody says which page asks"));
        }
        Some(_) | None => {}
    }
    let token = request.uri().path().split('/').nth(1).unwrap_or_default();
    // Digests are compared, so that the time that it takes tells nothing.
    if blake3::hash(token.as_bytes()) != blake3::hash(view.token.as_bytes()) {
        return Some((StatusCode::NOT_FOUND, "there is nothing here"));
    }
    (!reads && view.options.read_only).then_some((StatusCode::FORBIDDEN, "these pages only show: --read-only"))
}

/// Returns a header that stands there once and is text.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}
