//! `@nietz/llm`: model calls. One request is one effect; tools, validation and repair are steps in `llm.luau`.

use std::cell::RefCell;
use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Code, Failure, Result};
use crate::lua::api::args::{Args, data, invalid};
use crate::lua::api::{GivenAttachments, ModuleBuilder, context, json as json_module, personas, schema, ui, vm_error};
use crate::lua::convert;
use crate::lua::request::Request;
use crate::lua::vm::Vm;
use crate::model::chat::{ChatRequest, Effort, HashedMessage, Message, Tool, ToolChoice, is_own_member};
use crate::model::choice::ModelChoice;
use crate::model::collection::Format;
use crate::model::effect::Effect;
use crate::model::effect::chat::{CallDisplay, Chat};
use crate::model::effect::files::FileOp;
use crate::model::question::Question;
use crate::model::text::excerpt;
use crate::schema::{Formats, Schema, source};

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    let native = ModuleBuilder::new(vm)?
        .effect("call", call)?
        .effect("unusable", unusable)?
        .effect("approve", approve)?
        .effect("attach", attach)?
        .pure("given", given)?
        .pure("learn", intern)?
        .pure("tidy", evict)?
        .pure("keep", keep)?
        .pure("unknown", unknown)?
        .pure("decode", decode)?
        .pure("render", personas::render)?
        .pure("check", schema::check)?
        .pure("encode", json_module::encode)?
        .pure("window", window)?
        .build();
    vm.lua.set_app_data(MessageCache::default());
    Ok(ModuleBuilder::new(vm)?
        .luau(include_str!("llm.luau"), native)?
        .pure("count", count)?
        .pure("model", model)?
        .pure("window", window)?
        .build())
}

/// The messages that `llm.luau` has numbered. A debate sends its whole history with each call; the cache converts each
/// message to JSON, searches it for secrets and digests it only once. It evicts messages that the flow has dropped.
#[derive(Default)]
struct MessageCache(RefCell<CachedMessages>);

#[derive(Default)]
struct CachedMessages {
    /// By number.
    all: Vec<Option<Rc<HashedMessage>>>,
    count: usize,
    /// Bytes of text in all messages.
    text: usize,
    /// Bytes of text in those that were added since `llm.luau` last told which messages the flow still has.
    since: usize,
}

/// The most messages, and the most bytes of their text, that are kept from one call to the next.
const KEPT: (usize, usize) = (20_000, 2 * convert::TEXT);
/// The most messages of one call.
const MOST: usize = 50_000;
/// After this many bytes of new text, `llm.luau` is to tell which messages the flow still has.
const LOOK: usize = 1 << 20;

impl CachedMessages {
    fn holds_more_than(&self, messages: usize, text: usize) -> bool {
        self.count > messages || self.text > text
    }
}

fn message_cache(lua: &Lua) -> Result<mlua::AppDataRef<'_, MessageCache>> {
    lua.app_data_ref().ok_or_else(|| Failure::new(Code::Internal, "the machine has no messages"))
}

/// Adds a message to the cache and returns its number; the second argument is its index in the list.
fn intern(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "llm.chat", values);
    let at = args.number(1)?;
    let message: Message = args.data(0, &format!("messages[{at}]"))?;
    if let Some(problem) = message.problem() {
        return Err(invalid(format!("llm.chat: messages[{at}]: {problem}")));
    }
    let cache = message_cache(lua)?;
    let mut messages = cache.0.borrow_mut();
    if messages.holds_more_than(KEPT.0 + MOST, KEPT.1 + convert::TEXT) {
        return Err(too_long());
    }
    messages.count += 1;
    messages.text += message.size();
    messages.since += message.size();
    messages.all.push(Some(Rc::new(HashedMessage::new(message))));
    #[allow(clippy::cast_precision_loss)]
    Ok(LuaValue::Number((messages.all.len() - 1) as f64))
}

/// Returns `all` if the cache has grown too large, and empties it; returns `some` if `llm.luau` is to tell which
/// messages the flow still has.
fn evict(lua: &Lua, _: MultiValue) -> Result<LuaValue> {
    let cache = message_cache(lua)?;
    let mut messages = cache.0.borrow_mut();
    if messages.holds_more_than(KEPT.0, KEPT.1) {
        *messages = CachedMessages::default();
        return Ok(LuaValue::String(
            lua.create_string("all").map_err(|error| crate::lua::vm_errors::from_error(&error))?,
        ));
    }
    if messages.since > LOOK {
        return Ok(LuaValue::String(
            lua.create_string("some").map_err(|error| crate::lua::vm_errors::from_error(&error))?,
        ));
    }
    Ok(LuaValue::Nil)
}

/// Keeps the messages with these numbers, and forgets all others.
fn keep(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let Some(LuaValue::Buffer(numbers)) = values.into_iter().next() else { return Ok(LuaValue::Nil) };
    let cache = message_cache(lua)?;
    let mut messages = cache.0.borrow_mut();
    let mut kept = CachedMessages { all: vec![None; messages.all.len()], ..CachedMessages::default() };
    for number in numbers.to_vec().chunks(4).filter_map(number) {
        if let Some(hashed) = messages.all.get_mut(number).and_then(Option::take) {
            kept.count += 1;
            kept.text += hashed.message.size();
            kept.all[number] = Some(hashed);
        }
    }
    *messages = kept;
    Ok(LuaValue::Nil)
}

