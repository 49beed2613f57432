//! Commands in worktrees, which run what a model has written: each in a sandbox of its own, with limits.
//!
//! - [`Commands::run`] starts this same program again as a helper, collects what the command writes, and ends it
//!   when its time is over;
//! - `policy` says what a command may touch, and `environment` what it is told: of the user's `places`, and by `copies`
//!   of configuration without keys;
//! - `together` is what all commands of a run use;
//! - `helper` is that other process: it outlives nothing that it started, and nothing that it started outlives it. That is
//!   made sure of by a `namespace`, a `cgroup`, or by the process that all falls to; `oversee` watches what is used;
//! - `confine` is where the helper's child gives up its rights, just before it becomes the command, and `calls` the system
//!   calls that it is refused.

mod syscall_filter;
mod cgroup;
mod confine;
mod copies;
mod environment;
pub(crate) mod helper;
mod namespace;
mod output;
mod oversee;
mod protected_places;
mod policy;
mod processes;
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
use crate::host::{path, sweep};
use crate::model::command::{
    CleanupMethod, CommandLimits, CommandLine, CommandOutcome, ExecCommand, Grants, TerminationReason,
};
use crate::model::redact::Redactor;
use crate::model::text::excerpt;
use output::Output;
use policy::Policy;
pub use policy::with_defaults;
use protected_places::ProtectedPlaces;
pub use usage::SharedUsage;

/// The most bytes that a command may write; then it is ended.
const MOST_OUTPUT: usize = 8 << 20;
/// How many bytes of a command's output a flow gets unless it asks for more; the rest is in a file.
const SHOWN_OUTPUT: usize = 24 << 10;
/// How long the helper may take to end everything, before it is ended itself.
const GRACE: Duration = Duration::from_secs(6);
/// How the private folder of a command is called, before what tells it from others.
const PRIVATE: &str = "nietz-command-";

/// Runs the commands of one run.
pub struct Commands {
    /// This program, which can be started as the helper.
    pub helper: PathBuf,
    pub environment: BTreeMap<String, String>,
    pub grants: Grants,
    /// The most that a command may use, and all of them.
    pub limits: CommandLimits,
    /// What all of them use.
    pub usage: SharedUsage,
    /// What makes sure of the end, if one is named.
    pub ends: Option<CleanupMethod>,
    /// What the user lets all commands read besides.
    pub read: Vec<PathBuf>,
    /// Folders of the user's that no command may read whole.
    pub protected: Vec<PathBuf>,
    /// The user's checkout, which worktrees are made of.
    pub workspace: PathBuf,
    /// The folder for outputs that are too long for a flow, and how it is called in outcomes.
    pub outputs: PathBuf,
    pub outputs_shown: String,
    pub redactor: Redactor,
    /// Whether the user was told of what the place of commands does not have.
    pub remarked: Cell<bool>,
}

/// What a checkout often has, git ignores, and programs miss without a word that tells why.
const OFTEN_IGNORED: &[&str] = &[".env", ".env.local", ".envrc", ".venv", "venv", "node_modules", ".tox", "vendor"];

/// What programs say where something is not there or refused.
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

/// What the helper tells when it is over, in a file: the command has both outputs for itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Report {
    /// The command ended, with this exit code.
    Exit(i32),
    /// It had more processes than it may.
    Processes,
    /// It took more memory than it may.
    Memory,
    /// It wrote more than it may.
    Written,
    /// Something that it started could not be ended.
    Left,
    /// It could not be started.
    NotStarted(String),
    /// The sandbox could not be made.
    NoSandbox(String),
}

impl Commands {
    /// Runs a command in a folder. `alive` is called whenever it writes something.
    pub async fn run(
        &self,
        command: &ExecCommand,
        folder: &Path,
        name: &str,
        alive: &dyn Fn(),
    ) -> Result<CommandOutcome> {
        let private = PrivateFolder::make()?;
        let kept = self.protected_places();
        let mut policy = Policy::new(self, &kept, folder, &private.0)?;
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
        let (output, whole) = output.redacted_excerpt(command.output.unwrap_or(SHOWN_OUTPUT), &self.redactor);
        let file = whole.map(|text| self.keep(name, &text)).transpose()?;
        Ok(CommandOutcome { over, exit, output, file })
    }

