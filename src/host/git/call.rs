//! One call of git, in an environment of its own: no hook, no signing, no pager, no configuration of the user's,
//! no question, and never another repository than the one that is named. What that repository's own configuration
//! would have git run is kept out by `programs`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::fetch::Running;
use crate::error::{Code, Failure, Result};
use crate::model::text::excerpt;

/// Settings that the repository's own file might have otherwise.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.quotePath=false",
    "core.attributesFile=/dev/null",
    "commit.gpgSign=false",
    "diff.ignoreSubmodules=all",
    "submodule.recurse=false",
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

/// How many characters of what git said are kept.
const MOST_SAID: usize = 1000;

/// Who makes the commits of runs.
const NAME: &str = "nietz";
const EMAIL: &str = "nietz@localhost";

pub(super) struct Call {
    command: Command,
    what: String,
    input: Option<Vec<u8>>,
    /// A locked file that git holds while it runs.
    held: Option<File>,
    /// What helps when git says that a filter failed.
    filters: Option<String>,
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
const LIMITS: &str = "ulimit -v 1572864; ulimit -t 300; ulimit -f 524288; exec git \"$@\"";

impl Call {
    pub(super) fn new(path: &str) -> Call {
        Call::of(Command::new("git"), path)
    }

    fn of(mut command: Command, path: &str) -> Call {
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
        Call { command, what: String::new(), input: None, held: None, filters: None }
    }

    /// A call that takes in what strangers made, and that reaches other machines as the user would: with their keys and
    /// proxies, by the usual protocols. It has limits, as has all that it starts.
    pub(super) fn of_stranger(environment: &BTreeMap<String, String>) -> Call {
        let path = environment.get("PATH").map_or("/usr/local/bin:/usr/bin:/bin", String::as_str);
        let mut shell = Command::new("sh");
        shell.args(["-c", LIMITS, "git"]);
        let mut call = Call::of(shell, path);
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
    pub(super) fn configured(mut self, environment: &BTreeMap<String, String>) -> Call {
        self.command.env_remove("GIT_CONFIG_GLOBAL").env_remove("GIT_CONFIG_NOSYSTEM");
        self.command.envs(configuration(environment));
        self
    }

    /// Goes by these settings, whatever the repository's own are.
    pub(super) fn with(mut self, settings: &[(OsString, OsString)], filters: Option<String>) -> Call {
        for (number, (key, value)) in settings.iter().enumerate() {
            self.command.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        self.command.env("GIT_CONFIG_COUNT", settings.len().to_string());
        self.filters = filters;
        self
    }

    /// Finds the repository from a folder, and from nowhere above it. Whose repositories git trusts, the user has said
    /// to git.
    pub(super) fn discover(mut self, folder: &Path) -> Call {
        self.command.current_dir(folder);
        if let Some(above) = folder.parent() {
            self.command.env("GIT_CEILING_DIRECTORIES", above);
        }
        self
    }

    /// Works for this repository, wherever anything else would lead. Ctrl-C at the terminal is for nietz, which waits
    /// for what git has begun.
    pub(super) fn repository(mut self, git_dir: &Path) -> Call {
        self.command.env("GIT_DIR", git_dir).process_group(0);
        self
    }

    /// The same for one who may have to type a passphrase at the terminal: Ctrl-C there is for git, too.
    pub(super) fn in_repository(mut self, git_dir: &Path) -> Call {
        self.command.env("GIT_DIR", git_dir);
        self
    }

    pub(super) fn work_tree(mut self, folder: &Path) -> Call {
        self.command.env("GIT_WORK_TREE", folder).current_dir(folder);
        self
    }

    /// Has a folder for files that git makes for a moment.
    pub(super) fn scratch(mut self, folder: &Path) -> Call {
        self.command.current_dir(folder);
        self
    }

    /// Takes paths for patterns, where they are no flow's.
    pub(super) fn patterns(mut self) -> Call {
        self.command.env_remove("GIT_LITERAL_PATHSPECS");
        self
    }

    /// Works with an index of its own.
    pub(super) fn index(mut self, file: &Path) -> Call {
        self.command.env("GIT_INDEX_FILE", file);
        self
    }

    /// The time of a commit, in seconds since 1970.
    pub(super) fn at(mut self, now: u64) -> Call {
        let date = format!("{now} +0000");
        self.command.env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
        self
    }

    pub(super) fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Call {
        for arg in args {
            if self.what.is_empty() {
                arg.clone_into(&mut self.what);
            }
            self.command.arg(arg);
        }
        self
    }

    pub(super) fn path(mut self, path: &Path) -> Call {
        self.command.arg(path);
        self
    }

    pub(super) fn input(mut self, input: Vec<u8>) -> Call {
        self.input = Some(input);
        self
    }

    /// Has git hold a locked file, as its input that it never reads. So the lock outlives this process when it is
    /// killed, and ends with git.
    pub(super) fn holding(mut self, file: &File) -> Result<Call> {
        let held = file.try_clone();
        self.held =
            Some(held.map_err(|error| Failure::new(Code::GitFailed, format!("a lock cannot be shared: {error}")))?);
        Ok(self)
    }

    /// Will be asked while it runs.
    pub(super) fn asked(mut self) -> Call {
        self.input = Some(Vec::new());
        self
    }

    /// Starts it, with pipes for what it is asked and what it writes. It is ended when its time is over.
    pub(super) fn start(mut self, limit: Duration) -> Result<(String, Running)> {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.command.stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() });
        let child = self.command.spawn().map_err(|error| failed(&error))?;
        Ok((self.what, Running::watch(child, limit)))
    }

