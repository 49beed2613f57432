//! Creates, locks, finds and lists the runs of a workspace.
//!
//! A [`RunStore`] keeps them: in a folder of the workspace (`files`), which is the default, or on a server (`server`). What is the same
//! for both stands here: names, and which run is meant by a part of one. `summary` is what lists tell of a run.

mod files;
#[cfg(feature = "postgres")]
pub(crate) mod server;
mod store;
mod summary;
mod tags;

pub(crate) use store::{HeldRun, RunStore};
pub use summary::RunSummary;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::history::History;
use crate::engine::run_records::{Origin, RunRecords};
use crate::error::{Code, Failure, Result, nearest};
use crate::host::attachments::AttachmentStore;
use crate::host::ui::mailbox::AnswerStore;
use crate::journal::fault_injection::InjectedFault;
use crate::journal::lines::{EndRecord, OpenRecord};
use crate::journal::writer::{JournalTail, JournalWriter};
use crate::model::event::EndStatus;
use crate::model::text::{excerpt, line};

/// What helps whoever looks for a run in a folder that has none.
pub(crate) const WHERE_RUNS_STAND: &str =
    "a run stands in the project in which it began: `nietz where` tells which this is, -C FOLDER names another";
/// What names the user's run that began last, in the place of its name.
pub const LATEST: &str = "latest";
/// How many runs a message names.
const NAMED: usize = 5;
/// The longest name of a run, in bytes.
const LONGEST_NAME: usize = 100;
/// The longest tag, in letters.
const LONGEST_TAG: usize = 40;

/// The runs of one workspace.
pub struct Runs {
    store: Box<dyn RunStore>,
}

/// A run that this process has locked, until this value is dropped.
pub struct LockedRun {
    pub id: String,
    /// The journal's file, or the copy of it that is read.
    pub journal: PathBuf,
    held: Box<dyn HeldRun>,
}

/// What a list tells of a run.
pub struct ListedRun {
    pub id: String,
    pub summary: RunSummary,
    /// Whether a process has it locked now.
    pub busy: bool,
    pub origin: Origin,
    /// The user's words for it.
    pub tags: BTreeSet<String>,
    /// What a server says of it: `queued`, `running`, `waiting`, `stopped`, `stuck`, `done`, `failed` or `cancelled`.
    pub stored: Option<String>,
    /// Who began it, where a server knows that: their name, or their role there.
    pub began_by: Option<String>,
    /// Why its journal cannot be read, if so.
    pub failure: Option<Failure>,
}

impl ListedRun {
    /// What it is doing, in one word.
    pub fn status(&self) -> &'static str {
        const OF_A_SERVER: [&str; 5] = ["queued", "stopped", "stuck", "cancelled", "waiting"];
        let stored = self.stored.as_deref().and_then(|stored| OF_A_SERVER.into_iter().find(|name| *name == stored));
        if let Some(stored) = stored.filter(|_| self.failure.is_none()) {
            return stored;
        }
        match (&self.failure, self.busy, self.summary.end) {
            (Some(_), _, _) => "broken",
            (None, true, _) => "running",
            (None, false, Some(status)) => status.name(),
            (None, false, None) => "stopped",
        }
    }

    /// Tells whether somebody or something may be waiting for it: it is running, or lacks an answer, a quota or budget.
    pub fn is_alive(&self) -> bool {
        self.busy
            || matches!(self.stored.as_deref(), Some("queued" | "stuck" | "waiting"))
            || self.summary.end == Some(EndStatus::Waiting)
    }
}

impl Runs {
    /// Expects `workspace` as an absolute path without links; `records` are those of the user's own runs, and `indexes` the folder of
    /// the user's cache in which summaries of runs are kept, if any.
    pub fn new(workspace: &Path, records: RunRecords, indexes: Option<PathBuf>) -> Runs {
        Runs { store: Box::new(files::RunFolder::new(workspace, records, indexes)) }
    }

    /// The runs of a team, on a server.
    #[cfg(feature = "postgres")]
    pub(crate) fn on_server(server: crate::store::postgres::Server, process: server::Process) -> Runs {
        Runs { store: Box::new(server::ServerRuns::new(server, process)) }
    }

