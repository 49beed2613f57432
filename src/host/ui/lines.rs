//! Reads lines from a file or a pipe without blocking other tasks.
//!
//! A read of standard input cannot be cancelled, so it happens on a thread of its own, and only when a caller
//! asks for a line. If the caller gives up meanwhile, the line is kept for the next caller.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as blocking;
use std::thread;

use tokio::sync::{Mutex, mpsc};

use super::answer;
use super::hangup::LOST;
use crate::error::Failure;
use crate::model::question::Question;

/// The longest line that is read, in bytes; a longer line is cut into several.
const LONGEST: usize = 1024 * 1024;

/// A source of lines that is read on demand.
pub(super) struct Lines {
    wanted: blocking::Sender<()>,
    /// The body of the reading thread, until the first caller starts it.
    reading: RefCell<Option<Box<dyn FnOnce() + Send>>>,
    /// Whether a line was requested that has not arrived yet.
    asked: Cell<bool>,
    /// Whether the source is a terminal that is gone.
    lost: Arc<AtomicBool>,
    /// A fair lock: the caller that asked first gets the next line.
    lines: Mutex<mpsc::UnboundedReceiver<String>>,
}

impl Lines {
    /// Returns the lines of a source. The reading thread ends with the source, or when this value is dropped.
    pub(super) fn new(source: impl BufRead + Send + 'static) -> Lines {
        let (wanted, requests) = blocking::channel();
        let (send, lines) = mpsc::unbounded_channel();
        let mut source = source;
        let lost: Arc<AtomicBool> = Arc::default();
        let is_lost = Arc::clone(&lost);
        let reading = move || {
            while requests.recv().is_ok() {
                let line = match read_line(&mut source) {
                    Ok(Some(line)) => line,
                    Err(error) if error.kind() == LOST => return is_lost.store(true, Ordering::SeqCst),
                    Ok(None) | Err(_) => return,
                };
                if send.send(line).is_err() {
                    return;
                }
            }
        };
        let reading: Box<dyn FnOnce() + Send> = Box::new(reading);
        Lines { wanted, reading: RefCell::new(Some(reading)), asked: Cell::new(false), lost, lines: Mutex::new(lines) }
    }

    /// Returns the next line, or `None` at the end of the source. Dropping the future loses no line.
    pub(super) async fn next(&self) -> Option<String> {
        let mut lines = self.lines.lock().await;
        if let Some(reading) = self.reading.take() {
            // If the thread cannot start, its ends of the channels are dropped, and every caller gets `None`.
            drop(thread::Builder::new().name("lines".to_owned()).spawn(reading));
        }
        if !self.asked.replace(true) && self.wanted.send(()).is_err() {
            return None;
        }
        let line = lines.recv().await;
        self.asked.set(false);
        line
    }
}

impl Lines {
    /// Returns the failure for a question that gets no line: nobody answers, or the terminal is gone.
    pub(super) fn end_failure(&self, question: &Question, run: &str) -> Failure {
        let why = if self.lost.load(Ordering::SeqCst) { answer::interrupted_failure } else { answer::missing_failure };
        why(question, run)
    }
}

/// Reads one line as text. Bytes that are not UTF-8 become `�`; an over-long line is returned in pieces.
fn read_line(source: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    io::Read::take(&mut *source, LONGEST as u64).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::time::Duration;

    use super::Lines;

    #[tokio::test]
    async fn lines_come_in_order_and_then_end() {
        let lines = Lines::new(Cursor::new("one\r\ntwo\n\nlast\u{e9}"));
        let mut all = Vec::new();
        while let Some(line) = lines.next().await {
            all.push(line);
        }
        assert_eq!(all, ["one", "two", "", "lasté"]);
        assert_eq!(lines.next().await, None);
    }

    #[tokio::test]
    async fn a_line_that_came_for_somebody_who_left_waits_for_the_next() {
        let (reader, mut writer) = std::io::pipe().expect("the system gives a pipe");
        let lines = Lines::new(std::io::BufReader::new(reader));
        assert!(tokio::time::timeout(Duration::from_millis(10), lines.next()).await.is_err());
        std::io::Write::write_all(&mut writer, b"late\n").expect("the pipe is open");
        assert_eq!(lines.next().await.as_deref(), Some("late"));
    }
}
