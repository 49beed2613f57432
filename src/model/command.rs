//! A command that a flow wants to run, and which commands it may.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::text::line;

/// One command in one worktree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecCommand {
    pub tree: String,
    pub run: CommandLine,
    /// After so many seconds it is ended, with everything that it started.
    pub seconds: f64,
    /// It is also ended when it has written nothing for so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<f64>,
    /// Whether it may be run again when nobody knows whether it ran to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
    /// How many bytes of its output the flow gets, where it asks for a number of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<usize>,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandLine {
    /// A program and its arguments.
    Program(Vec<String>),
    /// A text for the shell.
    Shell(String),
}

impl CommandLine {
    /// Returns the command as a person would write it.
    pub fn display_text(&self) -> String {
        match self {
            CommandLine::Program(words) => words.join(" "),
            CommandLine::Shell(text) => text.clone(),
        }
    }

    /// Tells whether one of these grants allows it: the name of a program allows that program with any arguments,
    /// any text allows just that text for the shell.
    pub fn is_granted(&self, grants: &[String]) -> bool {
        match self {
            CommandLine::Program(words) => words.first().is_some_and(|program| grants.contains(program)),
            CommandLine::Shell(text) => grants.contains(text),
        }
    }
}

/// What the user grants, besides what the manifest declares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// Commands may use the network.
    pub net: bool,
    /// Commands run without a sandbox.
    pub no_sandbox: bool,
    /// Files and folders outside of the workspace that the flow may read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
}

impl Grants {
    pub fn is_none(&self) -> bool {
        *self == Grants::default()
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminationReason {
    /// By itself.
    Exit,
    /// It took longer than it might.
    Timeout,
    /// It wrote nothing for too long.
    Idle,
    /// It wrote too much.
    Output,
    /// It started too many processes.
    Processes,
    /// It took too much memory.
    Memory,
    /// It wrote too much to disks.
    Written,
}

/// What makes sure that all is over which a command started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CleanupMethod {
    /// A namespace of processes, which the kernel ends with its first one.
    Namespace,
    /// A control group, which the kernel ends at once.
    Cgroup,
    /// The process that orphans fall to, which ends each until none is left.
    Subreaper,
}

impl CleanupMethod {
    /// All there are, the surest first.
    pub const ALL: [CleanupMethod; 3] = [CleanupMethod::Namespace, CleanupMethod::Cgroup, CleanupMethod::Subreaper];

    pub fn name(self) -> &'static str {
        match self {
            CleanupMethod::Namespace => "namespace",
            CleanupMethod::Cgroup => "cgroup",
            CleanupMethod::Subreaper => "subreaper",
        }
    }
}

/// The most that a command may use, together with all that it starts, and that all commands of a run may. What is absent has the host's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CommandLimits {
    /// Processes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Megabytes of memory that are resident at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub megabytes: Option<u64>,
    /// Megabytes written to disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_megabytes: Option<u64>,
    /// Files that one process has open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Megabytes of memory of all commands of a run that run side by side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_megabytes: Option<u64>,
    /// Megabytes that all commands of a run write to disks, as long as its process lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_written_megabytes: Option<u64>,
}

impl CommandLimits {
    /// Returns the lower one of each.
    #[must_use]
    pub fn tightened(self, other: CommandLimits) -> CommandLimits {
        let lower = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        CommandLimits {
            processes: lower(self.processes, other.processes),
            megabytes: lower(self.megabytes, other.megabytes),
            written_megabytes: lower(self.written_megabytes, other.written_megabytes),
            open_files: lower(self.open_files, other.open_files),
            run_megabytes: lower(self.run_megabytes, other.run_megabytes),
            run_written_megabytes: lower(self.run_written_megabytes, other.run_written_megabytes),
        }
    }

    /// Says what is wrong with limits that somebody wrote.
    pub fn problem(&self) -> Option<&'static str> {
        let of_each = [self.processes, self.megabytes, self.written_megabytes, self.open_files];
        let all = [of_each.as_slice(), &[self.run_megabytes, self.run_written_megabytes]].concat();
        all.contains(&Some(0)).then_some("each limit must be 1 or more")
    }
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandOutcome {
    pub over: TerminationReason,
    /// The exit code; 128 and the signal's number where a signal ended it, as shells have it.
    pub exit: i32,
    /// What it wrote to both outputs, in the order in which it came: the beginning and the end of it if it is long.
    pub output: String,
    /// The file with the whole output, where `output` is not the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Returns the grants of a manifest with the values of params in place of `{param}`.
pub fn grants(declared: &[String], params: &Value) -> Vec<String> {
    let mut grants = Vec::new();
    for grant in declared {
        match placeholder(grant).map(|name| &params[name]) {
            Some(Value::Array(values)) => grants.extend(values.iter().filter_map(Value::as_str).map(str::to_owned)),
            Some(Value::String(value)) => grants.push(value.clone()),
            Some(_) => {}
            None => grants.push(grant.clone()),
        }
    }
    grants
}

/// Says which commands may be run, and how.
pub fn describe_commands(commands: &[String], grants: &Grants) -> String {
    let names: Vec<String> = commands.iter().map(|grant| format!("`{}`", line(grant))).collect();
    let how = match (grants.no_sandbox, grants.net) {
        (true, _) => "without a sandbox: they can touch all that you can",
        (false, true) => "in a sandbox, with the network",
        (false, false) => "in a sandbox, without the network",
    };
    format!("{}; {how}", names.join(", "))
}

/// Returns the param that a grant names, if it is one: `validate` of `{validate}`.
pub fn placeholder(grant: &str) -> Option<&str> {
    grant.strip_prefix('{')?.strip_suffix('}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_user_gave_is_granted_and_nothing_else() {
        let declared = ["make".to_owned(), "{run}".to_owned(), "{check}".to_owned(), "{absent}".to_owned()];
        let params = json!({ "run": "cargo", "check": ["npm test", "true"], "absent": null });
        let grants = grants(&declared, &params);
        assert_eq!(grants, ["make", "cargo", "npm test", "true"]);
        let program = |words: &[&str]| CommandLine::Program(words.iter().map(|word| (*word).to_owned()).collect());
        for (run, granted) in [
            (program(&["cargo", "test", "--", "; rm"]), true),
            (program(&["npm", "test"]), false),
            (program(&["npm test"]), true),
            (program(&[]), false),
            (CommandLine::Shell("npm test".to_owned()), true),
            (CommandLine::Shell("npm test; rm -r x".to_owned()), false),
            (CommandLine::Shell("cargo test".to_owned()), false),
        ] {
            assert_eq!(run.is_granted(&grants), granted, "{run:?}");
        }
    }
}