    /// Makes the place of a new run, for the user alone, and locks the run. An existing run is left as it is.
    ///
    /// # Errors
    ///
    /// `usage` if the name is invalid or the run exists, `path-refused` if a part of its path is a link, `run-busy` if
    /// another process has it locked, `disk-failed` or what a server says otherwise.
    pub fn create(&self, id: &str) -> Result<LockedRun> {
        check_name(id)?;
        self.store.create(id)
    }

    /// Locks an existing run.
    ///
    /// # Errors
    ///
    /// As [`Runs::create`].
    pub fn lock(&self, id: &str) -> Result<LockedRun> {
        check_name(id)?;
        self.store.lock(id)
    }

    /// Removes a run that was refused before it did anything, and the folders that hold nothing else.
    pub fn discard(&self, run: LockedRun) {
        self.store.discard(run);
    }

    /// Removes a run with all that is kept of it beside its journal; documents, branches and worktrees stay.
    ///
    /// # Errors
    ///
    /// Those of [`Runs::lock`], and `disk-failed` if it cannot be removed.
    pub fn remove(&self, id: &str) -> Result<()> {
        check_name(id)?;
        self.store.remove(id)
    }

    /// Takes in a run with the lines of its journal, which were checked. What its first line grants holds if the user says that it
    /// is `own`.
    ///
    /// # Errors
    ///
    /// As [`Runs::create`].
    pub fn import(&self, id: &str, lines: &[u8], own: bool) -> Result<()> {
        check_name(id)?;
        self.store.import(id, lines, own)
    }

    /// Removes what removals left that were ended half-way.
    pub fn sweep(&self) {
        self.store.sweep();
    }

    /// Gives a run tags, takes some away, and returns those that it has now.
    ///
    /// # Errors
    ///
    /// `usage` if one of them is no tag, `run-not-found` if there is no such run, and those of what keeps them.
    pub fn tag(&self, id: &str, more: &[String], less: &[String]) -> Result<BTreeSet<String>> {
        more.iter().try_for_each(|tag| check_tag(tag))?;
        self.named(id)?;
        self.store.tag(id, more, less)
    }

    /// Records that the user begins this run here, with this first line, of a flow that reads the documents at these paths everywhere.
    /// Returns a file that is to be synced together with that line, if there is one. The run must be created.
    ///
    /// # Errors
    ///
    /// As [`RunRecords::add`].
    pub fn note_own(&self, id: &str, first_line: &[u8], everywhere: &[&str]) -> Result<Option<File>> {
        self.store.note_own(id, first_line, everywhere)
    }

    /// Tells whether the user began the run whose journal has this first line.
    pub fn origin(&self, id: &str, first_line: &[u8]) -> Origin {
        self.store.origin(id, first_line)
    }

    /// Returns the id of the run that `wanted` names, by its whole name, by a part that no other has, or as [`LATEST`]; without a
    /// name the user's latest run that can be resumed.
    ///
    /// # Errors
    ///
    /// `run-not-found` if no run fits or several do.
    pub fn find(&self, wanted: Option<&str>) -> Result<String> {
        match wanted {
            Some(wanted) => {
                let ids = self.ids()?;
                match wanted == LATEST && !ids.iter().any(|id| id == LATEST) {
                    true => self.newest_own(),
                    false => Runs::match_name(&ids, wanted),
                }
            }
            None => self.latest(),
        }
    }

    /// Returns the id of the run that `wanted` names: any run by its whole name, the user's own also by a part or as [`LATEST`].
    ///
    /// # Errors
    ///
    /// `run-not-found` if no run fits or several do.
    pub fn find_own(&self, wanted: &str) -> Result<String> {
        let mut ids = self.ids()?;
        if wanted == LATEST && !ids.iter().any(|id| id == LATEST) {
            return self.newest_own();
        }
        ids.retain(|id| id.contains(wanted));
        let listed = self.store.listed(ids.clone())?;
        let own = listed.into_iter().filter(|run| run.id == wanted || run.origin == Origin::Own);
        let own: Vec<String> = own.map(|run| run.id).collect();
        Runs::match_name(&own, wanted).map_err(|failure| match own.is_empty() && !ids.is_empty() {
            true => failure.hint("a run that was not begun by you in this folder is given by its whole name"),
            false => failure,
        })
    }

