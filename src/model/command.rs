//! Commands that a flow wants to run, the grants that allow them, and their limits and outcomes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::text::line;

/// One command in one worktree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecCommand {
    pub tree: String,
    pub run: CommandLine,
    /// After this many seconds the command is ended, with everything that it started.
    pub seconds: f64,
    /// The command is also ended after this many seconds without output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<f64>,
    /// Whether the command may be run again if it is unknown whether it ran to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
    /// How many bytes of output the flow gets, if the flow sets its own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<usize>,
    /// The folders of dependencies that the command finds in its worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<GivenDependencies>,
    /// The folder for builds; without, the command has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builds: Option<BuildFolder>,
    /// Files of the user's home with keys, by their whole paths, which no other command reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
}

/// Folders of dependencies that a command finds in its worktree, at the same paths. It may write there; what it writes is
/// kept apart from them and thrown away, at the latest with the worktree, or where the system can do no better, refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenDependencies {
    /// The worktree that has them; if absent, the user's checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    pub folders: Vec<GivenFolder>,
    /// Whether what the command writes there is kept for those later commands in its worktree that keep it, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
}

/// A folder of dependencies: its path, and the digest by which it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenFolder {
    pub path: String,
    pub digest: String,
    /// What in it leads back to the project by a whole path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub editable: Vec<String>,
}

/// A folder for builds. It belongs to a worktree, is not in it, and is removed with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildFolder {
    /// The worktree that has it; if absent, the command's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Whether what the command builds is kept for later commands, as for code that the user has written. Else the command
    /// begins with what is kept, and what it builds is thrown away.
    #[serde(default)]
    pub keep: bool,
}

/// The command line: what is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandLine {
    /// A program and its arguments.
    Program(Vec<String>),
    /// A command line for the shell.
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

    /// Tells whether one of these grants allows the command: the name of a program allows that program with any arguments;
    /// for the shell, a grant allows only exactly its own text. A grant that ends in ` …` allows a program and arguments that
    /// begin with its words.
    pub fn is_granted(&self, grants: &[String]) -> bool {
        match self {
            CommandLine::Program(words) => grants.iter().any(|grant| match grant.strip_suffix(MORE) {
                Some(beginning) => {
                    let first: Vec<&str> = beginning.split(' ').collect();
                    words.len() >= first.len() && words.iter().zip(&first).all(|(word, first)| word == first)
                }
                None => words.first() == Some(grant),
            }),
            CommandLine::Shell(text) => grants.contains(text),
        }
    }
}

/// What a grant ends in that allows its words with any others behind them.
const MORE: &str = " …";

/// What the user grants beyond what the manifest declares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// Commands may use the network.
    pub net: bool,
    /// Commands run without a sandbox.
    pub no_sandbox: bool,
    /// Files and folders outside the workspace that the flow may read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
}

impl Grants {
    /// Tells whether nothing is granted.
    pub fn is_none(&self) -> bool {
        *self == Grants::default()
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminationReason {
    /// It ended by itself.
    Exit,
    /// It exceeded its time limit.
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

/// How all processes that a command started are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CleanupMethod {
    /// A PID namespace, whose processes the kernel ends together with the first one.
    Namespace,
    /// A control group, whose processes the kernel ends at once.
    Cgroup,
    /// A subreaper, which inherits orphaned processes and ends each until none is left.
    Subreaper,
}

impl CleanupMethod {
    /// All methods, the most reliable first.
    pub const ALL: [CleanupMethod; 3] = [CleanupMethod::Namespace, CleanupMethod::Cgroup, CleanupMethod::Subreaper];

    /// Returns the name that `nietz doctor` tells.
    pub fn name(self) -> &'static str {
        match self {
            CleanupMethod::Namespace => "namespace",
            CleanupMethod::Cgroup => "cgroup",
            CleanupMethod::Subreaper => "subreaper",
        }
    }
}

/// Limits on a command with all processes that it starts, and on all commands of a run together. An absent limit has the
/// host's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CommandLimits {
    /// Processes at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Megabytes of resident memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub megabytes: Option<u64>,
    /// Megabytes written to disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_megabytes: Option<u64>,
    /// Files that one process has open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Megabytes of memory of all commands of a run that run at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_megabytes: Option<u64>,
    /// Megabytes that all commands of a run write to disks during one process of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_written_megabytes: Option<u64>,
}

impl CommandLimits {
    /// Returns the lower limit of each kind.
    #[must_use]
    pub fn tightened(self, right: CommandLimits) -> CommandLimits {
        let lower = |left: Option<u64>, right: Option<u64>| left.into_iter().chain(right).min();
        CommandLimits {
            processes: lower(self.processes, right.processes),
            megabytes: lower(self.megabytes, right.megabytes),
            written_megabytes: lower(self.written_megabytes, right.written_megabytes),
            open_files: lower(self.open_files, right.open_files),
            run_megabytes: lower(self.run_megabytes, right.run_megabytes),
            run_written_megabytes: lower(self.run_written_megabytes, right.run_written_megabytes),
        }
    }

