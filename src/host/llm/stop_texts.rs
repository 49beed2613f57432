//! Ends a reply before a text that the request names, and shows nothing of that text.

/// The stop texts of one reply, and how much of it was shown.
pub(super) struct StopTexts<'a> {
    texts: &'a [String],
    /// How many bytes at the end may still become a stop text.
    held: usize,
    shown: usize,
}

impl<'a> StopTexts<'a> {
    pub(super) fn new(texts: &'a [String]) -> StopTexts<'a> {
        let held = texts.iter().map(String::len).max().map_or(0, |longest| longest.saturating_sub(1));
        StopTexts { texts, held, shown: 0 }
    }

    /// Cuts a reply before the first stop text in it; returns whether there is one.
    pub(super) fn cut(&self, reply: &mut String) -> bool {
        // What was shown has no part of a stop text, so that a long reply is not searched again with each piece.
        let new = reply.get(self.shown..).unwrap_or_default();
        let first = self.texts.iter().filter_map(|text| new.find(text.as_str())).min();
        first.inspect(|at| reply.truncate(self.shown + at)).is_some()
    }

    /// Forgets what was shown, for a text that begins anew.
    pub(super) fn start_again(&mut self) {
        self.shown = 0;
    }

    /// Shows what was not shown yet: all of it at the end, before that without what may become a stop text.
    pub(super) fn show(&mut self, reply: &str, is_end: bool, on_text: &mut dyn FnMut(&str)) {
        let until = if is_end { reply.len() } else { reply.floor_char_boundary(reply.len().saturating_sub(self.held)) };
        if let Some(new) = reply.get(self.shown..until).filter(|new| !new.is_empty()) {
            on_text(new);
            self.shown = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&str], texts: &[&str]) -> (String, String) {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let mut stops = StopTexts::new(&texts);
        let (mut reply, mut shown) = (String::new(), String::new());
        let mut on_text = |text: &str| shown.push_str(text);
        for piece in pieces {
            reply.push_str(piece);
            let stopped = stops.cut(&mut reply);
            stops.show(&reply, stopped, &mut on_text);
            if stopped {
                break;
            }
        }
        stops.show(&reply, true, &mut on_text);
        (reply, shown)
    }

    #[test]
    fn a_reply_ends_before_a_stop_text_and_nothing_of_that_is_shown() {
        let both = |text: &str| (text.to_owned(), text.to_owned());
        assert_eq!(shown(&["one", " EN", "D", " two"], &["END"]), both("one "));
        assert_eq!(shown(&["one", " EN", "C", " two"], &["END"]), both("one ENC two"));
        assert_eq!(shown(&["a é", "é b", "c"], &["c", "éé"]), both("a "));
        assert_eq!(shown(&["one", " two"], &[]), both("one two"));
    }
}
