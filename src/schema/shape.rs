//! Gives a value the form that its schema means, before it is validated and written.
//!
//! A Lua table says neither whether an empty one is `[]` or `{}`, nor in which order its members
//! stand, nor that `10.0` was ten. The schema says all three, and so the file of a session keeps the
//! order in which its author described it, and differs between two saves only where it changed.

use serde_json::{Map, Number, Value};

use super::subschema::{self, ARRAY, OBJECT};

/// The largest float whose neighbours are all integers: above it, a float says nothing about digits.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Shapes a value by its schema.
pub fn shape(value: &mut Value, schema: &Value) {
    *value = shaped(value, schema);
}

/// Returns the shaped form of a value.
pub fn shaped(value: &Value, schema: &Value) -> Value {
    walk(value, &[schema], schema, super::tree::DEPTH)
}

fn walk(value: &Value, schemas: &[&Value], root: &Value, depth: usize) -> Value {
    match value {
        Value::Number(number) => Value::Number(whole(number)),
        // A value this deep is refused by validation, whatever its shape.
        Value::Array(_) | Value::Object(_) if depth == 0 => value.clone(),
        Value::Array(items) => {
            let parts = subschema::parts(root, schemas, value);
            let items = items.iter().enumerate();
            items.map(|(index, item)| walk(item, &subschema::item(&parts, index), root, depth - 1)).collect()
        }
        Value::Object(members) if members.is_empty() => {
            let allowed = subschema::types_of(root, schemas);
            if allowed & (ARRAY | OBJECT) == ARRAY { Value::Array(Vec::new()) } else { value.clone() }
        }
        Value::Object(members) => {
            let parts = subschema::parts(root, schemas, value);
            let mut ordered = Map::with_capacity(members.len());
            let known = parts.iter().filter_map(|part| part.get("properties")?.as_object()).flat_map(Map::keys);
            for (name, member) in known.filter_map(|name| members.get_key_value(name)).chain(members) {
                // The second time that a member comes by, it stands in its place already.
                if ordered.len() < members.len() && !ordered.contains_key(name) {
                    let member = match member {
                        Value::Null | Value::Bool(_) | Value::String(_) => member.clone(),
                        member => walk(member, &subschema::member(&parts, name), root, depth - 1),
                    };
                    ordered.insert(name.clone(), member);
                }
            }
            Value::Object(ordered)
        }
        other => other.clone(),
    }
}

/// Returns an integer for a float that is one.
fn whole(number: &Number) -> Number {
    match number.as_f64().filter(|_| number.is_f64()) {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number of at most 2^53")]
        Some(float) if float.fract() == 0.0 && float.abs() <= EXACT => (float as i64).into(),
        _ => number.clone(),
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
