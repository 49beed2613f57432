//! Finds the parts of a new text that repeat earlier texts.
//!
//! People write prompts by joining all that was said so far, so that each prompt repeats the one before it and adds a
//! little. The latest texts are kept, and a new text is compared with them: its beginning byte by byte, the rest by lines.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::digest::Digest;

/// The shortest text that is searched for parts, and the shortest part that is referred to, in bytes.
const SHORTEST: usize = 512;
const SHORTEST_PART: usize = 160;
/// The shortest line that can start a repeated part, in bytes.
const LINE: usize = 24;
/// How many of the latest texts are kept, and how long they may be together, in bytes.
const KEPT: usize = 16;
const ROOM: usize = 4 << 20;
/// The longest text that is kept, in bytes.
pub(crate) const LONGEST: usize = ROOM / 2;
/// How many bytes are compared at once.
const BLOCK: usize = 256;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPart<'a> {
    New(&'a str),
    /// A range of bytes of an earlier text.
    Of {
        id: Digest,
        from: usize,
        to: usize,
    },
}

/// The latest texts, in which repeated parts are found.
#[derive(Default)]
pub(crate) struct RecentTexts {
    /// The texts with their ids. They are numbered in the order in which they were added, from 0.
    texts: VecDeque<(Digest, String)>,
    /// The number of the oldest kept text.
    first: usize,
    size: usize,
    /// Where a line was seen last, by its hash: the number of the text and the offset. The text may be dropped by now.
    lines: HashMap<u64, (usize, usize)>,
}

impl RecentTexts {
    /// Remembers a text, and drops the oldest texts when there is no more room.
    pub(crate) fn keep(&mut self, id: Digest, text: &str) {
        if text.len() < SHORTEST || text.len() > LONGEST {
            return;
        }
        let number = self.first + self.texts.len();
        lines(text, 0).for_each(|(at, line)| _ = self.lines.insert(hash(line), (number, at)));
        self.size += text.len();
        self.texts.push_back((id, text.to_owned()));
        while self.texts.len() > KEPT || self.size > ROOM {
            let Some((_, dropped)) = self.texts.pop_front() else { break };
            self.size -= dropped.len();
            self.first += 1;
        }
        if self.lines.len() > 64 * 1024 {
            let first = self.first;
            self.lines.retain(|_, (number, _)| *number >= first);
        }
    }

    /// Splits a text into new and repeated parts; returns `None` if nothing is repeated.
    pub(crate) fn parts<'a>(&self, text: &'a str) -> Option<Vec<TextPart<'a>>> {
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

    /// Returns the length of the longest beginning that an earlier text shares, and that text's id. Tries the newest text
    /// first, because most texts continue it.
    fn longest(&self, text: &str) -> Option<(usize, Digest)> {
        let mut longest: (usize, Option<Digest>) = (0, None);
        for (id, earlier) in self.texts.iter().rev() {
            let (one, other) = (earlier.as_bytes(), text.as_bytes());
            // A text that differs here, or ends before, cannot share a longer beginning.
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

    /// Returns the next repeated part from an offset on: its start, the earlier text's id, the offset in that, and the length.
    fn next(&self, text: &str, at: usize) -> Option<(usize, Digest, usize, usize)> {
        let mut skip_to = at;
        for (start, line) in lines(text, at) {
            if start < skip_to {
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
            skip_to = start + length;
        }
        None
    }
}

/// Returns the lines of a text that have at least [`LINE`] bytes and begin at `at` or behind it, with their offsets.
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

/// Returns the length of the common beginning of two texts, in bytes.
fn common(left: &[u8], right: &[u8]) -> usize {
    let blocks = left.chunks_exact(BLOCK).zip(right.chunks_exact(BLOCK)).take_while(|(left, right)| left == right);
    let at = blocks.count() * BLOCK;
    at + left[at..].iter().zip(&right[at..]).take_while(|(left, right)| left == right).count()
}

/// Returns the last character boundary up to `at`.
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
