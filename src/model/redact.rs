//! Taking secrets out of text before it is hashed, written, shown or sent.

use std::borrow::Cow;
use std::cell::OnceCell;

use regex::Regex;
use serde_json::Value;

use crate::error::Failure;

/// Knows the secrets of this process and the shapes of the usual ones.
#[derive(Clone)]
pub struct Redactor {
    /// The name to show and the text to take out, longest first.
    known: Vec<(String, String)>,
    /// [`SHAPES`], compiled when a text first needs it.
    shapes: OnceCell<Regex>,
}

/// Shapes of keys that are secret wherever they turn up: OpenAI and Anthropic, AWS, GitHub, Slack,
/// Google, GitLab, Hugging Face, npm, PEM blocks and bearer headers.
const SHAPES: &str = r"(?x-u)
    \b sk-[A-Za-z0-9_-]{20,}
  | \b (?:AKIA|ASIA)[0-9A-Z]{16} \b
  | \b gh[pousr]_[A-Za-z0-9]{36,}
  | \b github_pat_[A-Za-z0-9_]{40,}
  | \b xox[abprs]-[A-Za-z0-9-]{20,}
  | \b AIza[0-9A-Za-z_-]{35}
  | \b glpat-[0-9A-Za-z_-]{20,}
  | \b hf_[A-Za-z0-9]{30,}
  | \b npm_[A-Za-z0-9]{36}
  | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----(?su:.)*?(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\z)
  | (?i:\b bearer [\ \t]+)[A-Za-z0-9._~+/-]{20,}=*
";

/// Secrets shorter than this are not looked for: they would tear holes into ordinary text.
const SHORTEST: usize = 8;

/// No text with one of the [`SHAPES`] is shorter.
const SHORTEST_SHAPE: usize = 20;

/// What every text with one of the [`SHAPES`] has in it. Nearly no text has: compiling them is put off, and
/// going through a text for them is spared.
const BEGINNINGS: [&str; 11] =
    ["sk-", "AKIA", "ASIA", "gh", "github_pat_", "xox", "AIza", "glpat-", "hf_", "npm_", "-----BEGIN "];

const BEARER: &str = "bearer";

/// The longest block of a private key that is waited for, in bytes.
const LONGEST_BLOCK: usize = 64 * 1024;

fn may_have_shape(text: &str) -> bool {
    let has = |part: &str| memchr::memmem::find(text.as_bytes(), part.as_bytes()).is_some();
    BEGINNINGS.into_iter().any(has) || has_bearer(text.as_bytes())
}

/// It is written in small letters and in capitals.
fn has_bearer(text: &[u8]) -> bool {
    let is_one =
        |at: usize| text.get(at..at + BEARER.len()).is_some_and(|it| it.eq_ignore_ascii_case(BEARER.as_bytes()));
    memchr::memchr2_iter(b'b', b'B', text).any(is_one)
}

/// Tells whether a text ends with that word, and not with a longer one.
fn ends_with_bearer(text: &str) -> bool {
    let Some(before) = text.len().checked_sub(BEARER.len()) else { return false };
    let bytes = text.as_bytes();
    let begins = before == 0 || !(bytes[before - 1].is_ascii_alphanumeric() || bytes[before - 1] == b'_');
    begins && bytes[before..].eq_ignore_ascii_case(BEARER.as_bytes())
}

/// Returns where a PEM block ends, if it does.
fn end_of_block(text: &str) -> Option<usize> {
    const END: &str = "-----END ";
    const LAST: &str = "PRIVATE KEY-----";
    let mut from = 0;
    while let Some(at) = text[from..].find(END).map(|at| from + at + END.len()) {
        let label = text[at..].trim_start_matches(|c: char| c.is_ascii_uppercase() || c == ' ');
        let (begin, end) = (at, text.len() - label.len());
        if text[begin..end].ends_with("PRIVATE KEY") && label.starts_with("-----") {
            return Some(end + LAST.len() - "PRIVATE KEY".len());
        }
        from = at;
    }
    None
}

