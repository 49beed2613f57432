//! `nietz acp`: nietz as an agent of the Agent Client Protocol, for editors.
//!
//! A session is a conversation with flows: `/NAME …` begins a run, and what is said next answers its question. The runs of a
//! session have its name, so that a session is found again by them, and any run of the user's can be loaded as one.

mod actions;
mod options;
mod session;
mod shown;
mod turn;
mod typed;
mod wire;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, CancelNotification, ClientCapabilities, ConfigOptionUpdate, Error, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
    LoadSessionResponse, NewSessionRequest, NewSessionResponse, PromptCapabilities, PromptRequest,
    ResumeSessionRequest, ResumeSessionResponse, SessionCapabilities, SessionConfigOptionValue, SessionInfo,
    SessionListCapabilities, SessionResumeCapabilities, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::BufReader;

use crate::editors::lines::{LineReader, TooLong};
use crate::editors::offer::Offer;
use crate::editors::supervisor::Supervisor;
use crate::engine::run_records::Origin;
use crate::error::{Code, Failure, Result};
use crate::model::text::{clean, excerpt};
use session::Session;
use wire::{Incoming, Wire};

/// What the names of sessions begin with, before 32 digits.
const SESSION: &str = "acp-";

/// What starts runs in a folder, and the flows that are offered there.
pub(crate) type InFolder = (Supervisor, Vec<Offer>);

/// Finds what there is in a folder of a client's.
type OpenFolder<'a> = dyn Fn(&Path) -> Result<InFolder> + 'a;

/// What the user says of the agent.
pub(crate) struct AcpOptions<'a> {
    /// Returns what there is in a folder of the client's.
    pub folder: Box<OpenFolder<'a>>,
    /// The folder that is meant where a client names none.
    pub here: PathBuf,
    /// The commands that a client may name where a flow runs one.
    pub allowed: Vec<String>,
}

/// The agent, for one client.
struct Agent<'a> {
    wire: Wire,
    options: AcpOptions<'a>,
    client: RefCell<ClientCapabilities>,
    sessions: RefCell<HashMap<String, Rc<Session>>>,
    folders: RefCell<HashMap<PathBuf, Rc<InFolder>>>,
}

type Answered = std::result::Result<Value, Error>;

/// Serves the client at standard input and output until it leaves.
///
/// # Errors
///
/// `internal` if standard input cannot be read.
pub(crate) async fn serve(options: AcpOptions<'_>) -> Result<()> {
    let agent = Agent {
        wire: Wire::default(),
        options,
        client: RefCell::default(),
        sessions: RefCell::default(),
        folders: RefCell::default(),
    };
    let (mut input, mut lines) = (BufReader::new(tokio::io::stdin()), LineReader::default());
    let mut turns = futures_util::stream::FuturesUnordered::new();
    loop {
        use futures_util::StreamExt as _;
        let line = tokio::select! {
            line = lines.next(&mut input) => line,
            Some(()) = turns.next(), if !turns.is_empty() => continue,
        };
        let line = line.map_err(|error| Failure::new(Code::Internal, format!("standard input: {error}")))?;
        match line {
            // The client is gone. What its runs do goes on without it, to their next question.
            None => return Ok(()),
            Some(Err(TooLong)) => {
                agent.wire.reply(&Value::Null, Err(Error::invalid_request().data(json!(TooLong::told()))));
            }
            Some(Ok(line)) => match agent.wire.take(&line) {
                Some(Incoming::Request { id, method, params }) => turns.push(agent.answer(id, method, params)),
                Some(Incoming::Notification { method, params }) => agent.notified(&method, params),
                Some(Incoming::Wrong(id, error)) => agent.wire.reply(&id.unwrap_or_default(), Err(error)),
                None => {}
            },
        }
    }
}

fn read<T: DeserializeOwned>(params: Value) -> std::result::Result<T, Error> {
    serde_json::from_value(params).map_err(|error| Error::invalid_params().data(json!(excerpt(&error.to_string()))))
}

fn written(value: &impl Serialize) -> Answered {
    serde_json::to_value(value).map_err(|error| Error::internal_error().data(json!(error.to_string())))
}

fn refused(failure: &Failure) -> Error {
    let text = format!("[{}] {}", failure.code.name(), clean(&failure.message));
    match failure.code {
        Code::Internal | Code::DiskFailed => Error::internal_error().data(json!(text)),
        _ => Error::invalid_params().data(json!(text)),
    }
}

