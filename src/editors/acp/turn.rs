//! One prompt: begins a run, or answers its question, and shows what the run says until it asks or ends.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    ContentBlock, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction, ElicitationFormMode,
    ElicitationSchema, ElicitationSessionScope, Error, PermissionOption, PermissionOptionKind, PromptResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, StopReason, TextContent,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use serde_json::{Map, Value, json};

use super::actions::Actions;
use super::options;
use super::session::{DEFAULT, Session, asked, takes_default};
use super::shown::Shown;
use super::typed::{Prompted, arguments};
use super::wire::Wire;
use crate::editors::form;
use crate::editors::offer::Offer;
use crate::editors::supervisor::{OpenQuestion, Process, Standing};
use crate::error::{Code, Failure};
use crate::model::text::{clean, excerpt};

/// How often it is looked whether the run has done something that it does not tell.
const PAUSE: Duration = Duration::from_millis(200);
/// What a permission that is given is called.
const ALLOW: &str = "allow";

/// Answers a prompt. `client` is whether the client has forms, and the commands that it may name.
pub(super) async fn prompt(
    wire: &Wire,
    session: &Session,
    prompt: &[ContentBlock],
    client: (bool, &[String]),
) -> Result<PromptResponse, Error> {
    if session.busy.replace(true) {
        return Err(Error::invalid_request().data(json!("another prompt of this session is being answered")));
    }
    let turn = Turn { wire, session, has_forms: client.0, allowed: client.1 };
    let done = turn.prompt(&Prompted::of(prompt)).await;
    turn.tell_commands();
    session.busy.set(false);
    match done {
        Ok(reason) => Ok(PromptResponse::new(reason)),
        Err(failure) => {
            let hint = failure.hint.as_ref().map(|hint| format!("\n\n{}", clean(hint))).unwrap_or_default();
            let details: String = failure.details.iter().map(|detail| format!("\n- {}", clean(detail))).collect();
            turn.say(&format!("[{}] {}{details}{hint}\n", failure.code.name(), clean(&failure.message)));
            Ok(PromptResponse::new(StopReason::EndTurn))
        }
    }
}

struct Turn<'a> {
    wire: &'a Wire,
    session: &'a Session,
    has_forms: bool,
    allowed: &'a [String],
}

