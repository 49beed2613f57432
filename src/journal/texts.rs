//! Writes long texts only once.
//!
//! A debate sends its whole history with each call; writing it again each time would make the journal grow
//! with the square of the calls. So a string of [`LONG`] bytes or more becomes `{"$text": id}`, and only the new parts of
//! its text are written, once (`parts`). A list of [`LIST`] items or more becomes
//! `{"$list": id, "$after": id, "items": […]}`: if it begins with a list that was written before, `$after` names that list
//! and `items` has only the items behind it.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::journal::parts::{RecentTexts, TextPart};
use crate::model::digest::Digest;

/// The shortest string, in bytes, that is written as a text of its own.
pub(crate) const LONG: usize = 256;
/// The fewest items of a list that later lists can refer to.
pub(crate) const LIST: usize = 4;

/// The digests of all prefixes of a list: of its first item, of its first two, and so on.
#[derive(Default)]
pub struct PrefixDigests(Vec<Digest>);

impl PrefixDigests {
    /// Makes the prefix digests of a list from the digests of its items.
    pub fn of(items: impl Iterator<Item = Digest>) -> PrefixDigests {
        let mut link = [0; 32];
        let chain = items.map(|item| {
            link[16..].copy_from_slice(&item.bytes());
            let prefix = Digest::of(&link);
            link[..16].copy_from_slice(&prefix.bytes());
            prefix
        });
        PrefixDigests(chain.collect())
    }

    /// Returns the digest of the whole list; `None` if the list is empty.
    pub fn list_digest(&self) -> Option<Digest> {
        self.0.last().copied()
    }
}

/// The texts and lists that the journal has already.
#[derive(Default)]
pub struct InternedTexts {
    texts: HashSet<Digest>,
    lists: HashSet<Digest>,
    earlier: RecentTexts,
}

/// Writes a new text into the journal: its id and its parts.
type Write<'a, E> = &'a mut dyn FnMut(&str, &[TextPart<'_>]) -> Result<(), E>;

impl InternedTexts {
    /// Remembers the id of a text that an earlier process wrote.
    pub fn add_known(&mut self, id: Digest) {
        self.texts.insert(id);
    }

    /// Remembers the text itself as well, because the next text may repeat it.
    pub fn keep(&mut self, id: Digest, text: &str) {
        self.earlier.keep(id, text);
    }

    /// Returns the value with references in place of long strings, after passing each new string to `write`.
    ///
    /// Lists are folded only if `lists` is set. That is so for requests, but not for outcomes, so that an outcome can be
    /// expanded without the lists before it.
    ///
    /// # Errors
    ///
    /// Those of `write`.
    pub fn intern<E>(&mut self, value: Value, lists: bool, write: Write<'_, E>) -> Result<Value, E> {
        Ok(match value {
            Value::String(text) if text.len() >= LONG => {
                let id = Digest::of(text.as_bytes());
                let name = id.to_string();
                if !self.texts.contains(&id) {
                    write(&name, &self.earlier.parts(&text).unwrap_or_else(|| vec![TextPart::New(&text)]))?;
                    self.earlier.keep(id, &text);
                    self.texts.insert(id);
                }
                json!({ "$text": name })
            }
            Value::Array(mut items) if lists => {
                let chain = if items.len() < LIST {
                    PrefixDigests::default()
                } else {
                    PrefixDigests::of(items.iter().map(Digest::of_json))
                };
                self.intern_list(&chain, items.len(), |index| items[index].take(), write)?
            }
            Value::Array(items) => {
                items.into_iter().map(|item| self.intern(item, lists, write)).collect::<Result<_, E>>()?
            }
            Value::Object(members) => {
                let reserved = members.keys().any(|name| name.starts_with('$'));
                let folded: Map<String, Value> = members
                    .into_iter()
                    .map(|(name, member)| Ok((name, self.intern(member, lists, write)?)))
                    .collect::<Result<_, E>>()?;
                if reserved { json!({ "$object": folded }) } else { Value::Object(folded) }
            }
            scalar => scalar,
        })
    }

    /// Returns a folded list; `item` is called only for the items behind the longest prefix that was written before.
    ///
    /// # Errors
    ///
    /// Those of `write`.
    pub fn intern_list<E>(
        &mut self,
        chain: &PrefixDigests,
        length: usize,
        mut item: impl FnMut(usize) -> Value,
        write: Write<'_, E>,
    ) -> Result<Value, E> {
        let known = chain.0.iter().rposition(|id| self.lists.contains(id)).map_or(0, |last| last + 1);
        let items: Vec<Value> =
            (known..length).map(|index| self.intern(item(index), true, write)).collect::<Result<_, E>>()?;
        let Some(id) = chain.list_digest().filter(|_| length >= LIST) else { return Ok(Value::Array(items)) };
        self.lists.insert(id);
        let mut folded = Map::new();
        folded.insert("$list".to_owned(), Value::String(id.to_string()));
        if known > 0 {
            folded.insert("$after".to_owned(), Value::String(chain.0[known - 1].to_string()));
        }
        folded.insert("items".to_owned(), Value::Array(items));
        Ok(Value::Object(folded))
    }
}

/// Tells whether interning a value without folding lists leaves it as it is: most outcomes are small.
pub(crate) fn is_inline(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() < LONG,
        Value::Array(items) => items.iter().all(is_inline),
        Value::Object(members) => members.iter().all(|(name, member)| !name.starts_with('$') && is_inline(member)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::expander::{OwnedPart, TextExpander};

    #[test]
    fn what_is_folded_comes_back_and_is_written_once() {
        let long = "x".repeat(LONG);
        let first = json!({"messages": [{"t": long}, 1, 2, 3], "$odd": {"$text": "no id"}});
        let second = json!({"messages": [{"t": long}, 1, 2, 3, 4], "empty": []});
        let mut texts = InternedTexts::default();
        let mut expander = TextExpander::default();
        let mut written = 0;
        for value in [first, second] {
            let mut new = Vec::new();
            let folded = texts
                .intern(value.clone(), true, &mut |id, parts| -> Result<(), ()> {
                    new.push((id.to_owned(), parts.iter().map(piece).collect()));
                    Ok(())
                })
                .unwrap();
            written += new.len();
            new.into_iter().for_each(|(id, pieces)| expander.add_text(&id, pieces).unwrap());
            assert!(folded.to_string().len() < 200, "{folded}");
            assert_eq!(expander.expand(folded), Ok(value));
        }
        assert_eq!(written, 1);
    }

    fn piece(part: &TextPart<'_>) -> OwnedPart {
        match part {
            TextPart::New(text) => OwnedPart::New((*text).to_owned()),
            TextPart::Of { id, from, to } => OwnedPart::Of { id: id.to_string(), from: *from, to: *to },
        }
    }

    #[test]
    fn a_text_of_parts_of_parts_comes_back() {
        let (mut texts, mut expander) = (InternedTexts::default(), TextExpander::default());
        let mut all = Vec::new();
        let mut text = String::new();
        for turn in 0..300 {
            let new = format!("turn {turn}: {}\n", "und so weiter, möglichst lang; ".repeat(10));
            text = if turn % 7 == 3 { format!("{new}{text}") } else { text + &new };
            let folded = texts.intern(json!(text), false, &mut |id, parts| -> Result<(), String> {
                expander.add_text(id, parts.iter().map(piece).collect())
            });
            all.push((folded.unwrap(), text.clone()));
        }
        for (folded, text) in all {
            assert_eq!(expander.expand(folded), Ok(json!(text)));
        }
    }
}
