//! Runs commands in worktrees. They execute code that a model has written, so each has a sandbox of its own, with limits.
//!
//! - [`Commands::run`] starts this same program again as a helper, collects the command's output, and ends the command
//!   when its time is over;
//! - `policy` says what a command may touch, apart from the user's `protected_places`; `environment` makes its variables,
//!   and `copies` its configuration without keys; `key_files` are those with keys that the user gives to one command;
//! - `usage` counts what all commands of a run use together; `service` starts programs that answer while a run goes on;
//! - `helper` is that other process. No process that it starts outlives it: a `namespace`, a `cgroup`, or the helper as
//!   subreaper makes sure of that; `oversee` watches the limits, with `processes`;
//! - in `confine`, the helper's child gives up its rights, just before it becomes the command; `syscall_filter` refuses it
//!   system calls.

mod syscall_filter;
mod cgroup;
mod confine;
mod copies;
mod environment;
pub(crate) mod helper;
pub(crate) mod key_files;
mod mount_calls;
mod mounts;
mod namespace;
mod output;
mod oversee;
mod protected_places;
mod policy;
mod processes;
mod service;
mod usage;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdin};
use tokio::time::Instant;

use crate::disk;
use crate::error::{Code, Failure, Result};
use crate::host::place::CommandPlace;
use crate::host::{path, sweep};
use crate::model::command::{
    CleanupMethod, CommandLimits, CommandLine, CommandOutcome, ExecCommand, Grants, TerminationReason,
};
use crate::model::redact::Redactor;
use crate::model::text::excerpt;
use output::Output;
use policy::Policy;
pub(crate) use policy::with_defaults;
use protected_places::ProtectedPlaces;
pub(in crate::host) use service::{Service, ServiceTerms};
pub(crate) use usage::SharedUsage;

/// The most bytes of output; a command that writes more is ended.
const MOST_OUTPUT: usize = 8 << 20;
/// How many bytes of a command's output a flow gets unless it asks for more; a file holds all of a longer output.
const SHOWN_OUTPUT: usize = 24 << 10;
/// How long the helper may take to end everything before it is killed.
const GRACE: Duration = Duration::from_secs(6);
/// The prefix of the name of a command's private folder.
const PRIVATE: &str = "nietz-command-";

/// Runs the commands of one run.
pub struct Commands {
    /// This program, which can be started as the helper.
    pub helper: PathBuf,
    pub environment: BTreeMap<String, String>,
    pub grants: Grants,
    /// Limits for each command, and for all commands together.
    pub limits: CommandLimits,
    /// The usage of all commands together.
    pub usage: SharedUsage,
    /// The method that ends left-over processes, if the user names one.
    pub ends: Option<CleanupMethod>,
    /// Further places that the user lets all commands read.
    pub read: Vec<PathBuf>,
    /// Folders of the user that no command may read as a whole.
    pub protected: Vec<PathBuf>,
    /// The user's checkout, of which the worktrees are made.
    pub workspace: PathBuf,
    /// The folder for outputs that are too long for a flow; `outputs_shown` is its name in outcomes.
    pub outputs: PathBuf,
    pub outputs_shown: String,
    pub redactor: Redactor,
    /// Whether [`Commands::remark`] has told the user what a worktree lacks.
    pub remarked: Cell<bool>,
}

/// Names that a checkout often has, git ignores, and programs need without saying so.
const OFTEN_IGNORED: &[&str] = &[".env", ".env.local", ".envrc", ".venv", "venv", "node_modules", ".tox", "vendor"];

/// Messages of programs that miss something or are refused something.
const MISSING: &[&str] = &[
    "Permission denied",
    "Operation not permitted",
    "Read-only file system",
    "Function not implemented",
    "out of pty devices",
    "not a git repository",
    "No such file or directory",
    "No module named",
    "Cannot find module",
    "Temporary failure in name resolution",
    "Could not resolve host",
    "Network is unreachable",
    "EAI_AGAIN",
    "EACCES",
    "EPERM",
    "EROFS",
];

/// The report that the helper writes to a file at its end: standard output and error belong to the command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Report {
    /// The command ended, with this exit code.
    Exit(i32),
    /// The command had too many processes.
    Processes,
    /// The command took too much memory.
    Memory,
    /// The command wrote too much.
    Written,
    /// A process that the command started could not be ended.
    Left,
    /// The command could not be started.
    NotStarted(String),
    /// The sandbox could not be made.
    NoSandbox(String),
}

