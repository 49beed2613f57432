//! What the wires do with a JSON Schema: send it, spell it out, and undress the reply.
//!
//! Whether the reply is valid by it is not asked here; that is for the room that made the request.

use serde_json::Value;

/// Tells whether this is a schema of objects. No provider takes another root natively.
pub(super) fn has_object_root(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// Tells whether OpenAI's strict mode takes this schema: every object closed, every member required,
/// and no keyword that the mode refuses. A refused request would be worse than a looser promise.
pub(super) fn is_strict(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return false };
    let is_object = match members.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => members.contains_key("properties"),
    };
    if is_object {
        let Some(Value::Object(properties)) = members.get("properties") else { return false };
        let Some(Value::Array(required)) = members.get("required") else { return false };
        let all = properties.keys().all(|name| required.iter().any(|one| one == name));
        if !all || members.get("additionalProperties") != Some(&Value::Bool(false)) {
            return false;
        }
    }
    members.iter().all(|(keyword, value)| match keyword.as_str() {
        "properties" | "$defs" | "definitions" => {
            value.as_object().is_some_and(|schemas| schemas.values().all(is_strict))
        }
        "items" => is_strict(value),
        "anyOf" => value.as_array().is_some_and(|schemas| schemas.iter().all(is_strict)),
        "type" | "required" | "additionalProperties" | "enum" | "const" | "description" | "title" | "$ref" => true,
        _ => false,
    })
}

/// Returns the system prompt with the schema spelled out, for providers that do not hold to it themselves.
pub(super) fn instruct(system: Option<&str>, schema: &Value) -> String {
    let order = format!(
        "Reply with one JSON value that is valid by the following JSON Schema, and with nothing else: \
         no words around it, no code fence.\n{schema}"
    );
    match system {
        Some(system) => format!("{system}\n\n{order}"),
        None => order,
    }
}

/// Returns the text without the code fence that many models put around JSON whatever they are told.
pub(super) fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return text };
    match inner.split_once('\n') {
        Some((language, body)) if language.trim().chars().all(char::is_alphanumeric) => body.trim(),
        _ => inner.trim(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_closed_objects_with_all_members_required_are_strict() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array",
            "items": {"type": "integer"}}}, "required": ["a", "b"], "additionalProperties": false});
        assert!(is_strict(&closed));
        for (keyword, value) in [
            ("required", json!(["a"])),
            ("additionalProperties", json!(true)),
            ("properties", json!({"a": {"type": "object"}, "b": {}})),
            ("properties", json!({"a": {"type": "string", "maxLength": 3}, "b": {}})),
            ("allOf", json!([])),
        ] {
            let mut open = closed.clone();
            open[keyword] = value;
            assert!(!is_strict(&open), "{open}");
        }
    }

    #[test]
    fn a_fence_around_json_is_taken_off_and_one_inside_is_not() {
        for (text, json) in [
            ("{\"a\": 1}", "{\"a\": 1}"),
            ("\n```json\n{\"a\": 1}\n```\n", "{\"a\": 1}"),
            ("```\n[1]\n```", "[1]"),
            ("```{}```", "{}"),
            ("{\"a\": \"```\"}", "{\"a\": \"```\"}"),
        ] {
            assert_eq!(unfenced(text), json);
        }
    }
}
