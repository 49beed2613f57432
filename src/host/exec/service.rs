//! Programs that answer while a run goes on: in the sandbox of commands, with a home of their own, until nobody needs them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::net::unix::pipe;

use super::policy::Policy;
use super::{
    Commands, Helper, PrivateFolder, Report, environment, helper, internal, no_sandbox, not_started, read_report,
};
use crate::error::{Code, Failure, Result};
use crate::host::place::CommandPlace;
use crate::host::rpc::ErrorTail;
use crate::model::command::{CommandLine, ExecCommand};

/// How long to wait for the report of a program that has closed its output.
const REPORT: Duration = Duration::from_secs(2);

/// What a program is given.
pub(in crate::host) struct ServiceTerms<'a> {
    /// The program and its arguments.
    pub(in crate::host) words: &'a [String],
    /// Its home, which it may write, and where it starts. It is there.
    pub(in crate::host) home: &'a Path,
    /// Variables beside those of all commands.
    pub(in crate::host) variables: BTreeMap<String, String>,
    /// A folder that it may read although no command sees it whole.
    pub(in crate::host) shown: Option<&'a Path>,
}

/// A program that runs in a sandbox. Dropping it ends it, with all that it started.
pub(in crate::host) struct Service {
    helper: Helper,
    report: PathBuf,
    errors: ErrorTail,
    words: Vec<String>,
    _private: PrivateFolder,
}

/// Both ends of a program's standard input and output that are not its own.
pub(in crate::host) struct ServicePipes {
    pub(in crate::host) input: pipe::Sender,
    pub(in crate::host) output: tokio::process::ChildStdout,
}

impl Commands {
    /// Starts a program.
    ///
    /// # Errors
    ///
    /// `config-invalid` if it may read what is shown to no command, `command-failed` if it cannot be started.
    pub(in crate::host) fn serve(&self, terms: &ServiceTerms<'_>) -> Result<(Service, ServicePipes)> {
        let private = PrivateFolder::make()?;
        let kept = self.protected_places();
        let command = command(terms.words);
        let mut policy = Policy::new(self, &kept, &CommandPlace::only(terms.home), &command, &private.0)?;
        let input = private.0.join("input");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &input,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .map_err(|error| internal(&error.into()))?;
        // Opened both ways, so that nobody has to wait for the other end.
        let sender = pipe::OpenOptions::new().read_write(true).open_sender(&input).map_err(|error| internal(&error))?;
        policy.input = Some(input);
        policy.read.extend(terms.shown.map(Path::to_owned));
        let temporary = private.0.join("tmp").display().to_string();
        let mut variables = environment::of(&self.environment, &kept, terms.home, &self.grants);
        variables.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name.to_owned(), temporary.clone())));
        variables.extend(terms.variables.clone());
        let mut helper = tokio::process::Command::new(&self.helper);
        helper.args([helper::VERB, &policy.text()?, "--"]).args(terms.words).current_dir(&policy.start);
        helper.env_clear().envs(variables).process_group(0);
        helper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = helper.spawn().map_err(|error| not_started(&command.run, &error.to_string()))?;
        let (Some(output), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(Failure::new(Code::Internal, "a program that was started has no pipes"));
        };
        let service = Service {
            helper: Helper { lifeline: child.stdin.take(), child },
            report: policy.report,
            errors: ErrorTail::of(stderr),
            words: terms.words.to_vec(),
            _private: private,
        };
        Ok((service, ServicePipes { input: sender, output }))
    }
}

impl Service {
    /// Returns why the program ended, once it has closed its output; `None` if it goes on.
    pub(in crate::host) async fn why_ended(&mut self) -> Option<Failure> {
        // The helper ends with its program, and has written its report before that.
        let ended = tokio::time::timeout(REPORT, self.helper.child.wait()).await;
        let command = command(&self.words).run;
        let program = self.words.first().map(String::as_str).unwrap_or_default();
        let failed = |why: String| Failure::new(Code::CommandFailed, format!("{program} {why}"));
        ended.ok()?.ok()?;
        self.errors.finish().await;
        Some(match read_report(&self.report) {
            Some(Report::NotStarted(why)) => not_started(&command, &why),
            Some(Report::NoSandbox(why)) => no_sandbox(&why),
            Some(Report::Exit(code)) => failed(format!("ended with exit status {code}")),
            Some(Report::Processes | Report::Memory | Report::Written) => failed("used more than it may".to_owned()),
            Some(Report::Left) | None => failed("ended".to_owned()),
        })
    }

    /// Returns the end of what the program wrote to its standard error, cleaned for people.
    pub(in crate::host) fn errors(&self) -> String {
        self.errors.text()
    }
}

/// A command of no worktree.
fn command(words: &[String]) -> ExecCommand {
    ExecCommand {
        tree: String::new(),
        run: CommandLine::Program(words.to_vec()),
        seconds: 0.0,
        idle: None,
        repeatable: false,
        output: None,
        dependencies: None,
        builds: None,
        read: Vec::new(),
    }
}
