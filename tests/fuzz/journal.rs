//! The promise: a journal that was changed anywhere is read as the beginning that was not, or refused with the line where
//! the change is. One whose digests are right, but which holds what no program wrote, is read or refused by its line, too,
//! whatever its references stand for.

use nietz::engine::history::History;
use nietz::error::{Failure, Result};
use nietz::journal::entries;
use nietz::journal::reader::IntactPrefix;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::Index;
use serde_json::{Value, json};

use super::draw::{mutated, value};
use super::{each, holds, names_a_place};
use crate::support::journal::sealed;

const FIRST: &[&str] = &[
    include_str!("../journals/v1/everything.jsonl"),
    include_str!("../journals/v1/branches.jsonl"),
    include_str!("../journals/v1/shots-on-goal.jsonl"),
];

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

/// The journals of the first format, and the same as lines of the second.
fn journals() -> Vec<Vec<u8>> {
    let second = FIRST.iter().map(|text| {
        let mut lines = lines(text);
        lines.iter_mut().for_each(|line| line["v"] = json!(2));
        sealed(&lines).into_bytes()
    });
    FIRST.iter().map(|text| text.as_bytes().to_vec()).chain(second).collect()
}

/// A journal in a folder of its own.
struct Place(tempfile::TempDir);

impl Place {
    fn of(bytes: &[u8]) -> Place {
        let place = Place(tempfile::tempdir().expect("a temporary folder can be made"));
        std::fs::write(place.path(), bytes).expect("it can be written");
        place
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("journal.jsonl")
    }

    fn read(&self) -> Result<(IntactPrefix, Vec<Value>)> {
        let mut all = Vec::new();
        let whole = entries::read(&self.path(), |entry| all.push(entry))?;
        Ok((whole, all))
    }
}

/// A changed journal is its own beginning, or refused at the first line that is not as it was.
#[track_caller]
fn is_a_beginning_or_refused(original: &[u8], changed: &[u8]) {
    let same = original.iter().zip(changed).take_while(|(one, other)| one == other).count();
    let length = original[..same].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = original[..length].iter().filter(|byte| **byte == b'\n').count() as u64;
    let (own, other) = (Place::of(original), Place::of(changed));
    let past = History::read(&other.path());
    match other.read() {
        Ok((whole, entries)) => {
            let torn = (changed.len() - length) as u64;
            assert_eq!((whole.lines, whole.length, whole.torn), (lines, length as u64, torn));
            assert!(!changed[length..].contains(&b'\n'), "a line was passed over");
            let (_, all) = own.read().expect("it is as it was written");
            assert!(all.starts_with(&entries) && entries.iter().all(|entry| entry["seq"].as_u64() <= Some(lines)));
            let (past, tail) = past.expect("its lines can be read");
            assert_eq!((past.whole, tail.seq, tail.length), (whole.clone(), whole.lines, whole.length));
        }
        Err(Failure { message, .. }) => {
            assert!(message.contains(&format!("journal.jsonl:{}: ", lines + 1)), "not line {}: {message}", lines + 1);
            assert_eq!(past.err().map(|failure| failure.message), Some(message));
        }
    }
}

#[test]
fn a_journal_that_was_changed_anywhere_is_its_own_beginning_or_refused() {
    let all = journals();
    holds("journal_changed", mutated(all.clone()), |(which, bytes)| is_a_beginning_or_refused(&all[*which], &bytes.0));
}

/// Lines are whole, but others, or in another order.
#[test]
fn a_journal_of_other_lines_is_its_own_beginning_or_refused() {
    let all = journals();
    let lines: Vec<&[u8]> = all.iter().flat_map(|text| text.split_inclusive(|byte| *byte == b'\n')).collect();
    let moves = vec((any::<Index>(), any::<Index>(), 0..3_u8), 1..4);
    holds("journal_lines", (any::<Index>(), moves), |(which, moves)| {
        let original = which.get(&all);
        let mut own: Vec<&[u8]> = original.split_inclusive(|byte| *byte == b'\n').collect();
        for (at, from, how) in moves {
            let at = at.index(own.len());
            match how {
                0 => own.insert(at, lines[from.index(lines.len())]),
                1 => own[at] = lines[from.index(lines.len())],
                _ => drop(own.remove(at)),
            }
            if own.is_empty() {
                break;
            }
        }
        // What begins with the first lines of another journal is that one's.
        let own = own.concat();
        let common = |one: &&Vec<u8>| one.iter().zip(&own).take_while(|(a, b)| a == b).count();
        is_a_beginning_or_refused(all.iter().max_by_key(common).unwrap_or(original), &own);
    });
}

