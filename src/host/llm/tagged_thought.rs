//! Takes out what some servers write before a reply's text between tags: what the model thought.

/// The start of a reply, as far as it is not known to be text.
#[derive(Default)]
pub(super) struct TaggedThought {
    /// The tags around a thought; `None` once the text has begun, or if the family has none.
    tags: Option<(String, String)>,
    held: String,
    /// Whether a thought came before what is held: the blanks behind it belong to it.
    is_behind_thought: bool,
}

impl TaggedThought {
    /// Thoughts stand between `<tag>` and `</tag>`.
    pub(super) fn new(tag: Option<&str>) -> TaggedThought {
        TaggedThought { tags: tag.map(|tag| (format!("<{tag}>"), format!("</{tag}>"))), ..TaggedThought::default() }
    }

    /// Takes the next piece of a reply, and returns what of it is text.
    pub(super) fn text_of(&mut self, piece: &str) -> String {
        let Some((open, close)) = &self.tags else { return piece.to_owned() };
        self.held.push_str(piece);
        loop {
            let start = self.held.trim_start();
            if open.starts_with(start) {
                return String::new();
            }
            let Some(thought) = start.strip_prefix(open.as_str()) else { break };
            let Some((_, behind)) = thought.split_once(close.as_str()) else { return String::new() };
            self.held = behind.to_owned();
            self.is_behind_thought = true;
        }
        self.tags = None;
        let text = std::mem::take(&mut self.held);
        if self.is_behind_thought { text.trim_start().to_owned() } else { text }
    }

    /// Returns what was held back although the reply ends without its being a thought.
    pub(super) fn rest(&mut self) -> String {
        let thought = self.tags.take().is_some_and(|(open, _)| self.held.trim_start().starts_with(&open));
        let held = std::mem::take(&mut self.held);
        if thought { String::new() } else { held }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_before_the_text_are_taken_out_however_they_are_cut_and_nothing_else_is() {
        for (reply, tag, text) in [
            ("<reasoning>hm</reasoning>{\"a\": 1}", Some("reasoning"), "{\"a\": 1}"),
            ("\n<reasoning>a</reasoning>\n<reasoning>b</reasoning>\nso", Some("reasoning"), "so"),
            ("so <reasoning>x</reasoning>", Some("reasoning"), "so <reasoning>x</reasoning>"),
            ("<reason", Some("reasoning"), "<reason"),
            ("<reasoning>never ends", Some("reasoning"), ""),
            ("<reasoning>hm</reasoning>so", None, "<reasoning>hm</reasoning>so"),
        ] {
            for size in 1..=reply.len() {
                let mut filter = TaggedThought::new(tag);
                let mut seen: String = reply
                    .as_bytes()
                    .chunks(size)
                    .map(|piece| filter.text_of(std::str::from_utf8(piece).expect("it is ASCII")))
                    .collect();
                seen.push_str(&filter.rest());
                assert_eq!(seen, text, "{reply} in pieces of {size}");
            }
        }
    }
}
