//! What checking a value by a schema may take, found out before it is done: validation is not interrupted.
//!
//! A few lines of schema can ask for more steps than there is time: references that fan out, alternatives that
//! do so again at each level of the value, patterns that backtrack on each of many texts. So the way through
//! schema and value is walked first, without deciding anything, and its steps are counted. That counts too much
//! rather than too little.

use std::collections::HashMap;

use serde_json::Value;

/// Steps of one validation. A large session takes some thousands.
const STEPS: u64 = 150_000;
/// What a schema may hold: schemas (about), patterns, and bytes of patterns.
const NODES: usize = 20_000;
const PATTERNS: usize = 100;
const PATTERN_BYTES: usize = 10_000;
/// How much of a schema may speak about one and the same value.
const IN_PLACE: u64 = 5_000;

/// Keywords whose schemas speak about the same value.
const SAME: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// Says what makes a schema too large or endless, if anything does.
pub(super) fn refuse(schema: &Value) -> Option<String> {
    let mut count = Count::default();
    count.visit(schema, None);
    if count.nodes > NODES {
        return Some(format!("it has more than {NODES} parts"));
    }
    if count.patterns > PATTERNS || count.bytes > PATTERN_BYTES {
        return Some(format!("it has more than {PATTERNS} patterns, or more than {PATTERN_BYTES} bytes of them"));
    }
    let mut walk = InPlace { root: schema, known: HashMap::new() };
    count.schemas.iter().find_map(|part| match walk.cost(part) {
        None => Some("it refers to itself without an end".to_owned()),
        Some(cost) if cost > IN_PLACE => Some("its references and alternatives fan out too far".to_owned()),
        Some(_) => None,
    })
}

/// Tells whether checking this value would take too long.
pub(super) fn is_too_much(schema: &Value, value: &Value) -> bool {
    let mut walk = Walk { root: schema, left: STEPS };
    walk.visit(schema, value).is_none()
}

/// Counts what a schema holds, and gathers everything in it that could be a schema.
#[derive(Default)]
struct Count<'s> {
    nodes: usize,
    patterns: usize,
    bytes: usize,
    schemas: Vec<&'s Value>,
}

impl<'s> Count<'s> {
    fn visit(&mut self, value: &'s Value, keyword: Option<&str>) {
        self.nodes += 1;
        if self.nodes > NODES {
            return;
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.visit(item, None)),
            Value::Object(members) => {
                self.schemas.push(value);
                for (name, member) in members {
                    if keyword == Some("patternProperties") {
                        self.patterns += 1;
                        self.bytes += name.len();
                    }
                    if name == "pattern"
                        && let Some(pattern) = member.as_str()
                    {
                        self.patterns += 1;
                        self.bytes += pattern.len();
                    }
                    self.visit(member, Some(name));
                }
            }
            _ => {}
        }
    }
}

/// How much of a schema speaks about one value, references followed.
struct InPlace<'s> {
    root: &'s Value,
    /// By the schema's address; nothing while it is being found out, so that a circle shows.
    known: HashMap<*const Value, Option<u64>>,
}

impl<'s> InPlace<'s> {
    fn cost(&mut self, schema: &'s Value) -> Option<u64> {
        let Value::Object(_) = schema else { return Some(1) };
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            return *known;
        }
        self.known.insert(std::ptr::from_ref(schema), None);
        let mut cost = 1_u64;
        for part in same(self.root, schema) {
            cost = cost.saturating_add(self.cost(part)?);
        }
        self.known.insert(std::ptr::from_ref(schema), Some(cost));
        Some(cost)
    }
}

/// Goes through schema and value together, as long as there are steps left.
struct Walk<'s> {
    root: &'s Value,
    left: u64,
}

impl<'s> Walk<'s> {
    fn take(&mut self, steps: usize) -> Option<()> {
        self.left = self.left.checked_sub(u64::try_from(steps).ok()?)?;
        Some(())
    }

