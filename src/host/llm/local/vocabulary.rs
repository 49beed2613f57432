//! The words of a model: text to tokens and back, and the tree of them that constrains a reply.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use candle_core::quantized::tokenizer::TokenizerFromGguf;
use llguidance::toktrie::{TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use tokenizers::Tokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;

use super::broken;
use super::gguf::Gguf;
use crate::error::Result;

/// Token kinds of GGUF: not text at all, and text that is not written in byte letters.
const CONTROL: u32 = 3;
const USER_DEFINED: u32 = 4;

pub(super) struct Vocabulary {
    words: Arc<Words>,
    /// Names such as `<|im_end|>`, longest first. Only the chat template may write them.
    specials: Vec<(String, u32)>,
}

struct Words {
    tokenizer: Tokenizer,
    bytes: Vec<Vec<u8>>,
    trie: TokTrie,
}

impl Vocabulary {
    pub(super) fn read(file: &Gguf) -> Result<Vocabulary> {
        let mut tokenizer = Tokenizer::from_gguf(&file.content).map_err(broken)?;
        if file.text("tokenizer.ggml.pre").is_ok_and(|name| name == "smollm") {
            // candle does not know this one: each digit is a word of its own.
            let parts = vec![Digits::new(true).into(), ByteLevel::new(false, true, true).into()];
            tokenizer.with_pre_tokenizer(Some(Sequence::new(parts)));
        }
        tokenizer.set_encode_special_tokens(true);
        let end = file.number("tokenizer.ggml.eos_token_id")?;
        let letters = letters();
        let kinds = file.list("tokenizer.ggml.token_type")?;
        let (mut bytes, mut marked, mut specials) = (Vec::new(), Vec::new(), Vec::new());
        for (id, name) in file.list("tokenizer.ggml.tokens")?.iter().enumerate() {
            let name = name.to_string().map_err(broken)?;
            let kind = kinds.get(id).and_then(|kind| kind.to_i32().ok()).unwrap_or(1).unsigned_abs();
            let word: Vec<u8> = match kind {
                CONTROL => Vec::new(),
                USER_DEFINED => name.clone().into_bytes(),
                _ => name.chars().filter_map(|letter| letters.get(&letter).copied()).collect(),
            };
            if kind == CONTROL || id == end {
                specials.push((name.clone(), id as u32));
                bytes.push(Vec::new());
                marked.push([&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat());
            } else {
                bytes.push(word.clone());
                marked.push(word);
            }
        }
        specials.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let trie = TokTrie::from(&TokRxInfo::new(marked.len() as u32, end as u32), &marked);
        Ok(Vocabulary { words: Arc::new(Words { tokenizer, bytes, trie }), specials })
    }

    /// Returns what a grammar compiler needs to know of the tokens.
    pub(super) fn env(&self) -> TokEnv {
        self.words.clone()
    }

    /// Tells whether a token is no text: the end of a turn, or the beginning of one.
    pub(super) fn is_special(&self, token: u32) -> bool {
        self.words.bytes.get(token as usize).is_none_or(Vec::is_empty)
    }

    pub(super) fn bytes(&self, token: u32) -> &[u8] {
        self.words.bytes.get(token as usize).map_or(&[], Vec::as_slice)
    }

    /// Encodes text of people and models; a special name in it is just text.
    pub(super) fn encode_plain(&self, text: &str, into: &mut Vec<u32>) -> Result<()> {
        let encoded = self.words.tokenizer.encode_fast(text, false).map_err(broken)?;
        into.extend_from_slice(encoded.get_ids());
        Ok(())
    }

    /// Encodes text of the chat template, in which special names are tokens.
    pub(super) fn encode_template(&self, mut text: &str, into: &mut Vec<u32>) -> Result<()> {
        loop {
            let found = self.specials.iter().filter_map(|(name, id)| Some((text.find(name.as_str())?, name, *id)));
            let Some((at, name, id)) = found.min_by_key(|(at, _, _)| *at) else {
                return self.encode_plain(text, into);
            };
            if at > 0 {
                self.encode_plain(&text[..at], into)?;
            }
            into.push(id);
            text = &text[at + name.len()..];
        }
    }
}

impl TokenizerEnv for Words {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        match String::from_utf8_lossy(bytes) {
            Cow::Borrowed(text) => match self.tokenizer.encode_fast(text, false) {
                Ok(encoded) => encoded.get_ids().to_vec(),
                Err(_) => self.trie.greedy_tokenize(bytes),
            },
            // A piece that ends in the middle of a character.
            Cow::Owned(_) => self.trie.greedy_tokenize(bytes),
        }
    }
}

/// The printable letters that byte-level vocabularies write each byte with.
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

/// Gives out the text of tokens as soon as its characters are whole.
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
                    // Bytes that can never become a character are shown as one; others wait.
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

    /// Returns what is left of a character that never became whole.
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
