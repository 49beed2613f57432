//! Messages in lines, of which each has a length that is not exceeded.

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// The longest message that is read, in bytes.
pub(crate) const LONGEST: usize = 16 << 20;

/// A line that is longer than any message. Nothing of it is kept.
#[derive(Debug)]
pub(crate) struct TooLong;

impl TooLong {
    pub(crate) fn told() -> String {
        format!("a message has {LONGEST} bytes at most")
    }
}

/// Reads lines. What was read of one is kept when a read is given up.
#[derive(Default)]
pub(crate) struct LineReader {
    line: Vec<u8>,
    is_too_long: bool,
}

impl LineReader {
    /// Returns the next line with its end; nothing when there are no more.
    ///
    /// # Errors
    ///
    /// Those of reading.
    pub(crate) async fn next(
        &mut self,
        input: &mut (impl AsyncBufRead + Unpin),
    ) -> std::io::Result<Option<Result<Vec<u8>, TooLong>>> {
        loop {
            let piece = input.fill_buf().await?;
            if piece.is_empty() {
                let rest = std::mem::take(&mut self.line);
                return Ok((!rest.is_empty()).then_some(Ok(rest)));
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(piece.len(), |end| end + 1);
            self.is_too_long |= self.line.len() + length > LONGEST;
            match self.is_too_long {
                true => self.line = Vec::new(),
                false => self.line.extend_from_slice(&piece[..length]),
            }
            input.consume(length);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(Some(if std::mem::take(&mut self.is_too_long) { Err(TooLong) } else { Ok(line) }));
            }
        }
    }
}
