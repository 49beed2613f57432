//! Ends a run on Ctrl-C, on SIGTERM (which service managers send), and when its terminal goes away.
//!
//! A thread of its own listens for these requests, and never blocks. It tells the run, which then ends by itself. A run
//! that computes does not respond: the thread ends the process at once, as a kill would, and the run can be resumed from
//! its journal. So it does if a run has not ended soon after a second request.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{self, OptionalActions, Termios};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::cpu::{CpuLimit, ThreadClock};
use crate::error::{Code, Exit, Failure, Result};
use crate::host::ui::ending;
use crate::host::ui::hangup::Hangup;
use crate::lua::scheduler::Interrupts;

/// How long a run that was asked to end may compute before it responds.
const UNRESPONSIVE_LIMIT: Duration = Duration::from_millis(300);
/// How often the thread checks whether the run has responded.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long a run that was asked twice may take to end.
const SECOND_REQUEST_LIMIT: Duration = Duration::from_millis(200);
/// Turns bracketed paste off, and shows the cursor.
const TERMINAL_AS_BEFORE: &str = "\u{1b}[?2004l\u{1b}[?25h";

/// The run that the thread tells about requests.
static RUN: Mutex<Option<InterruptibleRun>> = Mutex::new(None);
/// Whether the thread is running.
static LISTENING: Mutex<bool> = Mutex::new(false);
static NUMBER: AtomicU64 = AtomicU64::new(0);

struct InterruptibleRun {
    number: u64,
    requests: mpsc::UnboundedSender<()>,
    /// The thread that the flow runs on.
    thread: ThreadClock,
    asked: usize,
    heard: usize,
    /// What to show if the run itself cannot show it any more.
    message: String,
}

fn run() -> MutexGuard<'static, Option<InterruptibleRun>> {
    RUN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The user's requests to end a run, while this value lives. A request at any other time ends the process.
pub(crate) struct CtrlC {
    requests: mpsc::UnboundedReceiver<()>,
}

impl CtrlC {
    /// Starts to listen for requests to end the run of this name, which the calling thread runs. A command that only looks has
    /// no name to resume it by.
    ///
    /// # Errors
    ///
    /// `internal` if the system refuses the thread or the signals.
    pub(crate) fn new(name: Option<&str>) -> Result<CtrlC> {
        let (sender, requests) = mpsc::unbounded_channel();
        let message = match name {
            Some(name) => {
                format!("interrupted; nothing that was finished is lost\nresume with: nietz resume {name}\n")
            }
            None => "interrupted; nothing was changed\n".to_owned(),
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        *run() = Some(InterruptibleRun {
            number,
            requests: sender,
            thread: ThreadClock::current(),
            asked: 0,
            heard: 0,
            message,
        });
        let mut listening = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
        if !*listening {
            listen().map_err(|error| Failure::new(Code::Internal, format!("cannot listen to signals: {error}")))?;
            *listening = true;
        }
        Ok(CtrlC { requests })
    }
}

impl Drop for CtrlC {
    fn drop(&mut self) {
        *run() = None;
    }
}

impl Interrupts for CtrlC {
    fn next(&mut self) -> LocalBoxFuture<'_, ()> {
        Box::pin(async {
            if self.requests.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
            if let Some(run) = &mut *run() {
                run.heard += 1;
            }
        })
    }
}

/// Starts the thread, and returns when it listens.
fn listen() -> io::Result<()> {
    let (ready, listens) = std::sync::mpsc::sync_channel(1);
    let before = termios::tcgetattr(io::stdin()).ok();
    let work = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(error))),
        };
        runtime.block_on(async {
            let listening = TerminationSignals::new();
            match listening {
                Ok(mut signals) => {
                    let _ = ready.send(Ok(()));
                    watch(&mut signals, before.as_ref()).await;
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        });
    };
    thread::Builder::new().name("signals".to_owned()).spawn(work)?;
    listens.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
}

