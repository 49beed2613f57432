//! Access to the outside world (models, files, git, programs, the user), behind traits. Nothing here knows Lua or the
//! journal.

pub(crate) mod attachments;
pub mod children;
mod confined;
pub mod documents;
pub(crate) mod exec;
mod file_lines;
pub(crate) mod files;
pub mod git;
mod globs;
mod grep;
pub mod keys;
pub mod llm;
pub mod mcp;
pub(crate) mod network;
pub mod notify;
pub(crate) mod path;
pub(crate) mod place;
mod rpc;
pub(crate) mod secret;
mod sweep;
pub(crate) mod telemetry;
pub mod ui;
pub(crate) mod user;

use futures_util::future::LocalBoxFuture;

use crate::error::Result;
use crate::model::budget::Price;
use crate::model::chat::{ChatReply, ChatRequest};
use crate::model::event::Event;
use crate::model::question::{AnsweredBy, Question};

/// The progress of a model call, as its adapter reports it.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEvent<'a> {
    /// A piece of the reply's text.
    Delta(&'a str),
    /// A piece of what the model thinks before it answers.
    Thought(&'a str),
    /// A piece of the reply that is not text: a tool call, sealed thinking.
    Alive,
    /// A notice to the user; the call goes on.
    Notice(&'a str),
    /// The call is repeated: the text of earlier attempts does not count.
    Retry { attempt: u32, reason: &'a str, wait_ms: u64 },
}

/// An adapter that answers model calls. Dropping the future cancels the call.
pub trait Models {
    /// Returns the price of a model, if it is known.
    fn price(&self, _model: &str) -> Option<Price> {
        None
    }

    /// Tells whether a model's replies follow from request and seed alone. Such a model gets its seed from the run.
    fn is_seeded(&self, _model: &str) -> bool {
        false
    }

    /// Returns how many tokens a model may spend on thinking, on top of the limit of its reply.
    fn thinks(&self, _model: &str) -> u32 {
        0
    }

    /// Restores which parts of requests the model's server refused in an earlier process of the run.
    fn recall(&self, _model: &str, _refused: &[String]) {}

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        report: &'a mut dyn FnMut(CallEvent<'_>),
    ) -> LocalBoxFuture<'a, Result<ChatReply>>;
}

/// The side that a person or a program uses: a terminal, a pipe.
pub trait FrontEnd {
    /// Shows one event. This never fails: a closed pipe is noticed when an answer is needed.
    fn show(&self, event: &Event);

    /// Waits for the answer to a question: a string for `ask` and `choose`, a boolean for `confirm`.
    /// Dropping the future withdraws the question.
    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, Result<serde_json::Value>>;

    /// Tells whether somebody is there for questions: a person at a terminal, a program that reads events, or answers that
    /// the user prepared. Lines of a pipe that nobody announced do not count: they may be anything.
    fn attended(&self) -> bool;

    /// Notes that the journal answered this question. A front end with a list of prepared answers skips one.
    fn answered_before(&self, _question: &Question) {}

    /// Returns who answered the question of this effect, if it was not the person themselves.
    fn answered_by(&self, _effect: &str) -> Option<AnsweredBy> {
        None
    }
}
