//! Reads YAML into a tree, from the events of the parser that our YAML library is built on.
//!
//! The library itself guesses at the meaning of words (`1_000`, `017`) and expands merge keys. So
//! [`scalar`] resolves words here, and everything that could surprise is refused with a reason: tags,
//! merge keys, a second document, aliases that would blow up.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use serde_yaml::granit_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag, options};

use super::position::TextPosition;
use super::scalar;
use super::value_builder::{DEPTH, ParseError, ValueBuilder, too_deep};
use crate::model::text::{clean, excerpt};

/// How many nodes (16 bytes of text count as one) anchors and aliases may copy altogether. A person
/// who repeats a block stays far below; `3000 × 3000` aliases or the billion laughs do not.
const COPIES: usize = 100_000;

/// Reads one YAML document.
pub(super) fn read<'w>(
    text: &str,
    wanted: Option<&'w HashSet<String>>,
) -> Result<ValueBuilder<'w, TextPosition>, ParseError<TextPosition>> {
    let options = options! { emit_comments: false };
    let mut reader =
        YamlReader { tree: ValueBuilder::new(wanted), anchors: HashMap::new(), open: Vec::new(), copies: COPIES };
    let mut documents = 0;
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| ParseError::new(place(*error.marker()), one_line(&error.info())))?;
        if let Event::DocumentStart(_, version) = &event {
            documents += 1;
            if documents > 1 {
                return Err(ParseError::new(
                    place(span.start),
                    "a second document starts here; one file holds one document",
                ));
            }
            if version.as_ref().is_some_and(|version| (version.major, version.minor) != (1, 2)) {
                return Err(ParseError::new(place(span.start), "the file says that it is another YAML than 1.2"));
            }
        }
        reader.event(event, span)?;
    }
    Ok(reader.tree)
}

/// Returns the parser's message, which may quote the file, as one short line.
fn one_line(reason: &str) -> String {
    clean(reason).replace('\n', " ").chars().take(200).collect()
}

fn place(marker: Marker) -> TextPosition {
    TextPosition { line: marker.line().max(1), column: marker.col() + 1 }
}

struct YamlReader<'w> {
    tree: ValueBuilder<'w, TextPosition>,
    anchors: HashMap<usize, Value>,
    /// The anchors of the lists and objects that are open; 0 where there is none.
    open: Vec<usize>,
    copies: usize,
}

impl YamlReader<'_> {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), ParseError<TextPosition>> {
        let at = place(span.start);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(tag.as_deref(), at)?;
                if self.tree.wants_key() {
                    self.keep(anchor, &Value::String(text.to_string()), at)?;
                    return self.key(&text, style, at);
                }
                let value = match style {
                    ScalarStyle::Plain => scalar::resolve(&text).map_err(|reason| ParseError::new(at, reason))?,
                    _ => Value::String(text.into_owned()),
                };
                self.keep(anchor, &value, at)?;
                self.tree.value(value, at);
            }
            Event::SequenceStart(_, anchor, tag) => {
                refuse_tag(tag.as_deref(), at)?;
                self.refuse_as_key(at)?;
                self.tree.open_list(at)?;
                self.open.push(anchor);
            }
            Event::MappingStart(_, anchor, tag) => {
                refuse_tag(tag.as_deref(), at)?;
                self.refuse_as_key(at)?;
                self.tree.open_object(at)?;
                self.open.push(anchor);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let value = self.tree.close();
                let anchor = self.open.pop().unwrap_or(0);
                self.keep(anchor, &value, at)?;
                self.tree.put(value);
            }
            Event::Alias(anchor) => {
                self.refuse_as_key(at)?;
                let Some(value) = self.anchors.get(&anchor).cloned() else {
                    return Err(ParseError::new(at, "this alias stands inside of what it repeats"));
                };
                self.count(&value, self.tree.depth(), at)?;
                self.tree.value(value, at);
            }
            _ => {}
        }
        Ok(())
    }

    fn key(&mut self, text: &str, style: ScalarStyle, at: TextPosition) -> Result<(), ParseError<TextPosition>> {
        if style == ScalarStyle::Plain {
            if text == "<<" {
                let reason = "merge keys (<<) are not part of YAML 1.2; write the members out";
                return Err(ParseError::new(at, reason));
            }
            if scalar::resolve(text) == Ok(Value::Null) {
                return Err(ParseError::new(at, "a key is empty or null; put it in quotes if it is text"));
            }
        }
        self.tree.key(text.to_owned(), at)
    }

    fn refuse_as_key(&self, at: TextPosition) -> Result<(), ParseError<TextPosition>> {
        match self.tree.wants_key() {
            true => Err(ParseError::new(at, "a key must be plain or quoted text")),
            false => Ok(()),
        }
    }

    /// Keeps a copy of an anchored value for its aliases.
    fn keep(&mut self, anchor: usize, value: &Value, at: TextPosition) -> Result<(), ParseError<TextPosition>> {
        if anchor > 0 {
            self.count(value, 0, at)?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(())
    }

    /// Counts a copy of a value against the budget.
    fn count(&mut self, value: &Value, depth: usize, at: TextPosition) -> Result<(), ParseError<TextPosition>> {
        if depth > DEPTH {
            return Err(too_deep(at));
        }
        let weight = match value {
            Value::String(text) => 1 + text.len() / 16,
            _ => 1,
        };
        self.copies = self.copies.checked_sub(weight).ok_or_else(|| {
            ParseError::new(at, "the anchors and aliases of this file would blow it up; write the values out")
        })?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.count(item, depth + 1, at)),
            Value::Object(members) => members.values().try_for_each(|member| self.count(member, depth + 1, at)),
            _ => Ok(()),
        }
    }
}

fn refuse_tag(tag: Option<&Tag>, at: TextPosition) -> Result<(), ParseError<TextPosition>> {
    match tag {
        Some(tag) => {
            let tag = excerpt(&tag.original());
            Err(ParseError::new(
                at,
                format!("the tag {tag} is not allowed; write the value plainly, or text in quotes"),
            ))
        }
        None => Ok(()),
    }
}
