//! The request body for the Responses API. It borrows from the request and is serialised once.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Item;
use super::parts::Content;
use crate::host::llm::attempt_error::CallContext;
use crate::host::llm::effort::REASONING_EFFORT;
use crate::host::llm::refusal::RequestPart;
use crate::host::llm::{cache, catalogue, effort, openai, schema, state};
use crate::model::chat::{ChatRequest, Effort, Message, Role, Tool, ToolCall, ToolChoice};

/// The name that provider options have for the length of a text, here a member of `text`.
const VERBOSITY: &str = "verbosity";

/// The members that are set here, which provider options cannot replace, beside those that no wire lets them set.
const OWN: [&str; 7] =
    ["conversation", "include", "input", "instructions", "max_output_tokens", "previous_response_id", "store"];

/// The lowest limit of a reply that the API takes.
const LEAST_OUTPUT: u32 = 16;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    input: Vec<InputItem<'a>>,
    stream: bool,
    /// Nothing is kept at the provider: the run has all of the conversation.
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Function<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    text: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    reasoning: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(flatten)]
    options: BTreeMap<&'a str, &'a Value>,
}

#[derive(Serialize)]
struct Function<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    tool: &'a Tool,
    /// Said outright: unsaid, the server makes tools strict that were not meant to be.
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum InputItem<'a> {
    Said {
        role: &'static str,
        content: Content<'a>,
    },
    Call(CallItem<'a>),
    Result {
        r#type: &'static str,
        call_id: &'a str,
        output: &'a str,
    },
    /// As the model sent it.
    Whole(Map<String, Value>),
}

#[derive(Serialize)]
struct CallItem<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    beside: Map<String, Value>,
    call_id: &'a str,
    name: &'a str,
    arguments: &'a str,
}

/// Returns the body of this request. The API has no seed and no stop texts.
pub(in crate::host::llm) fn body(context: CallContext<'_>, request: &ChatRequest) -> Vec<u8> {
    let CallContext { model, profile, .. } = context;
    let native = schema::native(context, request);
    let system = schema::system(request, native.as_ref());
    let needs_instruction = request.wants_tool() && profile.refuses(RequestPart::ToolChoice);
    let begin = needs_instruction.then_some(openai::BEGIN);
    let instructions = system.as_deref().into_iter().chain(begin).collect::<Vec<_>>().join("\n\n");
    let thinking = effort::thinking(context, request);
    let mut options = profile.options(request);
    options.retain(|name, _| !OWN.contains(name));
    let mut text = members(options.remove("text"));
    if let Some(verbosity) = options.remove(VERBOSITY) {
        text.insert(VERBOSITY.to_owned(), verbosity.clone());
    }
    if let Some(native) = &native {
        let format = json!({"type": "json_schema", "name": "reply", "strict": native.strict, "schema": native.schema});
        text.insert("format".to_owned(), format);
    }
    let mut reasoning = members(options.remove("reasoning"));
    let word = options.remove(REASONING_EFFORT).cloned().or(thinking.word.map(Value::from));
    if let Some(word) = word {
        reasoning.entry("effort").or_insert(word);
    }
    let thinks = profile.thinks > 0 && request.effort != Some(Effort::None);
    if context.wants_thoughts && thinks {
        reasoning.entry("summary").or_insert("auto".into());
    }
    let mut input: Vec<InputItem<'_>> = request.messages.iter().flat_map(|message| items(context, message)).collect();
    if input.is_empty() {
        // The API wants something to answer.
        input.push(InputItem::Said { role: "user", content: Content::Text("") });
    }
    let body = Body {
        model,
        instructions: Some(instructions).filter(|text| !text.is_empty()),
        input,
        stream: true,
        store: false,
        include: (!profile.refuses(RequestPart::Include)).then_some(["reasoning.encrypted_content"]),
        tools: request.tools.iter().map(|tool| Function { r#type: "function", tool, strict: false }).collect(),
        tool_choice: request.tool_choice.filter(|_| !profile.refuses(RequestPart::ToolChoice)),
        text,
        reasoning,
        max_output_tokens: request.max_tokens.map(|limit| {
            catalogue::within_output(context.provider, model, profile.within_largest(limit)).max(LEAST_OUTPUT)
        }),
        prompt_cache_key: cache::key(context.provider, request),
        temperature: request.temperature.filter(|_| !profile.refuses(RequestPart::Temperature)),
        top_p: request.top_p.filter(|_| profile.takes_top_p()),
        options,
    };
    serde_json::to_vec(&body).expect("plain data with text keys is always JSON")
}

/// Returns the members of an object that provider options give.
fn members(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn items<'a>(context: CallContext<'_>, message: &'a Message) -> Vec<InputItem<'a>> {
    match (message.role, &message.tool_call_id) {
        (Role::Tool, Some(call_id)) => {
            vec![InputItem::Result { r#type: "function_call_output", call_id, output: &message.content }]
        }
        (Role::Assistant, _) => match state::of::<Vec<Item>>(context, message).filter(|items| fits(items, message)) {
            Some(items) => as_it_came(items, message),
            None => {
                let text = (!message.content.is_empty())
                    .then_some(InputItem::Said { role: "assistant", content: Content::Text(&message.content) });
                let calls = message.tool_calls.iter().map(|call| call_item(call, Map::new()));
                text.into_iter().chain(calls).collect()
            }
        },
        (Role::User | Role::Tool, _) => vec![InputItem::Said { role: "user", content: Content::of(message) }],
    }
}

/// Tells whether a message can still be the one that these items were kept of: a flow may have made another of it.
fn fits(items: &[Item], message: &Message) -> bool {
    let calls = items.iter().filter(|item| matches!(item, Item::Call { .. })).count();
    let mut texts = items.iter().filter_map(|item| if let Item::Text { from, .. } = item { Some(*from) } else { None });
    calls == message.tool_calls.len()
        && texts.clone().all(|from| message.content.is_char_boundary(from))
        && (texts.next().is_some() || message.content.is_empty())
}

/// Returns the items as they came. The last text takes all that is left: the host may have shortened a structured reply.
fn as_it_came(items: Vec<Item>, message: &Message) -> Vec<InputItem<'_>> {
    let mut calls = message.tool_calls.iter();
    let last = items.iter().rposition(|item| matches!(item, Item::Text { .. }));
    let item = |(place, item)| match item {
        Item::Whole(members) => Some(InputItem::Whole(members)),
        Item::Text { from, to, beside } => {
            let to = if Some(place) == last { message.content.len() } else { to };
            Some(InputItem::Whole(super::message(beside, message.content.get(from..to)?)))
        }
        Item::Call { beside } => Some(call_item(calls.next()?, beside)),
    };
    items.into_iter().enumerate().filter_map(item).collect()
}

fn call_item(call: &ToolCall, beside: Map<String, Value>) -> InputItem<'_> {
    InputItem::Call(CallItem {
        r#type: "function_call",
        beside,
        call_id: &call.id,
        name: &call.name,
        arguments: &call.arguments,
    })
}