    fn match_name(ids: &[String], wanted: &str) -> Result<String> {
        if ids.iter().any(|id| id == wanted) {
            return check_name(wanted).map(|()| wanted.to_owned());
        }
        let fits: Vec<&String> = ids.iter().filter(|id| !wanted.is_empty() && id.contains(wanted)).collect();
        match fits.as_slice() {
            // A folder can have any name, but only a valid run name may appear in command lines.
            [one] => check_name(one).map(|()| (*one).clone()),
            [] => {
                let failure = Failure::new(Code::RunNotFound, format!("there is no run `{}` here", excerpt(wanted)));
                Err(match nearest(wanted, ids.iter().map(String::as_str)) {
                    Some(near) => failure.hint(format!("did you mean `{near}`?")),
                    None if ids.is_empty() => failure.hint(WHERE_RUNS_STAND),
                    None => failure.hint("`nietz runs` lists them"),
                })
            }
            several => {
                let mut names: Vec<String> = several.iter().take(NAMED).map(|id| excerpt(id)).collect();
                if several.len() > NAMED {
                    names.push(format!("and {} more", several.len() - NAMED));
                }
                Err(Failure::new(Code::RunNotFound, format!("`{}` could be {}", excerpt(wanted), names.join(", "))))
            }
        }
    }

    /// Returns the user's run that began last, whatever it has come to.
    fn newest_own(&self) -> Result<String> {
        let own = self.list()?.into_iter().rev().find(|run| run.origin == Origin::Own);
        own.map(|run| run.id)
            .ok_or_else(|| Failure::new(Code::RunNotFound, "there is no run of yours here").hint(WHERE_RUNS_STAND))
    }

    /// Returns the user's latest run that can be resumed, preferably one that no process has locked. Foreign runs are only
    /// listed in the failure.
    fn latest(&self) -> Result<String> {
        let (mut foreign, mut busy) = (Vec::new(), None);
        let all = self.list()?;
        if all.is_empty() {
            return Err(Failure::new(Code::RunNotFound, "there are no runs here").hint(WHERE_RUNS_STAND));
        }
        for run in all.into_iter().rev() {
            // Whoever goes on with a run goes on with those that it has begun.
            if run.summary.is_over() || run.summary.of.is_some() {
                continue;
            }
            match run.origin {
                Origin::Own if !run.busy => return Ok(run.id),
                Origin::Own => busy = busy.or(Some(run.id)),
                Origin::Foreign(_) => foreign.push(excerpt(&run.id)),
            }
        }
        if let Some(id) = busy {
            return Ok(id);
        }
        let failure = Failure::new(Code::RunNotFound, "there is no run of yours here that can go on");
        if foreign.is_empty() {
            return Err(failure.hint("`nietz runs` lists all; name one to replay it"));
        }
        let more = foreign.len().saturating_sub(NAMED);
        foreign.truncate(NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let failure = failure.because(format!("not begun by you in this folder: {}{more}", foreign.join(", ")));
        Err(failure.hint("nothing that a foreign run grants or names holds: `nietz explain run-foreign`"))
    }

    /// Returns all runs, oldest first.
    ///
    /// # Errors
    ///
    /// Those of a server.
    pub fn list(&self) -> Result<Vec<ListedRun>> {
        self.store.all()
    }

    /// Returns the run that began last.
    ///
    /// # Errors
    ///
    /// Those of a server.
    pub fn newest(&self) -> Result<Option<String>> {
        Ok(self.list()?.pop().map(|run| run.id))
    }

    /// Returns how a run that is there began and how far it came.
    ///
    /// # Errors
    ///
    /// Those of a server.
    pub fn one(&self, id: &str) -> Result<Option<ListedRun>> {
        Ok(self.store.listed(vec![id.to_owned()])?.pop())
    }

    /// Returns the name of a run that is there.
    ///
    /// # Errors
    ///
    /// `usage` if it is no name of a run, `run-not-found` if there is no such run.
    pub fn named(&self, id: &str) -> Result<String> {
        check_name(id)?;
        let missing = || Failure::new(Code::RunNotFound, format!("there is no run `{id}` here"));
        self.store.has(id)?.then(|| id.to_owned()).ok_or_else(missing)
    }

    /// Tells whether a process is at a run now.
    ///
    /// # Errors
    ///
    /// Those of a server.
    pub fn is_busy(&self, id: &str) -> Result<bool> {
        self.store.is_busy(id)
    }

    /// Returns the ids of all runs, by name.
    ///
    /// # Errors
    ///
    /// Those of a server.
    pub fn ids(&self) -> Result<Vec<String>> {
        self.store.ids()
    }

    /// Returns the folder of all runs, or of the copies that are read of them.
    pub fn folder(&self) -> &Path {
        self.store.folder()
    }

    /// Returns where the images and PDFs of a run are.
    pub fn attachments(&self, id: &str) -> AttachmentStore {
        self.store.attachments(id)
    }

    /// Returns where answers to a run's questions are kept that are given elsewhere.
    pub fn answers(&self, id: &str) -> Arc<dyn AnswerStore> {
        self.store.answers(id)
    }

    /// Returns the path of a run's journal. That of a run on a server is a copy, which has all lines that are there now.
    ///
    /// # Errors
    ///
    /// Those of a server, and `disk-failed` if the copy cannot be written. The file need not exist.
    pub fn journal(&self, id: &str) -> Result<PathBuf> {
        self.store.journal(id)
    }
}

/// Checks a run's name, which becomes part of paths and branch names.
///
/// # Errors
///
/// `usage` if the name is invalid.
pub fn check_name(id: &str) -> Result<()> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let valid = !id.is_empty() && id.len() <= LONGEST_NAME && id.chars().all(allowed);
    if valid && !id.starts_with(['.', '-']) && !id.ends_with('.') && !id.contains("..") {
        return Ok(());
    }
    Err(Failure::new(Code::Usage, format!("`{}` is not a valid name for a run", excerpt(id)))
        .hint(format!("a name is letters, digits, `-`, `_` and `.`, up to {LONGEST_NAME}; never a path")))
}

