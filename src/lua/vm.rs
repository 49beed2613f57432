//! Builds the Luau VM: sandboxed, with the unsafe functions of the stock library removed or replaced.

use std::rc::Rc;

use mlua::chunk::{ChunkMode, Compiler};
use mlua::{Function, IntoLuaMulti, Lua, LuaOptions, MultiValue, StdLib, Table, Value as LuaValue, VmState};

use crate::error::{Code, Failure, Place, Result};
use crate::lua::limits::{FlowLimits, Watchdog};
use crate::lua::request::Request;
use crate::lua::{convert, error_values, strings, vm_errors};

/// The longest source that is compiled, in bytes: compiling cannot be interrupted, and its memory is not counted.
const LONGEST_SOURCE: usize = 256 * 1024;

/// A sandboxed VM with its watchdog.
pub struct Vm {
    pub lua: Lua,
    pub bridge: Rc<Bridge>,
    pub watchdog: Watchdog,
    pub limits: std::cell::Cell<FlowLimits>,
}

/// The functions of `bridge.luau` that the host builds modules with.
pub struct Bridge {
    pub effect: Function,
    pub pure: Function,
    pub located: Function,
    pub require: Function,
    pub load: Function,
    pub raise: Function,
    pub guard: Function,
    pub lazy: Function,
}

/// Returns what the bridge expects of a host function: true and the results, or false and an error value.
pub fn answer(lua: &Lua, result: Result<MultiValue>) -> mlua::Result<MultiValue> {
    match result {
        Ok(mut values) => {
            values.push_front(LuaValue::Boolean(true));
            Ok(values)
        }
        Err(failure) => (false, error_values::to_lua(lua, &failure)?).into_lua_multi(lua),
    }
}

/// A request as a flow's coroutine yields it. Flows can neither make nor inspect one.
pub struct YieldedRequest(pub std::cell::RefCell<Option<Request>>);

impl mlua::UserData for YieldedRequest {}

impl Vm {
    /// Returns a new VM. Its globals become read-only with [`Vm::close`], once the modules are installed.
    ///
    /// # Errors
    ///
    /// `flow-memory` if the limits leave too little memory for the VM itself.
    pub fn new(limits: FlowLimits) -> Result<Vm> {
        build(limits).map_err(|error| vm_errors::from_error(&error))
    }

    /// Closes the sandbox: from here on, no global can be changed.
    pub fn close(&self) -> Result<()> {
        self.lua.sandbox(true).map_err(|error| vm_errors::from_error(&error))?;
        // The sandbox would let flows write to a table in front of the globals. A forgotten `local` is a mistake,
        // so it raises an error.
        self.lua.globals().set_readonly(true);
        Ok(())
    }

    /// Compiles an author's file. Only source text is accepted: bytecode could do anything.
    ///
    /// # Errors
    ///
    /// `flow-invalid` if the source is too long or has a syntax error.
    pub fn compile(&self, name: &str, source: &str) -> Result<Function> {
        if source.len() > LONGEST_SOURCE {
            let message = format!("{name} is longer than {LONGEST_SOURCE} bytes, which is more than a person reads");
            return Err(Failure::new(Code::FlowInvalid, message).hint("move data into a YAML or JSON file"));
        }
        self.lua
            .load(source)
            .set_name(format!("={name}"))
            .set_mode(ChunkMode::Text)
            .into_function()
            .map_err(|error| syntax(&error))
    }

    /// Runs Lua code that waits for nothing, within the full time limit.
    ///
    /// # Errors
    ///
    /// `flow-limit` if the code computes too long.
    pub fn slice<R>(&self, run: impl FnOnce() -> R) -> Result<R> {
        self.restart_clock();
        let result = self.step(run);
        self.watchdog.disarm();
        result
    }

    /// Gives Lua the full time limit again, after it has waited for an effect.
    pub fn restart_clock(&self) {
        self.watchdog.arm(self.limits.get().seconds);
    }

    /// Runs Lua code within the time that is left since [`Vm::restart_clock`]. Effects that do not wait, and branches
    /// that take turns, share this time: otherwise a flow could run for ever by asking for the time again and again.
    ///
    /// # Errors
    ///
    /// `flow-limit` if no time is left.
    pub fn step<R>(&self, run: impl FnOnce() -> R) -> Result<R> {
        let result = run();
        if self.watchdog.expired() {
            return Err(error_values::time_limit_failure(self.limits.get().seconds));
        }
        Ok(result)
    }

    /// Gives Lua room for texts of this length beside its limit.
    ///
    /// # Errors
    ///
    /// `internal` if Lua has no limit that can be set.
    pub fn make_room(&self, length: usize) -> Result<()> {
        let limit = bytes(self.limits.get()).saturating_add(length);
        self.lua.set_memory_limit(limit).map(|_| ()).map_err(|error| vm_errors::from_error(&error))
    }

    /// Sets the limits that the manifest asks for.
    pub fn limit(&self, limits: FlowLimits) -> Result<()> {
        self.limits.set(limits);
        self.lua.set_memory_limit(bytes(limits)).map(|_| ()).map_err(|error| vm_errors::from_error(&error))
    }
}

fn bytes(limits: FlowLimits) -> usize {
    usize::try_from(limits.megabytes).unwrap_or(64) * 1024 * 1024
}

