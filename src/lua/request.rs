//! What flow code asks of the scheduler.

use mlua::{Function, Value as LuaValue};
use serde_json::Value;

use crate::model::effect::Effect;
use crate::model::event::RunVerdict;

/// What a function of the API yields.
pub enum Request {
    /// An effect, and how its outcome becomes Lua values.
    Effect(Box<Effect>, OutcomeToLua),
    /// Tasks by name; with `settle`, failures are results too.
    All { tasks: Vec<(TaskName, Function)>, settle: bool },
    /// What the flow decides. It goes on at once.
    Verdict(RunVerdict),
    /// The last so many model calls of the task brought no reply that can be used, and why. The flow goes on at once.
    Unusable { calls: usize, why: String },
    /// Stops the stoppable scopes of a name. The flow goes on at once.
    Stop(String),
    /// A named scope, with a limit or without.
    Scope { name: String, run: Function, limit: Option<ScopeLimit> },
}

/// What a task is called.
pub enum TaskName {
    Named(String),
    /// An item of a list, from 1.
    Item(i64),
}

impl std::fmt::Display for TaskName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TaskName::Named(name) => f.write_str(name),
            TaskName::Item(index) => write!(f, "{index}"),
        }
    }
}

/// What ends the effects of a scope before they are over.
#[derive(Clone, Copy, Debug)]
pub enum ScopeLimit {
    /// All of them together took this many seconds.
    Whole(f64),
    /// One of them gave no sign of life for this many seconds.
    Silence(f64),
    /// The flow stops the scope by its name.
    Stoppable,
}

/// Makes the Lua value of an outcome.
pub(crate) type OutcomeToLua = fn(&mlua::Lua, &Value) -> mlua::Result<LuaValue>;

/// Returns nil, for requests without a result.
pub(crate) fn outcome_to_nil(_: &mlua::Lua, _: &Value) -> mlua::Result<LuaValue> {
    Ok(LuaValue::Nil)
}
