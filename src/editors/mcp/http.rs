//! The same server for several clients of this machine: streamable HTTP at the loopback, for who knows the token. Names and
//! origins of others are refused, so that no page in a browser can speak with it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::McpServer;
use crate::editors::lines::LONGEST;
use crate::error::{Code, Failure, Result};

/// How long a session of the older protocol may say nothing; a form may be open that long.
const IDLE: Duration = Duration::from_secs(3600);
/// Where the protocol is spoken.
const PATH: &str = "/mcp";

/// An address that is taken, where nobody is served yet.
pub(crate) struct HttpListener {
    listener: std::net::TcpListener,
    at: SocketAddr,
}

impl HttpListener {
    /// Takes an address; the port 0 is any that is free.
    ///
    /// # Errors
    ///
    /// `usage` if it is not of the loopback, or is taken.
    pub(crate) fn bind(address: SocketAddr) -> Result<HttpListener> {
        if !address.ip().is_loopback() {
            let message = format!("{} can be reached from other machines", address.ip());
            return Err(Failure::new(Code::Usage, message).hint("give an address of this one: --http 127.0.0.1:0"));
        }
        let taken = |error: std::io::Error| Failure::new(Code::Usage, format!("cannot listen at {address}: {error}"));
        let listener = std::net::TcpListener::bind(address).map_err(taken)?;
        listener.set_nonblocking(true).map_err(taken)?;
        let at = listener.local_addr().map_err(taken)?;
        Ok(HttpListener { listener, at })
    }

    /// Returns what clients are told.
    pub(crate) fn address(&self) -> String {
        format!("http://{}{PATH}", self.at)
    }
}

impl McpServer {
    /// Serves clients that say the token, until the process ends.
    ///
    /// # Errors
    ///
    /// `internal` if the listener fails.
    pub(crate) async fn serve_http(self, at: HttpListener, token: &str) -> Result<()> {
        let failed = |error: std::io::Error| Failure::new(Code::Internal, format!("{}: {error}", at.at));
        let names = [at.at.to_string(), format!("localhost:{}", at.at.port())];
        let config = StreamableHttpServerConfig::default()
            .with_allowed_origins(names.iter().map(|name| format!("http://{name}")))
            .with_allowed_hosts(names)
            .enforce_origin_validation()
            .with_max_request_body_bytes(LONGEST);
        let shared = self.shared;
        let of_session = move || Ok(McpServer::with(Arc::clone(&shared)));
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(IDLE);
        let service = StreamableHttpService::new(of_session, Arc::new(sessions), config);
        let digest = blake3::hash(token.as_bytes());
        let router = axum::Router::new().route_service(PATH, service).layer(from_fn_with_state(digest, guard));
        let listener = tokio::net::TcpListener::from_std(at.listener).map_err(failed)?;
        axum::serve(listener, router).await.map_err(failed)
    }
}

/// Lets through who says the token.
async fn guard(State(token): State<blake3::Hash>, request: Request, next: Next) -> Response {
    let mut said = request.headers().get_all(header::AUTHORIZATION).iter();
    let only = said.next().filter(|_| said.next().is_none()).and_then(|value| value.to_str().ok());
    let given = only.and_then(|value| value.split_once(' ')).filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
    // Digests are compared, so that the time that it takes tells nothing.
    if given.is_none_or(|(_, given)| blake3::hash(given.trim().as_bytes()) != token) {
        let mut refused =
            (StatusCode::UNAUTHORIZED, "this server wants its token: Authorization: Bearer …\n").into_response();
        refused.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return refused;
    }
    next.run(request).await
}
