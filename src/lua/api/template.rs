//! `@nietz/template`: prompt files.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};

use crate::error::{Code, Result};
use crate::lua::api::args::Args;
use crate::lua::api::json::pack_file;
use crate::lua::api::{ModuleBuilder, context, vm_error};
use crate::lua::vm::Vm;
use crate::template;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?.located("render", render)?.pure("text", text)?.build())
}

fn render(lua: &Lua, from: &str, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "template.render", values);
    let (path, source) = pack_file(lua, from, &args.text(0)?).map_err(|mut failure| {
        if failure.code == Code::ModuleNotFound {
            failure.code = Code::TemplateInvalid;
        }
        failure
    })?;
    let text = template::render(Some(&context(lua)?.tree), &path, &source, &args.json(1, "vars")?)?;
    lua.create_string(text).map(LuaValue::String).map_err(vm_error)
}

fn text(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "template.text", values);
    let text = template::render(None, "text", &args.text(0)?, &args.json(1, "vars")?)?;
    lua.create_string(text).map(LuaValue::String).map_err(vm_error)
}
