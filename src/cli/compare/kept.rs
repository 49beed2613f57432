//! Where forks and judgements are kept: runs that were made once and cost nothing again.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::disk::temp_file::TempFile;
use crate::engine::runs::check_name;
use crate::error::{Code, Failure, Result};
use crate::report::RunHistory;
use crate::run::machine::Machine;

/// The most lines of what a run complained about.
const MOST_LINES: usize = 5;

pub(super) struct Kept<'a> {
    pub machine: &'a Machine,
    /// A folder of the user's, whose journals can be taken elsewhere; without it, those below the user's data alone.
    pub folder: Option<PathBuf>,
    /// Whether nothing is made: what is not kept is a failure.
    pub offline: bool,
}

/// A run that a comparison needs.
pub(super) struct Wanted {
    pub name: String,
    /// What it is, for messages.
    pub what: String,
    /// What the run is given beside the command line, as a file: answers by their questions, or a text of a param.
    pub given: Value,
}

/// What begins a run: the words of a command line, for the folder that it works in and the file of what it is given.
type Words<'w> = dyn Fn(&Path, &Path) -> Vec<OsString> + 'w;

impl Kept<'_> {
    /// Returns the folder in which a run works.
    pub(super) fn work(&self, name: &str) -> PathBuf {
        self.machine.comparisons().join(name)
    }

    fn own_journal(&self, name: &str) -> Result<PathBuf> {
        self.machine.in_workspace(self.work(name)).runs().journal(name)
    }

    /// Returns a run that is there and done: it costs nothing again.
    pub(super) fn done(&self, name: &str) -> Option<RunHistory> {
        let given = self.folder.iter().map(|folder| folder.join(format!("{name}.jsonl")));
        let read = |path: PathBuf| RunHistory::read(&path).ok().filter(|history| history.status == "done");
        given.chain(self.own_journal(name)).find_map(read)
    }

    /// Returns what a run did; takes it to its end if it is not done.
    ///
    /// # Errors
    ///
    /// It cannot begin, or nothing may be made and it is not kept.
    pub(super) fn history(&self, wanted: &Wanted, words: &Words<'_>) -> Result<RunHistory> {
        let Wanted { name, what, given } = wanted;
        check_name(name)?;
        let history = match self.done(name) {
            Some(done) => done,
            None if self.offline => {
                let failure = Failure::new(Code::Usage, format!("{what} is not kept, and --offline makes nothing"));
                return Err(
                    failure.hint("compare without --offline, where models can be asked; --kept FOLDER keeps it")
                );
            }
            None => self.make(name, what, given, words)?,
        };
        self.keep(name, &history)?;
        Ok(history)
    }

    fn make(&self, name: &str, what: &str, given: &Value, words: &Words<'_>) -> Result<RunHistory> {
        let (machine, folder, journal) = (self.machine, self.work(name), self.own_journal(name)?);
        std::fs::create_dir_all(&folder).map_err(|error| Failure::io(&folder, "create", &error))?;
        // What it is given stands beside its folder: it is none of its documents.
        let file = folder.with_extension("given.json");
        TempFile::with_mode(&file, given.to_string().as_bytes(), 0o600)?.publish(&file)?;
        let mut command = Command::new(machine.program()?);
        command.env_clear().envs(&machine.environment).env("NIETZ_RUN", name);
        if journal.is_file() {
            // Forks that are compared are runs of this machine, wherever the others are.
            command.env("NIETZ_STORE", "files");
        }
        match (journal.is_file(), given.is_object()) {
            (true, false) => command.arg("-C").arg(&folder).args(["resume", name, "--json"]),
            // What people answered is given to each process.
            (true, true) => command.arg("-C").arg(&folder).args(["resume", name, "--json", "--answers"]).arg(&file),
            (false, _) => command.args(words(&folder, &file)),
        };
        let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output();
        let removed = std::fs::remove_file(&file);
        let ended = ended.map_err(|error| Failure::new(Code::Internal, format!("cannot start: {error}")))?;
        removed.map_err(|error| Failure::io(&file, "remove", &error))?;
        if !journal.is_file() {
            let told = String::from_utf8_lossy(&ended.stderr).into_owned();
            let failure = Failure::new(Code::Usage, format!("{what} cannot be made"));
            return Err(told.lines().take(MOST_LINES).fold(failure, |failure, line| failure.because(line)));
        }
        RunHistory::read(&journal)
    }

    /// Keeps the journal of a run that is done in the folder of the user's.
    fn keep(&self, name: &str, history: &RunHistory) -> Result<()> {
        let Some(folder) = self.folder.as_ref().filter(|_| history.status == "done" && !self.offline) else {
            return Ok(());
        };
        let target = folder.join(format!("{name}.jsonl"));
        if target.is_file() {
            return Ok(());
        }
        std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder, "create", &error))?;
        let own = self.own_journal(name)?;
        let bytes = std::fs::read(&own).map_err(|error| Failure::io(&own, "read", &error))?;
        TempFile::write(&target, &bytes)?.publish(&target)
    }
}
