//! Splits streamed text into the part that is finished and may stay on the screen, and the part whose
//! rendering may still change with the next word.

use pulldown_cmark::{Event, Tag, TagEnd};

use super::markdown;
use crate::host::ui::out::safe;

/// Pending text up to this length, in bytes, is parsed with each new line, and all of it is shown.
const SHORT: usize = 16 * 1024;

/// The most that is kept of what a model thinks, in bytes: a few lines of it are shown.
const LONGEST_THOUGHT: usize = 2048;

/// The text of one call that is shown while it arrives.
pub(super) struct Stream {
    pub(super) call: String,
    pub(super) label: String,
    /// Whether the label was printed.
    pub(super) labelled: bool,
    pub(super) ended: bool,
    /// The end of what the model thinks, until its text begins.
    thought: String,
    /// Whether text has come.
    begun: bool,
    pending: String,
    /// The length at which the pending text is parsed again: a long block would otherwise be parsed with each of its
    /// lines.
    next_look: usize,
}

/// What [`blocks`] finds about the top-level blocks of a text.
#[derive(Default)]
struct Blocks {
    /// Whether the first block is a list; `last` says so of the last block.
    first: Option<bool>,
    last: bool,
    /// The byte at which the last block begins, or its last item if the block is a list.
    start: usize,
    /// The number of this item, if the list is numbered.
    number: Option<u64>,
}

impl Stream {
    pub(super) fn new(call: &str, label: &str) -> Stream {
        let (call, label) = (call.to_owned(), label.to_owned());
        let (thought, pending) = (String::new(), String::new());
        Stream { call, label, labelled: false, ended: false, thought, begun: false, pending, next_look: 0 }
    }

    /// Adds text. Returns whether the text may have finished a block.
    pub(super) fn push(&mut self, text: &str) -> bool {
        self.thought.clear();
        self.begun = true;
        self.pending.push_str(&safe(text));
        text.contains('\n')
    }

    /// Adds what the model thinks. Once its text has begun, thoughts are not shown any more.
    pub(super) fn push_thought(&mut self, text: &str) {
        if self.begun {
            return;
        }
        self.thought.push_str(&safe(text));
        let excess = self.thought.len().saturating_sub(LONGEST_THOUGHT);
        self.thought.drain(..self.thought.ceil_char_boundary(excess));
    }

    /// Tells whether there is nothing to show that may still change.
    pub(super) fn is_blank(&self) -> bool {
        self.pending().trim().is_empty() && self.thought.trim().is_empty()
    }

    pub(super) fn thought(&self) -> &str {
        &self.thought
    }

    /// Forgets all that has come, because the call is tried again.
    pub(super) fn restart(&mut self) {
        self.take_rest();
        self.thought.clear();
        self.begun = false;
    }

    /// Takes the text that cannot change any more: all blocks but the last, or all but the last item if that is a list.
    pub(super) fn take_finished(&mut self) -> Option<String> {
        if self.pending.len() < self.next_look {
            return None;
        }
        self.next_look = 0;
        // Only complete lines are parsed: half a row of a table looks like a new paragraph.
        let lines = self.pending.rfind('\n').map_or(0, |end| end + 1);
        let blocks = blocks(&self.pending[..lines]);
        if blocks.start == 0 {
            if lines > SHORT {
                self.next_look = lines + lines / 4;
            }
            return None;
        }
        let rest = self.pending.split_off(blocks.start);
        let done = std::mem::replace(&mut self.pending, rest);
        // In a list written as `1. 1. 1.`, the rest has to begin with the number that its item is shown with.
        if let Some(number) = blocks.number {
            let digits = self.pending.len() - self.pending.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            self.pending.replace_range(..digits, &number.to_string());
        }
        (!done.trim().is_empty()).then_some(done)
    }

    /// Takes everything, finished or not.
    pub(super) fn take_rest(&mut self) -> Option<String> {
        self.next_look = 0;
        let rest = std::mem::take(&mut self.pending);
        (!rest.trim().is_empty()).then_some(rest)
    }

