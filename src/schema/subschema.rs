//! What the keywords of JSON Schema say of which value: the parts of a schema that apply to a value, and the members it names.
//!
//! Validation is jsonschema's work. This module answers what a validator cannot: which form an empty table
//! was meant to have, in which order members stand, and which members the schema knows.

use serde_json::{Map, Value};

/// How many references are followed in a row; a schema that refers to itself in circles ends here.
const STEPS: usize = 24;

pub(super) const NULL: u8 = 1;
pub(super) const BOOLEAN: u8 = 2;
pub(super) const NUMBER: u8 = 4;
pub(super) const STRING: u8 = 8;
pub(super) const ARRAY: u8 = 16;
pub(super) const OBJECT: u8 = 32;
const ANY: u8 = 63;

type SchemaPart<'s> = &'s Map<String, Value>;

/// Returns every part of the schemas that applies to the value.
pub(super) fn parts<'s>(root: &'s Value, schemas: &[&'s Value], value: &Value) -> Vec<SchemaPart<'s>> {
    let mut parts = Vec::new();
    for schema in schemas {
        gather(root, schema, value, STEPS, &mut parts);
    }
    parts
}

fn gather<'s>(root: &'s Value, schema: &'s Value, value: &Value, steps: usize, parts: &mut Vec<SchemaPart<'s>>) {
    let (Value::Object(part), true) = (schema, steps > 0 && parts.len() < 256) else { return };
    parts.push(part);
    // Most parts refer to no other.
    if !part.keys().any(|keyword| matches!(keyword.as_str(), "$ref" | "allOf" | "anyOf" | "oneOf")) {
        return;
    }
    if let Some(target) = target(root, part) {
        gather(root, target, value, steps - 1, parts);
    }
    for branch in list(part, "allOf") {
        gather(root, branch, value, steps - 1, parts);
    }
    for alternatives in ["anyOf", "oneOf"] {
        let mut fitting = list(part, alternatives).iter().filter(|branch| fits(root, branch, value, steps - 1));
        if let (Some(branch), None) = (fitting.next(), fitting.next()) {
            gather(root, branch, value, steps - 1, parts);
        }
    }
}

/// Tells whether a branch may be the one that was meant: its type and its constant members fit.
fn fits(root: &Value, branch: &Value, value: &Value, steps: usize) -> bool {
    let kind = match value {
        Value::Object(members) if members.is_empty() => OBJECT | ARRAY,
        other => kind(other),
    };
    if types(root, branch, steps) & kind == 0 {
        return false;
    }
    let branch = branch.as_object().and_then(|part| target(root, part)).unwrap_or(branch);
    let constants = branch.get("properties").and_then(Value::as_object);
    constants.into_iter().flatten().all(|(name, schema)| match (schema.get("const"), value.get(name)) {
        (Some(constant), Some(member)) => constant == member,
        _ => true,
    })
}

/// Returns the types that all these schemas together allow.
pub(super) fn types_of(root: &Value, schemas: &[&Value]) -> u8 {
    schemas.iter().fold(ANY, |allowed, schema| allowed & types(root, schema, STEPS))
}

fn types(root: &Value, schema: &Value, steps: usize) -> u8 {
    let part = match schema {
        Value::Bool(false) => return 0,
        Value::Object(part) if steps > 0 => part,
        _ => return ANY,
    };
    let mut allowed = match part.get("type") {
        Some(Value::String(name)) => type_by_name(name),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).fold(0, |sum, name| sum | type_by_name(name))
        }
        _ => ANY,
    };
    if let Some(constant) = part.get("const") {
        allowed &= kind(constant);
    }
    if let Some(Value::Array(options)) = part.get("enum") {
        allowed &= options.iter().fold(0, |sum, option| sum | kind(option));
    }
    if let Some(target) = target(root, part) {
        allowed &= types(root, target, steps - 1);
    }
    for branch in list(part, "allOf") {
        allowed &= types(root, branch, steps - 1);
    }
    for alternatives in ["anyOf", "oneOf"] {
        if part.contains_key(alternatives) {
            allowed &= list(part, alternatives).iter().fold(0, |sum, branch| sum | types(root, branch, steps - 1));
        }
    }
    allowed
}

/// Returns the schemas of a member.
pub(super) fn member<'s>(parts: &[SchemaPart<'s>], name: &str) -> Vec<&'s Value> {
    parts
        .iter()
        .filter_map(|part| {
            let known = part.get("properties").and_then(|properties| properties.get(name));
            known.or_else(|| {
                // With one pattern and nothing else allowed, a member matches it or is refused anyway.
                let closed = part.get("additionalProperties") == Some(&Value::Bool(false));
                match part.get("patternProperties").and_then(Value::as_object) {
                    Some(patterns) if closed && patterns.len() == 1 => patterns.values().next(),
                    Some(_) => None,
                    None => part.get("additionalProperties"),
                }
            })
        })
        .collect()
}

