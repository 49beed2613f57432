//! Estimates what checking a value by a schema costs, before it is done: validation cannot be interrupted.
//!
//! A few lines of schema can ask for more steps than there is time: references that fan out, alternatives that
//! do so again at each level of the value, patterns that backtrack on each of many texts. So this module first
//! walks through schema and value without deciding anything, and counts the steps, rather too many than too few.

use std::collections::HashMap;

use serde_json::Value;

use super::subschema;

/// The most steps of one validation. A large session takes some thousands.
const STEPS: u64 = 150_000;
/// The most parts, patterns, and bytes of patterns that a schema may hold.
const NODES: usize = 20_000;
const PATTERNS: usize = 100;
const PATTERN_BYTES: usize = 10_000;
/// The most states that a pattern can have: one with more does not compile.
const MOST_STATES: usize = 8_000;
/// How many parts of a schema may apply to one and the same value.
const IN_PLACE: u64 = 5_000;

/// Returns what makes a schema too large or endless, if anything does.
pub(super) fn refuse(schema: &Value) -> Option<String> {
    let mut count = Count::default();
    count.visit(schema, None);
    if count.nodes > NODES {
        return Some(format!("it has more than {NODES} parts"));
    }
    if count.patterns > PATTERNS || count.bytes > PATTERN_BYTES {
        return Some(format!("it has more than {PATTERNS} patterns, or more than {PATTERN_BYTES} bytes of them"));
    }
    let mut walk = InPlaceCost { root: schema, known: HashMap::new() };
    count.schemas.iter().find_map(|part| match walk.cost(part) {
        None => Some("it refers to itself without an end".to_owned()),
        Some(cost) if cost > IN_PLACE => Some("its references and alternatives fan out too far".to_owned()),
        Some(_) => None,
    })
}

/// Returns the most steps that a schema takes for each part of a value, if the schema is plain: if it looks at
/// each part once.
pub(super) fn plain_steps(schema: &Value) -> Option<u64> {
    let members = match schema {
        Value::Bool(_) => return Some(1),
        Value::Object(members) => members,
        _ => return None,
    };
    members.iter().try_fold(1, |most, (keyword, rule)| {
        let (own, below) = match (keyword.as_str(), rule) {
            ("properties", Value::Object(all)) => {
                (all.len(), all.values().try_fold(1, |most, part| Some(most.max(plain_steps(part)?)))?)
            }
            ("items", rule @ (Value::Object(_) | Value::Bool(_))) => (0, plain_steps(rule)?),
            ("enum", Value::Array(options)) => (options.len(), 1),
            ("additionalProperties", Value::Bool(_)) => (0, 1),
            (
                "$schema" | "$id" | "$comment" | "title" | "description" | "default" | "examples" | "type" | "const"
                | "format" | "required" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "minLength"
                | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" | "multipleOf",
                _,
            ) => (0, 1),
            _ => return None,
        };
        Some(most.max(below).max(1 + u64::try_from(own).ok()?))
    })
}

/// Tells whether a value is so small that a plain schema, with `each` steps for each part, checks it soon enough.
pub(super) fn is_small(value: &Value, each: u64) -> bool {
    // Beside its own steps, a part takes one to be looked at, and one more for `additionalProperties`.
    fn count(value: &Value, left: &mut u64) -> Option<()> {
        *left = left.checked_sub(1)?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| count(item, left)),
            Value::Object(members) => members.values().try_for_each(|member| count(member, left)),
            _ => Some(()),
        }
    }
    count(value, &mut (STEPS / (4 * each))).is_some()
}

/// Tells whether checking this value would take too long.
pub(super) fn is_too_much(schema: &Value, value: &Value) -> bool {
    let mut walk = CostWalk { root: schema, left: STEPS };
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

/// Counts the parts of a schema that apply to one value, with references followed.
struct InPlaceCost<'s> {
    root: &'s Value,
    /// The cost of each schema, by its address; `None` while it is being counted, so that a circle shows.
    known: HashMap<*const Value, Option<u64>>,
}

impl<'s> InPlaceCost<'s> {
    fn cost(&mut self, schema: &'s Value) -> Option<u64> {
        let Value::Object(members) = schema else { return Some(1) };
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            return *known;
        }
        self.known.insert(std::ptr::from_ref(schema), None);
        let mut cost = 1_u64;
        for part in members.iter().flat_map(|(keyword, rule)| subschema::in_place(self.root, keyword, rule)) {
            cost = cost.saturating_add(self.cost(part)?);
        }
        self.known.insert(std::ptr::from_ref(schema), Some(cost));
        Some(cost)
    }
}

/// Walks through schema and value together, as long as there are steps left.
struct CostWalk<'s> {
    root: &'s Value,
    left: u64,
}