/// Returns where a PEM block of a private key begins that does not end before `settled`, or what may become one.
fn block_over(text: &str, settled: usize) -> Option<usize> {
    const BEGIN: &str = "-----BEGIN ";
    let mut from = 0;
    while let Some(at) = text[from..].find(BEGIN).map(|at| from + at) {
        let label = at + BEGIN.len();
        let rest = text[label..].trim_start_matches(|c: char| c.is_ascii_uppercase() || c == ' ');
        let dashes = rest.len() - rest.trim_start_matches('-').len();
        if dashes == rest.len() && dashes < 5 {
            return Some(at);
        }
        from = label;
        if text[label..text.len() - rest.len()].ends_with("PRIVATE KEY") && dashes >= 5 {
            match end_of_block(&text[text.len() - rest.len()..]) {
                Some(end) if text.len() - rest.len() + end <= settled => from = text.len() - rest.len() + end,
                // Nobody's key is so long: what goes on without an end is let go.
                None if text.len() - at > LONGEST_BLOCK => return None,
                _ => return Some(at),
            }
        }
    }
    None
}

impl Redactor {
    /// Takes the variables of the environment: those whose names say that they hold a secret count.
    pub fn new(environment: impl IntoIterator<Item = (String, String)>) -> Redactor {
        let mut redactor = Redactor { known: Vec::new(), shapes: OnceCell::new() };
        for (name, value) in environment {
            let upper = name.to_ascii_uppercase();
            if ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS"].iter().any(|end| upper.ends_with(end)) {
                redactor.learn(&name, &value);
            }
        }
        redactor
    }

    /// Adds one secret by the name that is shown in its place.
    pub fn learn(&mut self, name: &str, secret: &str) {
        let secret = secret.trim();
        if secret.len() >= SHORTEST && !self.known.iter().any(|(_, known)| known == secret) {
            self.known.push((name.to_owned(), secret.to_owned()));
            self.known.sort_by_key(|(_, secret)| std::cmp::Reverse(secret.len()));
        }
    }

    /// Returns the text with each secret replaced by `[redacted:NAME]`.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut out = Cow::Borrowed(text);
        if text.len() < SHORTEST {
            return out;
        }
        for (name, secret) in &self.known {
            if memchr::memmem::find(out.as_bytes(), secret.as_bytes()).is_some() {
                out = Cow::Owned(out.replace(secret.as_str(), &format!("[redacted:{name}]")));
            }
        }
        if out.len() >= SHORTEST_SHAPE
            && may_have_shape(&out)
            && let Cow::Owned(redacted) = self.shapes().replace_all(&out, "[redacted]")
        {
            out = Cow::Owned(redacted);
        }
        out
    }

    /// Like [`Redactor::text`], for a text that begins with one in which no secret is: only what is new is searched.
    pub fn text_after<'a>(&self, clean: &str, text: &'a str) -> Cow<'a, str> {
        let from = self.settled(clean);
        let new = &text[from..];
        let known =
            self.known.iter().any(|(_, secret)| memchr::memmem::find(new.as_bytes(), secret.as_bytes()).is_some());
        if known || may_have_shape(new) && self.shapes().find_at(text, from).is_some() {
            return self.text(text);
        }
        Cow::Borrowed(text)
    }

    fn shapes(&self) -> &Regex {
        self.shapes.get_or_init(|| Regex::new(SHAPES).expect("a valid pattern"))
    }

    /// Tells whether a byte goes on with a word that may be a key: all shapes but PEM blocks end with a run of these.
    pub fn is_of_a_word(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || b"_-./+~=".contains(&byte)
    }

    /// Returns how much of a text that goes on is settled: no secret begins in it and ends behind it.
    pub fn settled(&self, text: &str) -> usize {
        let word = |c: char| u8::try_from(c).is_ok_and(Redactor::is_of_a_word);
        let mut settled = text.trim_end_matches(word).len();
        let before = text[..settled].trim_end_matches([' ', '\t']);
        if before.len() < settled && ends_with_bearer(before) {
            settled = before.len() - BEARER.len();
        }
        settled = settled.min(block_over(text, settled).unwrap_or(settled));
        for (_, secret) in &self.known {
            let ends = secret.char_indices().map(|(at, _)| at).skip(1);
            let begun = ends.filter(|at| text.ends_with(&secret[..*at])).max().unwrap_or(0);
            settled = settled.min(text.len() - begun);
        }
        settled
    }

    /// Returns a failure without secrets.
    pub fn failure(&self, mut failure: Failure) -> Failure {
        let texts = std::iter::once(&mut failure.message).chain(&mut failure.hint).chain(&mut failure.details);
        for text in texts {
            if let Cow::Owned(redacted) = self.text(text) {
                *text = redacted;
            }
        }
        failure
    }

    /// Redacts every string and member name of a value in place.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.text(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => {
                if members.keys().any(|name| matches!(self.text(name), Cow::Owned(_))) {
                    *members = std::mem::take(members)
                        .into_iter()
                        .map(|(name, member)| (self.text(&name).into_owned(), member))
                        .collect();
                }
                members.values_mut().for_each(|member| self.value(member));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new([("OPENAI_API_KEY".into(), "planted-secret-1".into()), ("HOME".into(), "/home/me".into())])
    }

    #[test]
    fn a_key_of_the_environment_is_taken_out_of_strings_and_names() {
        let mut value = serde_json::json!({"a planted-secret-1": ["x planted-secret-1 y", 1], "home": "/home/me"});
        redactor().value(&mut value);
        assert_eq!(
            value,
            serde_json::json!({"a [redacted:OPENAI_API_KEY]": ["x [redacted:OPENAI_API_KEY] y", 1], "home": "/home/me"})
        );
    }

    #[test]
    fn the_usual_shapes_are_known_without_the_environment() {
        let text = format!("key sk-{} and ghp_{} stay out", "a".repeat(30), "b".repeat(36));
        assert_eq!(redactor().text(&text), "key [redacted] and [redacted] stay out");
        assert_eq!(redactor().text("nothing to hide"), "nothing to hide");
        let shortest = format!("AKIA{}", "A".repeat(16));
        assert_eq!(shortest.len(), SHORTEST_SHAPE);
        assert_eq!(redactor().text(&shortest), "[redacted]");
    }

    fn secrets() -> Vec<String> {
        let long = "aB3".repeat(20);
        let block = |kind: &str| {
            format!("-----BEGIN {kind}PRIVATE KEY-----\nMIIB{long}\n{long}==\n-----END {kind}PRIVATE KEY-----")
        };
        let mut all: Vec<String> = ["sk-", "ghp_", "gho_", "github_pat_", "xoxb-", "AIza", "glpat-", "hf_", "npm_"]
            .map(|start| format!("{start}{}", &long[..40]))
            .into();
        all.extend(["AKIA", "ASIA"].map(|start| format!("{start}{}", "Q7".repeat(8))));
        all.extend(["Bearer ", "bearer \t ", "BeArEr  "].map(|start| format!("{start}{}==", &long[..30])));
        all.extend(["", "RSA ", "EC ", "OPENSSH "].map(block));
        all.push("planted-secret-1".to_owned());
        all.push(format!("-----BEGIN RSA PRIVATE KEY-----\n{long}"));
        all
    }

    /// As a front end shows a text that comes in pieces: what is settled, piece by piece.
    fn in_pieces(redactor: &Redactor, pieces: &[&str]) -> String {
        let (mut shown, mut rest) = (String::new(), String::new());
        for piece in pieces {
            rest.push_str(piece);
            let settled = redactor.settled(&rest);
            shown.push_str(&redactor.text(&rest[..settled]));
            rest.drain(..settled);
        }
        shown + &redactor.text(&rest)
    }

    /// Each kind of secret, cut at each byte, once and twice, with others before and behind it.
    #[test]
    fn a_text_in_pieces_is_redacted_as_the_whole_is() {
        let redactor = redactor();
        let all = secrets();
        for (index, secret) in all.iter().enumerate() {
            assert!(matches!(redactor.text(secret), Cow::Owned(_)), "{secret}");
            let other = &all[(index + 5) % all.len()];
            for text in [
                format!("key: {secret}"),
                format!("({secret}) and more"),
                format!("-----BEGIN CERTIFICATE-----\n{secret}\n-----END it {other}, no bearer of news"),
            ] {
                let whole = redactor.text(&text);
                for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                    assert_eq!(in_pieces(&redactor, &[&text[..cut], &text[cut..]]), whole, "cut at {cut}: {text}");
                    let second = (cut + 1 + cut % 7).min(text.len());
                    let pieces = [&text[..cut], &text[cut..second], &text[second..]];
                    assert_eq!(in_pieces(&redactor, &pieces), whole, "cut at {cut} and {second}: {text}");
                }
                for cut in (0..=text.len()).filter(|cut| redactor.text(&text[..*cut]) == text[..*cut]) {
                    assert_eq!(redactor.text_after(&text[..cut], &text), whole, "known up to {cut}: {text}");
                }
                let letters: Vec<&str> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
                assert_eq!(in_pieces(&redactor, &letters), whole, "letter by letter: {text}");
            }
        }
    }
}
