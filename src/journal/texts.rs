//! Long texts are written once.
//!
//! A debate sends its whole history with each call; writing it again each time would make the journal grow
//! with the square of the calls. So a string of [`LONG`] bytes or more becomes `{"$text": id}`, and a list
//! that begins with a list that was written before becomes `{"$more": id, "items": […]}`.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

/// The shortest string, in bytes, that is written as a text of its own.
pub const LONG: usize = 256;
/// The shortest list that later lists can refer to.
const LIST: usize = 4;

/// What was written already.
#[derive(Default)]
pub struct Texts {
    texts: HashSet<String>,
    lists: HashSet<String>,
}

impl Texts {
    /// Remembers a text that an earlier process wrote.
    pub fn learn(&mut self, id: &str) {
        self.texts.insert(id.to_owned());
    }

    /// Returns the value with long strings taken out, and gives each new one to `write` first.
    ///
    /// Lists go on from earlier ones only where `lists` says so: requests do, outcomes do not, so that an
    /// outcome can be read without reading what came before it.
    pub fn fold<E>(
        &mut self,
        value: Value,
        lists: bool,
        write: &mut dyn FnMut(&str, &str) -> Result<(), E>,
    ) -> Result<Value, E> {
        Ok(match value {
            Value::String(text) if text.len() >= LONG => {
                let id = digest(text.as_bytes());
                if !self.texts.contains(&id) {
                    write(&id, &text)?;
                    self.texts.insert(id.clone());
                }
                json!({ "$text": id })
            }
            Value::Array(items) => self.fold_list(items, lists, write)?,
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

    fn fold_list<E>(
        &mut self,
        items: Vec<Value>,
        lists: bool,
        write: &mut dyn FnMut(&str, &str) -> Result<(), E>,
    ) -> Result<Value, E> {
        let folded: Vec<Value> =
            items.into_iter().map(|item| self.fold(item, lists, write)).collect::<Result<_, E>>()?;
        if !lists || folded.len() < LIST {
            return Ok(Value::Array(folded));
        }
        let before = self
            .lists
            .iter()
            .filter(|list| folded.starts_with(&list.items))
            .max_by_key(|list| list.items.len())
            .map(|list| (list.digest.clone(), list.items.len(), list.id.clone()));
        let (mut digest, known, written) = match before {
            Some((digest, known, id)) => (digest, known, json!({ "$more": id, "items": folded[known..] })),
            None => (blake3::Hasher::new(), 0, Value::Array(folded.clone())),
        };
        add_items(&mut digest, &folded[known..]);
        let id = hex(digest.finalize().as_bytes());
        if self.lists.len() >= LISTS {
            self.lists.pop_front();
        }
        self.lists.push_back(Written { items: folded, digest, id });
        Ok(written)
    }
}

/// Puts back what [`Texts`] took out.
#[derive(Default)]
pub struct Unfold {
    texts: HashMap<String, String>,
    /// By id: a list as it was folded.
    lists: HashMap<String, Vec<Value>>,
}

impl Unfold {
    pub fn learn(&mut self, id: &str, text: String) {
        self.texts.insert(id.to_owned(), text);
    }

    /// Returns the value with everything put back, or the id that is not known.
    ///
    /// Values must come in the order in which they were written, because a list may go on from one before it.
    pub fn value(&mut self, value: Value) -> Result<Value, String> {
        Ok(match value {
            Value::Array(items) => self.list(items)?,
            Value::Object(mut members) => {
                if let Some(Value::String(id)) = members.get("$text") {
                    return self.texts.get(id).cloned().map(Value::String).ok_or_else(|| id.clone());
                }
                if let Some(Value::String(id)) = members.get("$more") {
                    let mut items = self.lists.get(id).cloned().ok_or_else(|| id.clone())?;
                    if let Some(Value::Array(rest)) = members.remove("items") {
                        items.extend(rest);
                    }
                    return self.list(items);
                }
                let inner = match members.remove("$object") {
                    Some(Value::Object(inner)) => inner,
                    _ => members,
                };
                let members: Result<Map<String, Value>, String> =
                    inner.into_iter().map(|(name, member)| Ok((name, self.value(member)?))).collect();
                Value::Object(members?)
            }
            scalar => scalar,
        })
    }

    fn list(&mut self, items: Vec<Value>) -> Result<Value, String> {
        if items.len() >= LIST {
            let mut digest = blake3::Hasher::new();
            add_items(&mut digest, &items);
            self.lists.insert(hex(digest.finalize().as_bytes()), items.clone());
        }
        items.into_iter().map(|item| self.value(item)).collect::<Result<_, _>>().map(Value::Array)
    }
}

/// Takes more items of a list into its digest.
fn add_items(digest: &mut blake3::Hasher, items: &[Value]) {
    let mut buffer = Vec::new();
    for item in items {
        buffer.clear();
        crate::model::canonical::write(item, &mut buffer);
        buffer.push(b'\n');
        digest.update(&buffer);
    }
}

/// Returns 128 bits of BLAKE3 in hex.
pub fn digest(bytes: &[u8]) -> String {
    hex(blake3::hash(bytes).as_bytes())
}

fn hex(hash: &[u8; 32]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(32);
    for byte in &hash[..16] {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

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
                .fold(value.clone(), true, &mut |id, text| -> Result<(), ()> {
                    new.push((id.to_owned(), text.to_owned()));
                    Ok(())
                })
                .unwrap();
            written += new.len();
            new.into_iter().for_each(|(id, text)| unfold.learn(&id, text));
            assert!(folded.to_string().len() < 200, "{folded}");
            assert_eq!(unfold.value(folded), Ok(value));
        }
        assert_eq!(written, 1);
    }
}
