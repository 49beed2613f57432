//! The program as a child process: run to its end, or held, signalled and killed half-way.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::support::terminal::Seat;

/// A child that takes longer is killed, so that a test that hangs fails instead.
const LIMIT: Duration = Duration::from_secs(60);
/// That of a child that does the work of fifty.
const LONG_LIMIT: Duration = Duration::from_secs(1800);

/// A call of the program that was not started yet.
pub(crate) struct Call {
    command: Command,
    stdin: String,
    group: bool,
    limit: Duration,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit status; nothing when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A call that is under way.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    seen: String,
    stderr: JoinHandle<String>,
    group: bool,
    /// Dropping it calls the watchdog off.
    _watchdog: Sender<()>,
}

impl Call {
    pub(crate) fn new<'a>(
        workspace: &Path,
        variables: &BTreeMap<String, String>,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Call {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nietz"));
        command.env_clear().envs(variables).current_dir(workspace).args(arguments);
        Call { command, stdin: String::new(), group: false, limit: LIMIT }
    }

    pub(crate) fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Call {
        self.command.args(arguments);
        self
    }

    /// Sets a variable to what need not be text.
    pub(crate) fn raw_var(mut self, name: &str, value: &OsStr) -> Call {
        self.command.env(name, value);
        self
    }

    pub(crate) fn var(mut self, name: &str, value: &str) -> Call {
        self.command.env(name, value);
        self
    }

    /// Starts it in a folder below the workspace.
    pub(crate) fn within(mut self, folder: &str) -> Call {
        let workspace = self.command.get_current_dir().expect("it was given").to_owned();
        self.command.current_dir(workspace.join(folder));
        self
    }

    /// Starts it as a shell does at a terminal, where Ctrl-C reaches all that stays in its process group.
    pub(crate) fn in_a_group(mut self) -> Call {
        self.command.process_group(0);
        self.group = true;
        self
    }

    /// Starts it at a terminal, in the way that a terminal's own program is started: the terminal leads its session.
    pub(crate) fn at_a_terminal(self) -> Seat {
        let mut call = self.by("setsid", ["--ctty"]);
        Seat::take(&mut call.command)
    }

    /// As [`Call::at_a_terminal`], with so many columns.
    pub(crate) fn at_a_terminal_of(self, columns: u16) -> Seat {
        let mut call = self.by("setsid", ["--ctty"]);
        Seat::of(&mut call.command, columns)
    }

    /// Starts it at a terminal that does not lead its session, so that no signal tells of its end.
    pub(crate) fn beside_a_terminal(mut self) -> Seat {
        Seat::take(&mut self.command)
    }

    /// Has another program start it, with these arguments before its own.
    pub(crate) fn by<'a>(self, program: &str, arguments: impl IntoIterator<Item = &'a str>) -> Call {
        let own = self.command.get_program().to_owned();
        let before = arguments.into_iter().map(OsString::from).chain([own]).collect();
        self.behind(program, before)
    }

    /// Takes another copy of the program.
    pub(crate) fn instead(self, program: &str) -> Call {
        self.behind(program, Vec::new())
    }

    fn behind(self, program: &str, before: Vec<OsString>) -> Call {
        let mut command = Command::new(program);
        command.args(before).args(self.command.get_args());
        command.env_clear().envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(self.command.get_current_dir().expect("it was given"));
        Call { command, ..self }
    }

    /// Runs it to its end with nobody at the other end of its output.
    pub(crate) fn unheard(mut self) -> Option<i32> {
        let closed = || std::io::pipe().expect("the system gives a pipe").1;
        self.command.stdin(Stdio::null()).stdout(closed()).stderr(closed());
        self.command.status().expect("the program starts").code()
    }

    /// Gives this to the program's standard input, which then ends.
    pub(crate) fn stdin(mut self, text: impl Into<String>) -> Call {
        self.stdin = text.into();
        self
    }

    /// Runs it to its end.
    pub(crate) fn go(self) -> Ended {
        let mut running = self.spawn();
        running.close();
        running.end()
    }

    /// Gives it as long as a session takes that has a lot to do.
    pub(crate) fn patient(mut self) -> Call {
        self.limit = LONG_LIMIT;
        self
    }

    /// Starts it; its standard input stays open.
    pub(crate) fn spawn(mut self) -> Running {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("it was asked for");
        let stdout = BufReader::new(child.stdout.take().expect("it was asked for"));
        let mut errors = child.stderr.take().expect("it was asked for");
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            errors.read_to_end(&mut text).ok();
            String::from_utf8_lossy(&text).into_owned()
        });
        // A program that ended without reading its input is no fault of the test.
        stdin.write_all(self.stdin.as_bytes()).ok();
        let (watchdog, over) = channel::<()>();
        let pid = child.id();
        std::thread::spawn(move || {
            if over.recv_timeout(self.limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                signal(pid, "KILL");
            }
        });
        let group = self.group;
        Running { child, stdin: Some(stdin), stdout, seen: String::new(), stderr, group, _watchdog: watchdog }
    }
}

