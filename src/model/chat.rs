//! Model calls in a form that is the same for all providers: request, reply and usage.

use std::cell::{Cell, OnceCell};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Lost;
use crate::model::attachment::{self, Attachment};
use crate::model::digest::Digest;
use crate::model::text::excerpt;

/// A request to a model. Its canonical form is part of the effect's key, so a new field must be left out of the JSON
/// when it has its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    /// The model as `provider/model`, with aliases resolved.
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    pub messages: Vec<Message>,
    /// A JSON Schema (2020-12); if present, the reply's text must be JSON that is valid by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether the reply must be a tool call; if absent, the model decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// The most tokens that the reply may have; if absent, the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// From 0 (always the likeliest token) to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The share of the likeliest tokens that the next one is drawn from, above 0 up to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts before which the reply ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Further members of the request's body, for this model's provider alone.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provider_options: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How much the model is to think; if absent, the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

/// How much a model is to think before it answers. A model that has not this step gets the nearest that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", try_from = "String")]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
    /// All steps, the least first.
    pub const ALL: [Effort; 7] =
        [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::Xhigh, Effort::Max];

    /// Returns the step's name, in requests, flows and options alike.
    pub fn name(self) -> &'static str {
        match self {
            Effort::None => "none",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Xhigh => "xhigh",
            Effort::Max => "max",
        }
    }
}

impl std::str::FromStr for Effort {
    type Err = String;

    fn from_str(name: &str) -> Result<Effort, String> {
        Effort::ALL.into_iter().find(|effort| effort.name() == name).ok_or_else(|| {
            let known = Effort::ALL.map(Effort::name).join(", ");
            format!("an effort is one of {known}; found `{}`", excerpt(name))
        })
    }
}

impl TryFrom<String> for Effort {
    type Error = String;

    fn try_from(name: String) -> Result<Effort, String> {
        name.parse()
    }
}

/// The most stop texts, and the most characters of one.
const MOST_STOPS: usize = 16;
const LONGEST_STOP: usize = 200;
/// The most bytes of provider options, as JSON.
const MOST_OPTIONS: usize = 16 << 10;

/// The members of bodies that the host sets itself, and those by which a call would be another one: more replies, a key, a
/// reply that comes later.
const OWN_MEMBERS: &[&str] = &[
    "api_key",
    "authorization",
    "background",
    "best_of",
    "functions",
    "function_call",
    "key",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "model",
    "models",
    "n",
    "output_config",
    "output_format",
    "prompt",
    "response_format",
    "seed",
    "stop",
    "stop_sequences",
    "stream",
    "stream_options",
    "system",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
];

/// Tells whether provider options cannot set this member of a body.
pub(crate) fn is_own_member(name: &str) -> bool {
    OWN_MEMBERS.contains(&name.to_lowercase().as_str())
}

/// Which of its tools a model must call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// At least one, of the model's choice.
    Required,
}

impl ChatRequest {
    /// Returns what is wrong with its numbers, stop texts or provider options.
    pub fn problem(&self) -> Option<String> {
        if self.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
            return Some("temperature goes from 0 to 2".to_owned());
        }
        if self.top_p.is_some_and(|top_p| !(top_p > 0.0 && top_p <= 1.0)) {
            return Some("top_p is above 0 and at most 1".to_owned());
        }
        let is_wrong = |stop: &String| stop.trim().is_empty() || stop.chars().count() > LONGEST_STOP;
        if self.stop.len() > MOST_STOPS || self.stop.iter().any(is_wrong) {
            return Some(format!(
                "stop has at most {MOST_STOPS} texts, each with a letter or sign in it and at most {LONGEST_STOP} long"
            ));
        }
        let size = serde_json::to_vec(&self.provider_options).map_or(usize::MAX, |bytes| bytes.len());
        (size > MOST_OPTIONS).then(|| format!("provider_options has more than {MOST_OPTIONS} bytes"))
    }

    /// Tells whether the reply must be a tool call.
    pub fn wants_tool(&self) -> bool {
        self.tool_choice == Some(ToolChoice::Required)
    }

    /// Sorts the members of each object in its schemas: first those in `required`, in that order, then the others. A model
    /// writes members in this order, and what it has written decides what it writes next. Lua tables have no order.
    pub fn in_order(mut self) -> ChatRequest {
        self.schema.iter_mut().chain(self.tools.iter_mut().map(|tool| &mut tool.parameters)).for_each(order);
        self
    }
}

fn order(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(order),
        Value::Object(members) => {
            members.values_mut().for_each(order);
            let Some(Value::Array(required)) = members.get("required").cloned() else { return };
            let Some(Value::Object(properties)) = members.get_mut("properties") else { return };
            let place = |name: &str| required.iter().position(|one| one == name).unwrap_or(required.len());
            let mut sorted: Vec<_> = std::mem::take(properties).into_iter().collect();
            sorted.sort_by_key(|(name, _)| place(name));
            properties.extend(sorted);
        }
        _ => {}
    }
}