/// Reads a little-endian integer of 32 bits.
fn number(bytes: &[u8]) -> Option<usize> {
    Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
}

fn too_long() -> Failure {
    invalid(format!(
        "llm.chat: messages has more than {MOST} items or more than {} MB of text",
        convert::TEXT / 1024 / 1024
    ))
}

/// Returns the messages with these numbers, which are little-endian integers of 32 bits.
fn conversation(lua: &Lua, numbers: &LuaValue) -> Result<Vec<Rc<HashedMessage>>> {
    let LuaValue::Buffer(numbers) = numbers else { return Err(invalid("llm.chat: messages must be a list")) };
    let numbers = numbers.to_vec();
    let cache = message_cache(lua)?;
    let messages = cache.0.borrow();
    let conversation: Option<Vec<Rc<HashedMessage>>> =
        numbers.chunks(4).map(|bytes| messages.all.get(number(bytes)?).cloned().flatten()).collect();
    let conversation = conversation.ok_or_else(|| Failure::new(Code::Internal, "a message was forgotten too early"))?;
    let text: usize = conversation.iter().map(|hashed| hashed.message.size()).sum();
    if conversation.len() > MOST || text > convert::TEXT {
        return Err(too_long());
    }
    Ok(conversation)
}

/// The options of one request, as `llm.luau` builds them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChatOptions {
    model: Option<String>,
    system: Option<String>,
    schema: Option<Value>,
    #[serde(default)]
    tools: Vec<Tool>,
    tool_choice: Option<ToolChoice>,
    effort: Option<Effort>,
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    #[serde(default)]
    stop: Vec<String>,
    /// By provider; a table without members is a list to Lua.
    #[serde(default)]
    provider_options: Value,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    label: String,
}

fn call(lua: &Lua, values: MultiValue) -> Result<Request> {
    let conversation = conversation(lua, values.get(1).unwrap_or(&LuaValue::Nil))?;
    let mut value = Args::new(lua, "llm.chat", values).json(0, "options")?;
    if let Value::Object(members) = &mut value
        && members.get("tools").is_some_and(|tools| tools.as_object().is_some_and(serde_json::Map::is_empty))
    {
        members.remove("tools");
    }
    if let Value::Object(members) = &mut value
        && members.get("stop").is_some_and(|stop| stop.as_object().is_some_and(serde_json::Map::is_empty))
    {
        members.remove("stop");
    }
    let call: ChatOptions = data(value, "llm.chat")?;
    call.tools.iter().try_for_each(check_parameters)?;
    if conversation.is_empty() {
        return Err(invalid("llm.chat: there is nothing to say: give a prompt or messages"));
    }
    let ModelChoice { model, effort } = (context(lua)?.resolve)(call.model.as_deref())?;
    let request = ChatRequest {
        provider_options: options_of(&model, &call.provider_options)?,
        model,
        system: call.system,
        messages: Vec::new(),
        schema: call.schema,
        tools: call.tools,
        tool_choice: call.tool_choice,
        max_tokens: call.max_tokens,
        temperature: call.temperature,
        top_p: call.top_p,
        stop: call.stop,
        seed: None,
        effort: call.effort.or(effort),
    };
    if let Some(problem) = request.problem() {
        return Err(invalid(format!("llm.chat: {problem}")));
    }
    let show = CallDisplay { label: call.label, stream: call.stream };
    Ok(Request::Effect(Box::new(Effect::Chat(Chat { request, conversation, show })), convert::to_lua))
}

/// Refuses a tool whose parameters are no schema, before the call that could use it.
fn check_parameters(tool: &Tool) -> Result<()> {
    match Schema::try_compile(&tool.parameters, Formats::Asserted) {
        Ok(_) => Ok(()),
        Err(wrong) => Err(invalid(format!("llm.chat: the parameters of the tool `{}`: {wrong}", excerpt(&tool.name)))),
    }
}

/// Returns the options for the provider of a model. All are checked, so that a mistake is told whatever the model is.
fn options_of(model: &str, all: &Value) -> Result<serde_json::Map<String, Value>> {
    let wrong = || {
        invalid("llm.chat: provider_options has a table for each provider: { openai = { reasoning_effort = \"low\" } }")
    };
    let by_provider = match all {
        Value::Null => return Ok(serde_json::Map::new()),
        Value::Array(items) if items.is_empty() => return Ok(serde_json::Map::new()),
        Value::Object(by_provider) => by_provider,
        _ => return Err(wrong()),
    };
    let provider = model.split('/').next().unwrap_or_default();
    let mut own = serde_json::Map::new();
    for (name, options) in by_provider {
        let options = match options {
            Value::Object(options) => options,
            Value::Array(items) if items.is_empty() => continue,
            _ => return Err(wrong()),
        };
        if let Some(member) = options.keys().find(|member| is_own_member(member)) {
            return Err(invalid(format!(
                "llm.chat: provider_options.{} cannot set `{}`: nietz sets that itself, or the call depends on it",
                excerpt(name),
                excerpt(member)
            )));
        }
        if name == provider {
            own.clone_from(options);
        }
    }
    Ok(own)
}

