//! Notices that a terminal is gone: its window was closed, or its connection was lost. The kernel sends SIGHUP only to
//! processes of the terminal's session, but any process can poll the device.

use std::io::{self, IsTerminal, PipeWriter, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::Notify;

/// Watches the terminals among this process's standard streams until it is dropped.
pub(crate) struct Hangup {
    gone: Arc<Notify>,
    /// Closing it ends the watching thread.
    _wake: Option<PipeWriter>,
}

impl Hangup {
    /// Begins to watch. Without a terminal, or if no thread can be started, [`Hangup::wait_until_gone`] never resolves.
    pub(crate) fn watch() -> Hangup {
        let gone: Arc<Notify> = Arc::default();
        let notify = Arc::clone(&gone);
        let mut devices = Vec::new();
        let mut add =
            |is_terminal: bool, device: io::Result<OwnedFd>| devices.extend(device.ok().filter(|_| is_terminal));
        add(io::stdin().is_terminal(), io::stdin().as_fd().try_clone_to_owned());
        add(io::stdout().is_terminal(), io::stdout().as_fd().try_clone_to_owned());
        add(io::stderr().is_terminal(), io::stderr().as_fd().try_clone_to_owned());
        let pipe = if devices.is_empty() { None } else { io::pipe().ok() };
        let wake = pipe.and_then(|(woken, wake)| {
            let watch = move || {
                if wait(&devices, &woken) {
                    notify.notify_one();
                }
            };
            thread::Builder::new().name("hangup".to_owned()).spawn(watch).ok().map(|_| wake)
        });
        Hangup { gone, _wake: wake }
    }

    /// Resolves when one of the terminals is gone.
    pub(crate) async fn wait_until_gone(&self) {
        self.gone.notified().await;
    }
}

/// Waits until a device is gone or the pipe is closed. Returns whether it was a device.
fn wait(devices: &[OwnedFd], woken: &impl AsFd) -> bool {
    // Even without requested events, `poll` reports a hang-up.
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

/// Returns whether a terminal is gone. Only for terminals: a closed pipe looks the same.
pub(super) fn is_hung_up(terminal: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&terminal, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}

/// Reads from a terminal. If the terminal is gone, reading fails with [`LOST`] instead of reporting the end of the
/// input.
pub(super) struct TerminalReader<R>(pub(super) R);

/// The error of reading from a terminal that is gone.
pub(super) const LOST: io::ErrorKind = io::ErrorKind::ConnectionAborted;

impl<R: Read + AsFd> Read for TerminalReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.read(into) {
            Ok(0) | Err(_) if !into.is_empty() && is_hung_up(&self.0) => Err(LOST.into()),
            read => read,
        }
    }
}
