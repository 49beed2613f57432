//! Constrained decoding: a JSON Schema, or a choice between tools and plain text, as a mask over tokens.
//!
//! A reply that follows a schema is only valid if it also ends. Small models tend to fill a list for ever, so
//! this module bounds whatever a schema leaves open: a reply that is valid by the bounded schema is valid by
//! the given one, too.

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{InferenceCapabilities, SimpleVob, TokEnv};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Map, Value, json};

use super::engine_failure;
use crate::error::{Code, Failure, Result};
use crate::model::chat::ChatRequest;

/// How long strings (in characters) and lists may get where the schema sets no limit.
#[derive(Clone, Copy)]
pub(super) struct LengthBounds {
    pub(super) text: u64,
    pub(super) items: u64,
}

/// The largest number where the schema sets no limit: digits must end, too.
const NUMBER: i64 = 999_999_999;

/// Compiles grammars for one vocabulary. The factory is made at first need: its tables take half a second.
pub(super) struct Grammars {
    env: TokEnv,
    factory: Option<ParserFactory>,
}

/// Holds a reply to its grammar.
pub(super) struct Guide(Matcher);

impl Grammars {
    pub(super) fn new(env: TokEnv) -> Grammars {
        Grammars { env, factory: None }
    }

    /// Returns the guide for a request's reply; `None` if the reply may be anything.
    pub(super) fn guide(&mut self, request: &ChatRequest, bounds: LengthBounds) -> Result<Option<Guide>> {
        let Some(form) = form(request, bounds) else { return Ok(None) };
        let factory = match &mut self.factory {
            Some(factory) => factory,
            none => {
                let capabilities = InferenceCapabilities { ff_tokens: true, ..Default::default() };
                let slices = llguidance::earley::SlicedBiasComputer::json_slices();
                let mut factory = ParserFactory::new(&self.env, capabilities, &slices).map_err(engine_failure)?;
                factory.quiet();
                factory.limits_mut().verbose_errors = false;
                none.insert(factory)
            }
        };
        let matcher = Matcher::new(factory.create_parser(grammar(form)));
        match matcher.get_error() {
            Some(error) => Err(Failure::new(Code::RequestInvalid, "the local model cannot follow this schema")
                .because(error.lines().next().unwrap_or_default())
                .hint("make the schema simpler, or use another model")),
            None => Ok(Some(Guide(matcher))),
        }
    }
}

impl Guide {
    /// Makes the tokens impossible that the grammar does not allow next.
    pub(super) fn mask(&mut self, logits: &mut [f32]) -> Result<()> {
        let allowed: SimpleVob = self.0.compute_mask_or_eos().map_err(engine_failure)?;
        let end = logits.len().min(allowed.len());
        allowed.iter_unset_entries(|token| {
            if token < end {
                logits[token] = f32::NEG_INFINITY;
            }
        });
        logits[end..].fill(f32::NEG_INFINITY);
        Ok(())
    }

    /// Takes the chosen token, and returns the tokens that must follow it.
    pub(super) fn take(&mut self, token: u32) -> Result<Vec<u32>> {
        self.0.consume_token(token).map_err(engine_failure)?;
        Ok(if self.0.is_stopped() { Vec::new() } else { self.0.consume_ff_tokens() })
    }

    pub(super) fn is_done(&self) -> bool {
        self.0.is_stopped()
    }
}

/// The form of a reply that may not be just anything.
pub(super) enum ReplyForm {
    /// A value by this schema.
    Value(Value),
    /// A call by this schema, or words that do not begin like one.
    CallOrWords(Value),
}

/// Returns the form of a request's reply; `None` if the reply may be anything.
pub(super) fn form(request: &ChatRequest, bounds: LengthBounds) -> Option<ReplyForm> {
    let schema = request.schema.as_ref().map(|schema| bounded_schema(schema, bounds));
    if request.tools.is_empty() {
        return Some(ReplyForm::Value(schema?));
    }
    let mut choices: Vec<Value> = Vec::new();
    for tool in &request.tools {
        let mut arguments = bounded_schema(&tool.parameters, bounds);
        rebase(&mut arguments, &format!("#/anyOf/{}/properties/arguments", choices.len()));
        choices.push(json!({
            "type": "object",
            "properties": { "tool": { "const": tool.name }, "arguments": arguments },
            "required": ["tool", "arguments"],
            "additionalProperties": false,
        }));
    }
    let text_allowed = schema.is_none() && !request.wants_tool();
    if let Some(mut schema) = schema.filter(|_| !request.wants_tool()) {
        rebase(&mut schema, &format!("#/anyOf/{}", choices.len()));
        choices.push(schema);
    }
    let choice = json!({ "anyOf": choices });
    Some(if text_allowed { ReplyForm::CallOrWords(choice) } else { ReplyForm::Value(choice) })
}

