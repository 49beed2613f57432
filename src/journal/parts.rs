//! Texts that repeat an earlier one: which parts of them are there already.
//!
//! People write prompts by joining all that was said so far, so that each repeats the one before it and adds a little.
//! The last texts are kept, and a new one is looked for in them: at its beginning byte by byte, behind that by lines.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::digest::Digest;

/// The shortest text that is looked for, and the shortest part that is referred to, in bytes.
const SHORTEST: usize = 512;
const SHORTEST_PART: usize = 160;
/// The shortest line that a part is found by.
const LINE: usize = 24;
/// How many of the last texts are looked at, and how long they may be together, in bytes.
const KEPT: usize = 16;
const ROOM: usize = 4 << 20;
/// The longest text that is kept.
pub const LONGEST: usize = ROOM / 2;
/// How many bytes are compared at once.
const BLOCK: usize = 256;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPart<'a> {
    New(&'a str),
    /// Bytes of an earlier text.
    Of {
        id: Digest,
        from: usize,
        to: usize,
    },
}

/// The last texts, to look for others in.
#[derive(Default)]
pub struct RecentTexts {
    /// With the number of each, from 0 on.
    texts: VecDeque<(Digest, String)>,
    /// The number of the first that is kept.
    first: usize,
    size: usize,
    /// Where a line stands: the number of the text and the offset. What is not kept any more is passed over.
    lines: HashMap<u64, (usize, usize)>,
}

impl RecentTexts {
    /// Remembers a text, in place of the oldest.
    pub fn keep(&mut self, id: Digest, text: &str) {
        if text.len() < SHORTEST || text.len() > LONGEST {
            return;
        }
        let number = self.first + self.texts.len();
        lines(text, 0).for_each(|(at, line)| _ = self.lines.insert(hash(line), (number, at)));
        self.size += text.len();
        self.texts.push_back((id, text.to_owned()));
        while self.texts.len() > KEPT || self.size > ROOM {
            let Some((_, gone)) = self.texts.pop_front() else { break };
            self.size -= gone.len();
            self.first += 1;
        }
        if self.lines.len() > 64 * 1024 {
            let first = self.first;
            self.lines.retain(|_, (number, _)| *number >= first);
        }
    }

    /// Returns the parts of a text, if some of them are there already.
    pub fn parts<'a>(&self, text: &'a str) -> Option<Vec<TextPart<'a>>> {
        if text.len() < SHORTEST {
            return None;
        }
        let mut parts = Vec::new();
        let mut at = 0;
        if let Some((to, id)) = self.longest(text) {
            parts.push(TextPart::Of { id, from: 0, to });
            at = to;
        }
        let mut new = at;
        while let Some((found, id, from, length)) = self.next(text, at) {
            if new < found {
                parts.push(TextPart::New(&text[new..found]));
            }
            parts.push(TextPart::Of { id, from, to: from + length });
            at = found + length;
            new = at;
        }
        if new < text.len() {
            parts.push(TextPart::New(&text[new..]));
        }
        parts.iter().any(|part| matches!(part, TextPart::Of { .. })).then_some(parts)
    }

    /// Returns how far a text begins as an earlier one does, and which: the newest first, because most texts go on from it.
    fn longest(&self, text: &str) -> Option<(usize, Digest)> {
        let mut longest: (usize, Option<Digest>) = (0, None);
        for (id, earlier) in self.texts.iter().rev() {
            let (one, other) = (earlier.as_bytes(), text.as_bytes());
            // Who differs here, or ends before it, has no more in common.
            let beyond = longest.0.saturating_sub(BLOCK)..longest.0 + 1;
            if one.get(beyond.clone()).is_some_and(|end| other.get(beyond) == Some(end)) {
                let length = common(one, other);
                if length > longest.0 {
                    longest = (length, Some(*id));
                }
            }
        }
        let to = floor(text, longest.0);
        longest.1.filter(|_| to >= SHORTEST_PART).map(|id| (to, id))
    }

    /// Returns the next part behind an offset that is there already: where, of which text, from where, and how long.
    fn next(&self, text: &str, at: usize) -> Option<(usize, Digest, usize, usize)> {
        let mut behind = at;
        for (start, line) in lines(text, at) {
            if start < behind {
                continue;
            }
            let Some((number, from)) = self.lines.get(&hash(line)).copied().filter(|(number, _)| *number >= self.first)
            else {
                continue;
            };
            let (id, earlier) = &self.texts[number - self.first];
            let length = floor(&text[start..], common(&earlier.as_bytes()[from..], &text.as_bytes()[start..]));
            if length >= SHORTEST_PART {
                return Some((start, *id, from, length));
            }
            behind = start + length;
        }
        None
    }
}

/// Returns the lines of a text that are long enough, from the first that begins at `at` or behind it.
fn lines(text: &str, at: usize) -> impl Iterator<Item = (usize, &str)> {
    let first = match at {
        0 => 0,
        _ if text.as_bytes()[at - 1] == b'\n' => at,
        _ => memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |end| at + end + 1),
    };
    let mut start = first;
    text[first..]
        .split_inclusive('\n')
        .map(move |line| {
            let at = start;
            start += line.len();
            (at, line)
        })
        .filter(|(_, line)| line.len() >= LINE)
}

fn hash(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// Counts the bytes that two texts begin with alike.
fn common(one: &[u8], other: &[u8]) -> usize {
    let blocks = one.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK)).take_while(|(one, other)| one == other);
    let at = blocks.count() * BLOCK;
    at + one[at..].iter().zip(&other[at..]).take_while(|(one, other)| one == other).count()
}

/// Returns the last boundary of a character up to `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put_back(earlier: &HashMap<Digest, String>, parts: &[TextPart<'_>]) -> String {
        let piece = |part: &TextPart<'_>| match part {
            TextPart::New(text) => (*text).to_owned(),
            TextPart::Of { id, from, to } => earlier[id][*from..*to].to_owned(),
        };
        parts.iter().map(piece).collect()
    }

    fn new(parts: &[TextPart<'_>]) -> usize {
        let length = |part: &TextPart<'_>| if let TextPart::New(text) = part { text.len() } else { 0 };
        parts.iter().map(length).sum()
    }

    #[test]
    fn what_grows_at_its_end_costs_what_is_new() {
        let (mut earlier, mut all) = (RecentTexts::default(), HashMap::new());
        let mut text = String::new();
        for turn in 0..50 {
            text.push_str(&format!("näme {turn}: {}\n", "words that nobody said before ".repeat(20)));
            let id = Digest::of(text.as_bytes());
            if let Some(parts) = earlier.parts(&text) {
                assert_eq!(put_back(&all, &parts), text);
                assert!(new(&parts) < 700, "{turn}: {}", new(&parts));
            }
            earlier.keep(id, &text);
            all.insert(id, text.clone());
        }
    }

    #[test]
    fn lines_are_found_where_something_stands_before_or_between_them() {
        let line = |number: usize| format!("line {number}: {}\n", "x".repeat(60 + number));
        let body: String = (0..40).map(line).collect();
        let (mut earlier, id) = (RecentTexts::default(), Digest::of(body.as_bytes()));
        earlier.keep(id, &body);
        let edited = format!("A new heading\n{}something in between\n{}", &body[..1400], &body[1400..]);
        let parts = earlier.parts(&edited).expect("most of it is there");
        assert_eq!(put_back(&HashMap::from([(id, body)]), &parts), edited);
        assert!(new(&parts) < 250, "{parts:?}");
        assert_eq!(earlier.parts(&"another text, of which nothing is there\n".repeat(30)), None);
    }
}