/// The signals that ask a run to end.
struct TerminationSignals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` where a hang-up does not count: one has happened already (each comes in several ways), or the run is to
    /// outlive its terminal (`nohup`).
    hangup: Option<(Signal, Hangup)>,
}

impl TerminationSignals {
    fn new() -> io::Result<TerminationSignals> {
        let hangup = match outlives_its_terminal() {
            true => None,
            false => Some((signal(SignalKind::hangup())?, Hangup::watch())),
        };
        Ok(TerminationSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup,
        })
    }

    async fn next(&mut self) {
        let hangup = self.hangup.as_mut();
        let terminal_gone = async {
            match hangup {
                Some((signal, terminal)) => tokio::select! {
                    _ = signal.recv() => {}
                    () = terminal.wait_until_gone() => {}
                },
                None => std::future::pending().await,
            }
        };
        let hung_up = tokio::select! {
            _ = self.interrupt.recv() => false,
            _ = self.terminate.recv() => false,
            () = terminal_gone => true,
        };
        if hung_up {
            self.hangup = None;
        }
    }
}

/// A run that was asked to end and has not ended yet.
struct PendingEnd {
    number: u64,
    /// How long the run may compute without a response.
    silence: CpuLimit,
    /// When the process is ended, whatever the run does.
    until: Option<Instant>,
}

async fn watch(signals: &mut TerminationSignals, before: Option<&Termios>) {
    let mut pending: Option<PendingEnd> = None;
    loop {
        let until = pending.as_ref().and_then(|pending| pending.until);
        tokio::select! {
            biased;
            () = signals.next() => match &mut *run() {
                None => end("", before),
                Some(run) => {
                    run.asked += 1;
                    let _ = run.requests.send(());
                    let until = (run.asked > 1).then(|| Instant::now() + SECOND_REQUEST_LIMIT);
                    let silence = CpuLimit::new(run.thread, UNRESPONSIVE_LIMIT);
                    pending = Some(PendingEnd { number: run.number, silence, until });
                }
            },
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
            () = sleep(POLL_INTERVAL), if pending.is_some() => {}
        }
        let run = run();
        let Some(waiting) = &pending else { continue };
        match &*run {
            Some(run) if run.number == waiting.number => {
                let late = waiting.until.is_some_and(|until| Instant::now() >= until);
                if late || run.heard < run.asked && waiting.silence.is_over() {
                    end(&run.message, before);
                }
                if run.heard >= run.asked && waiting.until.is_none() {
                    pending = None;
                }
            }
            // The run has ended by itself.
            _ => pending = None,
        }
    }
}

/// Ends the process at once, as a kill does: waits neither for what the run computes nor for a reader of its output.
fn end(message: &str, before: Option<&Termios>) -> ! {
    if let Some(before) = before {
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, before);
    }
    leave(message, Exit::Interrupted)
}

/// Ends the process of a flow that never returns control.
pub(crate) fn give_up(failure: &Failure) {
    leave(&ending::failure(failure, &ending::without_colour), failure.code.exit())
}

/// Writes a message to standard error if that needs no waiting, and exits.
fn leave(message: &str, exit: Exit) -> ! {
    let errors = io::stderr();
    let clear = if errors.is_terminal() { TERMINAL_AS_BEFORE } else { "" };
    let mut ready = [PollFd::new(&errors, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut ready, Some(&now)).is_ok_and(|count| count > 0) {
        let _ = rustix::io::write(&errors, format!("{clear}{message}").as_bytes());
    }
    crate::host::git::end_all();
    #[cfg(target_os = "linux")]
    // SAFETY: it takes a number, and does not return.
    unsafe {
        libc::_exit(i32::from(exit as u8))
    }
    #[cfg(not(target_os = "linux"))]
    std::process::exit(i32::from(exit as u8))
}

/// Makes a write beyond the limit on the size of files (`ulimit -f`) fail, as on a full disk, instead of ending this
/// process without a word. Child processes do not inherit this: commands and git are ended as before.
pub(crate) fn outlive_file_limits() {
    // Without this the run goes on as before.
    let Ok(runtime) = crate::run::runtime() else { return };
    let _inside = runtime.enter();
    let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
}

/// Tells whether this process was started with hang-ups ignored. Listening for them would undo that.
fn outlives_its_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The mask has a bit for each signal, and hang-up is the first.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
