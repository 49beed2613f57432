//! `@nietz`: what a flow is made of.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};

use crate::error::{Code, Failure, Result};
use crate::lua::api::args::{Args, invalid};
use crate::lua::api::{ModuleBuilder, vm_error};
use crate::lua::convert;
use crate::lua::manifest::Manifest;
use crate::lua::request::Request;
use crate::lua::vm::Vm;
use crate::model::effect::Effect;
use crate::model::effect::notify::Notification;
use crate::model::event::RunVerdict;

/// Registry name of the metatable of flows.
const FLOW: &str = "nietz.flow";

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    let metatable = vm.lua.create_table()?;
    metatable.raw_set("__metatable", "flow")?;
    vm.lua.set_named_registry_value(FLOW, metatable)?;
    Ok(ModuleBuilder::new(vm)?
        .pure("flow", flow)?
        .pure("fail", fail)?
        .pure("usage", usage)?
        .effect("verdict", verdict)?
        .effect("notify", notify)?
        .build())
}

/// Returns whether a table came from `nietz.flow`.
pub(in crate::lua) fn is_flow(lua: &Lua, table: &Table) -> bool {
    let metatable = lua.named_registry_value::<Table>(FLOW).ok();
    metatable.is_some_and(|flow| table.metatable().is_some_and(|own| own.to_pointer() == flow.to_pointer()))
}

fn flow(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let table = Args::new(lua, "nietz.flow", values).table(0)?;
    Manifest::read(lua, &table)?;
    table.set_metatable(lua.named_registry_value(FLOW).map_err(vm_error)?).map_err(vm_error)?;
    table.set_readonly(true);
    Ok(LuaValue::Table(table))
}

fn fail(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    raise(Code::FlowError, &Args::new(lua, "nietz.fail", values))
}

fn usage(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    raise(Code::Usage, &Args::new(lua, "nietz.usage", values))
}

/// It is no effect: nothing happens, and a resumed run says the same again. As a request, it is refused where effects are:
/// while a file is loaded, and in migrations and rules.
fn verdict(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "nietz.verdict", values);
    Ok(Request::Verdict(RunVerdict { ok: args.boolean(0)?, why: args.maybe_text(1)? }))
}

fn notify(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "nietz.notify", values);
    let notification: Notification = args.data(0, "a notification")?;
    if notification.title.trim().is_empty() {
        return Err(invalid("nietz.notify: the title is empty"));
    }
    Ok(Request::Effect(Box::new(Effect::Notify(notification)), convert::to_lua))
}

fn raise(code: Code, args: &Args) -> Result<LuaValue> {
    let failure = Failure::new(code, args.text(0)?);
    Err(match args.maybe_text(1)? {
        Some(hint) => failure.hint(hint),
        None => failure,
    })
}
