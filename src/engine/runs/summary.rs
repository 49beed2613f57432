//! What lists of runs tell of a run, made from its journal.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{Code, Failure};
use crate::journal::expander::TextExpander;
use crate::journal::lines::{EndRecord, OpenRecord, ReadRecord};
use crate::journal::reader;
use crate::model::budget;
use crate::model::chat::Usage;
use crate::model::event::{EndStatus, RunVerdict};
use crate::model::param;
use crate::model::text::excerpt;

/// The longest topic, in letters.
const TOPIC: usize = 300;
/// The kind of model calls in journals.
const CALL: &str = "chat";

/// How a run began and how far it came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSummary {
    pub flow: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The first line of what the run was asked.
    pub topic: String,
    /// ISO 8601, UTC.
    pub started: String,
    /// The run that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The run that began it as a part of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// How the latest process ended; absent while one is at it, and where it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<EndStatus>,
    /// The code of the failure that it ended with, and what was wrong, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<RunVerdict>,
    /// How many calls got a reply, and what they used; those of a run without an end are counted so far.
    pub calls: u64,
    pub usage: Usage,
    /// US dollars; absent if a price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<f64>,
}

/// What is read of a model call's outcome.
#[derive(Default, Deserialize)]
struct PaidCall {
    #[serde(default)]
    usage: Usage,
    #[serde(default)]
    cost: Option<f64>,
}

impl RunSummary {
    /// Returns the summary of a run whose process ends now.
    pub(super) fn at_end(open: &OpenRecord, end: &EndRecord) -> RunSummary {
        RunSummary::of(open).ended(end)
    }

    /// Reads it from a journal, whose digest chain is checked on the way. Of a broken one it is what stands before the failure.
    pub(super) fn read(path: &Path, bytes: &[u8]) -> (RunSummary, Option<Failure>) {
        let (mut open, mut end): (Option<Box<OpenRecord>>, Option<Box<EndRecord>>) = (None, None);
        let (mut texts, mut calls, mut replies): (_, HashSet<&str>, Vec<&RawValue>) =
            (None, HashSet::new(), Vec::new());
        let read = reader::read(path, bytes, |_, record| {
            match record {
                ReadRecord::Open(first) => {
                    texts = first.is_folded().then(TextExpander::default);
                    open = Some(first);
                }
                ReadRecord::Text(text) => {
                    // A text that cannot be put back is another reader's failure: the topic is only shown.
                    let _ = texts.as_mut().map(|texts| text.add_to(texts));
                }
                ReadRecord::Resume(_) => end = None,
                ReadRecord::End(last) => end = Some(last),
                ReadRecord::Intent(intent) if intent.kind == CALL => drop(calls.insert(intent.key)),
                ReadRecord::Outcome(outcome) if calls.contains(outcome.key) => replies.extend(outcome.ok),
                ReadRecord::Intent(_) | ReadRecord::Outcome(_) | ReadRecord::Effect(_) | ReadRecord::Given(_) => {}
            }
            Ok(())
        });
        let Some(mut open) = open else { return (RunSummary::default(), read.err()) };
        let _ = texts.as_mut().map(|texts| open.unfold(texts));
        let begun = RunSummary::of(&open);
        let summary = match end {
            Some(end) => begun.ended(&end),
            None => begun.so_far(&replies),
        };
        (summary, read.err())
    }

    /// Returns the summary of a run that begins.
    pub(crate) fn begun(open: &OpenRecord) -> RunSummary {
        RunSummary::of(open)
    }

    fn of(open: &OpenRecord) -> RunSummary {
        let topic = param::topic(&open.params).lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        RunSummary {
            flow: open.flow.clone(),
            command: open.command.clone(),
            topic: topic.chars().take(TOPIC).collect(),
            started: open.at.clone(),
            parent: open.taken_from().map(|fork| fork.run),
            of: open.of.as_ref().map(|of| of.run.clone()),
            ..RunSummary::default()
        }
    }

    /// Returns the summary of a run that ends like that.
    pub(super) fn ended(self, end: &EndRecord) -> RunSummary {
        RunSummary {
            end: Some(end.status),
            code: end.failure.as_ref().map(|failure| failure.code.name().to_owned()),
            why: end.failure.as_ref().map(|failure| excerpt(&failure.message)),
            verdict: end.verdict.clone(),
            calls: end.calls,
            usage: end.usage,
            cost: budget::cost(&end.spent),
            saved: budget::saved(&end.spent),
            ..self
        }
    }

    fn so_far(self, replies: &[&RawValue]) -> RunSummary {
        let mut sum = RunSummary { cost: Some(0.0), ..self };
        for reply in replies {
            let PaidCall { usage, cost } = serde_json::from_str(reply.get()).unwrap_or_default();
            sum.calls += 1;
            sum.usage += usage;
            sum.cost = sum.cost.zip(cost).map(|(sum, cost)| sum + cost);
        }
        sum
    }

    /// Tells whether resuming is pointless: the run is done, or its command line was wrong and would be again.
    pub fn is_over(&self) -> bool {
        self.end == Some(EndStatus::Done) || self.code.as_deref() == Some(Code::Usage.name())
    }
}
