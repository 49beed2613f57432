//! The request body for Anthropic's Messages API. It borrows from the request and is serialised once.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::parts::{self, FileBlock};
use super::{REPLY_TOOL, ReplyMethod, Thought, is_forced, reply_method};
use crate::host::llm::attempt_error::CallContext;
use crate::host::llm::cache::{self, MARK, Mark};
use crate::host::llm::catalogue;
use crate::host::llm::refusal::RequestPart;
use crate::host::llm::{effort, schema, state};
use crate::model::chat::{ChatRequest, Effort, Message, Role, ToolChoice};

/// The API always wants a limit. All current models can write this much.
const MAX_TOKENS: u32 = 16_384;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<System<'a>>,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Marked<ToolSpec<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    output_config: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(flatten)]
    options: BTreeMap<&'a str, &'a Value>,
}

/// A system prompt as it usually is, and one with a mark.
#[derive(Serialize)]
#[serde(untagged)]
enum System<'a> {
    Plain(&'a str),
    Marked([Marked<Block<'a>>; 1]),
}

/// A block with or without a mark.
#[derive(Serialize)]
struct Marked<B> {
    #[serde(flatten)]
    block: B,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<ContentPart<'a>>,
    /// About how many bytes it has.
    #[serde(skip)]
    size: usize,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ContentPart<'a> {
    Block(Marked<Block<'a>>),
    /// A thinking block, exactly as the model sent it.
    Thought(Map<String, Value>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: &'a str,
    },
    #[serde(untagged)]
    File(FileBlock<'a>),
}

#[derive(Serialize)]
struct ToolSpec<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

/// Returns the body of this request. The API has no seed, and no temperature above 1.
pub(in crate::host::llm) fn body(context: CallContext<'_>, request: &ChatRequest) -> Vec<u8> {
    let CallContext { model, profile, .. } = context;
    let by = reply_method(profile, request);
    let instructed = match (&by, &request.schema) {
        (Some(ReplyMethod::Prompt), Some(schema)) => {
            Some(schema::prompt_with_schema(request.system.as_deref(), schema))
        }
        _ => None,
    };
    let mut tools: Vec<Marked<ToolSpec<'_>>> = request
        .tools
        .iter()
        .map(|tool| ToolSpec { name: &tool.name, description: &tool.description, input_schema: &tool.parameters })
        .map(unmarked)
        .collect();
    let forced = request.tool_choice.filter(|_| is_forced(profile));
    let mut tool_choice = forced.map(|ToolChoice::Required| json!({"type": "any"}));
    let by_tool = matches!(by, Some(ReplyMethod::Tool)) && !request.wants_tool();
    if let Some(schema) = request.schema.as_ref().filter(|_| by_tool) {
        tool_choice = Some(match tools.is_empty() {
            true => json!({"type": "tool", "name": REPLY_TOOL, "disable_parallel_tool_use": true}),
            false => json!({"type": "any"}),
        });
        let reply = ToolSpec { name: REPLY_TOOL, description: "Gives the final reply.", input_schema: schema };
        tools.push(unmarked(reply));
    }
    let system = instructed.as_deref().or(request.system.as_deref()).filter(|system| !system.is_empty());
    let mut turns = turns(context, &request.messages);
    let start = mark(context, request, system.map_or(0, str::len), &mut turns);
    let system = system.map(|text| match start {
        true => System::Marked([Marked { block: Block::Text { text }, cache_control: Some(MARK) }]),
        false => System::Plain(text),
    });
    if let Some(last) = tools.last_mut().filter(|_| start && system.is_none()) {
        last.cache_control = Some(MARK);
    }
    let step = effort::thinking(context, request);
    // A model that is told to think takes no other temperature meanwhile.
    let begins_to_think = step.word.is_some() && step.members.is_some();
    let mut options = profile.options(request);
    for (name, value) in step.members.into_iter().flatten() {
        options.entry(name).or_insert(value);
    }
    let thinking = shown_thinking(context, request, options.get("thinking").copied());
    if thinking.is_some() {
        options.remove("thinking");
    }
    let mut output_config = Map::new();
    if let Some(ReplyMethod::Format(schema)) = by {
        output_config.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
    }
    if let Some(word) = step.word {
        output_config.insert("effort".to_owned(), word.into());
    }
    let body = Body {
        model,
        max_tokens: catalogue::within_output(
            context.provider,
            model,
            profile.within_largest(request.max_tokens.unwrap_or(MAX_TOKENS + profile.thinks)),
        ),
        stream: true,
        system,
        messages: turns,
        tools,
        tool_choice,
        output_config,
        thinking,
        temperature: request
            .temperature
            .filter(|_| !profile.refuses(RequestPart::Temperature) && !begins_to_think)
            .map(|temperature| temperature.min(1.0)),
        top_p: request.top_p.filter(|_| profile.takes_top_p() && !begins_to_think),
        stop_sequences: &request.stop,
        options,
    };
    serde_json::to_vec(&body).expect("plain data with text keys is always JSON")
}

fn unmarked<B>(block: B) -> Marked<B> {
    Marked { block, cache_control: None }
}

/// Marks the ends of turns, and returns whether the start of the request is to be marked, too.
fn mark(context: CallContext<'_>, request: &ChatRequest, system: usize, turns: &mut [Turn<'_>]) -> bool {
    let sizes: Vec<(bool, usize)> = turns.iter().map(|turn| (turn.role == "assistant", turn.size)).collect();
    let places = cache::places(context.marks, context.model, cache::tools_size(request) + system, &sizes);
    for index in places.turns {
        let last = turns.get_mut(index).and_then(|turn| turn.content.last_mut());
        if let Some(ContentPart::Block(block)) = last {
            block.cache_control = Some(MARK);
        }
    }
    places.start
}

/// Returns the setting that makes a model show what it thinks, beside those by which it thinks. Models that think without being
/// asked have adaptive thinking, and leave its text out otherwise. Others show theirs, and this setting would make them think.
fn shown_thinking(context: CallContext<'_>, request: &ChatRequest, members: Option<&Value>) -> Option<Value> {
    let thinks = context.profile.thinks > 0 && request.effort != Some(Effort::None);
    let is_set = request.provider_options.contains_key("thinking");
    let shown = context.wants_thoughts && thinks && !is_set;
    match members {
        Some(Value::Object(members)) if shown => {
            let mut members = members.clone();
            members.entry("display").or_insert_with(|| "summarized".into());
            Some(Value::Object(members))
        }
        members => members.cloned().or_else(|| shown.then(|| json!({"type": "adaptive", "display": "summarized"}))),
    }
}

/// Turns messages into turns. Consecutive messages of one role become one turn, because the API wants the
/// results of all tool calls of a turn in the very next turn.
fn turns<'a>(context: CallContext<'_>, messages: &'a [Message]) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::with_capacity(messages.len());
    for message in messages {
        let role = match message.role {
            Role::User | Role::Tool => "user",
            Role::Assistant => "assistant",
        };
        let (blocks, size) = (pieces(context, message), cache::size(message));
        match turns.last_mut() {
            Some(last) if last.role == role => {
                last.content.extend(blocks);
                last.size += size;
            }
            _ if blocks.is_empty() => {}
            _ => turns.push(Turn { role, content: blocks, size }),
        }
    }
    turns
}

/// Returns the blocks of a message, with its thinking blocks at their places.
fn pieces<'a>(context: CallContext<'_>, message: &'a Message) -> Vec<ContentPart<'a>> {
    let thoughts: Vec<Thought> = state::of(context, message).unwrap_or_default();
    let mut thoughts = thoughts.into_iter().peekable();
    let mut pieces = Vec::new();
    for (index, block) in blocks(message).into_iter().enumerate() {
        while let Some(thought) = thoughts.next_if(|thought| thought.at <= index) {
            pieces.push(ContentPart::Thought(thought.block));
        }
        pieces.push(ContentPart::Block(unmarked(block)));
    }
    // Thinking blocks after the last block are dropped: a turn must not end with one.
    pieces
}

fn blocks(message: &Message) -> Vec<Block<'_>> {
    if let (Role::Tool, Some(id)) = (message.role, &message.tool_call_id) {
        return vec![Block::ToolResult { tool_use_id: id, content: &message.content }];
    }
    // The API refuses empty texts.
    let text = (!message.content.is_empty()).then_some(Block::Text { text: &message.content });
    let calls = message.tool_calls.iter().map(|call| Block::ToolUse {
        id: &call.id,
        name: &call.name,
        // Arguments that are not an object are the model's mistake, and the model must still see them.
        input: match serde_json::from_str(&call.arguments) {
            Ok(Value::Object(members)) => Value::Object(members),
            _ => json!({"invalid_arguments": call.arguments}),
        },
    });
    // What is asked about the files stands behind them, as the API's documentation advises.
    let files = message.attachments.iter().map(|attachment| Block::File(parts::block(attachment)));
    files.chain(text).chain(calls).collect()
}
