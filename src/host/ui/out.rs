//! Writes to a stream that may be closed at any time.
//!
//! Showing something never fails: a reader that closed the pipe does not want to see more. But nobody can answer a
//! question that nobody sees, so the first failed write is remembered.

use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

use crate::model::text::clean;

/// Why standard output could not be written, if a front end could not: a full disk, and not a reader that left. The process has
/// one standard output, whichever front end writes it.
static LOST: OnceLock<String> = OnceLock::new();

/// Returns why something that a run said could not be written to standard output. Showing something never fails while the
/// run goes on; who has sent it to a file learns at the end that it is not all there.
pub fn lost_output() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// A stream for text that remembers whether a write has failed.
pub(super) struct OutputStream {
    stream: RefCell<Box<dyn Write + Send>>,
    closed: Cell<bool>,
    is_standard_output: bool,
}

impl OutputStream {
    pub(super) fn new(stream: Box<dyn Write + Send>) -> OutputStream {
        OutputStream { stream: RefCell::new(stream), closed: Cell::new(false), is_standard_output: false }
    }

    /// Makes the stream for what a run says: that it could not be written is a failure of the process.
    pub(super) fn standard_output(stream: Box<dyn Write + Send>) -> OutputStream {
        OutputStream { is_standard_output: true, ..OutputStream::new(stream) }
    }

    /// Writes the text and flushes it, so that a reader sees it at once.
    pub(super) fn put(&self, text: &str) {
        if self.closed.get() {
            return;
        }
        let mut stream = self.stream.borrow_mut();
        if let Err(error) = stream.write_all(text.as_bytes()).and_then(|()| stream.flush()) {
            self.closed.set(true);
            if self.is_standard_output && error.kind() != ErrorKind::BrokenPipe {
                // The first reason stays.
                let _ = LOST.set(error.to_string());
            }
        }
    }

    /// Returns whether a write has failed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.get()
    }
}

/// Returns foreign text in a form safe to show: Windows line ends become line ends, other control characters become
/// visible pictures.
pub(super) fn safe(text: &str) -> String {
    clean(&text.replace("\r\n", "\n"))
}

/// Returns foreign text for a message of nietz itself: lines after the first are indented, so that they do not look like
/// further messages.
pub(super) fn indent_lines(text: &str) -> String {
    safe(text.trim_end()).replace('\n', "\n  ")
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::{OutputStream, safe};

    /// A stream whose text a test can read while a front end writes to it.
    #[derive(Clone, Default)]
    pub(in crate::host::ui) struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Captured {
        pub(in crate::host::ui) fn stream(&self) -> Box<dyn Write + Send> {
            Box::new(self.clone())
        }

        pub(in crate::host::ui) fn text(&self) -> String {
            String::from_utf8_lossy(&self.0.lock().expect("no writer panicked")).into_owned()
        }
    }

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no writer panicked").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_remembered_and_nothing_fails() {
        let (reader, writer) = io::pipe().expect("the system gives a pipe");
        drop(reader);
        let out = OutputStream::new(Box::new(writer));
        assert!(!out.is_closed());
        out.put("into the void");
        assert!(out.is_closed());
    }

    #[test]
    fn foreign_text_keeps_its_lines_and_loses_its_control() {
        assert_eq!(safe("a\r\nb\r\u{1b}[1m"), "a\nb␍␛[1m");
    }
}
