//! How much a model is to think, in the words of its wire.

use serde_json::{Map, Value};

use super::attempt_error::CallContext;
use super::families::ModelProfile;
use super::provider::Wire;
use super::refusal::RequestPart;
use crate::model::chat::{ChatRequest, Effort};

/// The member of chat completions that says how much a model thinks. A flow's provider options may set it, too.
pub(super) const REASONING_EFFORT: &str = "reasoning_effort";

/// The members of bodies by which a flow's provider options say how much a model thinks: they go before its `effort`.
const BY_OPTIONS: [&str; 4] = [REASONING_EFFORT, "reasoning", "thinking", "extra_body"];

/// What a request says of thinking.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Thinking<'p> {
    /// The word for the step.
    pub(super) word: Option<&'static str>,
    /// Further members of the body.
    pub(super) members: Option<&'p Map<String, Value>>,
}

/// Tells whether a request asks for a step although the model has none. That is told, like a part that is refused.
pub(super) fn is_left_out(profile: &ModelProfile, request: &ChatRequest) -> bool {
    request.effort.is_some() && profile.efforts.as_ref().is_some_and(|efforts| efforts.is_empty())
}

/// Returns what a request says of thinking, in the nearest step that the model has. Where nobody knows the model's steps,
/// it is asked for the very step.
pub(super) fn thinking<'p>(context: CallContext<'p>, request: &ChatRequest) -> Thinking<'p> {
    let profile = context.profile;
    let Some(asked) = request.effort else { return Thinking::default() };
    let by_options = BY_OPTIONS.iter().any(|name| request.provider_options.contains_key(*name));
    if by_options || profile.refuses(RequestPart::ReasoningEffort) {
        return Thinking::default();
    }
    let Some(efforts) = &profile.efforts else { return Thinking { word: Some(asked.name()), members: None } };
    // OpenAI's newer families have the highest step on their own wire alone.
    let has_max = profile.wire != Some(Wire::Responses) || context.wire() == Wire::Responses;
    match nearest(asked, efforts.iter().copied().filter(|one| has_max || *one != Effort::Max)) {
        None => Thinking::default(),
        Some(Effort::None) if !profile.no_thinking.is_empty() => {
            Thinking { word: None, members: Some(&profile.no_thinking) }
        }
        Some(step) => Thinking {
            word: Some(step.name()),
            members: Some(&profile.thinking).filter(|members| step != Effort::None && !members.is_empty()),
        },
    }
}

/// Returns the nearest step; of two that are as near, the one nearer to `high`, which is what most models do unasked. Not to
/// think is another thing than to think a little, and is chosen for nobody who asked for some.
fn nearest(asked: Effort, steps: impl Iterator<Item = Effort>) -> Option<Effort> {
    let place = |step: Effort| Effort::ALL.iter().position(|one| *one == step).unwrap_or_default();
    let far = |one: Effort, other: Effort| place(one).abs_diff(place(other));
    steps
        .filter(|step| asked == Effort::None || *step != Effort::None)
        .min_by_key(|step| (far(*step, asked), far(*step, Effort::High)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_step_is_taken_and_no_thought_is_chosen_for_nobody() {
        use Effort::{High, Low, Max, Medium, Minimal, None, Xhigh};
        let deepseek = [None, Low, High, Max];
        for (asked, steps, chosen) in [
            (Minimal, &deepseek[..], Some(Low)),
            (Medium, &deepseek, Some(High)),
            (Xhigh, &deepseek, Some(High)),
            (None, &deepseek, Some(None)),
            (None, &[Low, High], Some(Low)),
            (Max, &[Minimal, Low, Medium, High], Some(High)),
            (Minimal, &[None, Medium], Some(Medium)),
            (Low, &[], Option::None),
        ] {
            assert_eq!(nearest(asked, steps.iter().copied()), chosen, "{asked:?} of {steps:?}");
        }
    }
}
