//! Puts back the texts and lists that `texts` took out, within limits on the expanded size.
//!
//! A journal that came with a checkout may hold anything: a short line may refer to one long text a thousand times, and
//! lists may nest themselves in each other. So the expanded size of one line and of all lines is limited in proportion to
//! what is written in the journal.

use std::collections::HashMap;
use std::mem::size_of;

use serde_json::{Map, Value};

/// A single text or line may expand to `ROOM` bytes plus `TIMES` times the bytes written so far.
const ROOM: usize = 64 << 20;
const TIMES: usize = 4;
/// The same for all lines together; more, because each call of a long debate repeats what was said before it.
const ROOM_IN_ALL: usize = 4 << 30;
const TIMES_IN_ALL: usize = 64;
/// How deeply a value may nest: as deeply as the JSON reader allows.
const DEEPEST: usize = 128;

/// Puts back what [`InternedTexts`](crate::journal::texts::InternedTexts) took out.
#[derive(Default)]
pub struct TextExpander {
    texts: HashMap<String, StoredText>,
    lists: HashMap<String, usize>,
    /// The folded lists, by number; each may continue an earlier one.
    folded: Vec<FoldedList>,
    /// The bytes that were written, and the bytes that were put back, in this line and in all lines.
    written: usize,
    line: usize,
    all: usize,
}

/// A text as it was written: in pieces.
struct StoredText {
    length: usize,
    /// The pieces with their offsets in the text.
    pieces: Vec<(usize, OwnedPart)>,
}

/// A list: the items of an earlier list, if any, and new items behind them.
struct FoldedList {
    before: Option<usize>,
    items: Vec<Value>,
}

/// A piece of a text.
#[derive(Debug)]
pub enum OwnedPart {
    New(String),
    Of { id: String, from: usize, to: usize },
}

impl OwnedPart {
    fn length(&self) -> usize {
        match self {
            OwnedPart::New(text) => text.len(),
            OwnedPart::Of { from, to, .. } => to - from,
        }
    }
}

impl TextExpander {
    /// Remembers a text.
    ///
    /// # Errors
    ///
    /// Says what is wrong if the text refers to a missing part or would be too long.
    pub fn add_text(&mut self, id: &str, pieces: Vec<OwnedPart>) -> Result<(), String> {
        let mut length: usize = 0;
        let mut placed = Vec::with_capacity(pieces.len());
        for piece in pieces {
            match &piece {
                OwnedPart::New(text) => self.written += text.len(),
                OwnedPart::Of { id: of, from, to } => {
                    let known = self.texts.get(of).ok_or_else(|| absent(of))?;
                    if from > to || *to > known.length {
                        return Err(format!("it refers to a part of {of} that is not there"));
                    }
                }
            }
            let begin = length;
            length = length.saturating_add(piece.length());
            if length > begin {
                placed.push((begin, piece));
            }
        }
        if length > self.line_limit() {
            return Err(format!("it stands for a text of more than {} bytes", self.line_limit()));
        }
        self.texts.insert(id.to_owned(), StoredText { length, pieces: placed });
        Ok(())
    }

    /// Returns the length of a remembered text, in bytes.
    pub fn length(&self, id: &str) -> Option<usize> {
        self.texts.get(id).map(|text| text.length)
    }

    /// Returns a remembered text.
    ///
    /// # Errors
    ///
    /// Says why there is none: it is unknown, too long, or not UTF-8.
    pub fn text(&mut self, id: &str) -> Result<String, String> {
        self.line = 0;
        self.assemble_text(id)
    }

    fn assemble_text(&mut self, id: &str) -> Result<String, String> {
        let length = self.texts.get(id).ok_or_else(|| absent(id))?.length;
        let mut hops = 0;
        self.charge(length)?;
        let mut bytes = Vec::with_capacity(length);
        // A stack instead of recursion, because texts refer to texts to any depth. The next range to append is on top.
        let mut pending = vec![(id, 0, length)];
        while let Some((id, from, to)) = pending.pop() {
            let text = self.texts.get(id).ok_or_else(|| absent(id))?;
            let first = text.pieces.partition_point(|(at, piece)| at + piece.length() <= from);
            for (at, piece) in &text.pieces[first..] {
                let (begin, end) = (from.max(*at), to.min(at + piece.length()));
                if begin >= end {
                    break;
                }
                hops += size_of::<Value>();
                match piece {
                    OwnedPart::New(text) => bytes.extend_from_slice(&text.as_bytes()[begin - at..end - at]),
                    OwnedPart::Of { id: of, from: start, .. } => {
                        // The rest of this text follows the referenced text.
                        if end < to {
                            pending.push((id, end, to));
                        }
                        pending.push((of, start + begin - at, start + end - at));
                        break;
                    }
                }
            }
            if self.all.saturating_add(hops) > self.total_limit() {
                break;
            }
        }
        self.charge(hops)?;
        String::from_utf8(bytes).map_err(|_| format!("what {id} stands for is not text"))
    }

