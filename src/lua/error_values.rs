//! Converts failures to Lua error values and back, and finds the author's line that raised an error.

use mlua::{Lua, Table, Value as LuaValue};

use crate::error::{Code, Failure, Place};
use crate::lua::convert;
use crate::lua::vm_errors::{from_error, memory_limit_failure};
use crate::model::text::{clean, excerpt};

/// Registry name of the metatable of error values.
const ERROR: &str = "nietz.error";
/// The name of chunks whose frames are the host's own.
pub(crate) const HOST_CHUNK: &str = "=[nietz]";
/// The message that Luau raises when the memory of a VM is used up.
const NO_MEMORY: &str = "not enough memory";
/// The most frames of a traceback that are shown.
const FRAMES: usize = 12;
/// The most bytes of a message, the most details, and the most bytes of one detail.
const MESSAGE: usize = 2000;
const DETAILS: usize = 50;
const DETAIL: usize = 500;

/// Makes the metatable of error values: `tostring(err)` is the message. Called once for each VM.
pub(crate) fn prepare(lua: &Lua) -> mlua::Result<()> {
    let metatable = lua.create_table()?;
    metatable.raw_set(
        "__tostring",
        lua.create_function(|_, error: Table| Ok(error.raw_get::<Option<String>>("message")?.unwrap_or_default()))?,
    )?;
    metatable.raw_set("__metatable", "error")?;
    metatable.set_readonly(true);
    lua.set_named_registry_value(ERROR, metatable)
}

/// Returns the error value of a failure: a table with `code`, `message`, `hint`, `details`.
pub(crate) fn to_lua(lua: &Lua, failure: &Failure) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("code", failure.code.name())?;
    table.raw_set("message", failure.message.as_str())?;
    table.raw_set("hint", failure.hint.as_deref())?;
    table.raw_set("details", failure.details.clone())?;
    if let Some((place, line)) = failure.place.as_ref().and_then(|place| Some((place, place.line?))) {
        table.raw_set("at", format!("{}:{line}", place.file))?;
    }
    table.set_metatable(Some(lua.named_registry_value(ERROR)?))?;
    Ok(table)
}

/// Returns the failure for a raised value: an error value of the host, or whatever the author raised.
///
/// `trace` is the traceback of the place where the value was raised.
pub(crate) fn from_lua(lua: &Lua, value: &LuaValue, trace: &str) -> Failure {
    let mut failure = match value {
        LuaValue::Table(table) => from_table(lua, table),
        LuaValue::String(text) => Failure::new(Code::FlowError, shortened(text, MESSAGE)),
        LuaValue::Error(error) => from_error(error),
        LuaValue::Nil => Failure::new(Code::FlowError, "the flow raised an error without a message"),
        other => Failure::new(Code::FlowError, format!("the flow raised a {} as an error", other.type_name())),
    };
    failure.message.truncate(floor(&failure.message, MESSAGE));
    // The VM raises this text itself, behind `file:line:` where it knows the place.
    if failure.code == Code::FlowError && failure.message.ends_with(NO_MEMORY) {
        failure = memory_limit_failure();
    }
    if failure.code == Code::Usage {
        // The failure is about the command line: the flow's line is of no use to the person who typed it.
        return failure;
    }
    let frames = frames(trace);
    let at = place(value, &mut failure, &frames);
    // The innermost frame is the place itself, unless the failure already has a place, such as that of a syntax error in
    // a module.
    let repeats_place = failure.place.is_none() && frames.first().is_some_and(|frame| Some(&frame.at) == at.as_ref());
    if failure.place.is_none()
        && let Some((file, line)) = at.as_deref().and_then(|at| at.rsplit_once(':'))
    {
        failure.place = Some(Box::new(Place::line(file, line.parse().ok())));
    }
    failure.details.extend(frames.iter().skip(usize::from(repeats_place)).take(FRAMES).map(Frame::called_from));
    failure
}