fn grammar(form: ReplyForm) -> TopLevelGrammar {
    match form {
        ReplyForm::Value(schema) => TopLevelGrammar::from_json_schema(with_options(schema)),
        ReplyForm::CallOrWords(call) => {
            let call = with_options(call);
            // Plain text may not begin like JSON or like a fence around it: then the model means a tool.
            let rules = format!("start: call | words\ncall: %json {call}\nwords: /[^{{`\\s](?s:.*)/\n");
            TopLevelGrammar::from_lark(rules)
        }
    }
}

/// Returns a schema with the options of llguidance, which other readers pass over.
pub(super) fn with_options(mut schema: Value) -> Value {
    if !schema.is_object() {
        schema = scalar(LengthBounds { text: 200, items: 1 });
    }
    // Compact JSON costs fewer tokens. Keywords that the compiler does not know are checked after generating.
    schema["x-guidance"] = json!({ "whitespace_flexible": false, "lenient": true, "coerce_one_of": true });
    schema
}

/// Returns a schema that allows only values that the given one allows, and none of unbounded length.
pub(super) fn bounded_schema(schema: &Value, bounds: LengthBounds) -> Value {
    let mut schema = schema.clone();
    // Closing an object that is one part of `allOf` would forbid what the other parts require.
    let close = !schema.to_string().contains("\"allOf\"");
    bound(&mut schema, bounds, close);
    schema
}

/// Counts the strings of unbounded length that a reply may have at most.
pub(super) fn count_strings(schema: &Value, items: u64) -> u64 {
    let Value::Object(map) = schema else { return 0 };
    let parts = |key: &str| map.get(key).and_then(Value::as_array).into_iter().flatten();
    let fields = map.get("properties").and_then(Value::as_object).into_iter().flatten();
    let max_items = map.get("maxItems").and_then(Value::as_u64).unwrap_or(items);
    let choices = parts("anyOf").chain(parts("oneOf")).map(|part| count_strings(part, items)).max();
    let is_open_string = may_be(map, "string", &["minLength"]) && !has(map, &["maxLength", "enum", "const", "format"]);
    let fields = fields.map(|(_, field)| count_strings(field, items));
    let listed = map.get("items").map_or(0, |part| count_strings(part, items).saturating_mul(max_items));
    let counts = fields.chain(parts("prefixItems").chain(parts("allOf")).map(|part| count_strings(part, items)));
    counts
        .fold(u64::from(is_open_string), u64::saturating_add)
        .saturating_add(choices.unwrap_or(0))
        .saturating_add(listed)
}

fn bound(schema: &mut Value, bounds: LengthBounds, close: bool) {
    const ANNOTATIONS: &[&str] = &["title", "description", "default", "examples", "$comment", "$schema", "$id"];
    let Value::Object(map) = schema else {
        if *schema == Value::Bool(true) {
            *schema = scalar(bounds);
        }
        return;
    };
    if map.keys().all(|key| ANNOTATIONS.contains(&key.as_str())) {
        *schema = scalar(bounds);
        return;
    }
    let combined = ["anyOf", "oneOf", "$ref", "if"].iter().any(|key| map.contains_key(*key));
    let inner = close && !(combined && map.contains_key("properties"));
    for (key, value) in map.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(parts)) => {
                parts.values_mut().for_each(|part| bound(part, bounds, close));
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(parts)) => {
                parts.iter_mut().for_each(|part| bound(part, bounds, inner));
            }
            ("items", part) => bound(part, bounds, close),
            ("additionalProperties", part @ Value::Object(_)) => bound(part, bounds, close),
            _ => {}
        }
    }
    if map.contains_key("enum") || map.contains_key("const") {
        return;
    }
    if may_be(map, "string", &["minLength"]) && !has(map, &["maxLength", "pattern", "format"]) {
        let most = bounds.text.max(map.get("minLength").and_then(Value::as_u64).unwrap_or(0));
        map.insert("maxLength".into(), most.into());
    }
    if may_be(map, "array", &["items", "prefixItems", "minItems"]) && !has(map, &["maxItems"]) {
        let prefix = map.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        let most = bounds.items.max(prefix).max(map.get("minItems").and_then(Value::as_u64).unwrap_or(0));
        map.insert("maxItems".into(), most.into());
        if !has(map, &["items", "prefixItems"]) {
            map.insert("items".into(), scalar(bounds));
        }
    }
    if may_be(map, "integer", &[]) || may_be(map, "number", &["multipleOf"]) {
        bound_number(map);
    }
    if may_be(map, "number", &[]) && !has(map, &["multipleOf"]) {
        // The digits after the point must end, too.
        map.insert("multipleOf".into(), json!(0.001));
    }
    let known = |name: &Value| name.as_str().is_some_and(|name| map["properties"].get(name).is_some());
    let open = ["additionalProperties", "patternProperties", "minProperties", "unevaluatedProperties"];
    if close && !combined && map.contains_key("properties") && !has(map, &open) {
        let required = map.get("required").and_then(Value::as_array);
        if required.is_none_or(|names| names.iter().all(known)) {
            map.insert("additionalProperties".into(), false.into());
        }
    }
}

