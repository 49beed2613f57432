//! Providers as strict as they are since the autumn of 2026: what they refuse, in their words, and what they want back.
//!
//! A [`Strict`] stands in front of a script, on the wire of its provider: what the provider would refuse never reaches the
//! script, and what it wants back is checked. Nothing is kept: what a model thought is made from what it was sent.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::cache::unmarked;
use super::wire::Thought;
use super::{Request, Response};

/// Whose rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// GPT-5.6 and later, chat completions: no sampling, `max_completion_tokens`, no tools while it thinks.
    OpenAi,
    /// Claude 5.5: no sampling, no forced tool, schemas of the narrow kind; what it thought goes back unchanged, in a
    /// conversation to which things were only added.
    Anthropic,
    /// Gemini 3: the seal of a tool call goes back.
    Gemini,
    /// DeepSeek V4: no forced tool; what was thought goes back beside tool calls.
    DeepSeek,
}

/// So many tokens are thought before the first word: a lower limit leaves no room for any.
const THOUGHT: u64 = 1500;

/// A provider, and what it refused.
pub struct Strict {
    provider: Provider,
    /// Whether it takes its time, and so many tokens.
    slow: bool,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Strict {
    pub fn new(provider: Provider) -> Strict {
        Strict { provider, slow: true, refused: Arc::default() }
    }

    /// Thinks next to nothing before it speaks.
    pub fn quick(self) -> Strict {
        Strict { slow: false, ..self }
    }

    /// The words of each refusal, in their order.
    pub fn refused(&self) -> Arc<Mutex<Vec<String>>> {
        self.refused.clone()
    }

    /// Puts this provider before a script.
    pub fn before(
        self,
        script: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> impl Fn(&Request) -> Response + Send + Sync + 'static {
        move |request| {
            if let Some(body) = self.provider.refuses(&request.body) {
                let said = body["error"]["message"].as_str().or(body[0]["error"]["message"].as_str());
                self.refused.lock().expect("nobody panics while it is held").push(said.unwrap_or_default().to_owned());
                return Response::plain(400, body.to_string()).header("content-type", "application/json");
            }
            let limit = request.body["max_completion_tokens"].as_u64().or(request.body["max_tokens"].as_u64());
            if self.slow && limit.is_some_and(|limit| limit < THOUGHT) && request.body["reasoning_effort"] != "none" {
                return Response::text("").too_long();
            }
            self.provider.thinks(&request.body, script(request))
        }
    }
}

impl Provider {
    /// The error of this provider for a body, if it has one.
    fn refuses(self, body: &Value) -> Option<Value> {
        match self {
            Provider::OpenAi => openai(body),
            Provider::Anthropic => anthropic(body).map(|message| {
                let error = json!({"type": "invalid_request_error", "message": message});
                json!({"type": "error", "error": error, "request_id": "req_011"})
            }),
            Provider::Gemini => gemini(body)
                .map(|message| json!([{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}])),
            Provider::DeepSeek => deepseek(body).map(|message| {
                let code = "invalid_request_error";
                json!({"error": {"message": message, "type": code, "param": null, "code": code}})
            }),
        }
    }

    /// Adds what is thought to a reply.
    fn thinks(self, body: &Value, reply: Response) -> Response {
        match self {
            Provider::OpenAi => reply,
            Provider::Anthropic => reply.thought(Thought::Block(seal(body, usize::MAX))),
            Provider::Gemini => reply.thought(Thought::AtCall(said(body, usize::MAX))),
            Provider::DeepSeek => reply.thought(Thought::Beside(said(body, usize::MAX))),
        }
    }
}

fn messages(body: &Value) -> Vec<&Value> {
    body["messages"].as_array().map(|all| all.iter().collect()).unwrap_or_default()
}

/// Where the user spoke last.
fn turn_begins(body: &Value) -> usize {
    let is_result = |content: &Value| content[0]["type"] == "tool_result";
    let asks = |message: &&Value| message["role"] == "user" && !is_result(&message["content"]);
    messages(body).iter().rposition(asks).unwrap_or(0)
}

/// A word for all of this.
fn word(of: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    of.to_string().hash(&mut hasher);
    format!("sealed-{:016x}", hasher.finish())
}

/// What a model thinks of the first messages of a conversation, the system prompt aside.
fn said(body: &Value, before: usize) -> String {
    let all: Vec<&Value> =
        messages(body).into_iter().take(before).filter(|message| message["role"] != "system").collect();
    word(&json!(all))
}

/// The seal of what Claude thought: it is bound to all that comes before it.
fn seal(body: &Value, before: usize) -> String {
    let all: Vec<&Value> = messages(body).into_iter().take(before).collect();
    // Marks of what is to be cached move from request to request, and change nothing of what is said.
    word(&unmarked(&json!([body["model"], body["system"], body["tools"], all])))
}

fn openai(body: &Value) -> Option<Value> {
    let error = |message: String, param: &str, code: Value| json!({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}});
    let unsupported = |name: &str, more: &str| {
        let message = format!("Unsupported parameter: '{name}' is not supported with this model.{more}");
        Some(error(message, name, "unsupported_parameter".into()))
    };
    if let Some(temperature) = body["temperature"].as_f64().filter(|temperature| *temperature != 1.0) {
        let message = format!(
            "Unsupported value: 'temperature' does not support {temperature} with this model. Only the default (1) value is supported."
        );
        return Some(error(message, "temperature", "unsupported_value".into()));
    }
    if !body["top_p"].is_null() {
        return unsupported("top_p", "");
    }
    if !body["max_tokens"].is_null() {
        return unsupported("max_tokens", " Use 'max_completion_tokens' instead.");
    }
    if !body["tools"].is_null() && body["reasoning_effort"] != "none" {
        let message = format!(
            "Function tools with reasoning_effort are not supported for {} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            body["model"].as_str().unwrap_or_default()
        );
        return Some(error(message, "reasoning_effort", Value::Null));
    }
    for (index, message) in messages(body).into_iter().enumerate() {
        if !message["reasoning_content"].is_null() {
            let name = format!("messages[{index}].reasoning_content");
            return Some(error(format!("Unknown parameter: '{name}'."), &name, "unknown_parameter".into()));
        }
    }
    None
}

