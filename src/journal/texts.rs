//! Long texts are written once.
//!
//! A debate sends its whole history with each call; writing it again each time would make the journal grow
//! with the square of the calls. So a string of [`LONG`] bytes or more becomes `{"$text": id}`, whose text is written
//! once, as far as it is new (`parts`), and a list of
//! [`LIST`] items or more becomes `{"$list": id, "$after": id, "items": […]}`: the items behind those of a
//! list that was written before, if there is one that it begins with.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::journal::parts::{Earlier, Part};
use crate::model::digest::Digest;
use crate::model::text::excerpt;

/// The shortest string, in bytes, that is written as a text of its own.
pub const LONG: usize = 256;
/// The shortest list that later lists can refer to.
pub const LIST: usize = 4;
/// What a text may be long, and what a value may stand for, in bytes: a few lines could otherwise stand for more than any
/// memory holds.
const LONGEST: usize = 256 << 20;
/// What each item, member and piece of a text that is referred to counts besides, in bytes.
const STEP: usize = 96;
/// How deep lists and objects may stand in one another.
const DEEPEST: usize = 256;

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

/// Puts back what [`Texts`] took out.
///
/// A journal that somebody made up can refer to what is there again and again, so that a few lines stand for more than
/// any memory holds. What one value stands for is bounded; nothing refers to what comes after it.
#[derive(Default)]
pub struct Unfold {
    texts: HashMap<String, Text>,
    /// Which of `written` has this id.
    lists: HashMap<String, usize>,
    written: Vec<List>,
}

/// A text as it was written: no piece is empty.
struct Text {
    pieces: Vec<Piece>,
    /// Where each piece ends.
    ends: Vec<usize>,
}

impl Text {
    fn length(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }
}

/// A list as it was folded: items behind those of an earlier one.
struct List {
    after: Option<usize>,
    items: Arc<[Value]>,
}

/// A piece of a text.
#[derive(Debug)]
pub enum Piece {
    New(String),
    Of { id: String, from: usize, to: usize },
}

impl Piece {
    fn length(&self) -> usize {
        match self {
            Piece::New(text) => text.len(),
            Piece::Of { from, to, .. } => to - from,
        }
    }
}

/// What is left of the bytes that the references of one value may stand for, and of how deep it may be.
struct Room {
    bytes: usize,
    depth: usize,
    /// What is put back now stands in another line, and not in the one that is read.
    elsewhere: bool,
}

impl Room {
    fn new() -> Room {
        Room { bytes: LONGEST, depth: DEEPEST, elsewhere: false }
    }

    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.ok_or_else(|| format!("it stands for more than {LONGEST} bytes"))?;
        Ok(())
    }

    /// Takes what a value takes that is there once more.
    fn repeat(&mut self, bytes: usize) -> Result<(), String> {
        if self.elsewhere { self.take(STEP + bytes) } else { Ok(()) }
    }
}

fn absent(id: &str) -> String {
    format!("it refers to {}, which is not there", excerpt(id))
}

impl Unfold {
    /// Remembers a text, or says what is wrong with it. What a text says does not change: one that is known stays.
    pub fn learn(&mut self, id: &str, pieces: Vec<Piece>) -> Result<(), String> {
        let mut ends = Vec::with_capacity(pieces.len());
        let mut length: usize = 0;
        for piece in &pieces {
            if let Piece::Of { id: of, from, to } = piece {
                let known = self.texts.get(of).ok_or_else(|| absent(of))?;
                if from > to || *to > known.length() {
                    return Err(format!("it refers to a part of {} that is not there", excerpt(of)));
                }
            }
            if piece.length() > 0 {
                length = length.saturating_add(piece.length());
                ends.push(length);
            }
        }
        if length > LONGEST {
            return Err(format!("it stands for a text of more than {LONGEST} bytes"));
        }
        if !self.texts.contains_key(id) {
            let pieces = pieces.into_iter().filter(|piece| piece.length() > 0).collect();
            self.texts.insert(id.to_owned(), Text { pieces, ends });
        }
        Ok(())
    }

    /// Returns a text that was learnt.
    pub fn text(&self, id: &str) -> Option<String> {
        self.put_together(id, &mut Room::new()).ok()
    }

