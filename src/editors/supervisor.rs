//! Runs for somebody who may leave: each is a process of its own (`nietz run --json`), which goes on when its client or this
//! process ends, waits at its next question then, and is gone on with by whoever comes next.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;

use crate::editors::offer::CommandLine;
use crate::engine::run_records::Origin;
use crate::engine::runs::Runs;
use crate::error::{Code, Failure, Result};
use crate::host::ui::answer::{self, Said};
use crate::host::ui::mailbox;
use crate::model::question::{AnsweredBy, Question};
use crate::model::text::{clean, excerpt};
use crate::model::typed::{self, TypedLine};
use crate::report::RunHistory;

/// The most that is kept of what a process says on standard error, in bytes.
const MOST_TOLD: usize = 64 << 10;
/// The most events of one process that are kept with the pieces of its texts.
const MOST_EVENTS: usize = 200_000;
/// How often a run that another process is at is looked at.
const PAUSE: Duration = Duration::from_millis(200);

/// Starts runs and knows those that it has started.
pub(crate) struct Supervisor {
    program: PathBuf,
    place: Place,
    environment: BTreeMap<String, String>,
    /// Options of each new run, and of each run that goes on.
    begin: Vec<String>,
    resume: Vec<String>,
    pub runs: Runs,
    /// The latest process of each run, by the run's name.
    live: Mutex<HashMap<String, Arc<Process>>>,
}

/// Where runs are.
pub(crate) struct Place {
    pub folder: PathBuf,
    /// Whether the user or the client named the folder as the workspace; if not, the workspace is found from it.
    pub is_named: bool,
}

/// A process that is at a run, or was.
pub(crate) struct Process {
    state: Mutex<State>,
    /// How many events there are; 0 while nothing has come.
    changes: watch::Sender<usize>,
    /// What answers are written to, while it can be answered.
    stdin: tokio::sync::Mutex<Option<ChildStdin>>,
    id: Option<u32>,
    /// How many events the client was shown.
    shown: AtomicUsize,
}

#[derive(Default)]
struct State {
    run: String,
    events: Vec<Arc<Value>>,
    open: Vec<OpenQuestion>,
    /// The ids of questions that were answered from here, and of which the run has not said so yet.
    answered: Vec<String>,
    /// What a client was shown above the question that is open, or above one that a command has only put again.
    above: String,
    /// What standard error had.
    told: String,
    /// Whether the process was told to stop.
    stopped: bool,
    /// Whether it is over.
    over: bool,
}

/// A question that waits for its answer.
#[derive(Clone, Debug)]
pub(crate) struct OpenQuestion {
    pub question: Question,
    /// The key of its effect.
    pub effect: String,
}

/// Where a run stands.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    /// A question waits.
    Asked(Box<OpenQuestion>),
    /// The process has ended; this is its last event.
    Ended(Value),
    Running,
}

impl OpenQuestion {
    /// Returns the question with what addresses it.
    pub(crate) fn question_with_effect(&self) -> Question {
        Question { effect: Some(self.effect.clone()), ..self.question.clone() }
    }
}

impl Supervisor {
    /// `begin` are options of each new run; `resume` of each that goes on.
    pub(crate) fn new(
        program: PathBuf,
        place: Place,
        environment: BTreeMap<String, String>,
        runs: Runs,
        (begin, resume): (Vec<String>, Vec<String>),
    ) -> Supervisor {
        Supervisor { program, place, environment, begin, resume, runs, live: Mutex::default() }
    }

    /// Begins a run, and returns when it has a name or has ended.
    ///
    /// # Errors
    ///
    /// What the process says of a run that did not begin.
    pub(crate) async fn begin(&self, line: CommandLine) -> Result<Arc<Process>> {
        self.begin_named(line, None).await
    }

    async fn begin_named(&self, line: CommandLine, name: Option<&str>) -> Result<Arc<Process>> {
        let CommandLine { words, files } = line;
        let (flow, rest) = words.split_first().ok_or_else(|| Failure::new(Code::Internal, "a run needs a flow"))?;
        let mut arguments = vec!["run".to_owned(), flow.clone(), "--json".to_owned()];
        arguments.extend(self.begin.iter().chain(rest).cloned());
        let process = self.start(&arguments, name).await;
        drop(files);
        process
    }

    /// Begins a run that has this name.
    ///
    /// # Errors
    ///
    /// As [`Supervisor::begin`].
    pub(crate) async fn begin_as(&self, line: CommandLine, name: &str) -> Result<Arc<Process>> {
        self.begin_named(line, Some(name)).await
    }

