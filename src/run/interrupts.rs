//! Ctrl-C, the request to end that a service manager sends, and a terminal that goes away.
//!
//! A thread of its own listens, and waits for nobody. It tells the run, which then ends by itself. A run that computes
//! does not hear; it is ended where it stands, as a kill would, and its journal goes on from there. So is whatever has
//! not ended soon after it was asked twice.

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

/// How long a run that was asked to end may compute before it hears that.
const UNRESPONSIVE_LIMIT: Duration = Duration::from_millis(300);
/// How often it is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long a run that was asked twice may take to end.
const SECOND_REQUEST_LIMIT: Duration = Duration::from_millis(200);
/// Ends the marking of pastes, and shows the cursor.
const TERMINAL_AS_BEFORE: &str = "\u{1b}[?2004l\u{1b}[?25h";

/// The run that is told.
static RUN: Mutex<Option<InterruptibleRun>> = Mutex::new(None);
/// Whether the thread is there.
static LISTENING: Mutex<bool> = Mutex::new(false);
static NUMBER: AtomicU64 = AtomicU64::new(0);

struct InterruptibleRun {
    number: u64,
    asks: mpsc::UnboundedSender<()>,
    /// The thread that the flow runs on.
    thread: ThreadClock,
    asked: usize,
    heard: usize,
    /// What is said where the run cannot say it any more.
    said: String,
}

fn run() -> MutexGuard<'static, Option<InterruptibleRun>> {
    RUN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The asks of the user to end a run, as long as it lives. What comes when there is no run ends the process.
pub struct CtrlC {
    asks: mpsc::UnboundedReceiver<()>,
}

impl CtrlC {
    /// Listens for the run of this name, which the calling thread works on.
    pub fn new(name: &str) -> Result<CtrlC> {
        let (tell, asks) = mpsc::unbounded_channel();
        let said = format!("interrupted; nothing that was finished is lost\nresume with: nietz resume {name}\n");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        *run() =
            Some(InterruptibleRun { number, asks: tell, thread: ThreadClock::current(), asked: 0, heard: 0, said });
        let mut listening = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
        if !*listening {
            listen().map_err(|error| Failure::new(Code::Internal, format!("cannot listen to signals: {error}")))?;
            *listening = true;
        }
        Ok(CtrlC { asks })
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
            if self.asks.recv().await.is_none() {
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

/// What asks a run to end.
struct TerminationSignals {
    interrupt: Signal,
    terminate: Signal,
    /// Nothing where it does not count: it has happened, and comes in several ways, or the run is to outlive its
    /// terminal (`nohup`).
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
        let left_alone = async {
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
            () = left_alone => true,
        };
        if hung_up {
            self.hangup = None;
        }
    }
}

/// A run that was asked to end and has not yet.
struct PendingEnd {
    number: u64,
    deaf: CpuLimit,
    /// When it is ended, whatever it does.
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
                    let _ = run.asks.send(());
                    let until = (run.asked > 1).then(|| Instant::now() + SECOND_REQUEST_LIMIT);
                    pending = Some(PendingEnd { number: run.number, deaf: CpuLimit::new(run.thread, UNRESPONSIVE_LIMIT), until });
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
                if late || run.heard < run.asked && waiting.deaf.is_over() {
                    end(&run.said, before);
                }
                if run.heard >= run.asked && waiting.until.is_none() {
                    pending = None;
                }
            }
            // It has ended by itself.
            _ => pending = None,
        }
    }
}

/// Ends the process as a kill does: at once. Neither what the run computes nor who reads what it says is waited for.
fn end(said: &str, before: Option<&Termios>) -> ! {
    if let Some(before) = before {
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, before);
    }
    leave(said, Exit::Interrupted)
}

/// Ends the process where a flow never comes back.
pub fn give_up(failure: &Failure) {
    leave(&ending::failure(failure, &ending::without_colour), failure.code.exit())
}

/// Says something to who can be told at once, and leaves.
fn leave(said: &str, exit: Exit) -> ! {
    let errors = io::stderr();
    let clear = if errors.is_terminal() { TERMINAL_AS_BEFORE } else { "" };
    let mut ready = [PollFd::new(&errors, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut ready, Some(&now)).is_ok_and(|count| count > 0) {
        let _ = rustix::io::write(&errors, format!("{clear}{said}").as_bytes());
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

/// Lets a limit on the size of files (`ulimit -f`) fail the write that goes beyond, as a full disk does, instead of
/// ending this process without a word. What is listened to is not handed down: commands and git are ended as ever.
pub fn outlive_file_limits() {
    // Without this the run goes on as before.
    let Ok(runtime) = crate::run::runtime() else { return };
    let _inside = runtime.enter();
    let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
}

/// Tells whether this process was started with hang-ups ignored. Listening to them would end that.
fn outlives_its_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // A bit for each signal, and hang-up is the first.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
