//! Converts Lua values to JSON and back, within a budget: a small table that refers to another one many times must
//! not expand into gigabytes.

use mlua::{Lua, Table, Value as LuaValue};
use serde_json::{Map, Number, Value};

use crate::error::{Code, Failure, Result};
use crate::model::text::excerpt;

/// The most bytes of text that one conversion may copy. A text is copied a few times on its way to the journal.
pub(crate) const TEXT: usize = 4 * 1024 * 1024;
/// About how much memory, in bytes, the values of one conversion may take.
const MEMORY: usize = 16 * 1024 * 1024;
/// How many bytes each value takes, and on top of that the first member and each further member of an object.
const VALUE: usize = 40;
const OBJECT: usize = 320;
const MEMBER: usize = 80;
/// How deep values may be nested.
const DEPTH: usize = 128;
/// Registry name of the metatable that marks a table as a list.
const LIST: &str = "nietz.list";

/// What is left of a conversion's budget.
pub(crate) struct ConversionBudget {
    memory: usize,
    text: usize,
    used_up: bool,
}

impl Default for ConversionBudget {
    fn default() -> ConversionBudget {
        ConversionBudget { memory: MEMORY, text: TEXT, used_up: false }
    }
}

impl ConversionBudget {
    /// Tells whether a value was refused because it is too large.
    pub(crate) fn is_used_up(&self) -> bool {
        self.used_up
    }

    fn take(&mut self, memory: usize, at: ValuePath<'_>) -> Result<()> {
        let left = self.memory.checked_sub(memory);
        self.used_up |= left.is_none();
        self.memory = left.ok_or_else(|| too_large(at, "its values would take more than 16 MB"))?;
        Ok(())
    }

    fn take_text(&mut self, bytes: usize, at: ValuePath<'_>) -> Result<()> {
        let left = self.text.checked_sub(bytes);
        self.used_up |= left.is_none();
        self.text = left.ok_or_else(|| too_large(at, "it has more than 4 MB of text"))?;
        self.take(bytes, at)
    }
}

fn too_large(at: ValuePath<'_>, why: &str) -> Failure {
    invalid(format!("{} is too large: {why}", at.root()))
}

/// The path from the root to a value, for errors; formatted only when there is an error.
#[derive(Clone, Copy)]
enum ValuePath<'a> {
    Root(&'a str),
    Member(&'a ValuePath<'a>, &'a str),
    Item(&'a ValuePath<'a>, usize),
}

impl ValuePath<'_> {
    fn root(&self) -> &str {
        match self {
            ValuePath::Root(name) => name,
            ValuePath::Member(outer, _) | ValuePath::Item(outer, _) => outer.root(),
        }
    }
}

impl std::fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ValuePath::Root(name) => f.write_str(name),
            ValuePath::Member(outer, name) => write!(f, "{outer}.{}", excerpt(name)),
            ValuePath::Item(outer, index) => write!(f, "{outer}[{index}]"),
        }
    }
}

/// Makes the metatable that marks lists. Called once for each VM.
pub(crate) fn prepare(lua: &Lua) -> mlua::Result<()> {
    let metatable = lua.create_table()?;
    metatable.set_readonly(true);
    lua.set_named_registry_value(LIST, metatable)
}

/// Returns the metatable that marks lists.
pub(crate) fn list_mark(lua: &Lua) -> mlua::Result<Table> {
    lua.named_registry_value(LIST)
}

/// Returns the JSON form of a Lua value; `what` names it in errors.
///
/// # Errors
///
/// `request-invalid` if the value is too large, nested too deep, or has no JSON form, such as a function.
pub(crate) fn to_json(lua: &Lua, value: &LuaValue, what: &str) -> Result<Value> {
    to_json_within(lua, value, what, &mut ConversionBudget::default())
}

