//! What a judge is asked about a run, and what is made of the answers.

use std::collections::BTreeSet;

use super::figures::{Judged, Preference};
use super::inputs::Recorded;
use super::judge::{Judge, JudgedText, asked, blind};
use super::outcome::{CheckHeld, Outcome};
use crate::error::Result;
use crate::report::RunHistory;

/// The most parts of two texts that are judged each by itself, and the longest name of one.
const PARTS: usize = 12;
const LONGEST_NAME: usize = 40;

/// Returns what the judge is asked of the flow's checks about what came out with a model.
///
/// # Errors
///
/// As [`asked`].
pub(super) fn check_questions(recorded: &Recorded, model: Option<&str>, outcome: &Outcome) -> Result<Vec<JudgedText>> {
    if outcome.status != "done" {
        return Ok(Vec::new());
    }
    let models: Vec<&str> = [recorded.history.model.as_deref(), model].into_iter().flatten().collect();
    let asked = blind(&asked(recorded)?, &models);
    let question = |(_, question): (&str, &str)| JudgedText {
        asked: asked.clone(),
        one: blind(&outcome.whole(), &models),
        two: None,
        question: Some(question.to_owned()),
        parts: Vec::new(),
    };
    Ok(recorded.session.flow.judged_checks().map(question).collect())
}

/// Has the flow's questions answered about what came out with a model; of a run that is not done, nothing holds.
///
/// # Errors
///
/// As [`Judge::verdicts`].
pub(super) fn checks(
    judge: &Judge<'_>,
    recorded: &Recorded,
    model: Option<&str>,
    outcome: &Outcome,
) -> Result<Vec<CheckHeld>> {
    let verdicts = judge.verdicts(&check_questions(recorded, model, outcome)?)?;
    let names = recorded.session.flow.judged_checks().map(|(name, _)| name.to_owned());
    Ok(names.zip(verdicts).map(|(name, said)| (name, said.verdict == "yes")).collect())
}

/// Returns the texts of a recorded run beside those of another, for a judge who does not know which model wrote which; nothing
/// where one of them has none, or both are the same.
///
/// # Errors
///
/// As [`asked`].
pub(super) fn pair(
    recorded: &Recorded,
    (before, after): (&Outcome, &Outcome),
    model: Option<&str>,
) -> Result<Option<JudgedText>> {
    let models: Vec<&str> = [recorded.history.model.as_deref(), model].into_iter().flatten().collect();
    let fields: BTreeSet<&str> = before.text_fields().union(&after.text_fields()).copied().collect();
    let [one, two] = [before, after].map(|outcome| blind(&outcome.text(&fields), &models));
    if before.text_fields().is_empty() || after.text_fields().is_empty() || one == two {
        return Ok(None);
    }
    let parts = parts(&fields);
    Ok(Some(JudgedText { asked: blind(&asked(recorded)?, &models), one, two: Some(two), question: None, parts }))
}

/// Returns the pair that is to be expected of a model that has not been asked yet: its texts are taken to be as long.
///
/// # Errors
///
/// As [`asked`].
pub(super) fn likely_pair(recorded: &Recorded, before: &Outcome) -> Result<Option<JudgedText>> {
    let fields = before.text_fields();
    if fields.is_empty() {
        return Ok(None);
    }
    let (text, parts) = (before.text(&fields), parts(&fields));
    Ok(Some(JudgedText { asked: asked(recorded)?, one: text.clone(), two: Some(text), question: None, parts }))
}

/// Returns the fields that are judged each by itself, too.
fn parts(fields: &BTreeSet<&str>) -> Vec<String> {
    // They are names of a reply's members.
    let is_name = |name: &&str| {
        name.len() <= LONGEST_NAME
            && name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    let are_parts = (2..=PARTS).contains(&fields.len()) && fields.iter().all(is_name);
    if are_parts { fields.iter().map(|&name| name.to_owned()).collect() } else { Vec::new() }
}

/// Has the longer texts of two runs judged; there is nothing to judge where the recorded one has none. The same texts are a tie, and
/// those that are missing are worse, without a call.
///
/// # Errors
///
/// As [`Judge::verdicts`].
pub(super) fn texts(
    judge: &Judge<'_>,
    (recorded, before): (&Recorded, &Outcome),
    (history, after): (&RunHistory, &Outcome),
) -> Result<Option<Judged>> {
    if before.text_fields().is_empty() {
        return Ok(None);
    }
    if after.text_fields().is_empty() {
        return Ok(Some(Judged::without_a_call(Preference::Worse)));
    }
    let Some(pair) = pair(recorded, (before, after), history.model.as_deref())? else {
        return Ok(Some(Judged::without_a_call(Preference::Tie)));
    };
    let said = judge.verdicts(&[pair])?.into_iter().next();
    Ok(said.map(|said| Judged {
        preference: preference(&said.verdict),
        why: said.why,
        parts: said.parts.into_iter().map(|(name, verdict)| (name, preference(&verdict))).collect(),
    }))
}

fn preference(verdict: &str) -> Preference {
    match verdict {
        "one" => Preference::Worse,
        "two" => Preference::Better,
        _ => Preference::Tie,
    }
}
