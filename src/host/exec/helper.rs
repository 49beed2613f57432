//! The helper: this program started again, to run one command and to end all that comes of it.
//!
//! It is a process of its own because a sandbox is put on for good, and because it is the parent to which everything
//! falls that the command leaves behind. It starts its own program once more, as the child that puts the sandbox on
//! and becomes the command: so the command cannot signal the helper. Its standard input is the lifeline: when that
//! ends, the one who asked is gone or has enough, and everything is ended.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus};

use super::policy::Policy;
use super::{Report, confine};

/// The hidden verbs of the command line.
pub const VERB: &str = "__command";
pub const INNER_VERB: &str = "__confined";

/// What the inner child exits with when it does not become the command; the reason goes through the report.
const NOT_STARTED: u8 = 127;
/// How often the processes are counted.
const COUNT: Duration = Duration::from_millis(200);

/// What the helper waits for.
enum News {
    /// A child is over.
    Over(Pid, i32),
    /// The lifeline is.
    Alone,
}

/// Runs a command: `policy -- program arguments…`.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let Some((policy, words)) = parse(arguments) else { return ExitCode::FAILURE };
    let report = supervise(&policy, arguments, words);
    // Nobody is left to be told when this fails.
    let _ = tell(&policy, &report);
    ExitCode::SUCCESS
}

fn parse(arguments: &[OsString]) -> Option<(Policy, &[OsString])> {
    let policy = serde_json::from_str(arguments.first()?.to_str()?).ok()?;
    let words = arguments.get(2..).filter(|words| !words.is_empty())?;
    Some((policy, words))
}

fn tell(policy: &Policy, report: &Report) -> std::io::Result<()> {
    let text = serde_json::to_vec(report)?;
    std::fs::write(&policy.report, text)
}

fn supervise(policy: &Policy, arguments: &[OsString], words: &[OsString]) -> Report {
    let not_started = |error: &dyn std::fmt::Display| Report::NotStarted(error.to_string());
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        return not_started(&error);
    }
    let mut command = match policy.confine {
        // The path by which a running program always finds itself, also when its file was replaced.
        true => Command::new("/proc/self/exe"),
        false => Command::new(&words[0]),
    };
    match policy.confine {
        true => command.arg(INNER_VERB).args(arguments),
        false => command.args(&words[1..]),
    };
    let child = match command.stdin(Stdio::null()).spawn() {
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
        let _ = tell.send(News::Alone);
    });
    let mut count_at = Instant::now() + COUNT;
    let report = loop {
        match news.recv_timeout(count_at.saturating_duration_since(Instant::now())) {
            Ok(News::Over(id, code)) if id == child => break started(policy, code),
            Ok(News::Over(..)) => {}
            Ok(News::Alone) | Err(RecvTimeoutError::Disconnected) => break Report::Exit(128 + 9),
            Err(RecvTimeoutError::Timeout) if descendants().len() > policy.processes => break Report::Processes,
            Err(RecvTimeoutError::Timeout) => count_at = Instant::now() + COUNT,
        }
    };
    end_all();
    report
}

/// Returns what the inner child has told if it did not become the command.
fn started(policy: &Policy, code: i32) -> Report {
    let told = (code == i32::from(NOT_STARTED)).then(|| super::read_report(&policy.report)).flatten();
    told.unwrap_or(Report::Exit(code))
}

/// Waits for children, own ones and those that fell to us, as long as there are any.
fn reap(tell: &Sender<News>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((id, status))) => {
                if tell.send(News::Over(id, code(status))).is_err() {
                    return;
                }
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Returns the exit code as shells have it.
fn code(status: WaitStatus) -> i32 {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// Ends everything that came of the command, also what went into a session of its own.
fn end_all() {
    for _ in 0..500 {
        let left = descendants();
        if left.is_empty() {
            return;
        }
        for id in left {
            // One that is gone meanwhile is what we want.
            let _ = rustix::process::kill_process(id, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns all processes below this one that are not over.
fn descendants() -> Vec<Pid> {
    let mut all: Vec<(i32, i32)> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // `id (name) state parent …`, where the name may hold anything.
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        let state = fields.next();
        if let Some(parent) = fields.next().and_then(|parent| parent.parse().ok())
            && state != Some("Z")
        {
            all.push((id, parent));
        }
    }
    let mut below = vec![rustix::process::getpid().as_raw_nonzero().get()];
    let mut at = 0;
    while at < below.len() {
        let parent = below[at];
        below.extend(all.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        at += 1;
    }
    below.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

/// Puts the sandbox on and becomes the command. Returns only if that does not work.
pub fn become_command(arguments: &[OsString]) -> ExitCode {
    let Some((policy, words)) = parse(arguments) else { return ExitCode::FAILURE };
    // Opened now, because it is out of reach afterwards; the command does not inherit it.
    let Ok(told) = std::fs::File::create(&policy.report) else { return ExitCode::FAILURE };
    let report = match limit(&policy).and_then(|()| confine::put_on(&policy)) {
        Err(why) => Report::NoSandbox(why),
        Ok(()) => Report::NotStarted(Command::new(&words[0]).args(&words[1..]).exec().to_string()),
    };
    // Without the report it is told that the command ended with this code.
    let _ = serde_json::to_writer(told, &report);
    ExitCode::from(NOT_STARTED)
}

fn limit(policy: &Policy) -> Result<(), String> {
    let set = |resource, most: u64| {
        let most = Some(most);
        rustix::process::setrlimit(resource, Rlimit { current: most, maximum: most }).map_err(|error| error.to_string())
    };
    set(Resource::Core, 0)?;
    set(Resource::Fsize, policy.file)
}
