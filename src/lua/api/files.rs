//! `@nietz/files`: reading files that are there before a run. Each read or search is one effect.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde_json::Value;

use crate::error::Result;
use crate::lua::api::ModuleBuilder;
use crate::lua::api::args::Args;
use crate::lua::convert;
use crate::lua::request::Request;
use crate::lua::vm::Vm;
use crate::model::effect::Effect;
use crate::model::effect::files::FileOp;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?.effect("read", read)?.effect("find", find)?.build())
}

fn read(lua: &Lua, values: MultiValue) -> Result<Request> {
    let path = Args::new(lua, "files.read", values).text(0)?;
    Ok(Request::Effect(Box::new(Effect::Files(FileOp::Read { path })), present))
}

/// Converts an outcome; null, for a file that does not exist, becomes nil.
fn present(lua: &Lua, value: &Value) -> mlua::Result<LuaValue> {
    if value.is_null() { Ok(LuaValue::Nil) } else { convert::to_lua(lua, value) }
}

fn find(lua: &Lua, values: MultiValue) -> Result<Request> {
    let glob = Args::new(lua, "files.find", values).text(0)?;
    Ok(Request::Effect(Box::new(Effect::Files(FileOp::Find { glob })), convert::to_lua))
}
