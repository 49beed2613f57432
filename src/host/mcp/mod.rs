//! MCP servers as tools for flows: those that the user's own configuration names, each started or reached when it is first needed.
//!
//! # Layout
//!
//! - `config`: what the user says of a server.
//! - [`McpServers`] performs requests; a `connection` speaks with one server, by its `peer` (pipes) or by `http`.
//! - `tools` reads what a server says of its tools, and what they give back.
//!
//! A server that is a program runs in the sandbox of commands (`host::exec::service`). It has a home of its own that lasts, and ends
//! with the process of the run. No server is given a model, a folder or a person: what it asks for is not offered.

mod config;
mod connection;
mod http;
mod peer;
mod tools;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Mutex;

use config::Route;
pub use config::{ServerConfig, ServersConfig};
use connection::{Connection, Link};
use http::HttpLink;
use peer::Peer;

use crate::error::{Code, Failure, Result, nearest};
use crate::host::exec::{Commands, ServiceTerms};
use crate::host::network::Network;
use crate::host::secret::{Secret, run_command};
use crate::model::effect::mcp::{McpOp, McpOutcome};
use crate::model::text::excerpt;

/// How many tools that cannot be offered are told one by one.
const TOLD: usize = 5;

/// What servers are started with.
pub struct McpParts {
    pub servers: ServersConfig,
    /// What runs the programs, with nothing granted.
    pub commands: Commands,
    /// The folder with the homes of servers.
    pub homes: PathBuf,
    /// The environment of commands that print keys.
    pub key_environment: BTreeMap<String, String>,
}

/// A connection, once it is there.
type Opened = Rc<Mutex<Option<Rc<Connection>>>>;

/// The servers of one run.
pub struct McpServers {
    parts: McpParts,
    /// By name. Locked while a connection is opened, so that it is opened once.
    open: RefCell<BTreeMap<String, Opened>>,
    remarks: RefCell<Vec<String>>,
}

impl McpServers {
    pub fn new(parts: McpParts) -> McpServers {
        McpServers { parts, open: RefCell::default(), remarks: RefCell::default() }
    }

    /// Performs a request. `alive` is called whenever a server says that it is still at it.
    ///
    /// # Errors
    ///
    /// `server-missing`, `server-failed`, `tool-failed`, `tool-changed`, `tool-in-doubt`; `config-invalid` and `sandbox-missing` where
    /// its program cannot be started as the user says.
    pub(crate) async fn perform(&self, op: &McpOp, alive: &dyn Fn()) -> Result<McpOutcome> {
        let connection = self.connection(op.server()).await?;
        match op {
            McpOp::Tools { server } => {
                let (tools, refused) = connection.tools().await?;
                self.remark(server, &refused);
                Ok(McpOutcome::Tools(tools))
            }
            McpOp::CallTool(call) => connection.call(call, alive).await.map(McpOutcome::Call),
        }
    }

    /// Returns what the user should know of servers, once.
    pub(crate) fn remarks(&self) -> Vec<String> {
        std::mem::take(&mut self.remarks.borrow_mut())
    }

    fn remark(&self, server: &str, refused: &[(String, String)]) {
        let mut remarks = self.remarks.borrow_mut();
        let told = refused
            .iter()
            .take(TOLD)
            .map(|(tool, why)| format!("the MCP server `{server}`: `{tool}` is not offered: {why}"));
        remarks.extend(told);
        if refused.len() > TOLD {
            remarks.push(format!("the MCP server `{server}`: {} more tools are not offered", refused.len() - TOLD));
        }
    }

    async fn connection(&self, name: &str) -> Result<Rc<Connection>> {
        let server = self.parts.servers.get(name).ok_or_else(|| self.missing(name))?;
        let slot = Rc::clone(self.open.borrow_mut().entry(name.to_owned()).or_default());
        let mut slot = slot.lock().await;
        if let Some(open) = slot.as_ref().filter(|connection| connection.is_open()) {
            return Ok(Rc::clone(open));
        }
        *slot = None;
        let link = match server.route() {
            Ok(Route::Program(words)) => self.start(name, server, words)?,
            Ok(Route::Address(url)) => {
                let network = Network::from_environment(&self.parts.commands.environment)?;
                let key = self.key(name, server).await?;
                Link::Http(HttpLink::new(&network, url, key.as_ref())?)
            }
            Err((field, why)) => return Err(Failure::new(Code::ConfigInvalid, format!("mcp.{name}.{field}: {why}"))),
        };
        let limit = Duration::from_secs_f64(server.seconds);
        let opened = Connection::open(name, link, limit, self.parts.commands.redactor.clone()).await?;
        Ok(Rc::clone(slot.insert(Rc::new(opened))))
    }