impl Commands {
    /// Runs a command in its place. `alive` is called whenever the command writes something.
    ///
    /// # Errors
    ///
    /// `command-failed` if the command cannot be started or left processes that could not be ended, `sandbox-missing` if
    /// there is no sandbox. An exit code other than 0 is no error.
    pub(crate) async fn run(
        &self,
        command: &ExecCommand,
        place: &CommandPlace,
        name: &str,
        alive: &dyn Fn(),
    ) -> Result<CommandOutcome> {
        let private = PrivateFolder::make()?;
        let kept = self.protected_places();
        let mut policy = Policy::new(self, &kept, place, command, &private.0)?;
        let (written, memory) = self.usage.remaining(self.limits)?;
        policy.written = policy.written.min(written);
        policy.memory = policy.memory.min(memory);
        let before = self.usage.written();
        let report = policy.report.clone();
        let (reader, writer) = std::io::pipe().map_err(|error| internal(&error))?;
        let mut helper = self.start(command, &kept, &policy, writer)?;
        let mut source = pipe::Receiver::from_owned_fd(reader.into()).map_err(|error| internal(&error))?;
        let mut output = Output::new(MOST_OUTPUT);
        let ended = self.watch(command, &mut helper.child, &mut source, &mut output, alive).await;
        drop(helper);
        drain(&mut source, &mut output).await;
        let (over, exit) = match (ended, read_report(&report)) {
            (Some(over), _) => (over, 128 + 9),
            (None, Some(Report::Exit(code))) => (TerminationReason::Exit, code),
            (None, Some(Report::Processes)) => (TerminationReason::Processes, 128 + 9),
            (None, Some(Report::Memory)) => (TerminationReason::Memory, 128 + 9),
            (None, Some(Report::Written)) => (TerminationReason::Written, 128 + 9),
            (None, Some(Report::Left)) => return Err(leftover_failure()),
            (None, Some(Report::NotStarted(why))) => return Err(not_started(&command.run, &why)),
            (None, Some(Report::NoSandbox(why))) => return Err(no_sandbox(&why)),
            (None, None) => {
                return Err(Failure::new(Code::CommandFailed, "the helper that runs commands died")
                    .hint("the machine may be out of memory; run it again"));
            }
        };
        if over == TerminationReason::Written {
            self.usage.count(policy.written.saturating_sub(self.usage.written().saturating_sub(before)));
        }
        let (output, complete) = output.redacted_excerpt(command.output.unwrap_or(SHOWN_OUTPUT), &self.redactor);
        let file = complete.map(|text| self.keep(name, &text)).transpose()?;
        Ok(CommandOutcome { over, exit, output, file })
    }

    /// Returns a remark for the user if a command may have failed because a worktree lacks files. Only once: further
    /// commands fail in the same way.
    pub fn remark(&self, command: &ExecCommand, folder: &Path, ran: &CommandOutcome) -> Option<String> {
        let left =
            OFTEN_IGNORED.iter().filter(|name| self.workspace.join(name).exists() && !folder.join(name).exists());
        let left: Vec<String> = left.map(|name| format!("`{name}`")).collect();
        let missing = matches!(ran.exit, 126 | 127) || MISSING.iter().any(|sign| ran.output.contains(sign));
        if ran.exit == 0 || self.grants.no_sandbox || !missing && left.is_empty() || self.remarked.replace(true) {
            return None;
        }
        let such_as = if left.is_empty() { String::new() } else { format!(" (here: {})", left.join(", ")) };
        Some(format!(
            "`{}` ended with {}. If it works for you, its place may be why: a worktree has nothing that git ignores{such_as}, \
             {}and of your home only what `PATH` and toolchains need: nietz explain command-failed",
            excerpt(&command.run.display_text()),
            ran.exit,
            if self.grants.net { "" } else { "no network, " }
        ))
    }

    /// Returns the folders of `PATH` that are hidden from commands, because they would show too much.
    pub fn hidden_of_path(&self) -> Vec<PathBuf> {
        let kept = self.protected_places();
        let existing = path::folders(&self.environment).into_iter().filter(|folder| folder.is_dir());
        existing.filter(|folder| kept.resolve_visible(folder).is_none()).collect()
    }

    fn protected_places(&self) -> ProtectedPlaces {
        let home = self.environment.get("HOME").map(Path::new);
        ProtectedPlaces::new(home, self.protected.iter().map(PathBuf::as_path))
    }

    fn start(
        &self,
        command: &ExecCommand,
        kept: &ProtectedPlaces,
        policy: &Policy,
        writer: std::io::PipeWriter,
    ) -> Result<Helper> {
        let words: Vec<String> = match &command.run {
            CommandLine::Program(words) => words.clone(),
            CommandLine::Shell(text) => vec!["sh".to_owned(), "-c".to_owned(), text.clone()],
        };
        let mut helper = tokio::process::Command::new(&self.helper);
        helper.args([helper::VERB, &policy.text()?, "--"]).args(words).current_dir(&policy.start);
        helper.env_clear().envs(environment::of(&self.environment, kept, &policy.private.join("tmp"), &self.grants));
        let both = writer.try_clone().map_err(|error| internal(&error))?;
        helper.stdin(Stdio::piped()).stdout(both).stderr(writer).process_group(0);
        let mut child = helper.spawn().map_err(|error| not_started(&command.run, &error.to_string()))?;
        Ok(Helper { lifeline: child.stdin.take(), child })
    }

