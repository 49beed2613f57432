//! Byte-level byte-pair encoding, as the models were trained with: a pattern cuts text into words, whose bytes are
//! then joined to tokens pair by pair.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

use super::engine_failure;
use crate::error::Result;

/// How a model cuts text into words. The model's file names its pretokenizer.
struct Pretokenizer {
    pattern: &'static str,
    /// Whether each digit is a word of its own, whatever the pattern says.
    digits: bool,
    /// Whether whitespace that ends in a line break is a word of its own, which `word_end` never shortens.
    lines: bool,
    /// Whether letters and their accents are composed first (NFC).
    composed: bool,
}

// Both patterns end in `\s+` where the models' own patterns have `\s+(?!\S)|\s+`: `word_end` does what the
// look-ahead does, which the `regex` crate lacks.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";
const QWEN2: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+";

fn pretokenizer(name: &str) -> Result<Pretokenizer> {
    Ok(match name {
        "gpt2" | "default" => Pretokenizer { pattern: GPT2, digits: false, lines: false, composed: false },
        "smollm" => Pretokenizer { pattern: GPT2, digits: true, lines: false, composed: false },
        "qwen2" => Pretokenizer { pattern: QWEN2, digits: false, lines: true, composed: true },
        other => return Err(engine_failure(format!("the engine does not know how {other:?} cuts text into words"))),
    })
}

/// Encodes plain text: control tokens' names such as `<|im_end|>` are words like others.
pub(super) struct Encoder {
    pretokenizer: Pretokenizer,
    pattern: Regex,
    /// The token of each byte. Small models have no token for bytes that never occur in text; these bytes are left out.
    bytes: [Option<u32>; 256],
    /// For two tokens that may be joined: the rank of the join and the token that results.
    merges: HashMap<(u32, u32), (u32, u32)>,
}

impl Encoder {
    /// Takes the bytes of each text token, and the pairs that are joined in order of rank.
    pub(super) fn new<'a>(
        name: &str,
        tokens: impl Iterator<Item = (u32, &'a [u8])>,
        joins: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>>,
    ) -> Result<Encoder> {
        let pretokenizer = pretokenizer(name)?;
        let ids: HashMap<&[u8], u32> = tokens.map(|(id, bytes)| (bytes, id)).collect();
        let find = |bytes: &[u8]| {
            let token = String::from_utf8_lossy(bytes);
            ids.get(bytes).copied().ok_or_else(|| engine_failure(format!("no token is {token:?}")))
        };
        let bytes = std::array::from_fn(|byte| ids.get([byte as u8].as_slice()).copied());
        let mut merges = HashMap::new();
        for (rank, pair) in joins.enumerate() {
            let (left, right) = pair?;
            let joined = find(&[left.as_slice(), &right].concat())?;
            merges.entry((find(&left)?, find(&right)?)).or_insert((rank as u32, joined));
        }
        let pattern = Regex::new(pretokenizer.pattern).map_err(engine_failure)?;
        Ok(Encoder { pretokenizer, pattern, bytes, merges })
    }

    pub(super) fn encode(&self, text: &str, into: &mut Vec<u32>) {
        let text =
            if self.pretokenizer.composed { Cow::Owned(text.nfc().collect::<String>()) } else { Cow::Borrowed(text) };
        let mut known: HashMap<&str, Vec<u32>> = HashMap::new();
        for part in split_digits(&text, self.pretokenizer.digits) {
            let mut start = 0;
            while let Some(found) = self.pattern.find_at(part, start) {
                let end = self.word_end(part, found.start(), found.end());
                let word = &part[found.start()..end];
                into.extend_from_slice(known.entry(word).or_insert_with(|| self.merge(word.as_bytes())));
                start = end;
            }
        }
    }

    /// Returns where a match really ends: of several blanks before a word, the last belongs to that word.
    fn word_end(&self, text: &str, start: usize, end: usize) -> usize {
        let word = &text[start..end];
        let line = self.pretokenizer.lines && word.ends_with(['\r', '\n']);
        if end == text.len() || line || !word.chars().all(char::is_whitespace) {
            return end;
        }
        match word.char_indices().last() {
            Some((at, _)) if at > 0 => start + at,
            _ => end,
        }
    }

