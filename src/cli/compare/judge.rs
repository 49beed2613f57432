//! The judge: a model that the user names, asked by a flow of its own, so that what it said once is kept and paid for once.

use std::ffi::OsString;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::inputs::Recorded;
use super::kept::{Kept, Wanted};
use crate::error::{Code, Failure, Result};
use crate::model::digest::Digest;
use crate::model::param::ParamKind;
use crate::model::text::excerpt;

/// The flow that asks the judge.
const FLOW: &str = "bundled:flows/compare/judge.lua";
/// The shortest name of a model without its provider that is taken out of texts, in letters.
const SHORTEST_NAME: usize = 4;
/// What stands in the place of a model's name.
const HIDDEN: &str = "[model]";

/// What is judged: two texts, or one text by a question.
#[derive(Clone, Debug, Serialize)]
pub(super) struct JudgedText {
    pub asked: String,
    pub one: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub two: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The names of the parts that two texts have, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
}

impl JudgedText {
    /// How many calls it takes: two texts are judged in both orders.
    pub(super) fn calls(&self) -> usize {
        if self.two.is_some() { 2 } else { 1 }
    }

    /// About how many letters each of its calls sends.
    pub(super) fn letters(&self) -> usize {
        [Some(&self.asked), Some(&self.one), self.two.as_ref(), self.question.as_ref()]
            .iter()
            .flatten()
            .map(|text| text.len())
            .sum()
    }
}

/// What the judge said: `one`, `two` or `tie`; by a question, `yes` or `no`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Verdict {
    pub verdict: String,
    /// Its reasons, one for each call.
    pub why: Vec<String>,
    /// What it said of each part, in the same words.
    #[serde(default)]
    pub parts: IndexMap<String, String>,
}

pub(super) struct Judge<'a> {
    pub kept: &'a Kept<'a>,
    pub model: &'a str,
}

impl Judge<'_> {
    fn wanted(&self, texts: &[JudgedText]) -> Wanted {
        let given = serde_json::to_value(texts).unwrap_or_default();
        let digest = Digest::of(format!("{}\n{given}", self.model).as_bytes()).to_string();
        Wanted {
            name: format!("judged-{}", &digest[..24]),
            what: format!("what {} judges", excerpt(self.model)),
            given,
        }
    }

    /// Tells whether these were judged already.
    pub(super) fn is_done(&self, texts: &[JudgedText]) -> bool {
        texts.is_empty() || self.kept.done(&self.wanted(texts).name).is_some()
    }

    /// Has texts judged, each by itself.
    ///
    /// # Errors
    ///
    /// What the judge's run ended with, if it is not done.
    pub(super) fn verdicts(&self, texts: &[JudgedText]) -> Result<Vec<Verdict>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = self.wanted(texts);
        let history = self.kept.history(&wanted, &|folder, questions| {
            let mut file = OsString::from("@");
            file.push(questions);
            let words = ["-C".into(), folder.into(), "run".into(), FLOW.into(), "--json".into(), "--model".into()];
            words.into_iter().chain([self.model.into(), file]).collect()
        })?;
        if history.status != "done" {
            let own: Option<Failure> = serde_json::from_value(history.failure.clone()).ok();
            let failure = own.unwrap_or_else(|| Failure::new(Code::Interrupted, history.status.clone()));
            let message = format!("{} did not come to its end: {}", wanted.what, failure.message);
            return Err(Failure { message, ..failure }.hint("the same command goes on with it"));
        }
        let verdicts: Option<Vec<Verdict>> = serde_json::from_value(history.result).ok();
        verdicts
            .filter(|verdicts| verdicts.len() == texts.len())
            .ok_or_else(|| Failure::new(Code::JournalBroken, format!("{}: its journal has no verdicts", wanted.name)))
    }
}

/// Returns a text without the names of these models: who judges does not know who wrote it.
pub(super) fn blind(text: &str, models: &[&str]) -> String {
    let bare = models.iter().filter_map(|model| model.rsplit('/').next()).filter(|name| name.len() >= SHORTEST_NAME);
    let names = models.iter().copied().filter(|model| !model.is_empty()).chain(bare);
    names.fold(text.to_owned(), |text, name| without(&text, name))
}

/// Returns a text without a name, where it stands by itself and is no part of another word. Large letters are as small ones, but
/// not in a name that may be a word: it would take that word out of texts.
fn without(text: &str, name: &str) -> String {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    // Letters beyond ASCII keep their bytes, so a place in one is that place in the other.
    let read = |text: &str| match name.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        true => text.to_owned(),
        false => text.to_ascii_lowercase(),
    };
    for (at, found) in read(text).match_indices(&read(name)) {
        let (before, behind) = (&text[..at], &text[at + found.len()..]);
        if !before.ends_with(is_of_word) && !behind.starts_with(is_of_word) {
            out.push_str(&text[from..at]);
            out.push_str(HIDDEN);
            from = at + found.len();
        }
    }
    out + &text[from..]
}

/// Returns what a run was asked, in the words of who asked: what it is about, what else was given, and answers to its questions.
pub(super) fn asked(recorded: &Recorded) -> Result<String> {
    let history = &recorded.history;
    let topic = history.topic();
    let declared = &recorded.session.flow.command(history.command.as_deref())?.params;
    let given = history.params.as_object().into_iter().flatten().filter_map(|(name, value)| {
        let param = declared.get(name)?;
        let is_said = matches!(param.kind, ParamKind::String | ParamKind::Integer | ParamKind::Number);
        let is_new = param.default.as_ref() != Some(value) && value.as_str() != Some(topic);
        (is_said && is_new).then(|| said(value)).flatten().map(|said| format!("- {name}: {said}"))
    });
    let answers =
        history.effects.iter().filter(|effect| effect.kind == "ask").filter_map(|effect| effect.outcome.as_str());
    let answers = answers.filter(|answer| !answer.trim().is_empty()).map(|answer| format!("- {answer}"));
    let all: Vec<String> = std::iter::once(topic.to_owned()).chain(given).chain(answers).collect();
    Ok(all.join("\n"))
}

/// Returns a param's value as a person would say it; nothing of one that says nothing.
fn said(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => items.iter().filter_map(said).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Bool(_) | Value::Object(_) => String::new(),
    };
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::blind;

    #[test]
    fn who_judges_reads_no_names_of_models() {
        assert_eq!(blind("I am gpt-x of openai/gpt-x.", &["openai/gpt-x", "anthropic/o3"]), "I am [model] of [model].");
        assert_eq!(blind("o3 stands", &["anthropic/o3", ""]), "o3 stands");
        assert_eq!(blind("Été: as GPT-X says", &["openai/gpt-x"]), "Été: as [model] says");
        assert_eq!(blind("Better not, says better", &["openai/better"]), "Better not, says [model]");
        assert_eq!(blind("the latest test, tested", &["openai/test"]), "the latest [model], tested");
    }
}
