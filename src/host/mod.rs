//! The world behind traits. Nothing here knows Lua or the journal.

mod confined;
pub mod documents;
pub(crate) mod exec;
pub(crate) mod files;
pub mod git;
mod globs;
pub mod llm;
pub(crate) mod path;
mod sweep;
pub(crate) mod telemetry;
pub mod ui;
pub(crate) mod user;

use futures_util::future::LocalBoxFuture;

use crate::error::Result;
use crate::model::budget::Price;
use crate::model::chat::{ChatReply, ChatRequest};
use crate::model::event::Event;
use crate::model::question::Question;

/// What a model adapter reports while a call goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEvent<'a> {
    /// A piece of the reply's text.
    Delta(&'a str),
    /// The reply goes on with something else: a tool call, a thought.
    Alive,
    /// Something that the user should know, and the call goes on.
    Notice(&'a str),
    /// The call is tried again: text that came before does not count.
    Retry { attempt: u32, reason: &'a str, wait_ms: u64 },
}

/// Whatever answers model calls. Dropping the future cancels the call.
pub trait Models {
    /// Returns what a model costs, where that is known.
    fn price(&self, _model: &str) -> Option<Price> {
        None
    }

    /// Whether a model's replies follow from request and seed alone. Such a model is given the run's chance.
    fn is_seeded(&self, _model: &str) -> bool {
        false
    }

    /// Returns how many tokens a model may think before it speaks: room that a limit of its reply does not have.
    fn thinks(&self, _model: &str) -> u32 {
        0
    }

    /// Is told what the server of a model refused in a call of an earlier process of the run.
    fn recall(&self, _model: &str, _refused: &[String]) {}

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        report: &'a mut dyn FnMut(CallEvent<'_>),
    ) -> LocalBoxFuture<'a, Result<ChatReply>>;
}

/// Whatever a person or a program sits at.
pub trait FrontEnd {
    /// Shows one event. Never fails: a closed pipe is found out when an answer is needed.
    fn show(&self, event: &Event);

    /// Waits for the answer to a question: a string for `ask` and `choose`, a boolean for `confirm`.
    /// Dropping the future takes the question away.
    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, Result<serde_json::Value>>;

    /// Notes that a recorded answer was given back: whoever has answers in a row is one further.
    fn answered_before(&self, _question: &Question) {}
}
