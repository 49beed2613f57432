//! Makes text safe to show: text from a model, a file or a pack must not control the terminal, be invisible, or look like a
//! message of nietz itself.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Returns the text with control and escape characters made visible; line ends and tabs are kept.
///
/// Escape becomes `␛`, other C0 controls become their picture (`␀` …), C1 controls and characters that are invisible or
/// change the text direction become `�`. Joiners of letters and emoji stay, because people and models write them.
pub(crate) fn clean(text: &str) -> String {
    shown(text, is_unsafe).into_owned()
}

/// Like [`clean`], for names and other foreign text that must stay one line: also makes line ends and tabs (`␊`, `␉`) and
/// all invisible characters visible.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    shown(text, |c| matches!(c, '\n' | '\t') || is_unsafe(c) || is_unseen(c))
}

/// Returns a number with its noun, as people write it: `1 call`, `2 calls`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// Quotes a word for a command line that the user is told to type, so that it is one argument in any shell. It is also made
/// one visible line, so that a word with invisible characters names no existing file.
pub(crate) fn shell(word: &str) -> String {
    let word = line(word);
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:@+,-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    if !word.is_empty() && word.chars().all(|c| plain(c) || c == '\\') {
        return word.replace('\\', "\\\\");
    }
    // A backslash goes outside the quotes as well: inside, some shells take it for an escape.
    let mut quoted = String::from("'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\'', '\\', c, '\'']),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

/// Returns the text in lower case, without accents; œ, æ and ß are written out.
pub(crate) fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.nfd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase) {
        match c {
            'œ' => out.push_str("oe"),
            'æ' => out.push_str("ae"),
            'ß' => out.push_str("ss"),
            'ø' => out.push('o'),
            'ł' => out.push('l'),
            c => out.push(c),
        }
    }
    out
}

/// Returns the beginning of a wrong value for an error message: one line, at most 60 characters.
pub(crate) fn excerpt(text: &str) -> String {
    excerpt_within(text, 60)
}

/// Returns the beginning of what somebody else says: one line, at most `most` characters.
pub(crate) fn excerpt_within(text: &str, most: usize) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(most).collect();
    let mut short = line(&start.replace(['\n', '\t'], " ")).into_owned();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// Escapes characters that are valid in JSON but that a terminal would obey or hide, for people who read the raw lines.
/// Such characters occur only inside strings, so that the value stays the same.
pub(crate) fn json(json: &str) -> Cow<'_, str> {
    let escaped = |c: char| is_unsafe(c) || is_unseen(c) && !is_joiner(c);
    if !json.chars().any(escaped) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match escaped(c) {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn shown(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    match text.chars().any(&hidden) {
        true => Cow::Owned(text.chars().map(|c| if hidden(c) { picture(c) } else { c }).collect()),
        false => Cow::Borrowed(text),
    }
}

/// Controls; characters that change the text direction or end a line, except `\n`; and characters without width that
/// no language needs: zero-width spaces, invisible operators, tags.
fn is_unsafe(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// Invisible characters that prose may need: joiners, soft hyphens, fillers, variation selectors.
fn is_unseen(c: char) -> bool {
    is_joiner(c)
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}'
        )
        || matches!(c, '\u{180b}'..='\u{180d}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
        || matches!(c, '\u{e0080}'..='\u{e0fff}')
}

/// Characters that join or separate letters and emoji, or select how an emoji is drawn.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

fn picture(c: char) -> char {
    match u32::from(c) {
        control @ 0..=0x1f => char::from_u32(0x2400 + control).unwrap_or('�'),
        0x7f => '␡',
        _ => '�',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_shown_not_obeyed() {
        assert_eq!(clean("a\u{1b}[2Jb\r\u{202e}c\n\td"), "a␛[2Jb␍�c\n\td");
    }

    #[test]
    fn a_name_stays_one_line_and_hides_nothing() {
        assert_eq!(line("git"), "git");
        assert_eq!(line("a\n+ b\tc"), "a␊+ b␉c");
        for sign in "\u{200b}\u{2028}\u{2029}\u{e0041}\u{202e}\u{200d}\u{ad}\u{3164}\u{fe0f}\u{9b}\u{61c}".chars() {
            assert_eq!(line(&format!("gi{sign}t")), "gi�t", "U+{:04X}", u32::from(sign));
        }
        assert_eq!(clean("\u{1f468}\u{200d}\u{1f469} \u{2764}\u{fe0f}"), "\u{1f468}\u{200d}\u{1f469} \u{2764}\u{fe0f}");
        assert_eq!(clean("gi\u{200b}t \u{e0041}"), "gi�t �");
    }

    #[test]
    fn a_word_of_a_command_line_is_one_argument() {
        for plain in ["/tmp/a.b-c_d", "20261123-003852-b1b0", "flows/x.lua", "git@h:x"] {
            assert_eq!(shell(plain), plain);
        }
        for (word, quoted) in [
            ("", "''"),
            ("a b", "'a b'"),
            ("a';touch X;'", r"'a'\'';touch X;'\'''"),
            (r"a\';touch X;\'", r"'a'\\''\'';touch X;'\\''\'''"),
            ("$(x)`y`!~", "'$(x)`y`!~'"),
            ("a\nb\u{202e}", "'a␊b�'"),
        ] {
            assert_eq!(shell(word), quoted, "{word}");
        }
    }

    #[test]
    fn json_is_the_same_value_and_shows_what_is_in_it() {
        let value = serde_json::json!({ "a\u{202e}": "b\u{9b}c\u{e0041}\u{200b}\u{7f}\n\u{1f468}" });
        let text = value.to_string();
        let shown = json(&text);
        assert_eq!(shown, "{\"a\\u202e\":\"b\\u009bc\\udb40\\udc41\\u200b\\u007f\\n\u{1f468}\"}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt("a\nb"), "a b");
        assert_eq!(excerpt(&"x".repeat(80)).chars().count(), 61);
    }
}
