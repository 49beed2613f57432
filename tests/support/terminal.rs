//! The program at a real pseudo-terminal: what it shows, what is typed, and the window that is closed.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// What takes longer fails.
const LIMIT: Duration = Duration::from_secs(60);

/// Where a person sits.
pub(crate) struct Seat {
    child: Child,
    keyboard: Option<File>,
    screen: Receiver<Vec<u8>>,
    seen: String,
    /// Everything that was shown, for a test that fails.
    all: String,
    reader: Option<JoinHandle<()>>,
    /// Closing it ends the reader.
    wake: Option<std::io::PipeWriter>,
}

impl Seat {
    /// Starts a command with all its standard streams at a terminal of its own.
    pub(crate) fn take(command: &mut Command) -> Seat {
        Seat::of(command, 100)
    }

    /// Starts it at a terminal of so many columns.
    pub(crate) fn of(command: &mut Command, columns: u16) -> Seat {
        let far = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("there are ptys");
        grantpt(&far).expect("the pty is ours");
        unlockpt(&far).expect("the pty is ours");
        let name = ptsname(&far, Vec::new()).expect("the pty has a name");
        let noctty = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).expect("a flag fits");
        let path = name.to_str().expect("its name is ASCII");
        let device = OpenOptions::new().read(true).write(true).custom_flags(noctty).open(path).expect("it opens");
        tcsetwinsize(&device, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })
            .expect("it has a size");
        let stream = || Stdio::from(OwnedFd::from(device.try_clone().expect("a handle can be doubled")));
        let child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().expect("the program starts");
        let keyboard = File::from(far);
        let mut reading = keyboard.try_clone().expect("a handle can be doubled");
        let (woken, wake) = std::io::pipe().expect("the system gives a pipe");
        let (send, screen) = channel();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                let mut fds = [PollFd::new(&woken, PollFlags::IN), PollFd::new(&reading, PollFlags::IN)];
                if poll(&mut fds, None).is_err() || !fds[0].revents().is_empty() {
                    return;
                }
                let Ok(count @ 1..) = std::io::Read::read(&mut reading, &mut buffer) else { return };
                if send.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Seat {
            child,
            keyboard: Some(keyboard),
            screen,
            seen: String::new(),
            all: String::new(),
            reader: Some(reader),
            wake: Some(wake),
        }
    }

    /// Waits until the screen was sent this text, and forgets what came up to it.
    #[track_caller]
    pub(crate) fn sees(&mut self, text: &str) {
        let until = Instant::now() + LIMIT;
        while !self.seen.contains(text) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.screen.recv_timeout(left) else { panic!("{text:?} was not seen: {}", self.all) };
            let more = String::from_utf8_lossy(&bytes).into_owned();
            self.seen.push_str(&more);
            self.all.push_str(&more);
        }
        let end = self.seen.find(text).map_or(0, |start| start + text.len());
        self.seen.drain(..end);
    }

    /// Waits until the program is over, and returns everything that the screen was sent.
    #[track_caller]
    pub(crate) fn finish(mut self) -> String {
        let until = Instant::now() + LIMIT;
        // What is written when a program ends may come after its end is known.
        let mut is_over = false;
        loop {
            match self.screen.recv_timeout(Duration::from_millis(if is_over { 200 } else { 20 })) {
                Ok(bytes) => self.all.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) if is_over => return std::mem::take(&mut self.all),
                Err(_) => {
                    is_over = self.child.try_wait().expect("it can be waited for").is_some();
                    assert!(Instant::now() < until, "the program does not end: {}", self.all);
                }
            }
        }
    }

    /// Everything that the screen was sent so far.
    pub(crate) fn shown(&self) -> &str {
        &self.all
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.as_mut().expect("nobody left").write_all(keys.as_bytes()).expect("the pty is open");
    }

    /// Closes the window: the terminal is gone, as far as the program can tell.
    pub(crate) fn leaves(&mut self) {
        self.wake = None;
        self.reader.take().expect("nobody left").join().expect("nothing panics in it");
        self.keyboard = None;
    }

    /// Waits until the program is over, and returns its exit status; nothing when a signal ended it.
    #[track_caller]
    pub(crate) fn end(mut self) -> Option<i32> {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.code();
            }
            if Instant::now() > until {
                self.child.kill().ok();
                panic!("the program does not end: {}", self.all);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
