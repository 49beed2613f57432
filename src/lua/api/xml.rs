//! `@nietz/xml`.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Map, Value, json};

use crate::error::{Code, Failure, Result};
use crate::lua::api::args::Args;
use crate::lua::api::{Module, vm_error};
use crate::lua::convert;
use crate::lua::vm::Vm;
use crate::model::text::excerpt;

/// The longest text that is parsed: parsing is not interrupted.
const LONGEST: usize = 4 * 1024 * 1024;
/// The deepest nesting and the most elements that are made values.
const DEEPEST: usize = 100;
const NODES: u32 = 200_000;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(Module::new(vm)?.pure("decode", decode)?.build())
}

fn decode(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let text = Args::new(lua, "xml.decode", values).text(0)?;
    if text.len() > LONGEST {
        return Err(unreadable(format!("the text is longer than {} MB", LONGEST / 1024 / 1024)));
    }
    let options = ParsingOptions { allow_dtd: false, nodes_limit: NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&text, options).map_err(|error| {
        unreadable(format!("text:{}:{}: {}", error.pos().row, error.pos().col, excerpt(&error.to_string())))
    })?;
    convert::to_lua(lua, &element(document.root_element(), 1)?).map_err(vm_error)
}

fn element(node: Node<'_, '_>, depth: usize) -> Result<Value> {
    if depth > DEEPEST {
        return Err(unreadable(format!("the elements are nested more than {DEEPEST} deep")));
    }
    let attributes: Map<String, Value> =
        node.attributes().map(|attribute| (attribute.name().to_owned(), Value::from(attribute.value()))).collect();
    let mut children = Vec::new();
    for child in node.children() {
        if child.is_element() {
            children.push(element(child, depth + 1)?);
        } else if let (true, Some(text)) = (child.is_text(), child.text()) {
            children.push(Value::from(text));
        }
    }
    Ok(json!({ "name": node.tag_name().name(), "attributes": attributes, "children": children }))
}

fn unreadable(message: String) -> Failure {
    Failure::new(Code::DocumentUnreadable, format!("this is no XML that can be read: {message}"))
}
