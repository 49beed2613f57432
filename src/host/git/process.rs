//! Runs git within limits on its time and output. A call that exceeds a limit is ended, and the failure names the limit.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use super::pipes::{MOST_STDERR, Pipes};
use crate::error::{Code, Failure, Result};
use crate::model::git::GitLimits;
use crate::model::text::excerpt;

/// How long to wait for the end of standard error after git has ended: programs that git started may hold it open.
const STDERR_GRACE: Duration = Duration::from_secs(1);
/// How long to wait between two looks at a process whose end the kernel does not tell.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest wait for the end of a process before it is looked at again.
const LONGEST: Duration = Duration::from_secs(60);
/// How long git may take to remove its locks after SIGTERM.
const UNLOCKING: Duration = Duration::from_millis(100);

/// How many characters of git's message a failure keeps.
const MOST_TOLD: usize = 1000;

/// The limits of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallBounds {
    pub time: Duration,
    /// The most bytes of output.
    pub output: usize,
    /// Whether a longer output is cut instead of being an error.
    pub cut: bool,
    /// Whether the user can raise the limits in the configuration.
    pub settable: bool,
}

impl CallBounds {
    pub(super) fn of(limits: GitLimits) -> CallBounds {
        let output = usize::try_from(limits.megabytes.saturating_mul(1 << 20)).unwrap_or(usize::MAX);
        CallBounds { time: Duration::from_secs(limits.seconds), output, cut: false, settable: true }
    }

    fn over(&self, what: &str, message: &str, more: &str) -> Failure {
        let failure = Failure::new(Code::GitFailed, format!("git {what} {message}, and was ended"));
        match self.settable {
            true => {
                failure.hint(format!("run `git {what}` there yourself to see why; {more} in config.yaml allows more"))
            }
            false => failure,
        }
    }

    fn too_long(&self, what: &str) -> Failure {
        self.over(what, &format!("took longer than {} s", self.time.as_secs_f64()), "`git.seconds`")
    }

    fn too_much(&self, what: &str) -> Failure {
        self.over(what, &format!("wrote more than {} MB", self.output >> 20), "`git.megabytes`")
    }
}

/// A git command to run, and its name for failures.
pub(super) struct GitLaunch<'a> {
    pub what: &'a str,
    pub command: &'a mut Command,
    /// Whether git leads a process group, which is ended as a whole.
    pub group: bool,
    pub bounds: CallBounds,
}

/// Runs git to its end. Returns its exit status, success or not, and its output.
pub(super) fn run_to_end(started: GitLaunch<'_>, input: Option<Vec<u8>>) -> Result<Output> {
    let GitLaunch { what, command, group, bounds } = started;
    let broken = |error: std::io::Error| Failure::new(Code::GitFailed, format!("git {what}: {error}"));
    let until = Instant::now() + bounds.time;
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut git = GitChild::of(spawn(command)?, group);
    let mut pipes = Pipes::of(&mut git.child, input).map_err(broken)?;
    while pipes.writes() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(bounds.too_long(what));
        }
        pipes.go_on(None, left, bounds.output).map_err(broken)?;
        if pipes.output.len() > bounds.output {
            if !bounds.cut {
                return Err(bounds.too_much(what));
            }
            pipes.output.truncate(bounds.output);
            return Ok(Output { status: ExitStatus::default(), stdout: pipes.output, stderr: Vec::new() });
        }
    }
    let status = loop {
        let left = until.saturating_duration_since(Instant::now());
        match git.try_wait().map_err(broken)? {
            Some(status) => break status,
            None if left.is_zero() => return Err(bounds.too_long(what)),
            None => git.ending.go_on(&mut pipes, left).map_err(broken)?,
        }
    };
    let until = Instant::now() + STDERR_GRACE;
    while pipes.complains() && Instant::now() < until {
        pipes.go_on(None, until.saturating_duration_since(Instant::now()), 0).map_err(broken)?;
    }
    Ok(Output { status, stdout: pipes.output, stderr: pipes.errors })
}

fn spawn(command: &mut Command) -> Result<Child> {
    command.spawn().map_err(|error| {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => Code::GitMissing,
            _ => Code::GitFailed,
        };
        Failure::new(code, format!("git cannot be started: {error}"))
    })
}

/// The process ids of all running gits, each with whether it leads a process group.
static RUNNING: Mutex<BTreeMap<u32, bool>> = Mutex::new(BTreeMap::new());

