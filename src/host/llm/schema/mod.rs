//! What the wire formats do with a JSON Schema: send it in the form that a family takes, or spell it out in the prompt, never
//! both, and unwrap the reply.
//!
//! Nothing here validates the reply; that is up to the caller.

mod strict;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::attempt_error::CallContext;
use super::families::NativeSchema;
use super::refusal::RequestPart;
use crate::model::chat::{ChatReply, ChatRequest, FinishReason};

/// A schema as the server gets it, to hold the reply to it.
pub(super) struct Native<'r> {
    pub(super) schema: Cow<'r, Value>,
    /// Whether it has the form of OpenAI's strict mode.
    pub(super) strict: bool,
}

/// Returns the schema of a request for a server that holds the reply to it; `None` if the request has none, or the prompt
/// must spell it out. This is for the wires of OpenAI.
pub(super) fn native<'r>(context: CallContext<'_>, request: &'r ChatRequest) -> Option<Native<'r>> {
    let CallContext { provider, profile, .. } = context;
    let schema = request.schema.as_ref().filter(|schema| has_object_root(schema))?;
    let refused = profile.refuses(RequestPart::ResponseFormat)
        || profile.refuses(RequestPart::IgnoredSchema)
        || !request.tools.is_empty() && profile.refuses(RequestPart::SchemaWithTools);
    let by_family = profile.native_schema.filter(|_| provider.schema_by_family || provider.json_schema);
    let form = by_family.or(provider.json_schema.then_some(NativeSchema::Plain)).filter(|_| !refused)?;
    let copy = match form {
        NativeSchema::Prompt => return None,
        NativeSchema::Plain => None,
        NativeSchema::Strict => strict::strict_copy(schema),
        NativeSchema::Closed => closed_schema(schema),
    };
    let strict = match (form, &copy) {
        (NativeSchema::Strict, copy) => copy.is_some(),
        (_, Some(copy)) => is_closed_and_required(copy),
        (_, None) => is_closed_and_required(schema),
    };
    Some(Native { schema: copy.map_or(Cow::Borrowed(schema), Cow::Owned), strict })
}

/// Returns the system prompt of a request, with the schema spelled out where nothing else sends it.
pub(super) fn system<'r>(request: &'r ChatRequest, native: Option<&Native<'_>>) -> Option<Cow<'r, str>> {
    match &request.schema {
        Some(schema) if native.is_none() => Some(Cow::Owned(prompt_with_schema(request.system.as_deref(), schema))),
        _ => request.system.as_deref().map(Cow::Borrowed),
    }
}

/// Returns the JSON of a structured reply: without the fence around it, and without what the host had added to the schema.
pub(super) fn json_of<'t>(context: CallContext<'_>, request: &ChatRequest, text: &'t str) -> Cow<'t, str> {
    let json = strip_fence(text);
    let copied = native(context, request).is_some_and(|native| native.strict && matches!(native.schema, Cow::Owned(_)));
    let (Some(schema), true) = (&request.schema, copied && json.contains("null")) else { return Cow::Borrowed(json) };
    let Ok(mut value) = serde_json::from_str::<Value>(json) else { return Cow::Borrowed(json) };
    match strict::drop_added_nulls(&mut value, schema) {
        true => Cow::Owned(value.to_string()),
        false => Cow::Borrowed(json),
    }
}

/// Tells whether a server took a schema and did not hold its reply to it: what came is not even an object with the members
/// that it must have.
pub(super) fn is_ignored(context: CallContext<'_>, request: &ChatRequest, reply: &ChatReply) -> bool {
    let expected = context.provider.may_ignore_schemas
        && !request.wants_tool()
        && reply.finish == FinishReason::Stop
        && !reply.text.is_empty()
        && native(context, request).is_some();
    let Some(schema) = request.schema.as_ref().filter(|_| expected) else { return false };
    let Ok(Value::Object(members)) = serde_json::from_str(&reply.text) else { return true };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    required.into_iter().any(|name| !members.contains_key(name))
}

/// Tells whether the root of this schema is an object. No provider enforces a schema with another root.
pub(super) fn has_object_root(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// Tells whether OpenAI's strict mode accepts this schema: every object closed, every member required,
/// and no keyword that the mode refuses. In doubt it says no: a refused request is worse than a looser promise.
fn is_closed_and_required(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return false };
    let is_object = match members.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => members.contains_key("properties"),
    };
    if is_object {
        let Some(Value::Object(properties)) = members.get("properties") else { return false };
        let Some(Value::Array(required)) = members.get("required") else { return false };
        let all = properties.keys().all(|name| required.iter().any(|required_name| required_name == name));
        if !all || members.get("additionalProperties") != Some(&Value::Bool(false)) {
            return false;
        }
    }
    members.iter().all(|(keyword, value)| match keyword.as_str() {
        "properties" | "$defs" | "definitions" => {
            value.as_object().is_some_and(|schemas| schemas.values().all(is_closed_and_required))
        }
        "items" => is_closed_and_required(value),
        "anyOf" => value.as_array().is_some_and(|schemas| schemas.iter().all(is_closed_and_required)),
        "type" | "required" | "additionalProperties" | "enum" | "const" | "description" | "title" | "$ref" => true,
        _ => false,
    })
}

/// Keywords that bound a value but are not part of its structure. Descriptions state them for servers that accept only
/// structure.
const BOUNDS: [&str; 15] = [
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "default",
];

