//! `@nietz/json`: reading and writing JSON.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde::Deserialize;

use crate::error::{Code, Failure, Result};
use crate::lua::api::args::Args;
use crate::lua::api::{ModuleBuilder, context, vm_error};
use crate::lua::convert;
use crate::lua::vm::Vm;
use crate::model::collection::Format;
use crate::model::text::excerpt;
use crate::pack::path::join;
use crate::schema::source;

/// The longest text that is parsed, in bytes: the value can take a hundred times as much memory, and parsing cannot be
/// interrupted.
const LONGEST: usize = 1024 * 1024;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?
        .value("null", LuaValue::NULL)?
        .pure("encode", encode)?
        .pure("decode", decode)?
        .pure("array", array)?
        .located("load", load)?
        .build())
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct EncodeOptions {
    #[serde(default)]
    pretty: bool,
}

pub(super) fn encode(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "json.encode", values);
    let options: Option<EncodeOptions> = args.data(1, "options")?;
    let value = args.json(0, "value")?;
    let text = if options.unwrap_or_default().pretty {
        serde_json::to_string_pretty(&value)
    } else {
        serde_json::to_string(&value)
    };
    let text = text.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
    lua.create_string(text).map(LuaValue::String).map_err(vm_error)
}

fn decode(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    decode_as(lua, &Args::new(lua, "json.decode", values), Format::Json)
}

/// Parses the first argument, for this module and for `@nietz/yaml`.
pub(super) fn decode_as(lua: &Lua, args: &Args<'_>, format: Format) -> Result<LuaValue> {
    let text = args.text(0)?;
    if text.len() > LONGEST {
        return Err(too_long("the text"));
    }
    convert::to_lua(lua, &source::parse(&text, format, "text")?).map_err(vm_error)
}

fn too_long(what: &str) -> Failure {
    Failure::new(Code::RequestInvalid, format!("{what} is longer than {LONGEST} bytes"))
        .hint("what grows belongs into documents: `@nietz/documents`")
}

fn array(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let table = Args::new(lua, "json.array", values).table(0)?;
    table.set_metatable(Some(convert::list_mark(lua).map_err(vm_error)?)).map_err(vm_error)?;
    Ok(LuaValue::Table(table))
}

fn load(lua: &Lua, from: &str, values: MultiValue) -> Result<LuaValue> {
    load_as(lua, from, &Args::new(lua, "json.load", values), Format::Json)
}

/// Reads a data file of the calling file's pack.
pub(super) fn load_as(lua: &Lua, from: &str, args: &Args<'_>, format: Format) -> Result<LuaValue> {
    let (path, text) = pack_file(lua, from, &args.text(0)?)?;
    let context = context(lua)?;
    if text.len() > LONGEST {
        return Err(too_long(&path));
    }
    convert::to_lua(lua, &source::parse(&text, format, &context.tree.display(&path))?).map_err(vm_error)
}

/// Returns the path in the pack and the text of a file that is named relative to the calling file.
pub(super) fn pack_file(lua: &Lua, from: &str, relative: &str) -> Result<(String, std::sync::Arc<str>)> {
    let shown = excerpt(relative);
    let path = join(from, relative).ok_or_else(|| {
        Failure::new(Code::PathRefused, format!("`{shown}` is not a path in this pack"))
            .hint("give it relative to the file that it stands in: `./rooms/data.yaml`")
    })?;
    match context(lua)?.tree.text(&path)? {
        Some(text) => Ok((path, text)),
        None => Err(Failure::new(Code::ModuleNotFound, format!("there is no file `{path}` in this pack"))),
    }
}
