//! Shapes of secrets, which are recognized wherever they occur.
//!
//! Every shape except a key block (PEM, PGP, PuTTY) and the password in a URL is a run of bytes that
//! [`is_of_a_word`] accepts, or such a run behind one of the [`HEADS`]. Therefore a text that arrives in pieces can be
//! searched piece by piece.

use std::sync::OnceLock;

use memchr::memmem;
use regex::Regex;

/// The beginnings of shapes, and how each continues. A beginning must be at the start of a word.
const SHAPES: &[(&[&str], &str)] = &[
    // OpenAI, Anthropic and providers with the same form; Groq, xAI, Perplexity, Replicate, Hugging Face.
    (&["sk-"], "[A-Za-z0-9_-]{20,}"),
    (&["gsk_", "pplx-", "xai-"], "[A-Za-z0-9]{40,}"),
    (&["r8_"], r"[A-Za-z0-9]{37}\b"),
    (&["hf_"], "[A-Za-z0-9]{30,}"),
    // AWS: ids of keys; the keys themselves have no shape, and are recognized behind their names.
    (&["AKIA", "ASIA", "ABIA", "ACCA"], r"[0-9A-Z]{16}\b"),
    // Azure: keys of storage accounts and service buses.
    (&["AccountKey=", "SharedAccessKey="], "[A-Za-z0-9+/]{40,}=*"),
    // GitHub, GitLab.
    (&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], "[A-Za-z0-9]{36,}"),
    (&["github_pat_"], "[A-Za-z0-9_]{40,}"),
    (&["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glsoat-", "glagent-"], "[0-9A-Za-z_-]{20,}"),
    // Slack, Google.
    (&["xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"], "[A-Za-z0-9-]{20,}"),
    (&["hooks.slack.com/"], "(?:services|workflows|triggers)/[A-Za-z0-9+/]{40,}"),
    (&["AIza"], "[0-9A-Za-z_-]{35}"),
    (&["ya29."], "[0-9A-Za-z_-]{20,}"),
    (&["GOCSPX-"], "[A-Za-z0-9_-]{28}"),
    // Stripe, SendGrid, Shopify.
    (&["sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_prod_", "rk_prod_"], "[A-Za-z0-9]{10,}"),
    (&["whsec_"], "[A-Za-z0-9+/]{24,}=*"),
    (&["SG."], r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    (&["shpat_", "shpca_", "shppa_", "shpss_"], "[a-fA-F0-9]{32}"),
    // Package registries: npm, PyPI, RubyGems, Docker.
    (&["npm_"], "[A-Za-z0-9]{36}"),
    (&["_authToken=", "_auth=", "_password="], "[A-Za-z0-9._~+/-]{8,}=*"),
    (&["pypi-"], "[A-Za-z0-9_-]{60,}"),
    (&["rubygems_"], "[a-f0-9]{48}"),
    (&["dckr_pat_"], "[A-Za-z0-9_-]{20,}"),
    // Clouds and tools.
    (&["dop_v1_", "doo_v1_", "dor_v1_"], "[a-f0-9]{64}"),
    (&["hvs.", "hvb."], "[A-Za-z0-9_-]{24,}"),
    (&["lin_api_"], "[A-Za-z0-9]{40}"),
    (&["glsa_"], "[A-Za-z0-9]{32}_[a-fA-F0-9]{8}"),
    (&["PMAK-"], "[a-f0-9]{24}-[a-f0-9]{34}"),
    (&["NRAK-"], "[A-Z0-9]{27}"),
    (&["pscale_"], "(?:tkn|pw|oauth)_[A-Za-z0-9._-]{32,}"),
    (&["sntrys_"], "[A-Za-z0-9+/_]{40,}=*"),
    (&["AGE-SECRET-KEY-1"], "[A-Z0-9]{58}"),
    // A JSON Web Token: a header and a payload that begin with `{"`, and a signature, which may be empty.
    (&["eyJ"], r"[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"),
];

/// Shapes without a fixed beginning at the start of a word: texts that each shape contains, and the complete pattern.
const OTHERS: &[(&[&str], &str)] = &[
    (&["Q~"], "[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    (
        &["ecret_access_key", "ECRET_ACCESS_KEY", "ecretAccessKey"],
        r#"(?i:secret_?access_?key)["'\ \t:=]{1,8}[A-Za-z0-9/+]{40,}=*"#,
    ),
    (
        &["-----BEGIN "],
        r"-----BEGIN\ [A-Z\ ]*PRIVATE\ KEY(?:\ BLOCK)?-----(?su:.)*?(?:-----END\ [A-Z\ ]*PRIVATE\ KEY(?:\ BLOCK)?-----|\z)",
    ),
    (&[PUTTY], r"PuTTY-User-Key-File-[0-9](?su:.)*?(?:Private-MAC:\ [0-9a-f]{40,}|\z)"),
];