/// Returns the schema in the restricted form that Anthropic's API enforces: closed objects and structure, with bounds as
/// words in descriptions. `None` if that form cannot express the schema: open objects, references, conditions.
pub(super) fn closed_schema(schema: &Value) -> Option<Value> {
    let members = schema.as_object()?;
    if let Some(Value::Array(types)) = members.get("type") {
        return any_of_types(members, types);
    }
    let mut out = Map::new();
    let mut bounds = Vec::new();
    for (keyword, value) in members {
        let value = match keyword.as_str() {
            "type" | "required" | "description" | "title" => value.clone(),
            "enum" if value.as_array()?.iter().all(is_scalar) => value.clone(),
            // Not everybody who takes this form knows `const`.
            "const" if is_scalar(value) => {
                out.insert("enum".to_owned(), json!([value]));
                continue;
            }
            "properties" => {
                let closed = |(name, one): (&String, &Value)| Some((name.clone(), closed_schema(one)?));
                Value::Object(value.as_object()?.iter().map(closed).collect::<Option<_>>()?)
            }
            "items" => closed_schema(value)?,
            "anyOf" | "oneOf" => {
                let all: Option<Vec<Value>> = value.as_array()?.iter().map(closed_schema).collect();
                out.insert("anyOf".to_owned(), Value::Array(all?));
                continue;
            }
            "additionalProperties" if *value == Value::Bool(false) => continue,
            "$schema" | "$id" | "$comment" | "examples" => continue,
            bound if BOUNDS.contains(&bound) => {
                bounds.push(format!("{bound}: {value}"));
                continue;
            }
            _ => return None,
        };
        out.insert(keyword.clone(), value);
    }
    let has = |name: &str| out.contains_key(name);
    match out.get("type").and_then(Value::as_str) {
        Some("object") if !has("properties") => return None,
        Some("array") if !has("items") => return None,
        Some("object") => drop(out.insert("additionalProperties".to_owned(), Value::Bool(false))),
        None if !["enum", "anyOf"].into_iter().any(has) => return None,
        _ => {}
    }
    Some(Value::Object(with_bounds(out, &bounds)))
}

/// Returns a schema whose description also states these bounds.
fn with_bounds(mut schema: Map<String, Value>, bounds: &[String]) -> Map<String, Value> {
    if !bounds.is_empty() {
        let prefix = schema.get("description").and_then(Value::as_str).map_or(String::new(), |text| format!("{text} "));
        schema.insert("description".to_owned(), Value::String(format!("{prefix}({})", bounds.join(", "))));
    }
    schema
}

/// Returns a schema of several types as a choice between schemas of one type.
fn any_of_types(members: &Map<String, Value>, types: &[Value]) -> Option<Value> {
    let of_type = |kind: &Value| {
        if kind == "null" {
            return Some(json!({"type": "null"}));
        }
        let mut members = members.clone();
        members.insert("type".to_owned(), kind.clone());
        if let Some(Value::Array(values)) = members.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        closed_schema(&Value::Object(members))
    };
    let all: Option<Vec<Value>> = types.iter().map(of_type).collect();
    Some(json!({"anyOf": all?}))
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

/// Returns the system prompt with the schema spelled out, for providers that do not enforce it themselves.
pub(super) fn prompt_with_schema(system: Option<&str>, schema: &Value) -> String {
    let instruction = format!(
        "Reply with one JSON value that is valid by the following JSON Schema, and with nothing else: \
         no words around it, no code fence.\n{schema}"
    );
    match system {
        Some(system) => format!("{system}\n\n{instruction}"),
        None => instruction,
    }
}

/// Returns the text without the code fence that many models put around JSON whatever the prompt says.
pub(super) fn strip_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return text };
    match inner.split_once('\n') {
        Some((language, body)) if language.trim().chars().all(char::is_alphanumeric) => body.trim(),
        _ => inner.trim(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_closed_objects_with_all_members_required_are_strict() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array",
            "items": {"type": "integer"}}}, "required": ["a", "b"], "additionalProperties": false});
        assert!(is_closed_and_required(&closed));
        for (keyword, value) in [
            ("required", json!(["a"])),
            ("additionalProperties", json!(true)),
            ("properties", json!({"a": {"type": "object"}, "b": {}})),
            ("properties", json!({"a": {"type": "string", "maxLength": 3}, "b": {}})),
            ("allOf", json!([])),
        ] {
            let mut open = closed.clone();
            open[keyword] = value;
            assert!(!is_closed_and_required(&open), "{open}");
        }
    }

    #[test]
    fn a_schema_is_closed_with_its_bounds_in_words_or_not_at_all() {
        let schema = json!({"type": "object", "required": ["why", "score"], "properties": {
            "why": {"type": "array", "items": {"type": "string", "maxLength": 9}, "maxItems": 3, "description": "Reasons."},
            "score": {"type": ["integer", "null"], "minimum": 0},
            "kind": {"enum": ["a", null]},
        }});
        let narrow = json!({"type": "object", "required": ["why", "score"], "properties": {
            "why": {"type": "array", "items": {"type": "string", "description": "(maxLength: 9)"},
                "description": "Reasons. (maxItems: 3)"},
            "score": {"anyOf": [{"type": "integer", "description": "(minimum: 0)"}, {"type": "null"}]},
            "kind": {"enum": ["a", null]},
        }, "additionalProperties": false});
        assert_eq!(closed_schema(&schema), Some(narrow));
        for open in [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {}}}),
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            json!({"type": "array"}),
            json!({"$ref": "#/$defs/a"}),
            json!({"type": "object", "properties": {"a": {"not": {"type": "null"}}}}),
        ] {
            assert_eq!(closed_schema(&open), None, "{open}");
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
            assert_eq!(strip_fence(text), json);
        }
    }
}