/// Returns the failure for a flow that ran too long without an effect.
pub(crate) fn time_limit_failure(seconds: f64) -> Failure {
    Failure::new(Code::FlowLimit, format!("the flow ran for {seconds} s without an effect"))
        .hint("look for an endless loop, or ask for more in the manifest: limits = { seconds = … }")
}

fn from_table(lua: &Lua, table: &Table) -> Failure {
    let text = |name: &str| match table.raw_get::<LuaValue>(name) {
        Ok(LuaValue::String(text)) => Some(shortened(&text, MESSAGE)),
        _ => None,
    };
    let Some(message) = text("message") else {
        let shown = convert::to_json(lua, &LuaValue::Table(table.clone()), "error").map(|value| value.to_string());
        let shown = shown.unwrap_or_else(|_| "a table".to_owned());
        return Failure::new(Code::FlowError, format!("the flow raised {}", excerpt(&shown)));
    };
    let mut failure =
        Failure::new(text("code").and_then(|code| Code::parse(&code)).unwrap_or(Code::FlowError), message);
    failure.hint = text("hint");
    if let Ok(Some(details)) = table.raw_get::<Option<Table>>("details") {
        let shown = (1..=DETAILS).map_while(|index| match details.raw_get::<LuaValue>(index) {
            Ok(LuaValue::String(detail)) => Some(shortened(&detail, DETAIL)),
            _ => None,
        });
        failure.details = shown.collect();
    }
    failure
}

/// Returns where the error was raised, as `file:line`, and removes this place from the start of the message.
fn place(value: &LuaValue, failure: &mut Failure, frames: &[Frame]) -> Option<String> {
    if let LuaValue::Table(table) = value
        && let Ok(LuaValue::String(at)) = table.raw_get::<LuaValue>("at")
        && let Some((at, "")) = split_place(&format!("{}: ", shortened(&at, DETAIL)))
    {
        return Some(at.to_owned());
    }
    if let Some((at, rest)) = split_place(&failure.message) {
        let (at, rest) = (at.to_owned(), rest.to_owned());
        failure.message = rest;
        return Some(at);
    }
    frames.first().map(|frame| frame.at.clone())
}

/// Splits `flows/x.lua:12: message`.
pub(crate) fn split_place(message: &str) -> Option<(&str, &str)> {
    let (at, rest) = message.split_once(": ")?;
    let (file, line) = at.rsplit_once(':')?;
    (line.parse::<u32>().is_ok() && is_author(file)).then_some((at, rest))
}

/// Returns whether a chunk's name is that of an author's file.
pub(crate) fn is_author(source: &str) -> bool {
    let source = source.trim_start_matches('=');
    source.ends_with(".lua") || source.ends_with(".luau")
}

/// A stack frame of the author's code.
struct Frame {
    /// `file:line`.
    at: String,
    function: Option<String>,
}

impl Frame {
    fn called_from(&self) -> String {
        match &self.function {
            Some(function) => format!("called from {}, in `{function}`", self.at),
            None => format!("called from {}", self.at),
        }
    }
}

/// Returns the author's frames of a traceback, whose lines are `file:line` or `file:line function name`.
fn frames(trace: &str) -> Vec<Frame> {
    let lines = trace.lines().map(str::trim);
    lines
        .filter(|line| line.split(':').next().is_some_and(is_author))
        .map(|line| {
            let (at, function) = line.split_once(" function ").map_or((line, None), |(at, name)| (at, Some(name)));
            Frame { at: clean(at), function: function.map(clean) }
        })
        .collect()
}

/// Returns the beginning of a flow's text, safe to show: a flow may raise an immense text.
fn shortened(text: &mlua::LuaString, limit: usize) -> String {
    let bytes = text.as_bytes();
    let mut shown = clean(&String::from_utf8_lossy(&bytes[..limit.min(bytes.len())]));
    if bytes.len() > limit {
        shown.push('…');
    }
    shown
}

fn floor(text: &str, limit: usize) -> usize {
    (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
