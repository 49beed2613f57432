//! What a judge is asked about a run, and what is made of the answers.

use super::figures::Preference;
use super::inputs::Recorded;
use super::judge::{Judge, JudgedText, asked, blind};
use super::outcome::{CheckHeld, Outcome};
use crate::error::Result;
use crate::report::RunHistory;

/// Returns what the judge is asked of the flow's checks about what came out with a model.
pub(super) fn check_questions(recorded: &Recorded, model: Option<&str>, outcome: &Outcome) -> Vec<JudgedText> {
    let questions = recorded.session.flow.judged_checks();
    let models: Vec<&str> = [recorded.history.model.as_deref(), model].into_iter().flatten().collect();
    let question = |(_, question): (&str, &str)| JudgedText {
        asked: blind(&asked(&recorded.history), &models),
        one: blind(&outcome.whole(), &models),
        two: None,
        question: Some(question.to_owned()),
    };
    if outcome.status == "done" { questions.map(question).collect() } else { Vec::new() }
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
    let verdicts = judge.verdicts(&check_questions(recorded, model, outcome))?;
    let names = recorded.session.flow.judged_checks().map(|(name, _)| name.to_owned());
    Ok(names.zip(verdicts).map(|(name, said)| (name, said.verdict == "yes")).collect())
}

/// Returns the texts of a recorded run beside those of another, for a judge who does not know which model wrote which.
pub(super) fn pair(recorded: &Recorded, one: &str, models: [Option<&str>; 2], two: &str) -> JudgedText {
    let models: Vec<&str> = models.into_iter().flatten().collect();
    let hidden = |text: &str| blind(text, &models);
    JudgedText { asked: hidden(&asked(&recorded.history)), one: hidden(one), two: Some(hidden(two)), question: None }
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
) -> Result<Option<(Preference, Vec<String>)>> {
    let (one, two) = (before.text(), after.text());
    if one.is_empty() {
        return Ok(None);
    }
    if two.is_empty() {
        return Ok(Some((Preference::Worse, Vec::new())));
    }
    let pair = pair(recorded, &one, [recorded.history.model.as_deref(), history.model.as_deref()], &two);
    if pair.two.as_ref() == Some(&pair.one) {
        return Ok(Some((Preference::Tie, Vec::new())));
    }
    let said = judge.verdicts(&[pair])?.into_iter().next();
    Ok(said.map(|said| {
        let preference = match said.verdict.as_str() {
            "one" => Preference::Worse,
            "two" => Preference::Better,
            _ => Preference::Tie,
        };
        (preference, said.why)
    }))
}
