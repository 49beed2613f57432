//! Runs as tasks, for clients that have the extension: a call returns at once, and the client asks how far it is. A task has its
//! run's name and is read from the run each time, so that it outlives the server.

use std::sync::PoisonError;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, ElicitResult, InputRequests, InputResponses, Task, TaskPayload,
    TaskStatus,
};
use rmcp::task_manager::current_timestamp;
use serde_json::{Map, Value};

use super::address::refused;
use super::standing::{Elsewhere, answer_in, elicitation, input_request};
use super::{Shared, result};
use crate::editors::supervisor::{Process, Standing};
use crate::editors::transcript::Transcript;
use crate::error::{Code, Failure};
use crate::model::question::Question;
use crate::model::text::clean;

/// How long a call waits for a run that is over at once, before it becomes a task.
pub(super) const GRACE: Duration = Duration::from_millis(500);
/// How often a client should ask, in milliseconds.
const POLL: u64 = 1000;

type Answered<T> = Result<T, ErrorData>;

/// Returns the task of a run that has begun.
pub(super) fn begun(run: &str) -> CreateTaskResult {
    let now = current_timestamp();
    CreateTaskResult::new(Task::new(run, TaskStatus::Working, now.clone(), now).with_poll_interval_ms(POLL))
}

/// Waits until a process is over or asks something.
pub(super) async fn settled(process: &Process) {
    while matches!(process.standing(), Standing::Running) {
        process.changed(process.count()).await;
    }
}

/// Returns how far a task is. `has_forms` says whether the client shows forms.
pub(super) async fn get(shared: &Shared, id: &str, has_forms: bool) -> Answered<DetailedTask> {
    let run = own(shared, id)?;
    let (payload, doing) = payload(shared, &run, has_forms).await.map_err(|failure| refused(&failure))?;
    let listed = shared.supervisor.runs.one(&run).map_err(|failure| refused(&failure))?;
    let now = current_timestamp();
    let begun = listed.map_or_else(|| now.clone(), |listed| listed.summary.started);
    let mut task = Task::new(run, payload.status(), begun, now).with_poll_interval_ms(POLL);
    if !doing.is_empty() {
        task = task.with_status_message(doing);
    }
    Ok(DetailedTask::new(task, payload))
}

async fn payload(shared: &Shared, run: &str, has_forms: bool) -> Result<(TaskPayload, String), Failure> {
    let asked = |question: &Question, said: String| -> Result<TaskPayload, Failure> {
        let effect = question.effect.clone().unwrap_or_default();
        let was_put_off = shared.put_off.lock().unwrap_or_else(PoisonError::into_inner).contains(&effect);
        if !has_forms || was_put_off {
            return Ok(completed(result::waiting(run, &said, question, &shared.options)));
        }
        let form = input_request(elicitation(question, &said, true)?);
        Ok(TaskPayload::InputRequired { input_requests: InputRequests::from([(effect, form)]) })
    };
    let Some(process) = shared.supervisor.process(run) else {
        return Ok(match shared.elsewhere(run).await? {
            Elsewhere::Asked(question) => (asked(&question, String::new())?, String::new()),
            Elsewhere::Busy => (TaskPayload::Working, "another program is at it".to_owned()),
            Elsewhere::Ended(ended) if status_of(&ended) == Some("interrupted") => {
                (TaskPayload::Cancelled, String::new())
            }
            Elsewhere::Ended(ended) => (completed(*ended), String::new()),
        });
    };
    Ok(match process.standing() {
        Standing::Running => {
            let mut transcript = Transcript::default();
            process.events(0).iter().for_each(|event| transcript.take(event));
            (TaskPayload::Working, transcript.doing().0)
        }
        Standing::Asked(open) => (asked(&open.question_with_effect(), said(&process, true))?, String::new()),
        Standing::Ended(end) if end["status"] == "interrupted" => (TaskPayload::Cancelled, String::new()),
        Standing::Ended(end) => (completed(result::ended(run, &said(&process, false), &end)), String::new()),
    })
}

/// Returns what a process has said; with `since_answer` only what came behind the last answer.
fn said(process: &Process, since_answer: bool) -> String {
    let events = process.events(0);
    let last = events.iter().rposition(|event| since_answer && event["type"] == "answered");
    let mut transcript = Transcript::default();
    events.iter().skip(last.map_or(0, |last| last + 1)).for_each(|event| transcript.take(event));
    transcript.take_text()
}

fn completed(result: CallToolResult) -> TaskPayload {
    let result = match serde_json::to_value(result) {
        Ok(Value::Object(result)) => result,
        _ => Map::new(),
    };
    TaskPayload::Completed { result }
}

fn status_of(result: &CallToolResult) -> Option<&str> {
    result.structured_content.as_ref()?["status"].as_str()
}

/// Takes what a client gives a task: answers to questions, by their names.
pub(super) async fn update(shared: &Shared, id: &str, responses: InputResponses) -> Answered<()> {
    let run = own(shared, id)?;
    for (effect, response) in responses {
        let reply: ElicitResult = serde_json::from_value(response).map_err(|error| {
            ErrorData::invalid_params(format!("the answer to {} is none: {error}", clean(&effect)), None)
        })?;
        let Some(answer) = answer_in(reply) else {
            // The person does not want to answer now: the task ends, and the run waits.
            shared.put_off.lock().unwrap_or_else(PoisonError::into_inner).insert(effect);
            continue;
        };
        match shared.supervisor.answer(&run, Some(&effect), &answer, None).await {
            // What was answered already is passed over.
            Ok(_) => {}
            Err(failure) if failure.code == Code::AnswerInvalid && !is_open(shared, &run, &effect) => {}
            Err(failure) if failure.code == Code::AnswerInvalid => {
                return Err(ErrorData::invalid_params(clean(&failure.message), None));
            }
            Err(failure) => return Err(refused(&failure)),
        }
    }
    Ok(())
}

fn is_open(shared: &Shared, run: &str, effect: &str) -> bool {
    match shared.supervisor.process(run) {
        Some(process) => process.question(Some(effect)).is_some(),
        None => shared.supervisor.recorded_question(run, Some(effect)).is_ok(),
    }
}

/// Stops the run of a task, as Ctrl-C does.
pub(super) fn cancel(shared: &Shared, id: &str) -> Answered<()> {
    let run = own(shared, id)?;
    shared.supervisor.process(&run).iter().for_each(|process| process.interrupt());
    Ok(())
}

fn own(shared: &Shared, id: &str) -> Answered<String> {
    // A task has the whole name of its run.
    let whole = shared.supervisor.runs.named(id).and_then(|run| shared.supervisor.own(&run));
    whole.map_err(|failure| {
        ErrorData::invalid_params(format!("there is no such task: {}", clean(&failure.message)), None)
    })
}
