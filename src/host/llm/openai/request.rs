//! The request body for the Chat Completions API. It borrows from the request and is serialised once.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::Thought;
use super::parts::Content;
use crate::host::llm::attempt_error::CallContext;
use crate::host::llm::provider::MaxTokensField;
use crate::host::llm::refusal::RequestPart;
use crate::host::llm::{schema, state};
use crate::model::chat::{ChatRequest, Message, Role, Tool, ToolCall, ToolChoice};

/// The instruction for a model that cannot be forced to call a tool. Anthropic's API gets no such instruction: its models
/// bind their thinking to the system prompt, which must not change from one call to the next.
const BEGIN: &str = "Begin with a tool: call one of them before you answer.";

/// The member of the body by which a flow's provider options may say how much a model thinks.
const EFFORT: &str = "reasoning_effort";

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Turn<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Function<&'a Tool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(flatten)]
    options: BTreeMap<&'a str, &'a Value>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<MessageToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Function<T> {
    r#type: &'static str,
    function: T,
}

#[derive(Serialize)]
struct MessageToolCall<'a> {
    id: &'a str,
    #[serde(flatten)]
    function: Function<CallBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Value>,
}

#[derive(Serialize)]
struct CallBody<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    strict: bool,
    schema: &'a Value,
}

/// Returns the body of this request.
pub(in crate::host::llm) fn body(context: CallContext<'_>, request: &ChatRequest) -> Vec<u8> {
    let CallContext { provider, model, profile, .. } = context;
    let takes_schemas = provider.json_schema && !profile.refuses(RequestPart::ResponseFormat);
    let native = request.schema.as_ref().filter(|schema| takes_schemas && schema::has_object_root(schema));
    let instructed = match &request.schema {
        Some(schema) if native.is_none() || provider.schema_in_prompt => {
            Some(schema::prompt_with_schema(request.system.as_deref(), schema))
        }
        _ => None,
    };
    let system = instructed.as_deref().or(request.system.as_deref());
    let needs_instruction = request.wants_tool() && profile.refuses(RequestPart::ToolChoice);
    let forced_system = needs_instruction.then(|| [system.unwrap_or_default(), BEGIN].join("\n\n").trim().to_owned());
    let system = forced_system.as_deref().or(system).map(|text| Turn {
        role: "system",
        content: Some(Content::Text(text)),
        reasoning_content: String::new(),
        tool_calls: Vec::new(),
        tool_call_id: None,
    });
    let new_field = match provider.max_tokens_field {
        MaxTokensField::MaxCompletionTokens => !profile.refuses(RequestPart::MaxCompletionTokens),
        MaxTokensField::MaxTokens => profile.refuses(RequestPart::MaxTokens),
    };
    let effort = profile.effort_with_tools.as_deref().filter(|_| !profile.refuses(RequestPart::ReasoningEffort));
    let body = Body {
        model,
        messages: system.into_iter().chain(request.messages.iter().map(|message| turn(context, message))).collect(),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        tools: request.tools.iter().map(|tool| Function { r#type: "function", function: tool }).collect(),
        tool_choice: request.tool_choice.filter(|_| !profile.refuses(RequestPart::ToolChoice)),
        response_format: native.map(|schema| ResponseFormat {
            r#type: "json_schema",
            json_schema: JsonSchema { name: "reply", strict: schema::is_strict(schema), schema },
        }),
        max_tokens: request.max_tokens.filter(|_| !new_field),
        max_completion_tokens: request.max_tokens.filter(|_| new_field),
        temperature: request.temperature.filter(|_| !profile.refuses(RequestPart::Temperature)),
        reasoning_effort: effort
            .filter(|_| !request.tools.is_empty() && !request.provider_options.contains_key(EFFORT)),
        seed: request.seed,
        top_p: request.top_p.filter(|_| profile.takes_top_p()),
        stop: &request.stop,
        options: profile.options(request),
    };
    serde_json::to_vec(&body).expect("plain data with text keys is always JSON")
}

fn turn<'a>(context: CallContext<'_>, message: &'a Message) -> Turn<'a> {
    let mut thought: Thought = state::of(context, message).unwrap_or_default();
    let calls = message.tool_calls.iter().enumerate();
    Turn {
        role: match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        },
        content: Content::of(context, message),
        tool_calls: calls.map(|(index, one)| call(one, thought.calls.remove(&index))).collect(),
        reasoning_content: thought.reasoning_content,
        tool_call_id: message.tool_call_id.as_deref(),
    }
}

fn call(call: &ToolCall, extra_content: Option<Value>) -> MessageToolCall<'_> {
    let function = CallBody { name: &call.name, arguments: &call.arguments };
    MessageToolCall { id: &call.id, function: Function { r#type: "function", function }, extra_content }
}