    /// Returns the value with all texts and lists put back.
    ///
    /// Values must be expanded in the order in which they were written, because a list may continue an earlier one.
    ///
    /// # Errors
    ///
    /// Says what is wrong if a reference is unknown or the expanded value would be too large or too deep.
    pub fn expand(&mut self, value: Value) -> Result<Value, String> {
        self.line = 0;
        self.expand_nested(value, 0)
    }

    fn expand_nested(&mut self, value: Value, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err(format!("it stands for a value that is more than {DEEPEST} deep"));
        }
        Ok(match value {
            Value::Array(items) => self.expand_items(items, depth)?,
            Value::Object(mut members) => {
                if let Some(Value::String(id)) = members.get("$text") {
                    return self.assemble_text(id).map(Value::String);
                }
                if let Some(Value::String(id)) = members.remove("$list") {
                    let before = match members.remove("$after") {
                        Some(Value::String(before)) => Some(*self.lists.get(&before).ok_or_else(|| absent(&before))?),
                        _ => None,
                    };
                    let items = match members.remove("items") {
                        Some(Value::Array(items)) => items,
                        _ => Vec::new(),
                    };
                    self.written += items.len() * size_of::<Value>();
                    self.lists.insert(id, self.folded.len());
                    self.folded.push(FoldedList { before, items });
                    let items = self.whole_list()?;
                    return self.expand_items(items, depth);
                }
                let inner = match members.remove("$object") {
                    Some(Value::Object(inner)) => inner,
                    _ => members,
                };
                let members: Result<Map<String, Value>, String> = inner
                    .into_iter()
                    .map(|(name, member)| Ok((name, self.expand_nested(member, depth + 1)?)))
                    .collect();
                Value::Object(members?)
            }
            scalar => scalar,
        })
    }

    /// Returns all items of the last list, still folded, including those of the lists that it continues.
    fn whole_list(&mut self) -> Result<Vec<Value>, String> {
        let mut parts = Vec::new();
        let mut next = self.folded.len().checked_sub(1);
        // Each part counts as one more item, so that a chain of many empty lists is not free.
        let mut count: usize = 0;
        while let Some(number) = next {
            let list = &self.folded[number];
            count += 1 + list.items.iter().map(size).sum::<usize>();
            parts.push(number);
            next = list.before;
        }
        self.charge(count.saturating_mul(size_of::<Value>()))?;
        let items = parts.iter().rev().flat_map(|number| self.folded[*number].items.iter().cloned()).collect();
        Ok(items)
    }

    fn expand_items(&mut self, items: Vec<Value>, depth: usize) -> Result<Value, String> {
        items.into_iter().map(|item| self.expand_nested(item, depth + 1)).collect::<Result<_, _>>().map(Value::Array)
    }

    /// Counts bytes that are put back, and fails above the limits.
    fn charge(&mut self, bytes: usize) -> Result<(), String> {
        self.line = self.line.saturating_add(bytes);
        self.all = self.all.saturating_add(bytes);
        if self.line > self.line_limit() {
            return Err(format!("it stands for more than {} MB", self.line_limit() >> 20));
        }
        if self.all > self.total_limit() {
            return Err(format!("the lines up to here stand for more than {} MB", self.total_limit() >> 20));
        }
        Ok(())
    }

    fn line_limit(&self) -> usize {
        ROOM.saturating_add(self.written.saturating_mul(TIMES))
    }

    fn total_limit(&self) -> usize {
        ROOM_IN_ALL.saturating_add(self.written.saturating_mul(TIMES_IN_ALL))
    }
}

