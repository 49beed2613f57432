//! One call of git, in an environment of its own: without hooks, signing, pager, prompts and the user's configuration,
//! and always in the named repository. `programs` keeps out the commands that the repository's own configuration would
//! have git run.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::process::{self, CallBounds, GitLaunch, Running, failure};
use crate::error::{Code, Failure, Result};
use crate::host::path;
use crate::model::git::GitLimits;
use crate::model::text::excerpt;

/// Settings that override those of the repository's own file.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.quotePath=false",
    "core.attributesFile=/dev/null",
    // Git compares all that the disk knows of a file to tell whether it has changed.
    "core.trustctime=true",
    "core.checkStat=default",
    "core.ignoreStat=false",
    "commit.gpgSign=false",
    "diff.ignoreSubmodules=all",
    "submodule.recurse=false",
    // A program that a filter starts may ask git for credentials or connect by ssh.
    "credential.helper=",
    "core.askPass=",
    "core.sshCommand=ssh",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// The variables of the user's environment that a call to another machine needs.
const USERS: &[&str] = &[
    "HOME",
    "SSH_AUTH_SOCK",
    "GIT_SSH_COMMAND",
    "GIT_SSL_CAINFO",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
];

/// The variables that locate the user's own configuration and name the user before `sudo`.
const CONFIGURATION: &[&str] =
    &["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "SUDO_UID"];

/// Author and committer of the commits of runs.
const NAME: &str = "nietz";
const EMAIL: &str = "nietz@localhost";

/// What a commit says beside its files.
pub(super) struct NewCommit<'a> {
    pub(super) message: &'a str,
    /// `Name <address>`; the run itself where nobody is named.
    pub(super) author: Option<&'a str>,
    /// In seconds since 1970.
    pub(super) now: u64,
}

pub(super) struct GitCall {
    command: Command,
    what: String,
    input: Option<Vec<u8>>,
    /// A locked file that git keeps open while it runs.
    held: Option<File>,
    /// The hint for a failure that git blames on a filter.
    filters: Option<String>,
    bounds: CallBounds,
    /// Whether git leads a process group of its own.
    group: bool,
}

/// Settings for reading a stranger's objects: git holds little of them in memory, and keeps a fetched pack as the one
/// file that it receives.
const FRUGAL: &[&str] = &[
    "core.bigFileThreshold=1m",
    "core.packedGitWindowSize=16m",
    "core.packedGitLimit=128m",
    "core.deltaBaseCacheLimit=16m",
    "pack.threads=1",
    "fetch.unpackLimit=1",
];

/// Runs git with limits for each process: KiB of memory (1.5 GiB), seconds of processor time, and the size of a file in
/// blocks of 512 bytes (256 MiB).
const STRANGERS: &str = "ulimit -v 1572864; ulimit -t 300; ulimit -f 524288; exec git \"$@\"";

/// How long one call that reads fetched objects may take.
const READING: Duration = Duration::from_secs(60);

