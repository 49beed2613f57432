//! `@nietz/xml`: reading XML.

use std::rc::Rc;
use std::time::Duration;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Map, Value, json};

use crate::cpu::{Overrun, run_within};
use crate::error::{Code, Failure, Result};
use crate::lua::api::args::Args;
use crate::lua::api::{ModuleBuilder, vm_error};
use crate::lua::convert;
use crate::lua::vm::Vm;
use crate::model::text::excerpt;

/// The longest text that is parsed, in bytes.
const LONGEST: usize = 4 * 1024 * 1024;
/// The deepest nesting of elements, and the most nodes of a text.
const DEEPEST: usize = 100;
const NODES: u32 = 200_000;
/// The most attributes of one element, and namespaces of one text: the parser compares each with all before it.
const ATTRIBUTES: usize = 1000;
const NAMESPACES: usize = 100;
/// Texts up to this length, in bytes, are parsed on the calling thread; parsing a longer one may compute this long.
const AT_ONCE: usize = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?.pure("decode", decode)?.build())
}

fn decode(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let text = Args::new(lua, "xml.decode", values).text(0)?;
    if text.len() > LONGEST {
        return Err(unreadable(format!("the text is longer than {} MB", LONGEST / 1024 / 1024)));
    }
    check_bounds(&text)?;
    let value = if text.len() <= AT_ONCE {
        parse(&text)?
    } else {
        let work = move || parse(&text);
        run_within(PATIENCE, work).map_err(|Overrun| unreadable("reading it takes too long".to_owned()))??
    };
    convert::to_lua(lua, &value).map_err(vm_error)
}

/// Refuses texts that would take the parser long, before it begins: parsing cannot be interrupted.
fn check_bounds(text: &str) -> Result<()> {
    let bytes = text.as_bytes();
    if memchr::memmem::find_iter(bytes, b"xmlns").count() > NAMESPACES {
        return Err(unreadable(format!("it names more than {NAMESPACES} namespaces")));
    }
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")];
        if let Some((_, end)) = skipped.iter().find(|(begin, _)| rest.starts_with(begin)) {
            // The parser refuses a part that does not end.
            let Some(end) = rest.find(end) else { return Ok(()) };
            rest = &rest[end..];
            continue;
        }
        let mut values = 0;
        while let Some(at) = rest.find(['>', '"', '\'']) {
            let sign = &rest[at..=at];
            rest = &rest[at + 1..];
            if sign == ">" {
                break;
            }
            values += 1;
            let Some(end) = rest.find(sign) else { return Ok(()) };
            rest = &rest[end + 1..];
        }
        if values > ATTRIBUTES {
            return Err(unreadable(format!("an element has more than {ATTRIBUTES} attributes")));
        }
    }
    Ok(())
}

fn parse(text: &str) -> Result<Value> {
    let options = ParsingOptions { allow_dtd: false, nodes_limit: NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        unreadable(format!("text:{}:{}: {}", error.pos().row, error.pos().col, excerpt(&error.to_string())))
    })?;
    element(document.root_element(), 1)
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
