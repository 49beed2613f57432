//! Turns the bytes that a terminal sends into keys. Works on whatever pieces a read happens to return: an
//! escape sequence, a paste or a UTF-8 character may be split between two reads.

/// One key that the user pressed, or one paste.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyPress {
    Char(char),
    /// The text between the marks of a bracketed paste.
    Paste(String),
    Enter,
    /// Alt-Enter: a new line in the answer.
    NewLine,
    Backspace,
    Delete,
    DeleteWord,
    Left,
    Right,
    Up,
    Down,
    WordLeft,
    WordRight,
    Home,
    End,
    Tab,
    BackTab,
    Escape,
    /// A letter with Ctrl, in lower case.
    Ctrl(char),
}

const PASTE_START: &[u8] = b"200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// The largest paste, in bytes; the rest is dropped.
const LARGEST_PASTE: usize = 1024 * 1024;

/// Parses keys, and keeps bytes that are not yet a complete key.
#[derive(Default)]
pub(super) struct KeyParser {
    bytes: Vec<u8>,
    /// Whether a paste has begun; then `bytes` is its text so far.
    pasting: bool,
}

enum ParsedInput {
    Key(KeyPress, usize),
    Paste(usize),
    Nothing(usize),
    /// More bytes are needed.
    Partial,
}

impl KeyParser {
    /// Adds the bytes of a read, and returns the complete keys.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<KeyPress> {
        self.bytes.extend_from_slice(bytes);
        let mut keys = Vec::new();
        loop {
            if self.pasting {
                match self.paste() {
                    Some(key) => keys.push(key),
                    None => return keys,
                }
                continue;
            }
            let used = match parse(&self.bytes) {
                ParsedInput::Partial => return keys,
                ParsedInput::Nothing(used) => used,
                ParsedInput::Key(key, used) => {
                    keys.push(key);
                    used
                }
                ParsedInput::Paste(used) => {
                    self.pasting = true;
                    used
                }
            };
            self.bytes.drain(..used);
        }
    }

    /// Returns whether an escape sequence has begun. If nothing follows soon, it was the Escape key.
    pub(super) fn escape_pending(&self) -> bool {
        !self.pasting && self.bytes.first() == Some(&0x1b)
    }

    /// Ends an escape sequence to which nothing was added in time.
    pub(super) fn finish_escape(&mut self) -> Option<KeyPress> {
        let lone = self.bytes == [0x1b];
        if self.escape_pending() {
            self.bytes.clear();
        }
        lone.then_some(KeyPress::Escape)
    }

    fn paste(&mut self) -> Option<KeyPress> {
        let end = memchr::memmem::find(&self.bytes, PASTE_END);
        let Some(end) = end else {
            // The last bytes are kept, because they may be the start of the end mark.
            if self.bytes.len() > LARGEST_PASTE + PASTE_END.len() {
                let tail = self.bytes.split_off(self.bytes.len() - PASTE_END.len());
                self.bytes.truncate(LARGEST_PASTE);
                self.bytes.extend(tail);
            }
            return None;
        };
        let text = String::from_utf8_lossy(&self.bytes[..end]).replace("\r\n", "\n").replace('\r', "\n");
        self.bytes.drain(..end + PASTE_END.len());
        self.pasting = false;
        Some(KeyPress::Paste(text))
    }
}

fn parse(bytes: &[u8]) -> ParsedInput {
    let Some(first) = bytes.first() else { return ParsedInput::Partial };
    let key = match first {
        0x1b => return escape(&bytes[1..]),
        b'\r' | b'\n' => KeyPress::Enter,
        b'\t' => KeyPress::Tab,
        0x7f | 0x08 => KeyPress::Backspace,
        0 => return ParsedInput::Nothing(1),
        control @ 0x01..=0x1a => KeyPress::Ctrl(char::from(b'a' - 1 + control)),
        0x1c..=0x1f => return ParsedInput::Nothing(1),
        _ => return character(bytes),
    };
    ParsedInput::Key(key, 1)
}

fn character(bytes: &[u8]) -> ParsedInput {
    let length = match bytes[0] {
        0x00..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return ParsedInput::Nothing(1),
    };
    let Some(encoded) = bytes.get(..length) else { return ParsedInput::Partial };
    match std::str::from_utf8(encoded).ok().and_then(|text| text.chars().next()) {
        // C1 control characters are not text, even if typed.
        Some(c) if !c.is_control() => ParsedInput::Key(KeyPress::Char(c), length),
        Some(_) => ParsedInput::Nothing(length),
        None => ParsedInput::Nothing(1),
    }
}