    /// Goes on with a run of the user's own.
    ///
    /// # Errors
    ///
    /// `run-foreign` if somebody else began it, and what the process says of a run that cannot go on.
    pub(crate) async fn resume(&self, run: &str) -> Result<Arc<Process>> {
        let run = self.own(run)?;
        let mut arguments = vec!["resume".to_owned(), run, "--json".to_owned()];
        arguments.extend(self.resume.iter().cloned());
        self.start(&arguments, None).await
    }

    /// Returns the whole name of a run of the user's own.
    ///
    /// # Errors
    ///
    /// `run-not-found` and `run-foreign`.
    pub(crate) fn own(&self, wanted: &str) -> Result<String> {
        let run = self.runs.find(Some(wanted))?;
        match self.runs.one(&run)? {
            Some(listed) if listed.origin == Origin::Own => Ok(run),
            _ => Err(Failure::new(
                Code::RunForeign,
                format!("run {run} was begun by somebody else: it does not go on here"),
            )),
        }
    }

    /// Returns the process that this one has started for a run, if it is still at it.
    pub(crate) fn process(&self, run: &str) -> Option<Arc<Process>> {
        let process = lock(&self.live).get(run).cloned();
        process.filter(|process| !process.is_over())
    }

    /// Returns the process that goes on with a run. One that has said its last word, or was stopped, is waited for, and is none.
    pub(crate) async fn going_on(&self, run: &str) -> Option<Arc<Process>> {
        let process = self.process(run)?;
        if !process.is_leaving() && !self.is_told_as_ended(run) {
            return Some(process);
        }
        while !process.is_over() {
            process.changed(process.count()).await;
        }
        None
    }

    /// Whether the list of runs tells the end of a run: its process may not have said so yet.
    fn is_told_as_ended(&self, run: &str) -> bool {
        // What cannot be found out is met by what comes after.
        let listed = self.runs.one(run).ok().flatten();
        listed.is_some_and(|listed| !listed.busy && listed.summary.end.is_some())
    }

    /// Answers a question of a run, whoever is at it, and returns the process to follow; none if that is another program's.
    /// Without `effect` it is the question that has been open longest.
    ///
    /// # Errors
    ///
    /// `answer-invalid` if it is no answer, does not count from whoever gives it, or the question is not open.
    pub(crate) async fn answer(
        &self,
        run: &str,
        effect: Option<&str>,
        given: &Value,
        by: Option<AnsweredBy>,
    ) -> Result<Option<Arc<Process>>> {
        let run = self.own(run)?;
        let process = match self.going_on(&run).await {
            Some(process) => process,
            None if self.runs.is_busy(&run)? => return self.leave_answer(&run, effect, given, by).map(|()| None),
            None => self.resume(&run).await?,
        };
        let mut standing = process.standing();
        while matches!(standing, Standing::Running) {
            process.changed(process.count()).await;
            standing = process.standing();
        }
        let open = process.question(effect).ok_or_else(not_open)?;
        let value = check(&open.question, given, by)?;
        process.answer(&open.effect, &value, by).await?;
        Ok(Some(process))
    }

    /// Keeps an answer for a run that another program is at.
    fn leave_answer(&self, run: &str, effect: Option<&str>, given: &Value, by: Option<AnsweredBy>) -> Result<()> {
        let question = self.recorded_question(run, effect)?;
        let value = check(&question, given, by)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        mailbox::keep(&*self.runs.answers(run), &question, &text, by)
    }

    /// Returns a question that waits, as the run's journal has it.
    ///
    /// # Errors
    ///
    /// `answer-invalid` if none waits.
    pub(crate) fn recorded_question(&self, run: &str, effect: Option<&str>) -> Result<Question> {
        let history = RunHistory::read(&self.runs.journal(run)?)?;
        let open = history.open_questions();
        let found = open.iter().find(|open| effect.is_none_or(|effect| effect == open.key));
        let question = found.and_then(|open| {
            let question: Question = serde_json::from_value(open.request.clone()).ok()?;
            Some(Question { effect: Some(open.key.clone()), ..question })
        });
        question.ok_or_else(not_open)
    }

