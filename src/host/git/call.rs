//! One call of git, in an environment of its own: no hook, no signing, no pager, no configuration of the user's,
//! no question, and never another repository than the one that is named. What that repository's own configuration
//! would have git run is kept out by `programs`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::process::{self, CallBounds, GitLaunch, Running, failure};
use crate::error::{Code, Failure, Result};
use crate::host::path;
use crate::model::git::GitLimits;

/// Settings that the repository's own file might have otherwise.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.quotePath=false",
    "core.attributesFile=/dev/null",
    // What says that a file is as it was: all that the disk knows of it.
    "core.trustctime=true",
    "core.checkStat=default",
    "core.ignoreStat=false",
    "commit.gpgSign=false",
    "diff.ignoreSubmodules=all",
    "submodule.recurse=false",
    // What filters start may ask git for keys, and go elsewhere by ssh.
    "credential.helper=",
    "core.askPass=",
    "core.sshCommand=ssh",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// What of the user's environment a call to another machine needs.
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

/// Where the user's own configuration is, and who the user was before `sudo`.
const CONFIGURATION: &[&str] =
    &["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "SUDO_UID"];

/// Who makes the commits of runs.
const NAME: &str = "nietz";
const EMAIL: &str = "nietz@localhost";

pub(super) struct GitCall {
    command: Command,
    what: String,
    input: Option<Vec<u8>>,
    /// A locked file that git holds while it runs.
    held: Option<File>,
    /// What helps when git says that a filter failed.
    filters: Option<String>,
    bounds: CallBounds,
    /// Whether it is the first of a group of processes of its own.
    group: bool,
}

/// What git itself is told where a stranger's objects are read: to hold little of them in memory, and to keep what is
/// fetched as the one file that it comes as.
const FRUGAL: &[&str] = &[
    "core.bigFileThreshold=1m",
    "core.packedGitWindowSize=16m",
    "core.packedGitLimit=128m",
    "core.deltaBaseCacheLimit=16m",
    "pack.threads=1",
    "fetch.unpackLimit=1",
];

/// The most that git may take, and all that it starts: KiB of memory, seconds of processor time, and the size of a file
/// in blocks of 512 bytes (256 MiB).
const STRANGERS: &str = "ulimit -v 1572864; ulimit -t 300; ulimit -f 524288; exec git \"$@\"";

/// How long anything may take that is asked of what was fetched.
const READING: Duration = Duration::from_secs(60);

impl GitCall {
    pub(super) fn new(path: &str, limits: GitLimits) -> GitCall {
        GitCall::of(Command::new("git"), path, CallBounds::of(limits))
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
            // Whatever a repository says, it is reached by no protocol.
            ("GIT_ALLOW_PROTOCOL", ""),
            ("GIT_LITERAL_PATHSPECS", "1"),
            // Objects are what they are called, and commits have the parents that they name.
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

    /// A call that takes in what strangers made, and that reaches other machines as the user would: with their keys and
    /// proxies, by the usual protocols. It has limits, as has all that it starts.
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

    /// Reads the user's own configuration, too: for calls that look, and run nothing.
    pub(super) fn with_user_config(mut self, environment: &BTreeMap<String, String>) -> GitCall {
        self.command.env_remove("GIT_CONFIG_GLOBAL").env_remove("GIT_CONFIG_NOSYSTEM");
        self.command.envs(configuration(environment));
        self
    }

    /// Goes by these settings, whatever the repository's own are.
    pub(super) fn with(mut self, settings: &[(OsString, OsString)], filters: Option<String>) -> GitCall {
        for (number, (key, value)) in settings.iter().enumerate() {
            self.command.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        self.command.env("GIT_CONFIG_COUNT", settings.len().to_string());
        self.filters = filters;
        self
    }

    /// Goes by these settings as well, and gives what it starts these variables.
    pub(super) fn of_user(mut self, settings: &[(&str, OsString)], variables: &[(String, OsString)]) -> GitCall {
        for (key, value) in settings {
            let mut setting = OsString::from(format!("{key}="));
            setting.push(value);
            self.command.arg("-c").arg(setting);
        }
        self.command.envs(variables.iter().map(|(name, value)| (name, value)));
        self
    }

    /// Finds the repository from a folder, and from nowhere above it. Whose repositories git trusts, the user has said
    /// to git.
    pub(super) fn discover(mut self, folder: &Path) -> GitCall {
        self.command.current_dir(folder);
        if let Some(above) = folder.parent() {
            self.command.env("GIT_CEILING_DIRECTORIES", above);
        }
        self
    }

    /// Works for this repository, wherever anything else would lead. Ctrl-C at the terminal is for nietz, which waits
    /// for what git has begun.
    pub(super) fn repository(mut self, git_dir: &Path) -> GitCall {
        self.command.env("GIT_DIR", git_dir).process_group(0);
        self.group = true;
        self
    }

    /// The same for one who may have to type a passphrase at the terminal: Ctrl-C there is for git, too.
    pub(super) fn in_repository(mut self, git_dir: &Path) -> GitCall {
        self.command.env("GIT_DIR", git_dir);
        self
    }

    pub(super) fn work_tree(mut self, folder: &Path) -> GitCall {
        self.command.env("GIT_WORK_TREE", folder).current_dir(folder);
        self
    }

    /// Has a folder for files that git makes for a moment.
    pub(super) fn scratch(mut self, folder: &Path) -> GitCall {
        self.command.current_dir(folder);
        self
    }

    /// Takes paths for patterns, where they are no flow's.
    pub(super) fn patterns(mut self) -> GitCall {
        self.command.env_remove("GIT_LITERAL_PATHSPECS");
        self
    }

    /// Works with an index of its own.
    pub(super) fn index(mut self, file: &Path) -> GitCall {
        self.command.env("GIT_INDEX_FILE", file);
        self
    }

    /// The time of a commit, in seconds since 1970.
    pub(super) fn at(mut self, now: u64) -> GitCall {
        let date = format!("{now} +0000");
        self.command.env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
        self
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

    /// Has git hold a locked file, as its input that it never reads. So the lock outlives this process when it is
    /// killed, and ends with git.
    pub(super) fn holding(mut self, file: &File) -> Result<GitCall> {
        let held = file.try_clone();
        self.held =
            Some(held.map_err(|error| Failure::new(Code::GitFailed, format!("a lock cannot be shared: {error}")))?);
        Ok(self)
    }

    /// Will be asked while it runs.
    pub(super) fn interactive(mut self) -> GitCall {
        self.input = Some(Vec::new());
        self
    }

    /// May take this long.
    pub(super) fn with_timeout(mut self, limit: Duration) -> GitCall {
        self.bounds.time = limit;
        self
    }

    /// Is read up to so many bytes, and then ended.
    pub(super) fn limit_output(mut self, bytes: usize) -> GitCall {
        self.bounds = CallBounds { output: bytes, cut: true, ..self.bounds };
        self
    }

    /// Starts it, with pipes for what it is asked and what it writes.
    pub(super) fn start(mut self) -> Result<Running> {
        self.command.stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() });
        let GitCall { what, mut command, group, bounds, .. } = self;
        Running::start(GitLaunch { what: &what, command: &mut command, group, bounds })
    }

    /// Runs it and returns how it ended, well or not.
    pub(super) fn output(mut self) -> Result<Output> {
        self.command.stdin(match (&self.input, self.held.take()) {
            (Some(_), _) => Stdio::piped(),
            (None, Some(file)) => Stdio::from(file),
            (None, None) => Stdio::null(),
        });
        let GitCall { what, mut command, input, group, bounds, .. } = self;
        process::run_to_end(GitLaunch { what: &what, command: &mut command, group, bounds }, input)
    }

    /// Runs it and returns what it wrote; failing is an error.
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

    /// Returns its only line.
    pub(super) fn line(self) -> Result<String> {
        self.text().map(|text| text.trim_end().to_owned())
    }
}

/// Returns what of the environment says where the user's configuration is.
pub(super) fn configuration(environment: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let whole = |name: &str, value: &str| {
        !name.starts_with("GIT_CONFIG_GLOBAL") && !name.starts_with("GIT_CONFIG_SYSTEM")
            || Path::new(value).is_absolute()
    };
    let all = CONFIGURATION.iter().filter_map(|name| Some(((*name).to_owned(), environment.get(*name)?.clone())));
    all.filter(|(name, value)| whole(name, value)).collect()
}

/// Returns the paths in a list that git separates by NUL, whatever they are called.
pub(super) fn paths(bytes: &[u8]) -> impl Iterator<Item = &OsStr> {
    bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(OsStr::from_bytes)
}

/// Returns the names in a list that git separates by NUL; one that is not UTF-8 is no name that a flow can use.
pub(super) fn names(bytes: &[u8]) -> impl Iterator<Item = &str> {
    bytes.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok()).filter(|name| !name.is_empty())
}
