//! Terminals that go away: a window that was closed, a connection that was lost. The kernel sends a signal to those
//! whose session the terminal leads, and to nobody else; everybody can ask the device.

use std::io::{self, IsTerminal, PipeWriter, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::Notify;

/// Watches the terminals among this process's standard streams, as long as it lives.
pub struct Hangup {
    told: Arc<Notify>,
    /// Closing it ends the thread that watches.
    _wake: Option<PipeWriter>,
}

impl Hangup {
    /// Begins to watch; without a terminal, and where no thread can be had, nothing is ever told.
    pub fn watch() -> Hangup {
        let told: Arc<Notify> = Arc::default();
        let tell = Arc::clone(&told);
        let mut devices = Vec::new();
        let mut add = |there: bool, device: io::Result<OwnedFd>| devices.extend(device.ok().filter(|_| there));
        add(io::stdin().is_terminal(), io::stdin().as_fd().try_clone_to_owned());
        add(io::stdout().is_terminal(), io::stdout().as_fd().try_clone_to_owned());
        add(io::stderr().is_terminal(), io::stderr().as_fd().try_clone_to_owned());
        let pipe = if devices.is_empty() { None } else { io::pipe().ok() };
        let wake = pipe.and_then(|(woken, wake)| {
            let watch = move || {
                if wait(&devices, &woken) {
                    tell.notify_one();
                }
            };
            thread::Builder::new().name("hangup".to_owned()).spawn(watch).ok().map(|_| wake)
        });
        Hangup { told, _wake: wake }
    }

    /// Resolves when one of the terminals is gone.
    pub async fn wait_until_gone(&self) {
        self.told.notified().await;
    }
}

/// Waits for the end of a device, or of the pipe; tells whether it was a device's.
fn wait(devices: &[OwnedFd], woken: &impl AsFd) -> bool {
    // Asked for nothing, poll still tells of a hang-up.
    let mut fds: Vec<PollFd<'_>> = std::iter::once(PollFd::new(woken, PollFlags::IN))
        .chain(devices.iter().map(|device| PollFd::new(device, PollFlags::empty())))
        .collect();
    loop {
        match poll(&mut fds, None) {
            Ok(_) if !fds[0].revents().is_empty() => return false,
            Ok(_) if fds.iter().skip(1).any(|fd| fd.revents().contains(PollFlags::HUP)) => return true,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Tells whether a terminal is gone. Only its own device may be asked: the end of a pipe looks the same.
pub(super) fn is_hung_up(terminal: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&terminal, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}

/// What is typed at a terminal. Its end is no end of the input where the terminal is gone: reading fails with
/// [`LOST`] then.
pub(super) struct TerminalReader<R>(pub(super) R);

/// How reading from a terminal fails that is gone.
pub(super) const LOST: io::ErrorKind = io::ErrorKind::ConnectionAborted;

impl<R: Read + AsFd> Read for TerminalReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.read(into) {
            Ok(0) | Err(_) if !into.is_empty() && is_hung_up(&self.0) => Err(LOST.into()),
            read => read,
        }
    }
}
