//! A schema in few words, for a prompt: a small machine reads each token of it, and the grammar holds the reply to the rest.
//!
//! `{"title": text, "sizes": [1 to 3 of "S" | "M"], "why"?: text or null}`. What has no such form is told as the schema itself.

use serde_json::{Map, Value};

/// Returns what a reply by this schema looks like.
pub(super) fn of(schema: &Value) -> String {
    written(schema).unwrap_or_else(|| schema.to_string())
}

/// Keywords that the form has, or that the grammar alone sees to.
const KNOWN: &[&str] = &[
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "enum",
    "const",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "description",
    "title",
    "$schema",
    "uniqueItems",
];

fn written(schema: &Value) -> Option<String> {
    let map = schema.as_object()?;
    if !map.keys().all(|key| KNOWN.contains(&key.as_str()))
        || map.get("additionalProperties").is_some_and(Value::is_object)
    {
        return None;
    }
    let form = match (map.get("enum"), map.get("const"), map.get("type")) {
        (Some(Value::Array(values)), ..) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | "),
        (_, Some(value), _) => value.to_string(),
        (.., Some(Value::String(name))) => of_type(name, map)?,
        (.., Some(Value::Array(names))) => {
            let names = names.iter().map(|name| of_type(name.as_str()?, map));
            names.collect::<Option<Vec<String>>>()?.join(" or ")
        }
        _ => return None,
    };
    Some(match map.get("description").and_then(Value::as_str) {
        Some(about) => format!("{form} ({about})"),
        None => form,
    })
}

fn of_type(name: &str, map: &Map<String, Value>) -> Option<String> {
    let range = |least: &str, most: &str| {
        let (least, most) = (map.get(least), map.get(most));
        match (least, most) {
            (Some(least), Some(most)) if least == most => most.to_string(),
            (Some(least), Some(most)) => format!("{least} to {most}"),
            (Some(least), None) => format!("{least} or more"),
            (None, Some(most)) => format!("at most {most}"),
            (None, None) => String::new(),
        }
    };
    let with = |word: &str, range: String| if range.is_empty() { word.to_owned() } else { format!("{word} {range}") };
    Some(match name {
        "string" => "text".to_owned(),
        "boolean" => "true | false".to_owned(),
        "null" => "null".to_owned(),
        "integer" => with("whole number", range("minimum", "maximum")),
        "number" => with("number", range("minimum", "maximum")),
        "array" => {
            let one = written(map.get("items")?)?;
            match range("minItems", "maxItems") {
                many if many.is_empty() => format!("[{one}, …]"),
                many => format!("[{many} of {one}]"),
            }
        }
        "object" => {
            let required: Vec<&Value> = map.get("required").and_then(Value::as_array).into_iter().flatten().collect();
            let members = map.get("properties")?.as_object()?.iter().map(|(name, schema)| {
                let mark = if required.iter().any(|one| **one == name.as_str()) { "" } else { "?" };
                Some(format!("{}{mark}: {}", Value::from(name.as_str()), written(schema)?))
            });
            format!("{{{}}}", members.collect::<Option<Vec<String>>>()?.join(", "))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_told_by_what_a_reply_looks_like() {
        let schema = json!({ "type": "object", "required": ["title", "sizes"], "additionalProperties": false, "properties": {
            "title": { "type": "string", "minLength": 8, "description": "in your own words" },
            "sizes": { "type": "array", "items": { "enum": ["S", "M"] }, "minItems": 1, "maxItems": 3 },
            "score": { "type": "integer", "minimum": 0, "maximum": 100 },
            "why": { "type": ["string", "null"] },
            "parts": { "type": "array", "items": { "type": "object", "properties": { "ok": { "type": "boolean" } } } },
        } });
        assert_eq!(
            of(&schema),
            r#"{"title": text (in your own words), "sizes": [1 to 3 of "S" | "M"], "score"?: whole number 0 to 100, "why"?: text or null, "parts"?: [{"ok"?: true | false}, …]}"#
        );
    }

    #[test]
    fn what_has_no_such_form_is_told_as_it_is() {
        for schema in
            [json!({ "anyOf": [{ "type": "string" }] }), json!({ "$ref": "#/$defs/a" }), json!(true), json!({})]
        {
            assert_eq!(of(&schema), schema.to_string());
        }
        let open = json!({ "type": "object", "properties": { "a": { "pattern": "^x$", "type": "string" } } });
        assert_eq!(of(&open), open.to_string());
    }
}
