//! What came out of a run, as far as it is held against others.

use std::collections::BTreeMap;

use serde_json::Value;

use super::inputs::Recorded;
use crate::error::Result;
use crate::report::RunHistory;

/// A text that is longer, in letters, or has several lines is no field: two of them are hardly ever the same.
const FIELD: usize = 60;

/// A check of a flow, by its name, and whether it holds.
pub(super) type CheckHeld = (String, bool);

#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub status: String,
    /// Each value by its place, texts and fields alike.
    pub values: BTreeMap<String, Value>,
    /// The checks that were computed, and those that were judged.
    pub checks: Vec<CheckHeld>,
    /// US dollars, and milliseconds of calls.
    pub cost: Option<f64>,
    pub milliseconds: u64,
}

impl Outcome {
    /// Reads what came out of a run, in the eyes of the recorded one's flow. Of one that is not done nothing did.
    ///
    /// # Errors
    ///
    /// The flow's own functions fail.
    pub(super) fn of(recorded: &Recorded, history: &RunHistory) -> Result<Outcome> {
        let mut outcome = Outcome {
            status: history.status.clone(),
            cost: history.paid(),
            milliseconds: history.call_time(),
            ..Outcome::default()
        };
        if history.status == "done" {
            let (flow, run) = (&recorded.session.flow, history.for_flow());
            flatten("", &flow.compared(&run)?, &mut outcome.values);
            outcome.checks = flow.computed_checks(&run)?;
        }
        Ok(outcome)
    }

    /// Returns its long texts as one, each below its place.
    pub(super) fn text(&self) -> String {
        let texts = self.values.iter().filter(|(_, value)| is_text(value));
        let texts = texts.map(|(place, value)| match place.as_str() {
            "" => value.as_str().unwrap_or_default().to_owned(),
            place => format!("## {}\n\n{}", place.trim_start_matches('/'), value.as_str().unwrap_or_default()),
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Returns all of it as one text, for a judge who is asked about it.
    pub(super) fn whole(&self) -> String {
        let lines = self.values.iter().map(|(place, value)| match value.as_str() {
            Some(text) if place.is_empty() => text.to_owned(),
            Some(text) => format!("{}: {text}", place.trim_start_matches('/')),
            None => format!("{}: {value}", place.trim_start_matches('/')),
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

pub(super) fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains('\n') || text.chars().count() > FIELD)
}

pub(super) fn flatten(place: &str, value: &Value, out: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            members.iter().for_each(|(name, member)| flatten(&format!("{place}/{name}"), member, out));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(index, item)| flatten(&format!("{place}/{index}"), item, out));
        }
        leaf => drop(out.insert(place.to_owned(), leaf.clone())),
    }
}
