//! Describes in words what a schema wants and what a value is. [`check`] writes the rest of the sentence.
//!
//! [`check`]: super::check

use jsonschema::error::ValidationError;
use serde_json::{Map, Value};

use crate::error::nearest;
use crate::model::text::{clean, excerpt};

/// The types that a schema can name.
const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];
/// The longest sentence of the validator's own, in characters.
const SENTENCE: usize = 300;

/// How many options of an enumeration a message lists.
const OPTIONS: usize = 12;

/// Returns what a wrong value is, in a few words that are safe to print.
pub(super) fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "nothing (null)".to_owned(),
        Value::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(members) if members.is_empty() => "an empty object".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        scalar => literal(scalar),
    }
}

/// Returns what is wrong at a place of a schema that is none.
pub(super) fn wrong_schema(pointer: &str, schema: &Value, error: &ValidationError<'_>) -> String {
    let found = schema.pointer(pointer).unwrap_or(&Value::Null);
    let names = |names: &Value| match names {
        Value::String(name) => vec![name.clone()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    if pointer.ends_with("/type")
        && let Some(unknown) = names(found).iter().find(|name| !TYPES.contains(&name.as_str()))
    {
        let near = nearest(unknown, TYPES.iter().copied()).map(|near| format!("; did you mean {near}?"));
        let near = near.unwrap_or_default();
        return format!("\"{}\" is no type; known are {}{near}", excerpt(unknown), TYPES.join(", "));
    }
    let said = clean(&error.masked_with("it").to_string()).replace('\n', " ");
    let said = match said.char_indices().nth(SENTENCE) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said,
    };
    format!("{said}; found {}", describe_value(found))
}

/// Returns a value as it could stand in a file, shortened.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", excerpt(text)),
        other => excerpt(&other.to_string()),
    }
}

/// Returns `a, b, c` for the options of an enumeration.
pub(super) fn options(options: &Value) -> String {
    let all = options.as_array().map_or(&[][..], Vec::as_slice);
    let mut words: Vec<String> = all.iter().take(OPTIONS).map(bare).collect();
    if all.len() > OPTIONS {
        words.push(format!("{} more", all.len() - OPTIONS));
    }
    words.join(", ")
}

/// Returns an option without quotes where it reads well without them.
fn bare(value: &Value) -> String {
    match value.as_str() {
        Some(text) if !text.is_empty() && !text.contains([' ', ',', '\n']) => excerpt(text),
        _ => literal(value),
    }
}

/// Returns what a schema wants of a scalar: `an integer from 0 to 100`, `text or null`.
pub(super) fn describe_type(schema: &Map<String, Value>) -> String {
    let names: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => vec!["number"],
    };
    let range = range(schema);
    let words: Vec<String> = names
        .iter()
        .map(|name| match *name {
            "integer" => format!("an integer{range}"),
            "number" => format!("a number{range}"),
            "string" => "text".to_owned(),
            "boolean" => "true or false".to_owned(),
            "array" => "a list".to_owned(),
            "object" => "an object".to_owned(),
            other => excerpt(other),
        })
        .collect();
    words.join(" or ")
}

fn range(schema: &Map<String, Value>) -> String {
    let bound = |keyword: &str| schema.get(keyword).filter(|bound| bound.is_number()).map(literal);
    match (bound("minimum"), bound("exclusiveMinimum"), bound("maximum"), bound("exclusiveMaximum")) {
        (Some(low), _, Some(high), _) => format!(" from {low} to {high}"),
        (Some(low), _, None, Some(high)) => format!(" from {low} to below {high}"),
        (Some(low), _, None, None) => format!(" of at least {low}"),
        (None, Some(low), Some(high), _) => format!(" above {low} and at most {high}"),
        (None, Some(low), None, Some(high)) => format!(" above {low} and below {high}"),
        (None, Some(low), None, None) => format!(" above {low}"),
        (None, None, Some(high), _) => format!(" of at most {high}"),
        (None, None, None, Some(high)) => format!(" below {high}"),
        (None, None, None, None) => String::new(),
    }
}

/// Returns what a format asks for, with an example where the name alone does not tell.
pub(super) fn format(name: &str) -> String {
    match name {
        "uuid" => "a UUID such as 9b2f5c1e-3a4d-4c6b-8f7e-0123456789ab".to_owned(),
        "date-time" => "a date and time such as 2026-01-09T10:30:00Z".to_owned(),
        "date" => "a date such as 2026-01-09".to_owned(),
        "time" => "a time such as 10:30:00Z".to_owned(),
        "duration" => "a duration such as PT30M".to_owned(),
        "uri" | "iri" => "an address such as https://example.org/page".to_owned(),
        "email" | "idn-email" => "an e-mail address".to_owned(),
        "regex" => "a regular expression".to_owned(),
        other => format!("text of the format {}", excerpt(other)),
    }
}

/// Returns `1 item`, `2 items`.
pub(super) fn count(number: u64, noun: &str) -> String {
    let plural = match (number, noun) {
        (1, _) => noun.to_owned(),
        (_, "entry") => "entries".to_owned(),
        _ => format!("{noun}s"),
    };
    format!("{number} {plural}")
}
