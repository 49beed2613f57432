//! Collects a command's output up to a limit.

use crate::model::redact::Redactor;

/// The output so far.
pub(super) struct Output {
    bytes: Vec<u8>,
    most: usize,
}

impl Output {
    pub(super) fn new(most: usize) -> Output {
        Output { bytes: Vec::new(), most }
    }

    /// Adds output. Returns `false` if the limit is exceeded.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        let room = self.most - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        bytes.len() <= room
    }

    /// Returns the text without secrets. A longer text than `most` is cut to its beginning and end; then the complete text
    /// is returned as well.
    pub(super) fn redacted_excerpt(&self, most: usize, redactor: &Redactor) -> (String, Option<String>) {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = redactor.text(&text).into_owned();
        if text.len() <= most {
            return (text, None);
        }
        // The end, which says what went wrong, gets more room than the beginning, which says with what.
        let head = text.floor_char_boundary(most / 4);
        let tail = text.ceil_char_boundary(text.len() - (most - most / 4));
        let left = tail - head;
        let shown = format!("{}\n[… {left} bytes are left out here …]\n{}", &text[..head], &text[tail..]);
        (shown, Some(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let redactor = Redactor::new([("SOME_KEY".to_owned(), "very-secret-thing".to_owned())]);
        let mut output = Output::new(1000);
        assert!(output.push("é".repeat(200).as_bytes()) && output.push(b"very-secret-thing"));
        let (shown, whole) = output.redacted_excerpt(101, &redactor);
        assert!(shown.starts_with("éééé") && shown.ends_with("[redacted:SOME_KEY]"), "{shown}");
        assert!(shown.len() < 160 && shown.contains("bytes are left out here"));
        assert_eq!(whole.unwrap(), format!("{}[redacted:SOME_KEY]", "é".repeat(200)));
        assert_eq!(output.redacted_excerpt(1000, &redactor).1, None);
    }

    #[test]
    fn what_is_too_much_is_said_and_not_kept() {
        let mut output = Output::new(4);
        assert!(output.push(b"abcd"));
        assert!(!output.push(b"e"));
        assert_eq!(output.redacted_excerpt(10, &Redactor::new([])).0, "abcd");
    }
}
