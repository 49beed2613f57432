//! Watches one command and all processes that it starts until they are over, from the process that orphans fall to.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::Report;
use super::cgroup::Cgroup;
use super::policy::Policy;
use super::processes::{self, ResourceUsage};

/// The hidden verb of the command line that becomes the command.
pub(crate) const INNER_VERB: &str = "__confined";
/// The exit code of the inner child if it does not become the command; the reason is in the report.
pub(super) const NOT_STARTED: u8 = 127;

/// How often usage is measured: outside of a namespace, all processes of the machine are searched, which takes longer.
const LOOK: Duration = Duration::from_millis(200);
const LOOK_INSIDE: Duration = Duration::from_millis(50);
/// How long ending all processes may take.
const ENDING: Duration = Duration::from_secs(5);
/// How long to wait for the news that no process is left.
const SOON: Duration = Duration::from_millis(2);
/// How often, at most, all processes are listed and stopped before they are killed: stopped processes start no others.
const STOPS: usize = 8;

/// How a command ended.
pub(super) struct CommandEnd {
    pub report: Report,
    /// Whether the command ended because the lifeline did.
    pub lifeline_ended: bool,
}

/// The events that `watch` waits for.
enum ProcessEvent {
    /// A child has ended, with this exit code.
    ChildEnded(Pid, i32),
    /// No children are left, so no process of the command is.
    NoneLeft,
    /// The lifeline has ended.
    LifelineEnded,
}

/// Starts a command, waits for its end, and ends the processes that it left. In a namespace, the kernel ends them when
/// this process ends.
pub(super) fn oversee(policy: &Policy, words: &[OsString], group: Option<&Cgroup>) -> CommandEnd {
    let not_started = |error: &dyn std::fmt::Display| CommandEnd {
        report: Report::NotStarted(error.to_string()),
        lifeline_ended: false,
    };
    // This path leads to the running program even if its file was replaced.
    let mut command = Command::new("/proc/self/exe");
    let text = match policy.text() {
        Ok(text) => text,
        Err(error) => return not_started(&error),
    };
    let input = match policy.input.as_deref().map(open_input).transpose() {
        Ok(input) => input.map_or_else(Stdio::null, Stdio::from),
        Err(error) => return not_started(&error),
    };
    command.arg(INNER_VERB).arg(text).arg("--").args(words).stdin(input);
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return not_started(&error),
    };
    let Some(child) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return not_started(&"no id") };
    let (sender, events) = channel();
    let reaper = sender.clone();
    std::thread::spawn(move || reap(&reaper));
    std::thread::spawn(move || {
        // Nobody writes to the lifeline: when `read` returns, the lifeline has ended.
        let _ = std::io::stdin().read(&mut [0]);
        let _ = sender.send(ProcessEvent::LifelineEnded);
    });
    let (report, mut left) = watch(policy, child, &events);
    if !policy.namespace {
        if let Some(group) = group {
            left &= !group.end();
        }
        if left && !end_all(&events) {
            return CommandEnd { report: Report::Left, lifeline_ended: false };
        }
    }
    match report {
        Some(report) => CommandEnd { report, lifeline_ended: false },
        None => CommandEnd { report: Report::Exit(128 + 9), lifeline_ended: true },
    }
}

/// Opens the pipe that is a command's standard input, without waiting for the other end: it may be gone by now.
fn open_input(path: &Path) -> std::io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let input = File::options().read(true).custom_flags(flags).open(path)?;
    rustix::fs::fcntl_setfl(&input, OFlags::empty())?;
    Ok(input)
}

/// Waits until the command ends or exceeds a limit. Returns the report, `None` if the lifeline ended, and whether
/// processes can be left.
fn watch(policy: &Policy, child: Pid, events: &Receiver<ProcessEvent>) -> (Option<Report>, bool) {
    let pause = if policy.namespace { LOOK_INSIDE } else { LOOK };
    let mut look_at = Instant::now() + pause;
    loop {
        match events.recv_timeout(look_at.saturating_duration_since(Instant::now())) {
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

/// Returns the limit that is exceeded, if any.
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

/// Returns the report of the inner child if it did not become the command, else the exit code.
fn exit_report(policy: &Policy, code: i32) -> Report {
    let report = (code == i32::from(NOT_STARTED)).then(|| super::read_report(&policy.report)).flatten();
    report.unwrap_or(Report::Exit(code))
}

/// Waits for all children, adopted orphans included, until none is left.
fn reap(sender: &Sender<ProcessEvent>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((id, status))) => {
                if sender.send(ProcessEvent::ChildEnded(id, code(status))).is_err() {
                    return;
                }
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => {
                let _ = sender.send(ProcessEvent::NoneLeft);
                return;
            }
        }
    }
}

/// Returns the exit code as shells do: 128 plus the signal for a killed process.
fn code(status: WaitStatus) -> i32 {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// Ends all processes of the command, even those in sessions of their own. Returns whether that worked.
///
/// A list misses processes that fork and exit all the time. But as long as any process is left, this process has a child:
/// only when the kernel reports no children is everything over.
fn end_all(events: &Receiver<ProcessEvent>) -> bool {
    // Usually, nothing is left.
    if matches!(events.recv_timeout(SOON), Ok(ProcessEvent::NoneLeft)) {
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
            match events.try_recv() {
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
        // An error means that the process has ended already.
        let _ = rustix::process::kill_process(*id, signal);
    }
}