fn absent(id: &str) -> String {
    format!("it refers to {id}, which is not there")
}

/// Counts the values inside a value; long strings count as several.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().fold(1, |sum, item| sum + size(item)),
        Value::Object(members) => members.iter().fold(1, |sum, (_, member)| sum + 1 + size(member)),
        Value::String(text) => 1 + text.len() / size_of::<Value>(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(id: &str, to: usize) -> OwnedPart {
        OwnedPart::Of { id: id.to_owned(), from: 0, to }
    }

    #[test]
    fn a_text_of_nothing_and_one_that_grows_without_end_are_refused() {
        let mut expander = TextExpander::default();
        expander.add_text("a", vec![OwnedPart::New("0123456789".to_owned())]).unwrap();
        assert!(expander.add_text("b", vec![of("a", 11)]).unwrap_err().contains("part of a"));
        assert!(expander.add_text("b", vec![of("c", 1)]).unwrap_err().contains("c, which is not there"));
        let mut last = "a".to_owned();
        let bomb = (0..60).map(|level| format!("d{level}")).find_map(|id| {
            let length = expander.length(&last).unwrap();
            let pieces = (0..10).map(|_| of(&last, length)).collect();
            last.clone_from(&id);
            expander.add_text(&id, pieces).err()
        });
        assert!(bomb.is_some_and(|why| why.contains("more than")));
    }

    #[test]
    fn what_one_line_stands_for_is_counted_however_it_is_written() {
        let long =
            |expander: &mut TextExpander| expander.add_text("long", vec![OwnedPart::New("x".repeat(1 << 20))]).unwrap();
        let failure_of = |value: Value| {
            let mut expander = TextExpander::default();
            long(&mut expander);
            expander.expand(value).err().unwrap_or_default()
        };
        let text = json!({ "$text": "long" });
        assert_eq!(failure_of(Value::Array(vec![text.clone(); 60])), "");
        assert!(failure_of(Value::Array(vec![text.clone(); 3000])).contains("more than 68 MB"));
        // Lists of lists: each contains the one before it twice.
        let mut expander = TextExpander::default();
        long(&mut expander);
        expander.expand(json!({ "$list": "l0", "items": [text, 1, 2, 3] })).unwrap();
        let doubled = (1..40).find_map(|level| {
            let before = json!({ "$list": format!("again{level}"), "$after": format!("l{}", level - 1), "items": [] });
            expander.expand(json!({ "$list": format!("l{level}"), "items": [before.clone(), before] })).err()
        });
        assert!(doubled.is_some_and(|why| why.contains("more than")));
        // Lists nested in each other, one level for each line.
        let mut expander = TextExpander::default();
        expander.expand(json!({ "$list": "l0", "items": [1] })).unwrap();
        let deep = (1..100_000).find_map(|level| {
            let before = json!({ "$list": "again", "$after": format!("l{}", level - 1), "items": [] });
            expander.expand(json!({ "$list": format!("l{level}"), "items": [before] })).err()
        });
        assert!(deep.is_some_and(|why| why.contains("deep")));
    }

    #[test]
    fn what_all_lines_stand_for_is_counted_too() {
        let mut expander = TextExpander::default();
        expander.add_text("long", vec![OwnedPart::New("x".repeat(1 << 20))]).unwrap();
        expander.all = ROOM_IN_ALL;
        let failure = (0..1000).find_map(|_| expander.expand(json!({ "$text": "long" })).err()).unwrap_or_default();
        assert!(failure.contains("the lines up to here"), "{failure}");
        // A list that grows by one item in each line.
        let mut expander = TextExpander::default();
        let failure = (1..60_000).find_map(|line| {
            let list = json!({ "$list": format!("l{line}"), "$after": format!("l{}", line - 1), "items": [1] });
            let first = json!({ "$list": "l1", "items": [1] });
            expander.expand(if line == 1 { first } else { list }).err()
        });
        assert!(failure.is_some_and(|why| why.contains("more than")));
        // A list that continues itself.
        let mut expander = TextExpander::default();
        expander.expand(json!({ "$list": "l", "items": [1] })).unwrap();
        assert_eq!(expander.expand(json!({ "$list": "l", "$after": "l", "items": [2] })), Ok(json!([1, 2])));
    }
}
