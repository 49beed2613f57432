//! One call of a tool: begins or finds a run and follows it, until it ends, asks somebody, or the client's patience is over.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ElicitResult, InputRequests,
    InputRequiredResult, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::standing::{Elsewhere, answer_in, elicitation, input_request};
use super::{Calls, Shared, result, tasks};
use crate::editors::form;
use crate::editors::offer::Offer;
use crate::editors::supervisor::{OpenQuestion, Process, Standing};
use crate::editors::transcript::Transcript;
use crate::error::{Code, Failure};
use crate::model::budget;
use crate::model::question::AnsweredBy;
use crate::model::text::{clean, excerpt};

/// How often a client that wants to know is told that the call is alive.
const BEAT: Duration = Duration::from_secs(15);
/// The least time between two notifications of what goes on.
const APART: Duration = Duration::from_millis(200);
/// How long a form may be open before the call returns without its answer.
const FORM: Duration = Duration::from_secs(1800);
/// How often a client makes one call again before it gives up, less one.
const ROUNDS: u32 = 9;
/// The longest wait that a call can ask for.
const LONGEST: f64 = 3600.0;

type Called = Result<CallToolResponse, ErrorData>;

/// What a call can do with its client.
struct Caller<'a> {
    shared: &'a Shared,
    calls: &'a Calls,
    context: RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    /// Whether it shows forms.
    has_forms: bool,
    /// Whether a question is returned, and the call made again with its answer.
    returns_questions: bool,
    /// Whether options can have titles.
    titled: bool,
    /// Whether a run can be a task.
    has_tasks: bool,
    /// How often this call was made again.
    round: u32,
    until: Instant,
}