fn bound_number(map: &mut Map<String, Value>) {
    let limit = |keys: [&str; 2]| keys.iter().find_map(|key| map.get(*key).and_then(Value::as_f64));
    let (least, most) = (limit(["minimum", "exclusiveMinimum"]), limit(["maximum", "exclusiveMaximum"]));
    if most.is_none() {
        map.insert("maximum".into(), (NUMBER.max(least.unwrap_or(0.0).ceil() as i64 + NUMBER)).into());
    }
    if least.is_none() {
        map.insert("minimum".into(), ((-NUMBER).min(most.unwrap_or(0.0).floor() as i64 - NUMBER)).into());
    }
}

fn has(map: &Map<String, Value>, keys: &[&str]) -> bool {
    keys.iter().any(|key| map.contains_key(*key))
}

/// Tells whether a schema allows this type: by its name, or by a keyword that only makes sense for the type.
fn may_be(map: &Map<String, Value>, kind: &str, keywords: &[&str]) -> bool {
    match map.get("type") {
        Some(Value::String(name)) => name == kind,
        Some(Value::Array(names)) => names.iter().any(|name| name == kind),
        _ => has(map, keywords),
    }
}

/// Returns the schema for "anything": values that cannot grow.
fn scalar(bounds: LengthBounds) -> Value {
    json!({ "anyOf": [
        { "type": "string", "maxLength": bounds.text },
        { "type": "integer", "minimum": -NUMBER, "maximum": NUMBER },
        { "type": "boolean" },
        { "type": "null" },
    ] })
}

/// Makes a schema's references point to `place`, where the schema now stands in a larger one.
fn rebase(schema: &mut Value, place: &str) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(target) if key == "$ref" && target.starts_with('#') => {
                        target.replace_range(..1, place)
                    }
                    value => rebase(value, place),
                }
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(|part| rebase(part, place)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: LengthBounds = LengthBounds { text: 100, items: 5 };

    #[test]
    fn what_a_schema_leaves_open_is_bounded_and_what_it_says_is_kept() {
        let schema = json!({ "type": "object", "required": ["a"], "properties": {
            "a": { "type": "array", "items": { "type": "string" }, "minItems": 7 },
            "b": { "type": ["string", "null"], "maxLength": 3 },
            "c": { "type": "integer", "minimum": 2_000_000_000 },
            "d": { "enum": ["x"], "type": "string" },
            "e": {},
        } });
        assert_eq!(
            bounded_schema(&schema, BOUNDS),
            json!({ "type": "object", "required": ["a"], "properties": {
                "a": { "type": "array", "items": { "type": "string", "maxLength": 100 }, "minItems": 7, "maxItems": 7 },
                "b": { "type": ["string", "null"], "maxLength": 3 },
                "c": { "type": "integer", "minimum": 2_000_000_000, "maximum": 2_999_999_999u64 },
                "d": { "enum": ["x"], "type": "string" },
                "e": scalar(BOUNDS),
            }, "additionalProperties": false })
        );
    }

    #[test]
    fn the_strings_without_a_bound_are_counted() {
        let text = json!({ "type": "string" });
        let schema = json!({ "type": "object", "properties": {
            "a": text, "b": { "type": "string", "maxLength": 5 }, "d": { "anyOf": [text, { "type": "null" }] },
            "c": { "type": "array", "items": { "properties": { "e": text, "f": text } }, "maxItems": 3 },
        } });
        assert_eq!(count_strings(&schema, 5), 8);
        assert_eq!(count_strings(&json!({ "items": text }), 5), 5);
    }

    #[test]
    fn parts_of_one_object_are_left_open() {
        let schema = json!({ "allOf": [{ "properties": { "a": { "type": "null" } } }, { "required": ["b"] }] });
        assert_eq!(bounded_schema(&schema, BOUNDS), schema);
    }

    #[test]
    fn references_follow_a_schema_into_a_larger_one() {
        let mut schema = json!({ "items": { "$ref": "#/$defs/x" }, "properties": { "$ref": { "type": "null" } } });
        rebase(&mut schema, "#/anyOf/1");
        assert_eq!(schema["items"]["$ref"], "#/anyOf/1/$defs/x");
    }
}
