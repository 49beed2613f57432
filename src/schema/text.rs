//! Writes values as the text of a file: YAML in block style, indented JSON, or one line of JSON.
//!
//! We write YAML ourselves because every reader has to understand it, not only ours: a string stays plain
//! only if no version of YAML could take it for something else, several lines become a block only if no
//! white space could get lost, and all else is quoted as in JSON. Nothing is ever folded, so a changed
//! word changes one line.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use crate::model::collection::Format;

/// Readers need not accept more than 1024 characters before a colon, and an escape has up to six for
/// one byte; a key of more bytes than this is written with `? `.
const LONG_KEY: usize = 120;

/// Room for the text of most documents, in bytes.
const USUAL: usize = 32 * 1024;

/// Returns the text of a value, which ends with a line end.
pub fn to_text(value: &Value, format: Format) -> String {
    match format {
        Format::Yaml => {
            let mut out = String::with_capacity(USUAL);
            match is_block(value) {
                true => block(value, 0, &mut out),
                false => inline(value, 0, &mut out),
            }
            out
        }
        // The alternate form of a value is its JSON with two spaces; writing to memory cannot fail.
        Format::Json => format!("{value:#}\n"),
        Format::Jsonl => format!("{value}\n"),
        Format::Text => value.as_str().map(str::to_owned).unwrap_or_else(|| value.to_string()),
    }
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => false,
    }
}

/// Writes a list or object whose first line is already indented.
fn block(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Array(items) => list(items, indent, out),
        Value::Object(members) => object(members, indent, out),
        scalar => inline(scalar, indent, out),
    }
}

fn list(items: &[Value], indent: usize, out: &mut String) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            spaces(indent, out);
        }
        out.push_str("- ");
        match is_block(item) {
            true => block(item, indent + 2, out),
            false => inline(item, indent, out),
        }
    }
}

fn object(members: &Map<String, Value>, indent: usize, out: &mut String) {
    for (index, (name, member)) in members.iter().enumerate() {
        if index > 0 {
            spaces(indent, out);
        }
        if name.len() > LONG_KEY {
            out.push_str("? ");
            quoted(name, out);
            out.push('\n');
            spaces(indent, out);
        } else if is_plain(name) {
            out.push_str(name);
        } else {
            quoted(name, out);
        }
        out.push(':');
        if is_block(member) {
            out.push('\n');
            spaces(indent + 2, out);
            block(member, indent + 2, out);
        } else {
            out.push(' ');
            inline(member, indent, out);
        }
    }
}

/// Writes a value that starts on the line of its key or dash, and ends the line.
fn inline(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => self::number(number, out),
        Value::String(text) if is_lines(text) => return lines(text, indent + 2, out),
        Value::String(text) if is_plain(text) => out.push_str(text),
        Value::String(text) => quoted(text, out),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
    out.push('\n');
}

/// Writes a number, always with a point before an exponent: older readers take `1e+20` for text.
fn number(number: &Number, out: &mut String) {
    if !number.is_f64() {
        // Writing to memory cannot fail.
        let _ = write!(out, "{number}");
        return;
    }
    let digits = number.to_string();
    match digits.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => out.push_str(&format!("{mantissa}.0e{exponent}")),
        _ => out.push_str(&digits),
    }
}

fn lines(text: &str, indent: usize, out: &mut String) {
    out.push_str(if text.ends_with('\n') { "|\n" } else { "|-\n" });
    for line in text.lines() {
        if !line.is_empty() {
            spaces(indent, out);
            out.push_str(line);
        }
        out.push('\n');
    }
}

fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_visible(c) => out.push(c),
            c if u32::from(c) <= 0xffff => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
}

/// The ASCII characters that mean nothing to YAML inside of a text.
const PLAIN: [bool; 256] = {
    let signs = b" _-./()+,;!?'%=";
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        plain[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut sign = 0;
    while sign < signs.len() {
        plain[signs[sign] as usize] = true;
        sign += 1;
    }
    plain
};

/// Tells whether a text may stand without quotes: it starts with a letter, has no sign that means something to
/// YAML, and is no word that some version of YAML takes for a boolean, a null or a number.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 11] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "inf", "nan"];
    text.starts_with(char::is_alphabetic)
        && !text.ends_with(' ')
        && (text.bytes().all(|byte| PLAIN[usize::from(byte)])
            || text.chars().all(|c| match u8::try_from(c) {
                Ok(byte) if byte.is_ascii() => PLAIN[usize::from(byte)],
                _ => c.is_alphanumeric() && is_visible(c),
            }))
        && !(text.len() <= 5 && WORDS.iter().any(|word| text.eq_ignore_ascii_case(word)))
}