impl Turn<'_> {
    fn say(&self, text: &str) {
        self.wire.notify("session/update", &self.session.chunk(text));
    }

    /// Tells what can be typed, where that has changed.
    fn tell_commands(&self) {
        if let Some(update) = self.session.changed_commands() {
            self.wire.notify("session/update", &update);
        }
    }

    async fn prompt(&self, prompted: &Prompted) -> Result<StopReason, Failure> {
        let (supervisor, text) = (self.session.supervisor(), prompted.typed.as_str());
        if let Some((offer, rest)) = self.called(text) {
            let arguments = arguments(offer, rest, prompted)?;
            return self.begin(offer, arguments).await;
        }
        let resumed = text.strip_prefix("/resume").filter(|rest| rest.is_empty() || rest.starts_with(' '));
        if let Some(wanted) = resumed {
            let run = match wanted.trim() {
                "" => self.session.run.borrow().clone().ok_or_else(|| {
                    Failure::new(Code::Usage, "this session has no run yet")
                        .hint("/resume RUN names one of this folder")
                })?,
                wanted => supervisor.own(wanted)?,
            };
            self.session.run.replace(Some(run.clone()));
            let process = match supervisor.going_on(&run).await {
                Some(process) => process,
                None => supervisor.resume(&run).await?,
            };
            return self.follow(process).await;
        }
        if let Some(open) = self.session.question() {
            let run = self.session.run.borrow().clone().unwrap_or_default();
            let is_default = text == format!("/{DEFAULT}") && takes_default(&open.question);
            let answer = Value::from(if is_default { String::new() } else { prompted.with_shown(text) });
            let answered = supervisor.answer(&run, Some(&open.effect), &answer, None).await;
            return match answered {
                Ok(Some(process)) => self.follow(process).await,
                Ok(None) => {
                    self.say("The answer is kept: another program is at this run, and takes it.\n");
                    Ok(StopReason::EndTurn)
                }
                Err(failure) if failure.code == Code::AnswerInvalid => {
                    self.say(&format!("{}\n\n{}\n", clean(&failure.message), asked(&open.question)));
                    Ok(StopReason::EndTurn)
                }
                Err(failure) => Err(failure),
            };
        }
        if let Some(offer) = self.session.flow_of_mode().filter(|_| !text.starts_with('/')) {
            let arguments = arguments(offer, text, prompted)?;
            return self.begin(offer, arguments).await;
        }
        let flows: String = self
            .session
            .offers()
            .iter()
            .map(|offer| format!("- `/{}`: {}\n", offer.name, clean(&offer.summary)))
            .collect();
        let unknown = text.strip_prefix('/').and_then(|rest| rest.split_whitespace().next());
        let unknown = unknown.map(|name| format!("There is no `/{}` here. ", excerpt(name))).unwrap_or_default();
        self.say(&format!(
            "{unknown}No run waits for an answer here. Begin one:\n\n{flows}\n`/resume` goes on with one.\n"
        ));
        Ok(StopReason::EndTurn)
    }

    /// Returns the flow whose slash command a text is. A command of the open question comes before it.
    fn called<'t>(&self, text: &'t str) -> Option<(&Offer, &'t str)> {
        let rest = text.strip_prefix('/')?;
        let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let of_question = self.session.question();
        if of_question.is_some_and(|open| open.question.commands.iter().any(|command| command.name == name)) {
            return None;
        }
        self.session.offers().iter().find(|offer| offer.name == name).map(|offer| (offer, rest.trim()))
    }

    async fn begin(&self, offer: &Offer, mut arguments: Map<String, Value>) -> Result<StopReason, Failure> {
        options::add(offer, &self.session.chosen.borrow(), &mut arguments);
        let mut allowed = self.allowed.to_vec();
        for (name, command) in offer.commands_in(&arguments) {
            if !allowed.contains(&command) && self.permits(offer, &name, &command).await {
                allowed.push(command);
            }
        }
        let line = offer.command_line(&arguments, &allowed).map_err(|why| Failure::new(Code::Usage, why))?;
        let name = self.session.next_run();
        let process = self.session.supervisor().begin_as(line, &name).await?;
        let run = process.run();
        if !run.is_empty() {
            self.session.run.replace(Some(run));
        }
        self.follow(process).await
    }

    /// Asks the person whether a run may run a command that they have typed.
    async fn permits(&self, offer: &Offer, param: &str, command: &str) -> bool {
        let title = format!("{}: run `{}` ({param}) as often as it needs", offer.flow, excerpt(command));
        let fields = ToolCallUpdateFields::new()
            .title(title)
            .kind(ToolKind::Execute)
            .status(ToolCallStatus::Pending)
            // All of it, however long the command is.
            .content(vec![ContentBlock::Text(TextContent::new(clean(command))).into()])
            .raw_input(json!({ "param": param, "command": command }));
        let call = ToolCallUpdate::new(format!("permission-{}", uuid::Uuid::new_v4().simple()), fields);
        let options = vec![
            PermissionOption::new(ALLOW, "Allow for this run", PermissionOptionKind::AllowOnce),
            PermissionOption::new("reject", "Do not run it", PermissionOptionKind::RejectOnce),
        ];
        let request = RequestPermissionRequest::new(self.session.id.clone(), call, options);
        let reply = tokio::select! {
            reply = self.wire.request("session/request_permission", &request) => reply,
            () = self.session.cancelled.notified() => None,
        };
        let reply: Option<RequestPermissionResponse> = reply.and_then(|reply| serde_json::from_value(reply).ok());
        matches!(reply.map(|reply| reply.outcome),
            Some(RequestPermissionOutcome::Selected(selected)) if &*selected.option_id.0 == ALLOW)
    }

    /// Shows what the run has done since the last time, beside what it says.
    fn show_actions(&self) {
        if let Some(actions) = self.session.actions.borrow_mut().as_mut() {
            for update in actions.more() {
                self.wire.notify("session/update", &self.session.update(update));
            }
        }
    }

    /// Shows what a run says until it asks what the client has no form for, or ends.
    async fn follow(&self, process: Arc<Process>) -> Result<StopReason, Failure> {
        self.session.process.replace(Some(Arc::clone(&process)));
        let mut shown = Shown::from(self.wire, self.session, process.shown());
        loop {
            let count = process.count();
            for event in process.events(shown.seen) {
                shown.seen += 1;
                if event["type"] == "run_started" {
                    let (journal, resumed) = (event["journal"].as_str(), event["resumed"] == true);
                    // A run on a server has no file that grows.
                    let journal = journal.map(Path::new).filter(|journal| journal.is_file());
                    self.session.actions.replace(journal.map(|journal| Actions::of(journal, resumed)));
                }
                shown.take(&event);
            }
            process.set_shown(shown.seen);
            self.show_actions();
            match process.standing() {
                Standing::Ended(end) => return Ok(self.end(&end)),
                Standing::Asked(open) => {
                    if !self.has_forms {
                        self.say(&format!("\n{}\n", asked(&open.question)));
                        return Ok(StopReason::EndTurn);
                    }
                    if let Some(reason) = self.ask(&process, &open).await? {
                        return Ok(reason);
                    }
                }
                Standing::Running => {
                    tokio::select! {
                        () = process.changed(count) => {}
                        () = self.session.cancelled.notified() => {}
                        () = tokio::time::sleep(PAUSE) => {}
                    }
                }
            }
        }
    }

    fn end(&self, end: &Value) -> StopReason {
        let run = self.session.run.borrow().clone().unwrap_or_default();
        let status = end["status"].as_str().unwrap_or("failed");
        let failure = &end["failure"];
        if let Some(message) = failure["message"].as_str().filter(|_| status != "done") {
            let code = failure["code"].as_str().unwrap_or_default();
            let hint = failure["hint"].as_str().map(|hint| format!("\n\n{}", clean(hint))).unwrap_or_default();
            self.say(&format!(
                "\n[{code}] {}{hint}\n\nThe run {run} is {status}; `/resume` goes on with it.\n",
                clean(message)
            ));
        }
        if status == "interrupted" { StopReason::Cancelled } else { StopReason::EndTurn }
    }

    /// Asks by a form. Returns why the turn ends, or nothing where the question is answered.
    async fn ask(&self, process: &Process, open: &OpenQuestion) -> Result<Option<StopReason>, Failure> {
        let question = open.question_with_effect();
        let schema: ElicitationSchema = serde_json::from_value(form::schema(&question, true))
            .map_err(|error| Failure::new(Code::Internal, format!("a question has no form: {error}")))?;
        let scope = ElicitationSessionScope::new(self.session.id.clone());
        let request =
            CreateElicitationRequest::new(ElicitationFormMode::new(scope, schema), form::message(&question, ""));
        let reply = tokio::select! {
            reply = self.wire.request("elicitation/create", &request) => reply,
            () = self.session.cancelled.notified() => return Ok(Some(StopReason::Cancelled)),
            // Somebody else has answered, or the run was stopped.
            () = gone(process, &open.effect) => return Ok(None),
        };
        let reply: Option<CreateElicitationResponse> = reply.and_then(|reply| serde_json::from_value(reply).ok());
        let Some(ElicitationAction::Accept(accepted)) = reply.map(|reply| reply.action) else {
            self.say(&format!("\n{}\n", asked(&question)));
            return Ok(Some(StopReason::EndTurn));
        };
        let content = accepted.content.and_then(|mut content| content.remove(form::FIELD));
        let answer = content.map(|value| serde_json::to_value(value).unwrap_or_default()).unwrap_or_default();
        let run = process.run();
        match self.session.supervisor().answer(&run, Some(&open.effect), &answer, None).await {
            Ok(_) => Ok(None),
            Err(failure) if failure.code == Code::AnswerInvalid => {
                self.say(&format!("\n{}\n", clean(&failure.message)));
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Waits until a question is open no more.
async fn gone(process: &Process, effect: &str) {
    while process.question(Some(effect)).is_some() {
        process.changed(process.count()).await;
    }
}
