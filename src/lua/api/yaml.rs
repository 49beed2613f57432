//! `@nietz/yaml`: reading and writing YAML.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};

use crate::error::Result;
use crate::lua::api::args::Args;
use crate::lua::api::json::{decode_as, load_as};
use crate::lua::api::{ModuleBuilder, vm_error};
use crate::lua::vm::Vm;
use crate::model::collection::Format;
use crate::schema::text;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?.pure("encode", encode)?.pure("decode", decode)?.located("load", load)?.build())
}

fn encode(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let value = Args::new(lua, "yaml.encode", values).json(0, "value")?;
    lua.create_string(text::to_text(&value, Format::Yaml)).map(LuaValue::String).map_err(vm_error)
}

fn decode(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    decode_as(lua, &Args::new(lua, "yaml.decode", values), Format::Yaml)
}

fn load(lua: &Lua, from: &str, values: MultiValue) -> Result<LuaValue> {
    load_as(lua, from, &Args::new(lua, "yaml.load", values), Format::Yaml)
}