/// Authorization headers, in any case.
const HEADERS: &str = r"\b(?i:bearer[\ \t]+)[A-Za-z0-9._~+/-]{20,}=*|\b(?i:basic[\ \t]+)[A-Za-z0-9+/]{8,}=*";

/// Words before a secret, in lower case; blanks, quotes, colons and equal signs may stand between the two.
const HEADS: &[&str] = &["bearer", "basic", "secret_access_key", "secretaccesskey"];

const PUTTY: &str = "PuTTY-User-Key-File-";

/// No text with a shape is shorter than this, in bytes.
const SHORTEST: usize = 14;

/// The longest private key block whose end is waited for, and the longest authority (user and host) of a URL, in bytes.
const LONGEST_BLOCK: usize = 64 * 1024;
const LONGEST_AUTHORITY: usize = 512;

/// How far back the end of a text is searched for an unfinished secret, in bytes.
pub(super) const LONGEST: usize = LONGEST_BLOCK + 4096;

/// Passwords of examples, which are no secrets.
const EXAMPLES: &[&str] = &["password", "passwd", "secret", "token", "username", "pass1", "p%40ss", "redacted"];

/// All shapes except the password in a URL; compiled when a text first may have one.
fn shapes() -> &'static Regex {
    static SHAPES_OF_ALL: OnceLock<Regex> = OnceLock::new();
    SHAPES_OF_ALL.get_or_init(|| {
        let begin = |words: &[&str]| words.iter().map(|word| regex::escape(word)).collect::<Vec<_>>().join("|");
        let shapes = SHAPES.iter().map(|(words, rest)| format!(r"\b(?:{}){rest}", begin(words)));
        let others = OTHERS.iter().map(|(_, whole)| (*whole).to_owned());
        let all: Vec<String> = shapes.chain(others).chain([HEADERS.to_owned()]).collect();
        Regex::new(&format!("(?-u){}", all.join("|").replace(r"\ ", " "))).expect("a valid pattern")
    })
}

/// The fixed texts of which every shape except a header contains one. Hardly any text contains one, so that the shapes
/// are seldom compiled and searched for.
fn beginnings() -> &'static Regex {
    static BEGINNINGS: OnceLock<Regex> = OnceLock::new();
    BEGINNINGS.get_or_init(|| {
        let all = SHAPES.iter().chain(OTHERS).flat_map(|(words, _)| words.iter());
        let all: Vec<String> = all.map(|word| regex::escape(word)).collect();
        Regex::new(&all.join("|")).expect("a valid pattern")
    })
}

/// Texts up to this many bytes are searched without compiling any regular expression, so that short runs start quickly.
const SHORT: usize = 16 * 1024;

/// The beginnings of shapes, and how each continues.
type Shapes = [(&'static [&'static str], &'static str)];

/// A set of byte pairs, one bit each.
struct Pairs([u64; 1024]);

impl Pairs {
    /// Returns the set of the first two bytes of all beginnings.
    const fn of(shapes: &Shapes) -> Pairs {
        let mut pairs = [0; 1024];
        let mut shape = 0;
        while shape < shapes.len() {
            let words = shapes[shape].0;
            let mut word = 0;
            while word < words.len() {
                let bytes = words[word].as_bytes();
                let pair = (bytes[0] as usize) << 8 | bytes[1] as usize;
                pairs[pair / 64] |= 1 << (pair % 64);
                word += 1;
            }
            shape += 1;
        }
        Pairs(pairs)
    }

    fn has(&self, pair: usize) -> bool {
        self.0[pair / 64] >> (pair % 64) & 1 == 1
    }
}

static PAIRS: Pairs = Pairs::of(SHAPES);
static OTHER_PAIRS: Pairs = Pairs::of(OTHERS);

/// Tells whether a short text contains one of the [`beginnings`].
fn begins_in(text: &str) -> bool {
    let bytes = text.as_bytes();
    let begins = |shapes: &Shapes, at: usize| {
        shapes.iter().flat_map(|(words, _)| *words).any(|word| bytes[at..].starts_with(word.as_bytes()))
    };
    bytes.windows(2).enumerate().any(|(at, pair)| {
        let pair = usize::from(pair[0]) << 8 | usize::from(pair[1]);
        let starts_word = || at == 0 || !is_letter(bytes[at - 1]) || !is_letter(bytes[at]);
        PAIRS.has(pair) && starts_word() && begins(SHAPES, at) || OTHER_PAIRS.has(pair) && begins(OTHERS, at)
    })
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Tells whether a byte can be part of a word that may be a secret.
pub(super) fn is_of_a_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./+~=".contains(&byte)
}

fn may_have_shape(text: &str) -> bool {
    if text.len() < SHORTEST {
        return false;
    }
    let bytes = text.as_bytes();
    if bytes.len() <= SHORT {
        return begins_in(text) || has_header(bytes);
    }
    let letter = |at: usize| is_letter(bytes[at]);
    let begins = |found: regex::Match<'_>| {
        // The texts of `OTHERS` may be in the middle of a word.
        found.start() == 0 || !letter(found.start() - 1) || !letter(found.start()) || is_other(found.as_str())
    };
    beginnings().find_iter(text).any(begins) || has_header(bytes)
}