/// Checks a tag.
///
/// # Errors
///
/// `usage` if it is empty, too long, or more than one word.
fn check_tag(tag: &str) -> Result<()> {
    let is_word = !tag.is_empty() && tag.chars().count() <= LONGEST_TAG && !tag.contains(char::is_whitespace);
    if is_word && !tag.starts_with('-') && line(tag) == tag {
        return Ok(());
    }
    Err(Failure::new(Code::Usage, format!("`{}` is no tag", excerpt(tag)))
        .hint(format!("a tag is one word of up to {LONGEST_TAG} letters: good, release-7, to:read")))
}

impl LockedRun {
    /// Returns where the run keeps its images and PDFs.
    pub fn attachments(&self) -> AttachmentStore {
        self.held.attachments()
    }

    /// Returns a writer that continues the journal behind `tail`.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the journal cannot be cut to the length of the tail.
    pub fn writer(&self, tail: JournalTail, fault: Option<InjectedFault>) -> Result<JournalWriter> {
        self.held.writer(tail, fault)
    }

    /// Keeps the summary of a run whose last line this process has just written.
    pub fn note_end(&self, open: &OpenRecord, end: &EndRecord) {
        self.held.note_end(open, end);
    }

    /// Reads what the run has done so far. With `whole`, a broken journal is cut before its first broken line, and a copy
    /// of the broken file is kept beside it.
    ///
    /// # Errors
    ///
    /// As [`History::read`]; with `whole` also `disk-failed` if the copy cannot be written.
    pub fn read_history(&self, whole: bool) -> Result<(History, JournalTail)> {
        let (mut history, tail) = match History::read(&self.journal) {
            Err(failure) if whole && failure.code == Code::JournalBroken => {
                self.held.keep_whole_part()?;
                History::read(&self.journal)?
            }
            other => other?,
        };
        history.truncated = self.held.was_cut();
        Ok((history, tail))
    }
}