/// Returns the failure for a syntax error, with the file and line taken from its message.
fn syntax(error: &mlua::Error) -> Failure {
    let failure = vm_errors::from_error(error);
    match error_values::split_place(&failure.message) {
        Some((at, message)) => {
            let (file, line) = at.rsplit_once(':').unwrap_or((at, ""));
            let place = Some(Box::new(Place::line(file, line.parse().ok())));
            Failure { place, ..Failure::new(Code::FlowInvalid, message.to_owned()) }
        }
        None => Failure::new(Code::FlowInvalid, failure.message),
    }
}

fn build(limits: FlowLimits) -> mlua::Result<Vm> {
    let libs = StdLib::TABLE
        | StdLib::STRING
        | StdLib::MATH
        | StdLib::BIT
        | StdLib::BUFFER
        | StdLib::UTF8
        | StdLib::COROUTINE
        | StdLib::OS
        | StdLib::DEBUG;
    let lua = Lua::new_with(libs, LuaOptions::new().catch_rust_panics(true))?;
    lua.set_compiler(Compiler::new().set_optimization_level(1).set_debug_level(1));
    lua.set_memory_limit(bytes(limits))?;
    let watchdog = Watchdog::start();
    let expired = watchdog.flag();
    lua.set_interrupt(
        move |_| {
            if expired() { Err(mlua::Error::runtime("out of time")) } else { Ok(VmState::Continue) }
        },
    );
    convert::prepare(&lua)?;
    error_values::prepare(&lua)?;
    // Nothing that is made here becomes garbage.
    lua.gc_stop();
    let bridge = Rc::new(harden(&lua)?);
    lua.gc_restart();
    Ok(Vm { lua, bridge, watchdog, limits: std::cell::Cell::new(limits) })
}

/// Removes the stock functions that flows must not have, and replaces those whose running time is not bounded.
fn harden(lua: &Lua) -> mlua::Result<Bridge> {
    let globals = lua.globals();
    let host = lua.create_table()?;
    host.raw_set(
        "is_request",
        lua.create_function(|_, value: LuaValue| {
            Ok(matches!(&value, LuaValue::UserData(data) if data.is::<YieldedRequest>()))
        })?,
    )?;
    host.raw_set("too_early", lua.create_function(|lua, ()| error_values::to_lua(lua, &too_early()))?)?;
    host.raw_set(
        "place",
        lua.create_function(|_, source: mlua::LuaString| Ok(error_values::is_author(&source.to_string_lossy())))?,
    )?;
    host.raw_set("discard", lua.create_function(discard)?)?;
    host.raw_set("cannot_wait", lua.create_function(|lua, ()| error_values::to_lua(lua, &cannot_wait()))?)?;
    host.raw_set("split", lua.create_function(strings::split)?)?;
    host.raw_set("find", lua.create_function(strings::find_plain)?)?;
    host.raw_set("longest_set", lua.create_function(strings::longest_set)?)?;
    let bridge: Table = lua
        .load(include_str!("bridge.luau"))
        .set_name(error_values::HOST_CHUNK)
        .set_mode(ChunkMode::Text)
        .call(host)?;

    for removed in [
        "loadstring",
        "getfenv",
        "setfenv",
        "newproxy",
        "collectgarbage",
        "gcinfo",
        "require",
        "print",
        "dofile",
        "loadfile",
        "load",
    ] {
        globals.raw_set(removed, LuaValue::Nil)?;
    }
    globals.raw_set("coroutine", bridge.raw_get::<Table>("coroutine")?)?;
    let table: Table = globals.raw_get("table")?;
    table.raw_set("sort", bridge.raw_get::<Function>("sort")?)?;
    table.raw_set("move", bridge.raw_get::<Function>("move")?)?;
    for removed in ["foreach", "foreachi", "getn"] {
        table.raw_set(removed, LuaValue::Nil)?;
    }
    let string: Table = globals.raw_get("string")?;
    for name in ["find", "match", "gmatch", "gsub", "split"] {
        string.raw_set(name, bridge.raw_get::<Function>(name)?)?;
    }
    let debug = lua.create_table()?;
    let stock: Table = globals.raw_get("debug")?;
    debug.raw_set("traceback", stock.raw_get::<Function>("traceback")?)?;
    globals.raw_set("debug", debug)?;
    globals.raw_set("_G", LuaValue::Nil)?;
    Ok(Bridge {
        effect: bridge.raw_get("effect")?,
        pure: bridge.raw_get("pure")?,
        located: bridge.raw_get("located")?,
        require: bridge.raw_get("require")?,
        load: bridge.raw_get("load")?,
        raise: bridge.raw_get("raise")?,
        guard: bridge.raw_get("guard")?,
        lazy: bridge.raw_get("lazy")?,
    })
}

/// Returns the failure for an effect at the top level of a file.
fn too_early() -> Failure {
    Failure::new(Code::FlowInvalid, "nothing may happen while a file is loaded: no model call, question or document")
        .hint("move this call into the flow's `run` function")
}

/// Returns the failure for an effect where Luau cannot yield.
fn cannot_wait() -> Failure {
    Failure::new(
        Code::FlowError,
        "nothing can be waited for here: inside of a comparator, a callback of gsub or a metamethod",
    )
    .hint("make the call before, and use its result here")
}

/// Drops a request that nobody will answer, because Lua's memory limit does not count the memory that it holds.
fn discard(_: &Lua, request: mlua::UserDataRef<YieldedRequest>) -> mlua::Result<()> {
    drop(request.0.take());
    Ok(())
}
