//! Gives a value the form that its schema means, before it is validated and written.
//!
//! A Lua table does not say whether an empty one is `[]` or `{}`, in which order its members stand, or
//! that `10.0` was ten. The schema says all three. So a session's file keeps the order of its schema,
//! and differs between two saves only where the session changed.

use serde_json::{Map, Number, Value};

use super::subschema::{self, ARRAY, OBJECT};

/// The largest float whose neighbours are all integers: above it, a float says nothing about digits.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Shapes a value by its schema.
pub(crate) fn shape(value: &mut Value, schema: &Value) {
    walk(value, &[schema], schema, super::value_builder::DEPTH);
}

fn walk(value: &mut Value, schemas: &[&Value], root: &Value, depth: usize) {
    match value {
        Value::Number(number) => make_integer(number),
        // A value this deep is refused by validation, whatever its shape.
        Value::Array(_) | Value::Object(_) if depth == 0 => {}
        Value::Object(members) if members.is_empty() => {
            if subschema::types_of(root, schemas) & (ARRAY | OBJECT) == ARRAY {
                *value = Value::Array(Vec::new());
            }
        }
        Value::Array(_) | Value::Object(_) => {
            let parts = subschema::parts(root, schemas, value);
            match value {
                Value::Array(items) => {
                    for (index, item) in items.iter_mut().enumerate().filter(|(_, item)| has_shape(item)) {
                        walk(item, &subschema::item(&parts, index), root, depth - 1);
                    }
                }
                Value::Object(members) => {
                    for (name, member) in members.iter_mut().filter(|(_, member)| has_shape(member)) {
                        walk(member, &subschema::member(&parts, name), root, depth - 1);
                    }
                    order(members, &parts);
                }
                _ => {}
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Tells whether a schema could change the value. Most lists hold only texts, which no schema changes.
fn has_shape(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_shape),
        Value::Object(_) => true,
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Sorts the members that the schema knows by its order, and puts the others behind them as they are.
fn order(members: &mut Map<String, Value>, parts: &[&Map<String, Value>]) {
    let known = || parts.iter().flat_map(|part| subschema::named_members(part)).map(|(name, _)| name);
    let mut names = members.keys();
    if known().filter(|name| members.contains_key(*name)).all(|name| names.next() == Some(name)) {
        return;
    }
    let mut ordered = Map::with_capacity(members.len());
    for name in known() {
        // A name that several parts of the schema know is placed only once.
        if !ordered.contains_key(name)
            && let Some(member) = members.get_mut(name)
        {
            ordered.insert(name.clone(), member.take());
        }
    }
    for (name, member) in std::mem::take(members) {
        if !ordered.contains_key(&name) {
            ordered.insert(name, member);
        }
    }
    *members = ordered;
}

/// Turns a float without a fraction into an integer.
fn make_integer(number: &mut Number) {
    if let Some(float) = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT)
    {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number of at most 2^53")]
        let integer = float as i64;
        *number = integer.into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shaped(mut value: Value, schema: &Value) -> String {
        shape(&mut value, schema);
        value.to_string()
    }

    #[test]
    fn an_empty_table_becomes_a_list_where_only_a_list_is_allowed() {
        let schema = json!({
            "properties": {
                "list": {"type": "array"},
                "object": {"type": "object"},
                "either": {"type": ["array", "object"]},
                "maybe": {"anyOf": [{"$ref": "#/$defs/names"}, {"type": "null"}]},
                "nested": {"type": "array", "items": {"properties": {"tags": {"$ref": "#/$defs/names"}}}},
                "both": {"allOf": [{"minItems": 0}, {"type": "array"}]},
                "free": {},
                "rows": {"additionalProperties": {"type": "array"}},
                "pair": {"prefixItems": [{"type": "array"}, {"type": "object"}]},
            },
            "$defs": {"names": {"type": "array", "items": {"type": "string"}}},
        });
        let value = json!({
            "list": {}, "object": {}, "either": {}, "maybe": {}, "nested": [{"tags": {}}], "both": {}, "free": {},
            "rows": {"a": {}}, "pair": [{}, {}], "unknown": {},
        });
        assert_eq!(
            shaped(value, &schema),
            r#"{"list":[],"object":{},"either":{},"maybe":[],"nested":[{"tags":[]}],"both":[],"free":{},"rows":{"a":[]},"pair":[[],{}],"unknown":{}}"#
        );
    }

    #[test]
    fn members_stand_in_the_order_of_the_schema() {
        let schema = json!({
            "allOf": [{"properties": {"a": {}, "b": {"properties": {"y": {}, "x": {}}}}}],
            "properties": {"c": {}},
        });
        let value = json!({"z": 1, "b": {"x": 1, "y": 2}, "a": 3, "y": 4, "c": 5});
        assert_eq!(shaped(value, &schema), r#"{"c":5,"a":3,"b":{"y":2,"x":1},"z":1,"y":4}"#);
    }

    #[test]
    fn the_branch_that_a_constant_names_gives_the_shape() {
        let schema = json!({"oneOf": [
            {"properties": {"kind": {"const": "list"}, "of": {"type": "array"}}},
            {"properties": {"kind": {"const": "map"}, "of": {"type": "object"}}},
        ]});
        assert_eq!(shaped(json!({"of": {}, "kind": "list"}), &schema), r#"{"kind":"list","of":[]}"#);
        assert_eq!(shaped(json!({"of": {}, "kind": "map"}), &schema), r#"{"kind":"map","of":{}}"#);
    }

    #[test]
    fn whole_floats_become_integers_and_others_stay() {
        let value = json!([10.0, -0.0, 12.5, 1e20, 9_007_199_254_740_992.0]);
        assert_eq!(shaped(value, &json!({})), "[10,0,12.5,1e+20,9007199254740992]");
    }

    #[test]
    fn a_schema_in_circles_ends() {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#"}]}}});
        assert_eq!(shaped(json!({"a": {}}), &schema), r#"{"a":{}}"#);
    }
}
