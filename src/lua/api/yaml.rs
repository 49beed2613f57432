//! `@nietz/yaml`: reading and writing YAML.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};

use crate::error::{Code, Failure, Result};
use crate::lua::api::args::Args;
use crate::lua::api::json::{decode_as, load_as};
use crate::lua::api::{ModuleBuilder, context, vm_error};
use crate::lua::convert;
use crate::lua::vm::Vm;
use crate::model::collection::Format;
use crate::pack::data::DataFile;
use crate::pack::data_folder::{DataFolder, FileRule};
use crate::schema::{report, text};

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?
        .pure("encode", encode)?
        .pure("decode", decode)?
        .located("load", load)?
        .located("load_all", load_all)?
        .build())
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

/// Reads all data files of a folder of the calling file's pack, with those that a project has beside them.
fn load_all(lua: &Lua, from: &str, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "yaml.load_all", values);
    let rule: Option<FileRule> = args.data(1, "options")?;
    let tree = &context(lua)?.tree;
    let folder = DataFolder::named(from, &args.text(0)?, &rule.unwrap_or_default())?;
    tree.note_folder(&folder);
    let files = folder.read(tree)?;
    if files.is_empty() {
        let message = format!("there is no YAML file in the folder `{}` of this pack", folder.path);
        return Err(Failure::new(Code::ModuleNotFound, message));
    }
    if let Some(wrong) = files.iter().find(|file| !file.violations.is_empty()) {
        return Err(report::failure(&wrong.file, &wrong.violations));
    }
    let items = files.iter().map(|file| to_lua(lua, file)).collect::<mlua::Result<Vec<_>>>();
    items.and_then(|items| lua.create_sequence_from(items)).map(LuaValue::Table).map_err(vm_error)
}

fn to_lua(lua: &Lua, file: &DataFile) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("name", file.name.as_str())?;
    table.raw_set("file", file.file.as_str())?;
    table.raw_set("value", convert::to_lua(lua, &file.value)?)?;
    table.raw_set("lacks", lua.create_sequence_from(file.lacks.iter().map(String::as_str))?)?;
    Ok(table)
}