impl<'s> CostWalk<'s> {
    fn take(&mut self, steps: usize) -> Option<()> {
        self.left = self.left.checked_sub(u64::try_from(steps).ok()?)?;
        Some(())
    }

    fn visit(&mut self, schema: &'s Value, value: &Value) -> Option<()> {
        self.take(1)?;
        let Value::Object(part) = schema else { return Some(()) };
        // The validator evaluates the rest of the schema again, to find out what was not evaluated.
        let again = part.keys().any(|keyword| matches!(keyword.as_str(), "unevaluatedProperties" | "unevaluatedItems"));
        for (keyword, rule) in part {
            for other in subschema::in_place(self.root, keyword, rule) {
                for _ in 0..=usize::from(again) {
                    self.visit(other, value)?;
                }
            }
            match (keyword.as_str(), rule, value) {
                ("enum", Value::Array(options), _) => self.take(options.len())?,
                ("pattern", Value::String(pattern), Value::String(text)) => self.take(search(pattern, text))?,
                ("properties", Value::Object(schemas), Value::Object(members)) => {
                    self.take(schemas.len())?;
                    for (name, member) in members {
                        if let Some(schema) = schemas.get(name) {
                            self.visit(schema, member)?;
                        }
                    }
                }
                ("patternProperties", Value::Object(patterns), Value::Object(members)) => {
                    for (name, member) in members {
                        for (pattern, schema) in patterns {
                            self.take(search(pattern, name))?;
                            self.visit(schema, member)?;
                        }
                    }
                }
                ("additionalProperties" | "unevaluatedProperties", schema, Value::Object(members)) => {
                    members.values().try_for_each(|member| self.visit(schema, member))?;
                }
                ("propertyNames", schema, Value::Object(members)) => {
                    members.keys().try_for_each(|name| self.visit(schema, &Value::String(name.clone())))?;
                }
                ("prefixItems" | "items", Value::Array(schemas), Value::Array(items)) => {
                    schemas.iter().zip(items).try_for_each(|(schema, item)| self.visit(schema, item))?;
                }
                ("items" | "additionalItems" | "unevaluatedItems" | "contains", schema, Value::Array(items)) => {
                    items.iter().try_for_each(|item| self.visit(schema, item))?;
                }
                ("uniqueItems", Value::Bool(true), Value::Array(items)) => {
                    self.take(items.len().saturating_mul(items.len()) / 100)?;
                }
                _ => {}
            }
        }
        Some(())
    }
}

/// Returns about how many states the counts (`{n,m}`) of a pattern make of one: each letter of a text can meet all of them.
fn counts(pattern: &str) -> usize {
    let digits = pattern.split('{').skip(1).map(|rest| rest.split('}').next().unwrap_or_default());
    let largest = digits.map(|count| count.split(',').filter_map(|digits| digits.trim().parse::<usize>().ok()).max());
    largest.flatten().fold(1_usize, |product, count| product.saturating_mul(count)).min(MOST_STATES)
}

/// Returns about how many steps a search takes: a pattern that backtracks may take far more than a text has letters.
fn search(pattern: &str, text: &str) -> usize {
    let repeats = pattern.matches(['*', '+', '{', '?']).count();
    let counted = text.len().saturating_mul(counts(pattern)) / 1024;
    1 + pattern.len() / 16 + text.len().saturating_mul(1 + repeats.saturating_mul(repeats)) / 64 + counted
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
    fn a_plain_schema_spares_the_walk_and_only_where_that_agrees_with_it() {
        let plain_one = json!({ "type": "object", "properties": {
            "rows": { "type": "array", "items": { "enum": [1, 2, 3] } },
        }});
        assert_eq!(plain_steps(&plain_one), Some(4));
        for not in [json!({ "pattern": "a" }), json!({ "items": { "$ref": "#" } }), json!({ "future": 1 })] {
            assert_eq!(plain_steps(&not), None, "{not}");
        }
        for length in [10, 1000, 9000, 100_000] {
            let value = json!({ "rows": vec![1; length] });
            if is_small(&value, 4) {
                assert!(!is_too_much(&plain_one, &value), "{length}");
            }
        }
        assert!(is_small(&json!({ "rows": vec![1; 9000] }), 4) && !is_small(&json!({ "rows": vec![1; 10_000] }), 4));
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
    fn a_pattern_that_counts_far_is_too_much_for_a_long_text() {
        let held =
            |pattern: &str, length: usize| is_too_much(&json!({ "pattern": pattern }), &json!("ab".repeat(length / 2)));
        assert!(held("[ab]*a[ab]{3000}[cd]", 1_000_000) && held("^((a|b){50}){60}c", 1_000_000));
        for (honest, length) in [(r"^\d{4}-\d{2}-\d{2}$", 10), ("^.{1,4000}$", 4000), ("^[^\n]{0,80}$", 80)] {
            assert!(!held(honest, length), "{honest}");
        }
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