impl GitCall {
    pub(super) fn new(path: &str, limits: GitLimits) -> GitCall {
        // By its whole path: the system starts a program faster where it need not look for it.
        let is_program = |git: &PathBuf| {
            git.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        let found = std::env::split_paths(path).map(|folder| folder.join("git")).find(is_program);
        let command = Command::new(found.unwrap_or_else(|| PathBuf::from("git")));
        GitCall::of(command, path, CallBounds::of(limits))
    }

    fn of(mut command: Command, path: &str, bounds: CallBounds) -> GitCall {
        command.env_clear().env("PATH", path).current_dir("/");
        for (name, value) in [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            // Whatever a repository configures, git connects to nothing.
            ("GIT_ALLOW_PROTOCOL", ""),
            ("GIT_LITERAL_PATHSPECS", "1"),
            // No object stands in for another one, and commits have the parents that they name.
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_GRAFT_FILE", "/dev/null/none"),
            ("GIT_CEILING_DIRECTORIES", "/"),
            ("GIT_AUTHOR_NAME", NAME),
            ("GIT_AUTHOR_EMAIL", EMAIL),
            ("GIT_COMMITTER_NAME", NAME),
            ("GIT_COMMITTER_EMAIL", EMAIL),
            ("LC_ALL", "C"),
        ] {
            command.env(name, value);
        }
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        GitCall { command, what: String::new(), input: None, held: None, filters: None, bounds, group: false }
    }

    /// Returns a call that reads a stranger's repository and connects to other machines as the user would: with the user's
    /// keys and proxies, by the usual protocols. Limits hold for git and for all programs that it starts.
    pub(super) fn of_stranger(environment: &BTreeMap<String, String>) -> GitCall {
        let bounds = CallBounds { time: READING, settable: false, ..CallBounds::of(GitLimits::default()) };
        let mut shell = Command::new("sh");
        shell.args(["-c", STRANGERS, "git"]);
        let mut call = GitCall::of(shell, &path::search_path(environment), bounds);
        for setting in FRUGAL {
            call.command.args(["-c", setting]);
        }
        for name in USERS {
            if let Some(value) = environment.get(*name) {
                call.command.env(name, value);
            }
        }
        call.command.env("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh");
        call
    }

    /// Lets git read the user's own configuration, too. Only for calls that run no programs.
    pub(super) fn with_user_config(mut self, environment: &BTreeMap<String, String>) -> GitCall {
        self.command.env_remove("GIT_CONFIG_GLOBAL").env_remove("GIT_CONFIG_NOSYSTEM");
        self.command.envs(configuration(environment));
        self
    }

    /// Overrides the repository's own settings with these. `filters` is the hint where a filter fails.
    pub(super) fn with(mut self, settings: &[(OsString, OsString)], filters: Option<String>) -> GitCall {
        for (number, (key, value)) in settings.iter().enumerate() {
            self.command.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        self.command.env("GIT_CONFIG_COUNT", settings.len().to_string());
        self.filters = filters;
        self
    }

    /// Adds these settings, and these variables for the programs that git starts.
    pub(super) fn of_user(mut self, settings: &[(&str, OsString)], variables: &[(String, OsString)]) -> GitCall {
        for (key, value) in settings {
            let mut setting = OsString::from(format!("{key}="));
            setting.push(value);
            self.command.arg("-c").arg(setting);
        }
        self.command.envs(variables.iter().map(|(name, value)| (name, value)));
        self
    }

    /// Lets git find the repository from a folder, but not from the folders above it. Git itself checks the owner, by the
    /// user's `safe.directory`.
    pub(super) fn discover(mut self, folder: &Path) -> GitCall {
        self.command.current_dir(folder);
        if let Some(above) = folder.parent() {
            self.command.env("GIT_CEILING_DIRECTORIES", above);
        }
        self
    }

    /// Works on this repository, whatever the current folder is. Git gets a process group of its own, so that Ctrl-C at the
    /// terminal reaches only nietz, which waits for git to finish.
    pub(super) fn repository(mut self, git_dir: &Path) -> GitCall {
        self.command.env("GIT_DIR", git_dir).process_group(0);
        self.group = true;
        self
    }

    /// As [`GitCall::repository`], but in the terminal's process group: the user may have to type a passphrase, and Ctrl-C
    /// reaches git, too.
    pub(super) fn in_repository(mut self, git_dir: &Path) -> GitCall {
        self.command.env("GIT_DIR", git_dir);
        self
    }

    pub(super) fn work_tree(mut self, folder: &Path) -> GitCall {
        self.command.env("GIT_WORK_TREE", folder).current_dir(folder);
        self
    }

    /// Sets the folder in which git makes temporary files.
    pub(super) fn scratch(mut self, folder: &Path) -> GitCall {
        self.command.current_dir(folder);
        self
    }

    /// Lets paths be patterns. Only for paths that do not come from a flow.
    pub(super) fn patterns(mut self) -> GitCall {
        self.command.env_remove("GIT_LITERAL_PATHSPECS");
        self
    }

    /// Uses this index file.
    pub(super) fn index(mut self, file: &Path) -> GitCall {
        self.command.env("GIT_INDEX_FILE", file);
        self
    }

    /// Sets the time of a commit, in seconds since 1970.
    pub(super) fn at(mut self, now: u64) -> GitCall {
        let date = format!("{now} +0000");
        self.command.env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
        self
    }

    /// Commits at this time, and by the author who is named.
    ///
    /// # Errors
    ///
    /// `request-invalid` if the author is not `Name <address>`.
    pub(super) fn committing(self, commit: &NewCommit<'_>) -> Result<GitCall> {
        let mut call = self.at(commit.now);
        if let Some(author) = commit.author {
            let (name, address) = author_parts(author).ok_or_else(|| {
                let message = format!("`{}` is no author", excerpt(author));
                Failure::new(Code::RequestInvalid, message).hint("such as 'Ada Lovelace <ada@example.org>'")
            })?;
            call.command.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", address);
        }
        Ok(call)
    }

    pub(super) fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> GitCall {
        for arg in args {
            if self.what.is_empty() {
                arg.clone_into(&mut self.what);
            }
            self.command.arg(arg);
        }
        self
    }

    pub(super) fn path(mut self, path: &Path) -> GitCall {
        self.command.arg(path);
        self
    }

    pub(super) fn input(mut self, input: Vec<u8>) -> GitCall {
        self.input = Some(input);
        self
    }

    /// Gives git a locked file as its standard input, which it never reads. So if nietz is killed, the lock lasts until git
    /// ends.
    pub(super) fn holding(mut self, file: &File) -> Result<GitCall> {
        let held = file.try_clone();
        self.held =
            Some(held.map_err(|error| Failure::new(Code::GitFailed, format!("a lock cannot be shared: {error}")))?);
        Ok(self)
    }

    /// Opens git's standard input for [`Running::input`].
    pub(super) fn interactive(mut self) -> GitCall {
        self.input = Some(Vec::new());
        self
    }

    /// Sets the time limit.
    pub(super) fn with_timeout(mut self, limit: Duration) -> GitCall {
        self.bounds.time = limit;
        self
    }

    /// Reads up to so many bytes of output, then ends git.
    pub(super) fn limit_output(mut self, bytes: usize) -> GitCall {
        self.bounds = CallBounds { output: bytes, cut: true, ..self.bounds };
        self
    }

    /// Starts git, with pipes for its input and output.
    pub(super) fn start(mut self) -> Result<Running> {
        self.command.stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() });
        let GitCall { what, mut command, group, bounds, .. } = self;
        Running::start(GitLaunch { what: &what, command: &mut command, group, bounds })
    }

