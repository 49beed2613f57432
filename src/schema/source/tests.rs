//! The rules of reading: what a file may be, and how each refusal names its place and reason.

use std::time::{Duration, Instant};

use serde_json::json;

use super::*;

fn yaml(text: &str) -> Value {
    parse(text, Format::Yaml, "a.yaml").unwrap()
}

fn refusal(text: &str, format: Format) -> String {
    let failure = parse(text, format, "a").unwrap_err();
    assert_eq!(failure.code, Code::DocumentUnreadable);
    failure.message
}

#[test]
fn plain_words_are_of_the_core_schema_and_quoted_ones_are_text() {
    let text = "a: no\nb: 'true'\nc: \"017\"\nd: 017\ne: 1_000\nf: 2026-01-09\ng: ~\nh:\ni: |\n  12\n1: x\n";
    assert_eq!(
        yaml(text),
        json!({"a": "no", "b": "true", "c": "017", "d": 17, "e": "1_000", "f": "2026-01-09", "g": null, "h": null,
            "i": "12\n", "1": "x"})
    );
}

#[test]
fn line_ends_and_byte_order_marks_do_not_matter() {
    for (text, format) in [
        ("\u{feff}a: x\r\nb:\r\n  - |\r\n    one\r\n    two\r\n", Format::Yaml),
        ("\u{feff}{\"a\": \"x\",\r\n\"b\": [\"one\\ntwo\\n\"]}\r\n", Format::Json),
    ] {
        let text = decode(text.as_bytes(), "a").unwrap();
        assert_eq!(parse(text, format, "a").unwrap(), json!({"a": "x", "b": ["one\ntwo\n"]}));
    }
}

#[test]
fn what_is_not_utf_8_is_refused_with_its_place() {
    let failure = decode(b"a: 1\nb: caf\xe9\n", "a.yaml").unwrap_err();
    assert_eq!(failure.message, "a.yaml:2:7: is not UTF-8 here; save the file as UTF-8");
    assert!(decode(b"\xff\xfea\0", "a.yaml").unwrap_err().message.contains("UTF-16"));
}

#[test]
fn yaml_refusals_name_place_and_reason() {
    for (text, place, reason) in [
        ("a: 1\nb: 2\na: 3\n", "3:1", "the key \"a\" is given twice"),
        ("x: {a: 1, \"a\": 2}", "1:11", "the key \"a\" is given twice"),
        ("a: &a {b: 1}\nc:\n  <<: *a\n", "3:3", "merge keys"),
        ("a: !!str 1\n", "1:10", "the tag !!str is not allowed"),
        ("a: !x [1]\n", "1:7", "the tag !x is not allowed"),
        ("a: 1\n---\nb: 2\n", "2:1", "a second document"),
        ("%YAML 1.1\n---\na: 1\n", "2:1", "another YAML than 1.2"),
        ("? [a]\n: 1\n", "1:3", "a key must be plain or quoted text"),
        ("~: 1\n", "1:1", "a key is empty or null"),
        ("a: &a [*a]\n", "1:8", "inside of what it repeats"),
        ("a: *b\n", "1:4", "unknown anchor"),
        ("a: .inf\n", "1:4", "infinity"),
        ("a: 99999999999999999999\n", "1:4", "too many digits"),
        ("a: [1, 2\nb: 3\n", "2:2", ""),
        ("a: 1\n\tb: 2\n", "1:4", "found a tab"),
        ("", "1:1", "the file is empty"),
        (" \n\u{feff}\n", "1:1", "the file is empty"),
    ] {
        let message = refusal(text, Format::Yaml);
        assert!(message.starts_with(&format!("a:{place}: ")) && message.contains(reason), "{text:?}: {message}");
    }
}

#[test]
fn json_refusals_name_place_and_reason() {
    for (text, place, reason) in [
        ("{\"a\": 1,\n \"a\": 2}", "2:2", "the key \"a\" is given twice"),
        ("{\"é\": \"é\", b: 1}", "1:12", "expected a key in double quotes"),
        ("{\"a\" 1}", "1:6", "expected `:`"),
        ("[1 2]", "1:4", "expected `,` or `]`"),
        ("[1,]", "1:3", "a comma stands after the last item"),
        ("[,1]", "1:2", "expected a value"),
        ("[1", "1:3", "the text ends"),
        ("{\"a\":", "1:6", "the text ends"),
        ("[1] x", "1:5", "more text"),
        ("[tru]", "1:2", "expected a value"),
        ("[01]", "1:2", "this number is wrong"),
        ("[1e999]", "1:2", "this number is wrong"),
        ("[99999999999999999999]", "1:2", "too many digits"),
        ("[\"a\nb\"]", "1:2", "this text in quotes is wrong"),
        ("[\"\\x\"]", "1:2", "this text in quotes is wrong"),
        ("[\"a]", "1:2", "does not end"),
        ("// c\n1", "1:1", "expected a value"),
        ("\n", "1:1", "the file is empty"),
    ] {
        let message = refusal(text, Format::Json);
        assert!(message.starts_with(&format!("a:{place}: ")) && message.contains(reason), "{text:?}: {message}");
    }
}

#[test]
fn aliases_repeat_what_they_name() {
    let text = "a: &a {b: &b [1]}\nc: *a\nd: *b\ne: &e text\nf: [*e]\n";
    assert_eq!(yaml(text), json!({"a": {"b": [1]}, "c": {"b": [1]}, "d": [1], "e": "text", "f": ["text"]}));
}

#[test]
fn lists_may_stand_128_deep_and_no_deeper() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert!(parse(&nested(128), Format::Json, "a").is_ok());
        assert!(refusal(&nested(129), Format::Json).contains("more than 128 deep"));
    }
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nested(128), Format::Yaml, "a").is_ok());
    assert!(refusal(&nested(129), Format::Yaml).contains("more than 128 deep"));
    let alias = format!("a: &a {}\nb: {}*a{}\n", nested(100), "[".repeat(40), "]".repeat(40));
    assert!(refusal(&alias, Format::Yaml).contains("more than 128 deep"));
}

#[test]
fn bombs_are_refused_at_once() {
    let laughs: String =
        (1..10).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", "))).collect();
    let row = format!("&a [{}]", vec!["1"; 3000].join(", "));
    let bombs = [
        format!("a0: &a0 lol\n{laughs}"),
        format!("a: {row}\nb: [{}]\n", vec!["*a"; 3000].join(", ")),
        format!("a: &a {}\nb: [{}]\n", "x".repeat(1_000_000), vec!["*a"; 1000].join(", ")),
        "{a: ".repeat(100_000),
        "- ".repeat(50_000),
        "[".repeat(100_000),
        "? ".repeat(50_000),
        "&a [".repeat(50_000),
        format!("{}: 1", "x".repeat(1_000_000)),
    ];
    for bomb in bombs {
        let start = Instant::now();
        assert!(parse(&bomb, Format::Yaml, "a").is_err());
        assert!(parse(&bomb, Format::Json, "a").is_err());
        assert!(start.elapsed() < Duration::from_secs(40), "{:.60} took {:?}", bomb, start.elapsed());
    }
}

#[test]
fn the_samples_of_the_specification_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samples/documents/valid");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let value = parse(&text, Format::Yaml, &path.display().to_string()).unwrap();
        assert_eq!(value["format_version"], "1.2");
        assert!(value["session"]["ems"].is_u64());
        let written = crate::schema::text::to_text(&value, Format::Yaml);
        assert_eq!(parse(&written, Format::Yaml, "written").unwrap(), value);
        seen += 1;
    }
    assert_eq!(seen, 3);
}
