//! What is wrong with a schema, by the rules of who is to hold a reply to it.

use serde_json::{Map, Value, json};

use super::{at, list, neutral};

/// What OpenAI's strict mode refuses wherever it stands (openai profiles of pydantic-ai-slim@2.68.0, 2026-11).
const NOT_STRICT: [&str; 15] = [
    "default",
    "oneOf",
    "allOf",
    "not",
    "patternProperties",
    "unevaluatedProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "if",
];

/// A strict schema of a reply that is none, on chat completions.
pub(super) fn strict_reply(body: &Value) -> Option<String> {
    let given = at(body, "/response_format/json_schema");
    let wrong = |schema| root(schema).or_else(|| not_strict(schema, &mut Vec::new()));
    (given["strict"] == true).then(|| wrong(&given["schema"])).flatten()
}

/// A strict schema of a reply that is none, on Responses.
pub(super) fn strict_text(body: &Value) -> Option<String> {
    let given = at(body, "/text/format");
    let wrong = |schema| root(schema).or_else(|| not_strict(schema, &mut Vec::new()));
    (given["type"] == "json_schema" && given["strict"] == true).then(|| wrong(&given["schema"])).flatten()
}

/// A strict schema of a tool that is none, on chat completions: its name, and what is wrong.
pub(super) fn strict_function(body: &Value) -> Option<String> {
    let functions = list(&body["tools"]).iter().map(|tool| &tool["function"]);
    let mut strict = functions.filter(|function| function["strict"] == true);
    strict.find_map(strict_tool_of)
}

/// The same on Responses.
pub(super) fn strict_tool(body: &Value) -> Option<String> {
    list(&body["tools"]).iter().filter(|tool| tool["strict"] == true).find_map(strict_tool_of)
}

fn strict_tool_of(function: &Value) -> Option<String> {
    let wrong = not_strict(&function["parameters"], &mut Vec::new())?;
    Some(format!("'{}': {wrong}", function["name"].as_str().unwrap_or_default()))
}

fn root(schema: &Value) -> Option<String> {
    let kind = schema["type"].as_str().unwrap_or("None");
    (kind != "object").then(|| format!("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."))
}

fn not_strict(schema: &Value, path: &mut Vec<String>) -> Option<String> {
    let members = schema.as_object()?;
    let within = |path: &[String]| match path {
        [one] => format!("('{one}',)"),
        all => format!("({})", all.iter().map(|one| format!("'{one}'")).collect::<Vec<_>>().join(", ")),
    };
    if let Some(name) = NOT_STRICT.iter().find(|name| members.contains_key(**name)) {
        return Some(format!("In context={}, '{name}' is not permitted.", within(path)));
    }
    if members.contains_key("$ref") && members.len() > 1 {
        return Some(format!("In context={}, $ref cannot have keywords beside it.", within(path)));
    }
    let is = |kind: &str| schema["type"] == kind || list(&schema["type"]).iter().any(|one| one == kind);
    if is("object") || members.contains_key("properties") {
        if schema["additionalProperties"] != false {
            let words = "'additionalProperties' is required to be supplied and to be false.";
            return Some(format!("In context={}, {words}", within(path)));
        }
        let required = list(&schema["required"]);
        let all = schema["properties"].as_object().into_iter().flat_map(Map::keys);
        if let Some(missing) = all.into_iter().find(|name| !required.iter().any(|one| one == *name)) {
            let words = "'required' is required to be supplied and to be an array including every key in properties.";
            return Some(format!("In context={}, {words} Missing '{missing}'.", within(path)));
        }
    }
    if is("array") && !schema["items"].is_object() {
        return Some(format!("In context={}, array schema missing items.", within(path)));
    }
    below(members).into_iter().find_map(|(steps, one)| {
        let before = path.len();
        path.extend(steps);
        let found = not_strict(one, path);
        path.truncate(before);
        found
    })
}

/// The schemas within one, each with the way to it.
fn below(members: &Map<String, Value>) -> Vec<(Vec<String>, &Value)> {
    let mut found = Vec::new();
    for name in ["properties", "$defs"] {
        let named = members.get(name).and_then(Value::as_object).into_iter().flatten();
        found.extend(named.map(|(key, one)| (vec![name.to_owned(), key.clone()], one)));
    }
    for name in ["anyOf", "allOf", "oneOf"] {
        let all = list(members.get(name).unwrap_or(&Value::Null)).iter().enumerate();
        found.extend(all.map(|(index, one)| (vec![name.to_owned(), index.to_string()], one)));
    }
    found.extend(members.get("items").map(|one| (vec!["items".to_owned()], one)));
    found
}