    /// Runs git and returns its output and exit status, whether it succeeded or not.
    pub(super) fn output(mut self) -> Result<Output> {
        self.command.stdin(match (&self.input, self.held.take()) {
            (Some(_), _) => Stdio::piped(),
            (None, Some(file)) => Stdio::from(file),
            (None, None) => Stdio::null(),
        });
        let GitCall { what, mut command, input, group, bounds, .. } = self;
        process::run_to_end(GitLaunch { what: &what, command: &mut command, group, bounds }, input)
    }

    /// Runs git and returns its output. An exit status other than 0 is an error.
    pub(super) fn bytes(self) -> Result<Vec<u8>> {
        let (what, filters) = (self.what.clone(), self.filters.clone());
        let output = self.output()?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let failure = failure(&what, &output);
        let filtered = filters.filter(|_| String::from_utf8_lossy(&output.stderr).contains(" filter "));
        Err(match filtered {
            Some(hint) => failure.hint(hint),
            None => failure,
        })
    }

    pub(super) fn text(self) -> Result<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Runs git and returns its only line of output.
    pub(super) fn line(self) -> Result<String> {
        self.text().map(|text| text.trim_end().to_owned())
    }
}

/// Returns the name and the address of `Name <address>`.
fn author_parts(author: &str) -> Option<(&str, &str)> {
    let (name, rest) = author.split_once('<')?;
    let (name, address) = (name.trim(), rest.trim_end().strip_suffix('>')?.trim());
    let fine = |part: &str| !part.is_empty() && !part.contains(['<', '>']) && !part.contains(char::is_control);
    (author.len() <= 300 && fine(name) && fine(address) && !address.contains(' ')).then_some((name, address))
}

/// Returns the variables of the environment that locate the user's configuration.
pub(super) fn configuration(environment: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let usable = |name: &str, value: &str| {
        !name.starts_with("GIT_CONFIG_GLOBAL") && !name.starts_with("GIT_CONFIG_SYSTEM")
            || Path::new(value).is_absolute()
    };
    let all = CONFIGURATION.iter().filter_map(|name| Some(((*name).to_owned(), environment.get(*name)?.clone())));
    all.filter(|(name, value)| usable(name, value)).collect()
}

/// Returns the paths in a list that git separates by NUL, UTF-8 or not.
pub(super) fn paths(bytes: &[u8]) -> impl Iterator<Item = &OsStr> {
    bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(OsStr::from_bytes)
}

/// Returns the names in a list that git separates by NUL. Names that are not UTF-8 are left out: a flow cannot use them.
pub(super) fn names(bytes: &[u8]) -> impl Iterator<Item = &str> {
    bytes.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok()).filter(|name| !name.is_empty())
}
