//! Finds out which part of a request a server refused, where the request can do without that part.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::provider::Wire;

/// A part of a request that can be left out or written in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequestPart {
    Temperature,
    TopP,
    /// The demand that the model calls a tool.
    ToolChoice,
    ResponseFormat,
    OutputConfig,
    /// A schema in requests with tools.
    SchemaWithTools,
    /// A schema that the server took, and did not hold its reply to.
    IgnoredSchema,
    /// The limit of a reply, by its older name and by its newer one.
    MaxTokens,
    MaxCompletionTokens,
    ReasoningEffort,
    Stop,
    Seed,
    /// The wish to be told the count of tokens at the end of a stream.
    StreamOptions,
    /// The wish to get the model's sealed thinking.
    Include,
    /// Thinking in requests with tools, which some models do unless `reasoning_effort` forbids it.
    Thinking,
    /// The marks of what the server is to cache.
    CacheControl,
    /// The model's earlier thinking in this conversation.
    State,
}

/// A server's message that refuses a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusal {
    pub(super) message: String,
    /// The refused parameter, if the message has a field for it.
    pub(super) param: String,
}

/// Words by which servers refuse a parameter altogether. A value out of range is refused in other words.
const REFUSING: [&str; 18] = [
    "unsupported",
    "not support",
    "n't support",
    "deprecated",
    "not permitted",
    "unrecognized",
    "unknown",
    "unexpected",
    "not compatible",
    "incompatible",
    "unavailable",
    "may not be",
    "no longer",
    "invalid schema",
    "extra_forbidden",
    "failed to parse grammar",
    "failed to initialize samplers",
    "is mandatory",
];

impl RequestPart {
    const ON_THE_WIRE: [RequestPart; 12] = [
        RequestPart::Temperature,
        RequestPart::TopP,
        RequestPart::ToolChoice,
        RequestPart::ResponseFormat,
        RequestPart::OutputConfig,
        RequestPart::MaxTokens,
        RequestPart::MaxCompletionTokens,
        RequestPart::ReasoningEffort,
        RequestPart::Stop,
        RequestPart::Seed,
        RequestPart::StreamOptions,
        RequestPart::Include,
    ];

    /// Returns the part's name in a body first, and then the other names that servers use for it.
    pub(super) fn names(self) -> &'static [&'static str] {
        match self {
            RequestPart::Temperature => &["temperature"],
            RequestPart::TopP => &["top_p"],
            RequestPart::ToolChoice => &["tool_choice", "tool choice", "toolchoice"],
            RequestPart::ResponseFormat => &[
                "response_format",
                "response format",
                "json_schema",
                "text.format",
                "structured outputs",
                "grammar",
                "samplers",
            ],
            RequestPart::OutputConfig => &["output_config", "output_format", "schema", "grammar"],
            RequestPart::MaxTokens => &["max_tokens"],
            RequestPart::MaxCompletionTokens => &["max_completion_tokens"],
            RequestPart::ReasoningEffort => &[
                "reasoning_effort",
                "reasoningeffort",
                "reasoning.effort",
                "effort level",
                "support thinking",
                "reasoning is mandatory",
            ],
            RequestPart::Stop => &["stop"],
            RequestPart::Seed => &["seed"],
            RequestPart::StreamOptions => &["stream_options", "include_usage"],
            RequestPart::CacheControl => &["cache_control"],
            RequestPart::Include => &["include", "encrypted content"],
            RequestPart::SchemaWithTools | RequestPart::IgnoredSchema | RequestPart::Thinking | RequestPart::State => {
                &[]
            }
        }
    }

    /// Returns the notice to the user, for `provider/model`.
    pub(super) fn notice(self, model: &str) -> String {
        match self {
            RequestPart::Temperature => format!("{model} takes no temperature: it is left out in this run"),
            RequestPart::TopP => format!("{model} takes no top_p: it is left out in this run"),
            RequestPart::ToolChoice => format!("{model} cannot be made to call a tool: in this run it decides itself"),
            RequestPart::ResponseFormat | RequestPart::OutputConfig => {
                format!("{model} does not hold its replies to this schema: in this run the prompt spells it out")
            }
            RequestPart::SchemaWithTools => {
                format!(
                    "{model} holds no reply to a schema where it has tools: there the prompt spells it out in this run"
                )
            }
            RequestPart::IgnoredSchema => {
                format!(
                    "{model} did not hold its reply to the schema: from now on the prompt spells schemas out in this run"
                )
            }
            RequestPart::Stop => format!("{model} takes no stop texts: in this run its replies are cut here"),
            RequestPart::Seed => format!("{model} takes no seed: it is left out in this run"),
            RequestPart::StreamOptions => {
                format!("{model} takes no stream_options: they are left out in this run, and tokens may be uncounted")
            }
            RequestPart::Include => {
                format!("{model} has no sealed thinking to give: in this run it is not asked for that")
            }
            RequestPart::MaxTokens => {
                format!("{model} wants max_completion_tokens in the place of max_tokens: so it is in this run")
            }
            RequestPart::MaxCompletionTokens => {
                format!("{model} wants max_tokens in the place of max_completion_tokens: so it is in this run")
            }
            RequestPart::ReasoningEffort => {
                format!("{model} takes no such reasoning_effort: it is left out in this run")
            }
            RequestPart::Thinking => {
                format!("{model} takes no tools while it thinks: where it has tools, it does not think in this run")
            }
            RequestPart::CacheControl => {
                format!("{model} cannot be told what to cache: in this run it is not told")
            }
            RequestPart::State => {
                format!("{model} did not take back what it thought before: the call went on without that")
            }
        }
    }
}

