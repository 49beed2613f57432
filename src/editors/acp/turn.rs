//! One prompt: begins a run, or answers its question, and shows what the run says until it asks or ends.

use std::collections::HashMap;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationFormMode, ElicitationSchema, ElicitationSessionScope, EmbeddedResourceResource, Error, Plan, PlanEntry,
    PlanEntryPriority, PlanEntryStatus, PromptResponse, SessionUpdate, StopReason, TextContent, ToolCall,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use serde_json::{Map, Value, json};

use super::session::Session;
use super::wire::Wire;
use crate::editors::form;
use crate::editors::offer::{Offer, OfferedCommand};
use crate::editors::supervisor::{OpenQuestion, Process, Standing};
use crate::error::{Code, Failure};
use crate::model::param::Param;
use crate::model::text::{clean, excerpt};

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
    let done = turn.prompt(&text_of(prompt)).await;
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

/// Returns what was typed, and what stands in what goes with it.
fn text_of(prompt: &[ContentBlock]) -> String {
    let parts = prompt.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.clone()),
        ContentBlock::ResourceLink(link) => Some(link.uri.strip_prefix("file://").unwrap_or(&link.uri).to_owned()),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::TextResourceContents(text) => Some(format!("\n{}\n", text.text)),
            _ => None,
        },
        _ => None,
    });
    parts.collect::<Vec<_>>().join(" ").trim().to_owned()
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

    async fn prompt(&self, text: &str) -> Result<StopReason, Failure> {
        let supervisor = self.session.supervisor();
        if let Some((offer, rest)) = self.called(text) {
            let arguments = arguments(offer, rest)?;
            return self.begin(offer, &arguments).await;
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
            let answer = Value::from(text);
            let answered = supervisor.answer(&run, Some(&open.effect), &answer, None).await;
            return match answered {
                Ok(Some(process)) => self.follow(process).await,
                Ok(None) => {
                    self.say("The answer is kept: another program is at this run, and takes it.\n");
                    Ok(StopReason::EndTurn)
                }
                Err(failure) if failure.code == Code::AnswerInvalid => {
                    self.say(&format!("{}\n\n{}\n", clean(&failure.message), form::text(&open.question)));
                    Ok(StopReason::EndTurn)
                }
                Err(failure) => Err(failure),
            };
        }
        if let Some(offer) = self.session.flow_of_mode().filter(|_| !text.starts_with('/')) {
            let arguments = arguments(offer, text)?;
            return self.begin(offer, &arguments).await;
        }
        let flows: String = self
            .session
            .offers()
            .iter()
            .map(|offer| format!("- `/{}`: {}\n", offer.name, clean(&offer.summary)))
            .collect();
        self.say(&format!("No run waits for an answer here. Begin one:\n\n{flows}\n`/resume` goes on with one.\n"));
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

    async fn begin(&self, offer: &Offer, arguments: &Map<String, Value>) -> Result<StopReason, Failure> {
        let line = offer.command_line(arguments, self.allowed).map_err(|why| Failure::new(Code::Usage, why))?;
        let name = self.session.next_run();
        let process = self.session.supervisor().begin_as(line, &name).await?;
        let run = process.run();
        if !run.is_empty() {
            self.session.run.replace(Some(run));
        }
        self.follow(process).await
    }

    /// Shows what a run says until it asks what the client has no form for, or ends.
    async fn follow(&self, process: Arc<Process>) -> Result<StopReason, Failure> {
        self.session.process.replace(Some(Arc::clone(&process)));
        let mut shown =
            Shown { turn: self, seen: process.shown(), streams: Vec::new(), ended: HashMap::new(), plan: Vec::new() };
        loop {
            let count = process.count();
            for event in process.events(shown.seen) {
                shown.seen += 1;
                shown.take(&event);
            }
            process.set_shown(shown.seen);
            match process.standing() {
                Standing::Ended(end) => return Ok(self.end(&end)),
                Standing::Asked(open) => {
                    if !self.has_forms {
                        self.say(&format!("\n{}\n", form::text(&open.question)));
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
            self.say(&format!("\n{}\n", form::text(&question)));
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

/// What of a run was shown in this turn.
struct Shown<'a> {
    turn: &'a Turn<'a>,
    seen: usize,
    /// The calls whose text is shown, in the order in which they began. The first is shown as it comes, the others after it.
    streams: Vec<Stream>,
    /// The calls whose text nobody sees, by their keys: what they are called.
    ended: HashMap<String, String>,
    /// What the run does: each with how far it is.
    plan: Vec<(String, u64, u64)>,
}

struct Stream {
    call: String,
    label: String,
    text: String,
    /// How much of the text was sent.
    sent: usize,
    over: bool,
}

impl Shown<'_> {
    fn take(&mut self, event: &Value) {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let update = |update| self.turn.wire.notify("session/update", &self.turn.session.update(update));
        let call = text("call").to_owned();
        match text("type") {
            "said" => {
                let markdown = clean(text("markdown").trim_end());
                let from = text("from");
                let from = if from.is_empty() { String::new() } else { format!("**{}:** ", clean(from)) };
                self.turn.say(&format!("{from}{markdown}\n\n"));
            }
            "notice" => self.turn.say(&format!("*{}*\n\n", clean(text("text")))),
            "call_started" if event["show"] == true => {
                let label = clean(text("label"));
                self.streams.push(Stream { call, label, text: String::new(), sent: 0, over: false });
            }
            "call_started" => {
                let name = if text("label").is_empty() { text("model") } else { text("label") };
                let tool =
                    ToolCall::new(call.clone(), excerpt(name)).kind(ToolKind::Think).status(ToolCallStatus::InProgress);
                update(SessionUpdate::ToolCall(tool));
                self.ended.insert(call, name.to_owned());
            }
            "call_delta" | "call_retried" => {
                if let Some(stream) = self.streams.iter_mut().find(|stream| stream.call == call) {
                    if text("type") == "call_delta" {
                        stream.text.push_str(text("text"));
                    } else if stream.sent == 0 {
                        stream.text.clear();
                    } else {
                        // What was shown stays; the text begins anew below it.
                        stream.text.push_str("\n\n");
                    }
                }
                self.flush();
            }
            "call_thought" => {
                let content = ContentBlock::Text(TextContent::new(clean(text("text"))));
                update(SessionUpdate::AgentThoughtChunk(ContentChunk::new(content)));
            }
            "call_ended" => {
                let has_failed = !event["failure"].is_null();
                if let Some(stream) = self.streams.iter_mut().find(|stream| stream.call == call) {
                    stream.over = true;
                }
                if self.ended.remove(&call).is_some() {
                    let status = if has_failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
                    let fields = ToolCallUpdateFields::new().status(status);
                    update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call, fields)));
                }
                self.flush();
            }
            "status" => {
                self.plan.retain(|(_, _, total)| *total > 0);
                let line = text("text").lines().next().unwrap_or_default();
                if !line.is_empty() {
                    self.plan.push((clean(line), 0, 0));
                }
                self.show_plan();
            }
            "progress" => {
                let (done, total) =
                    (event["done"].as_u64().unwrap_or_default(), event["total"].as_u64().unwrap_or_default());
                let label = clean(text("label"));
                match self.plan.iter_mut().find(|(known, _, total)| *known == label && *total > 0) {
                    Some(entry) => (entry.1, entry.2) = (done, total),
                    None => self.plan.push((label, done, total)),
                }
                self.show_plan();
            }
            _ => {}
        }
    }

    /// Sends what can be shown of the first call, and of those behind it once it is over.
    fn flush(&mut self) {
        while let Some(stream) = self.streams.first_mut() {
            let mut out = String::new();
            if stream.sent == 0 && !stream.text.is_empty() && !stream.label.is_empty() {
                out = format!("**{}:** ", stream.label);
            }
            out += &clean(&stream.text[stream.sent..]);
            stream.sent = stream.text.len();
            if stream.over && stream.sent > 0 {
                out += "\n\n";
            }
            let is_over = stream.over;
            if !out.is_empty() {
                self.turn.say(&out);
            }
            if !is_over {
                return;
            }
            self.streams.remove(0);
        }
    }

    fn show_plan(&self) {
        let entry = |(label, done, total): &(String, u64, u64)| {
            let content = if *total > 0 { format!("{label} ({done}/{total})") } else { label.clone() };
            let status = match *total > 0 && done >= total {
                true => PlanEntryStatus::Completed,
                false => PlanEntryStatus::InProgress,
            };
            PlanEntry::new(content, PlanEntryPriority::Medium, status)
        };
        let plan = Plan::new(self.plan.iter().map(entry).collect());
        self.turn.wire.notify("session/update", &self.turn.session.update(SessionUpdate::Plan(plan)));
    }
}

/// Returns the arguments that stand behind a slash command: `--name=value` and `--name` first, then the text.
fn arguments(offer: &Offer, text: &str) -> Result<Map<String, Value>, Failure> {
    let wrong = |why: String| Failure::new(Code::Usage, why);
    let mut arguments = Map::new();
    let (mut rest, mut own): (&str, &OfferedCommand) = (text.trim(), &offer.main);
    let first = rest.split_whitespace().next().unwrap_or_default();
    if let (Some(member), Some(command)) = (offer.command_member(), offer.commands.get(first)) {
        arguments.insert(member.to_owned(), first.into());
        (rest, own) = (rest[first.len()..].trim_start(), command);
    }
    while let Some(option) = rest.strip_prefix("--") {
        let (name, value, behind) = option_in(option);
        rest = behind.trim_start();
        let (is_no, (name, param)) =
            match (param_of(own, name), name.strip_prefix("no-").and_then(|name| param_of(own, name))) {
                (Some(found), _) => (false, found),
                (None, Some(found)) => (true, found),
                (None, None) => return Err(wrong(format!("{} takes no --{}", offer.name, excerpt(name)))),
            };
        let value = match value {
            Some(value) => param.parse(value).map_err(|why| wrong(format!("--{name} {why}")))?,
            None => match &param.alone {
                Some(alone) => param.parse(alone).map_err(|why| wrong(format!("--{name} {why}")))?,
                None => Value::from(!is_no),
            },
        };
        match (param.many, arguments.get_mut(name)) {
            (true, Some(Value::Array(items))) => items.push(value),
            (true, _) => drop(arguments.insert(name.clone(), json!([value]))),
            (false, _) => drop(arguments.insert(name.clone(), value)),
        }
    }
    let positional = own.params.iter().filter(|(_, param)| param.positional);
    let first = positional.min_by(|a, b| a.1.order.unwrap_or(f64::MAX).total_cmp(&b.1.order.unwrap_or(f64::MAX)));
    match first {
        _ if rest.is_empty() => {}
        Some((name, param)) => {
            let items = || rest.split_whitespace().map(Value::from).collect();
            arguments.insert(name.clone(), if param.many { Value::Array(items()) } else { Value::from(rest) });
        }
        None => return Err(wrong(format!("{} takes no text: {}", offer.name, excerpt(rest)))),
    }
    Ok(arguments)
}

/// Returns the param whose option this is.
fn param_of<'o>(own: &'o OfferedCommand, option: &str) -> Option<(&'o String, &'o Param)> {
    own.params.iter().find(|(name, _)| name.replace('_', "-") == option)
}

/// Splits what begins with an option: its name, its value, which may stand in double quotes, and what is behind it.
fn option_in(text: &str) -> (&str, Option<&str>, &str) {
    let end = text.find(|letter: char| letter == '=' || letter.is_whitespace()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let Some(value) = rest.strip_prefix('=') else { return (name, None, rest) };
    if let Some((quoted, behind)) = value.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
        return (name, Some(quoted), behind);
    }
    let end = value.find(char::is_whitespace).unwrap_or(value.len());
    (name, Some(&value[..end]), &value[end..])
}

#[cfg(test)]
mod tests {
    use super::option_in;

    #[test]
    fn an_option_s_value_is_a_word_or_stands_in_quotes() {
        for (text, split) in [
            ("quick tea", ("quick", None, " tea")),
            ("quick", ("quick", None, "")),
            ("who=ada tea", ("who", Some("ada"), " tea")),
            ("test=\"cargo test\" tea", ("test", Some("cargo test"), " tea")),
            ("test=\"open tea", ("test", Some("\"open"), " tea")),
            ("x= tea", ("x", Some(""), " tea")),
        ] {
            assert_eq!(option_in(text), split, "{text}");
        }
    }
}
