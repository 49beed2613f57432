//! What violations say, one example for each kind of rule.

use serde_json::json;

use super::*;

fn violations_of(schema: Value, value: Value) -> Vec<String> {
    Schema::compile(&schema).unwrap().violations(&value).iter().map(Violation::to_string).collect()
}

#[test]
fn all_faults_are_found_and_said_in_words() {
    let schema = json!({
        "type": "object",
        "required": ["id", "status"],
        "additionalProperties": false,
        "properties": {
            "id": {"type": "string", "minLength": 1},
            "status": {"enum": ["in_progress", "completed", "abandoned"]},
            "ems": {"type": "integer", "minimum": 0, "maximum": 100},
            "rate": {"type": "number", "exclusiveMinimum": 0},
            "version": {"const": "1.2"},
            "when": {"type": "string", "format": "date-time"},
            "uuid": {"format": "uuid"},
            "slug": {"type": "string", "pattern": "^[a-z]+$"},
            "flag": {"type": "boolean"},
            "maybe": {"type": ["string", "null"]},
            "ideas": {"type": "array", "minItems": 1, "maxItems": 2, "uniqueItems": true, "items": {"$ref": "#/$defs/idea"}},
            "more": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "minProperties": 1},
            "even": {"multipleOf": 2},
            "never": false,
        },
        "$defs": {"idea": {"type": "object", "required": ["id"], "properties": {"score": {"type": "integer", "maximum": 10}}}},
    });
    let value = json!({
        "stauts": "done",
        "status": "complete",
        "ems": 120,
        "rate": 0,
        "version": "1.1",
        "when": "yesterday",
        "uuid": "dm-001",
        "slug": "A b\u{1b}[2J",
        "flag": "true",
        "maybe": 3,
        "ideas": [{"id": 1, "score": 12}, {"score": "7"}, 5],
        "more": {"A": 1},
        "even": 3,
        "never": 1,
    });
    let mut found = violations_of(schema, value);
    found.sort();
    insta::assert_snapshot!(found.join("\n"), @r#"
    /ems: must be an integer from 0 to 100; found 120
    /even: must be a multiple of 2; found 3
    /flag: must be true or false; found "true", which is text because of its quotes
    /ideas/0/score: must be an integer of at most 10; found 12
    /ideas/1/score: must be an integer of at most 10; found "7", which is text because of its quotes
    /ideas/1: is missing required "id"
    /ideas/2: must be an object; found 5
    /ideas: must have at most 2 items; has 3
    /maybe: must be text or null; found 3
    /more/A: the name "A" is not allowed: it must match the pattern ^[a-z]+$; found "A"
    /never: is not allowed here
    /rate: must be a number above 0; found 0
    /slug: must match the pattern ^[a-z]+$; found "A b␛[2J"
    /status: must be one of in_progress, completed, abandoned; found "complete"; did you mean completed?
    /stauts: "stauts" is not known here; did you mean "status"?
    /uuid: must be a UUID such as 9b2f5c1e-3a4d-4c6b-8f7e-0123456789ab; found "dm-001"
    /version: must be "1.2"; found "1.1"
    /when: must be a date and time such as 2026-01-09T10:30:00Z; found "yesterday"
    is missing required "id"
    "#);
}

#[test]
fn numbers_are_what_they_are() {
    let schema = json!({"properties": {"n": {"type": "integer", "minimum": 0, "maximum": 100}}});
    assert_eq!(violations_of(schema.clone(), json!({"n": 10.0})), [""; 0]);
    assert_eq!(violations_of(schema.clone(), json!({"n": 12.5})), ["/n: must be an integer from 0 to 100; found 12.5"]);
    assert_eq!(
        violations_of(schema, json!({"n": "12"})),
        ["/n: must be an integer from 0 to 100; found \"12\", which is text because of its quotes"]
    );
}

#[test]
fn alternatives_are_described_by_the_one_that_was_meant() {
    let schema = json!({
        "properties": {
            "maybe": {"anyOf": [{"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}, {"type": "null"}]},
            "plain": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "event": {"oneOf": [
                {"properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind"]},
                {"properties": {"kind": {"const": "b"}, "y": {"type": "integer"}}, "required": ["kind"]},
            ]},
            "both": {"oneOf": [{"type": "integer"}, {"minimum": 1}]},
        },
    });
    let value = json!({"maybe": {"id": "x"}, "plain": [], "event": {"kind": "b", "y": null}, "both": 2});
    assert_eq!(
        violations_of(schema, value),
        [
            "/maybe/id: must be an integer; found \"x\"",
            "/plain: must be text or null; found an empty list",
            "/event/y: must be an integer; found nothing (null)",
            "/both: fits several forms of which only one is allowed",
        ]
    );
}

#[test]
fn a_long_wrong_value_is_quoted_in_part() {
    let found = violations_of(json!({"enum": ["a"]}), json!("x".repeat(10_000)));
    assert!(found[0].len() < 120, "{}", found[0]);
    let found = violations_of(json!({"additionalProperties": false}), json!({"x".repeat(10_000): 1}));
    assert!(!found[0].contains(&"x".repeat(100)) || found[0].matches("known").count() == 1);
}

#[test]
fn formats_can_be_remarks() {
    let schema = json!({"format": "uuid"});
    assert_eq!(violations_of(schema.clone(), json!("dm-001-example")).len(), 1);
    assert!(Schema::compile_with(&schema, Formats::Annotations).unwrap().is_valid(&json!("dm-001-example")));
}

#[test]
fn a_schema_fetches_nothing_and_must_be_right() {
    for schema in [
        json!({"$ref": "https://example.org/a.json"}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"$ref": "#/$defs/missing"}),
        json!({"type": "strnig"}),
        json!({"pattern": "("}),
        json!(3),
    ] {
        assert_eq!(Schema::compile(&schema).unwrap_err().code, Code::FlowInvalid, "{schema}");
    }
}

#[test]
fn hostile_patterns_and_deep_values_end() {
    let start = std::time::Instant::now();
    let schema = json!({"pattern": "^(a+)+(?=b)$"});
    assert_eq!(violations_of(schema, json!("a".repeat(5000))).len(), 1);
    let deep = (0..5000).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    assert!(violations_of(json!({}), deep)[0].contains("more than 128 deep"));
    assert!(start.elapsed() < std::time::Duration::from_secs(40));
}
