//! Takes secrets out of text before it is hashed, written, shown or sent.
//!
//! A secret is recognized by its value or by its shape (`shapes`). Known values are those of variables whose names say that
//! they hold a secret (`names`), and those that a configuration names or a command prints ([`Redactor::learn`]).

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use serde_json::Value;

use crate::error::{Code, Failure, Result};

mod cleaner;
mod names;
mod shapes;

pub use cleaner::Cleaner;

/// Knows the secrets of this process and the usual shapes of secrets. All clones share the same secrets.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<RwLock<Vec<KnownSecret>>>,
}

/// A secret text.
struct KnownSecret {
    /// What is shown in its place.
    name: String,
    text: String,
}

/// Secrets of fewer bytes than this are not redacted, because they would match ordinary text.
const SHORTEST: usize = 8;

/// How often the end of a text is searched again for a secret that begins before the last one found.
const ROUNDS: usize = 64;

/// A line of a multi-line secret is redacted by itself if it has at least this many bytes.
const SHORTEST_LINE: usize = 16;

impl Redactor {
    /// Learns the secrets in environment variables: values of variables whose names say that they hold a secret, and
    /// passwords in URLs. The caller leaves out variables that name an existing file.
    pub fn new(environment: impl IntoIterator<Item = (String, String)>) -> Redactor {
        let redactor = Redactor::default();
        environment.into_iter().for_each(|(name, value)| redactor.learn_variable(&name, &value));
        redactor
    }

    /// Learns the secret in a variable, if its name says that it holds one.
    pub fn learn_variable(&self, name: &str, value: &str) {
        if names::holds_secret(name, value) {
            self.learn(name, value);
        }
        self.learn_address(name, value);
        if names::holds_headers(name) {
            self.learn(name, value);
            let values = value.split(',').filter_map(|pair| pair.split_once('='));
            values.for_each(|(_, value)| self.learn(name, value));
        }
    }

    /// Adds a secret, with the name that is shown in its place. It is recognized as it is, escaped as in JSON, encoded as in a
    /// URL, and by each of its longer lines.
    pub fn learn(&self, name: &str, secret: &str) {
        let secret = secret.trim();
        if secret.len() < SHORTEST {
            return;
        }
        let as_json = Value::from(secret).to_string();
        let in_address = percent_encoded(secret);
        let lines = secret.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
        let forms = [secret, &as_json[1..as_json.len() - 1], &in_address];
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for form in forms.into_iter().chain(lines) {
            let is_there = known.iter().any(|known| known.text == form);
            if !(is_there || form != secret && is_mark(form)) {
                known.push(KnownSecret { name: name.to_owned(), text: form.to_owned() });
            }
        }
        known.sort_by_key(|known| std::cmp::Reverse(known.text.len()));
    }

    /// Adds the password in a URL, if there is one.
    pub fn learn_address(&self, name: &str, address: &str) {
        if let Some(password) = names::password_of(address) {
            self.learn(name, password);
        }
    }

