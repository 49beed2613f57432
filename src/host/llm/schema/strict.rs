//! A schema as OpenAI's strict mode takes it: closed objects that require each of their members, and no keyword that the mode
//! refuses. An optional member becomes one that may be null, and such a null is taken out of the reply again.

use serde_json::{Map, Value, json};

use super::with_bounds;

/// The most objects one inside of another.
const DEEPEST: usize = 10;

/// The string formats that the mode knows.
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Returns the schema in the form of the strict mode; `None` if that form cannot express it, or if what it adds could not be
/// told apart in the reply.
pub(super) fn strict_copy(schema: &Value) -> Option<Value> {
    if schema.get("anyOf").or(schema.get("oneOf")).is_some() {
        return None;
    }
    copy(schema, 0, false)
}

/// `in_choice` says that a value could also be of another schema, so that nobody knows which member a null belongs to.
fn copy(schema: &Value, depth: usize, in_choice: bool) -> Option<Value> {
    let members = schema.as_object().filter(|_| depth <= DEEPEST)?;
    if let Some(reference) = members.get("$ref") {
        let name = reference.as_str().filter(|name| *name == "#" || name.starts_with("#/$defs/"))?;
        return Some(json!({ "$ref": name }));
    }
    let (mut out, mut bounds) = (Map::new(), Vec::new());
    for (keyword, value) in members {
        let value = match keyword.as_str() {
            "type" | "enum" | "const" | "description" | "title" => value.clone(),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" | "minItems"
            | "maxItems" => value.clone(),
            "pattern" if !value.as_str()?.contains("(?") => value.clone(),
            "format" if FORMATS.contains(&value.as_str()?) => value.clone(),
            "minLength" | "maxLength" | "pattern" | "format" | "uniqueItems" | "minProperties" | "maxProperties"
            | "default" => {
                bounds.push(format!("{keyword}: {value}"));
                continue;
            }
            "properties" => properties(members, value.as_object()?, depth, in_choice)?,
            "items" => copy(value, depth + 1, in_choice)?,
            "anyOf" | "oneOf" => {
                let branches = value.as_array()?;
                let several = branches.iter().filter(|branch| !is_null(branch)).count() > 1;
                let all: Option<Vec<Value>> =
                    branches.iter().map(|branch| copy(branch, depth, in_choice || several)).collect();
                out.insert("anyOf".to_owned(), Value::Array(all?));
                continue;
            }
            "$defs" => {
                let one = |(name, one): (&String, &Value)| Some((name.clone(), copy(one, depth, true)?));
                Value::Object(value.as_object()?.iter().map(one).collect::<Option<_>>()?)
            }
            "additionalProperties" if *value == Value::Bool(false) => continue,
            "required" | "$schema" | "$id" | "$comment" | "examples" => continue,
            _ => return None,
        };
        out.insert(keyword.clone(), value);
    }
    let is = |name: &str| match out.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    };
    if is("array") && !out.contains_key("items") {
        return None;
    }
    if is("object") || out.contains_key("properties") {
        let names: Vec<Value> = out.get("properties")?.as_object()?.keys().map(|name| name.as_str().into()).collect();
        out.insert("required".to_owned(), Value::Array(names));
        out.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    let has_structure = ["type", "enum", "const", "anyOf"].into_iter().any(|name| out.contains_key(name));
    has_structure.then(|| Value::Object(with_bounds(out, &bounds)))
}

fn properties(object: &Map<String, Value>, all: &Map<String, Value>, depth: usize, in_choice: bool) -> Option<Value> {
    let one = |(name, schema): (&String, &Value)| {
        let strict = copy(schema, depth + 1, in_choice)?;
        let added = !is_required(object, name) && !allows_null(schema);
        match (added, in_choice) {
            (false, _) => Some((name.clone(), strict)),
            (true, false) => Some((name.clone(), json!({ "anyOf": [strict, { "type": "null" }] }))),
            (true, true) => None,
        }
    };
    Some(Value::Object(all.iter().map(one).collect::<Option<_>>()?))
}

