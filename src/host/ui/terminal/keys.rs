//! From the bytes that a terminal sends to keys. Works on whatever pieces a read happens to return: an
//! escape sequence, a paste or a character of UTF-8 may come in two of them.

/// One thing that the user did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    /// Everything between the marks of a bracketed paste.
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
/// The most that one paste may bring; the rest is dropped.
const LARGEST_PASTE: usize = 1024 * 1024;

/// What has come and is not yet a key.
#[derive(Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
    /// Whether a paste has begun; then `bytes` is its text so far.
    pasting: bool,
}

enum Parsed {
    Key(Key, usize),
    Paste(usize),
    Nothing(usize),
    /// More bytes are needed.
    Partial,
}

impl Keys {
    /// Takes what a read returned, and gives the keys that are complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
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
                Parsed::Partial => return keys,
                Parsed::Nothing(used) => used,
                Parsed::Key(key, used) => {
                    keys.push(key);
                    used
                }
                Parsed::Paste(used) => {
                    self.pasting = true;
                    used
                }
            };
            self.bytes.drain(..used);
        }
    }

    /// Returns whether an escape was begun: it is the key itself if nothing follows soon.
    pub(super) fn undecided(&self) -> bool {
        !self.pasting && self.bytes.first() == Some(&0x1b)
    }

    /// Decides that nothing follows.
    pub(super) fn settle(&mut self) -> Option<Key> {
        let lone = self.bytes == [0x1b];
        if self.undecided() {
            self.bytes.clear();
        }
        lone.then_some(Key::Escape)
    }

    fn paste(&mut self) -> Option<Key> {
        let end = memchr::memmem::find(&self.bytes, PASTE_END);
        let Some(end) = end else {
            // The end mark may be cut in two by the limit, so its length is left alone.
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
        Some(Key::Paste(text))
    }
}

fn parse(bytes: &[u8]) -> Parsed {
    let Some(first) = bytes.first() else { return Parsed::Partial };
    let key = match first {
        0x1b => return escape(&bytes[1..]),
        b'\r' | b'\n' => Key::Enter,
        b'\t' => Key::Tab,
        0x7f | 0x08 => Key::Backspace,
        0 => return Parsed::Nothing(1),
        control @ 0x01..=0x1a => Key::Ctrl(char::from(b'a' - 1 + control)),
        0x1c..=0x1f => return Parsed::Nothing(1),
        _ => return character(bytes),
    };
    Parsed::Key(key, 1)
}

fn character(bytes: &[u8]) -> Parsed {
    let length = match bytes[0] {
        0x00..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Parsed::Nothing(1),
    };
    let Some(encoded) = bytes.get(..length) else { return Parsed::Partial };
    match std::str::from_utf8(encoded).ok().and_then(|text| text.chars().next()) {
        // C1 controls are not text, whoever types them.
        Some(c) if !c.is_control() => Parsed::Key(Key::Char(c), length),
        Some(_) => Parsed::Nothing(length),
        None => Parsed::Nothing(1),
    }
}

/// Parses what follows an escape byte.
fn escape(rest: &[u8]) -> Parsed {
    let key = match rest.first() {
        None => return Parsed::Partial,
        Some(b'[') => return sequence(&rest[1..]),
        Some(b'O') => match rest.get(1) {
            None => return Parsed::Partial,
            Some(last) => return found(arrow(*last, false), 3),
        },
        Some(0x1b) => return Parsed::Key(Key::Escape, 1),
        Some(b'b') => Key::WordLeft,
        Some(b'f') => Key::WordRight,
        Some(b'\r' | b'\n') => Key::NewLine,
        Some(0x7f | 0x08) => Key::DeleteWord,
        Some(_) => return Parsed::Nothing(2),
    };
    Parsed::Key(key, 2)
}

/// Parses what follows `ESC [`: parameters, then the byte that ends it.
fn sequence(rest: &[u8]) -> Parsed {
    if rest.starts_with(PASTE_START) {
        return Parsed::Paste(2 + PASTE_START.len());
    }
    let Some(end) = rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        // No terminal sends one this long; without a limit, one stray byte would swallow all typing.
        return if rest.len() > 32 { Parsed::Nothing(2 + rest.len()) } else { Parsed::Partial };
    };
    let used = 2 + end + 1;
    let parameters = &rest[..end];
    let modified = parameters.len() > 2 && parameters.contains(&b';');
    match (rest[end], parameters) {
        (b'~', [b'1' | b'7', ..]) => found(Some(Key::Home), used),
        (b'~', [b'4' | b'8', ..]) => found(Some(Key::End), used),
        (b'~', [b'3', ..]) => found(Some(Key::Delete), used),
        (b'Z', _) => found(Some(Key::BackTab), used),
        (last, _) => found(arrow(last, modified), used),
    }
}

fn arrow(last: u8, modified: bool) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' if modified => Key::WordRight,
        b'D' if modified => Key::WordLeft,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'M' => Key::Enter,
        _ => return None,
    })
}

fn found(key: Option<Key>, used: usize) -> Parsed {
    key.map_or(Parsed::Nothing(used), |key| Parsed::Key(key, used))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{Key, Keys};

    #[test]
    fn every_key_is_known_however_it_is_cut() {
        let input = "é漢\r\u{1b}[A\u{1b}OB\u{1b}[1;5D\u{1b}[3~\u{1b}b\u{1b}\r\u{3}\t\u{7f}\u{1b}[200~a\r\nb\u{1b}[x\u{1b}[201~z\u{1b}[99~"
            .as_bytes();
        let all = vec![
            Key::Char('é'),
            Key::Char('漢'),
            Key::Enter,
            Key::Up,
            Key::Down,
            Key::WordLeft,
            Key::Delete,
            Key::WordLeft,
            Key::NewLine,
            Key::Ctrl('c'),
            Key::Tab,
            Key::Backspace,
            Key::Paste("a\nb\u{1b}[x".to_owned()),
            Key::Char('z'),
        ];
        assert_eq!(Keys::default().feed(input), all);
        let mut keys = Keys::default();
        let single: Vec<Key> = input.iter().flat_map(|byte| keys.feed(&[*byte])).collect();
        assert_eq!(single, all);
    }

    #[test]
    fn a_lone_escape_is_a_key_once_nothing_follows() {
        let mut keys = Keys::default();
        assert!(keys.feed(b"\x1b").is_empty());
        assert!(keys.undecided());
        assert_eq!(keys.settle(), Some(Key::Escape));
        assert_eq!(keys.feed(b"a"), [Key::Char('a')]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail_or_stall(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut keys = Keys::default();
            keys.feed(&bytes);
            keys.settle();
            if !keys.pasting {
                let typed = keys.feed(b"\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[Aok");
                assert_eq!(typed.last(), Some(&Key::Char('k')));
            }
        }
    }
}
