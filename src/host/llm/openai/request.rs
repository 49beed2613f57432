//! The request body for the Chat Completions API. It borrows from the request and is serialised once.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::parts::Content;
use super::{Thought, details};
use crate::host::llm::attempt_error::CallContext;
use crate::host::llm::cache::{self, MARK, Mark};
use crate::host::llm::effort::REASONING_EFFORT;
use crate::host::llm::provider::MaxTokensField;
use crate::host::llm::refusal::RequestPart;
use crate::host::llm::{catalogue, effort, schema, state};
use crate::model::chat::{ChatRequest, Message, Role, Tool, ToolCall, ToolChoice};

/// The instruction for a model that cannot be forced to call a tool. Anthropic's API gets no such instruction: its models
/// bind their thinking to the system prompt, which must not change from one call to the next.
pub(in crate::host::llm) const BEGIN: &str = "Begin with a tool: call one of them before you answer.";

/// The most tokens of a reply that must call a tool, at a server of one's own, where the flow sets no limit.
const FORCED_OUTPUT: u32 = 8192;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Turn<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<String>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Map<String, Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<MessageToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Function<T> {
    r#type: &'static str,
    function: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
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
    let native = schema::native(context, request);
    let system = schema::system(request, native.as_ref());
    let needs_instruction = request.wants_tool() && profile.refuses(RequestPart::ToolChoice);
    let forced_system =
        needs_instruction.then(|| [system.as_deref().unwrap_or_default(), BEGIN].join("\n\n").trim().to_owned());
    let system = forced_system.as_deref().or(system.as_deref()).map(|text| Turn {
        role: "system",
        content: Some(Content::Text(text)),
        reasoning_content: None,
        reasoning_details: Vec::new(),
        tool_calls: Vec::new(),
        tool_call_id: None,
    });
    let new_field = match provider.max_tokens_field {
        MaxTokensField::MaxCompletionTokens => !profile.refuses(RequestPart::MaxCompletionTokens),
        MaxTokensField::MaxTokens => profile.refuses(RequestPart::MaxTokens),
    };
    // A grammar keeps some models from ending that have been made to call a tool.
    let forced = request.wants_tool() && provider.is_on_this_machine();
    let limit = request.max_tokens.or(forced.then_some(FORCED_OUTPUT));
    let limit = limit.map(|limit| catalogue::within_output(provider, model, profile.within_largest(limit)));
    let thinking = effort::thinking(context, request);
    let with_tools = profile.effort_with_tools.as_deref().filter(|_| {
        !request.tools.is_empty()
            && !profile.refuses(RequestPart::ReasoningEffort)
            && !request.provider_options.contains_key(REASONING_EFFORT)
    });
    let mut options = profile.options(request);
    for (name, value) in thinking.members.into_iter().flatten() {
        options.entry(name).or_insert(value);
    }
    let has_system = system.is_some();
    let mut messages: Vec<Turn<'_>> =
        system.into_iter().chain(request.messages.iter().map(|message| turn(context, message))).collect();
    let mut tools: Vec<Function<&Tool>> = request.tools.iter().map(function).collect();
    mark(context, request, has_system, &mut messages, &mut tools);
    let body = Body {
        model,
        messages,
        stream: true,
        stream_options: (!profile.refuses(RequestPart::StreamOptions)).then_some(StreamOptions { include_usage: true }),
        tools,
        tool_choice: request.tool_choice.filter(|_| !profile.refuses(RequestPart::ToolChoice)),
        response_format: native.as_ref().map(|native| ResponseFormat {
            r#type: "json_schema",
            json_schema: JsonSchema { name: "reply", strict: native.strict, schema: &native.schema },
        }),
        max_tokens: limit.filter(|_| !new_field),
        max_completion_tokens: limit.filter(|_| new_field),
        temperature: request.temperature.filter(|_| !profile.refuses(RequestPart::Temperature)),
        reasoning_effort: with_tools.or(thinking.word),
        seed: request.seed.filter(|_| !profile.refuses(RequestPart::Seed)),
        top_p: request.top_p.filter(|_| profile.takes_top_p()),
        stop: if profile.refuses(RequestPart::Stop) { &[] } else { &request.stop },
        prompt_cache_key: cache::key(provider, request),
        options,
    };
    serde_json::to_vec(&body).expect("plain data with text keys is always JSON")
}

fn function<T>(function: T) -> Function<T> {
    Function { r#type: "function", function, cache_control: None }
}

/// Marks what the server is to cache.
fn mark<'a>(
    context: CallContext<'_>,
    request: &ChatRequest,
    has_system: bool,
    messages: &mut [Turn<'a>],
    tools: &mut [Function<&Tool>],
) {
    let (system, conversation) = messages.split_at_mut(usize::from(has_system));
    let start = cache::tools_size(request) + system.iter().map(Turn::size).sum::<usize>();
    let sizes: Vec<(bool, usize)> =
        request.messages.iter().map(|message| (message.role == Role::Assistant, cache::size(message))).collect();
    let places = cache::places(context.marks, context.model, start, &sizes);
    for index in places.turns {
        conversation.get_mut(index).into_iter().for_each(Turn::mark);
    }
    match (places.start, system.first_mut()) {
        (true, Some(system)) => system.mark(),
        (true, None) => tools.iter_mut().next_back().into_iter().for_each(|tool| tool.cache_control = Some(MARK)),
        (false, _) => {}
    }
}

impl Turn<'_> {
    fn size(&self) -> usize {
        self.content.as_ref().map_or(0, Content::size)
    }

    /// Marks the end of a message. An empty one cannot be marked.
    fn mark(&mut self) {
        self.content.iter_mut().for_each(Content::mark);
    }
}

fn turn<'a>(context: CallContext<'_>, message: &'a Message) -> Turn<'a> {
    let mut thought: Thought = state::of(context, message).unwrap_or_default();
    let calls = message.tool_calls.iter().enumerate();
    // Where the field must be there, it is so also for a turn that another model made, or one that was made without thought.
    let keeps = context.profile.keeps_thoughts && !message.tool_calls.is_empty();
    let reasoning = Some(std::mem::take(&mut thought.reasoning_content)).filter(|text| keeps || !text.is_empty());
    Turn {
        role: match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        },
        content: Content::of(context, message),
        tool_calls: calls.map(|(index, one)| call(one, thought.calls.remove(&index))).collect(),
        reasoning_content: reasoning,
        reasoning_details: thought.details.into_iter().filter(details::goes_back).collect(),
        tool_call_id: message.tool_call_id.as_deref(),
    }
}

fn call(call: &ToolCall, extra_content: Option<Value>) -> MessageToolCall<'_> {
    let body = CallBody { name: &call.name, arguments: &call.arguments };
    MessageToolCall { id: &call.id, function: function(body), extra_content }
}