    /// Returns what is wrong with the limits, if anything is.
    pub fn problem(&self) -> Option<&'static str> {
        let of_each = [self.processes, self.megabytes, self.written_megabytes, self.open_files];
        let all = [of_each.as_slice(), &[self.run_megabytes, self.run_written_megabytes]].concat();
        all.contains(&Some(0)).then_some("each limit must be 1 or more")
    }
}

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandOutcome {
    pub over: TerminationReason,
    /// The exit code; 128 plus the signal's number if a signal ended the command, as in shells.
    pub exit: i32,
    /// The text of both outputs, in the order in which it arrived; of a long text, the beginning and the end.
    pub output: String,
    /// The file with the complete output, if `output` is not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Returns the grants of a manifest, with params' values in place of `{param}`; those of `{param} …` that are plain words are
/// granted with any words behind them.
pub fn grants(declared: &[String], params: &Value, sandboxed: bool) -> Vec<String> {
    let mut grants = Vec::new();
    for grant in declared {
        if let Some(program) = in_sandbox_alone(grant) {
            grants.extend(sandboxed.then(|| program.to_owned()));
            continue;
        }
        match placeholder(grant).map(|name| &params[name]) {
            Some(value) if grant.ends_with(MORE) => {
                let texts = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                let plain = texts.iter().filter_map(Value::as_str).filter(|text| is_plain(text));
                grants.extend(plain.map(|text| format!("{text}{MORE}")));
            }
            Some(Value::Array(values)) => grants.extend(values.iter().filter_map(Value::as_str).map(str::to_owned)),
            Some(Value::String(value)) => grants.push(value.clone()),
            Some(_) => {}
            None => grants.push(grant.clone()),
        }
    }
    grants
}

/// Describes which commands may be run, and how. One that may have more words behind it is told once.
pub fn describe_commands(commands: &[String], grants: &Grants) -> String {
    let with_more = |grant: &String| commands.contains(&format!("{grant}{MORE}"));
    let mut names: Vec<String> = Vec::new();
    for grant in commands.iter().filter(|grant| !with_more(grant)) {
        let name = format!("`{}`", line(grant));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let how = match (grants.no_sandbox, grants.net) {
        (true, _) => "without a sandbox: they can touch all that you can",
        (false, true) => "in a sandbox, with the network",
        (false, false) => "in a sandbox, without the network",
    };
    format!("{}; {how}", names.join(", "))
}

/// Returns the program if a grant is for commands in a sandbox and no others: `sh` for `sandbox:sh`.
pub fn in_sandbox_alone(grant: &str) -> Option<&str> {
    grant.strip_prefix("sandbox:")
}

/// Describes which files with keys a flow may give to commands.
pub fn describe_files(files: &[String]) -> String {
    let names: Vec<String> = files.iter().map(|file| line(file).into_owned()).collect();
    format!("gives a command that it chooses {}, with the keys that stand there", names.join(", "))
}

/// Returns the name of the param if a grant is a placeholder: `validate` for `{validate}` and for `{validate} …`.
pub fn placeholder(grant: &str) -> Option<&str> {
    grant.strip_suffix(MORE).unwrap_or(grant).strip_prefix('{')?.strip_suffix('}')
}

/// Tells whether a text is words that mean themselves to any shell, with single blanks between them.
fn is_plain(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,+@%".contains(letter);
    // A first word with `=` sets a variable, which only a shell does.
    let first = text.split(' ').next().unwrap_or_default();
    !first.contains('=') && text.split(' ').all(|word| !word.is_empty() && word.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_user_gave_is_granted_and_nothing_else() {
        let declared = ["make".to_owned(), "{run}".to_owned(), "{check}".to_owned(), "{absent}".to_owned()];
        let params = json!({ "run": "cargo", "check": ["npm test", "true"], "absent": null });
        let sandboxed = ["sandbox:sh".to_owned()];
        assert_eq!(super::grants(&sandboxed, &params, true), ["sh"]);
        assert!(super::grants(&sandboxed, &params, false).is_empty(), "no shell where nothing holds it");
        let grants = grants(&declared, &params, true);
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

    #[test]
    fn a_command_is_told_once() {
        let commands = ["npm test", "a; b", "npm test …", "npm test", "sh"].map(str::to_owned);
        let told = describe_commands(&commands, &Grants::default());
        assert_eq!(told, "`a; b`, `npm test …`, `sh`; in a sandbox, without the network");
    }

    #[test]
    fn what_the_user_gave_with_more_words_is_granted_where_it_is_plain() {
        let grants = |test: &str| grants(&["{test} …".to_owned()], &json!({ "test": test }), true);
        let program = |words: &[&str]| CommandLine::Program(words.iter().map(|word| (*word).to_owned()).collect());
        let given = grants("pytest -q");
        assert_eq!(given, ["pytest -q …"]);
        assert!(program(&["pytest", "-q", "a.py::test; rm"]).is_granted(&given), "no shell reads it");
        assert!(program(&["pytest", "-q"]).is_granted(&given));
        for other in [&["pytest"][..], &["pytest", "a.py"], &["pytest -q", "x"], &["pytest", "-qx"], &[]] {
            assert!(!program(other).is_granted(&given), "{other:?}");
        }
        assert!(!CommandLine::Shell("pytest -q x".to_owned()).is_granted(&given));
        for shell in ["cd x && pytest", "A=1 pytest", "pytest 'a b'", "pytest  -q", "", "pytest $X", "pytest *"] {
            assert!(grants(shell).is_empty(), "{shell}");
        }
        assert_eq!(placeholder("{test} …"), Some("test"));
    }
}
