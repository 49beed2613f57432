//! The promise: YAML is a value, which is written and read back as it is, in each format; or it is refused with its line.

use nietz::model::collection::Format;
use nietz::schema::builtin::{self, BuiltinSchema};
use nietz::schema::source::{decode, parse};
use nietz::schema::text::to_text;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::sample::Index;
use serde_json::Value;

use super::draw::{Bytes, corpus, mutated, value};
use super::{each, holds, names_a_place};

/// What is written is read back, and written the same.
#[track_caller]
pub(super) fn comes_back(value: &Value) {
    for format in [Format::Yaml, Format::Json, Format::Jsonl] {
        let written = to_text(value, format);
        let read = parse(&written, format, "f").unwrap_or_else(|failure| panic!("{failure}\n{written}"));
        assert!(read == *value, "{written}");
        assert_eq!(to_text(&read, format), written);
    }
}

/// Returns the value of what is accepted.
#[track_caller]
pub(super) fn is_a_value_or_refused(bytes: &[u8], format: Format) -> Option<Value> {
    let read = decode(bytes, "f").and_then(|text| parse(text, format, "f"));
    match read {
        Ok(value) => {
            comes_back(&value);
            Some(value)
        }
        Err(failure) => {
            names_a_place(&failure, "f", bytes);
            None
        }
    }
}

const KINDS: &[&BuiltinSchema] =
    &[&builtin::PERSONA, &builtin::QUOTES, &builtin::PACK, &builtin::CONFIG, &builtin::LOCK, &builtin::TRUST];

#[test]
fn yaml_is_a_value_that_comes_back_or_refused() {
    let texts = mutated(corpus(&["tests", "flows", "quotes", "personas", "src"], &["yaml", "yml"]));
    holds("yaml", texts, |(_, bytes)| drop(is_a_value_or_refused(&bytes.0, Format::Yaml)));
}

/// What is wrong in a file of nietz's own is told with its place, and is the same however the value is written.
#[test]
fn a_file_that_is_wrong_is_told_with_its_place_however_it_is_written() {
    let files: Vec<Vec<u8>> = [
        &b"version: 1\npacks:\n  p:\n    version: 1.0.0\n    source: here\n    sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"[..],
        b"name: p\nversion: 1.0.0\nsummary: S\nlicence: MIT\nhost_api: 1\npermissions:\n  p: {llm: true, exec: [git]}\n",
        b"version: 1\nfolders:\n  /home/u/p: ['*', exec=git]\n",
        b"- {text: a, context: c, author: 'x'}\n- text: b\n",
        b"name: N\nrole: r\ntemperature: 0.5\n",
        b"models:\n  default: local\n  retry: {attempts: 3, total_seconds: 20, base_delay_ms: 1}\n  providers: {x: {base_url: 'http://x', wire: openai}}\n",
    ]
    .iter()
    .map(|text| text.to_vec())
    .collect();
    let texts = prop_oneof![
        3 => mutated(files).prop_map(|(_, bytes)| bytes),
        1 => value().prop_map(|value| Bytes(to_text(&value, Format::Yaml).into_bytes())),
    ];
    holds("yaml_own", (any::<Index>(), texts), |(kind, bytes)| {
        let kind = kind.get(KINDS);
        let Ok(text) = decode(&bytes.0, "f") else { return };
        let (value, faults) = builtin::check(kind, text, "f").expect("its schema is right");
        let lines = 2 + text.matches(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count();
        faults.iter().for_each(|fault| assert!((1..=lines).contains(&fault.line), "{fault}"));
        if parse(text, Format::Yaml, "f").is_ok() {
            let (again, same) = builtin::check(kind, &to_text(&value, Format::Yaml), "f").expect("its schema is right");
            let pointers = |faults: &[nietz::schema::LocatedViolation]| {
                let mut all: Vec<_> =
                    faults.iter().map(|fault| (fault.pointer.clone(), fault.message.clone())).collect();
                all.sort();
                all
            };
            assert_eq!((again, pointers(&same)), (value, pointers(&faults)));
        }
    });
}

#[test]
fn values_are_written_and_read_back() {
    holds("yaml_values", value(), comes_back);
}

#[test]
fn what_was_found_by_chance_is_a_value_or_refused() {
    let cases: [&[u8]; 10] = [
        b"",
        b"\0",
        b"\xef\xbb\xbf",
        b"- - - -\n",
        b"? \n",
        b"a: &a [*a]\n",
        b"%YAML 1.1\n---\na\n",
        b"\xff\xfea",
        b"a\r\rb: 1",
        b"a: [1",
    ];
    let deep = ["[", "- ", "{a: ", "? ", "a:\n ", "&a [", "!!seq ["].map(|open| open.repeat(20_000).into_bytes());
    let all = cases.into_iter().map(<[u8]>::to_vec).chain(deep).chain([laughs()]).map(Bytes);
    each("yaml_cases", all, |bytes| drop(is_a_value_or_refused(&bytes.0, Format::Yaml)));
}

/// Aliases that stand for more and more.
fn laughs() -> Vec<u8> {
    let line = |level: usize| format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", "));
    ("a0: &a0 lol\n".to_owned() + &(1..12).map(line).collect::<String>()).into_bytes()
}
