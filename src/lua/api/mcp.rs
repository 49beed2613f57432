//! `@nietz/mcp`: tools of MCP servers. The list of a server's tools is one effect, and each call is one; `mcp.luau` keeps the
//! lists, so that a call says what its tool was when the flow saw it.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::Result;
use crate::lua::api::ModuleBuilder;
use crate::lua::api::args::{Args, invalid};
use crate::lua::convert;
use crate::lua::request::Request;
use crate::lua::vm::Vm;
use crate::model::effect::Effect;
use crate::model::effect::mcp::{McpOp, ToolCall};

/// The longest that a flow may wait for a call, in seconds: a day.
const MOST_SECONDS: f64 = 86_400.0;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    let native = ModuleBuilder::new(vm)?.effect("tools", tools)?.effect("call", call)?.build();
    Ok(ModuleBuilder::new(vm)?.luau(include_str!("mcp.luau"), native)?.build())
}

fn tools(lua: &Lua, values: MultiValue) -> Result<Request> {
    let server = Args::new(lua, "mcp.tools", values).text(0)?;
    Ok(Request::Effect(Box::new(Effect::Mcp(McpOp::Tools { server })), convert::to_lua))
}

/// What `mcp.luau` knows of a tool, and the flow says of a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallOptions {
    definition: String,
    repeatable: bool,
    seconds: Option<f64>,
}

fn call(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "mcp.call", values);
    let arguments = match args.json(2, "arguments")? {
        Value::Object(arguments) => arguments,
        Value::Null => Map::new(),
        // A table of Lua without entries may be either.
        Value::Array(items) if items.is_empty() => Map::new(),
        _ => return Err(invalid("mcp.call: arguments are given by name: { query = … }")),
    };
    let CallOptions { definition, repeatable, seconds } = args.data(3, "options")?;
    if seconds.is_some_and(|seconds| !(seconds > 0.0 && seconds <= MOST_SECONDS)) {
        return Err(invalid(format!("mcp.call: seconds must be above 0 and at most {MOST_SECONDS}")));
    }
    let call = ToolCall { server: args.text(0)?, tool: args.text(1)?, arguments, definition, repeatable, seconds };
    Ok(Request::Effect(Box::new(Effect::Mcp(McpOp::CallTool(call))), convert::to_lua))
}
