//! The promise: whatever bytes a journal or `nietz.lock` has, also ones whose digests are right, reading it ends with what it
//! says or with a failure that names the place. Some seconds each day; `NIETZ_TEST_CASES` says how many cases otherwise.

use nietz::engine::past::Past;
use nietz::error::Failure;
use nietz::journal::{entries, reader};
use nietz::pack::lock::Lock;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::support::journal::sealed;

const JOURNAL: &str = include_str!("../journals/v1/everything.jsonl");

fn runner(daily: u32) -> TestRunner {
    let cases = std::env::var("NIETZ_TEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(daily);
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

/// Values that programs stumble over.
fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        Just(json!(u64::MAX)),
        Just(json!(1e308)),
        ".{0,12}".prop_map(Value::from),
        Just(json!("\u{1b}[2J\u{202e}\n")),
        Just(json!("x".repeat(100_000))),
        Just(json!([])),
        Just(json!({})),
        Just(json!([[[[{ "a": [0] }]]]])),
    ]
}

/// Every place in a value.
fn places(value: &Value, at: &str, into: &mut Vec<String>) {
    into.push(at.to_owned());
    match value {
        Value::Object(members) => members.iter().for_each(|(name, inner)| {
            places(inner, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), into)
        }),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, inner)| places(inner, &format!("{at}/{index}"), into));
        }
        _ => {}
    }
}

/// What is done to the lines before they are sealed again: at which line and place (by chance), and what is put there.
type Edit = (prop::sample::Index, prop::sample::Index, Value);

fn edited(edits: &[Edit], dropped: Option<&prop::sample::Index>) -> String {
    let mut lines: Vec<Value> = JOURNAL.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    for (line, place, value) in edits {
        let line = line.get_mut(&mut lines);
        let mut all = Vec::new();
        places(line, "", &mut all);
        let at = place.get(&all);
        *line.pointer_mut(at).expect("it was found there") = value.clone();
        if !line.is_object() {
            *line = json!({ "is": value });
        }
    }
    if let Some(at) = dropped {
        lines.remove(at.index(lines.len()));
    }
    sealed(&lines)
}

/// Each reader ends, and one that refuses says where.
fn is_read_or_refused(text: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("journal.jsonl");
    std::fs::write(&path, text).expect("it can be written");
    let says_where = |failure: &Failure| assert!(failure.message.contains("journal"), "{failure:?}");
    let mut seen = 0;
    let whole = entries::read(&path, |_| seen += 1).inspect_err(says_where).ok();
    let past = Past::read(&path).inspect_err(says_where).ok();
    let _ = Past::read_as_it_was(&path).inspect_err(says_where);
    if let (Some(whole), Some((past, tail))) = (whole, past) {
        assert_eq!((&past.whole, tail.seq, tail.length), (&whole, whole.lines, whole.length));
        assert!(whole.length + whole.torn == text.len() as u64 && seen <= whole.lines);
    }
    if let Ok(text) = std::str::from_utf8(text) {
        // What is whole before the first broken line reads the same without it.
        let end = text.rfind('\n').map_or(0, |end| end + 1);
        let _ = reader::read(&path, &text.as_bytes()[..end], |_, _| Ok(()));
    }
}

#[test]
fn a_journal_of_right_digests_and_odd_values_is_read_or_refused() {
    let edit = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), odd());
    let all = (prop::collection::vec(edit, 1..4), prop::option::weighted(0.2, any::<prop::sample::Index>()));
    let done = runner(150).run(&all, |(edits, dropped)| {
        is_read_or_refused(edited(&edits, dropped.as_ref()).as_bytes());
        Ok(())
    });
    done.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_journal_of_any_bytes_is_read_or_refused() {
    let cut = (any::<prop::sample::Index>(), 0..400usize, prop::collection::vec(any::<u8>(), 0..60));
    let done = runner(300).run(&prop::collection::vec(cut, 1..4), |cuts| {
        let mut bytes = JOURNAL.as_bytes().to_vec();
        for (at, length, put) in cuts {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, put);
        }
        is_read_or_refused(&bytes);
        Ok(())
    });
    done.unwrap_or_else(|error| panic!("{error}"));
}

/// Names and digests of a lock become parts of paths.
#[test]
fn a_lock_of_any_text_is_read_or_refused_and_leads_nowhere_else() {
    let word = prop_oneof![
        "[a-z-]{1,8}",
        "[./~a-z]{1,12}",
        Just("../../x".to_owned()),
        Just("a".repeat(64)),
        "\\PC{0,20}",
        Just("&a [*a]".to_owned()),
        Just("\"\\u0000/..\"".to_owned()),
    ];
    let field = prop_oneof![Just("version"), Just("source"), Just("sha256"), Just("commit"), Just("more")];
    let pack = (word.clone(), prop::collection::vec((field, word), 0..5));
    let done = runner(1_000).run(&prop::collection::vec(pack, 0..4), |packs| {
        let mut text = "version: 1\npacks:\n".to_owned();
        for (name, fields) in packs {
            text.push_str(&format!("  {name}:\n"));
            fields.iter().for_each(|(field, value)| text.push_str(&format!("    {field}: {value}\n")));
        }
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        std::fs::write(folder.path().join("nietz.lock"), &text).expect("it can be written");
        match Lock::read(folder.path()) {
            Ok(lock) => {
                for (name, locked) in &lock.packs {
                    let place = locked.folder(folder.path(), name);
                    assert_eq!(place.parent(), Some(folder.path()), "{text}");
                    assert!(!place.ends_with(".."), "{text}");
                }
            }
            Err(failure) => assert!(failure.message.contains("nietz.lock"), "{failure:?}\n{text}"),
        }
        Ok(())
    });
    done.unwrap_or_else(|error| panic!("{error}"));
}