/// Returns the schemas of the item at an index.
pub(super) fn item<'s>(parts: &[SchemaPart<'s>], index: usize) -> Vec<&'s Value> {
    parts.iter().filter_map(|part| list(part, "prefixItems").get(index).or_else(|| part.get("items"))).collect()
}

/// Returns the members that a schema names, each with its schema, in the schema's order.
pub(crate) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.as_object().into_iter().flat_map(named_members)
}

/// Returns the members that a part of a schema names, each with its schema.
pub(super) fn named_members(part: SchemaPart<'_>) -> impl Iterator<Item = (&String, &Value)> {
    part.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Tells whether a part of a schema allows members that it does not name, and says something about them.
pub(super) fn allows_others(part: SchemaPart<'_>) -> bool {
    let says = |keyword: &str| part.get(keyword).is_some_and(|rule| *rule != Value::Bool(false));
    ["additionalProperties", "patternProperties", "unevaluatedProperties"].into_iter().any(says)
}

/// Returns the schemas that a keyword applies to the same value as the schema that it stands in.
pub(super) fn in_place<'s>(
    root: &'s Value,
    keyword: &str,
    rule: &'s Value,
) -> Box<dyn Iterator<Item = &'s Value> + 's> {
    match (keyword, rule) {
        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
            let target = target.strip_prefix('#');
            Box::new(target.and_then(|target| root.pointer(target).or_else(|| anchor(root, target))).into_iter())
        }
        ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => Box::new(parts.iter()),
        ("not" | "if" | "then" | "else", part) => Box::new(std::iter::once(part)),
        ("dependentSchemas" | "dependencies", Value::Object(parts)) => Box::new(parts.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Returns the schema that has this anchor.
fn anchor<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    match schema {
        Value::Object(members) => {
            let has_anchor = ["$anchor", "$dynamicAnchor"].iter().any(|keyword| schema[*keyword] == *name);
            has_anchor.then_some(schema).or_else(|| members.values().find_map(|member| anchor(member, name)))
        }
        Value::Array(items) => items.iter().find_map(|item| anchor(item, name)),
        _ => None,
    }
}

/// Returns what a local `$ref` refers to.
pub(super) fn target<'s>(root: &'s Value, part: SchemaPart<'s>) -> Option<&'s Value> {
    let pointer = part.get("$ref")?.as_str()?.strip_prefix('#')?;
    root.pointer(pointer)
}

/// What a schema says of a member of a document.
pub(crate) enum SaidOf<'s> {
    /// What the schema says of it.
    Said(&'s Value),
    /// An object on the way to it lets nothing of this name in.
    Refused,
    /// It is not said plainly.
    Unknown,
}

/// Returns what a schema says of the place that a JSON pointer leads to, by named members and references alone.
pub(crate) fn said_of<'s>(root: &'s Value, pointer: &str) -> SaidOf<'s> {
    let mut node = root;
    for name in pointer.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        let Some(part) = referred(root, node) else { return SaidOf::Unknown };
        let is_item = name == "*" || name.bytes().all(|byte| byte.is_ascii_digit());
        let closed = part.get("additionalProperties") == Some(&Value::Bool(false));
        match part.get("properties").and_then(|properties| properties.get(&name)) {
            Some(Value::Bool(false)) => return SaidOf::Refused,
            Some(member) => node = member,
            None if closed && !is_item && !part.contains_key("patternProperties") => return SaidOf::Refused,
            None => return SaidOf::Unknown,
        }
    }
    referred(root, node).map_or(SaidOf::Unknown, |_| SaidOf::Said(node))
}

/// Returns the schema that a part refers to, or the part itself; `None` if the reference leads nowhere.
pub(crate) fn referred<'s>(root: &'s Value, mut part: &'s Value) -> Option<SchemaPart<'s>> {
    for _ in 0..STEPS {
        let members = part.as_object()?;
        if !members.contains_key("$ref") {
            return Some(members);
        }
        part = target(root, members)?;
    }
    None
}

pub(super) fn list<'s>(part: SchemaPart<'s>, keyword: &str) -> &'s [Value] {
    part.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn type_by_name(name: &str) -> u8 {
    match name {
        "null" => NULL,
        "boolean" => BOOLEAN,
        "integer" | "number" => NUMBER,
        "string" => STRING,
        "array" => ARRAY,
        "object" => OBJECT,
        _ => 0,
    }
}

fn kind(value: &Value) -> u8 {
    match value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Number(_) => NUMBER,
        Value::String(_) => STRING,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    }
}