    /// Runs it and returns how it ended, well or not; one that takes longer than its time is ended.
    pub(super) fn within(mut self, limit: Duration) -> Result<Output> {
        self.command.stdout(Stdio::null()).stderr(Stdio::piped()).stdin(Stdio::null());
        let mut child = self.command.spawn().map_err(|error| failed(&error))?;
        let stderr = child.stderr.take();
        // What it says is short; what it starts may hold that end longer than it runs itself.
        let (said, says) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(stderr) = stderr {
                let _ = stderr.take(1 << 16).read_to_end(&mut text);
            }
            let _ = said.send(text);
        });
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = child.try_wait().map_err(|error| failed(&error))? {
                let stderr = says.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
                return Ok(Output { status, stdout: Vec::new(), stderr });
            }
            if Instant::now() >= until {
                let _ = child.kill();
                let _ = child.wait();
                let message = format!("git {} took longer than {} s, and was ended", self.what, limit.as_secs_f64());
                return Err(Failure::new(Code::GitFailed, message));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Runs it and returns how it ended, well or not.
    pub(super) fn output(mut self) -> Result<Output> {
        let failed = |error: std::io::Error| failed(&error);
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.command.stdin(match (&self.input, self.held.take()) {
            (Some(_), _) => Stdio::piped(),
            (None, Some(file)) => Stdio::from(file),
            (None, None) => Stdio::null(),
        });
        let mut child = self.command.spawn().map_err(failed)?;
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), self.input) {
            // All that is given something reads it whole before it writes. One that does not says why itself.
            let _ = pipe.write_all(&input);
        }
        child.wait_with_output().map_err(failed)
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

fn failed(error: &std::io::Error) -> Failure {
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => Code::GitMissing,
        _ => Code::GitFailed,
    };
    Failure::new(code, format!("git cannot be started: {error}"))
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

/// Says what git said.
pub(super) fn failure(what: &str, output: &Output) -> Failure {
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().trim_start_matches("fatal: ");
    let short = excerpt(said);
    let failure = Failure::new(Code::GitFailed, format!("git {what}: {short}"));
    match short.ends_with('…') {
        true => failure.because(said.chars().take(MOST_SAID).collect::<String>()),
        false => failure,
    }
}

/// Returns the paths in a list that git separates by NUL, whatever they are called.
pub(super) fn paths(bytes: &[u8]) -> impl Iterator<Item = &OsStr> {
    bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(OsStr::from_bytes)
}

/// Returns the names in a list that git separates by NUL; one that is not UTF-8 is no name that a flow can use.
pub(super) fn names(bytes: &[u8]) -> impl Iterator<Item = &str> {
    bytes.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok()).filter(|name| !name.is_empty())
}
