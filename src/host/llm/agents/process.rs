//! One agent as a process: the handshake, and one prompt after the other, each in a session of its own.
//!
//! Source: Agent Client Protocol, version 1 (agentclientprotocol.com, as of November 2026).

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::AgentCommand;
use crate::error::{Code, Failure, Lost, Result};
use crate::host::CallEvent;
use crate::host::llm::stop_texts::StopTexts;
use crate::host::rpc::{self, ErrorTail, LineReader, Message, RpcError};
use crate::model::chat::{ChatReply, FinishReason, Usage};
use crate::model::redact::Redactor;
use crate::model::text::{clean, excerpt};

/// The version of the protocol.
const VERSION: u64 = 1;
/// How long the handshake and a new session may take: an agent may start a runtime and look for its login.
const START: Duration = Duration::from_secs(60);
/// How long to wait for the end of an agent that has closed its output.
const END: Duration = Duration::from_secs(1);
/// The most bytes of a reply.
const LARGEST: usize = 64 << 20;
/// The protocol's code for an agent that nobody has logged in to.
const LOGGED_OUT: i64 = -32000;
/// What agents call the mode in which they read at most, or ask before they do anything; an agent may begin in one in which it decides
/// by itself.
const CAREFUL: &[&str] = &["read-only", "default", "ask", "plan"];
/// How many refusals of one call are told.
const TOLD: usize = 5;

/// A running agent. Dropping it ends it, with what it started.
pub(super) struct AgentProcess {
    name: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    lines: LineReader,
    errors: ErrorTail,
    /// The empty folder that it works in.
    folder: tempfile::TempDir,
    next: u64,
    redactor: Redactor,
}

/// What a session has brought so far.
#[derive(Default)]
struct Answer {
    text: String,
    refused: usize,
    /// Whether a text has come before which the reply is to end.
    is_stopped: bool,
    /// Bytes that came, text or not.
    bytes: u64,
}

