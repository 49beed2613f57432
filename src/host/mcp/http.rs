//! A server at an address: streamable HTTP, one POST for each message. The reply is JSON, or a stream of events that ends with it.

use std::cell::{Cell, RefCell};

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{StatusCode, Url};
use serde_json::Value;

use super::peer::{NoReply, Replied};
use crate::error::{Code, Failure, Result};
use crate::host::llm::sse::Parser;
use crate::host::network::{self, Network};
use crate::host::rpc::{self, LONGEST, Message, RpcError};
use crate::host::secret::Secret;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The way to one server.
pub(super) struct HttpLink {
    client: reqwest::Client,
    url: Url,
    key: Option<HeaderValue>,
    next: Cell<u64>,
    /// What the server calls this connection.
    session: RefCell<Option<HeaderValue>>,
    version: RefCell<Option<HeaderValue>>,
    is_open: Cell<bool>,
}

impl HttpLink {
    /// # Errors
    ///
    /// `key-refused` if the key can be in no header, `internal` if HTTP cannot be set up.
    pub(super) fn new(network: &Network, url: Url, key: Option<&Secret>) -> Result<HttpLink> {
        let client = network.client()?.redirect(reqwest::redirect::Policy::none()).build();
        let client = client.map_err(|error| Failure::new(Code::Internal, format!("cannot set up HTTP: {error}")))?;
        let header = |key: &Secret| {
            key.header("Bearer ").ok_or_else(|| {
                Failure::new(Code::KeyRefused, "the key of an MCP server has characters that no key can have")
                    .hint("put the key alone there, without line ends")
            })
        };
        Ok(HttpLink {
            client,
            url,
            key: key.map(header).transpose()?,
            next: Cell::new(1),
            session: RefCell::default(),
            version: RefCell::default(),
            is_open: Cell::new(true),
        })
    }

    /// Sets the version that both sides speak from now on.
    pub(super) fn speak(&self, version: &str) {
        *self.version.borrow_mut() = HeaderValue::from_str(version).ok();
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open.get()
    }

    pub(super) async fn notify(&self, method: &str, params: &Value) {
        // Nothing comes back to it; a server that is gone is noticed by the next request.
        let _ = self.post(method, params, rpc::notification(method, params)).await;
    }

    /// Sends a request. `alive` is called whenever the server says that it is still at it.
    pub(super) async fn request(&self, method: &str, params: impl FnOnce(u64) -> Value, alive: &dyn Fn()) -> Replied {
        let id = self.next.replace(self.next.get() + 1);
        let params = params(id);
        let response = self.post(method, &params, rpc::request(id, method, &params)).await;
        let response = response.map_err(|error| self.lost(&error))?;
        if let Some(session) = response.headers().get(SESSION) {
            *self.session.borrow_mut() = Some(session.clone());
        }
        let status = response.status();
        let is_stream = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"));
        let replied = match is_stream {
            true => events(response, id, alive).await,
            false => whole(response, id).await,
        };
        match replied {
            Err(NoReply::Ended(_)) if !status.is_success() => {
                // A session that the server has forgotten, or a key that it refuses: the next request begins anew.
                self.is_open.set(false);
                Err(NoReply::Ended(answered(status)))
            }
            replied => replied,
        }
    }

    async fn post(&self, method: &str, params: &Value, body: String) -> reqwest::Result<reqwest::Response> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.extend(self.key.clone().map(|key| (AUTHORIZATION, key)));
        headers.extend(self.session.borrow().clone().map(|session| (SESSION, session)));
        headers.extend(self.version.borrow().clone().map(|version| (VERSION, version)));
        headers.extend(HeaderValue::from_str(method).map(|method| (METHOD, method)));
        let name = params["name"].as_str().and_then(|name| HeaderValue::from_str(name).ok());
        headers.extend(name.map(|name| (NAME, name)));
        self.client.post(self.url.clone()).headers(headers).body(body).send().await
    }

    fn lost(&self, error: &reqwest::Error) -> NoReply {
        let why = match network::certificate_fault(error) {
            Some(fault) => format!("{}: {}", network::place(&self.url), fault.why),
            None => format!("{} cannot be reached", network::place(&self.url)),
        };
        NoReply::Ended(why)
    }
}

fn answered(status: StatusCode) -> String {
    match status.as_u16() {
        401 | 403 => format!("it answered {status}: it wants a key (key_env, key_command), or another one"),
        300..=399 => format!("it answered {status}, and redirects are not followed"),
        _ => format!("it answered {status}"),
    }
}

/// Reads a reply that is one document.
async fn whole(mut response: reqwest::Response, id: u64) -> Replied {
    let mut body = Vec::new();
    while let Some(piece) = next(&mut response).await? {
        body.extend_from_slice(&piece);
        if body.len() > LONGEST {
            return Err(too_long());
        }
    }
    reply(&body, id).unwrap_or_else(|| Err(NoReply::Ended("what it answered is no message".to_owned())))
}

/// Reads events up to the reply.
async fn events(mut response: reqwest::Response, id: u64, alive: &dyn Fn()) -> Replied {
    let mut parser = Parser::default();
    loop {
        while let Some(event) = parser.event().map_err(|_| NoReply::Ended("what it sent is not UTF-8".to_owned()))? {
            alive();
            if let Some(replied) = reply(event.as_bytes(), id) {
                return replied;
            }
        }
        let Some(piece) = next(&mut response).await? else {
            return Err(NoReply::Ended("its answer ended before the reply".to_owned()));
        };
        parser.push(&piece);
        if parser.unfinished_length() > LONGEST {
            return Err(too_long());
        }
    }
}

async fn next(response: &mut reqwest::Response) -> std::result::Result<Option<bytes::Bytes>, NoReply> {
    response.chunk().await.map_err(|_| NoReply::Ended("its answer was cut off".to_owned()))
}

fn reply(message: &[u8], id: u64) -> Option<Replied> {
    match Message::read(message)? {
        Message::Reply { id: of, outcome } if of == id => {
            Some(outcome.map_err(|error: RpcError| NoReply::Refused(error)))
        }
        // What it asks for meanwhile is not offered, and what it tells is no reply.
        Message::Reply { .. } | Message::Request { .. } | Message::Notification { .. } => None,
    }
}

fn too_long() -> NoReply {
    NoReply::Ended(format!("it sent a message of more than {} MB", LONGEST >> 20))
}