fn anthropic(body: &Value) -> Option<String> {
    if let Some(name) = ["temperature", "top_p", "top_k"].into_iter().find(|name| !body[*name].is_null()) {
        return Some(format!("`{name}` is deprecated for this model."));
    }
    if matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool")) {
        return Some("tool_choice: type \"tool\" and \"any\" are not supported for this model.".to_owned());
    }
    let format = &body["output_config"]["format"];
    if !format.is_null()
        && let Some(wrong) = too_wide(&format["schema"])
    {
        return Some(format!("output_config.format.schema: {wrong}"));
    }
    for (index, message) in messages(body).into_iter().enumerate().filter(|(_, message)| message["role"] == "assistant")
    {
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let calls = blocks.iter().any(|block| block["type"] == "tool_use");
        let thought = blocks.first().filter(|block| block["type"] == "thinking");
        match thought {
            // Of earlier turns it may be missing: they may be somebody else's.
            None if calls && index > turn_begins(body) => {
                let found = blocks[0]["type"].as_str().unwrap_or_default();
                return Some(format!(
                    "messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
                ));
            }
            Some(block) if block["signature"] != seal(body, index) => {
                return Some(format!(
                    "messages.{index}.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
                ));
            }
            _ => {}
        }
    }
    None
}

/// What is wrong with a schema that Claude is to be held to.
fn too_wide(schema: &Value) -> Option<String> {
    const TAKEN: [&str; 11] = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "description",
        "title",
        "$ref",
    ];
    let members = schema.as_object()?;
    if let Some(name) = members.keys().find(|name| !TAKEN.contains(&name.as_str())) {
        return Some(format!(
            "For '{}' type, property '{name}' is not supported",
            schema["type"].as_str().unwrap_or("any")
        ));
    }
    if schema["type"] == "object" && schema["additionalProperties"] != false {
        return Some("For 'object' type, 'additionalProperties' must be explicitly set to false".to_owned());
    }
    let below = schema["properties"].as_object().into_iter().flat_map(serde_json::Map::values);
    let below = below.chain(members.get("items")).chain(schema["anyOf"].as_array().into_iter().flatten());
    below.filter_map(too_wide).next()
}

fn gemini(body: &Value) -> Option<String> {
    let assistants = messages(body).into_iter().enumerate().filter(|(_, message)| message["role"] == "assistant");
    for (index, message) in assistants.filter(|(index, _)| *index > turn_begins(body)) {
        let call = &message["tool_calls"][0];
        if !call.is_null() && call["extra_content"]["google"]["thought_signature"] != said(body, index) {
            return Some(format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:{}` , position {index}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
                call["function"]["name"].as_str().unwrap_or_default()
            ));
        }
    }
    None
}

fn deepseek(body: &Value) -> Option<String> {
    if !matches!(body["tool_choice"].as_str(), None | Some("auto" | "none")) {
        return Some("Thinking mode does not support this tool_choice".to_owned());
    }
    let assistants = messages(body).into_iter().enumerate().filter(|(_, message)| message["role"] == "assistant");
    for (index, message) in assistants {
        if !message["tool_calls"].is_null() && message["reasoning_content"] != said(body, index) {
            return Some("The `reasoning_content` in the thinking mode must be passed back to the API.".to_owned());
        }
    }
    None
}
