//! Reads the arguments of API functions, with errors that name the function and the argument.

use mlua::{Function, Lua, MultiValue, Value as LuaValue};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Code, Failure, Result, nearest};
use crate::lua::convert;
use crate::model::text::excerpt;

/// The arguments of one call.
pub(super) struct Args<'a> {
    lua: &'a Lua,
    /// The function's name for errors, such as `ui.ask`.
    function: &'static str,
    values: MultiValue,
}

impl<'a> Args<'a> {
    pub(super) fn new(lua: &'a Lua, function: &'static str, values: MultiValue) -> Args<'a> {
        Args { lua, function, values }
    }

    fn at(&self, index: usize) -> LuaValue {
        self.values.get(index).cloned().unwrap_or(LuaValue::Nil)
    }

    fn wrong(&self, index: usize, expected: &str) -> Failure {
        let found = self.at(index);
        invalid(format!("{}: argument {} must be {expected}, found {}", self.function, index + 1, found.type_name()))
    }

    pub(super) fn text(&self, index: usize) -> Result<String> {
        self.maybe_text(index)?.ok_or_else(|| self.wrong(index, "a text"))
    }

    pub(super) fn maybe_text(&self, index: usize) -> Result<Option<String>> {
        match self.at(index) {
            LuaValue::Nil => Ok(None),
            LuaValue::String(text) if text.as_bytes().len() > convert::TEXT => Err(invalid(format!(
                "{}: argument {} is longer than {} bytes",
                self.function,
                index + 1,
                convert::TEXT
            ))),
            LuaValue::String(text) => match text.to_str() {
                Ok(text) => Ok(Some(text.to_owned())),
                Err(_) => Err(self.wrong(index, "UTF-8 text")),
            },
            LuaValue::Integer(number) => Ok(Some(number.to_string())),
            LuaValue::Number(number) => Ok(Some(number.to_string())),
            _ => Err(self.wrong(index, "a text")),
        }
    }

    pub(super) fn boolean(&self, index: usize) -> Result<bool> {
        match self.at(index) {
            LuaValue::Boolean(value) => Ok(value),
            _ => Err(self.wrong(index, "true or false")),
        }
    }

    pub(super) fn number(&self, index: usize) -> Result<f64> {
        match self.at(index) {
            #[allow(clippy::cast_precision_loss)]
            LuaValue::Integer(number) => Ok(number as f64),
            LuaValue::Number(number) => Ok(number),
            _ => Err(self.wrong(index, "a number")),
        }
    }

    pub(super) fn maybe_number(&self, index: usize) -> Result<Option<f64>> {
        match self.at(index) {
            LuaValue::Nil => Ok(None),
            _ => self.number(index).map(Some),
        }
    }

    pub(super) fn function(&self, index: usize) -> Result<Function> {
        match self.at(index) {
            LuaValue::Function(function) => Ok(function),
            _ => Err(self.wrong(index, "a function")),
        }
    }

    pub(super) fn table(&self, index: usize) -> Result<mlua::Table> {
        match self.at(index) {
            LuaValue::Table(table) => Ok(table),
            _ => Err(self.wrong(index, "a table")),
        }
    }

    /// Returns an argument as JSON; an absent one is null.
    pub(super) fn json(&self, index: usize, what: &str) -> Result<Value> {
        convert::to_json(self.lua, &self.at(index), what).map_err(|failure| self.named(failure))
    }

    /// Returns an argument as plain data; unknown fields are errors with the nearest known name.
    pub(super) fn data<T: DeserializeOwned>(&self, index: usize, what: &str) -> Result<T> {
        let mut value = self.json(index, what)?;
        prune(&mut value);
        data(value, &format!("{}: {what}", self.function))
    }

    /// Returns a list of texts, which may be empty: Lua's empty table is a list here.
    pub(super) fn texts(&self, index: usize, what: &str) -> Result<Vec<String>> {
        let value = self.json(index, what)?;
        if value.as_object().is_some_and(serde_json::Map::is_empty) {
            return Ok(Vec::new());
        }
        data(value, &format!("{}: {what}", self.function))
    }

    fn named(&self, failure: Failure) -> Failure {
        Failure { message: format!("{}: {}", self.function, failure.message), ..failure }
    }
}

/// Makes an empty list an empty object: in Lua, options that are an empty table may be either.
fn prune(value: &mut Value) {
    if value.as_array().is_some_and(Vec::is_empty) {
        *value = Value::Object(serde_json::Map::new());
    }
}

/// Deserializes plain data, and rewords serde's error about an unknown field for people.
pub(super) fn data<T: DeserializeOwned>(value: Value, what: &str) -> Result<T> {
    serde_json::from_value(value).map_err(|error| {
        let error = error.to_string();
        let mut quoted = error.split('`').skip(1).step_by(2);
        if error.starts_with("unknown field") {
            let unknown = quoted.next().unwrap_or_default();
            let failure = invalid(format!("{what} has no field `{}`", excerpt(unknown)));
            return match nearest(unknown, quoted.clone()) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint(format!("known are {}", quoted.collect::<Vec<_>>().join(", "))),
            };
        }
        invalid(format!("{what}: {error}"))
    })
}

pub(super) fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Code::RequestInvalid, message)
}
