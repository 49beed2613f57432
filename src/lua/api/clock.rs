//! `@nietz/clock`: recorded time. This module also implements `os.time`, `os.clock` and `os.date`.

use std::rc::Rc;

use chrono::{DateTime, NaiveDate, Utc};
use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde_json::Value;

use crate::error::Result;
use crate::lua::api::args::{Args, invalid};
use crate::lua::api::{ModuleBuilder, lazy, vm_error};
use crate::lua::request::Request;
use crate::lua::vm::Vm;
use crate::model::effect::Effect;
use crate::model::effect::time::TimeOp;

const ISO: &str = "%Y-%m-%dT%H:%M:%SZ";
/// The longest format, in bytes: a letter of it can become twenty.
const LONGEST: usize = 200;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?
        .effect("now", now)?
        .effect("unix", unix)?
        .pure("parse", parse)?
        .pure("format", format)?
        .build())
}

/// Replaces Luau's `os` with functions of recorded time.
pub(super) fn replace(vm: &Rc<Vm>) -> mlua::Result<()> {
    fn os(vm: &Rc<Vm>) -> mlua::Result<Table> {
        let native = ModuleBuilder::new(vm)?.effect("unix", unix)?.pure("date", date)?.pure("time", time)?.build();
        Ok(ModuleBuilder::new(vm)?.luau(include_str!("os.luau"), native)?.build())
    }
    let mut module = ModuleBuilder::new(vm)?;
    for name in ["time", "clock", "date", "difftime"] {
        module = module.value(name, LuaValue::Function(lazy(vm, os, name)?))?;
    }
    vm.lua.globals().raw_set("os", module.build())
}

fn now(_: &Lua, _: MultiValue) -> Result<Request> {
    Ok(Request::Effect(Box::new(Effect::Time(TimeOp::Clock)), |lua, value| {
        Ok(LuaValue::String(lua.create_string(iso(seconds(value), ISO).unwrap_or_default())?))
    }))
}

fn unix(_: &Lua, _: MultiValue) -> Result<Request> {
    Ok(Request::Effect(Box::new(Effect::Time(TimeOp::Clock)), |_, value| Ok(LuaValue::Number(seconds(value)))))
}

/// Returns the seconds of a recorded time, which is in milliseconds.
fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default() / 1000.0
}

fn parse(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let text = Args::new(lua, "clock.parse", values).text(0)?;
    #[allow(clippy::cast_precision_loss)]
    Ok(DateTime::parse_from_rfc3339(&text)
        .map_or(LuaValue::Nil, |time| LuaValue::Number(time.timestamp_millis() as f64 / 1000.0)))
}

fn format(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "clock.format", values);
    let pattern = args.maybe_text(1)?.unwrap_or_else(|| ISO.to_owned());
    let text =
        iso(args.number(0)?, &pattern).ok_or_else(|| invalid("clock.format: not a time, or not a strftime format"))?;
    lua.create_string(text).map(LuaValue::String).map_err(vm_error)
}

/// Returns a time in a strftime format.
fn iso(seconds: f64, pattern: &str) -> Option<String> {
    use std::fmt::Write;
    if pattern.len() > LONGEST {
        return None;
    }
    #[allow(clippy::cast_possible_truncation)]
    let time = DateTime::<Utc>::from_timestamp_millis((seconds * 1000.0).round() as i64)?;
    let mut out = String::new();
    write!(out, "{}", time.format(pattern)).ok()?;
    Some(out)
}

/// `os.date` of a given time.
fn date(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "os.date", values);
    let pattern = args.text(0)?;
    let text = iso(args.number(1)?, pattern.trim_start_matches('!'))
        .ok_or_else(|| invalid("os.date: not a time, or not a strftime format"))?;
    lua.create_string(text).map(LuaValue::String).map_err(vm_error)
}

/// `os.time` of a table with year, month, day and so on, in UTC.
fn time(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let table = Args::new(lua, "os.time", values).table(0)?;
    let invalid = || invalid("os.time: not a time");
    #[allow(clippy::cast_possible_truncation)]
    let field = |name: &str, default: f64| -> Result<i64> {
        let value = table.raw_get::<Option<f64>>(name).ok().flatten().unwrap_or(default);
        // No field needs more, and within this limit nothing below can overflow.
        if value.abs() <= 1e10 { Ok(value as i64) } else { Err(invalid()) }
    };
    let year = i32::try_from(field("year", 1970.0)?).map_err(|_| invalid())?;
    let day = NaiveDate::from_ymd_opt(year, 1, 1).ok_or_else(invalid)?;
    let months = u32::try_from(field("month", 1.0)? - 1).map_err(|_| invalid())?;
    let day = day.checked_add_months(chrono::Months::new(months)).ok_or_else(invalid)?;
    let seconds =
        (field("day", 1.0)? - 1) * 86400 + field("hour", 12.0)? * 3600 + field("min", 0.0)? * 60 + field("sec", 0.0)?;
    let start = day.and_hms_opt(0, 0, 0).map_or(0, |time| time.and_utc().timestamp());
    #[allow(clippy::cast_precision_loss)]
    Ok(LuaValue::Number((start + seconds) as f64))
}
