//! The promise: JSON is what another reader takes it for, and comes back as it is; what only ours refuses is a key that stands
//! there twice, a number that cannot be kept, or what is too deep. Each refusal has its line.

use nietz::model::collection::Format;
use nietz::schema::source::{decode, parse};
use proptest::prelude::{Strategy, prop_oneof};
use serde_json::Value;

use super::draw::{Bytes, corpus, mutated, value};
use super::yaml::is_a_value_or_refused;
use super::{each, holds};

/// The other reader may miss a float by its last bit.
fn are_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| are_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut all = one.iter();
            one.len() == other.len() && all.all(|(name, one)| other.get(name).is_some_and(|other| are_same(one, other)))
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let (one, other) = (one.as_f64().unwrap_or_default(), other.as_f64().unwrap_or_default());
            one.to_bits().abs_diff(other.to_bits()) <= 1
        }
        (one, other) => one == other,
    }
}

#[track_caller]
fn is_what_another_reader_says(bytes: &[u8]) {
    let ours = is_a_value_or_refused(bytes, Format::Json);
    let Ok(text) = decode(bytes, "f") else { return };
    match (ours, serde_json::from_str::<Value>(text)) {
        (Some(ours), Ok(theirs)) => assert!(are_same(&ours, &theirs), "{ours}\n{theirs}"),
        (Some(_), Err(error)) => assert!(error.to_string().contains("recursion limit"), "only ours takes it: {error}"),
        (None, Ok(_)) => {
            let why = parse(text, Format::Json, "f").expect_err("it was refused").message;
            let own = ["given twice", "deep in one another", "too many digits"].iter().any(|own| why.contains(own));
            assert!(own, "only ours refuses it: {why}");
        }
        (None, Err(_)) => {}
    }
}

#[test]
fn json_is_what_another_reader_says_or_refused() {
    let mut files = corpus(&["src", "tests"], &["json"]);
    let rows = include_str!("../journals/v1/everything.jsonl").lines();
    files.extend(rows.map(|row| row.as_bytes().to_vec()));
    let texts = prop_oneof![
        3 => mutated(files).prop_map(|(_, bytes)| bytes),
        1 => value().prop_map(|value| Bytes(value.to_string().into_bytes())),
    ];
    holds("json", texts, |bytes| is_what_another_reader_says(&bytes.0));
}

#[test]
fn what_was_found_by_chance_is_what_another_reader_says() {
    let cases: [&[u8]; 17] = [
        b"-0",
        b"-0.0",
        b"1e999",
        b"1e-999",
        b"[1,]",
        b"{\"a\":1,\"a\":2}",
        b"\"\\ud800\"",
        b"\"\\ud83d\\ude00\"",
        b"01",
        b"18446744073709551616",
        b"\xef\xbb\xbf1",
        b"[1] 2",
        b"nul",
        b"\"\t\"",
        b"1.",
        b".5",
        b"+1",
    ];
    let deep = [127, 128, 129, 5_000, 100_000]
        .into_iter()
        .flat_map(|depth| ["[".repeat(depth) + &"]".repeat(depth), "{\"a\":".repeat(depth)].map(String::into_bytes));
    let all = cases.into_iter().map(<[u8]>::to_vec).chain(deep).map(Bytes);
    each("json_cases", all, |bytes| is_what_another_reader_says(&bytes.0));
    // The other reader keeps the last of two.
    for twice in ["{\"a\": 1, \"a\": 1}", "[{\"a\": {}, \"\\u0061\": {}}]"] {
        let failure = parse(twice, Format::Json, "f").expect_err("a key stands there twice");
        assert!(failure.message.contains("given twice"), "{failure:?}");
    }
}
