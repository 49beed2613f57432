//! What came out of a run, as far as it is held against others.

use std::collections::{BTreeMap, BTreeSet};

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

    /// Returns the names of the fields that its long texts stand in or below; it is empty for a text that is all of it.
    pub(super) fn text_fields(&self) -> BTreeSet<&str> {
        let texts = self.values.iter().filter(|(_, value)| is_text(value));
        texts.map(|(place, _)| field(place)).collect()
    }

    /// Returns the texts of these fields as one, each below its name, with the short ones beside them: what a long one is about
    /// may stand there, and what is long in one run may be short in another.
    pub(super) fn text(&self, fields: &BTreeSet<&str>) -> String {
        let mut out = String::new();
        for name in fields {
            let mut texts: Vec<(&String, &str)> = self
                .values
                .iter()
                .filter(|(place, _)| field(place) == *name)
                .filter_map(|(place, value)| Some((place, value.as_str()?)))
                .collect();
            // The tenth of a list is not the one behind the first.
            texts.sort_by_cached_key(|(place, _)| {
                place.split('/').map(|part| (part.parse().unwrap_or(u64::MAX), part.to_owned())).collect::<Vec<_>>()
            });
            if !out.is_empty() {
                out += "\n\n";
            }
            if !name.is_empty() && !texts.is_empty() {
                out += &format!("## {name}\n\n");
            }
            let texts = texts.into_iter().map(|(place, text)| match place.splitn(3, '/').nth(2) {
                Some(below) => format!("{below}: {text}"),
                None => text.to_owned(),
            });
            out += &texts.collect::<Vec<_>>().join("\n\n");
        }
        out
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

/// Returns the name of the field that a value stands in or below.
fn field(place: &str) -> &str {
    place.split('/').nth(1).unwrap_or_default()
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