impl Agent<'_> {
    async fn answer(&self, id: Value, method: String, params: Value) {
        let known = params["sessionId"].as_str().map(str::to_owned);
        let answered = self.request(&method, params).await;
        let opened = match (&answered, method.as_str()) {
            (Ok(result), "session/new") => result["sessionId"].as_str().map(str::to_owned),
            (Ok(_), "session/load" | "session/resume") => known,
            _ => None,
        };
        self.wire.reply(&id, answered);
        // What can be typed is told behind the reply, which names the session.
        if let Some(session) = opened.and_then(|id| self.session(&id).ok()) {
            self.wire.notify("session/update", &session.commands());
        }
    }

    async fn request(&self, method: &str, params: Value) -> Answered {
        match method {
            "initialize" => self.initialize(read(params)?),
            "session/new" => {
                let NewSessionRequest { cwd, .. } = read(params)?;
                let session =
                    Session::new(self.folder(&cwd)?, format!("{SESSION}{}", uuid::Uuid::new_v4().simple()), None);
                let session = self.open(session);
                let response = NewSessionResponse::new(session.id.clone()).modes(session.modes());
                written(&response.config_options(session.options()))
            }
            "session/load" => {
                let LoadSessionRequest { cwd, session_id, .. } = read(params)?;
                let session = self.load(&cwd, &session_id.0)?;
                session.show_history(&self.wire).await;
                written(&LoadSessionResponse::new().modes(session.modes()))
            }
            "session/resume" => {
                let ResumeSessionRequest { cwd, session_id, .. } = read(params)?;
                let session = self.load(&cwd, &session_id.0)?;
                written(&ResumeSessionResponse::new().modes(session.modes()))
            }
            "session/list" => {
                let ListSessionsRequest { cwd, .. } = read(params)?;
                self.list(cwd)
            }
            "session/set_mode" => {
                let SetSessionModeRequest { session_id, mode_id, .. } = read(params)?;
                let session = self.session(&session_id.0)?;
                session.set_mode(&mode_id.0)?;
                let options = ConfigOptionUpdate::new(session.options());
                self.wire.notify("session/update", &session.update(SessionUpdate::ConfigOptionUpdate(options)));
                written(&SetSessionModeResponse::new())
            }
            "session/set_config_option" => {
                let SetSessionConfigOptionRequest { session_id, config_id, value, .. } = read(params)?;
                let session = self.session(&session_id.0)?;
                let word = match value {
                    SessionConfigOptionValue::ValueId { value } => value.0,
                    _ => return Err(Error::invalid_params().data(json!("the value must be one of the option's"))),
                };
                session.set_option(&config_id.0, &word)?;
                written(&SetSessionConfigOptionResponse::new(session.options()))
            }
            "session/prompt" => {
                let PromptRequest { session_id, prompt, .. } = read(params)?;
                let session = self.session(&session_id.0)?;
                let has_forms = self.client.borrow().elicitation.as_ref().is_some_and(|own| own.form.is_some());
                written(&turn::prompt(&self.wire, &session, &prompt, (has_forms, &self.options.allowed)).await?)
            }
            _ => Err(Error::method_not_found()),
        }
    }

    fn notified(&self, method: &str, params: Value) {
        if method == "session/cancel"
            && let Ok(CancelNotification { session_id, .. }) = read(params)
            && let Ok(session) = self.session(&session_id.0)
        {
            session.cancel();
        }
    }

    fn initialize(&self, request: InitializeRequest) -> Answered {
        self.client.replace(request.client_capabilities);
        let sessions =
            SessionCapabilities::new().list(SessionListCapabilities::new()).resume(SessionResumeCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().embedded_context(true))
            .session_capabilities(sessions);
        let response = InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(Implementation::new("nietz", env!("CARGO_PKG_VERSION")).title("nietz".to_owned()));
        written(&response)
    }

    fn folder(&self, folder: &Path) -> std::result::Result<Rc<InFolder>, Error> {
        if let Some(known) = self.folders.borrow().get(folder) {
            return Ok(Rc::clone(known));
        }
        let made = Rc::new((self.options.folder)(folder).map_err(|failure| refused(&failure))?);
        self.folders.borrow_mut().insert(folder.to_owned(), Rc::clone(&made));
        Ok(made)
    }

    fn open(&self, session: Session) -> Rc<Session> {
        let session = Rc::new(session);
        self.sessions.borrow_mut().insert(session.id.clone(), Rc::clone(&session));
        session
    }

    fn session(&self, id: &str) -> std::result::Result<Rc<Session>, Error> {
        self.sessions.borrow().get(id).cloned().ok_or_else(|| Error::session_not_found(id.to_owned()))
    }

    /// Finds a session by its runs: the latest one that has its name, and a number behind it or not.
    fn load(&self, cwd: &Path, id: &str) -> std::result::Result<Rc<Session>, Error> {
        if let Ok(open) = self.session(id) {
            return Ok(open);
        }
        let folder = self.folder(cwd)?;
        let runs = folder.0.runs.list().map_err(|failure| refused(&failure))?;
        let is_of_session = |run: &str| {
            run == id || run.strip_prefix(id).is_some_and(|rest| rest.strip_prefix('-').is_some_and(is_number))
        };
        let latest = runs.iter().rev().find(|run| run.origin == Origin::Own && is_of_session(&run.id));
        let latest = latest.map(|run| run.id.clone());
        // A session in which nothing was begun has left nothing behind but its name.
        if latest.is_none() && !is_of_a_new_session(id) {
            return Err(Error::session_not_found(id.to_owned()));
        }
        Ok(self.open(Session::new(folder, id.to_owned(), latest)))
    }

    fn list(&self, cwd: Option<PathBuf>) -> Answered {
        let cwd = cwd.unwrap_or_else(|| self.options.here.clone());
        let folder = self.folder(&cwd)?;
        let runs = folder.0.runs.list().map_err(|failure| refused(&failure))?;
        let own = runs.iter().rev().filter(|run| run.origin == Origin::Own).take(200);
        let sessions = own.map(|run| {
            SessionInfo::new(run.id.clone(), cwd.clone())
                .title(format!("{}: {}", run.summary.flow, excerpt(&run.summary.topic)))
                .updated_at(run.summary.started.clone())
        });
        written(&ListSessionsResponse::new(sessions.collect()))
    }
}

/// Returns whether a name is one of those that new sessions get.
fn is_of_a_new_session(id: &str) -> bool {
    let digits = id.strip_prefix(SESSION).unwrap_or_default();
    digits.len() == 32 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