/// Takes out of a reply the nulls by which it leaves optional members out; returns whether there were any.
pub(super) fn drop_added_nulls(value: &mut Value, schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return false };
    match value {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = members.get("properties") {
                let before = fields.len();
                fields.retain(|name, field| {
                    !field.is_null() || is_required(members, name) || properties.get(name).is_none_or(allows_null)
                });
                let mut dropped = fields.len() < before;
                for (name, field) in fields.iter_mut() {
                    dropped |= properties.get(name).is_some_and(|schema| drop_added_nulls(field, schema));
                }
                return dropped;
            }
        }
        Value::Array(items) => {
            if let Some(schema) = members.get("items") {
                return items.iter_mut().fold(false, |dropped, item| drop_added_nulls(item, schema) | dropped);
            }
        }
        _ => return false,
    }
    // A choice in which one branch alone is not null.
    let branches = members.get("anyOf").or(members.get("oneOf")).and_then(Value::as_array);
    let mut others = branches.into_iter().flatten().filter(|branch| !is_null(branch));
    match (others.next(), others.next()) {
        (Some(only), None) => drop_added_nulls(value, only),
        _ => false,
    }
}

fn is_required(object: &Map<String, Value>, name: &str) -> bool {
    object.get("required").and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == name))
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null")
}

/// Tells whether the author's schema takes null. A reference counts as one that does: nothing is then added to it.
fn allows_null(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return true };
    let of_type = members.get("type").map(|kind| match kind {
        Value::Array(several) => several.iter().any(|one| one == "null"),
        one => one == "null",
    });
    let in_list = members.get("enum").and_then(Value::as_array).map(|values| values.contains(&Value::Null));
    let by_const = members.get("const").map(Value::is_null);
    let branches = members.get("anyOf").or(members.get("oneOf")).and_then(Value::as_array);
    let by_branch = branches.map(|all| all.iter().any(allows_null));
    [of_type, in_list, by_const, by_branch].into_iter().flatten().all(|allows| allows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_member_may_be_null_and_is_absent_again_in_the_reply() {
        let schema = json!({"type": "object", "required": ["why"], "properties": {
            "why": {"type": "string", "maxLength": 9},
            "note": {"type": "string"},
            "score": {"type": ["integer", "null"], "minimum": 0},
            "parts": {"type": "array", "items": {"type": "object", "properties": {"at": {"type": "integer"}}}},
        }});
        let copy = strict_copy(&schema).unwrap();
        assert_eq!(
            copy,
            json!({"type": "object", "properties": {
                "why": {"type": "string", "description": "(maxLength: 9)"},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "score": {"type": ["integer", "null"], "minimum": 0},
                "parts": {"anyOf": [{"type": "array", "items": {"type": "object", "properties":
                    {"at": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, "required": ["at"],
                    "additionalProperties": false}}, {"type": "null"}]},
            }, "required": ["why", "note", "score", "parts"], "additionalProperties": false})
        );
        let mut reply = json!({"why": "so", "note": null, "score": null, "parts": [{"at": null}, {"at": 1}]});
        assert!(drop_added_nulls(&mut reply, &schema));
        assert_eq!(
            reply,
            json!({"why": "so", "score": null, "parts": [{}, {"at": 1}]}),
            "a null of the author's stays"
        );
        assert!(!drop_added_nulls(&mut reply, &schema));
    }

    #[test]
    fn what_could_not_be_undone_or_said_has_no_strict_copy() {
        let optional = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        for schema in [
            json!({"type": "object", "required": ["x"], "properties": {"x": {"anyOf": [optional, {"type": "array",
                "items": {"type": "string"}}]}}}),
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            json!({"type": "object"}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "other.json"}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "array"}}}),
        ] {
            assert_eq!(strict_copy(&schema), None, "{schema}");
        }
        // One branch beside null can be undone.
        let nullable = json!({"type": "object", "required": ["x"], "properties": {"x": {"anyOf": [optional, {"type":
            "null"}]}}});
        assert!(strict_copy(&nullable).is_some());
        let mut reply = json!({"x": {"a": null}});
        assert!(drop_added_nulls(&mut reply, &nullable) && reply == json!({"x": {}}));
    }
}
