//! The process of one child, while it is followed.

use std::process::Stdio;

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;

use super::{ChildEnd, ChildWatch, Children};
use crate::error::{Code, Failure, Result};
use crate::host::FrontEnd;
use crate::model::budget::Budget;
use crate::model::child::ChildRequest;
use crate::model::event::Event;
use crate::model::question::Question;
use crate::model::text::{clean, excerpt};

/// The verb of this program that does a child.
pub(crate) const VERB: &str = "__child";
/// How much is kept of what it says on standard error, in bytes.
const SAID: usize = 4 << 10;

/// A process that was started for a child.
pub(super) struct Process {
    child: Child,
    pid: Option<Pid>,
    run: String,
    request: String,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    said: Vec<u8>,
}

/// What a child has said in one line.
enum Said {
    Asks(Box<Question>),
    /// The question of this id has its answer.
    Answered(String, Value),
    Ended(Box<ChildEnd>),
    Other,
}

/// A question of a child, and what its parent's front end says to it; nothing if it was answered elsewhere.
type Asking<'a> = LocalBoxFuture<'a, (Question, Option<Result<Value>>)>;

impl Process {
    pub(super) fn start(children: &Children, request: &ChildRequest) -> Result<Process> {
        let failed = |why: String| {
            Failure::new(Code::Internal, format!("the process of {} cannot be started: {why}", request.run))
        };
        let program = children.program.as_ref().ok_or_else(|| failed("this program cannot find itself".to_owned()))?;
        let text = serde_json::to_string(request).map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(program);
        command.env_clear().envs(&children.environment).env_remove("NIETZ_RUN");
        command.arg("-C").arg(&children.workspace).arg(VERB);
        // Ctrl-C is for the parent, who tells its children.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        Ok(Process {
            pid: child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)),
            run: request.run.clone(),
            request: format!("{text}\n"),
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            said: Vec::new(),
            child,
        })
    }

    /// Follows it to its end. `None`: it has ended without saying how.
    ///
    /// # Errors
    ///
    /// Those of the parent's front end, but for an answer that is missing: then the child waits, and says so.
    pub(super) async fn follow(&mut self, watch: &ChildWatch<'_>) -> Result<Option<ChildEnd>> {
        let (Some(stdout), Some(mut stderr)) = (self.stdout.take(), self.stderr.take()) else { return Ok(None) };
        let mut lines = BufReader::new(stdout).lines();
        // It reads this before it says anything.
        if let Some(stdin) = &mut self.stdin
            && stdin.write_all(self.request.as_bytes()).await.is_err()
        {
            self.stdin = None;
        }
        let mut asks: FuturesUnordered<Asking<'_>> = FuturesUnordered::new();
        let mut open: Vec<(String, oneshot::Sender<()>)> = Vec::new();
        let (mut ended, mut piece, mut is_quiet) = (None, [0; 1024], false);
        loop {
            tokio::select! {
                line = lines.next_line() => {
                    let Ok(Some(line)) = line else { break };
                    (watch.beat)();
                    let event: Value = serde_json::from_str(&line).unwrap_or_default();
                    match take(&self.run, event, watch) {
                        Said::Asks(question) => {
                            let (withdraw, withdrawn) = oneshot::channel();
                            open.push((question.id.clone(), withdraw));
                            asks.push(ask(watch.front, *question, withdrawn).boxed_local());
                        }
                        Said::Answered(id, answer) => {
                            // One that was given here was shown.
                            if let Some(at) = open.iter().position(|(open, _)| *open == id) {
                                open.swap_remove(at);
                                watch.front.show(&Event::Answered { id, answer });
                            }
                        }
                        Said::Ended(end) => ended = Some(*end),
                        Said::Other => {}
                    }
                }
                Some((question, answered)) = asks.next(), if !asks.is_empty() => match answered {
                    Some(Ok(answer)) => {
                        if let Some(at) = open.iter().position(|(open, _)| *open == question.id) {
                            open.swap_remove(at);
                        }
                        self.tell(&json!({ "effect": question.effect, "answer": answer })).await;
                        watch.front.show(&Event::Answered { id: question.id, answer });
                    }
                    // Nobody answers it now: it hears of no more answers, and waits.
                    Some(Err(failure)) if failure.code == Code::AnswerMissing => self.stdin = None,
                    Some(Err(failure)) => return Err(failure),
                    None => {}
                },
                read = stderr.read(&mut piece), if !is_quiet => match read {
                    Ok(length @ 1..) => {
                        let room = SAID.saturating_sub(self.said.len()).min(length);
                        self.said.extend_from_slice(&piece[..room]);
                    }
                    _ => is_quiet = true,
                },
            }
        }
        drop(asks);
        self.stdin = None;
        // It is over whether or not that can be waited for.
        let _ = self.child.wait().await;
        self.pid = None;
        Ok(ended)
    }

    async fn tell(&mut self, line: &Value) {
        if let Some(stdin) = &mut self.stdin
            && stdin.write_all(format!("{line}\n").as_bytes()).await.is_err()
        {
            self.stdin = None;
        }
    }

    /// Returns what it said on standard error, in short.
    pub(super) fn said(&self) -> String {
        excerpt(&clean(String::from_utf8_lossy(&self.said).trim()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            // It may have ended in this moment.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

async fn ask(
    front: &dyn FrontEnd,
    question: Question,
    withdrawn: oneshot::Receiver<()>,
) -> (Question, Option<Result<Value>>) {
    let answered = tokio::select! {
        biased;
        _ = withdrawn => None,
        answered = front.ask(&question) => Some(answered),
    };
    (question, answered)
}

/// Shows what the child says where it concerns people.
fn take(run: &str, mut event: Value, watch: &ChildWatch<'_>) -> Said {
    let text = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    match text(&event, "type").as_str() {
        "asked" => {
            let effect = event["effect"].as_str().map(str::to_owned);
            let Ok(question) = serde_json::from_value::<Question>(event["question"].take()) else { return Said::Other };
            let question = Question { effect, ..question };
            watch.front.show(&Event::Asked { question: question.clone() });
            return Said::Asks(Box::new(question));
        }
        "answered" => return Said::Answered(text(&event, "id"), event["answer"].take()),
        "run_ended" => {
            return serde_json::from_value(event).map_or(Said::Other, |end| Said::Ended(Box::new(end)));
        }
        "said" => {
            let from = event["from"].as_str().map(str::to_owned);
            watch.front.show(&Event::Said { markdown: text(&event, "markdown"), from });
        }
        "notice" => watch.front.show(&Event::Notice { text: format!("{run}: {}", text(&event, "text")) }),
        "call_started" => watch.calls.set(watch.calls.get() + 1),
        "call_ended" => {
            let count = |name: &str| event["usage"][name].as_u64().unwrap_or_default();
            watch.tokens.set(watch.tokens.get().saturating_add(count("input")).saturating_add(count("output")));
        }
        "bounded" => {
            if let Ok(budget) = serde_json::from_value::<Budget>(event["budget"].take()) {
                (watch.holds)(budget);
            }
        }
        _ => {}
    }
    Said::Other
}