    /// Returns the unfinished text that can be shown. A lone bar is left out, which would end a table for a moment, and of a
    /// long text only the end is returned, which fills the screen.
    pub(super) fn pending(&self) -> &str {
        let pending = self.pending.strip_suffix("\n|").unwrap_or(&self.pending);
        let from = pending.len().checked_sub(SHORT).map_or(0, |from| pending.ceil_char_boundary(from));
        &pending[from..]
    }
}

/// Returns whether the first and the last block of a text are lists.
pub(in crate::host::ui) fn edges(markdown: &str) -> (bool, bool) {
    let blocks = blocks(markdown);
    (blocks.first.unwrap_or(false), blocks.last)
}

fn blocks(text: &str) -> Blocks {
    let mut blocks = Blocks::default();
    let mut depth = 0_usize;
    let mut next = None;
    for (event, range) in markdown::parser(text).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                let list = matches!(tag, Tag::List(_));
                if depth == 0 {
                    blocks.first.get_or_insert(list);
                    blocks.last = list;
                    blocks.start = range.start;
                    blocks.number = None;
                    next = if let Tag::List(first) = tag { first } else { None };
                } else if depth == 1 && matches!(tag, Tag::Item) {
                    blocks.start = range.start;
                    blocks.number = next;
                    next = next.map(|number| number + 1);
                }
                depth += 1;
            }
            Event::End(TagEnd::Item) if depth == 2 => depth -= 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => {
                blocks.first.get_or_insert(false);
                (blocks.last, blocks.start, blocks.number) = (false, range.start, None);
            }
            _ => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::{prop, proptest};

    use super::super::markdown;
    use super::{SHORT, Stream, edges};
    use crate::cpu::{CpuLimit, ThreadClock};

    fn pieces(text: &str) -> Vec<String> {
        let mut stream = Stream::new("c", "l");
        let mut out = Vec::new();
        for c in text.chars() {
            if stream.push(c.encode_utf8(&mut [0; 4])) {
                out.extend(stream.take_finished());
            }
        }
        out.extend(stream.take_rest());
        out
    }

    #[test]
    fn blocks_and_items_are_finished_by_what_follows_them() {
        assert_eq!(
            pieces("# A\n\none\ntwo\n\n```\nx\n\ny\n```\nend\n"),
            ["# A\n\n", "one\ntwo\n\n", "```\nx\n\ny\n```\n", "end\n"]
        );
        assert_eq!(pieces("- a\n  - b\n- c\n\n---\nd"), ["- a\n  - b\n", "- c\n\n", "---\nd"]);
        let table = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n";
        assert_eq!(pieces(&format!("{table}\nend")), [format!("{table}\nend")]);
        assert_eq!(pieces(&format!("{table}\nend\n")), [format!("{table}\n"), "end\n".to_owned()]);
        assert_eq!(pieces("1. a\n1. b\n1. c\n"), ["1. a\n", "2. b\n", "3. c\n"]);
        assert_eq!(edges("- a\n\nb"), (true, false));
    }

    #[test]
    fn a_long_table_is_not_read_again_with_each_of_its_rows() {
        let limit = CpuLimit::new(ThreadClock::current(), Duration::from_secs(10));
        let mut stream = Stream::new("c", "l");
        stream.push(&format!("{}\n{}\n", "|a".repeat(300), "|-".repeat(300)));
        for _ in 0..2000 {
            stream.push(&format!("{}|\n", "|b".repeat(300)));
            assert!(stream.take_finished().is_none() && !limit.is_over());
        }
        assert!(stream.pending().len() <= SHORT);
        let whole = stream.take_rest().expect("it is there");
        assert!(markdown::render(&whole, 80).len() > 2000 && !limit.is_over());
        stream.push("one\n\ntwo\n");
        assert_eq!(stream.take_finished().as_deref(), Some("one\n\n"), "the next text is looked at from its beginning");
    }

    proptest! {
        #[test]
        fn no_text_is_lost_or_doubled(parts in prop::collection::vec("(- |1\\. |# |> |```\n|\n|\n\n|[a-zé ]{1,8}|\\| )", 0..20)) {
            let text = parts.concat();
            let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
            proptest::prop_assert_eq!(letters(&pieces(&text).concat()), letters(&text));
        }
    }
}
