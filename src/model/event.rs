//! Engine events of a run. A front end shows each one, or writes it as a JSON line.

use serde::Serialize;
use serde_json::Value;

use crate::error::Failure;
use crate::model::budget::Spent;
use crate::model::chat::{ChatReply, ChatRequest, Usage};
use crate::model::question::Question;

/// An event. `--json` writes each as one line with `v`, `seq`, `type` and `run`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// Always the first.
    RunStarted {
        flow: String,
        resumed: bool,
        journal: String,
        /// The run's language. People are told in it how the run ended.
        #[serde(skip)]
        lang: String,
    },
    /// Recorded effects were replayed before the first new one.
    Replayed { effects: usize },
    /// Markdown that the flow says to the user; `from` is a speaker's name.
    Said {
        markdown: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    /// A model call began. `call` is the effect's key; `show` is whether its text is streamed to the user.
    CallStarted { call: String, model: String, label: String, show: bool },
    /// The request of a call; only if the front end wants details.
    CallSent { call: String, request: Box<ChatRequest> },
    /// A piece of what the model thinks; no part of the reply, and recorded nowhere.
    CallThought { call: String, text: String },
    /// A piece of a call's text.
    CallDelta { call: String, text: String },
    /// A call is tried again after an error.
    CallRetried { call: String, attempt: u32, reason: String, wait_ms: u64 },
    /// The reply to a call; only if the front end wants details.
    CallReceived { call: String, reply: Box<ChatReply> },
    /// A call ended, well (`failure` is absent) or not.
    CallEnded {
        call: String,
        usage: Usage,
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    },
    /// What the flow is doing now; an empty text removes the status.
    Status { text: String },
    /// How many of a number of things the flow has done.
    Progress { label: String, done: u64, total: u64 },
    /// A question is waiting for its answer.
    Asked { question: Question },
    /// The answer that the flow got.
    Answered { id: String, answer: Value },
    /// An answer that is recorded was given back to the flow: nobody was asked.
    GivenBack { question: Question, answer: Value },
    /// A notice of the host for the user.
    Notice { text: String },
    /// Always the last: the run is done, failed, waiting or interrupted.
    RunEnded {
        status: EndStatus,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
        usage: Usage,
        calls: u64,
        /// By model and persona.
        spent: Vec<Spent>,
        /// What the flow decided, if it had to decide something.
        #[serde(skip_serializing_if = "Option::is_none")]
        verdict: Option<RunVerdict>,
    },
}

/// What a flow that has to decide something says of it: yes or no, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct RunVerdict {
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl std::fmt::Display for RunVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.ok { "yes" } else { "no" })?;
        self.why.iter().try_for_each(|why| write!(f, ": {why}"))
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndStatus {
    Done,
    Failed,
    Waiting,
    Interrupted,
}

impl EndStatus {
    /// All of them.
    pub const ALL: [EndStatus; 4] = [EndStatus::Done, EndStatus::Failed, EndStatus::Waiting, EndStatus::Interrupted];

    /// Returns the name that people, events and journals see.
    pub fn name(self) -> &'static str {
        match self {
            EndStatus::Done => "done",
            EndStatus::Failed => "failed",
            EndStatus::Waiting => "waiting",
            EndStatus::Interrupted => "interrupted",
        }
    }
}