/// Asks the user whether the model may call a tool with these arguments.
fn approve(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "llm.chat", values);
    let (tool, arguments) = (args.text(0)?, args.json(1, "arguments")?);
    ui::question(Question::may_call(&tool, &arguments))
}

/// Says that the last so many calls brought no reply that can be used, and why.
fn unusable(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "llm.chat", values);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let calls = args.number(0)? as usize;
    Ok(Request::Unusable { calls, why: args.text(1)? })
}

/// Reads a file of the workspace that is to go with a message.
fn attach(lua: &Lua, values: MultiValue) -> Result<Request> {
    let path = Args::new(lua, "llm.chat", values).text(0)?;
    Ok(Request::Effect(Box::new(Effect::Files(FileOp::Attach { path })), convert::to_lua))
}

/// Returns the file of this name that the user attached to the run.
fn given(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let name = Args::new(lua, "llm.chat", values).text(0)?;
    let all = lua.app_data_ref::<GivenAttachments>();
    let found = all.iter().flat_map(|all| &all.0).find(|file| file["name"] == name.as_str());
    found.map_or(Ok(LuaValue::Nil), |file| convert::to_lua(lua, file).map_err(vm_error))
}

/// The longest reply that is parsed to a value, in bytes: the value takes many times as much memory.
const LONGEST_VALUE: usize = 1 << 20;
/// The fields of `llm.chat`'s options.
const FIELDS: &[&str] = &[
    "model",
    "persona",
    "vars",
    "system",
    "prompt",
    "messages",
    "attach",
    "schema",
    "check",
    "repairs",
    "tools",
    "tool_choice",
    "rejected",
    "on_reply",
    "left_out",
    "rounds",
    "stream",
    "label",
    "effort",
    "max_tokens",
    "temperature",
    "top_p",
    "stop",
    "provider_options",
];

/// Raises an error for a field that `llm.chat` does not know.
fn unknown(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let options = Args::new(lua, "llm.chat", values).table(0)?;
    for pair in options.pairs::<String, LuaValue>() {
        let (name, _) = pair.map_err(|_| invalid("llm.chat: options are given by name: { prompt = … }"))?;
        if !FIELDS.contains(&name.as_str()) {
            let failure = invalid(format!("llm.chat has no field `{}`", excerpt(&name)));
            return Err(match crate::error::nearest(&name, FIELDS.iter().copied()) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint(format!("known are {}", FIELDS.join(", "))),
            });
        }
    }
    Ok(LuaValue::Nil)
}

/// Returns the value of a structured reply, or what is wrong with its text.
fn decode(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let text = Args::new(lua, "llm.chat", values).text(0)?;
    let table = lua.create_table().map_err(vm_error)?;
    match value_of(&text) {
        Ok(value) => table.raw_set("value", convert::to_lua(lua, &value).map_err(vm_error)?),
        Err(UnusableReply { problem, large }) => {
            table.raw_set("problem", problem).and_then(|()| table.raw_set("large", large))
        }
    }
    .map_err(vm_error)?;
    Ok(LuaValue::Table(table))
}

/// Parses a reply, or returns what is wrong with it, in words for the model. A reply that is too long (it would mostly
/// repeat itself) or too large for a flow to check counts as wrong, too.
fn value_of(text: &str) -> std::result::Result<Value, UnusableReply> {
    let unusable = |problem: String, large| UnusableReply { problem, large };
    if text.len() > LONGEST_VALUE {
        return Err(unusable(format!("it is longer than {LONGEST_VALUE} bytes"), true));
    }
    let value = source::parse(text, Format::Json, "reply")
        .map_err(|failure| unusable(format!("it is not JSON: {}", failure.message), false))?;
    if convert::fits(&value) { Ok(value) } else { Err(unusable("it has too many parts".to_owned(), true)) }
}

/// Why a reply has no value that a flow can use.
struct UnusableReply {
    problem: String,
    /// Whether the reply is too large to be sent back to the model for repair.
    large: bool,
}

fn model(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let name = Args::new(lua, "llm.model", values).maybe_text(0)?;
    let full = (context(lua)?.resolve)(name.as_deref())?.model;
    lua.create_string(full).map(LuaValue::String).map_err(vm_error)
}

fn window(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let name = Args::new(lua, "llm.window", values).maybe_text(0)?;
    let context = context(lua)?;
    #[allow(clippy::cast_precision_loss)]
    let tokens = (context.window)(&(context.resolve)(name.as_deref())?.model).map(|tokens| tokens as f64);
    Ok(tokens.map_or(LuaValue::Nil, LuaValue::Number))
}

fn count(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let text = Args::new(lua, "llm.count", values).text(0)?;
    #[allow(clippy::cast_precision_loss)]
    Ok(LuaValue::Number(text.len().div_ceil(4) as f64))
}
