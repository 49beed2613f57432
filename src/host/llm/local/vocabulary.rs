//! A model's vocabulary: turns text into tokens and back, and gives the token trie by which a reply is constrained.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use llguidance::toktrie::{TokEnv, TokRxInfo, TokTrie, TokenizerEnv};

use super::bpe::Encoder;
use super::engine_failure;
use super::gguf::{Gguf, MetadataValue};
use crate::error::Result;

/// GGUF's token types: control tokens, which are not text, and text that is not written in byte letters.
const CONTROL: i128 = 3;
const USER_DEFINED: i128 = 4;

pub(super) struct Vocabulary {
    table: Arc<TokenTable>,
    /// Control tokens such as `<|im_end|>`, longest name first. Only the chat template may write them.
    specials: Vec<(String, u32)>,
}

struct TokenTable {
    encoder: Encoder,
    bytes: Vec<Vec<u8>>,
    trie: TokTrie,
}

impl Vocabulary {
    pub(super) fn read(file: &Gguf) -> Result<Vocabulary> {
        if file.text("tokenizer.ggml.model")? != "gpt2" || file.flag("tokenizer.ggml.ignore_merges") {
            return Err(engine_failure("the engine knows byte-level vocabularies with merges only"));
        }
        let end = file.number("tokenizer.ggml.eos_token_id")?;
        let letters = letters();
        let kinds = file.list("tokenizer.ggml.token_type")?;
        let (mut bytes, mut marked, mut specials) = (Vec::new(), Vec::new(), Vec::new());
        for (id, name) in file.list("tokenizer.ggml.tokens")?.iter().enumerate() {
            let name = name.text().ok_or_else(|| engine_failure(format!("token {id} has no name")))?;
            let kind = kinds.get(id).and_then(MetadataValue::integer).unwrap_or(1);
            let word: Vec<u8> = match kind {
                CONTROL => Vec::new(),
                USER_DEFINED => name.as_bytes().to_vec(),
                _ => decode_byte_letters(&letters, name),
            };
            if kind == CONTROL || id == end {
                specials.push((name.to_owned(), id as u32));
                bytes.push(Vec::new());
                marked.push([&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat());
            } else {
                bytes.push(word.clone());
                marked.push(word);
            }
        }
        specials.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let trie = TokTrie::from(&TokRxInfo::new(marked.len() as u32, end as u32), &marked);
        let tokens = bytes.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty());
        let joins = file.list("tokenizer.ggml.merges")?.iter().map(|pair| {
            let pair = pair.text().and_then(|pair| pair.split_once(' '));
            let (left, right) = pair.ok_or_else(|| engine_failure("a merge of the model file is not a pair"))?;
            Ok((decode_byte_letters(&letters, left), decode_byte_letters(&letters, right)))
        });
        let pretokenizer = file.text("tokenizer.ggml.pre").unwrap_or("default");
        let encoder = Encoder::new(pretokenizer, tokens.map(|(id, bytes)| (id as u32, bytes.as_slice())), joins)?;
        Ok(Vocabulary { table: Arc::new(TokenTable { encoder, bytes, trie }), specials })
    }

    /// Returns the tokens in the form that the grammar compiler needs.
    pub(super) fn env(&self) -> TokEnv {
        self.table.clone()
    }

    /// Tells whether a token is not text, but the end or the beginning of a turn.
    pub(super) fn is_special(&self, token: u32) -> bool {
        self.table.bytes.get(token as usize).is_none_or(Vec::is_empty)
    }

    pub(super) fn bytes(&self, token: u32) -> &[u8] {
        self.table.bytes.get(token as usize).map_or(&[], Vec::as_slice)
    }

    /// Encodes text of people and models, in which a control token's name is just text.
    pub(super) fn encode_plain(&self, text: &str, into: &mut Vec<u32>) {
        self.table.encoder.encode(text, into);
    }

    /// Encodes text of the chat template, in which the names of control tokens become these tokens.
    pub(super) fn encode_template(&self, mut text: &str, into: &mut Vec<u32>) {
        loop {
            let matches = self.specials.iter().filter_map(|(name, id)| Some((text.find(name.as_str())?, name, *id)));
            let Some((at, name, id)) = matches.min_by_key(|(at, _, _)| *at) else {
                return self.encode_plain(text, into);
            };
            if at > 0 {
                self.encode_plain(&text[..at], into);
            }
            into.push(id);
            text = &text[at + name.len()..];
        }
    }
}

impl TokenizerEnv for TokenTable {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        match String::from_utf8_lossy(bytes) {
            Cow::Borrowed(text) => {
                let mut tokens = Vec::new();
                self.encoder.encode(text, &mut tokens);
                tokens
            }
            // The piece ends in the middle of a character.
            Cow::Owned(_) => self.trie.greedy_tokenize(bytes),
        }
    }
}

/// Returns the bytes that a name in byte letters stands for.
fn decode_byte_letters(letters: &HashMap<char, u8>, name: &str) -> Vec<u8> {
    name.chars().filter_map(|letter| letters.get(&letter).copied()).collect()
}

/// Returns the byte letters: the printable characters by which byte-level vocabularies write each byte.
fn letters() -> HashMap<char, u8> {
    let mut spare = 0x100;
    let letter = |byte: u8| match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => (char::from(byte), byte),
        _ => {
            spare += 1;
            (char::from_u32(spare - 1).unwrap_or('�'), byte)
        }
    };
    (0..=255).map(letter).collect()
}

/// Decodes tokens, and releases their text as soon as its characters are complete.
#[derive(Default)]
pub(super) struct Decoder {
    waiting: Vec<u8>,
}

impl Decoder {
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.waiting.extend_from_slice(bytes);
        let mut text = String::new();
        loop {
            match std::str::from_utf8(&self.waiting) {
                Ok(whole) => {
                    text.push_str(whole);
                    self.waiting.clear();
                    return text;
                }
                Err(error) => {
                    let (good, rest) = self.waiting.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(good));
                    // Bytes that can never become a character are replaced by one; an incomplete character waits.
                    let Some(bad) = error.error_len() else {
                        self.waiting = rest.to_vec();
                        return text;
                    };
                    text.push('\u{fffd}');
                    self.waiting = rest[bad..].to_vec();
                }
            }
        }
    }

    /// Returns the replacement for a character that never became complete.
    pub(super) fn finish(self) -> &'static str {
        if self.waiting.is_empty() { "" } else { "\u{fffd}" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_in_whole_characters() {
        let mut decoder = Decoder::default();
        let euro = "a€b".as_bytes();
        assert_eq!(decoder.push(&euro[..2]), "a");
        assert_eq!(decoder.push(&euro[2..3]), "");
        assert_eq!(decoder.push(&euro[3..]), "€b");
        assert_eq!(decoder.push(&[0xff, b'c', 0xe2]), "\u{fffd}c");
        assert_eq!(decoder.finish(), "\u{fffd}");
    }

    #[test]
    fn each_byte_has_a_letter_of_its_own() {
        let letters = letters();
        assert_eq!(letters.len(), 256);
        assert_eq!(letters[&'Ġ'], b' ');
        assert_eq!(letters[&'Ċ'], b'\n');
    }
}
