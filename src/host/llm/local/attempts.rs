//! Both engines make at most two attempts at a reply in a fixed form: the second with tighter bounds, because small
//! models tend to fill lists and texts until their limit. This is what those attempts have in common.

use serde_json::Value;

use super::grammar::{LengthBounds, count_strings};
use crate::error::{Code, Failure, Result};
use crate::model::chat::{ChatReply, ChatRequest, FinishReason, ToolCall, Usage};
use crate::model::text::excerpt;

/// The most tokens of a reply, where the request sets no limit.
const MAX_TOKENS: usize = 2048;
/// The temperature where the request sets none, as the makers of the default model recommend.
pub(super) const TEMPERATURE: f64 = 0.7;
/// How long texts and lists may get in the first attempt at a structured reply, and in the second.
const ROOMY: LengthBounds = LengthBounds { text: 800, items: 12 };
const TIGHT: LengthBounds = LengthBounds { text: 200, items: 4 };

/// Returns the bounds of both attempts at a reply of at most so many tokens.
pub(super) fn bounds(request: &ChatRequest, max_tokens: usize) -> [LengthBounds; 2] {
    let strings = request.schema.as_ref().map_or(1, |schema| count_strings(schema, TIGHT.items)).max(1);
    // A token is three letters or more in most languages; half of the tokens are left for keys and punctuation.
    let text = (max_tokens as u64 * 3 / 2 / strings).clamp(8, TIGHT.text);
    [ROOMY, LengthBounds { text, ..TIGHT }]
}

/// Refuses options that are for some provider.
///
/// # Errors
///
/// `request-invalid`, naming the first of them.
pub(super) fn refuse_options(request: &ChatRequest) -> Result<()> {
    let Some(option) = request.provider_options.keys().next() else { return Ok(()) };
    let message = format!("the local engine has no option `{}`", excerpt(option));
    Err(Failure::new(Code::RequestInvalid, message).hint("it knows temperature, top_p, stop and max_tokens"))
}

/// Returns how many tokens a reply to a prompt of so many may have.
///
/// # Errors
///
/// `context-exceeded` if hardly any are left.
pub(super) fn room(request: &ChatRequest, model: &str, prompt: usize, context: usize) -> Result<usize> {
    let room = context.saturating_sub(prompt);
    if room < 16 {
        let message = format!("{prompt} tokens are more than local/{model} can read");
        return Err(Failure::new(Code::ContextExceeded, message)
            .because(format!("the most that it takes is {context}, its reply included"))
            .hint("make the conversation shorter, or use a model with a larger context"));
    }
    Ok(request.max_tokens.map_or(MAX_TOKENS, |max_tokens| max_tokens as usize).min(room))
}

/// Returns a reply without calls.
pub(super) fn reply(model: &str, text: String, finish: FinishReason, usage: Usage) -> ChatReply {
    ChatReply {
        text,
        tool_calls: Vec::new(),
        state: None,
        usage,
        model: model.to_owned(),
        finish,
        cost: None,
        saved: 0.0,
        refused: Vec::new(),
        retries: Vec::new(),
        lost: None,
    }
}

/// Returns the tool call in a reply, if the reply is one.
pub(super) fn tool_call(request: &ChatRequest, text: &str, finish: FinishReason) -> Option<ToolCall> {
    if request.tools.is_empty() || finish == FinishReason::Length {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let name = value.get("tool")?.as_str()?.to_owned();
    let arguments = value.get("arguments")?.to_string();
    request.tools.iter().find(|tool| tool.name == name)?;
    let earlier_calls: usize = request.messages.iter().map(|message| message.tool_calls.len()).sum();
    Some(ToolCall { id: format!("local-{}", earlier_calls + 1), name, arguments })
}

/// Returns what is wrong with a reply that has to follow a schema.
pub(super) fn problem(request: &ChatRequest, text: &str, finish: FinishReason, max_tokens: usize) -> Option<String> {
    match (&request.schema, finish) {
        (None, _) => None,
        (Some(_), FinishReason::Length) => Some(format!("the reply was cut at its limit of {max_tokens} tokens")),
        (Some(schema), _) => validation_error(schema, text),
    }
}

/// Returns the failure after two replies that could not be used.
pub(super) fn gave_up(model: &str, problem: Option<String>) -> Failure {
    Failure::new(Code::ReplyInvalid, format!("local/{model} gave no valid reply in two attempts"))
        .because(problem.unwrap_or_default())
        .hint("ask for fewer fields, allow more tokens, or use a larger model")
}

/// This check is needed because grammars do not know every keyword.
fn validation_error(schema: &Value, text: &str) -> Option<String> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return Some(format!("the reply is not JSON: {error}")),
    };
    let checker = jsonschema::draft202012::new(schema).ok()?;
    checker.validate(&value).err().map(|error| format!("the reply is not valid: {error}"))
}