fn is_other(found: &str) -> bool {
    OTHERS.iter().any(|(words, _)| words.contains(&found))
}

/// Tells whether a text contains an authorization header, in any case.
fn has_header(text: &[u8]) -> bool {
    let is_one = |at: usize| {
        HEADS[..2].iter().any(|head| {
            text.get(at..at + head.len()).is_some_and(|it| it.eq_ignore_ascii_case(head.as_bytes()))
                && text.get(at + head.len()).is_some_and(|next| matches!(next, b' ' | b'\t'))
        })
    };
    memchr::memchr2_iter(b'b', b'B', text).any(is_one)
}

/// Tells whether a text may contain a shape. A text that surely has none is not searched further.
pub(super) fn may_be_in(text: &str) -> bool {
    may_have_shape(text) || addresses(text).any(|(at, end)| text[at..end].contains('@'))
}

/// Returns the text with shapes of secrets redacted; `None` if there are none.
pub(super) fn redact_shapes(text: &str) -> Option<String> {
    let without = redact_passwords(text);
    let text = without.as_deref().unwrap_or(text);
    if !may_have_shape(text) {
        return without;
    }
    let (mut out, mut copied, mut from) = (String::new(), 0, 0);
    while let Some(found) = shapes().find_at(text, from) {
        if is_basic(found.as_str()) && !has_user(found.as_str()) {
            // The header may occur again behind this word.
            from = found.start() + "basic".len();
            continue;
        }
        out.push_str(&text[copied..found.start()]);
        out.push_str("[redacted]");
        (copied, from) = (found.end(), found.end());
    }
    if copied == 0 {
        return without;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

fn is_basic(found: &str) -> bool {
    found.get(..5).is_some_and(|head| head.eq_ignore_ascii_case("basic"))
}

/// Tells whether a header holds a user and a password, in base64.
fn has_user(header: &str) -> bool {
    let value = header[5..].trim_start().trim_end_matches('=');
    let (mut bits, mut count, mut decoded) = (0_u32, 0, Vec::new());
    for byte in value.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        bits = bits << 6 | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            decoded.push((bits >> count) as u8);
        }
    }
    let decoded = String::from_utf8(decoded).unwrap_or_default();
    decoded.contains(':') && !decoded.contains(char::is_control)
}

/// Returns the start and end of the authority (user and host) of each URL.
fn addresses(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let bytes = text.as_bytes();
    // Most texts are short and have no URL: building a searcher for three bytes would cost more than it saves.
    memchr::memchr_iter(b':', bytes).filter(|at| bytes[at + 1..].starts_with(b"//")).map(move |at| {
        let rest = &text.as_bytes()[at + 3..];
        let most = rest.len().min(LONGEST_AUTHORITY);
        let end = rest[..most].iter().position(|byte| byte.is_ascii_whitespace() || b"/?#\"'<>`\\".contains(byte));
        (at + 3, at + 3 + end.unwrap_or(most))
    })
}

fn redact_passwords(text: &str) -> Option<String> {
    let (mut out, mut copied) = (String::new(), 0);
    for (at, end) in addresses(text) {
        let Some(user) = text.as_bytes()[at..end].iter().rposition(|byte| *byte == b'@') else { continue };
        let Some(colon) = text.as_bytes()[at..at + user].iter().position(|byte| *byte == b':') else { continue };
        let (from, to) = (at + colon + 1, at + user);
        if from >= copied && is_password(&text[from..to], &text[at..at + colon]) {
            out.push_str(&text[copied..from]);
            out.push_str("[redacted]");
            copied = to;
        }
    }
    (copied > 0).then(|| out + &text[copied..])
}

/// Tells a password from placeholders in instructions and examples.
fn is_password(password: &str, user: &str) -> bool {
    let stands_for = password.contains(['{', '}', '$', '[', ']', '(', ')', '*', '|', ',', ';'])
        || password.starts_with('%') && password.len() == 2
        || password.contains("://")
        || password.bytes().all(|byte| byte == b'x' || byte == b'.' || byte == b'X');
    password.len() >= 5
        && !stands_for
        && password != user
        && !EXAMPLES.iter().any(|example| password.eq_ignore_ascii_case(example))
}