    /// Waits until another program is not at a run any more, or asks in it.
    pub(crate) async fn follow_another(&self, run: &str) {
        let asked = |supervisor: &Supervisor| supervisor.recorded_question(run, None).is_ok();
        // What cannot be found out is met by what comes after.
        while self.runs.is_busy(run).unwrap_or_default() && !asked(self) {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Runs a verb of this program to its end and returns its output.
    ///
    /// # Errors
    ///
    /// What it said on standard error.
    pub(crate) async fn verb(&self, arguments: &[&str]) -> Result<String> {
        let failed = |why: String| Failure::new(Code::Internal, format!("nietz {}: {why}", arguments.join(" ")));
        let mut command = self.command();
        command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.map_err(|error| failed(error.to_string()))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(told(&String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(&self.environment).current_dir(&self.place.folder);
        if self.place.is_named {
            command.arg("-C").arg(&self.place.folder);
        }
        // Ctrl-C and a terminal that is closed are for the client; the run goes on to its next question.
        command.process_group(0);
        command
    }

    async fn start(&self, arguments: &[String], name: Option<&str>) -> Result<Arc<Process>> {
        let mut command = self.command();
        if let Some(name) = name {
            command.env("NIETZ_RUN", name);
        }
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| Failure::new(Code::Internal, format!("nietz cannot start itself: {error}")))?;
        let process = Arc::new(Process {
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            stdin: tokio::sync::Mutex::new(child.stdin.take()),
            id: child.id(),
            shown: AtomicUsize::new(0),
        });
        tokio::spawn(Arc::clone(&process).follow(child));
        let mut changes = process.changes.subscribe();
        // It fails only if the sender is gone, which the process holds.
        let _ = changes.wait_for(|count| *count > 0).await;
        let (run, told_text) = {
            let state = process.lock();
            (state.run.clone(), (state.events.is_empty()).then(|| state.told.clone()))
        };
        if let Some(text) = told_text {
            return Err(told(&text));
        }
        if !run.is_empty() {
            lock(&self.live).insert(run, Arc::clone(&process));
        }
        Ok(process)
    }
}

impl Process {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Reads what the process says until it ends.
    async fn follow(self: Arc<Process>, mut child: Child) {
        let stderr = child.stderr.take();
        let of_stderr = Arc::clone(&self);
        let told = tokio::spawn(async move {
            let Some(mut stderr) = stderr else { return };
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut piece).await {
                let mut state = of_stderr.lock();
                if state.told.len() < MOST_TOLD {
                    state.told.push_str(&String::from_utf8_lossy(&piece[..length]));
                }
            }
        });
        if let Some(stdout) = child.stdout.take() {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Ok(event) = serde_json::from_str::<Value>(&line) {
                    self.take(event);
                }
            }
        }
        let _ = child.wait().await;
        let _ = told.await;
        *self.stdin.lock().await = None;
        let count = {
            let mut state = self.lock();
            state.over = true;
            state.open.clear();
            state.events.len()
        };
        // One more than there are events, so that whoever waits is told also where none came.
        self.changes.send_replace(count + 1);
    }

    fn take(&self, event: Value) {
        let mut state = self.lock();
        if let Some(run) = event["run"].as_str().filter(|_| state.run.is_empty()) {
            run.clone_into(&mut state.run);
        }
        match event["type"].as_str() {
            Some("asked") => {
                let question: Option<Question> = serde_json::from_value(event["question"].clone()).ok();
                let effect = event["effect"].as_str().map(str::to_owned);
                if let Some((question, effect)) = question.zip(effect) {
                    state.open.push(OpenQuestion { question, effect });
                }
            }
            Some("answered") => {
                let id = event["id"].as_str().unwrap_or_default();
                // Another question may have the same id.
                if let Some(at) = state.answered.iter().position(|answered| answered == id) {
                    state.answered.remove(at);
                } else if let Some(at) = state.open.iter().position(|open| open.question.id == id) {
                    state.open.remove(at);
                }
            }
            // Nobody hears an answer any more.
            Some("run_ended") => state.open.clear(),
            _ => {}
        }
        let is_piece = matches!(event["type"].as_str(), Some("call_delta" | "call_thought"));
        if state.events.len() < MOST_EVENTS || !is_piece {
            state.events.push(Arc::new(event));
        }
        let count = state.events.len();
        drop(state);
        self.changes.send_replace(count);
    }

    /// Returns the run's name; empty for a command that only looks.
    pub(crate) fn run(&self) -> String {
        self.lock().run.clone()
    }

    /// Tells whether the run has said how it ended, or was stopped; its process may still be there.
    fn is_leaving(&self) -> bool {
        let state = self.lock();
        state.stopped || state.events.last().is_some_and(|event| event["type"] == "run_ended")
    }

    pub(crate) fn is_over(&self) -> bool {
        self.lock().over
    }

    /// Returns how much has come so far, for [`Process::changed`] and [`Process::events`].
    pub(crate) fn count(&self) -> usize {
        *self.changes.borrow()
    }

    /// Waits until more has come than this, or the process is over.
    pub(crate) async fn changed(&self, count: usize) {
        let mut changes = self.changes.subscribe();
        if self.is_over() {
            return;
        }
        let _ = changes.wait_for(|now| *now != count).await;
    }

    /// Returns the events from this one on.
    pub(crate) fn events(&self, from: usize) -> Vec<Arc<Value>> {
        self.lock().events.get(from..).unwrap_or_default().to_vec()
    }

    /// Returns how many events the client was shown, over all of its calls.
    pub(crate) fn shown(&self) -> usize {
        self.shown.load(Ordering::Relaxed)
    }

    pub(crate) fn set_shown(&self, count: usize) {
        self.shown.store(count, Ordering::Relaxed);
    }

    pub(crate) fn standing(&self) -> Standing {
        let state = self.lock();
        if let Some(open) = state.open.first() {
            return Standing::Asked(Box::new(open.clone()));
        }
        if !state.over {
            return Standing::Running;
        }
        let ended = match state.events.last().filter(|event| event["type"] == "run_ended") {
            Some(event) => (**event).clone(),
            // It was killed: what is recorded is kept, and the run can go on.
            None if state.told.trim().is_empty() => json!({ "type": "run_ended", "status": "interrupted", "failure": {
                "code": Code::Interrupted.name(), "message": "its process was ended from outside",
            } }),
            None => json!({ "type": "run_ended", "status": "failed", "failure": told(&state.told) }),
        };
        Standing::Ended(ended)
    }

    /// Returns the open question of an effect, or the one that has been open longest.
    pub(crate) fn question(&self, effect: Option<&str>) -> Option<OpenQuestion> {
        let state = self.lock();
        state.open.iter().find(|open| effect.is_none_or(|effect| open.effect == effect)).cloned()
    }

    async fn answer(&self, effect: &str, value: &Value, by: Option<AnsweredBy>) -> Result<()> {
        let mut line = json!({ "effect": effect, "answer": value });
        if let Some(by) = by {
            line["by"] = by.name().into();
        }
        let mut stdin = self.stdin.lock().await;
        let gone = || Failure::new(Code::AnswerInvalid, "the run has ended meanwhile: it can be resumed");
        let open = stdin.as_mut().ok_or_else(gone)?;
        open.write_all(format!("{line}\n").as_bytes()).await.map_err(|_| gone())?;
        open.flush().await.map_err(|_| gone())?;
        // Nobody is asked again what was answered, although the run has not said so yet.
        let mut state = self.lock();
        if let Some(at) = state.open.iter().position(|open| open.effect == effect) {
            let question = state.open.remove(at).question;
            let is_command = value
                .as_str()
                .is_some_and(|line| matches!(typed::read(line, &question.commands), TypedLine::Command { .. }));
            if !is_command {
                state.above.clear();
            }
            state.answered.push(question.id);
        }
        Ok(())
    }

    /// Returns what stands above a question: what was said since the last one, below what stood there if that was only put again.
    pub(crate) fn above(&self, said: &str) -> String {
        let mut state = self.lock();
        let parts = [state.above.as_str(), said];
        let whole = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
        state.above.clone_from(&whole);
        whole
    }

    /// Stops the run as Ctrl-C does: nothing that is finished is lost, and it can be resumed.
    pub(crate) fn interrupt(&self) {
        let id = self.id.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        if let Some(id) = id.filter(|_| !self.is_over()) {
            self.lock().stopped = true;
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process(id, rustix::process::Signal::INT);
        }
    }
}

/// Returns the answer that a value means.
///
/// # Errors
///
/// `answer-invalid` if it is none, or does not count from whoever gives it.
pub(crate) fn check(question: &Question, given: &Value, by: Option<AnsweredBy>) -> Result<Value> {
    let refused = |why: String| Failure::new(Code::AnswerInvalid, why);
    match answer::check(question, given).map_err(|why| refused(answer::refusal(question, &why)))? {
        Said::Answer(value) => answer::counts_from(question, &value, by).map(|()| value).map_err(refused),
        Said::Help => Err(refused(format!("that asks for help: {}", answer::allowed_answers(question)))),
    }
}

fn not_open() -> Failure {
    Failure::new(Code::AnswerInvalid, "this question is not open: it was answered, or belongs to another run")
}

/// Returns the failure that a process told on standard error.
fn told(text: &str) -> Failure {
    let (code, message) = (text.lines().find_map(|line| line.strip_prefix("error[")))
        .and_then(|line| line.split_once("]: "))
        .map_or((Code::Internal, ""), |(code, message)| (Code::of(code), message));
    let whole = clean(text.trim());
    match message {
        "" if whole.is_empty() => Failure::new(Code::Internal, "nietz ended without a word"),
        "" => Failure::new(code, whole),
        message => Failure::new(code, excerpt(message)).because(whole),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