impl Running {
    /// Reads standard output up to the first JSON line of this type.
    pub(crate) fn wait_for(&mut self, kind: &str) -> Value {
        loop {
            let mut line = String::new();
            let length = self.stdout.read_line(&mut line).expect("it can be read");
            assert_ne!(length, 0, "the program ended before `{kind}`: {}", self.seen);
            self.seen.push_str(&line);
            let event: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            if event["type"] == kind {
                return event;
            }
        }
    }

    /// Reads the next line of its standard output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it can be read");
        self.seen.push_str(&line);
        line.trim_end().to_owned()
    }

    /// Writes to its standard input.
    pub(crate) fn say(&mut self, text: &str) {
        self.stdin.as_mut().expect("it is open").write_all(text.as_bytes()).expect("it listens");
    }

    /// Ends its standard input.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(mut self) -> Ended {
        self.child.kill().expect("it runs");
        self.end()
    }

    /// Asks it to end, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        let minus = if self.group { "-" } else { "" };
        Command::new("kill").args(["-INT", "--", &format!("{minus}{}", self.child.id())]).status().ok();
    }

    /// Waits until this is so; a program that has ended cannot make it so any more.
    #[track_caller]
    pub(crate) fn until(&mut self, is_so: impl Fn() -> bool) {
        while !is_so() {
            let ended = self.child.try_wait().expect("it can be asked");
            assert!(ended.is_none() || is_so(), "the program ended too early: {ended:?}");
            std::thread::yield_now();
        }
    }

    /// Waits until this is so, and returns true, or until the program is over.
    pub(crate) fn until_or_over(&mut self, is_so: impl Fn(&Running) -> bool) -> bool {
        while !is_so(self) {
            if self.child.try_wait().expect("it can be asked").is_some() {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Tells whether it has a file or a folder open.
    pub(crate) fn has_open(&self, path: &Path) -> bool {
        let path = path.canonicalize().expect("it is there");
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).into_iter().flatten().flatten();
        open.map(|entry| std::fs::read_link(entry.path())).any(|to| to.is_ok_and(|to| to == path))
    }

    /// Tells it that its terminal is gone, as the kernel does.
    pub(crate) fn hang_up(&self) {
        signal(self.child.id(), "HUP");
    }

    /// Asks it to end, as a service manager does.
    pub(crate) fn terminate(&self) {
        signal(self.child.id(), "TERM");
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops it where it is, as a machine does that is asleep; [`Running::thaw`] wakes it.
    pub(crate) fn freeze(&self) {
        signal(self.child.id(), "STOP");
    }

    pub(crate) fn thaw(&self) {
        signal(self.child.id(), "CONT");
    }

    /// Waits until it is over.
    pub(crate) fn end(mut self) -> Ended {
        self.stdout.read_to_string(&mut self.seen).expect("it writes UTF-8");
        let status = self.child.wait().expect("it can be waited for");
        Ended {
            code: status.code(),
            signal: status.signal(),
            stdout: self.seen,
            stderr: self.stderr.join().expect("nothing panics in it"),
        }
    }
}

impl Ended {
    /// The events of `--json`.
    pub(crate) fn events(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        // The last line of a killed process may be torn.
        let whole = self.stdout.rfind('\n').map_or("", |end| &self.stdout[..end]);
        whole.lines().map(parse).collect()
    }

    /// The events of one type.
    pub(crate) fn of_type(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// The last event, which says how the run ended.
    pub(crate) fn ending(&self) -> Value {
        let last = self.events().pop().unwrap_or_default();
        assert_eq!(last["type"], "run_ended", "{self:?}");
        last
    }

    /// The result of a run that is done.
    pub(crate) fn result(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.ending()["result"].clone()
    }

    /// The result of a run that is done, and whose answer is no.
    pub(crate) fn refused(&self) -> Value {
        assert_eq!(self.code, Some(8), "{self:?}");
        self.ending()["result"].clone()
    }

    /// The code of the failure that ended the run.
    pub(crate) fn failure(&self) -> String {
        self.ending()["failure"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The ids of the questions that were put, in their order.
    pub(crate) fn asked(&self) -> Vec<String> {
        let id = |event: &Value| event["question"]["id"].as_str().unwrap_or_default().to_owned();
        self.of_type("asked").iter().map(id).collect()
    }

    /// Checks the exit status; a failure shows everything that was printed.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }
}

fn signal(pid: u32, name: &str) {
    Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().ok();
}