/// Tells whether a text may be a block of lines, without any doubt about its white space.
fn is_lines(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && !text.ends_with("\n\n")
        && text.chars().all(|c| c == '\n' || c == '\t' || is_visible(c))
        && text.lines().all(|line| line.is_empty() || !line.ends_with([' ', '\t']))
}

/// Tells whether a character is visible, so that nobody loses or overlooks it.
fn is_visible(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => false,
        '\u{fff0}'..='\u{ffff}' | '\u{e000}'..='\u{f8ff}' => false,
        c if u32::from(c) >= 0xe_0000 || u32::from(c) & 0xfffe == 0xfffe => false,
        c => !c.is_control(),
    }
}

fn spaces(count: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", count / 2));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::schema::source;

    fn round_trips(value: &Value) {
        for format in [Format::Yaml, Format::Json, Format::Jsonl] {
            let text = to_text(value, format);
            let read = source::parse(&text, format, "x").unwrap_or_else(|failure| panic!("{failure}\n{text}"));
            assert_eq!(&read, value, "{text}");
        }
    }

    #[test]
    fn the_form_is_what_a_person_would_write() {
        let value = json!({
            "format_version": "1.2",
            "session": {
                "id": "feature-auth-2026-01-09",
                "ems": 52,
                "ratio": 0.5,
                "tags": [],
                "state": {},
                "last": null,
                "ideas": [{"id": 1, "content": "Magic links: pour login"}, {"id": 2, "content": "no"}],
                "grid": [[1, 2], []],
                "notes": "Première ligne\n\n  second\nlast",
                "ended": "a\nb\n",
            },
        });
        insta::assert_snapshot!(to_text(&value, Format::Yaml), @r#"
        format_version: "1.2"
        session:
          id: feature-auth-2026-01-09
          ems: 52
          ratio: 0.5
          tags: []
          state: {}
          last: null
          ideas:
            - id: 1
              content: "Magic links: pour login"
            - id: 2
              content: "no"
          grid:
            - - 1
              - 2
            - []
          notes: |-
            Première ligne

              second
            last
          ended: |
            a
            b
        "#);
        round_trips(&value);
    }

    #[test]
    fn nasty_strings_survive() {
        let words = [
            "",
            " ",
            "~",
            "no",
            "No",
            "ON",
            "y",
            "null",
            "NULL",
            "true",
            "1.2",
            "1_000",
            "017",
            "0x1f",
            "0o7",
            "1e3",
            ".inf",
            ".nan",
            "-",
            "- a",
            "--- a",
            "---",
            "...",
            "? a",
            ": a",
            "a: b",
            "a:",
            "a #b",
            "#a",
            "&a",
            "*a",
            "!a",
            "|",
            ">",
            "%a",
            "@a",
            "`a",
            "'a'",
            "\"a\"",
            "[a]",
            "{a}",
            "a, b",
            "<<",
            "=",
            "2026-01-09",
            "12:30:45",
            "a\n",
            "a\n\n",
            "\na",
            "a\nb",
            " a\nb",
            "a\n b",
            "a\n \nb",
            "a \nb",
            "a\tb",
            "\ta",
            "a\r\nb",
            "a\rb",
            "a\u{85}b",
            "a\u{2028}b",
            "a\u{feff}b",
            "\u{feff}",
            "a\0b",
            "\u{1b}[2J",
            "a\u{7f}b",
            "é",
            "日本",
            "🦀",
            "a\u{ffff}b",
            "\u{10ffff}",
            "a\\b",
            "a\n---\nb",
            "a\n...\n",
            "---\na",
            "a\n#b",
            "a\n\tb",
            "a\n\n\nb",
        ];
        for word in words {
            round_trips(&json!(word));
            round_trips(&json!([word]));
            round_trips(&json!([[word], word]));
            round_trips(&json!({word: word, "list": [{word: word}]}));
        }
        for long in ["long key ".repeat(400), "\0".repeat(120), "\0".repeat(400)] {
            round_trips(&json!({&long: {&long: [long]}, "b": {"c": 1}}));
        }
    }

    fn text() -> impl Strategy<Value = String> {
        let nasty = prop::sample::select(vec![
            "\n", " ", "  ", "\t", "\r", ":", ": ", " #", "-", "- ", "|", ">", "'", "\"", "\\", "a", "no", "é",
            "\u{85}", "\u{2028}", "\u{feff}", "{", "}", "[", "]", ",", "&", "*", "!", "%", "?", "? ", "<<", "0", "1",
            ".", "\0",
        ]);
        prop_oneof![any::<String>(), prop::collection::vec(nasty, 0..12).prop_map(|parts| parts.concat())]
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(Value::from),
            text().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 48, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((text(), inner), 0..6).prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_back(value in tree()) {
            round_trips(&value);
        }
    }
}
