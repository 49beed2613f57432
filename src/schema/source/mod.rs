//! Reads the bytes of a file as a value, or says clearly why that is not possible.

use serde_json::Value;

use super::json;
use super::position::TextPosition;
use super::yaml;
use crate::error::{Code, Failure, Result};
use crate::model::collection::Format;

/// The largest file that is read, in bytes. Even a session of years is far smaller; a larger file is a mistake.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Returns the text of a file: UTF-8, without its byte order mark.
///
/// # Errors
///
/// `document-unreadable` if the bytes are not UTF-8.
pub fn decode<'b>(bytes: &'b [u8], file: &str) -> Result<&'b str> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(unreadable(file, TextPosition { line: 1, column: 1 }, "is UTF-16; save it as UTF-8"));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let place = json::place(&valid, valid.len());
            Err(unreadable(file, place, "is not UTF-8 here; save the file as UTF-8"))
        }
    }
}

/// Parses one document, or one row of a JSONL file.
///
/// ```
/// use nietz::model::collection::Format;
/// use nietz::schema::source::parse;
///
/// assert_eq!(parse("level: no", Format::Yaml, "a.yaml").unwrap()["level"], "no", "nothing but true and false is a boolean");
/// let twice = parse("a: 1\na: 2\n", Format::Yaml, "a.yaml").unwrap_err();
/// assert!(twice.message.contains("a.yaml:2:1"), "{twice:?}");
/// ```
///
/// # Errors
///
/// `document-unreadable`, with `file:line:column: reason`.
pub fn parse(text: &str, format: Format, file: &str) -> Result<Value> {
    read(text, format).map_err(|(place, reason)| unreadable(file, place, &reason))
}

/// Parses like [`parse`], but leaves the naming of the file to the caller.
///
/// # Errors
///
/// The place and the reason why the text cannot be read.
pub fn read(text: &str, format: Format) -> Result<Value, (TextPosition, String)> {
    if format != Format::Text && text.chars().all(|c| c.is_whitespace() || c == '\u{feff}') {
        let what = if format == Format::Jsonl { "the line is empty" } else { "the file is empty" };
        return Err((TextPosition { line: 1, column: 1 }, what.to_owned()));
    }
    let value = match format {
        Format::Yaml => yaml::read(text, None).map_err(|error| (error.at, error.reason))?.finish(),
        Format::Text => Some(Value::String(text.to_owned())),
        Format::Json | Format::Jsonl => {
            json::read(text, None).map_err(|error| (json::place(text, error.at), error.reason))?.finish()
        }
    };
    // A YAML file of comments alone has no value at all, which is what YAML calls null.
    Ok(value.unwrap_or(Value::Null))
}

/// Returns the failure for a text that cannot be read.
fn unreadable(file: &str, place: TextPosition, reason: &str) -> Failure {
    Failure::new(Code::DocumentUnreadable, format!("{file}:{}:{}: {reason}", place.line, place.column))
        .hint("mend the file, or restore it from version control; `nietz check` shows every fault")
}

#[cfg(test)]
mod tests;
