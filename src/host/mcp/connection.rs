//! One server that is spoken to: the handshake in both eras of the protocol, the list of its tools, and calls of them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::HttpLink;
use super::peer::{NoReply, Peer, Replied};
use super::tools;
use crate::error::{Code, Failure, Result};
use crate::host::exec::Service;
use crate::model::effect::mcp::{ServedTool, ToolCall, ToolResult};
use crate::model::redact::Redactor;
use crate::model::text::{clean, excerpt};

/// The version that is asked for, and those that a server may answer with.
const VERSION: &str = "2025-11-25";
const VERSIONS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", VERSION];
/// The first version without a handshake, in which each request says who asks.
const MODERN: &str = "2026-07-28";
/// The most pages of a list of tools.
const PAGES: usize = 50;

/// The way to a server.
pub(super) enum Link {
    /// By the pipes of its process.
    Pipes {
        peer: Peer,
        service: tokio::sync::Mutex<Service>,
    },
    Http(HttpLink),
}

/// An open connection to a server.
pub(super) struct Connection {
    link: Link,
    name: String,
    limit: Duration,
    /// Whether each request says who asks.
    is_modern: bool,
    /// Whether the server says that it has tools.
    has_tools: bool,
    /// What its tools said of themselves when they were last looked at, by their names.
    definitions: RefCell<Option<BTreeMap<String, String>>>,
    redactor: Redactor,
}

impl Connection {
    /// Shakes hands.
    ///
    /// # Errors
    ///
    /// `server-failed` if the server does not answer, or speaks no version that is known here.
    pub(super) async fn open(name: &str, link: Link, limit: Duration, redactor: Redactor) -> Result<Connection> {
        let mut connection = Connection {
            link,
            name: name.to_owned(),
            limit,
            is_modern: false,
            has_tools: false,
            definitions: RefCell::default(),
            redactor,
        };
        let hello = json!({
            "protocolVersion": VERSION, "capabilities": {},
            "clientInfo": { "name": "nietz", "version": env!("CARGO_PKG_VERSION") },
        });
        let told = match connection.request("initialize", hello, limit, &|| {}).await {
            Ok(told) => told,
            // Since 2026-07-28 nobody shakes hands: each request says what else would be said once.
            Err(Unanswered::No(NoReply::Refused(_))) => return connection.discover().await,
            Err(other) => return Err(connection.failure(other, "it does not answer `initialize`").await),
        };
        let version = told["protocolVersion"].as_str().unwrap_or_default();
        if !VERSIONS.contains(&version) {
            return Err(connection.unknown_version(version));
        }
        if let Link::Http(http) = &connection.link {
            http.speak(version);
        }
        connection.notify("notifications/initialized").await;
        connection.has_tools = told["capabilities"]["tools"].is_object();
        Ok(connection)
    }

    async fn discover(mut self) -> Result<Connection> {
        self.is_modern = true;
        if let Link::Http(http) = &self.link {
            http.speak(MODERN);
        }
        let told = match self.request("server/discover", json!({}), self.limit, &|| {}).await {
            Ok(told) => told,
            Err(other) => {
                return Err(self.failure(other, "it answers neither `initialize` nor `server/discover`").await);
            }
        };
        let versions: Vec<&str> =
            told["supportedVersions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if !versions.contains(&MODERN) {
            return Err(self.unknown_version(&versions.join(", ")));
        }
        self.has_tools = told["capabilities"]["tools"].is_object();
        Ok(self)
    }

    pub(super) fn is_open(&self) -> bool {
        match &self.link {
            Link::Pipes { peer, .. } => peer.is_open(),
            Link::Http(http) => http.is_open(),
        }
    }

    /// Returns the server's tools, and the names of those that cannot be offered, with why.
    pub(super) async fn tools(&self) -> Result<(Vec<ServedTool>, Vec<(String, String)>)> {
        let (mut served, mut refused) = (Vec::new(), Vec::new());
        let mut params = json!({});
        for _ in 0..if self.has_tools { PAGES } else { 0 } {
            let page = match self.request("tools/list", params, self.limit, &|| {}).await {
                Ok(page) => page,
                Err(other) => return Err(self.failure(other, "it does not answer `tools/list`").await),
            };
            let Some(tools) = page["tools"].as_array() else {
                return Err(self.failed("what it answered to `tools/list` is no list of tools"));
            };
            for tool in tools {
                match tools::read(tool) {
                    Ok(tool) if served.len() < tools::MOST => served.push(tool),
                    Ok(tool) => refused.push((tool.name, format!("{} others are there already", tools::MOST))),
                    Err(why) => refused.push(why),
                }
            }
            match page["nextCursor"].as_str().filter(|cursor| !cursor.is_empty()) {
                Some(cursor) if served.len() < tools::MOST => params = json!({ "cursor": cursor }),
                _ => break,
            }
        }
        let definitions = served.iter().map(|tool| (tool.name.clone(), tool.definition.clone())).collect();
        *self.definitions.borrow_mut() = Some(definitions);
        Ok((served, refused))
    }

    /// Calls a tool that is as the flow has seen it.
    pub(super) async fn call(&self, call: &ToolCall, alive: &dyn Fn()) -> Result<ToolResult> {
        self.hold(call).await?;
        let limit = call.seconds.map_or(self.limit, Duration::from_secs_f64);
        let params = json!({ "name": call.tool, "arguments": call.arguments });
        let told = match self.request("tools/call", params, limit, alive).await {
            Ok(told) => told,
            Err(Unanswered::No(NoReply::Refused(error))) => {
                let why = self.redactor.text(&clean(&error.message)).into_owned();
                return Err(self.tool_failed(call, &format!("{why} ({})", error.code)));
            }
            Err(other) => {
                let failure = self.failure(other, "it does not answer the call").await;
                // Whether it was called before the server ended or nobody waited any more, nobody here knows.
                return Err(match call.repeatable {
                    true => failure,
                    false => Failure { details: failure.details, ..call.in_doubt(&failure.message) },
                });
            }
        };
        tools::result(&told).map_err(|why| self.tool_failed(call, &self.redactor.text(&why)))
    }

