//! `@nietz/task`: running tasks side by side, limits on them, and runs of other flows.

use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::{Failure, Result};
use crate::lua::api::args::{Args, invalid};
use crate::lua::api::{ModuleBuilder, is_written_for};
use crate::lua::convert;
use crate::lua::request::{Request, ScopeLimit, TaskName};
use crate::lua::vm::Vm;
use crate::model::effect::Effect;
use crate::model::effect::spawn::{Spawn, SpawnOptions};

/// The most tasks that one call may start.
const MOST: usize = 1000;
/// The member of a child's outcome with the failure that it ended with.
pub(in crate::lua) const CHILD_FAILURE: &str = "failure";

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?
        .effect("all", all)?
        .effect("settle", settle)?
        .effect("scope", scope)?
        .effect("limit", limit)?
        .effect("idle", idle)?
        .effect("stoppable", stoppable)?
        .effect("stop", stop)?
        .effect("spawn", spawn)?
        .build())
}

fn all(lua: &Lua, values: MultiValue) -> Result<Request> {
    Ok(Request::All { tasks: tasks(lua, &Args::new(lua, "task.all", values))?, settle: false })
}

fn settle(lua: &Lua, values: MultiValue) -> Result<Request> {
    Ok(Request::All { tasks: tasks(lua, &Args::new(lua, "task.settle", values))?, settle: true })
}

fn tasks(lua: &Lua, args: &Args<'_>) -> Result<Vec<(TaskName, Function)>> {
    let table = args.table(0)?;
    // In the first version of the host API, the results of a list had texts as keys, in no order.
    if is_written_for(lua, 2) && table.raw_len() > 0 {
        return items(&table);
    }
    let mut tasks = Vec::new();
    for pair in table.pairs::<String, Function>() {
        let (name, run) = pair.map_err(|_| invalid("tasks must be functions by name: { one = function() … end }"))?;
        check_name(&name)?;
        tasks.push((name, run));
        if tasks.len() > MOST {
            return Err(invalid(format!("more than {MOST} tasks at once")));
        }
    }
    tasks.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(tasks.into_iter().map(|(name, run)| (TaskName::Named(name), run)).collect())
}

/// Returns the functions of a list, in its order.
fn items(table: &Table) -> Result<Vec<(TaskName, Function)>> {
    let wrong = || invalid("tasks are either a list of functions, or functions by name: not both");
    let mut count = 0;
    for pair in table.pairs::<LuaValue, LuaValue>() {
        pair.map_err(|_| wrong())?;
        count += 1;
    }
    if count > MOST {
        return Err(invalid(format!("more than {MOST} tasks at once")));
    }
    let item = |index: i64| -> Result<(TaskName, Function)> {
        Ok((TaskName::Item(index), table.raw_get(index).map_err(|_| wrong())?))
    };
    let items = (1..).take(table.raw_len()).map(item).collect::<Result<Vec<_>>>()?;
    if items.len() == count { Ok(items) } else { Err(wrong()) }
}

fn scope(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "task.scope", values);
    let name = args.text(0)?;
    check_name(&name)?;
    Ok(Request::Scope { name, run: args.function(1)?, limit: None })
}

fn limit(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "task.limit", values);
    let limit = ScopeLimit::Whole(seconds(&args, "task.limit")?);
    Ok(Request::Scope { name: "limit".to_owned(), run: args.function(1)?, limit: Some(limit) })
}

fn idle(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "task.idle", values);
    let limit = ScopeLimit::Silence(seconds(&args, "task.idle")?);
    Ok(Request::Scope { name: "idle".to_owned(), run: args.function(1)?, limit: Some(limit) })
}

fn stoppable(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "task.stoppable", values);
    let name = args.text(0)?;
    check_name(&name)?;
    Ok(Request::Scope { name, run: args.function(1)?, limit: Some(ScopeLimit::Stoppable) })
}

fn stop(lua: &Lua, values: MultiValue) -> Result<Request> {
    let name = Args::new(lua, "task.stop", values).text(0)?;
    check_name(&name)?;
    Ok(Request::Stop(name))
}

fn spawn(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "task.spawn", values);
    let flow = args.text(0)?;
    if flow.trim().is_empty() {
        return Err(invalid("task.spawn: the flow's name is empty"));
    }
    let params = match args.json(1, "params")? {
        Value::Object(params) => params,
        Value::Null => Map::new(),
        Value::Array(items) if items.is_empty() => Map::new(),
        _ => return Err(invalid("task.spawn: params are given by name: { topic = … }")),
    };
    let options: SpawnOptions = match args.json(2, "options")? {
        Value::Null => SpawnOptions::default(),
        _ => args.data(2, "options")?,
    };
    if let Some(why) = options.budget.problem() {
        return Err(invalid(format!("task.spawn: {why}")));
    }
    Ok(Request::Effect(Box::new(Effect::Spawn(Spawn { flow, params, options })), ended))
}

/// Returns how a child ended, or raises what it failed with.
fn ended(lua: &Lua, outcome: &Value) -> mlua::Result<LuaValue> {
    if let Some(failure) = outcome.get(CHILD_FAILURE) {
        return Err(mlua::Error::external(Failure::deserialize(failure).map_err(mlua::Error::external)?));
    }
    let mut shown = json!({ "run": outcome["run"], "result": outcome["result"] });
    if let Some(verdict) = outcome.get("verdict") {
        shown["verdict"] = verdict.clone();
    }
    convert::to_lua(lua, &shown)
}

fn seconds(args: &Args<'_>, function: &str) -> Result<f64> {
    let seconds = args.number(0)?;
    match (0.0..=1e9).contains(&seconds) {
        true => Ok(seconds),
        false => Err(invalid(format!("{function}: seconds must be a number from 0 up"))),
    }
}

/// Checks the name of a task. It becomes a part of a scope, which is a path.
fn check_name(name: &str) -> Result<()> {
    let is_valid =
        !name.is_empty() && name.len() <= 200 && !name.contains(['/', '#']) && !name.chars().any(char::is_control);
    if is_valid { Ok(()) } else { Err(invalid("a task's name is a text of 1 to 200 bytes without `/` and `#`")) }
}
