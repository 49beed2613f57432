//! What git reads and writes while it runs, all of it on the thread that waits for git: a thread for each pipe costs more than
//! many a call of git does.

use std::io::{ErrorKind, Read, Result, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

/// How many bytes of git's standard error are kept.
pub(super) const MOST_STDERR: usize = 64 << 10;
/// How many pieces of a pipe are read before the time is looked at.
const PIECES: usize = 64;

/// The pipes of a git that are open, and what has come out of them.
pub(super) struct Pipes {
    /// With what is written, and how much of it was.
    stdin: Option<(ChildStdin, Vec<u8>, usize)>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    pub output: Vec<u8>,
    pub errors: Vec<u8>,
}

impl Pipes {
    /// Takes the pipes of a process, and what it is to read.
    pub(super) fn of(child: &mut Child, input: Option<Vec<u8>>) -> Result<Pipes> {
        let stdin = child.stdin.take().zip(input).map(|(pipe, input)| (pipe, input, 0));
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        if let Some((pipe, ..)) = &stdin {
            ioctl_fionbio(pipe, true)?;
        }
        if let Some(pipe) = &stdout {
            ioctl_fionbio(pipe, true)?;
        }
        if let Some(pipe) = &stderr {
            ioctl_fionbio(pipe, true)?;
        }
        Ok(Pipes { stdin, stdout, stderr, output: Vec::new(), errors: Vec::new() })
    }

    pub(super) fn writes(&self) -> bool {
        self.stdout.is_some()
    }

    pub(super) fn complains(&self) -> bool {
        self.stderr.is_some()
    }

    /// Waits until there is something to read or to write, or the process has ended, at most so long. Then reads and writes it;
    /// of the output no more than a little above `most`.
    pub(super) fn go_on(&mut self, ending: Option<&OwnedFd>, time: Duration, most: usize) -> Result<()> {
        let reading = self.stdin.iter().map(|(pipe, ..)| PollFd::new(pipe, PollFlags::OUT));
        let writing = self.stdout.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN));
        let complaining = self.stderr.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN));
        let ended = ending.into_iter().map(|process| PollFd::new(process, PollFlags::IN));
        let mut waited: Vec<PollFd<'_>> = reading.chain(writing).chain(complaining).chain(ended).collect();
        match poll(&mut waited, Timespec::try_from(time).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.write();
        read(&mut self.stdout, &mut self.output, most, false)?;
        read(&mut self.stderr, &mut self.errors, MOST_STDERR, true)
    }

    /// Writes what the process takes now. What it does not read at all, its own message explains.
    fn write(&mut self) {
        while let Some((pipe, input, written)) = &mut self.stdin {
            match pipe.write(&input[*written..]) {
                Ok(more) if *written + more < input.len() => *written += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // It has all of it, or wants no more.
                Ok(_) | Err(_) => self.stdin = None,
            }
        }
    }
}

/// Reads what is there now, until there is more than `most`; with `drained` the rest is read and thrown away, so that the writer
/// does not block. A pipe that is at its end is closed. A writer that never stops is left for a look at the time.
fn read(pipe: &mut Option<impl Read>, bytes: &mut Vec<u8>, most: usize, drained: bool) -> Result<()> {
    let mut piece = [0; 16 << 10];
    for _ in 0..PIECES {
        let Some(open) = pipe.as_mut().filter(|_| drained || bytes.len() <= most) else { break };
        match open.read(&mut piece) {
            Ok(0) => *pipe = None,
            Ok(length) if drained => bytes.extend(&piece[..length.min(most.saturating_sub(bytes.len()))]),
            Ok(length) => bytes.extend(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
