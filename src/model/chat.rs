//! A model call, the same for each provider: what is asked, what comes back, what it used.

use std::cell::{Cell, OnceCell};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Lost;
use crate::model::digest::Digest;

/// One request to a model. Its canonical form is part of the effect's key, so a field that is added
/// here must be left out of the JSON when it has its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    /// The model as `provider/model`, after aliases were resolved.
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    pub messages: Vec<Message>,
    /// A JSON Schema (2020-12); when it is given, the reply's text must be JSON that is valid by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether the reply must be a tool call; when it is absent, the model decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// The most tokens that the reply may have. Providers differ when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// 0 (always the likeliest word) to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// Which of its tools a model is to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// Any of them, but one.
    Required,
}

impl ChatRequest {
    /// Tells whether only a tool call is wanted in reply.
    pub fn wants_tool(&self) -> bool {
        self.tool_choice == Some(ToolChoice::Required)
    }

    /// Puts the members of each object of its schemas in the order of `required`, then the others. A model writes them
    /// in this order, and what it has written decides what it writes next; tables of Lua have no order of their own.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
    /// The result of a tool call; `tool_call_id` says of which.
    Tool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    // In the order of their names, so that the canonical form needs no sorting.
    #[serde(default)]
    pub content: String,
    pub role: Role,
    /// What the model that said this wants back with it; nobody else reads it. It stands in the journal with the reply that
    /// it came with, and neither in requests nor in their keys: it says nothing that a flow asks for.
    #[serde(default, skip_serializing)]
    pub state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
}

impl Message {
    /// How much of it there is, in bytes: what was said, and what its model wants back.
    pub fn size(&self) -> usize {
        self.content.len() + self.state.as_ref().map_or(0, String::len)
    }
}

/// A message with what was found out about it. A conversation sends it again with each call, so that is
/// found out once.
#[derive(Clone, Debug)]
pub struct HashedMessage {
    pub message: Message,
    /// Whether it was looked through and holds no secret.
    pub clean: Cell<bool>,
    digest: OnceCell<Digest>,
}

impl HashedMessage {
    pub fn new(message: Message) -> HashedMessage {
        HashedMessage { message, clean: Cell::new(false), digest: OnceCell::new() }
    }

    pub fn digest(&self) -> Digest {
        *self.digest.get_or_init(|| Digest::of_json(&self.message))
    }
}

impl PartialEq for HashedMessage {
    fn eq(&self, other: &HashedMessage) -> bool {
        self.message == other.message
    }
}

/// A tool that the model may ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
}

/// What a model asked for; `arguments` is its JSON text as it came, valid or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// A whole reply. A reply that ended early is a failure, never one of these.
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
    /// US dollars, by the price at that time; absent where no price was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Parts of the request that the server refused, so that the call was made without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// What attempts before this one used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
}

/// Tokens, as the provider counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    /// The part of `input` that was read from the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Returns the tokens of requests and replies together.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl std::ops::AddAssign for Usage {
    /// What a server says is any number: sums stay at the largest.
    fn add_assign(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
    }
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    Stop,
    ToolCalls,
    /// The limit of tokens cut the reply. Text may be used as it is; a structured reply may not.
    Length,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_model_wants_back_is_no_part_of_what_a_flow_asks_for() {
        let said = json!({"role": "assistant", "content": "so"});
        let message: Message = serde_json::from_value(said.clone()).unwrap();
        let kept = HashedMessage::new(Message { state: Some("sealed".to_owned()), ..message.clone() });
        assert_eq!(kept.digest(), HashedMessage::new(message).digest());
        assert_eq!(serde_json::to_value(&kept.message).unwrap(), said);
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