/// Does a call.
pub(super) async fn call(
    shared: &Shared,
    calls: &Calls,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Called {
    let version = context.protocol_version();
    let is_at_least = |wanted: ProtocolVersion| version.as_ref().is_some_and(|it| it.as_str() >= wanted.as_str());
    let capabilities = context.client_capabilities();
    // Clients of the era before say that they have the extension, and do not follow a task that they are given.
    let follows_tasks = is_at_least(ProtocolVersion::V_2026_07_28);
    let has_tasks = follows_tasks && capabilities.as_ref().is_some_and(|own| own.supports_tasks());
    let mut caller = Caller {
        shared,
        calls,
        token: context.meta.get_progress_token(),
        has_forms: has_forms(capabilities.as_ref()),
        returns_questions: is_at_least(ProtocolVersion::V_2026_07_28),
        titled: is_at_least(ProtocolVersion::V_2025_11_25),
        has_tasks,
        context,
        round: 0,
        until: Instant::now() + shared.options.patience,
    };
    let arguments = request.arguments.clone().unwrap_or_default();
    let done = match (&request.request_state, shared.offer(&request.name)) {
        (Some(state), _) => caller.again(state, &request, &arguments).await,
        (None, Some(offer)) => caller.flow(offer, arguments).await,
        (None, None) => caller.verb(&request.name, &arguments).await,
    };
    match done {
        Ok(response) => Ok(response),
        Err(CallFailure::Told(failure)) => Ok(result::failed(&failure).into()),
        Err(CallFailure::Protocol(error)) => Err(error),
    }
}

/// Tells whether a client shows forms.
pub(super) fn has_forms(capabilities: Option<&ClientCapabilities>) -> bool {
    let forms = capabilities.and_then(|own| own.elicitation.as_ref());
    // An empty capability means forms: addresses came later.
    forms.is_some_and(|own| own.form.is_some() || own.url.is_none())
}

/// Why a call was not done.
enum CallFailure {
    /// Who called can read it and do something about it.
    Told(Failure),
    Protocol(ErrorData),
}

impl From<Failure> for CallFailure {
    fn from(failure: Failure) -> CallFailure {
        CallFailure::Told(failure)
    }
}

fn usage(why: impl Into<String>) -> CallFailure {
    CallFailure::Told(Failure::new(Code::Usage, why))
}

impl Caller<'_> {
    /// Does a call that is made again, with the answer to its question.
    async fn again(
        &mut self,
        state: &str,
        request: &CallToolRequestParams,
        arguments: &Map<String, Value>,
    ) -> Result<CallToolResponse, CallFailure> {
        let supervisor = &self.shared.supervisor;
        let asked = AskedFor::read(state).ok_or_else(|| usage("this request state is none of nietz's"))?;
        let run = supervisor.own(&asked.run)?;
        let is_meant = match self.shared.offer(&request.name) {
            Some(offer) => supervisor.runs.one(&run)?.is_some_and(|listed| listed.summary.flow == offer.flow),
            // Of the tools for runs, those that follow one.
            None if matches!(&*request.name, "resume" | "wait" | "answer") => {
                let wanted = text(arguments, "run")?.unwrap_or_default();
                supervisor.own(wanted)? == run
            }
            None => false,
        };
        if !is_meant {
            return Err(usage(format!("the run {run} is none of {}", excerpt(&request.name))));
        }
        self.round = asked.round + 1;
        let reply = request.input_responses.as_ref().and_then(|replies| replies.get(form::FIELD));
        let reply: Option<ElicitResult> = reply.and_then(|reply| serde_json::from_value(reply.clone()).ok());
        match reply.map(answer_in) {
            Some(Some(answer)) => self.answered(&run, Some(&asked.effect), &answer, None).await,
            // The person does not want to answer now.
            Some(None) => self.put_off(&run, &asked.effect),
            None => self.go_on(&run).await,
        }
    }

    async fn flow(&mut self, offer: &Offer, arguments: Map<String, Value>) -> Result<CallToolResponse, CallFailure> {
        let supervisor = &self.shared.supervisor;
        let line = offer.command_line(&arguments, &self.shared.options.allowed).map_err(usage)?;
        let process = supervisor.begin(line).await?;
        let run = process.run();
        self.tell_list().await;
        if self.has_tasks && !run.is_empty() {
            // One that is over at once is told at once.
            let _ = tokio::time::timeout(tasks::GRACE, tasks::settled(&process)).await;
            if !matches!(process.standing(), Standing::Ended(_)) {
                return Ok(CallToolResponse::Task(tasks::begun(&run)));
            }
        }
        self.follow(&process).await
    }

    async fn verb(&mut self, name: &str, arguments: &Map<String, Value>) -> Result<CallToolResponse, CallFailure> {
        let known: &[&str] = match name {
            "runs" => &["status", "limit"],
            "log" | "resume" | "cancel" => &["run"],
            "wait" => &["run", "seconds"],
            "answer" => &["run", "answer", "effect", "said_by"],
            _ => {
                let why = format!("there is no tool `{}`", excerpt(name));
                return Err(CallFailure::Protocol(ErrorData::invalid_params(why, None)));
            }
        };
        if let Some(unknown) = arguments.keys().find(|argument| !known.contains(&argument.as_str())) {
            return Err(usage(format!("{name} takes no `{}`, but {}", excerpt(unknown), known.join(", "))));
        }
        if name == "runs" {
            return runs(self.shared, arguments).map(CallToolResponse::from);
        }
        let wanted = text(arguments, "run")?.ok_or_else(|| usage(format!("{name} needs a run")))?;
        let supervisor = &self.shared.supervisor;
        match name {
            "log" => {
                let run = supervisor.runs.find(Some(wanted))?;
                Ok(result::plain(supervisor.verb(&["report", &run, "--markdown"]).await?).into())
            }
            "cancel" => {
                let run = supervisor.own(wanted)?;
                let process = supervisor.process(&run);
                process.iter().for_each(|process| process.interrupt());
                Ok(result::plain(match process {
                    Some(_) => format!("The run {run} stops; `resume` goes on with it."),
                    None if supervisor.runs.is_busy(&run)? => {
                        format!("Another program is at the run {run}: it is stopped there.")
                    }
                    None => format!("Nothing is at the run {run}."),
                })
                .into())
            }
            "wait" => {
                if let Some(seconds) = arguments.get("seconds") {
                    let seconds = seconds.as_f64().filter(|seconds| (0.0..=LONGEST).contains(seconds));
                    let seconds = seconds.ok_or_else(|| usage("`seconds` must be a number from 0 to 3600"))?;
                    self.until = Instant::now() + Duration::from_secs_f64(seconds);
                }
                let run = supervisor.own(wanted)?;
                match supervisor.process(&run) {
                    Some(process) => self.follow(&process).await,
                    None => self.look(&run).await,
                }
            }
            "resume" => {
                let run = supervisor.own(wanted)?;
                self.go_on(&run).await
            }
            _ => {
                let answer = arguments.get("answer").ok_or_else(|| usage("answer needs an `answer`"))?;
                let by = match text(arguments, "said_by")? {
                    None | Some("user") => AnsweredBy::Relayed,
                    Some("model") if self.shared.options.model_may_answer => AnsweredBy::Model,
                    Some(_) => return Err(usage("only the user's own words are an answer here: ask them")),
                };
                let run = supervisor.own(wanted)?;
                self.answered(&run, text(arguments, "effect")?, answer, Some(by)).await
            }
        }
    }

    async fn answered(
        &mut self,
        run: &str,
        effect: Option<&str>,
        answer: &Value,
        by: Option<AnsweredBy>,
    ) -> Result<CallToolResponse, CallFailure> {
        let supervisor = &self.shared.supervisor;
        match supervisor.answer(run, effect, answer, by).await {
            Ok(Some(process)) => self.follow(&process).await,
            Ok(None) => {
                let told = format!("The answer is kept: another program is at the run {run}, and takes it.");
                Ok(result::plain(told).into())
            }
            // A call that is made again after its answer was taken goes on where the run is.
            Err(failure)
                if by.is_none() && supervisor.process(run).is_some() && failure.code == Code::AnswerInvalid =>
            {
                self.go_on(run).await
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Goes on with a run: follows the process that is at it, or starts one.
    async fn go_on(&mut self, run: &str) -> Result<CallToolResponse, CallFailure> {
        let supervisor = &self.shared.supervisor;
        let Ok(going_on) = tokio::time::timeout_at(self.until, supervisor.going_on(run)).await else {
            return Ok(result::running(run, "", "it was stopped, and something in it goes on to its end first").into());
        };
        match going_on {
            Some(process) => self.follow(&process).await,
            None if supervisor.runs.is_busy(run)? => self.look(run).await,
            None => {
                let process = supervisor.resume(run).await?;
                self.follow(&process).await
            }
        }
    }

    /// Waits for a run that this process has not started, and tells how it stands.
    async fn look(&self, run: &str) -> Result<CallToolResponse, CallFailure> {
        let supervisor = &self.shared.supervisor;
        // Whether it came to something or not is looked at in the same way.
        let _ = tokio::time::timeout_at(self.until, supervisor.follow_another(run)).await;
        Ok(match self.shared.elsewhere(run).await? {
            Elsewhere::Asked(question) => result::waiting(run, "", &question, &self.shared.options),
            Elsewhere::Busy => result::running(run, "", "another program is at it"),
            Elsewhere::Ended(ended) => *ended,
        }
        .into())
    }

    fn put_off(&self, run: &str, effect: &str) -> Result<CallToolResponse, CallFailure> {
        let supervisor = &self.shared.supervisor;
        let asked = supervisor.process(run).and_then(|process| process.question(Some(effect)));
        let question = match asked {
            Some(open) => open.question_with_effect(),
            None => supervisor.recorded_question(run, Some(effect))?,
        };
        Ok(result::waiting(run, "The user did not answer.", &question, &self.shared.options).into())
    }

    /// Follows a process until its run ends, asks what the client cannot show, or the time is over.
    async fn follow(&mut self, process: &Process) -> Result<CallToolResponse, CallFailure> {
        let run = process.run();
        if !run.is_empty() {
            self.calls.lock().insert(self.context.id.clone(), run.clone());
        }
        let (mut transcript, mut notified, mut told) =
            (Transcript::from(process.shown()), Instant::now() - BEAT, String::new());
        let mut beats = 0.0;
        loop {
            let count = process.count();
            for event in process.events(transcript.seen) {
                transcript.take(&event);
            }
            process.set_shown(transcript.seen);
            let (doing, _) = transcript.doing();
            let is_news = doing != told && notified.elapsed() >= APART;
            if is_news || notified.elapsed() >= BEAT {
                beats += 1.0;
                self.notify(&run, &doing, beats).await;
                (notified, told) = (Instant::now(), doing.clone());
            }
            match process.standing() {
                Standing::Ended(end) => {
                    self.tell_list().await;
                    return Ok(result::ended(&run, &transcript.take_text(), &end).into());
                }
                Standing::Asked(open) => {
                    let said = transcript.take_text();
                    let response = self.ask(&run, &open, said, &mut beats, process).await?;
                    match response {
                        Some(response) => return Ok(response),
                        // Answered: the time begins anew.
                        None => {
                            self.until = Instant::now() + self.shared.options.patience;
                            continue;
                        }
                    }
                }
                Standing::Running => {}
            }
            let beat = if self.token.is_some() { notified + BEAT } else { self.until };
            let news = if self.token.is_some() && doing != told { notified + APART } else { beat };
            tokio::select! {
                () = process.changed(count) => {}
                () = tokio::time::sleep_until(self.until) => {
                    return Ok(result::running(&run, &transcript.take_text(), &doing).into());
                }
                () = tokio::time::sleep_until(news.min(beat)) => {}
                () = self.context.ct.cancelled() => {
                    return Ok(result::running(&run, &transcript.take_text(), "the call was cancelled").into());
                }
            }
        }
    }

    async fn notify(&self, run: &str, doing: &str, beats: f64) {
        let Some(token) = &self.token else { return };
        let message = [run, doing].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
        let params = ProgressNotificationParam::new(token.clone(), beats).with_message(message);
        // A client that is gone is told nothing.
        let _ = self.context.peer.notify_progress(params).await;
    }

    /// Tells that there is more to read, or another state of it: a run, and its documents. Since 2026 clients say beforehand what they
    /// want to hear of, and this is not offered to them.
    async fn tell_list(&self) {
        if !self.returns_questions {
            // A client that is gone is told nothing.
            let _ = self.context.peer.notify_resource_list_changed().await;
        }
    }

    /// Asks the person by the client. Returns the response that ends the call, or nothing where the question is answered.
    async fn ask(
        &self,
        run: &str,
        open: &OpenQuestion,
        said: String,
        beats: &mut f64,
        process: &Process,
    ) -> Result<Option<CallToolResponse>, CallFailure> {
        let (question, said) = (open.question_with_effect(), process.above(&said));
        let options = &self.shared.options;
        if !self.has_forms || self.returns_questions && self.round >= ROUNDS {
            return Ok(Some(result::waiting(run, &said, &question, options).into()));
        }
        let params = elicitation(&question, &said, self.titled)?;
        if self.returns_questions {
            let requests = InputRequests::from([(form::FIELD.to_owned(), input_request(params))]);
            let state = AskedFor { run: run.to_owned(), effect: open.effect.clone(), round: self.round };
            return Ok(Some(InputRequiredResult::new(Some(requests), Some(state.write())).into()));
        }
        let asked = self.context.peer.create_elicitation(params);
        let (mut asked, until) = (std::pin::pin!(asked), Instant::now() + FORM);
        let reply = loop {
            let count = process.count();
            tokio::select! {
                reply = &mut asked => break reply,
                () = process.changed(count) => {
                    // Somebody else has answered, or the run was stopped.
                    if process.question(Some(&open.effect)).is_none() {
                        return Ok(None);
                    }
                }
                () = tokio::time::sleep(BEAT) => {
                    *beats += 1.0;
                    self.notify(run, "waits for an answer", *beats).await;
                }
                () = tokio::time::sleep_until(until) => {
                    return Ok(Some(result::waiting(run, &said, &question, options).into()));
                }
                () = self.context.ct.cancelled() => {
                    return Ok(Some(result::waiting(run, &said, &question, options).into()));
                }
            }
        };
        let answer = match reply {
            Ok(reply) => answer_in(reply),
            // A client that says it has forms, and has none.
            Err(_) => return Ok(Some(result::waiting(run, &said, &question, options).into())),
        };
        let Some(answer) = answer else {
            return Ok(Some(result::waiting(run, "The user did not answer.", &question, options).into()));
        };
        match self.shared.supervisor.answer(run, Some(&open.effect), &answer, None).await {
            Ok(_) => Ok(None),
            // Somebody else was quicker.
            Err(_) if process.question(Some(&open.effect)).is_none() => Ok(None),
            Err(failure) => {
                let said = format!("The answer was not taken: {}", clean(&failure.message));
                Ok(Some(result::waiting(run, &said, &question, options).into()))
            }
        }
    }
}

/// What a client brings back when it makes a call again. It is not trusted: the run has to be the user's own and of the called
/// flow, and its question open.
struct AskedFor {
    run: String,
    effect: String,
    round: u32,
}

impl AskedFor {
    fn write(&self) -> String {
        format!("{} {} {}", self.run, self.effect, self.round)
    }

    fn read(state: &str) -> Option<AskedFor> {
        let mut parts = state.split(' ').map(str::to_owned);
        let (run, effect, round) = (parts.next()?, parts.next()?, parts.next()?);
        parts.next().is_none().then_some(AskedFor { run, effect, round: round.parse().ok()? })
    }
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, CallFailure> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(usage(format!("`{name}` must be a text"))),
    }
}

/// Lists runs, newest first.
fn runs(shared: &Shared, arguments: &Map<String, Value>) -> Result<CallToolResult, CallFailure> {
    let status = text(arguments, "status")?;
    let limit = arguments.get("limit").map_or(Some(20), Value::as_u64).filter(|limit| (1..=200).contains(limit));
    let limit = limit.ok_or_else(|| usage("`limit` must be a whole number from 1 to 200"))?;
    let mut rows = Vec::new();
    for run in shared.supervisor.runs.list()?.iter().rev() {
        if status.is_none_or(|status| run.status() == status) {
            let cost = run.summary.cost.filter(|cost| *cost > 0.0).map(budget::dollars_with_sign).unwrap_or_default();
            let shown = [run.id.as_str(), run.summary.flow.as_str(), run.status(), &run.summary.started, &cost];
            let shown: Vec<&str> = shown.into_iter().filter(|part| !part.is_empty()).collect();
            rows.push(format!("- {}: {}", clean(&shown.join(" · ")), excerpt(&run.summary.topic)));
        }
    }
    let left_out = rows.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    rows.truncate(rows.len() - left_out);
    if left_out > 0 {
        rows.push(format!("and {left_out} more"));
    }
    Ok(result::plain(if rows.is_empty() { "There are no such runs.".to_owned() } else { rows.join("\n") }))
}
