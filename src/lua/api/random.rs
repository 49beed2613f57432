//! `@nietz/random`: recorded random numbers. This module also implements `math.random`.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde_json::Value;

use crate::error::Result;
use crate::lua::api::{ModuleBuilder, lazy};
use crate::lua::request::Request;
use crate::lua::vm::Vm;
use crate::model::effect::Effect;
use crate::model::effect::time::TimeOp;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    let all = all(vm)?;
    all.set_readonly(false);
    all.raw_set("stock", LuaValue::Nil)?;
    all.set_readonly(true);
    Ok(all)
}

/// Builds the module, together with the stock function that uses it.
fn all(vm: &Rc<Vm>) -> mlua::Result<Table> {
    let native = ModuleBuilder::new(vm)?.effect("number", number)?.effect("uuid", uuid)?.build();
    Ok(ModuleBuilder::new(vm)?.luau(include_str!("random.luau"), native)?.build())
}

/// Replaces `math.random` with recorded random numbers.
pub(super) fn replace(vm: &Rc<Vm>) -> mlua::Result<()> {
    let math: Table = vm.lua.globals().raw_get("math")?;
    math.raw_set("random", lazy(vm, all, "stock")?)?;
    math.raw_set("randomseed", LuaValue::Nil)
}

fn number(_: &Lua, _: MultiValue) -> Result<Request> {
    Ok(Request::Effect(Box::new(Effect::Time(TimeOp::Random)), |_, value| {
        // The upper 53 bits: what a double holds exactly.
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
        let number = (bits(value) >> 75) as u64 as f64 / (1_u64 << 53) as f64;
        Ok(LuaValue::Number(number))
    }))
}

fn uuid(_: &Lua, _: MultiValue) -> Result<Request> {
    Ok(Request::Effect(Box::new(Effect::Time(TimeOp::Random)), |lua, value| {
        let uuid = uuid::Builder::from_random_bytes(bits(value).to_be_bytes()).into_uuid();
        Ok(LuaValue::String(lua.create_string(uuid.to_string())?))
    }))
}

/// Returns the recorded 128 bits.
fn bits(value: &Value) -> u128 {
    u128::from_str_radix(value.as_str().unwrap_or_default(), 16).unwrap_or_default()
}
