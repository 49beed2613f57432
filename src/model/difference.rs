//! Describes the differences between two values for people: by JSON pointer, and long texts line by line.

use std::time::{Duration, Instant};

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::model::text::clean;

/// The most lines that are returned; further lines are only counted.
const MOST: usize = 60;
/// Texts longer than this many bytes are compared line by line.
const SHORT: usize = 60;
/// How long common lines are searched for. Without common lines the search takes quadratic time; after this time the
/// result is still correct, but longer than necessary.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);
/// How many lines are shown around a changed one.
const AROUND: usize = 1;

/// Returns one line for each difference: `-` is the old value, `+` is the new one.
pub(crate) fn differences(was: &Value, is: &Value) -> Vec<String> {
    let mut out = Vec::new();
    walk("", was, is, (Instant::now() + PATIENCE, &mut out));
    shortened(out)
}

fn shortened(mut out: Vec<String>) -> Vec<String> {
    if out.len() > MOST {
        let more = out.len() - MOST;
        out.truncate(MOST);
        out.push(format!("… and {more} more lines"));
    }
    out
}

/// Returns the changed lines of a text, with a few lines around them: `-` is the old text, `+` is the new one.
pub(crate) fn text_differences(was: &str, is: &str) -> Vec<String> {
    let mut out = Vec::new();
    lines(was, is, Instant::now() + PATIENCE, &mut out);
    shortened(out)
}

/// Returns how similar two values are, from 0 (no common line) to 1 (equal). The result is an estimate if `until` is
/// reached.
pub(crate) fn likeness(one: &Value, other: &Value, until: Instant) -> f32 {
    let (mut a, mut b) = (String::new(), String::new());
    flatten("", one, &mut a);
    flatten("", other, &mut b);
    TextDiff::configure().deadline(until).diff_lines(&a, &b).ratio()
}

fn walk(pointer: &str, was: &Value, is: &Value, (until, out): (Instant, &mut Vec<String>)) {
    match (was, is) {
        _ if was == is => {}
        (Value::Object(was), Value::Object(is)) => {
            for (name, before) in was {
                let place = below(pointer, name);
                match is.get(name) {
                    Some(after) => walk(&place, before, after, (until, &mut *out)),
                    None => out.push(format!("- {place}: {}", shown(before))),
                }
            }
            for (name, after) in is.iter().filter(|(name, _)| !was.contains_key(*name)) {
                out.push(format!("+ {}: {}", below(pointer, name), shown(after)));
            }
        }
        (Value::Array(was), Value::Array(is)) => {
            for (index, (before, after)) in was.iter().zip(is).enumerate() {
                walk(&format!("{pointer}/{index}"), before, after, (until, &mut *out));
            }
            for (index, before) in was.iter().enumerate().skip(is.len()) {
                out.push(format!("- {pointer}/{index}: {}", shown(before)));
            }
            for (index, after) in is.iter().enumerate().skip(was.len()) {
                out.push(format!("+ {pointer}/{index}: {}", shown(after)));
            }
        }
        (Value::String(was), Value::String(is)) if was.len().max(is.len()) > SHORT || was.contains('\n') => {
            out.push(format!("  {}:", place(pointer)));
            lines(was, is, until, out);
        }
        _ => {
            out.push(format!("- {}: {}", place(pointer), shown(was)));
            out.push(format!("+ {}: {}", place(pointer), shown(is)));
        }
    }
}

/// Writes the changed lines of a text, with a few lines around them.
fn lines(was: &str, is: &str, until: Instant, out: &mut Vec<String>) {
    let diff = TextDiff::configure().deadline(until).diff_lines(was, is);
    for (index, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        if index > 0 {
            out.push("      …".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            out.push(format!("    {sign} {}", clean(change.value().trim_end_matches('\n'))));
        }
    }
}

fn flatten(pointer: &str, value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| flatten(&below(pointer, name), value, out)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| flatten(&format!("{pointer}/{index}"), value, out));
        }
        Value::String(text) => {
            for line in text.lines() {
                out.push_str(&format!("{pointer} {line}\n"));
            }
        }
        scalar => out.push_str(&format!("{pointer} {scalar}\n")),
    }
}

fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", clean(&name.replace('~', "~0").replace('/', "~1")))
}

fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "the whole" } else { pointer }
}

fn shown(value: &Value) -> String {
    let text = clean(&value.to_string());
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_is_told_by_its_place_and_its_lines() {
        let was =
            json!({"model": "a", "list": [1, 2], "gone": true, "text": "one\ntwo\nthree\nfour\nfive\nsix\n\u{1b}x"});
        let is =
            json!({"model": "b", "list": [1, 3, 4], "text": "one\n2\nthree\nfour\nfive\nsix\n\u{1b}y", "new": null});
        insta::assert_snapshot!(differences(&was, &is).join("\n"), @r#"
        - /model: "a"
        + /model: "b"
        - /list/1: 2
        + /list/1: 3
        + /list/2: 4
        - /gone: true
          /text:
              one
            - two
            + 2
              three
              …
              six
            - ␛x
            + ␛y
        + /new: null
        "#);
        assert!(differences(&was, &was).is_empty());
    }

    #[test]
    fn likeness_finds_the_edited_one_among_strangers() {
        let recorded = json!({"system": "You build.", "prompt": "Postgres\nor SQLite?\nSay it."});
        let edited = json!({"system": "You build.", "prompt": "Postgres\nor SQLite?\nSay it well."});
        let other = json!({"system": "You doubt.", "prompt": "Name\nthree risks."});
        let until = Instant::now() + PATIENCE;
        assert!(likeness(&recorded, &edited, until) > likeness(&other, &edited, until));
    }

    #[test]
    fn long_texts_that_have_no_line_in_common_are_told_in_time() {
        let text = |word: &str| (0..60_000).map(|line| format!("{word} {line}\n")).collect::<String>();
        let (was, is) = (json!(text("was")), json!(text("is")));
        assert_eq!(differences(&was, &is).len(), MOST + 1);
        assert!(likeness(&was, &is, Instant::now()) < 0.1);
    }
}
