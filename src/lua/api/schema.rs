//! `@nietz/schema`: JSON Schema for values that are not documents.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde_json::json;

use crate::error::Result;
use crate::lua::api::args::{Args, invalid};
use crate::lua::api::{ModuleBuilder, vm_error};
use crate::lua::convert;
use crate::lua::vm::Vm;
use crate::schema::check::{Schema, Violation};
use crate::schema::shape;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?.pure("check", check)?.build())
}

pub(super) fn check(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "schema.check", values);
    let definition = args.json(0, "definition")?;
    let mut value = args.json(1, "value")?;
    let schema = Schema::compile(&definition)?;
    if schema.is_too_much(&value) {
        return Err(invalid("schema.check: the value is too large to be checked by this schema"));
    }
    shape::shape(&mut value, &definition);
    violations_to_lua(lua, &schema.violations(&value))
}

/// Returns violations as a list of `{ pointer, message }`.
pub(super) fn violations_to_lua(lua: &Lua, violations: &[Violation]) -> Result<LuaValue> {
    let member = |violation: &Violation| json!({ "pointer": violation.pointer, "message": violation.message });
    let list = violations.iter().map(member).collect();
    convert::to_lua(lua, &serde_json::Value::Array(list)).map_err(vm_error)
}
