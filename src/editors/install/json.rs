//! Entries in JSON files, which keep their order and their way of indenting.

use std::path::Path;

use serde::Serialize as _;
use serde_json::{Map, Value, json};

use super::NAME;
use crate::error::{Code, Failure, Result};

/// Returns the text with an entry, and what is added.
pub(super) fn with(path: &Path, before: &str, keys: &[&str], value: &Value) -> Result<(String, String)> {
    let mut shown = json!({ NAME: value });
    for key in keys.iter().rev() {
        shown = json!({ *key: shown });
    }
    let shown = format!("{}\n", written(&shown, "  "));
    let mut all = read(path, before, &shown)?;
    let mut at = &mut all;
    for key in keys {
        at = at
            .entry((*key).to_owned())
            .or_insert_with(|| json!({}))
            .as_object_mut()
            .ok_or_else(|| odd(path, &shown))?;
    }
    if at.get(NAME) == Some(value) {
        return Ok((before.to_owned(), shown));
    }
    at.insert(NAME.to_owned(), value.clone());
    Ok((format!("{}\n", written(&Value::Object(all), indent(before))), shown))
}

/// Returns the text without the entry, and without what held nothing else.
pub(super) fn without(path: &Path, before: &str, keys: &[&str]) -> Result<String> {
    let mut all = read(path, before, &format!("take the entry `{NAME}` out of `{}`\n", keys.join(".")))?;
    let mut at = &mut all;
    for key in keys {
        match at.get_mut(*key).and_then(Value::as_object_mut) {
            Some(below) => at = below,
            None => return Ok(before.to_owned()),
        }
    }
    if at.shift_remove(NAME).is_none() {
        return Ok(before.to_owned());
    }
    if at.is_empty()
        && let [key] = keys
    {
        all.shift_remove(*key);
    }
    Ok(format!("{}\n", written(&Value::Object(all), indent(before))))
}

fn read(path: &Path, text: &str, shown: &str) -> Result<Map<String, Value>> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(all)) => Ok(all),
        Ok(_) | Err(_) => Err(odd(path, shown)),
    }
}

fn odd(path: &Path, shown: &str) -> Failure {
    let message = format!("{} is not plain JSON: a comment of yours would be lost", path.display());
    Failure::new(Code::Usage, message).hint(format!("change it by hand:\n{shown}"))
}

/// Returns how a text indents.
fn indent(text: &str) -> &str {
    let line = text.lines().find(|line| line.starts_with([' ', '\t'])).unwrap_or("  ");
    &line[..line.len() - line.trim_start().len()]
}

fn written(value: &Value, indent: &str) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    // Values made of JSON are JSON.
    let _ = value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, formatter));
    String::from_utf8(out).unwrap_or_default()
}