/// Who a message is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
    /// The result of a tool call, which `tool_call_id` names.
    Tool,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    // The fields are in the order of their names, so that the canonical form needs no sorting.
    /// Images and PDFs of a user's message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    #[serde(default)]
    pub content: String,
    pub role: Role,
    /// The provider state: opaque data that the model wants back with this message. The journal has it with the reply that
    /// brought it, but requests and keys do not include it, because it is no part of what a flow requests.
    #[serde(default, skip_serializing)]
    pub state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
}

impl Message {
    /// Returns what is wrong with its attachments.
    pub fn problem(&self) -> Option<String> {
        if !self.attachments.is_empty() && self.role != Role::User {
            return Some("only messages of the user have attachments".to_owned());
        }
        if self.attachments.len() > attachment::MOST {
            return Some(format!("a message has at most {} attachments", attachment::MOST));
        }
        self.attachments.iter().find_map(Attachment::problem)
    }

    /// Returns the size of the content and the provider state, in bytes.
    pub fn size(&self) -> usize {
        self.content.len() + self.state.as_ref().map_or(0, String::len)
    }
}

/// A message with its digest and whether it is clean. A conversation sends each message again with each call, so both are
/// computed only once.
#[derive(Clone, Debug)]
pub struct HashedMessage {
    pub message: Message,
    /// Whether the message was searched and has no secret.
    pub clean: Cell<bool>,
    digest: OnceCell<Digest>,
}

impl HashedMessage {
    pub fn new(message: Message) -> HashedMessage {
        HashedMessage { message, clean: Cell::new(false), digest: OnceCell::new() }
    }

    /// Returns the digest of the message's JSON.
    pub fn digest(&self) -> Digest {
        *self.digest.get_or_init(|| Digest::of_json(&self.message))
    }
}

impl PartialEq for HashedMessage {
    fn eq(&self, other: &HashedMessage) -> bool {
        self.message == other.message
    }
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments, which are an object.
    pub parameters: Value,
}

/// A tool call of a model; `arguments` is the JSON text as received, valid or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// A complete reply. A reply that broke off is a failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatReply {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// See [`Message::state`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(default)]
    pub usage: Usage,
    /// The model that answered, as the provider names it.
    pub model: String,
    pub finish: FinishReason,
    /// The cost in US dollars, at the price of that time; absent if no price was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How much more the call would have cost without the provider's cache, in US dollars; it may be negative.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub saved: f64,
    /// Parts of the request that the server refused; the call was then made without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// What earlier attempts without a reply used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// The attempts that failed before this reply, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<Retry>,
}

/// A failed attempt of a call, after which it was made again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// When the attempt had failed, in milliseconds since the call began.
    pub after_ms: u64,
    /// How long the call waited then, in milliseconds.
    pub wait_ms: u64,
    pub reason: String,
}

/// Counts of tokens, as the provider reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    /// How many tokens of `input` came from the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// How many tokens of `input` were written to the provider's cache, where that has a price of its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_written: u64,
    /// How many tokens of `output` the model spent on thinking.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Tells whether an amount is 0, and so left out of JSON.
#[allow(clippy::trivially_copy_pass_by_ref)] // Serde passes a reference.
pub(crate) fn is_nothing(amount: &f64) -> bool {
    *amount == 0.0
}

impl Usage {
    /// Returns the tokens of requests and replies together.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl std::ops::AddAssign for Usage {
    /// Saturates, because a server may report any number.
    fn add_assign(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_written = self.cache_written.saturating_add(other.cache_written);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    Stop,
    ToolCalls,
    /// The token limit cut the reply. A cut text may be used, a structured reply may not.
    Length,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_model_wants_back_is_no_part_of_what_a_flow_asks_for() {
        let json = json!({"role": "assistant", "content": "so"});
        let message: Message = serde_json::from_value(json.clone()).unwrap();
        let kept = HashedMessage::new(Message { state: Some("sealed".to_owned()), ..message.clone() });
        assert_eq!(kept.digest(), HashedMessage::new(message).digest());
        assert_eq!(serde_json::to_value(&kept.message).unwrap(), json);
    }

    #[test]
    fn an_effort_is_no_part_of_a_request_that_says_nothing_of_it() {
        let json = json!({"model": "a/b", "messages": []});
        let request: ChatRequest = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&request).unwrap(), json);
        for effort in Effort::ALL {
            let asked = ChatRequest { effort: Some(effort), ..request.clone() };
            assert_eq!(serde_json::to_value(&asked).unwrap()["effort"], effort.name());
            assert_eq!(effort.name().parse(), Ok(effort));
        }
        assert!("lo".parse::<Effort>().unwrap_err().contains("low"));
    }

    #[test]
    fn members_are_asked_for_in_the_order_in_which_they_are_required() {
        let mut schema = json!({ "type": "object", "required": ["why", "leaks"], "properties": {
            "also": {}, "leaks": { "type": "boolean" },
            "why": { "type": "array", "items": { "required": ["b"], "properties": { "a": {}, "b": {} } } },
        } });
        order(&mut schema);
        assert_eq!(
            schema.to_string(),
            r#"{"type":"object","required":["why","leaks"],"properties":{"why":{"type":"array","items":{"required":["b"],"properties":{"b":{},"a":{}}}},"leaks":{"type":"boolean"},"also":{}}}"#
        );
    }
}