    fn visit(&mut self, schema: &'s Value, value: &Value) -> Option<()> {
        self.take(1)?;
        let Value::Object(part) = schema else { return Some(()) };
        // What was not evaluated is found out by doing the rest again.
        let again = part.contains_key("unevaluatedProperties") || part.contains_key("unevaluatedItems");
        for _ in 0..=usize::from(again) {
            for other in same(self.root, schema) {
                self.visit(other, value)?;
            }
        }
        match value {
            Value::String(text) => {
                if let Some(pattern) = part.get("pattern").and_then(Value::as_str) {
                    self.take(search(pattern, text))?;
                }
            }
            Value::Array(items) => self.items(part, items)?,
            Value::Object(members) => {
                let own = part.get("properties").and_then(Value::as_object);
                let patterns = part.get("patternProperties").and_then(Value::as_object);
                self.take(own.map_or(0, serde_json::Map::len))?;
                for (name, member) in members {
                    if let Some(schema) = own.and_then(|own| own.get(name)) {
                        self.visit(schema, member)?;
                    }
                    for (pattern, schema) in patterns.into_iter().flatten() {
                        self.take(search(pattern, name))?;
                        self.visit(schema, member)?;
                    }
                    for keyword in ["additionalProperties", "unevaluatedProperties"] {
                        if let Some(schema) = part.get(keyword) {
                            self.visit(schema, member)?;
                        }
                    }
                    if let Some(schema) = part.get("propertyNames") {
                        self.visit(schema, &Value::String(name.clone()))?;
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if let Some(Value::Array(options)) = part.get("enum") {
            self.take(options.len())?;
        }
        Some(())
    }

    fn items(&mut self, part: &'s serde_json::Map<String, Value>, items: &[Value]) -> Option<()> {
        let prefix = part.get("prefixItems").or_else(|| part.get("items")).and_then(Value::as_array);
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = prefix.and_then(|prefix| prefix.get(index)) {
                self.visit(schema, item)?;
            }
            for keyword in ["items", "additionalItems", "unevaluatedItems", "contains"] {
                if let Some(schema) = part.get(keyword).filter(|schema| !schema.is_array()) {
                    self.visit(schema, item)?;
                }
            }
        }
        if part.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.take(items.len().saturating_mul(items.len()) / 100)?;
        }
        Some(())
    }
}

/// Returns about how many steps a search takes: what backtracks may try far more than a text has letters.
fn search(pattern: &str, text: &str) -> usize {
    let repeats = pattern.matches(['*', '+', '{', '?']).count();
    1 + pattern.len() / 16 + text.len().saturating_mul(1 + repeats.saturating_mul(repeats)) / 64
}

/// Returns the schemas that speak about the same value as this one.
fn same<'s>(root: &'s Value, schema: &'s Value) -> impl Iterator<Item = &'s Value> {
    let references = ["$ref", "$dynamicRef", "$recursiveRef"].into_iter().filter_map(move |keyword| {
        let target = schema.get(keyword)?.as_str()?;
        let target = target.strip_prefix('#')?;
        root.pointer(target).or_else(|| anchor(root, target))
    });
    let parts = SAME.iter().filter_map(move |keyword| schema.get(*keyword)).flat_map(|part| match part {
        Value::Array(parts) => parts.as_slice(),
        part => std::slice::from_ref(part),
    });
    let dependent = ["dependentSchemas", "dependencies"].into_iter();
    let dependent = dependent.filter_map(move |keyword| schema.get(keyword)?.as_object()).flat_map(|all| all.values());
    references.chain(parts).chain(dependent)
}

/// Returns the schema that has this anchor.
fn anchor<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    match schema {
        Value::Object(members) => {
            let own = ["$anchor", "$dynamicAnchor"].iter().any(|keyword| schema[*keyword] == *name);
            own.then_some(schema).or_else(|| members.values().find_map(|member| anchor(member, name)))
        }
        Value::Array(items) => items.iter().find_map(|item| anchor(item, name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_that_refers_to_itself_below_is_fine() {
        let tree = json!({ "properties": { "children": { "type": "array", "items": { "$ref": "#" } } } });
        assert_eq!(refuse(&tree), None);
        assert!(!is_too_much(&tree, &json!({ "children": [{ "children": [] }, {}] })));
    }

    #[test]
    fn circles_and_fans_are_refused() {
        assert!(refuse(&json!({ "$ref": "#" })).is_some());
        assert!(refuse(&json!({ "$anchor": "a", "allOf": [{ "$ref": "#a" }] })).is_some());
        let step = |n: usize| {
            (
                format!("s{n}"),
                json!({ "anyOf": [{ "$ref": format!("#/$defs/s{}", n + 1) }, { "$ref": format!("#/$defs/s{}", n + 1) }] }),
            )
        };
        let defs: Value = (0..40).map(step).chain([("s40".to_owned(), json!({}))]).collect();
        assert!(refuse(&json!({ "$defs": defs })).is_some());
    }

    #[test]
    fn what_doubles_with_each_level_is_too_much() {
        let deeper = json!({ "properties": { "x": { "$ref": "#" } } });
        let schema = json!({ "anyOf": [deeper, deeper] });
        assert_eq!(refuse(&schema), None);
        let value = (0..60).fold(json!(1), |value, _| json!({ "x": value }));
        assert!(is_too_much(&schema, &value));
    }
}
