//! The terminal device: its size, its raw mode while a question is open, and the thread that reads keys.
//!
//! The thread waits for the device *and* for a pipe that is closed when the question is over. So it never
//! stays in a read that would steal the keys of the next question or of the user's shell.

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{self, OptionalActions, OutputModes, Termios};
use tokio::sync::mpsc;

use super::keys::{KeyParser, KeyPress};
use crate::host::ui::hangup::is_hung_up;

/// How long after an escape byte the rest of its sequence may arrive.
const ESCAPE: Duration = Duration::from_millis(40);
/// Makes the terminal mark pastes (bracketed paste).
pub(super) const RAW_ON: &str = "\u{1b}[?2004h";
pub(super) const RAW_OFF: &str = "\u{1b}[?2004l";

/// An open terminal device.
#[derive(Clone)]
pub(super) struct Tty {
    device: Arc<OwnedFd>,
    /// The keys that were pressed while no question was open.
    ahead: Arc<Mutex<Vec<KeyPress>>>,
}

/// Raw mode with a thread that reads keys. Dropping it ends both.
pub(super) struct KeyReader {
    tty: Tty,
    before: Termios,
    keys: mpsc::UnboundedReceiver<KeyPress>,
    /// Closing it wakes the thread up and ends it.
    wake: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Tty {
    pub(super) fn new(device: OwnedFd) -> Tty {
        Tty { device: Arc::new(device), ahead: Arc::default() }
    }

    /// Returns columns and rows, or 80 and 24 if the device does not know its size.
    pub(super) fn size(&self) -> (usize, usize) {
        match termios::tcgetwinsize(&self.device) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (usize::from(size.ws_col), usize::from(size.ws_row)),
            _ => (80, 24),
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        is_hung_up(&self.device)
    }

    /// Starts to read keys. What was typed before is kept apart: it may begin an answer, and cannot answer what nobody had seen.
    pub(super) fn start_reading(&self) -> io::Result<KeyReader> {
        let before = termios::tcgetattr(&self.device)?;
        let mut raw = before.clone();
        raw.make_raw();
        // Other output (a notice, that of a child process) still needs its line ends translated.
        raw.output_modes.insert(OutputModes::OPOST | OutputModes::ONLCR);
        let (woken, wake) = io::pipe()?;
        let (send, keys) = mpsc::unbounded_channel();
        termios::tcsetattr(&self.device, OptionalActions::Now, &raw)?;
        // From here on, dropping this value restores the device.
        let mut typing = KeyReader { tty: self.clone(), before, keys, wake: Some(wake), thread: None };
        let mut parser = KeyParser::default();
        let typed = waiting_keys(&self.device, &mut parser);
        self.ahead().extend(typed);
        let device = self.device.clone();
        let read = move || read_keys(&device, parser, &woken, &send);
        typing.thread = Some(thread::Builder::new().name("keys".to_owned()).spawn(read)?);
        Ok(typing)
    }
}

impl Tty {
    /// Gives away what was typed ahead: `take` removes what it takes.
    pub(super) fn typed_ahead<R>(&self, take: impl FnOnce(&mut Vec<KeyPress>) -> R) -> R {
        take(&mut self.ahead())
    }

    fn ahead(&self) -> MutexGuard<'_, Vec<KeyPress>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyReader {
    /// Returns the next key, or `None` if the terminal is gone.
    pub(super) async fn next(&mut self) -> Option<KeyPress> {
        self.keys.recv().await
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // The result is empty: the thread returns normally, whatever happened to the device.
            let _ = thread.join();
        }
        // What was pressed behind the answer begins the next one.
        while let Ok(key) = self.keys.try_recv() {
            self.tty.ahead().push(key);
        }
        let _ = termios::tcsetattr(&self.tty.device, OptionalActions::Now, &self.before);
    }
}

/// The most that is taken of what was typed ahead, in bytes.
const MOST_AHEAD: usize = 64 * 1024;

/// Returns the keys that the device has already. The device is in raw mode, so that half a line counts.
fn waiting_keys(device: &OwnedFd, parser: &mut KeyParser) -> Vec<KeyPress> {
    let (mut keys, mut taken, mut buffer) = (Vec::new(), 0, [0; 4096]);
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    while taken < MOST_AHEAD && matches!(poll(&mut [PollFd::new(device, PollFlags::IN)], Some(&now)), Ok(1)) {
        let Ok(count @ 1..) = rustix::io::read(device, &mut buffer) else { break };
        taken += count;
        keys.extend(parser.feed(&buffer[..count]));
    }
    keys
}

/// Reads keys until the pipe is closed or the device is gone.
fn read_keys(device: &OwnedFd, mut parser: KeyParser, woken: &impl AsFd, send: &mpsc::UnboundedSender<KeyPress>) {
    let mut buffer = [0; 4096];
    loop {
        let wait = parser.escape_pending().then_some(ESCAPE);
        let keys = match wait_for(device, woken, wait) {
            PollOutcome::Closed => return,
            PollOutcome::TimedOut => parser.finish_escape().into_iter().collect(),
            PollOutcome::Input => match rustix::io::read(device, &mut buffer) {
                Ok(0) => return,
                Ok(count) => parser.feed(&buffer[..count]),
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
            },
        };
        for key in keys {
            if send.send(key).is_err() {
                return;
            }
        }
    }
}

enum PollOutcome {
    Input,
    TimedOut,
    Closed,
}

fn wait_for(device: &OwnedFd, woken: &impl AsFd, wait: Option<Duration>) -> PollOutcome {
    let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
    let mut fds = [PollFd::new(device, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(0) => PollOutcome::TimedOut,
        Ok(_) if !fds[1].revents().is_empty() => PollOutcome::Closed,
        Ok(_) => PollOutcome::Input,
        Err(rustix::io::Errno::INTR) => PollOutcome::TimedOut,
        Err(_) => PollOutcome::Closed,
    }
}