/// Values that programs stumble over, and references to what is there, to what is not, and to themselves.
fn odd() -> impl Strategy<Value = Value> {
    let id = prop_oneof![Just("a".to_owned()), Just("b".to_owned()), "[0-9a-f]{32}"];
    let reference = (id.clone(), id, value()).prop_flat_map(|(one, other, items)| {
        prop_oneof![
            Just(json!({ "$text": one })),
            Just(json!({ "$list": one, "$after": other, "items": [items] })),
            Just(json!({ "$list": one, "items": items })),
            Just(json!({ "$object": { "$text": other } })),
            Just(json!({ "text": { "id": one, "parts": [{ "of": other, "from": 0, "to": 3 }, "new"] } })),
            Just(json!({ "text": { "id": one, "text": "x".repeat(300) } })),
        ]
    });
    let large =
        prop_oneof![Just(json!("x".repeat(100_000))), Just(json!("\u{1b}[2J\u{202e}\n")), Just(json!(u64::MAX))];
    prop_oneof![2 => value(), 2 => reference, 1 => large]
}

/// Every place in a value.
fn places(value: &Value, at: &str, into: &mut Vec<String>) {
    into.push(at.to_owned());
    match value {
        Value::Object(members) => members.iter().for_each(|(name, inner)| {
            places(inner, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), into);
        }),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, inner)| places(inner, &format!("{at}/{index}"), into));
        }
        _ => {}
    }
}

/// Each reader ends, and one that refuses says where.
#[track_caller]
fn is_read_or_refused(text: &[u8]) {
    let place = Place::of(text);
    let says_where = |failure: &Failure| names_a_place(failure, "journal.jsonl", text);
    let read = place.read().inspect_err(says_where).ok();
    let past = History::read(&place.path()).inspect_err(says_where).ok();
    let _ = History::read_as_it_was(&place.path()).inspect_err(says_where);
    if let (Some((whole, entries)), Some((past, tail))) = (read, past) {
        assert_eq!((&past.whole, tail.seq, tail.length), (&whole, whole.lines, whole.length));
        assert!(whole.length + whole.torn == text.len() as u64 && entries.len() as u64 <= whole.lines);
    }
}

#[test]
fn a_journal_of_right_digests_and_odd_values_is_read_or_refused() {
    let edit = (any::<Index>(), any::<Index>(), odd());
    let all = (vec(edit, 1..6), weighted(0.2, any::<Index>()));
    let original = lines(FIRST[0]);
    let drawn = all.prop_map(move |(edits, dropped)| {
        let mut lines = original.clone();
        for (line, at, value) in edits {
            let line = line.get_mut(&mut lines);
            let mut all = Vec::new();
            places(line, "", &mut all);
            *line.pointer_mut(&all[at.index(all.len())]).expect("it was found there") = value.clone();
            if !line.is_object() {
                *line = json!({ "is": value });
            }
        }
        dropped.into_iter().for_each(|at| drop(lines.remove(at.index(lines.len()))));
        sealed(&lines)
    });
    holds("journal_values", drawn, |text| is_read_or_refused(text.as_bytes()));
}

/// The lines of a journal whose references stand for more and more: each list, or text, holds the one before it so often.
fn growing(kind: u8, depth: usize, width: usize) -> String {
    let mut all = vec![lines(FIRST[0])[0].clone()];
    let key = "0123456789abcdef0123456789abcdef";
    let mut add = |is: Value| {
        let seq = all.len() + 1;
        all.push(json!({ "v": 2, "seq": seq, "is": is }));
    };
    let effect =
        |ok: Value| json!({ "effect": { "key": key, "kind": "say", "scope": "/", "request": {}, "ok": ok, "at": 1 } });
    for level in 0..depth {
        let before = level.checked_sub(1).map(|before| format!("t{before}"));
        match (kind, before) {
            (0, None) => add(effect(json!({ "$list": "t0", "items": vec!["x"; width] }))),
            (0, Some(before)) => {
                let items = vec![json!({ "$list": "other", "$after": before, "items": [] }); width];
                add(effect(json!({ "$list": format!("t{level}"), "items": items })));
            }
            (_, None) => add(json!({ "text": { "id": "t0", "text": "x".repeat(300) } })),
            (1, Some(before)) => {
                let length = 300_usize.saturating_mul(width.saturating_pow(u32::try_from(level).expect("few") - 1));
                let parts = vec![json!({ "of": before, "from": 0, "to": length.min(usize::MAX >> 12) }); width];
                add(json!({ "text": { "id": format!("t{level}"), "parts": parts } }));
            }
            (_, Some(before)) => {
                let parts: Vec<Value> = (0..300).map(|at| json!({ "of": before, "from": at, "to": at + 1 })).collect();
                add(json!({ "text": { "id": format!("t{level}"), "parts": parts } }));
            }
        }
    }
    if kind > 0 {
        add(effect(json!(vec![json!({ "$text": format!("t{}", depth - 1) }); width])));
    }
    sealed(&all)
}

#[test]
fn references_that_stand_for_ever_more_are_bounded() {
    // Lists of lists; texts of texts; many small parts; one in another, without end.
    let cases = [(0, 30, 10), (1, 9, 9), (1, 40, 3), (2, 400, 1), (0, 20_000, 1), (1, 20_000, 1)];
    each("journal_references", cases, |(kind, depth, width)| {
        is_read_or_refused(growing(*kind, *depth, *width).as_bytes())
    });
    holds("journal_growing", (0..3_u8, 1..9_usize, 1..4_usize), |(kind, depth, width)| {
        is_read_or_refused(growing(*kind, *depth, *width).as_bytes());
    });
}
