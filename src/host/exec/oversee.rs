//! Watches one command and all that it starts, from the process that everything falls to, until it is over.

use std::ffi::OsString;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::Report;
use super::cgroup::Cgroup;
use super::policy::Policy;
use super::processes::{self, ResourceUsage};

/// The hidden verb of the command line that becomes the command.
pub const INNER_VERB: &str = "__confined";
/// What the inner child exits with when it does not become the command; the reason goes through the report.
pub(super) const NOT_STARTED: u8 = 127;

/// How often it is looked at what they use: all processes of a machine are looked at, or those of a namespace.
const LOOK: Duration = Duration::from_millis(200);
const LOOK_INSIDE: Duration = Duration::from_millis(50);
/// How long it may take to end everything.
const ENDING: Duration = Duration::from_secs(5);
/// How long it takes to find out that nothing is left.
const SOON: Duration = Duration::from_millis(2);
/// How often all are looked for before they are ended, at most: those that are stopped start no others.
const STOPS: usize = 8;

/// How a command ended.
pub(super) struct CommandEnd {
    pub report: Report,
    /// Whether it was because the lifeline ended.
    pub lifeline_ended: bool,
}

/// What is waited for.
enum ProcessEvent {
    /// A child is over.
    ChildEnded(Pid, i32),
    /// All children are: no process is left that came of the command.
    NoneLeft,
    /// The lifeline is.
    LifelineEnded,
}

/// Starts a command, waits for its end, and ends what it left: in a namespace, the kernel does as soon as this process
/// is over.
pub(super) fn oversee(policy: &Policy, words: &[OsString], group: Option<&Cgroup>) -> CommandEnd {
    let not_started = |error: &dyn std::fmt::Display| CommandEnd {
        report: Report::NotStarted(error.to_string()),
        lifeline_ended: false,
    };
    // The path by which a running program always finds itself, also when its file was replaced.
    let mut command = Command::new("/proc/self/exe");
    let text = match policy.text() {
        Ok(text) => text,
        Err(error) => return not_started(&error),
    };
    command.arg(INNER_VERB).arg(text).arg("--").args(words).stdin(Stdio::null());
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return not_started(&error),
    };
    let Some(child) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return not_started(&"no id") };
    let (tell, news) = channel();
    let reaper = tell.clone();
    std::thread::spawn(move || reap(&reaper));
    std::thread::spawn(move || {
        // Nothing is ever written to it: whatever this returns, it is over.
        let _ = std::io::stdin().read(&mut [0]);
        let _ = tell.send(ProcessEvent::LifelineEnded);
    });
    let (report, mut left) = watch(policy, child, &news);
    if !policy.namespace {
        if let Some(group) = group {
            left &= !group.end();
        }
        if left && !end_all(&news) {
            return CommandEnd { report: Report::Left, lifeline_ended: false };
        }
    }
    match report {
        Some(report) => CommandEnd { report, lifeline_ended: false },
        None => CommandEnd { report: Report::Exit(128 + 9), lifeline_ended: true },
    }
}

/// Waits for the end, or for the reason to end it; nothing is told when the lifeline ends. Says whether processes can
/// be left.
fn watch(policy: &Policy, child: Pid, news: &Receiver<ProcessEvent>) -> (Option<Report>, bool) {
    let pause = if policy.namespace { LOOK_INSIDE } else { LOOK };
    let mut look_at = Instant::now() + pause;
    loop {
        match news.recv_timeout(look_at.saturating_duration_since(Instant::now())) {
            Ok(ProcessEvent::ChildEnded(id, code)) if id == child => {
                let report =
                    exceeded_limit(policy, &processes::total_usage(&[])).unwrap_or_else(|| exit_report(policy, code));
                return (Some(report), true);
            }
            Ok(ProcessEvent::ChildEnded(..)) => {}
            Ok(ProcessEvent::LifelineEnded) | Err(RecvTimeoutError::Disconnected) => return (None, true),
            Ok(ProcessEvent::NoneLeft) => return (Some(Report::Exit(1)), false),
            Err(RecvTimeoutError::Timeout) => {
                let all = processes::descendants();
                if let Some(report) = exceeded_limit(policy, &processes::total_usage(&all))
                    && (report != Report::Memory || processes::memory(&all) > policy.memory)
                {
                    return (Some(report), true);
                }
                look_at = Instant::now() + pause;
            }
        }
    }
}

/// Returns the limit that is passed, if one is.
fn exceeded_limit(policy: &Policy, used: &ResourceUsage) -> Option<Report> {
    if used.processes > policy.processes {
        Some(Report::Processes)
    } else if used.memory > policy.memory {
        Some(Report::Memory)
    } else if used.written > policy.written {
        Some(Report::Written)
    } else {
        None
    }
}

/// Returns what the inner child has told if it did not become the command.
fn exit_report(policy: &Policy, code: i32) -> Report {
    let told = (code == i32::from(NOT_STARTED)).then(|| super::read_report(&policy.report)).flatten();
    told.unwrap_or(Report::Exit(code))
}

/// Waits for children, own ones and those that fell to us, as long as there are any.
fn reap(tell: &Sender<ProcessEvent>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((id, status))) => {
                if tell.send(ProcessEvent::ChildEnded(id, code(status))).is_err() {
                    return;
                }
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => {
                let _ = tell.send(ProcessEvent::NoneLeft);
                return;
            }
        }
    }
}

/// Returns the exit code as shells have it.
fn code(status: WaitStatus) -> i32 {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// Ends everything that came of the command, also what went into a session of its own; tells whether that worked.
///
/// What forks and exits all the time is in no list for long. But as long as anything is left, this process has a child:
/// only when it has none, which the kernel says, is all over.
fn end_all(news: &Receiver<ProcessEvent>) -> bool {
    // Mostly, nothing is left.
    if matches!(news.recv_timeout(SOON), Ok(ProcessEvent::NoneLeft)) {
        return true;
    }
    let until = Instant::now() + ENDING;
    for _ in 0..STOPS {
        let before = processes::descendants();
        send(&before, Signal::STOP);
        if processes::descendants().iter().all(|id| before.contains(id)) {
            break;
        }
    }
    for round in 0_u32.. {
        let quick = if round % 64 == 0 { Vec::new() } else { processes::children() };
        send(&if quick.is_empty() { processes::descendants() } else { quick }, Signal::KILL);
        loop {
            match news.try_recv() {
                Ok(ProcessEvent::NoneLeft) => return true,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        if Instant::now() > until {
            break;
        }
        std::thread::yield_now();
    }
    false
}

fn send(processes: &[Pid], signal: Signal) {
    for id in processes {
        // One that is gone meanwhile is what we want.
        let _ = rustix::process::kill_process(*id, signal);
    }
}