    /// Joins the bytes of a word to tokens: the pair of the lowest rank first, and of equal ranks the leftmost.
    fn merge(&self, word: &[u8]) -> Vec<u32> {
        let known = word.iter().filter_map(|byte| self.bytes[usize::from(*byte)]);
        let mut tokens: Vec<Option<u32>> = known.map(Some).collect();
        let mut next: Vec<usize> = (1..=tokens.len()).collect();
        let mut previous: Vec<usize> = (0..tokens.len()).map(|at| at.wrapping_sub(1)).collect();
        let mut heap = BinaryHeap::new();
        let offer = |heap: &mut BinaryHeap<_>, tokens: &[Option<u32>], left: usize, right: usize| {
            let pair = tokens.get(left).copied().flatten().zip(tokens.get(right).copied().flatten());
            if let Some((pair, (rank, joined))) = pair.and_then(|pair| Some((pair, *self.merges.get(&pair)?))) {
                heap.push(Reverse((rank, left, right, pair, joined)));
            }
        };
        for left in 0..tokens.len() {
            offer(&mut heap, &tokens, left, left + 1);
        }
        while let Some(Reverse((_, left, right, pair, joined))) = heap.pop() {
            // One of the two tokens may have been joined with another meanwhile.
            if tokens[left].zip(tokens[right]) != Some(pair) || next[left] != right {
                continue;
            }
            tokens[left] = Some(joined);
            tokens[right] = None;
            next[left] = next[right];
            if let Some(before) = previous.get_mut(next[left]) {
                *before = left;
            }
            offer(&mut heap, &tokens, previous[left], left);
            offer(&mut heap, &tokens, left, next[left]);
        }
        tokens.into_iter().flatten().collect()
    }
}

/// Cuts text before and after each digit if `digits` is set.
fn split_digits(text: &str, digits: bool) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = match digits {
            true if first.is_numeric() => first.len_utf8(),
            true => rest.find(char::is_numeric).unwrap_or(rest.len()),
            false => rest.len(),
        };
        let (part, after) = rest.split_at(end);
        rest = after;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an encoder whose tokens are all bytes and the results of `joins`.
    fn encoder(name: &str, joins: &[(&str, &str)]) -> Encoder {
        let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
        tokens.extend(joins.iter().map(|(left, right)| [left.as_bytes(), right.as_bytes()].concat()));
        let pairs = joins.iter().map(|(left, right)| Ok((left.as_bytes().to_vec(), right.as_bytes().to_vec())));
        let tokens = tokens.iter().enumerate().map(|(id, bytes)| (id as u32, bytes.as_slice()));
        Encoder::new(name, tokens, pairs).expect("it is whole")
    }

    fn cut<'a>(encoder: &Encoder, text: &'a str) -> Vec<&'a str> {
        let mut cut = Vec::new();
        for part in split_digits(text, encoder.pretokenizer.digits) {
            let mut start = 0;
            while let Some(found) = encoder.pattern.find_at(part, start) {
                start = encoder.word_end(part, found.start(), found.end());
                cut.push(&part[found.start()..start]);
            }
        }
        cut
    }

    #[test]
    fn text_is_cut_as_the_models_cut_it() {
        let text = "it's  12 x\n\n  y \t\r\n z  ";
        let qwen = ["it", "'s", " ", " ", "1", "2", " x", "\n\n", " ", " y", " \t\r\n", " z", "  "];
        assert_eq!(cut(&encoder("qwen2", &[]), text), qwen);
        let gpt = ["it", "'s", " ", " 12", " x", "\n\n ", " y", " \t\r\n", " z", "  "];
        assert_eq!(cut(&encoder("gpt2", &[]), text), gpt);
        let smol = ["it", "'s", "  ", "1", "2", " x", "\n\n ", " y", " \t\r\n", " z", "  "];
        assert_eq!(cut(&encoder("smollm", &[]), text), smol);
    }

    #[test]
    fn pairs_are_joined_the_earliest_first_and_from_the_left() {
        let encoder = encoder("gpt2", &[("b", "c"), ("a", "b"), ("a", "a"), ("aa", "a"), ("ab", "bc")]);
        let encode = |text: &str| {
            let mut tokens = Vec::new();
            encoder.encode(text, &mut tokens);
            tokens
        };
        assert_eq!(encode("abc"), [97, 256], "b and c come first");
        assert_eq!(encode("abbc"), [260]);
        assert_eq!(encode("aaaa"), [258, 258], "pairs from the left");
        assert_eq!(encode("aaaaa"), [258, 259], "and only then what they can be joined to");
        assert_eq!(encode(""), [0u32; 0]);
    }

    #[test]
    fn a_word_without_end_takes_no_time_without_end() {
        let encoder = encoder("gpt2", &[("a", "a"), ("aa", "aa"), ("aaaa", "aaaa")]);
        let mut tokens = Vec::new();
        encoder.encode(&"a".repeat(1_000_000), &mut tokens);
        assert_eq!(tokens.len(), 125_000);
    }

    #[test]
    fn an_unknown_way_to_cut_is_refused() {
        assert!(pretokenizer("something-else").is_err());
    }
}
