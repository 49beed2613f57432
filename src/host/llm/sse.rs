//! Parses server-sent events from bytes, however the bytes are cut into pieces.
//!
//! This parser is our own because it must take linear time: the crates for it search an unfinished line again
//! with each new piece and move the rest of the buffer with each line. That took 23 µs an event for a fast
//! reply, and seconds for one long line. Only `data` is read; in both wire formats it repeats the other fields.

/// A `data` line is not UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub struct NotUtf8;

/// Turns bytes into the data of events.
#[derive(Default)]
pub struct Parser {
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where the buffer was searched for the end of that line.
    searched: usize,
    /// Whether the last line ended in a carriage return: a line feed right after it belongs to that line end.
    after_return: bool,
    past_first_line: bool,
    /// The data of the unfinished event; `None` if it has none yet.
    data: Option<String>,
}

impl Parser {
    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        // Only the unfinished line is moved, and only after complete lines before it were read.
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the length of the unfinished line in bytes.
    pub fn unfinished_length(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Returns the data of the next event; `None` if more bytes are needed.
    ///
    /// # Errors
    ///
    /// [`NotUtf8`] if a `data` line is not UTF-8.
    pub fn event(&mut self) -> Result<Option<String>, NotUtf8> {
        loop {
            if self.after_return && self.start < self.buffer.len() {
                self.after_return = false;
                if self.buffer[self.start] == b'\n' {
                    self.start += 1;
                    self.searched = self.start;
                }
            }
            let Some(length) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                return Ok(None);
            };
            let end = self.searched + length;
            let mut line = &self.buffer[self.start..end];
            if !std::mem::replace(&mut self.past_first_line, true) {
                line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
            }
            self.after_return = self.buffer[end] == b'\r';
            self.start = end + 1;
            self.searched = self.start;
            if line.is_empty() {
                if let Some(data) = self.data.take() {
                    return Ok(Some(data));
                }
            } else if let Some(value) = data_of(line) {
                let value = std::str::from_utf8(value).map_err(|_| NotUtf8)?;
                match &mut self.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    None => self.data = Some(value.to_owned()),
                }
            }
        }
    }
}

/// Returns the value of a `data` line; `None` for comments and other fields.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a stream in pieces of this size.
    fn parse(stream: &[u8], size: usize) -> Result<Vec<String>, NotUtf8> {
        let (mut parser, mut events) = (Parser::default(), Vec::new());
        for piece in stream.chunks(size) {
            parser.push(piece);
            while let Some(data) = parser.event()? {
                events.push(data);
            }
        }
        Ok(events)
    }

    #[test]
    fn each_form_of_a_stream_is_read_however_it_is_cut() {
        let cases: [(&str, &[&str]); 9] = [
            ("data: a\n\ndata: b\n\n", &["a", "b"]),
            ("\u{feff}data: a\r\n\r\ndata: b\r\rdata:c\n\n", &["a", "b", "c"]),
            (": comment\n\n:\n\nevent: ping\nid: 7\ndata: {}\nretry: 5\n\n", &["{}"]),
            ("data: one\ndata: two\n\n", &["one\ntwo"]),
            ("data\n\ndata:\n\ndata:  x\n\n", &["", "", " x"]),
            ("database: x\n\n\n\ndata: é🦀\n\n", &["é🦀"]),
            ("data: a\r\n\ndata: b\n\n", &["a", "b"]),
            ("data: an event that has no end\n", &[]),
            ("data: a line that has no end", &[]),
        ];
        for (stream, events) in cases {
            for size in 1..=stream.len() {
                assert_eq!(parse(stream.as_bytes(), size).unwrap(), events, "{stream:?} in pieces of {size}");
            }
        }
        assert_eq!(parse(b"data: \xff\n\n", 3), Err(NotUtf8));
    }
}