    fn known(&self) -> RwLockReadGuard<'_, Vec<KnownSecret>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the text with each secret replaced by `[redacted:NAME]`.
    ///
    /// ```
    /// use nietz::model::redact::Redactor;
    ///
    /// let redactor = Redactor::new([("SHOP_TOKEN".to_owned(), "pear-plum-4711".to_owned())]);
    /// assert_eq!(redactor.text("it is pear-plum-4711"), "it is [redacted:SHOP_TOKEN]");
    /// ```
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut out = Cow::Borrowed(text);
        if text.len() < SHORTEST {
            return out;
        }
        for KnownSecret { name, text } in self.known().iter() {
            if memchr::memmem::find(out.as_bytes(), text.as_bytes()).is_some() {
                out = Cow::Owned(out.replace(text.as_str(), &format!("[redacted:{name}]")));
            }
        }
        match shapes::redact_shapes(&out) {
            Some(without) => Cow::Owned(without),
            None => out,
        }
    }

    /// Tells whether a text holds a secret that is known by its value, whatever escapes of JSON hide it. Shapes of secrets do
    /// not count.
    pub fn holds_known(&self, text: &str) -> bool {
        fn any(value: &Value, holds: &dyn Fn(&str) -> bool) -> bool {
            match value {
                Value::String(text) => holds(text),
                Value::Array(items) => items.iter().any(|item| any(item, holds)),
                Value::Object(members) => members.iter().any(|(name, member)| holds(name) || any(member, holds)),
                Value::Null | Value::Bool(_) | Value::Number(_) => false,
            }
        }
        if self.known().iter().any(|known| memchr::memmem::find(text.as_bytes(), known.text.as_bytes()).is_some()) {
            return true;
        }
        let is_json = text.contains('\\') && text.trim_start().starts_with(['{', '[', '"']);
        let value = is_json.then(|| serde_json::from_str::<Value>(text).ok()).flatten();
        value.is_some_and(|value| any(&value, &|inner| self.holds_known(inner)))
    }

    /// Refuses a name that contains a secret. A name is sent, becomes a folder, or is searched for later, so that it cannot
    /// be redacted.
    ///
    /// # Errors
    ///
    /// `usage` if the name contains a secret.
    pub fn refuse(&self, what: &str, name: Option<&str>) -> Result<()> {
        match name.is_some_and(|name| matches!(self.text(name), Cow::Owned(_))) {
            true => Err(Failure::new(
                Code::Usage,
                format!("{what} has a key or a password in it, which would be written down"),
            )
            .hint("give it another name; keys stand in variables, or in what a command prints")),
            false => Ok(()),
        }
    }

    /// Like [`Redactor::text`], for a text that begins with a text without secrets: only the rest is searched.
    pub fn text_after<'a>(&self, clean: &str, text: &'a str) -> Cow<'a, str> {
        let from = self.settled_length(clean);
        let new = &text[from..];
        let known =
            self.known().iter().any(|known| memchr::memmem::find(new.as_bytes(), known.text.as_bytes()).is_some());
        if known || shapes::may_be_in(new) {
            return self.text(text);
        }
        Cow::Borrowed(text)
    }

    /// Like [`Redactor::text`], for a complete text that may be JSON, in which unusual escapes can hide a secret. JSON that
    /// contains a secret is serialized anew.
    pub fn json_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let redacted = self.text(text);
        let is_json = redacted.contains('\\') && redacted.trim_start().starts_with(['{', '[', '"']);
        let Some(value) = is_json.then(|| serde_json::from_str::<Value>(&redacted).ok()).flatten() else {
            return redacted;
        };
        let mut without = value.clone();
        self.value(&mut without);
        match without == value {
            true => redacted,
            false => Cow::Owned(without.to_string()),
        }
    }

    /// Tells whether a byte can be part of a word that may be a secret.
    pub fn is_of_a_word(byte: u8) -> bool {
        shapes::is_of_a_word(byte)
    }

    /// Returns how many bytes of a growing text are settled: no secret begins before that point and ends behind it.
    ///
    /// Only the end of the text is searched, as far back as the longest secret. If possible beginnings of secrets fill all
    /// of it, the text before it is settled.
    pub fn settled_length(&self, text: &str) -> usize {
        let word = |c: char| u8::try_from(c).is_ok_and(Redactor::is_of_a_word);
        let start = text.floor_char_boundary(text.len().saturating_sub(shapes::LONGEST));
        let start = text[..start].trim_end_matches(word).len();
        let full_text = text;
        let text = &text[start..];
        let mut settled = text.len();
        for _ in 0..ROUNDS {
            let before = settled;
            settled = text[..settled].trim_end_matches(word).len();
            settled = settled.min(shapes::unfinished_start(text, settled).unwrap_or(settled));
            for KnownSecret { text: secret, .. } in self.known().iter() {
                settled = settled
                    .min(text.len() - partial_suffix_length(secret, text))
                    .min(straddling_start(secret, text, settled));
            }
            if settled == before {
                return start + settled;
            }
        }
        self.known().iter().fold(start, |settled, known| settled.min(straddling_start(&known.text, full_text, settled)))
    }

    /// Returns a failure without secrets.
    pub fn failure(&self, mut failure: Failure) -> Failure {
        let place =
            failure.place.iter_mut().flat_map(|place| std::iter::once(&mut place.file).chain(&mut place.excerpt));
        let messages = std::iter::once(&mut failure.message).chain(&mut failure.hint).chain(&mut failure.details);
        let texts = messages.chain(place);
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
                if let Cow::Owned(redacted) = self.json_text(text) {
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

/// Returns with how many bytes of the beginning of a secret a text ends; 0 if with none or the whole secret.
fn partial_suffix_length(secret: &str, text: &str) -> usize {
    let (Some(last), Some((_, most))) = (text.as_bytes().last(), secret.as_bytes().split_last()) else { return 0 };
    let mut ends = memchr::memrchr_iter(*last, most).map(|at| at + 1);
    ends.find(|at| text.as_bytes().ends_with(&most[..*at])).unwrap_or(0)
}

/// Returns the start of a secret that spans `settled`, or `settled` itself if there is none.
fn straddling_start(secret: &str, text: &str, settled: usize) -> usize {
    let from = settled.saturating_sub(secret.len() - 1);
    let to = (settled + secret.len() - 1).min(text.len());
    let found = memchr::memmem::find(&text.as_bytes()[from..to], secret.as_bytes());
    found.map_or(settled, |at| from + at)
}

/// Returns a text as it is encoded in a URL.
fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Tells whether a line is only the marker at the beginning or end of a multi-line key.
fn is_mark(line: &str) -> bool {
    line.starts_with("-----")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new([
            ("OPENAI_API_KEY".into(), "planted-secret-1".into()),
            ("MULTI_KEY".into(), "first line of it\nsecond part".into()),
            ("HOME".into(), "/home/me".into()),
        ])
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
    }

    #[test]
    fn what_only_looks_like_one_stays() {
        for text in [
            "basic understanding of a risk-assessment, and basic authentication",
            "the task-0123456789012345678901234567890",
            "550e8400-e29b-41d4-a716-446655440000 and 9627f04299fd5f2be028bbbae9781b19",
            "https://user:password@example.org, http://${USER}:${PASS}@h, http://{user}:{secret}@h, http://h:8080/a@b",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "SECRET_ACCESS_KEY is the name of a variable; npm_config_registry is another",
        ] {
            assert_eq!(redactor().text(text), text);
        }
    }

    #[test]
    fn the_password_alone_is_taken_out_of_an_address() {
        let text = "see postgres://me:hunter2-x@db:5432/x and redis://:p!a:ss@h";
        assert_eq!(redactor().text(text), "see postgres://me:[redacted]@db:5432/x and redis://:[redacted]@h");
    }

    #[test]
    fn what_is_learnt_later_is_known_to_all_copies_in_every_form() {
        let redactor = Redactor::default();
        let copy = redactor.clone();
        redactor.learn("K", "qk\"quo\\te/plus+9\nand a second, longer line");
        let text = r#"{"x":"qk\"quo\\te/plus+9\nand a second, longer line"} qk%22quo%5Cte%2Fplus%2B9%0Aand%20a%20second%2C%20longer%20line"#;
        assert_eq!(copy.text(text), r#"{"x":"[redacted:K]"} [redacted:K]"#);
        assert_eq!(copy.text("head: and a second, longer line"), "head: [redacted:K]");
    }

    #[test]
    fn escapes_hide_nothing_in_json() {
        let redactor = redactor();
        let text = r#"{"a":["\u0070lanted-secret-1", "{\"b\":\"planted\\u002dsecret-1\"}"]}"#;
        assert_eq!(
            redactor.json_text(text),
            r#"{"a":["[redacted:OPENAI_API_KEY]","{\"b\":\"[redacted:OPENAI_API_KEY]\"}"]}"#
        );
        let plain = r#"{ "a": "b\n" }"#;
        assert_eq!(redactor.json_text(plain), plain, "what holds nothing stays as it was written");
    }

    #[test]
    fn a_known_value_is_found_behind_escapes_and_a_shape_is_none() {
        let redactor = redactor();
        let shape = format!("sk-{}", "a".repeat(30));
        assert!(matches!(redactor.text(&shape), Cow::Owned(_)));
        for (text, holds) in [
            ("see planted-secret-1", true),
            (r#"{"a":["\u0070lanted-secret-1"]}"#, true),
            (r#"{"a":"{\"b\":\"planted\\u002dsecret-1\"}"}"#, true),
            (r#"{"planted\u002dsecret-1":1}"#, true),
            (shape.as_str(), false),
            (r#"{"a":"b\n"}"#, false),
        ] {
            assert_eq!(redactor.holds_known(text), holds, "{text}");
        }
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
        all.extend(["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "].map(block));
        all.push(block("PGP ").replace("KEY-----", "KEY BLOCK-----"));
        let hex = "0a".repeat(20);
        all.push(format!("PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{long}\nPrivate-MAC: {hex}"));
        all.extend(
            [
                "sk_live_",
                "rk_test_",
                "whsec_",
                "ghs_",
                "glrt-",
                "xapp-",
                "ya29.",
                "dckr_pat_",
                "hvs.",
                "gsk_",
                "lin_api_",
            ]
            .map(|start| format!("{start}{long}")),
        );
        all.extend(
            ["AccountKey=", "SharedAccessKey=", "_authToken=", ":_auth="].map(|start| format!("{start}{long}==")),
        );
        all.push(format!("SG.{}.{}", &long[..22], &long[..43]));
        all.push(format!("eyJ{}.eyJ{}.{}", &long[..20], &long[..30], &long[..43]));
        all.push(format!("aB3~aB3~8Q~{}", &long[..34]));
        all.extend(["Basic ", "basic\t"].map(|start| format!("{start}Ym9iOmh1bnRlcjI=")));
        all.push(format!("aws_secret_access_key = {}", &long[..40]));
        all.push(format!("\"SecretAccessKey\": \"{}\"", &long[..40]));
        all.extend(["https://bob:hunter2-x@h.example/x", "redis://:p!a@ss:!@h"].map(str::to_owned));
        all.push("first line of it\nsecond part".to_owned());
        all.push("planted-secret-1".to_owned());
        all.push(format!("-----BEGIN RSA PRIVATE KEY-----\n{long}"));
        all
    }

    /// Redacts a text that arrives in pieces as a front end does: whenever a part is settled.
    fn in_pieces(redactor: &Redactor, pieces: &[&str]) -> String {
        let (mut shown, mut rest) = (String::new(), String::new());
        for piece in pieces {
            rest.push_str(piece);
            let settled = redactor.settled_length(&rest);
            shown.push_str(&redactor.text(&rest[..settled]));
            rest.drain(..settled);
        }
        shown + &redactor.text(&rest)
    }

    /// Each kind of secret is cut at each byte, once and twice, with other secrets before and behind it.
    #[test]
    fn a_text_in_pieces_is_redacted_as_the_whole_is() {
        let redactor = redactor();
        let all = secrets();
        for (index, secret) in all.iter().enumerate() {
            assert!(matches!(redactor.text(secret), Cow::Owned(_)), "{secret}");
            let long = format!("{}{secret}", "no word of it. ".repeat(2000));
            assert!(redactor.text(&long).contains("[redacted"), "behind much else: {secret}");
            let other = &all[(index + 5) % all.len()];
            for text in [
                format!("key: {secret}"),
                format!("({secret}) and more"),
                format!("-----BEGIN CERTIFICATE-----\n{secret}\n-----END it {other}, no bearer of news"),
            ] {
                let expected = redactor.text(&text);
                for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                    assert_eq!(in_pieces(&redactor, &[&text[..cut], &text[cut..]]), expected, "cut at {cut}: {text}");
                    let second = (cut + 1 + cut % 7).min(text.len());
                    let pieces = [&text[..cut], &text[cut..second], &text[second..]];
                    assert_eq!(in_pieces(&redactor, &pieces), expected, "cut at {cut} and {second}: {text}");
                }
                for cut in (0..=text.len()).filter(|cut| redactor.text(&text[..*cut]) == text[..*cut]) {
                    assert_eq!(redactor.text_after(&text[..cut], &text), expected, "known up to {cut}: {text}");
                }
                let letters: Vec<&str> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
                assert_eq!(in_pieces(&redactor, &letters), expected, "letter by letter: {text}");
            }
        }
    }
}
