//! `@nietz/files`: reading files that are there before a run. Each read or search is one effect.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde_json::Value;

use crate::error::{Code, Failure, Result};
use crate::lua::api::ModuleBuilder;
use crate::lua::api::args::Args;
use crate::lua::convert;
use crate::lua::request::Request;
use crate::lua::vm::Vm;
use crate::model::effect::Effect;
use crate::model::effect::files::FileOp;
use crate::model::effect::search::SearchPart;

/// The highest number of a line that can be asked for.
const MOST: f64 = 1e12;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?
        .effect("read", read)?
        .effect("read_lines", read_lines)?
        .effect("find", find)?
        .effect("grep", grep)?
        .build())
}

fn read(lua: &Lua, values: MultiValue) -> Result<Request> {
    let path = Args::new(lua, "files.read", values).text(0)?;
    Ok(Request::Effect(Box::new(Effect::Files(FileOp::Read { path })), present))
}

fn read_lines(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "files.read_lines", values);
    let (path, from, count) = (args.text(0)?, args.number(1)?, args.number(2)?);
    let is_whole = |number: f64| number.fract() == 0.0 && number.abs() <= MOST;
    if !is_whole(from) || from == 0.0 || !is_whole(count) || count < 0.0 {
        return Err(Failure::new(
            Code::RequestInvalid,
            "files.read_lines: lines are counted from 1, or from -1 at the end",
        ));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let (from, count) = (from as i64, count as u64);
    Ok(Request::Effect(Box::new(Effect::Files(FileOp::ReadLines { path, from, count })), present))
}

/// Converts an outcome; null, for a file that does not exist, becomes nil.
fn present(lua: &Lua, value: &Value) -> mlua::Result<LuaValue> {
    if value.is_null() { Ok(LuaValue::Nil) } else { convert::to_lua(lua, value) }
}

fn find(lua: &Lua, values: MultiValue) -> Result<Request> {
    let glob = Args::new(lua, "files.find", values).text(0)?;
    Ok(Request::Effect(Box::new(Effect::Files(FileOp::Find { glob })), convert::to_lua))
}

fn grep(lua: &Lua, values: MultiValue) -> Result<Request> {
    let part = !matches!(values.get(2), None | Some(LuaValue::Nil));
    let args = Args::new(lua, "files.grep", values);
    let (pattern, glob) = (args.text(0)?, args.maybe_text(1)?);
    let part = if part { args.data(2, "part")? } else { SearchPart::default() };
    Ok(Request::Effect(Box::new(Effect::Files(FileOp::Grep { pattern, glob, part })), convert::to_lua))
}
