//! What a run did, for people who were not there: one page of HTML that needs nothing, Markdown for a pull request, or JSON.
//!
//! `history` reads a journal into plain data; `page` and `summary` show it, and `comparison` shows several beside each other. Foreign text is never markup: what a model, a
//! person, a file or a tool has written is escaped, and Markdown in it brings neither HTML nor addresses of pictures.

mod blocks;
mod busy;
mod comparison;
mod cost;
mod documents;
mod history;
mod live;
mod page;
mod prose;
mod summary;
mod timeline;
mod words;

pub(crate) use comparison::{ComparedModel, ComparedRun, ComparedSide, Comparison, Judgement, comparison};
pub(crate) use history::{RecordedEffect, RunHistory};
pub(crate) use live::LiveRun;
pub(crate) use page::{LivePage, STYLE, digest, render};
pub(crate) use words::of as words;

use serde::Serialize;
use serde_json::Value;

use crate::error::Result;

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Html,
    Markdown,
    Json,
}

/// What the flow itself shows of its run.
#[derive(Debug, Default)]
pub(crate) struct OwnPart {
    blocks: Vec<blocks::Block>,
    /// Why it cannot be shown, if so.
    failure: Option<String>,
}

impl OwnPart {
    /// Takes what the flow's `report` function returned.
    pub(crate) fn new(returned: Result<Value>) -> OwnPart {
        match returned.and_then(blocks::read) {
            Ok(blocks) => OwnPart { blocks, failure: None },
            Err(failure) => OwnPart { blocks: Vec::new(), failure: Some(failure.message) },
        }
    }

    /// Returns why it cannot be shown, if so.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

/// Writes the report of a run.
///
/// # Errors
///
/// `template-invalid` if a text of the run is too long for a page.
pub(crate) fn write(run: &RunHistory, own: &OwnPart, form: Form) -> Result<String> {
    match form {
        Form::Html => page::html(run, own, None),
        Form::Markdown => summary::markdown(run),
        Form::Json => Ok(json(run)),
    }
}

/// Writes the page of a run that is followed.
///
/// # Errors
///
/// As [`write()`].
pub(crate) fn live_page(run: &RunHistory, own: &OwnPart, live: &LivePage) -> Result<String> {
    page::html(run, own, Some(live))
}

/// The whole report as one JSON object; `src/schema/builtin/report.schema.json` describes it.
fn json(run: &RunHistory) -> String {
    #[derive(Serialize)]
    struct Versioned<'a> {
        v: u32,
        #[serde(flatten)]
        run: &'a RunHistory,
        cost: Vec<cost::Share>,
        documents: Vec<documents::Document>,
    }
    let whole = Versioned { v: 1, run, cost: cost::by_speaker(run), documents: documents::of(run) };
    serde_json::to_string(&whole).expect("plain data with text keys")
}

/// Returns a value as people read it: a text as it is, anything else as indented JSON.
fn readable(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}
