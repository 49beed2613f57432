//! Server-sent events from bytes, however these are cut.
//!
//! It is our own because it must be linear: the crates for it look at an unfinished line again with each
//! piece that comes and move the rest of the buffer with each line, which took 23 µs an event for a reply
//! that came fast, and seconds for one long line. Only `data` is read; both wires say the rest in it as well.

/// A line that is not UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub struct NotUtf8;

/// Takes bytes in, and gives the data of events out.
#[derive(Default)]
pub struct Parser {
    buffer: Vec<u8>,
    /// Where the line that comes next begins.
    start: usize,
    /// Up to where no end of that line was found.
    searched: usize,
    /// The last line ended in a carriage return: a line feed right after it belongs to that end.
    after_return: bool,
    past_first_line: bool,
    /// The data of the event that is open; `None` if it has none yet.
    data: Option<String>,
}

impl Parser {
    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        // Only the unfinished line is moved, and that only after lines before it were read.
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns how long the unfinished line is.
    pub fn unfinished_length(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Returns the data of the next event; nothing if more bytes are needed.
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

/// Returns the value of a `data` line; comments and other fields have none.
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