/// What Anthropic's structured outputs refuse (litellm@1.109.1 llms/anthropic/chat/transformation.py:855, 2026-11). What is
/// neither here nor known to it is passed over.
const NOT_CLAUDE: [&str; 25] = [
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "prefixItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "if",
    "then",
    "else",
    "not",
    "oneOf",
];

/// A schema of `output_config.format` that is refused.
pub(super) fn claude_format(body: &Value) -> Option<String> {
    let schema = at(body, "/output_config/format/schema");
    not_claude(schema).or_else(|| {
        let optional = optional(schema);
        let many = "Schema is too complex: it has more than 24 optional parameters.";
        (optional > 24).then(|| many.to_owned())
    })
}

fn not_claude(schema: &Value) -> Option<String> {
    let members = schema.as_object()?;
    let refused = NOT_CLAUDE.iter().find(|name| members.contains_key(**name)).copied();
    let many = members.get("minItems").and_then(Value::as_u64).is_some_and(|least| least > 1).then_some("minItems");
    if let Some(name) = refused.or(many) {
        if name == "oneOf" {
            return Some("Schema type 'oneOf' is not supported".to_owned());
        }
        let kind = schema["type"].as_str().unwrap_or("any");
        return Some(format!("For '{kind}' type, property '{name}' is not supported"));
    }
    if schema["type"] == "object" && schema["additionalProperties"] != false {
        return Some("For 'object' type, 'additionalProperties' must be explicitly set to false".to_owned());
    }
    below(members).into_iter().find_map(|(_, one)| not_claude(one))
}

fn optional(schema: &Value) -> usize {
    let Some(members) = schema.as_object() else { return 0 };
    let required = list(&schema["required"]).len();
    let own = schema["properties"].as_object().map_or(0, Map::len).saturating_sub(required);
    own + below(members).into_iter().map(|(_, one)| optional(one)).sum::<usize>()
}

/// What no grammar of llama.cpp can be made of, in the schema of a reply or of a tool (ggml-org/llama.cpp#22396,
/// QwenLM/qwen-code#10435, 2026-08): more repetitions than about 2,000, and classes such as `\d` in a pattern.
pub(super) fn no_grammar(body: &Value) -> Option<String> {
    let tools = list(&body["tools"]).iter().map(|tool| at(tool, "/function/parameters"));
    neutral::native(body).into_iter().chain(tools).find_map(too_much)
}

fn too_much(schema: &Value) -> Option<String> {
    let members = schema.as_object()?;
    let counts = ["minLength", "maxLength", "minItems", "maxItems"];
    let beyond = |name: &&&str| schema[**name].as_u64().is_some_and(|count| count > 2000);
    if let Some(name) = counts.iter().find(beyond) {
        return Some((*name).to_owned());
    }
    if schema["pattern"].as_str().is_some_and(|pattern| ["\\d", "\\w", "\\s"].iter().any(|one| pattern.contains(one))) {
        return Some("pattern".to_owned());
    }
    below(members).into_iter().find_map(|(_, one)| too_much(one))
}

/// What a model says when it is held to a strict schema: every member that is required, in the order of the schema. A script
/// leaves out what it does not need; such a member is null.
pub(super) fn as_promised(body: &Value, text: &str) -> String {
    let strict = [at(body, "/response_format/json_schema"), at(body, "/text/format")];
    let Some(held) = strict.into_iter().find(|one| one["strict"] == true) else { return text.to_owned() };
    match serde_json::from_str::<Value>(text) {
        Ok(value) => filled(&value, &held["schema"]).to_string(),
        Err(_) => text.to_owned(),
    }
}

fn filled(value: &Value, schema: &Value) -> Value {
    match value {
        Value::Array(all) => all.iter().map(|one| filled(one, &schema["items"])).collect(),
        Value::Object(members) => {
            let kinds = list(&schema["anyOf"]);
            let schema = kinds.iter().find(|one| one["properties"].is_object()).unwrap_or(schema);
            let Some(properties) = schema["properties"].as_object() else { return value.clone() };
            let mut out = Map::new();
            for (name, one) in properties {
                let required = list(&schema["required"]).iter().any(|required| required == name);
                match members.get(name) {
                    Some(value) => out.insert(name.clone(), filled(value, one)),
                    None if required => out.insert(name.clone(), Value::Null),
                    None => None,
                };
            }
            json!(out)
        }
        value => value.clone(),
    }
}