/// Parses the bytes after an escape byte.
fn escape(rest: &[u8]) -> ParsedInput {
    let key = match rest.first() {
        None => return ParsedInput::Partial,
        Some(b'[') => return sequence(&rest[1..]),
        Some(b'O') => match rest.get(1) {
            None => return ParsedInput::Partial,
            Some(last) => return parsed_key(arrow(*last, false), 3),
        },
        Some(0x1b) => return ParsedInput::Key(KeyPress::Escape, 1),
        Some(b'b') => KeyPress::WordLeft,
        Some(b'f') => KeyPress::WordRight,
        Some(b'\r' | b'\n') => KeyPress::NewLine,
        Some(0x7f | 0x08) => KeyPress::DeleteWord,
        Some(_) => return ParsedInput::Nothing(2),
    };
    ParsedInput::Key(key, 2)
}

/// Parses the bytes after `ESC [`: parameters, then the final byte.
fn sequence(rest: &[u8]) -> ParsedInput {
    if rest.starts_with(PASTE_START) {
        return ParsedInput::Paste(2 + PASTE_START.len());
    }
    let Some(end) = rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        // No terminal sends a longer sequence; without a limit, one stray byte would swallow all typing.
        return if rest.len() > 32 { ParsedInput::Nothing(2 + rest.len()) } else { ParsedInput::Partial };
    };
    let used = 2 + end + 1;
    let parameters = &rest[..end];
    let modified = parameters.len() > 2 && parameters.contains(&b';');
    match (rest[end], parameters) {
        (b'~', [b'1' | b'7', ..]) => parsed_key(Some(KeyPress::Home), used),
        (b'~', [b'4' | b'8', ..]) => parsed_key(Some(KeyPress::End), used),
        (b'~', [b'3', ..]) => parsed_key(Some(KeyPress::Delete), used),
        (b'Z', _) => parsed_key(Some(KeyPress::BackTab), used),
        (last, _) => parsed_key(arrow(last, modified), used),
    }
}

fn arrow(last: u8, modified: bool) -> Option<KeyPress> {
    Some(match last {
        b'A' => KeyPress::Up,
        b'B' => KeyPress::Down,
        b'C' if modified => KeyPress::WordRight,
        b'D' if modified => KeyPress::WordLeft,
        b'C' => KeyPress::Right,
        b'D' => KeyPress::Left,
        b'H' => KeyPress::Home,
        b'F' => KeyPress::End,
        b'M' => KeyPress::Enter,
        _ => return None,
    })
}

fn parsed_key(key: Option<KeyPress>, used: usize) -> ParsedInput {
    key.map_or(ParsedInput::Nothing(used), |key| ParsedInput::Key(key, used))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{KeyParser, KeyPress};

    #[test]
    fn every_key_is_known_however_it_is_cut() {
        let input = "é漢\r\u{1b}[A\u{1b}OB\u{1b}[1;5D\u{1b}[3~\u{1b}b\u{1b}\r\u{3}\t\u{7f}\u{1b}[200~a\r\nb\u{1b}[x\u{1b}[201~z\u{1b}[99~"
            .as_bytes();
        let all = vec![
            KeyPress::Char('é'),
            KeyPress::Char('漢'),
            KeyPress::Enter,
            KeyPress::Up,
            KeyPress::Down,
            KeyPress::WordLeft,
            KeyPress::Delete,
            KeyPress::WordLeft,
            KeyPress::NewLine,
            KeyPress::Ctrl('c'),
            KeyPress::Tab,
            KeyPress::Backspace,
            KeyPress::Paste("a\nb\u{1b}[x".to_owned()),
            KeyPress::Char('z'),
        ];
        assert_eq!(KeyParser::default().feed(input), all);
        let mut keys = KeyParser::default();
        let single: Vec<KeyPress> = input.iter().flat_map(|byte| keys.feed(&[*byte])).collect();
        assert_eq!(single, all);
    }

    #[test]
    fn a_lone_escape_is_a_key_once_nothing_follows() {
        let mut keys = KeyParser::default();
        assert!(keys.feed(b"\x1b").is_empty());
        assert!(keys.escape_pending());
        assert_eq!(keys.finish_escape(), Some(KeyPress::Escape));
        assert_eq!(keys.feed(b"a"), [KeyPress::Char('a')]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail_or_stall(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut keys = KeyParser::default();
            keys.feed(&bytes);
            keys.finish_escape();
            if !keys.pasting {
                let typed = keys.feed(b"\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[Aok");
                assert_eq!(typed.last(), Some(&KeyPress::Char('k')));
            }
        }
    }
}