    /// Makes sure that a tool still says of itself what it said when the flow saw it.
    async fn hold(&self, call: &ToolCall) -> Result<()> {
        let changed = match &self.link {
            Link::Pipes { peer, .. } => peer.take_tools_changed(),
            Link::Http(_) => false,
        };
        if changed || self.definitions.borrow().is_none() {
            self.tools().await?;
        }
        let definitions = self.definitions.borrow();
        match definitions.as_ref().and_then(|all| all.get(&call.tool)) {
            Some(definition) if *definition == call.definition => Ok(()),
            Some(_) => {
                let (tool, server) = (excerpt(&call.tool), &self.name);
                let message = format!(
                    "`{tool}` of the MCP server `{server}` says something else of itself than when it was looked at"
                );
                Err(Failure::new(Code::ToolChanged, message).hint("look at the server, then begin a new run"))
            }
            None => Err(self.tool_failed(call, "the server has no such tool any more")),
        }
    }

    async fn notify(&self, method: &str) {
        match &self.link {
            Link::Pipes { peer, .. } => peer.notify(method, &json!({})),
            Link::Http(http) => http.notify(method, &json!({})).await,
        }
    }

    async fn request(
        &self,
        method: &str,
        mut params: Value,
        limit: Duration,
        alive: &dyn Fn(),
    ) -> std::result::Result<Value, Unanswered> {
        let is_modern = self.is_modern;
        let with_meta = move |id: u64| {
            params["_meta"] = match is_modern {
                true => json!({
                    "io.modelcontextprotocol/protocolVersion": MODERN,
                    "io.modelcontextprotocol/clientInfo": { "name": "nietz", "version": env!("CARGO_PKG_VERSION") },
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "progressToken": id,
                }),
                false => json!({ "progressToken": id }),
            };
            params
        };
        let replied = async {
            match &self.link {
                Link::Pipes { peer, .. } => {
                    let mut open = peer.request(method, with_meta);
                    let signs = std::sync::Arc::clone(&open.alive);
                    loop {
                        tokio::select! {
                            biased;
                            replied = &mut open.reply => return replied.unwrap_or_else(|_| Err(NoReply::Ended(String::new()))),
                            () = signs.notified() => alive(),
                        }
                    }
                }
                Link::Http(http) => http.request(method, with_meta, alive).await,
            }
        };
        let replied: std::result::Result<Replied, _> = tokio::time::timeout(limit, replied).await;
        match replied {
            Ok(replied) => replied.map_err(Unanswered::No),
            Err(_) => Err(Unanswered::Late(limit)),
        }
    }

    /// Says why a request has no result, as far as anybody knows.
    async fn failure(&self, unanswered: Unanswered, what: &str) -> Failure {
        let clean = |text: &str| self.redactor.text(&clean(text)).into_owned();
        let failure = match unanswered {
            Unanswered::No(NoReply::Refused(error)) => {
                self.failed(&format!("{what}: {} ({})", clean(&error.message), error.code))
            }
            Unanswered::No(NoReply::Ended(why)) => {
                // One that was given up says nothing any more.
                let ended = match &self.link {
                    Link::Pipes { service, .. } if why.is_empty() => service.lock().await.why_ended().await,
                    Link::Pipes { .. } | Link::Http(_) => None,
                };
                match ended {
                    Some(ended) if ended.code == Code::SandboxMissing => return ended,
                    Some(ended) => self.failed(&clean(&ended.message)),
                    None if why.is_empty() => self.failed("it has closed its output"),
                    None => self.failed(&clean(&why)),
                }
            }
            Unanswered::Late(limit) => {
                let more = format!("more time is `seconds` in config.yaml: mcp: {{ {}: {{ seconds: … }} }}", self.name);
                self.failed(&format!("{what} within {} s", limit.as_secs_f64())).hint(more)
            }
        };
        let Link::Pipes { peer, service } = &self.link else { return failure };
        let failure = match peer.odd_line() {
            Some(odd) => {
                failure.because(format!("it wrote to its standard output what is no message: {}", clean(&odd)))
            }
            None => failure,
        };
        match service.lock().await.errors() {
            errors if errors.is_empty() => failure,
            errors => failure.because(clean(&errors)),
        }
    }

    fn failed(&self, why: &str) -> Failure {
        Failure::new(Code::ServerFailed, format!("the MCP server `{}`: {why}", self.name))
    }

    fn tool_failed(&self, call: &ToolCall, why: &str) -> Failure {
        let tool = excerpt(&call.tool);
        Failure::new(Code::ToolFailed, format!("`{tool}` of the MCP server `{}`: {why}", self.name))
    }

    fn unknown_version(&self, version: &str) -> Failure {
        let known = VERSIONS.iter().copied().chain([MODERN]).collect::<Vec<_>>().join(", ");
        self.failed(&format!("it speaks the protocol of `{}`", excerpt(version)))
            .hint(format!("known here are {known}; another version of the server may speak one of them"))
    }
}

/// Why a request has no result.
enum Unanswered {
    No(NoReply),
    /// Nobody waits any more, after so long.
    Late(Duration),
}