impl Refusal {
    /// Returns the refused part of a body, if the request can do without it.
    pub(super) fn part(&self, wire: Wire, body: &[u8]) -> Option<RequestPart> {
        let Ok(Value::Object(body_fields)) = serde_json::from_slice(body) else { return None };
        let message = self.message.to_lowercase();
        let effort = RequestPart::ReasoningEffort.names()[0];
        if body_fields.contains_key("tools")
            && body_fields.get(effort).is_none_or(|effort| effort != "none")
            && message.contains(effort)
            && message.contains("tools")
            && message.contains("none")
        {
            return Some(RequestPart::Thinking);
        }
        let has = |name: &str| body_fields.contains_key(name);
        if has("tools") && has("response_format") && message.contains("combined with tool") {
            return Some(RequestPart::SchemaWithTools);
        }
        if !REFUSING.iter().any(|words| message.contains(words)) {
            return None;
        }
        // Marks stand within the parts of a body, and not beside them.
        let marks = RequestPart::CacheControl.names()[0];
        if message.contains(marks) && body.windows(marks.len()).any(|part| part == marks.as_bytes()) {
            return Some(RequestPart::CacheControl);
        }
        let position = |part: &RequestPart| part.names().iter().filter_map(|name| find_word(&message, name)).min();
        let candidates = RequestPart::ON_THE_WIRE.into_iter().filter(|part| part.is_in(wire, &body_fields));
        let field = self.param.split(['.', '[']).next();
        let by_field = candidates.clone().find(|part| field.is_some() && field == part.member(wire));
        by_field.or_else(|| {
            candidates.filter(|part| self.param.is_empty() && position(part).is_some()).min_by_key(position)
        })
    }

    /// Tells whether the server refused the model's earlier thinking.
    pub(super) fn is_of_state(&self) -> bool {
        let message = self.message.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
        has(&["signature", "`thinking`"]) && has(&["invalid", "not valid", "cannot be modified", "bound to"])
            || has(&["encrypted content"]) && has(&["could not be verified", "could not be decrypted"])
            || has(&["item 'rs_", "item with id 'rs_", "'reasoning'"]) && has(&["without its required", "not found"])
    }
}

impl RequestPart {
    /// Returns the member of a body that has this part; `None` if the wire has none that can be left out.
    fn member(self, wire: Wire) -> Option<&'static str> {
        match (wire, self) {
            // These wires have only one name for the limit.
            (Wire::Anthropic | Wire::Responses, RequestPart::MaxTokens | RequestPart::MaxCompletionTokens) => None,
            (Wire::Anthropic, RequestPart::ReasoningEffort) => Some("output_config"),
            (Wire::Anthropic, RequestPart::Stop) => Some("stop_sequences"),
            (Wire::Responses, RequestPart::ReasoningEffort) => Some("reasoning"),
            (Wire::Responses, RequestPart::ResponseFormat) => Some("text"),
            _ => self.names().first().copied(),
        }
    }

    fn is_in(self, wire: Wire, body: &Map<String, Value>) -> bool {
        let Some(value) = self.member(wire).and_then(|member| body.get(member)) else { return false };
        match (wire, self) {
            (Wire::Anthropic, RequestPart::OutputConfig) => value.get("format").is_some(),
            (Wire::Anthropic | Wire::Responses, RequestPart::ReasoningEffort) => value.get("effort").is_some(),
            _ => true,
        }
    }
}

/// Returns the position of a name in a text, where it stands as a word of its own.
fn find_word(text: &str, name: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).map(|(at, _)| at).find(|&at| {
        !text[..at].chars().next_back().is_some_and(is_part)
            && !text[at + name.len()..].chars().next().is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests;
