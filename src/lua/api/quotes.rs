//! `@nietz/quotes`: quotes with their sources.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde::Deserialize;

use crate::error::Result;
use crate::lua::api::args::Args;
use crate::lua::api::{ModuleBuilder, context, vm_error};
use crate::lua::convert;
use crate::lua::vm::Vm;
use crate::pack::quote::{self, Quote};

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?.pure("find", find)?.pure("render", render)?.build())
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuoteFilter {
    context: Option<String>,
    philosopher: Option<String>,
    lang: Option<String>,
    collection: Option<String>,
}

fn find(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let filter: Option<QuoteFilter> = Args::new(lua, "quotes.find", values).data(0, "filter")?;
    let filter = filter.unwrap_or_default();
    let fits = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
    let found: Vec<Quote> = quote::all(&context(lua)?.layers)?
        .into_iter()
        .filter(|quote| {
            fits(&filter.context, &quote.context)
                && fits(&filter.philosopher, &quote.philosopher)
                && fits(&filter.lang, &quote.lang)
                && fits(&filter.collection, &quote.collection)
        })
        .collect();
    let value = serde_json::to_value(found).unwrap_or_default();
    convert::to_lua(lua, &value).map_err(vm_error)
}

fn render(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let quote: Quote = Args::new(lua, "quotes.render", values).data(0, "quote")?;
    let text = quote.text.lines().map(|line| format!("> {line}\n")).collect::<String>();
    let markdown = format!("{text}> — {}, *{}*", quote.philosopher, quote.source);
    lua.create_string(markdown).map(LuaValue::String).map_err(vm_error)
}