    /// Collects output until the command is over. Returns why the command has to be ended, if it has to be.
    async fn watch(
        &self,
        command: &ExecCommand,
        child: &mut Child,
        source: &mut pipe::Receiver,
        output: &mut Output,
        alive: &dyn Fn(),
    ) -> Option<TerminationReason> {
        let until = Instant::now() + Duration::from_secs_f64(command.seconds);
        let idle = command.idle.map(Duration::from_secs_f64);
        let mut last_output = Instant::now();
        let mut buffer = vec![0; 64 << 10];
        let mut open = true;
        let helper = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        let member = helper.map(|helper| self.usage.join(helper));
        let mut look = tokio::time::interval(usage::LOOK);
        loop {
            let silent = idle.map(|idle| last_output + idle);
            tokio::select! {
                biased;
                _ = child.wait() => return None,
                read = source.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => {
                        last_output = Instant::now();
                        alive();
                        if !output.push(&buffer[..count]) {
                            return Some(TerminationReason::Output);
                        }
                    }
                },
                () = tokio::time::sleep_until(silent.unwrap_or(until)), if silent.is_some() => return Some(TerminationReason::Idle),
                () = tokio::time::sleep_until(until) => return Some(TerminationReason::Timeout),
                _ = look.tick() => {
                    if let Some(over) = member.as_ref().and_then(|member| member.exceeded_limit(self.limits)) {
                        return Some(over);
                    }
                }
            }
        }
    }

    /// Writes a long output to a file, and returns the file's name for outcomes.
    fn keep(&self, name: &str, text: &str) -> Result<String> {
        std::fs::create_dir_all(&self.outputs).map_err(|error| Failure::io(&self.outputs, "create", &error))?;
        let file = format!("{name}.txt");
        let path = self.outputs.join(&file);
        disk::write(&path, text.as_bytes())?;
        Ok(format!("{}/{file}", self.outputs_shown))
    }
}

/// Reads the rest of the pipe. All writers have ended, unless a process escaped: that one is not waited for.
async fn drain(source: &mut pipe::Receiver, output: &mut Output) {
    let mut buffer = vec![0; 64 << 10];
    let reading = async {
        while let Ok(count) = source.read(&mut buffer).await {
            if count == 0 || !output.push(&buffer[..count]) {
                break;
            }
        }
    };
    // Later output comes from no process of the command.
    let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
}

/// The helper of one command. Dropping it, also when the caller gives up waiting, ends every process of the command, so
/// that the next request is alone in that worktree.
struct Helper {
    child: Child,
    /// The helper ends everything when this end of the pipe closes, so also when nietz is killed. The helper itself is
    /// not killed first, because nobody would end the other processes.
    lifeline: Option<ChildStdin>,
}

impl Drop for Helper {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let until = std::time::Instant::now() + GRACE;
        // This usually takes a few milliseconds.
        while let Ok(None) = self.child.try_wait() {
            if std::time::Instant::now() > until {
                return self.end_group();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Helper {
    fn end_group(&self) {
        let id = self.child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(id) = id {
            // An error means that the group has ended already.
            let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
    }
}

/// The private folder of one command, with its temporary folder and the helper's report. Other users may not enter it.
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    fn make() -> Result<PrivateFolder> {
        let folder = tempfile::Builder::new()
            .prefix(PRIVATE)
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .tempdir()
            .map_err(|error| internal(&error))?;
        // `sweep` removes the folder later, whatever the command has done to its permissions.
        let folder = folder.keep();
        let private = PrivateFolder(folder.canonicalize().map_err(|error| Failure::io(&folder, "use", &error))?);
        let temporary = private.0.join("tmp");
        std::fs::create_dir(&temporary).map_err(|error| Failure::io(&temporary, "create", &error))?;
        Ok(private)
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // The command is over; a folder that cannot be removed is no failure of the flow.
        let _ = sweep::remove_folder(&self.0);
    }
}

fn read_report(path: &Path) -> Option<Report> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn internal(error: &std::io::Error) -> Failure {
    Failure::new(Code::CommandFailed, format!("a command cannot be run here: {error}"))
}

fn not_started(run: &CommandLine, why: &str) -> Failure {
    let shown = excerpt(&run.display_text());
    Failure::new(Code::CommandFailed, format!("`{shown}` cannot be started: {why}"))
        .hint("is it installed, and in a folder of PATH that the sandbox shows?")
}

fn leftover_failure() -> Failure {
    Failure::new(Code::CommandFailed, "something that the command started could not be ended")
        .hint("`nietz doctor` says what ends processes here; a container or a user namespace makes it sure")
}

fn no_sandbox(why: &str) -> Failure {
    Failure::new(Code::SandboxMissing, format!("commands cannot be kept in a sandbox here: {why}"))
        .hint("they run what a model has written; if you accept that it can touch all that you can: --no-sandbox")
}
