//! `@nietz/task`: running tasks side by side, and limits on them.

use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table};

use crate::error::Result;
use crate::lua::api::ModuleBuilder;
use crate::lua::api::args::{Args, invalid};
use crate::lua::request::{Request, ScopeLimit};
use crate::lua::vm::Vm;

/// The most tasks that one call may start.
const MOST: usize = 1000;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?
        .effect("all", all)?
        .effect("settle", settle)?
        .effect("scope", scope)?
        .effect("limit", limit)?
        .effect("idle", idle)?
        .build())
}

fn all(lua: &Lua, values: MultiValue) -> Result<Request> {
    Ok(Request::All { tasks: tasks(&Args::new(lua, "task.all", values))?, settle: false })
}

fn settle(lua: &Lua, values: MultiValue) -> Result<Request> {
    Ok(Request::All { tasks: tasks(&Args::new(lua, "task.settle", values))?, settle: true })
}

fn tasks(args: &Args<'_>) -> Result<Vec<(String, Function)>> {
    let mut tasks = Vec::new();
    for pair in args.table(0)?.pairs::<String, Function>() {
        let (name, run) = pair.map_err(|_| invalid("tasks must be functions by name: { one = function() … end }"))?;
        check_name(&name)?;
        tasks.push((name, run));
        if tasks.len() > MOST {
            return Err(invalid(format!("more than {MOST} tasks at once")));
        }
    }
    tasks.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(tasks)
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
