//! Answers that were given elsewhere to the questions of a run on a server.

use serde_json::Value;

use super::Process;
use crate::error::{Code, Failure, Result};
use crate::host::ui::mailbox::{AnswerStore, GivenAnswer, given_before};
use crate::store::postgres::Server;

/// The answers to one run's questions.
pub(super) struct ServerAnswers {
    server: Server,
    run: String,
    process: Process,
    /// The run's number, once it is known.
    id: std::sync::OnceLock<i64>,
}

impl ServerAnswers {
    pub(super) fn new(server: Server, run: &str, process: Process) -> ServerAnswers {
        ServerAnswers { server, run: run.to_owned(), process, id: std::sync::OnceLock::new() }
    }

    fn id(&self) -> Result<Option<i64>> {
        if let Some(known) = self.id.get() {
            return Ok(Some(*known));
        }
        Ok(self.server.find(&self.run)?.map(|found| *self.id.get_or_init(|| found.id)))
    }
}

impl AnswerStore for ServerAnswers {
    fn find(&self, effect: &str) -> Result<Option<GivenAnswer>> {
        let Some(id) = self.id()? else { return Ok(None) };
        let found = self.server.answer_to(id, effect)?;
        let broken = |error| Failure::new(Code::Internal, format!("an answer is no JSON: {error}"));
        let value: Option<Value> = found.map(|text| serde_json::from_str(&text)).transpose().map_err(broken)?;
        // An answer is never an object: one is an answer with who gave it.
        let given = |value: Value| match value {
            Value::Object(_) => serde_json::from_value(value),
            answer => Ok(GivenAnswer { answer, by: None }),
        };
        value.map(given).transpose().map_err(broken)
    }

    fn keep(&self, effect: &str, answer: &GivenAnswer) -> Result<()> {
        let missing = || Failure::new(Code::RunNotFound, format!("there is no run `{}` here", self.run));
        let id = self.id()?.ok_or_else(missing)?;
        let value = match answer.by {
            None => answer.answer.to_string(),
            Some(_) => serde_json::to_string(answer).unwrap_or_default(),
        };
        let answered = self.server.answer(id, effect, &value, &self.process.person)?;
        if answered.result != "second" {
            return Ok(());
        }
        let who = if answered.said_as.is_empty() { answered.who } else { answered.said_as };
        Err(given_before().because(format!("{who} answered it at {}", answered.at)))
    }

    /// What was answered stays: the run's row says by whom.
    fn forget(&self, _: &str) {}

    fn refuse(&self, effect: &str) {
        let claim = self.id().ok().flatten().and_then(|id| {
            let given = self.process.given.filter(|given| given.run == id);
            given.or_else(|| {
                let found = self.server.find(&self.run).ok()??;
                let claim = crate::store::postgres::runs::Claim { run: id, claim: found.claim };
                (found.worker.as_deref() == Some(self.process.worker.as_str())).then_some(claim)
            })
        });
        if let Some(claim) = claim {
            // One that stays is refused again the next time.
            let _ = self.server.refuse(claim, effect);
        }
    }
}