impl AgentProcess {
    /// Starts an agent and shakes hands.
    pub(super) async fn start(name: &str, command: &AgentCommand, redactor: Redactor) -> Result<AgentProcess> {
        let internal =
            |error: std::io::Error| Failure::new(Code::Internal, format!("an agent cannot be started here: {error}"));
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let folder =
            tempfile::Builder::new().prefix("nietz-agent-").permissions(private).tempdir().map_err(internal)?;
        let mut child = Command::new(&command.words[0])
            .args(&command.words[1..])
            .env_clear()
            .envs(&command.environment)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Failure::new(Code::ModelUnreachable, format!("acp/{name} cannot be started: {error}")))?;
        let (Some(input), Some(output), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Failure::new(Code::Internal, "an agent that was started has no pipes"));
        };
        let mut agent = AgentProcess {
            name: name.to_owned(),
            child,
            input,
            output: BufReader::new(output),
            lines: LineReader::default(),
            errors: ErrorTail::of(stderr),
            folder,
            next: 0,
            redactor,
        };
        let hello = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
            "clientInfo": { "name": "nietz", "title": "nietz", "version": env!("CARGO_PKG_VERSION") },
        });
        let told = agent.within(START, "initialize", hello).await?;
        match told["protocolVersion"].as_u64() {
            Some(VERSION) => Ok(agent),
            other => {
                let other = other.map_or_else(|| "none".to_owned(), |version| version.to_string());
                Err(agent.broken(&format!(
                    "it speaks version {other} of the Agent Client Protocol, and {VERSION} is known here"
                )))
            }
        }
    }

    /// Asks it once, in a new session.
    pub(super) async fn ask(
        &mut self,
        prompt: &str,
        stops: &mut StopTexts<'_>,
        report: &mut dyn FnMut(CallEvent<'_>),
    ) -> Result<ChatReply> {
        let cwd = self.folder.path().to_string_lossy().into_owned();
        // Claude's agent leaves out its own tools where it is told so; others pass this over.
        let without_tools = json!({ "tools": [], "allowDangerouslySkipPermissions": false });
        let meta = json!({ "disableBuiltInTools": true, "claudeCode": { "options": without_tools } });
        let told = self.within(START, "session/new", json!({ "cwd": cwd, "mcpServers": [], "_meta": meta })).await?;
        let Some(session) = told["sessionId"].as_str().map(str::to_owned) else {
            return Err(self.broken("its new session has no name"));
        };
        if let Some(mode) = careful_mode(&told["modes"]) {
            self.within(START, "session/set_mode", json!({ "sessionId": session, "modeId": mode })).await?;
        }
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": prompt }] });
        let mut answer = Answer::default();
        let outcome = self.request("session/prompt", params, &session, &mut answer, stops, report).await;
        let lost = Lost { attempts: 1, bytes: answer.bytes };
        let told = outcome.map_err(|failure| Failure { lost: Some(Box::new(lost)), ..failure })?;
        stops.show(&answer.text, true, &mut |text| report(CallEvent::Delta(text)));
        let finish = match told["stopReason"].as_str() {
            _ if answer.is_stopped => FinishReason::Stop,
            Some("end_turn") => FinishReason::Stop,
            Some("max_tokens" | "max_turn_requests") => FinishReason::Length,
            Some("refusal") => {
                let message = format!("acp/{} refuses to answer", self.name);
                return Err(Failure::new(Code::ModelRefused, message).hint("another model may answer"));
            }
            other => {
                let why = format!("it ended its turn with {}", excerpt(other.unwrap_or("no reason")));
                return Err(Failure { lost: Some(Box::new(lost)), ..self.broken(&why) });
            }
        };
        Ok(ChatReply {
            text: answer.text,
            tool_calls: Vec::new(),
            state: None,
            usage: usage(&told["usage"]),
            model: String::new(),
            finish,
            cost: None,
            saved: 0.0,
            refused: Vec::new(),
            retries: Vec::new(),
            lost: None,
        })
    }

    async fn within(&mut self, limit: Duration, method: &str, params: Value) -> Result<Value> {
        let (mut answer, mut stops, mut nobody) = (Answer::default(), StopTexts::new(&[]), |_: CallEvent<'_>| {});
        let asked = self.request(method, params, "", &mut answer, &mut stops, &mut nobody);
        match tokio::time::timeout(limit, asked).await {
            Ok(told) => told,
            Err(_) => Err(self.broken(&format!("it does not answer `{method}` within {} s", limit.as_secs()))),
        }
    }

    /// Sends a request, and takes what comes until its reply does.
    async fn request(
        &mut self,
        method: &str,
        params: Value,
        session: &str,
        answer: &mut Answer,
        stops: &mut StopTexts<'_>,
        report: &mut dyn FnMut(CallEvent<'_>),
    ) -> Result<Value> {
        self.next += 1;
        let id = self.next;
        self.send(&rpc::request(id, method, &params)).await?;
        loop {
            let line = match self.lines.next(&mut self.output).await {
                Ok(Some(line)) => line,
                Ok(None) => return Err(self.ended().await),
                Err(why) => return Err(self.broken(&why)),
            };
            match Message::read(&line) {
                Some(Message::Reply { id: of, outcome }) if of == id => {
                    return outcome.map_err(|error| self.refused(method, &error));
                }
                Some(Message::Notification { method, params })
                    if method == "session/update" && params["sessionId"] == session =>
                {
                    answer.bytes += line.len() as u64;
                    if answer.text.len() > LARGEST {
                        return Err(self.broken("its reply is larger than any reply should be"));
                    }
                    take(&params["update"], answer, stops, report);
                }
                Some(Message::Request { id, method, params }) => {
                    let (reply, told) = self.answer(&id, &method, &params);
                    answer.refused += 1;
                    if answer.refused <= TOLD {
                        report(CallEvent::Notice(&told));
                    }
                    self.send(&reply).await?;
                }
                // Late replies, news of other sessions, and lines that are no messages.
                Some(Message::Reply { .. } | Message::Notification { .. }) | None => {}
            }
        }
    }

    /// Answers what the agent asks for: no to all of it. Also returns what the user is told.
    fn answer(&self, id: &Value, method: &str, params: &Value) -> (String, String) {
        let name = &self.name;
        if method != "session/request_permission" {
            let told = format!("acp/{name} asked for `{}`: nietz offers it none", excerpt(method));
            return (rpc::not_offered(id, method), told);
        }
        let title = params["toolCall"]["title"].as_str().or(params["toolCall"]["kind"].as_str()).unwrap_or("something");
        let options = params["options"].as_array().into_iter().flatten();
        let no = options.filter(|option| option["kind"].as_str().is_some_and(|kind| kind.starts_with("reject")));
        // To say no once is enough: what holds for always is the user's to say.
        let no = no.min_by_key(|option| option["kind"] != "reject_once");
        let outcome = match no {
            Some(option) => json!({ "outcome": "selected", "optionId": option["optionId"] }),
            None => json!({ "outcome": "cancelled" }),
        };
        let title = self.redactor.text(&excerpt(title)).into_owned();
        (
            rpc::answer(id, &json!({ "outcome": outcome })),
            format!("acp/{name} wanted to do this, and was refused: {title}"),
        )
    }

    async fn send(&mut self, line: &str) -> Result<()> {
        let written = async {
            self.input.write_all(line.as_bytes()).await?;
            self.input.flush().await
        };
        match written.await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.ended().await),
        }
    }

    fn refused(&self, method: &str, error: &RpcError) -> Failure {
        let name = &self.name;
        let why = self.redactor.text(&clean(&error.message)).into_owned();
        if error.code == LOGGED_OUT {
            return Failure::new(Code::KeyMissing, format!("acp/{name} has no login: {why}"))
                .hint("start the agent by itself and log in; nietz uses the login that it has, and makes none");
        }
        self.broken(&format!("it refused `{method}`: {why} ({})", error.code))
    }

    async fn ended(&mut self) -> Failure {
        let status = tokio::time::timeout(END, self.child.wait()).await;
        match status {
            Ok(Ok(status)) => {
                self.errors.finish().await;
                self.broken(&format!("it ended ({status})"))
            }
            Ok(Err(_)) | Err(_) => self.broken("it has closed its output"),
        }
    }

    fn broken(&self, why: &str) -> Failure {
        let failure = Failure::new(Code::ModelBroken, format!("acp/{}: {why}", self.name))
            .hint("start the agent by itself to see what it says; `nietz resume` tries again");
        let errors = self.errors.text();
        match errors.is_empty() {
            true => failure,
            false => failure.because(self.redactor.text(&errors)),
        }
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let group = self.child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(group) = group {
            // An error means that it has ended already.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// Takes a piece of news of the session.
fn take(update: &Value, answer: &mut Answer, stops: &mut StopTexts<'_>, report: &mut dyn FnMut(CallEvent<'_>)) {
    let text = update["content"]["text"].as_str().unwrap_or_default();
    match update["sessionUpdate"].as_str() {
        Some("agent_message_chunk") if !answer.is_stopped => {
            answer.text.push_str(text);
            answer.is_stopped = stops.cut(&mut answer.text);
            stops.show(&answer.text, answer.is_stopped, &mut |text| report(CallEvent::Delta(text)));
        }
        Some("agent_thought_chunk") if !text.is_empty() => report(CallEvent::Thought(text)),
        _ => report(CallEvent::Alive),
    }
}

/// Returns the mode in which it asks before it does anything, if it is in another one.
fn careful_mode(modes: &Value) -> Option<&'static str> {
    let there = |mode: &&&str| {
        let available = modes["availableModes"].as_array().into_iter().flatten();
        available.filter_map(|mode| mode["id"].as_str()).any(|id| id == **mode)
    };
    let mode = CAREFUL.iter().find(there)?;
    (modes["currentModeId"] != *mode).then_some(*mode)
}

/// Returns the counts of tokens, where an agent tells them.
fn usage(told: &Value) -> Usage {
    let count = |name: &str| told[name].as_u64().unwrap_or_default();
    let (cached, cache_written, reasoning) =
        (count("cachedReadTokens"), count("cachedWriteTokens"), count("thoughtTokens"));
    Usage {
        // Here the parts are counted beside the whole, and in a reply within it.
        input: count("inputTokens").saturating_add(cached).saturating_add(cache_written),
        output: count("outputTokens").saturating_add(reasoning),
        cached,
        cache_written,
        reasoning,
    }
}
