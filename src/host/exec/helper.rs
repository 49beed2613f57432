//! The helper: this program started again, to run one command and to end all that comes of it.
//!
//! It is a process of its own because a sandbox is put on for good, and because it is the parent to which everything
//! falls that the command leaves behind. It starts its own program once more, as the child that puts the sandbox on
//! and becomes the command: so the command cannot signal the helper. Its standard input is the lifeline: when that
//! ends, the one who asked is gone or has enough, and everything is ended.
//!
//! What makes sure of the end is the first of these that the system has: a namespace of processes, whose first process
//! does the helper's work then; a control group; or the helper itself, as the one whom orphans fall to.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::WaitOptions;

use super::cgroup::{self, Cgroup};
pub use super::oversee::INNER_VERB;
use super::oversee::{CommandEnd, NOT_STARTED, oversee};
use super::policy::Policy;
use super::{Report, confine, namespace};
use crate::host::sweep;
use crate::model::command::CleanupMethod;

/// The hidden verb of the command line that starts a helper.
pub const VERB: &str = "__command";

/// What the first process of a namespace exits with when the lifeline has ended.
const LIFELINE_ENDED: u8 = 3;

/// Runs a command: `policy -- program arguments…`.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let Some((mut policy, words)) = parse(arguments) else { return ExitCode::FAILURE };
    let alone = match supervise(&mut policy, words) {
        Ok(alone) => alone,
        Err(report) => {
            // Nobody is left to be told when this fails.
            let _ = tell(&policy, &report);
            false
        }
    };
    if alone {
        // Whoever asked may be gone, and nobody else would clear up.
        let _ = sweep::remove_folder(&policy.private);
    }
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

/// Runs the command to its end, and ends all that came of it. Tells whether the lifeline has ended before.
fn supervise(policy: &mut Policy, words: &[OsString]) -> Result<bool, Report> {
    let no = |error: &dyn std::fmt::Display| Report::NoSandbox(error.to_string());
    confine::close_descriptors().map_err(|error| no(&error))?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(|error| no(&error))?;
    let mut missing = String::new();
    // Without a sandbox, a command is to find the system as it is.
    let open = |ends: &CleanupMethod| policy.confine || *ends != CleanupMethod::Namespace;
    let wanted = policy.ends.filter(open);
    let ways: Vec<CleanupMethod> =
        CleanupMethod::ALL.into_iter().filter(|ends| wanted.map_or_else(|| open(ends), |it| it == *ends)).collect();
    for ends in ways {
        match supervise_by(ends, policy, words) {
            Ok(done) => return done,
            Err(why) => missing = why,
        }
    }
    Err(Report::NoSandbox(format!("what ends left-over processes is not to be had: {missing}")))
}

/// Does it in one way; the outer error says why that way is not open.
fn supervise_by(ends: CleanupMethod, policy: &mut Policy, words: &[OsString]) -> Result<Result<bool, Report>, String> {
    let done = match ends {
        CleanupMethod::Namespace => {
            policy.namespace = true;
            let first = namespace::start(policy, || match oversee(policy, words, None) {
                CommandEnd { lifeline_ended: true, .. } => LIFELINE_ENDED,
                CommandEnd { report, .. } => u8::from(tell(policy, &report).is_err()),
            });
            let first = first.inspect_err(|_| policy.namespace = false)?;
            let status =
                rustix::process::waitpid(Some(first), WaitOptions::empty()).map_err(|error| error.to_string())?;
            return Ok(Ok(status.is_some_and(|(_, status)| status.exit_status() == Some(i32::from(LIFELINE_ENDED)))));
        }
        CleanupMethod::Cgroup => {
            let group = Cgroup::make(policy.tasks())?;
            policy.cgroup = Some(group.entrance());
            oversee(policy, words, Some(&group))
        }
        CleanupMethod::Subreaper => oversee(policy, words, None),
    };
    if done.lifeline_ended {
        return Ok(Ok(true));
    }
    let _ = tell(policy, &done.report);
    Ok(Ok(false))
}

/// Puts the sandbox on and becomes the command. Returns only if that does not work.
pub fn become_command(arguments: &[OsString]) -> ExitCode {
    let Some((policy, words)) = parse(arguments) else { return ExitCode::FAILURE };
    // Opened now, because it is out of reach afterwards; the command does not inherit it.
    let Ok(told) = std::fs::File::create(&policy.report) else { return ExitCode::FAILURE };
    let report = match enter_sandbox(&policy) {
        Err(why) => Report::NoSandbox(why),
        Ok(()) => Report::NotStarted(Command::new(&words[0]).args(&words[1..]).exec().to_string()),
    };
    // Without the report it is told that the command ended with this code.
    let _ = serde_json::to_writer(told, &report);
    ExitCode::from(NOT_STARTED)
}

fn enter_sandbox(policy: &Policy) -> Result<(), String> {
    if let Some(entrance) = &policy.cgroup {
        cgroup::join(entrance)?;
    }
    confine::leave()?;
    confine::limit(policy)?;
    if policy.confine { confine::apply_sandbox(policy) } else { Ok(()) }
}