/// Returns the first start of something that may become a secret with the text that follows, or that spans `settled`.
pub(super) fn unfinished_start(text: &str, settled: usize) -> Option<usize> {
    let heads = head_before(&text[..settled]);
    let address = addresses(text).find(|(at, end)| {
        let cut = end == &text.len() && end - at < LONGEST_AUTHORITY;
        cut || (at - 3 < settled && settled < *end)
    });
    // The text may also end inside the `://` of a URL.
    let colon = text[..settled].ends_with(':') && "//".starts_with(&text[settled..]);
    let colon = colon.then(|| settled - 1);
    [heads, block_over(text, settled), putty_over(text, settled), address.map(|(at, _)| at - 3), colon]
        .into_iter()
        .flatten()
        .min()
}

/// Returns the start of one of the [`HEADS`] if the text ends with it and at least one separator behind it.
fn head_before(text: &str) -> Option<usize> {
    let before = text.trim_end_matches([' ', '\t', '"', '\'', ':', '=']);
    let found = HEADS.iter().find(|head| {
        let tail = before.len().checked_sub(head.len()).and_then(|at| before.as_bytes().get(at..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(head.as_bytes()))
    });
    (before.len() < text.len()).then_some(found).flatten().map(|head| before.len() - head.len())
}

/// Tells whether this is the label of a private key block.
fn is_private(label: &str) -> bool {
    label.ends_with("PRIVATE KEY") || label.ends_with("PRIVATE KEY BLOCK")
}

/// Returns where a PEM block of a private key ends, if it does.
fn end_of_block(text: &str) -> Option<usize> {
    const END: &str = "-----END ";
    let mut from = 0;
    while let Some(at) = text[from..].find(END).map(|at| from + at + END.len()) {
        let label = text[at..].trim_start_matches(|c: char| c.is_ascii_uppercase() || c == ' ');
        let (begin, end) = (at, text.len() - label.len());
        if is_private(&text[begin..end]) && label.starts_with("-----") {
            return Some(end + "-----".len());
        }
        from = at;
    }
    None
}

/// Returns the start of a PEM block of a private key, or of what may become one, that does not end before `settled`.
fn block_over(text: &str, settled: usize) -> Option<usize> {
    const BEGIN: &str = "-----BEGIN ";
    let mut from = 0;
    while let Some(at) = memmem::find(&text.as_bytes()[from..], BEGIN.as_bytes()).map(|at| from + at) {
        let label = at + BEGIN.len();
        let rest = text[label..].trim_start_matches(|c: char| c.is_ascii_uppercase() || c == ' ');
        let dashes = rest.len() - rest.trim_start_matches('-').len();
        if dashes == rest.len() && dashes < 5 {
            return Some(at);
        }
        from = label;
        if is_private(&text[label..text.len() - rest.len()]) && dashes >= 5 {
            let inside = text.len() - rest.len();
            match block_state(text, at, end_of_block(rest).map(|end| inside + end), settled) {
                BlockState::Ended(end) => from = end,
                BlockState::GivenUp => return None,
                BlockState::Waits => return Some(at),
            }
        }
    }
    None
}

/// Like [`block_over`], for a PuTTY key.
fn putty_over(text: &str, settled: usize) -> Option<usize> {
    const LAST: &str = "Private-MAC: ";
    let mut from = 0;
    while let Some(at) = memmem::find(&text.as_bytes()[from..], PUTTY.as_bytes()).map(|at| from + at) {
        from = at + PUTTY.len();
        if !text[from..].starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let digits =
            |rest: &str| rest.len() - rest.trim_start_matches(|c: char| matches!(c, '0'..='9' | 'a'..='f')).len();
        let mut ends = memmem::find_iter(&text.as_bytes()[from..], LAST).map(|end| from + end + LAST.len());
        let end = ends.find(|end| digits(&text[*end..]) >= 40).map(|end| end + digits(&text[end..]));
        match block_state(text, at, end, settled) {
            BlockState::Ended(end) => from = end,
            BlockState::GivenUp => return None,
            BlockState::Waits => return Some(at),
        }
    }
    None
}

enum BlockState {
    Ended(usize),
    Waits,
    GivenUp,
}

fn block_state(text: &str, at: usize, end: Option<usize>, settled: usize) -> BlockState {
    match end {
        Some(end) if end <= settled => BlockState::Ended(end),
        // No key is this long: a block without an end is not waited for.
        None if text.len() - at > LONGEST_BLOCK => BlockState::GivenUp,
        _ => BlockState::Waits,
    }
}