    /// Returns what the user is to know of a command that may have failed for want of what its folder does not have. Said
    /// once: the next ones fail in the same way.
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

    /// Returns the folders of `PATH` that commands do not get, because they would show too much.
    pub fn hidden_of_path(&self) -> Vec<PathBuf> {
        let kept = self.protected_places();
        let there = path::folders(&self.environment).into_iter().filter(|folder| folder.is_dir());
        there.filter(|folder| kept.resolve_visible(folder).is_none()).collect()
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
        helper.args([helper::VERB, &policy.text()?, "--"]).args(words).current_dir(&policy.folder);
        helper.env_clear().envs(environment::of(&self.environment, kept, &policy.private.join("tmp"), &self.grants));
        let both = writer.try_clone().map_err(|error| internal(&error))?;
        helper.stdin(Stdio::piped()).stdout(both).stderr(writer).process_group(0);
        let mut child = helper.spawn().map_err(|error| not_started(&command.run, &error.to_string()))?;
        Ok(Helper { lifeline: child.stdin.take(), child })
    }

    /// Collects output until the command is over; tells why it has to be ended, if it has to be.
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
        let mut heard = Instant::now();
        let mut buffer = vec![0; 64 << 10];
        let mut open = true;
        let helper = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        let member = helper.map(|helper| self.usage.join(helper));
        let mut look = tokio::time::interval(usage::LOOK);
        loop {
            let silent = idle.map(|idle| heard + idle);
            tokio::select! {
                biased;
                _ = child.wait() => return None,
                read = source.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => {
                        heard = Instant::now();
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

    /// Writes a long output to its file, and returns how that is called.
    fn keep(&self, name: &str, text: &str) -> Result<String> {
        std::fs::create_dir_all(&self.outputs).map_err(|error| Failure::io(&self.outputs, "create", &error))?;
        let file = format!("{name}.txt");
        let path = self.outputs.join(&file);
        disk::write(&path, text.as_bytes())?;
        Ok(format!("{}/{file}", self.outputs_shown))
    }
}

/// Reads what is still in the pipe. All writers are gone, but for one that got away: it is not waited for.
async fn drain(source: &mut pipe::Receiver, output: &mut Output) {
    let mut buffer = vec![0; 64 << 10];
    let reading = async {
        while let Ok(count) = source.read(&mut buffer).await {
            if count == 0 || !output.push(&buffer[..count]) {
                break;
            }
        }
    };
    // What comes later than this belongs to nobody.
    let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
}

/// The helper of one command. When this is dropped, also by one who gives up waiting, everything that the command
/// started is over: whatever comes next in that worktree is alone in it.
struct Helper {
    child: Child,
    /// The helper ends everything as soon as this end of the pipe is gone, so also when this process is killed. It is
    /// not killed itself, or nobody would end the rest.
    lifeline: Option<ChildStdin>,
}

impl Drop for Helper {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let until = std::time::Instant::now() + GRACE;
        // It takes a few milliseconds; there is nothing to wait for once it is over.
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
            // A group that is gone already is what we want.
            let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
    }
}

/// The folder of one command: with a temporary folder of its own, and what the helper tells. Nobody else may enter it.
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    fn make() -> Result<PrivateFolder> {
        let folder = tempfile::Builder::new()
            .prefix(PRIVATE)
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .tempdir()
            .map_err(|error| internal(&error))?;
        // It is removed by way of `sweep`, whatever the command has made of it.
        let folder = folder.keep();
        let private = PrivateFolder(folder.canonicalize().map_err(|error| Failure::io(&folder, "use", &error))?);
        let temporary = private.0.join("tmp");
        std::fs::create_dir(&temporary).map_err(|error| Failure::io(&temporary, "create", &error))?;
        Ok(private)
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // What cannot be removed is not the flow's fault.
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