    fn put_together(&self, id: &str, room: &mut Room) -> Result<String, String> {
        let known = |id: &str| self.texts.get(id).ok_or_else(|| absent(id));
        let whole = known(id)?;
        room.take(whole.length())?;
        let mut bytes = Vec::with_capacity(whole.length());
        // What is left to put together, last first: texts refer to others, and those again, without end.
        let mut left = vec![(whole, 0, whole.length())];
        while let Some((text, from, to)) = left.pop() {
            room.take(STEP)?;
            let at = text.ends.partition_point(|end| *end <= from);
            let Some((piece, end)) = text.pieces.get(at).zip(text.ends.get(at)) else { continue };
            // The rest of this text comes behind what its piece stands for.
            if *end < to {
                left.push((text, *end, to));
            }
            let begin = end - piece.length();
            let (from, to) = (from - begin, to.min(*end) - begin);
            match piece {
                Piece::New(text) => bytes.extend_from_slice(&text.as_bytes()[from..to]),
                Piece::Of { id, from: start, .. } => left.push((known(id)?, start + from, start + to)),
            }
        }
        String::from_utf8(bytes).map_err(|_| format!("it refers to {}, which is no text", excerpt(id)))
    }

    /// Returns the value with everything put back, or why that cannot be.
    ///
    /// Values must come in the order in which they were written, because a list may go on from one before it.
    pub fn value(&mut self, value: Value) -> Result<Value, String> {
        self.put_back(value, &mut Room::new())
    }

    fn put_back(&mut self, value: Value, room: &mut Room) -> Result<Value, String> {
        let whole = match value {
            Value::Array(_) | Value::Object(_) => value,
            Value::String(text) => return room.repeat(text.len()).map(|()| Value::String(text)),
            scalar => return room.repeat(0).map(|()| scalar),
        };
        room.repeat(0)?;
        room.depth = room.depth.checked_sub(1).ok_or_else(|| format!("it is more than {DEEPEST} deep"))?;
        let whole = match whole {
            Value::Object(members) => self.object(members, room),
            Value::Array(items) => self.items(items.into_iter(), room).map(Value::Array),
            scalar => Ok(scalar),
        };
        room.depth += 1;
        whole
    }

    fn object(&mut self, mut members: Map<String, Value>, room: &mut Room) -> Result<Value, String> {
        if let Some(Value::String(id)) = members.get("$text") {
            return self.put_together(id, room).map(Value::String);
        }
        if let Some(Value::String(id)) = members.remove("$list") {
            return self.list(id, members, room).map(Value::Array);
        }
        let inner = match members.remove("$object") {
            Some(Value::Object(inner)) => inner,
            _ => members,
        };
        let member = |(name, member): (String, Value)| {
            room.repeat(name.len())?;
            Ok((name, self.put_back(member, room)?))
        };
        inner.into_iter().map(member).collect::<Result<_, String>>().map(Value::Object)
    }

    fn list(&mut self, id: String, mut members: Map<String, Value>, room: &mut Room) -> Result<Vec<Value>, String> {
        let after = match members.remove("$after") {
            Some(Value::String(before)) => Some(*self.lists.get(&before).ok_or_else(|| absent(&before))?),
            _ => None,
        };
        let items = match members.remove("items") {
            Some(Value::Array(items)) => items.into(),
            _ => Arc::default(),
        };
        self.lists.insert(id, self.written.len());
        self.written.push(List { after, items: Arc::clone(&items) });
        let mut earlier = Vec::new();
        let mut before = after;
        while let Some(list) = before.and_then(|at| self.written.get(at)) {
            room.take(STEP)?;
            earlier.push(Arc::clone(&list.items));
            before = list.after;
        }
        let here = std::mem::replace(&mut room.elsewhere, true);
        let mut all = Vec::new();
        for part in earlier.iter().rev() {
            all.extend(self.items(part.iter().cloned(), room)?);
        }
        room.elsewhere = here;
        all.extend(self.items(items.iter().cloned(), room)?);
        Ok(all)
    }

    fn items(&mut self, mut items: impl Iterator<Item = Value>, room: &mut Room) -> Result<Vec<Value>, String> {
        items.try_fold(Vec::new(), |mut all, item| {
            all.push(self.put_back(item, room)?);
            Ok(all)
        })
    }
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
    fn a_text_of_parts_of_parts_comes_back_and_one_of_nothing_is_refused() {
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
        let of = |id: &str, to| vec![Piece::Of { id: id.to_owned(), from: 0, to }];
        unfold.learn("a", vec![Piece::New("0123456789".to_owned())]).unwrap();
        assert!(unfold.learn("b", of("a", 11)).unwrap_err().contains("part of a"));
        assert!(unfold.learn("b", of("c", 1)).unwrap_err().contains("c, which is not there"));
        let mut last = "a".to_owned();
        let bomb = (0..60).map(|level| format!("d{level}")).find_map(|id| {
            let length = unfold.texts[&last].length();
            let pieces = (0..10).flat_map(|_| of(&last, length)).collect();
            last.clone_from(&id);
            unfold.learn(&id, pieces).err()
        });
        assert!(bomb.is_some_and(|why| why.contains("more than")));
    }
}
