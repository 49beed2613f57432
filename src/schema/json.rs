//! Reads JSON into a tree. serde_json alone would silently keep the last of two equal keys; it still
//! decodes numbers and strings here, token by token.

use std::collections::HashSet;

use serde_json::{Number, Value};

use super::position::TextPosition;
use super::value_builder::{ParseError, ValueBuilder};

/// Reads one JSON value. Positions are byte offsets, see [`place`].
pub(super) fn read<'w>(
    text: &str,
    wanted: Option<&'w HashSet<String>>,
) -> Result<ValueBuilder<'w, usize>, ParseError<usize>> {
    let mut reader = JsonReader { text, at: 0, tree: ValueBuilder::new(wanted) };
    reader.value()?;
    match reader.peek() {
        None => Ok(reader.tree),
        Some(_) => Err(reader.error_here("there is more text after the value")),
    }
}

/// Returns the line and column of a byte offset.
pub(super) fn place(text: &str, offset: usize) -> TextPosition {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    TextPosition {
        line: 1 + before.bytes().filter(|byte| *byte == b'\n').count(),
        column: 1 + before[line_start..].chars().count(),
    }
}

struct JsonReader<'t, 'w> {
    text: &'t str,
    at: usize,
    tree: ValueBuilder<'w, usize>,
}

impl<'t> JsonReader<'t, '_> {
    fn value(&mut self) -> Result<(), ParseError<usize>> {
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.list(),
            Some(b'"') => {
                let start = self.at;
                let string = self.string()?;
                self.tree.value(Value::String(string), start);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.literal(),
            Some(_) => Err(self.error_here("expected a value")),
            None => Err(self.error_here("the text ends where a value should be")),
        }
    }

    fn object(&mut self) -> Result<(), ParseError<usize>> {
        self.tree.open_object(self.at)?;
        self.at += 1;
        let mut first = true;
        while self.goes_on(b'}', &mut first)? {
            if self.peek() != Some(b'"') {
                return Err(self.error_here("expected a key in double quotes"));
            }
            let start = self.at;
            let key = self.string()?;
            self.tree.key(key, start)?;
            if self.peek() != Some(b':') {
                return Err(self.error_here("expected `:` after the key"));
            }
            self.at += 1;
            self.value()?;
        }
        let object = self.tree.close();
        self.tree.put(object);
        Ok(())
    }

    fn list(&mut self) -> Result<(), ParseError<usize>> {
        self.tree.open_list(self.at)?;
        self.at += 1;
        let mut first = true;
        while self.goes_on(b']', &mut first)? {
            self.value()?;
        }
        let list = self.tree.close();
        self.tree.put(list);
        Ok(())
    }

    /// Steps over the comma before the next item, or over the end; returns whether an item follows.
    fn goes_on(&mut self, end: u8, first: &mut bool) -> Result<bool, ParseError<usize>> {
        let next = self.peek();
        if next == Some(end) {
            self.at += 1;
            return Ok(false);
        }
        if std::mem::replace(first, false) && next.is_some() {
            return Ok(true);
        }
        if next != Some(b',') {
            let end = char::from(end);
            return Err(self.error_here(if next.is_none() {
                format!("the text ends where `,` or `{end}` should be")
            } else {
                format!("expected `,` or `{end}`")
            }));
        }
        let comma = self.at;
        self.at += 1;
        if self.peek() == Some(end) {
            return Err(ParseError::new(comma, "a comma stands after the last item"));
        }
        Ok(true)
    }

    fn string(&mut self) -> Result<String, ParseError<usize>> {
        let start = self.at;
        let rest = &self.text.as_bytes()[start + 1..];
        // Nearly every text is written without escapes.
        if let Some(length) = memchr::memchr2(b'"', b'\\', rest)
            && rest[length] == b'"'
            && rest[..length].iter().all(|byte| *byte >= b' ')
        {
            self.at = start + length + 2;
            return Ok(self.text[start + 1..self.at - 1].to_owned());
        }
        let mut escaped = false;
        let length = rest.iter().position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        });
        let Some(length) = length else {
            return Err(ParseError::new(start, "the text in quotes that starts here does not end"));
        };
        self.at = start + length + 2;
        serde_json::from_str(&self.text[start..self.at])
            .map_err(|error| ParseError::new(start, format!("this text in quotes is wrong: {}", error_text(&error))))
    }

    fn number(&mut self) -> Result<(), ParseError<usize>> {
        let start = self.at;
        let token = self.token(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
        let number: Number = serde_json::from_str(token)
            .map_err(|error| ParseError::new(start, format!("this number is wrong: {}", error_text(&error))))?;
        if number.is_f64() && token != "-0" && token.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
            return Err(ParseError::new(start, super::scalar::TOO_LARGE));
        }
        // serde_json may miss a float by its last bit, so that a file would change by being read and saved.
        let float = token.parse().ok().filter(|_| number.is_f64()).and_then(Number::from_f64);
        self.tree.value(Value::Number(float.unwrap_or(number)), start);
        Ok(())
    }

    fn literal(&mut self) -> Result<(), ParseError<usize>> {
        let start = self.at;
        let value = match self.token(|byte| byte.is_ascii_alphanumeric()) {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ => return Err(ParseError::new(start, "expected a value; text must stand in double quotes")),
        };
        self.tree.value(value, start);
        Ok(())
    }

    fn token(&mut self, belongs: impl Fn(u8) -> bool) -> &'t str {
        let rest = &self.text[self.at..];
        let length = rest.bytes().position(|byte| !belongs(byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Skips white space and returns the byte behind it.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn error_here(&self, reason: impl Into<String>) -> ParseError<usize> {
        ParseError::new(self.at, reason)
    }
}

/// Returns what serde_json found wrong, without its position, which counts from the token.
fn error_text(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}
