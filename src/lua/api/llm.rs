//! `@nietz/llm`: model calls. One request is one effect; tools, validation and repair are steps in `llm.luau`.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde::Deserialize;
use serde_json::Value;

use crate::error::Result;
use crate::lua::api::args::{Args, data, invalid};
use crate::lua::api::{Module, context, personas, schema, vm_error};
use crate::lua::convert;
use crate::lua::scheduler::Request;
use crate::lua::vm::Vm;
use crate::model::chat::{ChatRequest, Message, Tool};
use crate::model::collection::Format;
use crate::model::effect::{Effect, Show};
use crate::schema::source;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    let native = Module::new(vm)?.effect("call", call)?.pure("unknown", unknown)?.pure("decode", decode)?.build();
    native.set_readonly(false);
    let render = personas::module(vm)?.raw_get::<LuaValue>("render")?;
    native.raw_set("render", render)?;
    native.raw_set("check", schema::module(vm)?.raw_get::<LuaValue>("check")?)?;
    native.raw_set("encode", super::json::module(vm)?.raw_get::<LuaValue>("encode")?)?;
    Ok(Module::new(vm)?.luau(include_str!("llm.luau"), native)?.pure("count", count)?.build())
}

/// One request, as `llm.luau` puts it together.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    model: Option<String>,
    system: Option<String>,
    messages: Vec<Message>,
    schema: Option<Value>,
    #[serde(default)]
    tools: Vec<Tool>,
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    label: String,
}

fn call(lua: &Lua, values: MultiValue) -> Result<Request> {
    let mut value = Args::new(lua, "llm.chat", values).json(0, "options")?;
    if let Value::Object(members) = &mut value
        && members.get("tools").is_some_and(|tools| tools.as_object().is_some_and(serde_json::Map::is_empty))
    {
        members.remove("tools");
    }
    let call: Call = data(value, "llm.chat")?;
    if call.messages.is_empty() {
        return Err(invalid("llm.chat: there is nothing to say: give a prompt or messages"));
    }
    if call.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
        return Err(invalid("llm.chat: temperature goes from 0 to 2"));
    }
    let request = ChatRequest {
        model: (context(lua)?.resolve)(call.model.as_deref())?,
        system: call.system,
        messages: call.messages,
        schema: call.schema,
        tools: call.tools,
        max_tokens: call.max_tokens,
        temperature: call.temperature,
        seed: None,
    };
    let show = Show { label: call.label, stream: call.stream };
    Ok(Request::Effect(Box::new(Effect::Chat { request, show }), convert::to_lua))
}

/// The fields of `llm.chat`'s options.
const FIELDS: &[&str] = &[
    "model",
    "persona",
    "vars",
    "system",
    "prompt",
    "messages",
    "schema",
    "check",
    "repairs",
    "tools",
    "rounds",
    "stream",
    "label",
    "max_tokens",
    "temperature",
];

/// Raises an error for a field that `llm.chat` does not know.
fn unknown(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let options = Args::new(lua, "llm.chat", values).table(0)?;
    for pair in options.pairs::<String, LuaValue>() {
        let (name, _) = pair.map_err(|_| invalid("llm.chat: options are given by name: { prompt = … }"))?;
        if !FIELDS.contains(&name.as_str()) {
            let failure = invalid(format!("llm.chat has no field `{}`", crate::model::text::excerpt(&name)));
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
    match source::parse(&text, Format::Json, "reply") {
        Ok(value) => table.raw_set("value", convert::to_lua(lua, &value).map_err(vm_error)?),
        Err(failure) => table.raw_set("problem", format!("it is not JSON: {}", failure.message)),
    }
    .map_err(vm_error)?;
    Ok(LuaValue::Table(table))
}

fn count(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let text = Args::new(lua, "llm.count", values).text(0)?;
    #[allow(clippy::cast_precision_loss)]
    Ok(LuaValue::Number(text.len().div_ceil(4) as f64))
}
