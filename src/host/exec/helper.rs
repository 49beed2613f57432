//! The helper: this program started again, to run one command and to end all processes that the command starts.
//!
//! The helper is a process of its own because a sandbox cannot be left again, and because the helper becomes the parent
//! of orphaned processes of the command. It starts its own program once more, as the child that enters the sandbox and
//! becomes the command, so that the command cannot signal the helper. The helper's standard input is the lifeline: when
//! it ends, the caller has exited or given up, and the helper ends everything.
//!
//! The first of these ways that the system supports makes sure that no process is left: a PID namespace, whose first
//! process then does the helper's work; a control group; or the helper itself, as the subreaper of orphans.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::WaitOptions;

use super::cgroup::{self, Cgroup};
pub(crate) use super::oversee::INNER_VERB;
use super::oversee::{CommandEnd, NOT_STARTED, oversee};
use super::policy::Policy;
use super::{Report, confine, namespace};
use crate::host::sweep;
use crate::model::command::CleanupMethod;

/// The hidden verb of the command line that starts a helper.
pub(crate) const VERB: &str = "__command";

/// What the first process of a namespace exits with when the lifeline has ended.
const LIFELINE_ENDED: u8 = 3;

/// Runs a command: `policy -- program arguments…`.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let Some((mut policy, words)) = parse(arguments) else { return ExitCode::FAILURE };
    let lifeline_ended = match supervise(&mut policy, words) {
        Ok(lifeline_ended) => lifeline_ended,
        Err(report) => {
            // If this fails, nobody is left to report the failure to.
            let _ = tell(&policy, &report);
            false
        }
    };
    if lifeline_ended {
        // The caller may have exited, and nobody else would remove the folder.
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

/// Runs the command to its end, and ends all processes that it started. Returns whether the lifeline ended first.
fn supervise(policy: &mut Policy, words: &[OsString]) -> Result<bool, Report> {
    let no = |error: &dyn std::fmt::Display| Report::NoSandbox(error.to_string());
    confine::close_descriptors().map_err(|error| no(&error))?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(|error| no(&error))?;
    let mut missing = String::new();
    // Without a sandbox, a command should see the real system, so a namespace is no option.
    let is_possible = |ends: &CleanupMethod| policy.confine || *ends != CleanupMethod::Namespace;
    let wanted = policy.ends.filter(is_possible);
    let methods: Vec<CleanupMethod> = CleanupMethod::ALL
        .into_iter()
        .filter(|ends| wanted.map_or_else(|| is_possible(ends), |wanted| wanted == *ends))
        .collect();
    for ends in methods {
        match supervise_by(ends, policy, words) {
            Ok(done) => return done,
            Err(why) => missing = why,
        }
    }
    Err(Report::NoSandbox(format!("what ends left-over processes is not to be had: {missing}")))
}

/// Runs the command with one cleanup method. The outer error says why the method is not available.
fn supervise_by(ends: CleanupMethod, policy: &mut Policy, words: &[OsString]) -> Result<Result<bool, Report>, String> {
    let done = match ends {
        CleanupMethod::Namespace => {
            policy.namespace = true;
            let first = namespace::start(policy, |policy| match oversee(policy, words, None) {
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
            oversee_with_links(policy, words, Some(&group))
        }
        CleanupMethod::Subreaper => oversee_with_links(policy, words, None),
    };
    if done.lifeline_ended {
        return Ok(Ok(true));
    }
    let _ = tell(policy, &done.report);
    Ok(Ok(false))
}

/// Runs a command where there are no mounts.
fn oversee_with_links(policy: &Policy, words: &[OsString], group: Option<&Cgroup>) -> CommandEnd {
    if let Err(why) = policy.mounts.link() {
        return CommandEnd { report: Report::NotStarted(why), lifeline_ended: false };
    }
    let end = oversee(policy, words, group);
    policy.mounts.unlink();
    end
}

/// Enters the sandbox and becomes the command. Returns only if that fails.
pub(crate) fn become_command(arguments: &[OsString]) -> ExitCode {
    let Some((policy, words)) = parse(arguments) else { return ExitCode::FAILURE };
    // Opened now, because the sandbox puts the path out of reach; the command does not inherit the descriptor.
    let Ok(report_file) = std::fs::File::create(&policy.report) else { return ExitCode::FAILURE };
    let report = match enter_sandbox(&policy) {
        Err(why) => Report::NoSandbox(why),
        Ok(()) => {
            let mut command = Command::new(&words[0]);
            if policy.namespace {
                command.envs(&policy.variables);
            }
            Report::NotStarted(command.args(&words[1..]).exec().to_string())
        }
    };
    // Without the report, the helper reports that the command exited with this code.
    let _ = serde_json::to_writer(report_file, &report);
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
