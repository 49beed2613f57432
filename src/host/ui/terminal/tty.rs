//! The terminal as a device: its size, its raw mode while a question is open, and the thread that reads
//! keys from it.
//!
//! The thread waits for the device *and* for a pipe that is closed when the question goes away, so it
//! never stays behind in a read that would steal the keys of the next question or of the user's shell.

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{self, OptionalActions, OutputModes, Termios};
use tokio::sync::mpsc;

use super::keys::{Key, Keys};
use crate::host::ui::hangup::hung_up;

/// How long after an escape byte the rest of its sequence may come.
const ESCAPE: Duration = Duration::from_millis(40);
/// Asks the terminal to mark pastes.
pub(super) const RAW_ON: &str = "\u{1b}[?2004h";
pub(super) const RAW_OFF: &str = "\u{1b}[?2004l";

/// An open terminal device.
#[derive(Clone)]
pub(super) struct Tty {
    device: Arc<OwnedFd>,
}

/// Raw mode with a thread that reads keys; ends both when it is dropped.
pub(super) struct Typing {
    tty: Tty,
    before: Termios,
    keys: mpsc::UnboundedReceiver<Key>,
    /// Closing it wakes the thread up and ends it.
    wake: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Tty {
    pub(super) fn new(device: OwnedFd) -> Tty {
        Tty { device: Arc::new(device) }
    }

    /// Returns columns and rows, with the usual guess where the device does not know.
    pub(super) fn size(&self) -> (usize, usize) {
        match termios::tcgetwinsize(&self.device) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (usize::from(size.ws_col), usize::from(size.ws_row)),
            _ => (80, 24),
        }
    }

    pub(super) fn gone(&self) -> bool {
        hung_up(&self.device)
    }

    /// Starts to read keys. What was typed before is thrown away: it cannot be an answer to a question
    /// that nobody had seen.
    pub(super) fn typing(&self) -> io::Result<Typing> {
        let before = termios::tcgetattr(&self.device)?;
        let mut raw = before.clone();
        raw.make_raw();
        // Other output (a notice, a child's) still gets its line ends.
        raw.output_modes.insert(OutputModes::OPOST | OutputModes::ONLCR);
        let (woken, wake) = io::pipe()?;
        let (send, keys) = mpsc::unbounded_channel();
        termios::tcsetattr(&self.device, OptionalActions::Flush, &raw)?;
        // From here on, dropping this value restores the device.
        let mut typing = Typing { tty: self.clone(), before, keys, wake: Some(wake), thread: None };
        let device = self.device.clone();
        let read = move || read_keys(&device, &woken, &send);
        typing.thread = Some(thread::Builder::new().name("keys".to_owned()).spawn(read)?);
        Ok(typing)
    }
}

impl Typing {
    /// Returns the next key, or nothing when the terminal is gone.
    pub(super) async fn next(&mut self) -> Option<Key> {
        self.keys.recv().await
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // Its result says nothing: it ends by returning, whatever happened to the device.
            let _ = thread.join();
        }
        let _ = termios::tcsetattr(&self.tty.device, OptionalActions::Now, &self.before);
    }
}

/// Reads keys until the pipe is closed or the device is gone.
fn read_keys(device: &OwnedFd, woken: &impl AsFd, send: &mpsc::UnboundedSender<Key>) {
    let mut parser = Keys::default();
    let mut buffer = [0; 4096];
    loop {
        let wait = parser.undecided().then_some(ESCAPE);
        let keys = match wait_for(device, woken, wait) {
            Ready::Closed => return,
            Ready::Late => parser.settle().into_iter().collect(),
            Ready::Input => match rustix::io::read(device, &mut buffer) {
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

enum Ready {
    Input,
    Late,
    Closed,
}

fn wait_for(device: &OwnedFd, woken: &impl AsFd, wait: Option<Duration>) -> Ready {
    let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
    let mut fds = [PollFd::new(device, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(0) => Ready::Late,
        Ok(_) if !fds[1].revents().is_empty() => Ready::Closed,
        Ok(_) => Ready::Input,
        Err(rustix::io::Errno::INTR) => Ready::Late,
        Err(_) => Ready::Closed,
    }
}
