//! Finds what is allowed but worth a remark: members that the schema neither knows nor forbids.
//!
//! Loading and saving keep such members, because a newer tool or a person may have put them there. But
//! a misspelt optional field looks exactly like one, so `nietz check` names them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::check::Violation;
use super::subschema;
use super::value_builder;
use crate::error::nearest;
use crate::model::text::excerpt;

/// Returns a note for each member that the schema does not know.
pub(crate) fn notes(value: &Value, schema: &Value) -> Vec<Violation> {
    let mut notes = Vec::new();
    walk(value, &[schema], schema, &mut String::new(), value_builder::DEPTH, &mut notes);
    notes
}

fn walk(
    value: &Value,
    schemas: &[&Value],
    root: &Value,
    pointer: &mut String,
    depth: usize,
    notes: &mut Vec<Violation>,
) {
    if depth == 0 {
        return;
    }
    let parent = pointer.len();
    match value {
        Value::Array(items) => {
            let parts = subschema::parts(root, schemas, value);
            for (index, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                walk(item, &subschema::item(&parts, index), root, pointer, depth - 1, notes);
                pointer.truncate(parent);
            }
        }
        Value::Object(members) => {
            let parts = subschema::parts(root, schemas, value);
            let mut known = KnownMembers::default();
            parts.iter().for_each(|part| known.add(root, part, 8));
            for (name, member) in members {
                pointer.push('/');
                pointer.push_str(&value_builder::escape(name));
                if known.lacks(name) {
                    let near = nearest(name, known.names.iter().copied());
                    let near = near.map(|near| format!("; did you mean \"{}\"?", excerpt(near))).unwrap_or_default();
                    let message = format!("\"{}\" is not a known field and is kept as it is{near}", excerpt(name));
                    notes.push(Violation::new(pointer.as_str(), "unknown", message));
                }
                walk(member, &subschema::member(&parts, name), root, pointer, depth - 1, notes);
                pointer.truncate(parent);
            }
        }
        _ => {}
    }
}

/// The members that an object's schema mentions anywhere.
#[derive(Default)]
struct KnownMembers<'s> {
    names: BTreeSet<&'s str>,
    /// Whether the schema says something about all other members, which makes them known, too.
    open: bool,
}

impl<'s> KnownMembers<'s> {
    fn lacks(&self, name: &str) -> bool {
        !self.open && !self.names.is_empty() && !self.names.contains(name)
    }

    /// Adds the members that a part mentions, and those of each branch that could be meant.
    fn add(&mut self, root: &'s Value, part: &'s Map<String, Value>, steps: usize) {
        if steps == 0 {
            return;
        }
        self.open |= subschema::allows_others(part);
        self.names.extend(subschema::named_members(part).map(|(name, _)| name.as_str()));
        for branch in part.iter().flat_map(|(keyword, rule)| subschema::in_place(root, keyword, rule)) {
            if let Some(branch) = branch.as_object() {
                self.add(root, branch, steps - 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_members_are_named_once_and_open_objects_have_none() {
        let schema = json!({
            "properties": {
                "status": {},
                "items": {"items": {"$ref": "#/$defs/item"}},
                "free": {"type": "object"},
                "open": {"properties": {"a": {}}, "additionalProperties": {"type": "string"}},
                "tagged": {"oneOf": [{"properties": {"x": {}}}, {"properties": {"y": {}}}]},
            },
            "$defs": {"item": {"properties": {"id": {}}}},
        });
        let value = json!({
            "stauts": 1, "items": [{"id": 1}, {"id": 2, "a/b": 3}], "free": {"z": 1}, "open": {"b": "c"},
            "tagged": {"y": 1, "x": 2},
        });
        let notes: Vec<String> = notes(&value, &schema).iter().map(Violation::to_string).collect();
        assert_eq!(
            notes,
            [
                "/stauts: \"stauts\" is not a known field and is kept as it is; did you mean \"status\"?",
                "/items/1/a~1b: \"a/b\" is not a known field and is kept as it is",
            ]
        );
    }
}
