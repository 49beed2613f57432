//! How a run stands, for calls and tasks: a form of its question, and what a run comes to that another process is at, or none.

use rmcp::model::{
    CallToolResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest,
};
use serde_json::{Value, json};

use super::{Shared, result};
use crate::editors::form;
use crate::error::{Code, Failure, Result};
use crate::model::question::Question;
use crate::report::RunHistory;

/// How a run stands that this server has not started.
pub(super) enum Elsewhere {
    Asked(Box<Question>),
    /// Another program is at it.
    Busy,
    Ended(Box<CallToolResult>),
}

impl Shared {
    /// Returns how a run stands by what is recorded.
    ///
    /// # Errors
    ///
    /// Those of reading it.
    pub(super) async fn elsewhere(&self, run: &str) -> Result<Elsewhere> {
        if let Ok(question) = self.supervisor.recorded_question(run, None) {
            return Ok(Elsewhere::Asked(Box::new(question)));
        }
        let listed = self.supervisor.runs.one(run)?;
        if listed.as_ref().is_some_and(|listed| listed.busy) {
            return Ok(Elsewhere::Busy);
        }
        let status = match listed.as_ref().map_or("failed", |listed| listed.status()) {
            "stopped" => "interrupted",
            status => status,
        };
        let RunHistory { result, verdict, failure, .. } = RunHistory::read(&self.supervisor.runs.journal(run)?)?;
        let end = json!({ "status": status, "result": result, "verdict": verdict, "failure": failure });
        let said = self.supervisor.verb(&["report", run, "--markdown"]).await?;
        let ended = result::ended(run, said.trim_end(), &end);
        Ok(Elsewhere::Ended(Box::new(ended)))
    }
}

/// Returns a question as a form, below what was said before it. `titled` says whether options can have titles.
///
/// # Errors
///
/// `internal` if it has no form.
pub(super) fn elicitation(question: &Question, said: &str, titled: bool) -> Result<ElicitRequestParams> {
    let schema: ElicitationSchema = serde_json::from_value(form::schema(question, titled))
        .map_err(|error| Failure::new(Code::Internal, format!("a question has no form: {error}")))?;
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: form::message(question, said),
        requested_schema: schema,
    })
}

/// Returns the form as a request that is returned in place of being sent.
pub(super) fn input_request(form: ElicitRequestParams) -> InputRequest {
    InputRequest::Elicitation(ElicitRequest::new(form))
}

/// Returns the answer of a form that was filled in; of an empty one the default is meant.
pub(super) fn answer_in(reply: ElicitResult) -> Option<Value> {
    match reply.action {
        ElicitationAction::Accept => {
            Some(reply.content.and_then(|content| content.get(form::FIELD).cloned()).unwrap_or_default())
        }
        // It declined, went away, or did what nobody knows yet.
        _ => None,
    }
}