/// Like [`to_json`], for several values that share one budget.
///
/// # Errors
///
/// Those of [`to_json`].
pub(crate) fn to_json_within(lua: &Lua, value: &LuaValue, what: &str, budget: &mut ConversionBudget) -> Result<Value> {
    let mark = list_mark(lua).map_err(|error| crate::lua::vm_errors::from_error(&error))?.to_pointer();
    visit(&mut Conversion { mark, budget }, value, ValuePath::Root(what), 0)
}

/// Tells whether [`to_json`] would convert the Lua form of a value back.
pub(crate) fn fits(value: &Value) -> bool {
    measure(value, 0, &mut ConversionBudget::default()).is_ok()
}

fn measure(value: &Value, depth: usize, budget: &mut ConversionBudget) -> Result<()> {
    let at = ValuePath::Root("the value");
    budget.take(VALUE + 2 * depth, at)?;
    match value {
        Value::String(text) => budget.take_text(text.len(), at),
        Value::Array(items) => items.iter().try_for_each(|item| measure(item, depth + 1, budget)),
        Value::Object(members) => members.iter().enumerate().try_for_each(|(index, (name, member))| {
            budget.take_text(name.len(), at)?;
            budget.take(if index == 0 { OBJECT } else { MEMBER }, at)?;
            measure(member, depth + 1, budget)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// The state of a conversion to JSON.
struct Conversion<'a> {
    /// The metatable that marks lists.
    mark: *const std::ffi::c_void,
    budget: &'a mut ConversionBudget,
}

impl Conversion<'_> {
    fn is_marked(&self, table: &Table) -> bool {
        table.metatable().is_some_and(|metatable| metatable.to_pointer() == self.mark)
    }
}

fn visit(conversion: &mut Conversion<'_>, value: &LuaValue, at: ValuePath<'_>, depth: usize) -> Result<Value> {
    // When printed, a value may take a line of its own, indented by its depth.
    conversion.budget.take(VALUE + 2 * depth, at)?;
    if depth > DEPTH {
        return Err(invalid(format!("{} is nested more than {DEPTH} levels deep, or contains itself", at.root())));
    }
    match value {
        LuaValue::Nil => Ok(Value::Null),
        value if value.is_null() => Ok(Value::Null),
        LuaValue::Boolean(flag) => Ok(Value::Bool(*flag)),
        LuaValue::Integer(number) => Ok(Value::from(*number)),
        LuaValue::Number(number) => number_to_json(*number, at),
        LuaValue::String(text) => {
            conversion.budget.take_text(text.as_bytes().len(), at)?;
            let text = text.to_str().map_err(|_| invalid(format!("{at} is text that is not UTF-8")))?;
            Ok(Value::String(text.to_owned()))
        }
        LuaValue::Table(table) => table_to_json(conversion, table, at, depth),
        other => Err(invalid(format!("{at} is a {}, which cannot be stored or sent", other.type_name()))),
    }
}

fn number_to_json(number: f64, at: ValuePath<'_>) -> Result<Value> {
    /// A double holds every whole number up to here.
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= WHOLE {
        #[allow(clippy::cast_possible_truncation)]
        return Ok(Value::from(number as i64));
    }
    Number::from_f64(number).map(Value::Number).ok_or_else(|| invalid(format!("{at} is not a finite number")))
}

fn table_to_json(conversion: &mut Conversion<'_>, table: &Table, at: ValuePath<'_>, depth: usize) -> Result<Value> {
    let length = table.raw_len();
    if length > 0 || conversion.is_marked(table) {
        return list_to_json(conversion, table, length, at, depth);
    }
    let mut members = Map::new();
    for pair in table.pairs::<LuaValue, LuaValue>() {
        let (key, value) = pair.map_err(|_| invalid(format!("{at} cannot be read")))?;
        let key = match &key {
            LuaValue::String(key) => {
                conversion.budget.take_text(key.as_bytes().len(), at)?;
                key.to_str().map_err(|_| invalid(format!("{at} has a key that is not UTF-8")))?.to_owned()
            }
            other => {
                return Err(invalid(format!(
                    "{at} has a key of type {}; keys are texts, or 1, 2, 3 …",
                    other.type_name()
                )));
            }
        };
        conversion.budget.take(if members.is_empty() { OBJECT } else { MEMBER }, at)?;
        let value = visit(conversion, &value, ValuePath::Member(&at, &key), depth + 1)?;
        members.insert(key, value);
    }
    // Sorted by name, so that the same table always gives the same text.
    members.sort_keys();
    Ok(Value::Object(members))
}

fn list_to_json(
    conversion: &mut Conversion<'_>,
    table: &Table,
    length: usize,
    at: ValuePath<'_>,
    depth: usize,
) -> Result<Value> {
    let mut items = Vec::with_capacity(length.min(1024));
    // Lua returns nearly every list in order and without other keys: one pass reads it.
    let mut irregular = false;
    for pair in table.pairs::<LuaValue, LuaValue>() {
        let (key, item) = pair.map_err(|_| invalid(format!("{at} cannot be read")))?;
        if !is_index(&key, items.len() + 1) {
            irregular = true;
            break;
        }
        items.push(visit(conversion, &item, ValuePath::Item(&at, items.len() + 1), depth + 1)?);
    }
    if !irregular && items.len() == length {
        return Ok(Value::Array(items));
    }
    items.clear();
    for index in 1..=length {
        let item: LuaValue = table.raw_get(index).map_err(|_| invalid(format!("{at} cannot be read")))?;
        items.push(visit(conversion, &item, ValuePath::Item(&at, index), depth + 1)?);
    }
    // A key beside the list would be lost silently, which is worse than an error.
    for pair in table.pairs::<LuaValue, LuaValue>() {
        let (key, _) = pair.map_err(|_| invalid(format!("{at} cannot be read")))?;
        if !is_index_within(&key, length) {
            return Err(invalid(format!(
                "{at} is a list, but has the key {} too",
                match key.as_string() {
                    Some(key) => format!("`{}`", excerpt(&key.to_string_lossy())),
                    None => format!("of type {}", key.type_name()),
                }
            )));
        }
    }
    Ok(Value::Array(items))
}

/// Returns a key as a whole number, if it is one.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn whole_number(key: &LuaValue) -> Option<i64> {
    match key {
        LuaValue::Integer(number) => Some(*number),
        LuaValue::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => Some(*number as i64),
        _ => None,
    }
}

fn is_index(key: &LuaValue, index: usize) -> bool {
    whole_number(key).is_some_and(|number| usize::try_from(number) == Ok(index))
}

fn is_index_within(key: &LuaValue, length: usize) -> bool {
    whole_number(key).is_some_and(|number| usize::try_from(number).is_ok_and(|number| (1..=length).contains(&number)))
}

/// Returns the Lua form of a JSON value. Lists are marked; null becomes `json.null`, a light userdata.
pub(crate) fn to_lua(lua: &Lua, value: &Value) -> mlua::Result<LuaValue> {
    let mark = list_mark(lua)?;
    build(lua, value, &mark)
}

fn build(lua: &Lua, value: &Value, mark: &Table) -> mlua::Result<LuaValue> {
    Ok(match value {
        Value::Null => LuaValue::NULL,
        Value::Bool(flag) => LuaValue::Boolean(*flag),
        Value::Number(number) => LuaValue::Number(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => LuaValue::String(lua.create_string(text)?),
        Value::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (index, item) in items.iter().enumerate() {
                table.raw_set(index + 1, build(lua, item, mark)?)?;
            }
            table.set_metatable(Some(mark.clone()))?;
            LuaValue::Table(table)
        }
        Value::Object(members) => {
            let table = lua.create_table_with_capacity(0, members.len())?;
            for (name, member) in members {
                table.raw_set(name.as_str(), build(lua, member, mark)?)?;
            }
            LuaValue::Table(table)
        }
    })
}

fn invalid(message: String) -> Failure {
    Failure::new(Code::RequestInvalid, message)
}
