//! The fork of a run onto one model, in a folder of its own.

use std::ffi::OsString;

use serde_json::{Map, Value, json};

use super::CONTROL;
use super::inputs::Recorded;
use super::kept::{Kept, Wanted};
use crate::error::Result;
use crate::model::digest::Digest;
use crate::model::text::excerpt;
use crate::report::RunHistory;

/// The longest part of a name that comes from a run or a model, in letters.
const LONGEST: usize = 40;

pub(super) struct Fork {
    wanted: Wanted,
    model: String,
    is_control: bool,
}

impl Fork {
    pub(super) fn of(recorded: &Recorded, model: &str, number: u32) -> Fork {
        let is_control = model == CONTROL;
        let own = recorded.history.model.clone().filter(|_| is_control);
        let model_name = if is_control { own.unwrap_or_default() } else { model.to_owned() };
        let slug = |text: &str| -> String {
            text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(LONGEST).collect()
        };
        // Names that have one slug are told apart, and a run that was recorded anew is another one.
        let digest = format!("{model_name}\n{is_control}\n{}", recorded.digest);
        let digest = Digest::of(digest.as_bytes()).to_string();
        let name = format!("{}-{}-{}-{number}", slug(&recorded.id), slug(model), &digest[..8]);
        let what = format!("{} with {}", excerpt(&recorded.id), excerpt(model));
        Fork { wanted: Wanted { name, what, given: answers(&recorded.history) }, model: model_name, is_control }
    }

    pub(super) fn what(&self) -> &str {
        &self.wanted.what
    }

    /// Returns the fork if it is there and done: it costs nothing again.
    pub(super) fn done(&self, kept: &Kept<'_>) -> Option<RunHistory> {
        kept.done(&self.wanted.name)
    }

    /// Returns what the fork did; takes it to its end if it is not done.
    pub(super) fn history(&self, kept: &Kept<'_>, recorded: &Recorded) -> Result<RunHistory> {
        kept.history(&self.wanted, &|folder, answers| {
            let from =
                if recorded.is_cassette { recorded.journal.clone().into() } else { OsString::from(&recorded.id) };
            let mut words: Vec<OsString> =
                vec!["-C".into(), kept.machine.workspace.clone().into(), "fork".into(), from];
            words.extend(["--json".into(), "--into".into(), folder.into(), "--answers".into(), answers.into()]);
            match self.is_control {
                true => words.push("--calls-anew".into()),
                false => words.extend(["--model".into(), OsString::from(&self.model)]),
            }
            words
        })
    }
}

/// Returns what people answered, by question and in order: another model asks in other words, and they would say the same.
fn answers(history: &RunHistory) -> Value {
    let mut answers: Map<String, Value> = Map::new();
    for effect in history.effects.iter().filter(|effect| effect.kind == "ask" && effect.failure.is_null()) {
        let (Some(id), Some(_)) = (effect.request["id"].as_str(), effect.ended) else { continue };
        if let Some(list) = answers.entry(id).or_insert_with(|| json!([])).as_array_mut() {
            list.push(effect.outcome.clone());
        }
    }
    Value::Object(answers)
}