fn running() -> MutexGuard<'static, BTreeMap<u32, bool>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every git before this process exits: first with SIGTERM, so that git removes its locks, then with SIGKILL.
pub fn end_all() {
    // The lock is held so that no process id is reused meanwhile.
    let running = running();
    let signal = |signal: Signal| {
        for (id, group) in running.iter() {
            let Some(id) = i32::try_from(*id).ok().and_then(Pid::from_raw) else { continue };
            // An error means that the process has ended already.
            let _ = if *group { kill_process_group(id, signal) } else { kill_process(id, signal) };
        }
    };
    if running.is_empty() {
        return;
    }
    signal(Signal::TERM);
    std::thread::sleep(UNLOCKING);
    signal(Signal::KILL);
}

/// Tells when a process has ended.
#[derive(Clone)]
struct Ending(Option<Arc<OwnedFd>>);

impl Ending {
    fn of(child: &Child) -> Ending {
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Ending(id.and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok()).map(Arc::new))
    }

    /// Lets the pipes go on until the process may have ended, or so long; where the kernel cannot tell its end, for a moment.
    fn go_on(&self, pipes: &mut Pipes, most: Duration) -> std::io::Result<()> {
        let most = if self.0.is_some() { most } else { most.min(PAUSE) };
        pipes.go_on(self.0.as_deref(), most, 0)
    }

    /// Waits until the process has ended, or so long; where the kernel cannot tell, for a moment.
    fn wait(&self, most: Duration) {
        let most = Timespec::try_from(most.min(LONGEST)).ok();
        let told = self.0.as_ref().is_some_and(|process| {
            let mut ended = [PollFd::new(process, PollFlags::IN)];
            poll(&mut ended, most.as_ref()).is_ok()
        });
        if !told {
            std::thread::sleep(PAUSE);
        }
    }
}

/// A running git. Dropping it kills git and, if it leads a group, the programs that it has started.
struct GitChild {
    child: Child,
    ending: Ending,
    group: bool,
    status: Option<ExitStatus>,
}

impl GitChild {
    fn of(child: Child, group: bool) -> GitChild {
        running().insert(child.id(), group);
        GitChild { ending: Ending::of(&child), child, group, status: None }
    }

    fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        // After a successful wait, the process id may belong to another process.
        if self.status.is_some() {
            return Ok(self.status);
        }
        let mut running = running();
        self.status = self.child.try_wait()?;
        if self.status.is_some() {
            running.remove(&self.child.id());
        }
        Ok(self.status)
    }

    fn end(&mut self) {
        // After a successful wait, the process id may belong to another process.
        if self.status.is_some() {
            return;
        }
        if let (true, Some(id)) = (self.group, i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)) {
            let _ = kill_process_group(id, Signal::KILL);
        }
        let _ = self.child.kill();
    }
}

impl Drop for GitChild {
    fn drop(&mut self) {
        self.end();
        while let Ok(None) = self.try_wait() {
            self.ending.wait(LONGEST);
        }
    }
}

/// A git whose output is read while it runs. It is ended at its time limit, and when this is dropped.
pub(super) struct Running {
    git: Arc<Mutex<GitChild>>,
    what: String,
    bounds: CallBounds,
    timed_out: Arc<AtomicBool>,
    /// Dropping it stops the watching thread.
    _over: Sender<()>,
}

impl Running {
    pub(super) fn start(started: GitLaunch<'_>) -> Result<Running> {
        let GitLaunch { what, command, group, bounds } = started;
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let git = Arc::new(Mutex::new(GitChild::of(spawn(command)?, group)));
        let timed_out = Arc::new(AtomicBool::new(false));
        let (over, stop) = mpsc::channel::<()>();
        let (watched, expired) = (Arc::clone(&git), Arc::clone(&timed_out));
        std::thread::spawn(move || {
            if stop.recv_timeout(bounds.time) == Err(RecvTimeoutError::Timeout) {
                expired.store(true, Ordering::SeqCst);
                watched.lock().unwrap_or_else(PoisonError::into_inner).end();
            }
        });
        Ok(Running { git, what: what.to_owned(), bounds, timed_out, _over: over })
    }

    fn git(&self) -> MutexGuard<'_, GitChild> {
        self.git.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn output(&self) -> ChildStdout {
        self.git().child.stdout.take().expect("its output is a pipe, and taken once")
    }

    pub(super) fn input(&self) -> ChildStdin {
        self.git().child.stdin.take().expect("its input is a pipe, and taken once")
    }