    fn start(&self, name: &str, server: &ServerConfig, words: &[String]) -> Result<Link> {
        let McpParts { commands, homes, .. } = &self.parts;
        let home = homes.join(name);
        std::fs::create_dir_all(&home).map_err(|error| Failure::io(&home, "create", &error))?;
        let home = home.canonicalize().map_err(|error| Failure::io(&home, "use", &error))?;
        let user_home = commands.environment.get("HOME").map(Path::new);
        let below_home = |path: &String| match (path.strip_prefix("~/"), user_home) {
            (Some(below), Some(home)) => home.join(below),
            _ => PathBuf::from(path),
        };
        let mut variables = server.set.clone();
        for variable in &server.env {
            let value = commands.environment.get(variable).ok_or_else(|| {
                let message = format!("the MCP server `{name}` is to be told {variable}, and that is not set");
                Failure::new(Code::ServerMissing, message).hint("set it, or take it out of `env` in config.yaml")
            })?;
            variables.insert(variable.clone(), value.clone());
        }
        let commands = Commands {
            helper: commands.helper.clone(),
            environment: commands.environment.clone(),
            grants: crate::model::command::Grants { net: server.network, ..Default::default() },
            read: server.read.iter().map(below_home).collect(),
            protected: commands.protected.clone(),
            workspace: commands.workspace.clone(),
            outputs: commands.outputs.clone(),
            outputs_shown: commands.outputs_shown.clone(),
            redactor: commands.redactor.clone(),
            usage: Default::default(),
            remarked: Default::default(),
            ..*commands
        };
        let shown = server.workspace.then_some(commands.workspace.as_path());
        let (service, pipes) = commands
            .serve(&ServiceTerms { words, home: &home, variables, shown })
            .map_err(|failure| self.not_started(name, failure))?;
        Ok(Link::Pipes { peer: Peer::start(pipes.output, pipes.input), service: Mutex::new(service) })
    }

    fn not_started(&self, name: &str, failure: Failure) -> Failure {
        match failure.code {
            Code::ConfigInvalid => {
                Failure { message: failure.message.replace("commands.read", &format!("mcp.{name}.read")), ..failure }
            }
            Code::CommandFailed => Failure {
                code: Code::ServerFailed,
                message: format!("the MCP server `{name}`: {}", failure.message),
                ..failure
            },
            _ => failure,
        }
    }

    /// Returns the key that a server at an address wants, if it has one.
    async fn key(&self, name: &str, server: &ServerConfig) -> Result<Option<Secret>> {
        let redactor = &self.parts.commands.redactor;
        let (place, key) = match (&server.key_env, &server.key_command) {
            (Some(variable), _) => {
                let key = self.parts.commands.environment.get(variable).and_then(|value| Secret::new(value));
                let missing = || {
                    let message = format!("there is no key for the MCP server `{name}`: {variable} is not set");
                    Failure::new(Code::KeyMissing, message)
                        .hint(format!("set {variable}, or name another in config.yaml"))
                };
                (variable.clone(), key.ok_or_else(missing)?)
            }
            (None, Some(command)) => {
                let place = format!("mcp.{name}.key_command");
                let key = run_command(&place, command, &self.parts.key_environment).await?;
                (place, key)
            }
            (None, None) => return Ok(None),
        };
        key.tell(redactor, &place);
        Ok(Some(key))
    }

    fn missing(&self, name: &str) -> Failure {
        let shown = excerpt(name);
        let failure = Failure::new(Code::ServerMissing, format!("your configuration names no MCP server `{shown}`"));
        match nearest(name, self.parts.servers.keys().map(String::as_str)) {
            Some(near) => failure.hint(format!("it names `{near}`: is that the one?")),
            None => failure.hint(format!("name it in your config.yaml: mcp: {{ {shown}: {{ command: [PROGRAM] }} }}")),
        }
    }
}
