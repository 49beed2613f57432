//! Finds where the nodes of JSON pointers stand in a text.
//!
//! Positions cost time and memory, and are wanted only when something is wrong: so a text is read a
//! second time for them, and only the positions of the wanted pointers are kept.

use std::collections::{HashMap, HashSet};

use super::json;
use super::position::TextPosition;
use super::value_builder::{NodePosition, escape};
use super::yaml;
use crate::model::collection::Format;

/// Returns the JSON pointer that leads through these members.
pub(crate) fn pointer(names: &[&str]) -> String {
    names.iter().map(|name| format!("/{}", escape(name))).collect()
}

/// The places of some nodes of a text.
#[derive(Debug)]
pub(crate) struct Spans(HashMap<String, NodePosition<TextPosition>>);

impl Spans {
    /// Finds the nodes of these pointers, and the nodes around them.
    pub(crate) fn find<'p>(text: &str, format: Format, pointers: impl IntoIterator<Item = &'p str>) -> Spans {
        let mut wanted = HashSet::new();
        for mut pointer in pointers {
            while wanted.insert(pointer.to_owned()) {
                let Some(end) = pointer.rfind('/') else { break };
                pointer = &pointer[..end];
            }
        }
        Spans(match format {
            Format::Yaml => yaml::read(text, Some(&wanted)).map(|tree| tree.found).unwrap_or_default(),
            Format::Text => return Spans(std::collections::HashMap::new()),
            Format::Json | Format::Jsonl => {
                let found = json::read(text, Some(&wanted)).map(|tree| tree.found).unwrap_or_default();
                let place = |at| json::place(text, at);
                let position = |position: NodePosition<usize>| NodePosition {
                    key: position.key.map(place),
                    value: place(position.value),
                };
                found.into_iter().map(|(pointer, found)| (pointer, position(found))).collect()
            }
        })
    }

    /// Returns the place of a value, or of the nearest node around it that the text has.
    pub(crate) fn value(&self, pointer: &str) -> TextPosition {
        self.nearest(pointer).map_or(TextPosition { line: 1, column: 1 }, |position| position.value)
    }

    /// Returns the place of a member's key, or what [`Spans::value`] returns where there is no key.
    pub(crate) fn key(&self, pointer: &str) -> TextPosition {
        self.0.get(pointer).and_then(|position| position.key).unwrap_or_else(|| self.value(pointer))
    }

    /// Returns the position of a node, or of the nearest one around it: what an alias repeats has no position of its own.
    fn nearest(&self, mut pointer: &str) -> Option<&NodePosition<TextPosition>> {
        loop {
            if let Some(position) = self.0.get(pointer) {
                return Some(position);
            }
            pointer = &pointer[..pointer.rfind('/')?];
        }
    }
}
