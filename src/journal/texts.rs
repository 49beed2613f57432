//! Long texts are written once.
//!
//! A debate sends its whole history with each call; writing it again each time would make the journal grow
//! with the square of the calls. So a string of [`LONG`] bytes or more becomes `{"$text": id}`, whose text is written
//! once, as far as it is new (`parts`), and a list of
//! [`LIST`] items or more becomes `{"$list": id, "$after": id, "items": […]}`: the items behind those of a
//! list that was written before, if there is one that it begins with.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::journal::parts::{Earlier, Part};
use crate::model::digest::Digest;

/// The shortest string, in bytes, that is written as a text of its own.
pub const LONG: usize = 256;
/// The shortest list that later lists can refer to.
pub const LIST: usize = 4;

/// The digests of all beginnings of a list: of its first item, of its first two, and so on.
#[derive(Default)]
pub struct Chain(Vec<Digest>);

impl Chain {
    /// Makes the chain of a list from the digests of its items.
    pub fn of(items: impl Iterator<Item = Digest>) -> Chain {
        let mut link = [0; 32];
        let chain = items.map(|item| {
            link[16..].copy_from_slice(&item.bytes());
            let whole = Digest::of(&link);
            link[..16].copy_from_slice(&whole.bytes());
            whole
        });
        Chain(chain.collect())
    }

    /// Returns the digest of the whole list; none of an empty one.
    pub fn whole(&self) -> Option<Digest> {
        self.0.last().copied()
    }
}

/// What was written already.
#[derive(Default)]
pub struct Texts {
    texts: HashSet<Digest>,
    lists: HashSet<Digest>,
    earlier: Earlier,
}

/// What writes a new text into the journal: by its id, in parts.
type Write<'a, E> = &'a mut dyn FnMut(&str, &[Part<'_>]) -> Result<(), E>;

impl Texts {
    /// Remembers a text that an earlier process wrote.
    pub fn learn(&mut self, id: Digest) {
        self.texts.insert(id);
    }

    /// Remembers what it says, too: the next one may repeat it.
    pub fn keep(&mut self, id: Digest, text: &str) {
        self.earlier.keep(id, text);
    }

    /// Returns the value with long strings taken out, and gives each new one to `write` first.
    ///
    /// Lists go on from earlier ones only where `lists` says so: requests do, outcomes do not, so that an
    /// outcome can be read without reading what came before it.
    pub fn fold<E>(&mut self, value: Value, lists: bool, write: Write<'_, E>) -> Result<Value, E> {
        Ok(match value {
            Value::String(text) if text.len() >= LONG => {
                let id = Digest::of(text.as_bytes());
                let name = id.to_string();
                if !self.texts.contains(&id) {
                    write(&name, &self.earlier.parts(&text).unwrap_or_else(|| vec![Part::New(&text)]))?;
                    self.earlier.keep(id, &text);
                    self.texts.insert(id);
                }
                json!({ "$text": name })
            }
            Value::Array(mut items) if lists => {
                let chain =
                    if items.len() < LIST { Chain::default() } else { Chain::of(items.iter().map(Digest::of_json)) };
                self.fold_list(&chain, items.len(), |index| items[index].take(), write)?
            }
            Value::Array(items) => {
                items.into_iter().map(|item| self.fold(item, lists, write)).collect::<Result<_, E>>()?
            }
            Value::Object(members) => {
                let reserved = members.keys().any(|name| name.starts_with('$'));
                let folded: Map<String, Value> = members
                    .into_iter()
                    .map(|(name, member)| Ok((name, self.fold(member, lists, write)?)))
                    .collect::<Result<_, E>>()?;
                if reserved { json!({ "$object": folded }) } else { Value::Object(folded) }
            }
            scalar => scalar,
        })
    }

    /// Returns a list folded; `item` is called for those items alone that no list before began with.
    pub fn fold_list<E>(
        &mut self,
        chain: &Chain,
        length: usize,
        mut item: impl FnMut(usize) -> Value,
        write: Write<'_, E>,
    ) -> Result<Value, E> {
        let known = chain.0.iter().rposition(|id| self.lists.contains(id)).map_or(0, |last| last + 1);
        let items: Vec<Value> =
            (known..length).map(|index| self.fold(item(index), true, write)).collect::<Result<_, E>>()?;
        let Some(id) = chain.whole().filter(|_| length >= LIST) else { return Ok(Value::Array(items)) };
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

/// Tells whether folding a value, its lists aside, leaves it as it is: most outcomes are small.
pub fn stays(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() < LONG,
        Value::Array(items) => items.iter().all(stays),
        Value::Object(members) => members.iter().all(|(name, member)| !name.starts_with('$') && stays(member)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::unfold::{Piece, Unfold};

    #[test]
    fn what_is_folded_comes_back_and_is_written_once() {
        let long = "x".repeat(LONG);
        let first = json!({"messages": [{"t": long}, 1, 2, 3], "$odd": {"$text": "no id"}});
        let second = json!({"messages": [{"t": long}, 1, 2, 3, 4], "empty": []});
        let mut texts = Texts::default();
        let mut unfold = Unfold::default();
        let mut written = 0;
        for value in [first, second] {
            let mut new = Vec::new();
            let folded = texts
                .fold(value.clone(), true, &mut |id, parts| -> Result<(), ()> {
                    new.push((id.to_owned(), parts.iter().map(piece).collect()));
                    Ok(())
                })
                .unwrap();
            written += new.len();
            new.into_iter().for_each(|(id, pieces)| unfold.learn(&id, pieces).unwrap());
            assert!(folded.to_string().len() < 200, "{folded}");
            assert_eq!(unfold.value(folded), Ok(value));
        }
        assert_eq!(written, 1);
    }

    fn piece(part: &Part<'_>) -> Piece {
        match part {
            Part::New(text) => Piece::New((*text).to_owned()),
            Part::Of { id, from, to } => Piece::Of { id: id.to_string(), from: *from, to: *to },
        }
    }

    #[test]
    fn a_text_of_parts_of_parts_comes_back() {
        let (mut texts, mut unfold) = (Texts::default(), Unfold::default());
        let mut all = Vec::new();
        let mut text = String::new();
        for turn in 0..300 {
            let new = format!("turn {turn}: {}\n", "und so weiter, möglichst lang; ".repeat(10));
            text = if turn % 7 == 3 { format!("{new}{text}") } else { text + &new };
            let folded = texts.fold(json!(text), false, &mut |id, parts| -> Result<(), String> {
                unfold.learn(id, parts.iter().map(piece).collect())
            });
            all.push((folded.unwrap(), text.clone()));
        }
        for (folded, text) in all {
            assert_eq!(unfold.value(folded), Ok(json!(text)));
        }
    }
}
