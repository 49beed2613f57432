//! `@nietz/personas`: who speaks.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde::Deserialize;
use serde_json::Value;

use crate::error::Result;
use crate::lua::api::args::{Args, invalid};
use crate::lua::api::{ModuleBuilder, context, vm_error};
use crate::lua::convert;
use crate::lua::vm::Vm;
use crate::pack::persona::Persona;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?
        .pure("find", find)?
        .pure("get", get)?
        .pure("list", list)?
        .pure("render", render)?
        .build())
}

fn to_lua(lua: &Lua, persona: &Persona) -> Result<LuaValue> {
    let mut value = persona.value();
    // What a persona does not have is nil, not null.
    if let Value::Object(members) = &mut value {
        members.retain(|_, member| !member.is_null());
    }
    convert::to_lua(lua, &value).map_err(vm_error)
}

fn find(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let slug = Args::new(lua, "personas.find", values).text(0)?;
    match context(lua)?.personas.find(&slug)? {
        Some(persona) => to_lua(lua, &persona),
        None => Ok(LuaValue::Nil),
    }
}

fn get(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let slug = Args::new(lua, "personas.get", values).text(0)?;
    to_lua(lua, &context(lua)?.personas.get(&slug)?)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PersonaFilter {
    tag: Option<String>,
}

fn list(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let filter: Option<PersonaFilter> = Args::new(lua, "personas.list", values).data(0, "filter")?;
    let tag = filter.unwrap_or_default().tag;
    let all = context(lua)?.personas.list()?;
    let matching = all.iter().filter(|persona| tag.as_ref().is_none_or(|tag| persona.tags.contains(tag)));
    let items = matching.map(|persona| to_lua(lua, persona)).collect::<Result<Vec<_>>>()?;
    lua.create_sequence_from(items).map(LuaValue::Table).map_err(vm_error)
}

pub(super) fn render(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "personas.render", values);
    let persona = args.json(0, "persona")?;
    let (Some(body), Some(slug)) = (persona["body"].as_str(), persona["slug"].as_str()) else {
        return Err(invalid("personas.render: argument 1 is not a persona"));
    };
    let vars = match args.json(1, "vars")? {
        Value::Null => Value::Object(serde_json::Map::new()),
        vars => vars,
    };
    let text = crate::template::render(None, &format!("personas/{slug}.md"), body, &vars)?;
    lua.create_string(text).map(LuaValue::String).map_err(vm_error)
}