    /// Returns the failure for an error on a pipe: the time limit, if it is over.
    pub(super) fn pipe_failure(&self, error: &dyn std::fmt::Display) -> Failure {
        match self.timed_out.load(Ordering::SeqCst) {
            true => self.bounds.too_long(&self.what),
            false => Failure::new(Code::GitFailed, format!("git {}: {error}", self.what)),
        }
    }

    /// Waits for git to end. An exit status other than 0 is an error.
    pub(super) fn wait_for_success(&self) -> Result<()> {
        let mut message = Vec::new();
        let stderr = self.git().child.stderr.take();
        if let Some(stderr) = stderr {
            let _ = stderr.take(MOST_STDERR.try_into().unwrap_or(u64::MAX)).read_to_end(&mut message);
        }
        // The watching thread needs the child as well, so the lock is not held between two tries.
        let ending = self.git().ending.clone();
        let status = loop {
            let status = self.git().try_wait();
            match status.map_err(|error| self.pipe_failure(&error))? {
                Some(status) => break status,
                None => ending.wait(LONGEST),
            }
        };
        match status.success() {
            true => Ok(()),
            false if self.timed_out.load(Ordering::SeqCst) => Err(self.bounds.too_long(&self.what)),
            false => Err(failure(&self.what, &Output { status, stdout: Vec::new(), stderr: message })),
        }
    }
}

/// Returns the failure that repeats git's message.
pub(super) fn failure(what: &str, output: &Output) -> Failure {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let message = stderr.trim().trim_start_matches("fatal: ");
    let short = excerpt(message);
    let failure = Failure::new(Code::GitFailed, format!("git {what}: {short}"));
    match short.ends_with('…') {
        true => failure.because(message.chars().take(MOST_TOLD).collect::<String>()),
        false => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str, bounds: CallBounds) -> Result<Output> {
        given(line, bounds, None)
    }

    fn given(line: &str, bounds: CallBounds, input: Option<Vec<u8>>) -> Result<Output> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() }).process_group(0);
        run_to_end(GitLaunch { what: "test", command: &mut command, group: true, bounds }, input)
    }

    fn bounds(time: Duration) -> CallBounds {
        CallBounds { time, output: 1 << 20, cut: false, settable: true }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_takes_too_long_is_ended_with_what_it_started() {
        for line in ["sleep 600", "sleep 600 & wait", "exec >&-; sleep 600", "sleep 600 & exit 0", "yes >&2"] {
            let failure = run(line, bounds(Duration::from_millis(100))).expect_err(line);
            assert_eq!(failure.message, "git test took longer than 0.1 s, and was ended");
            assert!(failure.hint.is_some_and(|hint| hint.contains("git.seconds")), "{line}");
        }
        assert!(run("true", bounds(LONG)).expect("it is over").status.success());
    }

    #[test]
    fn what_writes_too_much_is_ended_or_cut() {
        let failure = run("yes", bounds(LONG)).expect_err("it does not end by itself");
        assert_eq!(failure.message, "git test wrote more than 1 MB, and was ended");
        let cut = run("yes", CallBounds { cut: true, ..bounds(LONG) }).expect("its beginning is wanted");
        assert_eq!(cut.stdout.len(), 1 << 20);
        // Standard error is cut as well, and does not block git.
        let said = run("yes | head -c 4000000 >&2; echo done", bounds(LONG)).expect("it ends");
        assert_eq!((said.stdout, said.stderr.len()), (b"done\n".to_vec(), 64 << 10));
    }

    #[test]
    fn what_is_written_and_what_is_read_may_both_be_longer_than_a_pipe() {
        let input: Vec<u8> = b"a line of input\n".repeat(50_000);
        let both = given("tee /dev/stderr; echo end", bounds(LONG), Some(input.clone())).expect("it ends");
        assert_eq!(both.stdout, [&input[..], b"end\n"].concat());
        assert_eq!(both.stderr, &input[..64 << 10]);
        // What reads nothing of it, or only its beginning, says itself whether that is wrong.
        for (line, status) in [("exit 3", 3), ("head -c 10 >/dev/null", 0), ("exec <&-; echo closed", 0)] {
            let ended = given(line, bounds(LONG), Some(input.clone())).expect(line);
            assert_eq!(ended.status.code(), Some(status), "{line}");
        }
        let failure =
            given("sleep 600", bounds(Duration::from_millis(100)), Some(input)).expect_err("it reads nothing");
        assert_eq!(failure.message, "git test took longer than 0.1 s, and was ended");
    }
}
