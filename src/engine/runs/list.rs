//! The list of runs: each with how it began and how far it came, without reading all journals.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::SystemTime;

use super::folder::OpenFolder;
use super::index::{JournalState, RunIndex};
use super::summary::RunSummary;
use super::{LockedRun, RUNS, Runs, check_name};
use crate::engine::run_records::{OpenRecords, Origin};
use crate::error::{Code, Failure, Result};
use crate::journal::lines::{EndRecord, OpenRecord};
use crate::journal::reader;
use crate::model::event::EndStatus;

/// The pieces in which a journal is read to find its first line, in bytes, and the longest first line.
const PIECE: usize = 4 << 10;
const LONGEST_FIRST_LINE: usize = 1 << 20;

/// What a list tells of a run.
pub struct ListedRun {
    pub id: String,
    pub summary: RunSummary,
    /// Whether a process has it locked now.
    pub busy: bool,
    pub origin: Origin,
    /// The user's words for it.
    pub tags: BTreeSet<String>,
    /// Why its journal cannot be read, if so.
    pub failure: Option<Failure>,
}

impl ListedRun {
    /// What it is doing, in one word.
    pub fn status(&self) -> &'static str {
        match (&self.failure, self.busy, self.summary.end) {
            (Some(_), _, _) => "broken",
            (None, true, _) => "running",
            (None, false, Some(status)) => status.name(),
            (None, false, None) => "stopped",
        }
    }

    /// Tells whether somebody or something may be waiting for it: it is running, or lacks an answer, a quota or budget.
    pub fn is_alive(&self) -> bool {
        self.busy || self.summary.end == Some(EndStatus::Waiting)
    }
}

impl Runs {
    /// Returns all runs, oldest first.
    pub fn list(&self) -> Vec<ListedRun> {
        self.listed(self.ids())
    }

    /// Returns the run that began last.
    pub fn newest(&self) -> Option<String> {
        self.list().pop().map(|run| run.id)
    }

    /// Returns how a run that is there began and how far it came.
    pub fn one(&self, id: &str) -> Option<ListedRun> {
        self.listed(vec![id.to_owned()]).pop()
    }

    /// Returns the name of a run that is there.
    ///
    /// # Errors
    ///
    /// `usage` if it is no name of a run, `run-not-found` if there is no such run.
    pub fn named(&self, id: &str) -> Result<String> {
        check_name(id)?;
        let missing = || Failure::new(Code::RunNotFound, format!("there is no run `{id}` here"));
        self.is_run(id).then(|| id.to_owned()).ok_or_else(missing)
    }

    /// Tells whether a process is at a run now.
    pub fn is_busy(&self, id: &str) -> bool {
        let folder = OpenFolder::open(&self.workspace)
            .and_then(|workspace| RUNS.split('/').chain([id]).try_fold(workspace, |at, name| at.enter(name, None)));
        let journal = folder.and_then(|folder| folder.journal_to_read());
        journal.is_ok_and(|journal| matches!(journal.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Returns these runs, oldest first: by the time in the first line, and within a second by when the folder was made.
    /// Names need not begin with a time.
    pub(super) fn listed(&self, ids: Vec<String>) -> Vec<ListedRun> {
        let mut index = RunIndex::open(self.indexes.as_deref(), &self.workspace);
        let records = self.records.open();
        let canonical = self.folder.canonicalize().unwrap_or_else(|_| self.folder.clone());
        let folder = OpenFolder::open(&self.workspace)
            .and_then(|workspace| RUNS.split('/').try_fold(workspace, |at, name| at.enter(name, None)));
        let runs = ids.into_iter().map(|id| {
            let read =
                folder.as_ref().map_err(Failure::clone).and_then(|folder| folder.enter(&id, None)?.journal_to_read());
            let read = read.and_then(|journal| self.look(&id, &journal, &mut index, (&records, &canonical)));
            read.unwrap_or_else(|failure| ListedRun {
                id,
                summary: RunSummary::default(),
                busy: false,
                tags: BTreeSet::new(),
                origin: Origin::Foreign("its journal cannot be read".to_owned()),
                failure: Some(failure),
            })
        });
        let mut runs: Vec<ListedRun> = runs.collect();
        // Without them a list is a list all the same; whoever changes them is told what is wrong with their file.
        let mut tags = self.tags.read().unwrap_or_default();
        runs.iter_mut().for_each(|run| run.tags = tags.remove(&run.id).unwrap_or_default());
        index.write(|id| self.is_run(id));
        runs.sort_by_cached_key(|run| (run.summary.started.clone(), self.made(&run.id), run.id.clone()));
        runs
    }

    fn made(&self, id: &str) -> Option<SystemTime> {
        let journal = || self.journal(id).symlink_metadata().and_then(|found| found.modified());
        let folder = self.folder.join(id).symlink_metadata().and_then(|found| found.created());
        folder.or_else(|_| journal()).ok()
    }

    fn look(
        &self,
        id: &str,
        journal: &File,
        index: &mut RunIndex,
        (records, canonical): (&OpenRecords<'_>, &Path),
    ) -> Result<ListedRun> {
        let path = self.journal(id);
        let failed = |error: std::io::Error| Failure::io(&path, "read", &error);
        let state = JournalState::of(journal).map_err(failed)?;
        let first_line = first_line(journal).map_err(failed)?;
        let origin = records.origin(&self.location(id, &canonical.join(id)), &first_line);
        let busy = matches!(journal.try_lock_shared(), Err(TryLockError::WouldBlock));
        let (summary, failure) = match index.get(id, &state) {
            Some(known) => (known.clone(), None),
            None => {
                let bytes = reader::read_bytes(&path)?;
                let (summary, failure) = RunSummary::read(&path, &bytes);
                // It may have grown meanwhile; and what is broken is told with its line each time.
                if bytes.len() as u64 == state.length && failure.is_none() {
                    index.add(id, state, summary.clone());
                }
                (summary, failure)
            }
        };
        Ok(ListedRun { id: id.to_owned(), summary, busy, origin, tags: BTreeSet::new(), failure })
    }

    /// Keeps the summary of a run whose last line this process has just written.
    pub fn note_end(&self, run: &LockedRun, open: &OpenRecord, end: &EndRecord) {
        // A time of its own, finer than what a clock gives to files, so that a later change is seen whenever it comes.
        let _ = run.file.set_modified(SystemTime::now());
        if let Ok(state) = JournalState::of(&run.file) {
            RunIndex::append(self.indexes.as_deref(), &self.workspace, (&run.id, state, RunSummary::at_end(open, end)));
        }
    }
}

/// Returns the first line with its line end; empty if no line is complete.
fn first_line(journal: &File) -> std::io::Result<Vec<u8>> {
    let mut line = vec![0; PIECE];
    let mut length = 0;
    loop {
        let read = journal.read_at(&mut line[length..], length as u64)?;
        if let Some(end) = memchr::memchr(b'\n', &line[length..length + read]) {
            line.truncate(length + end + 1);
            return Ok(line);
        }
        length += read;
        if read == 0 || length >= LONGEST_FIRST_LINE {
            return Ok(Vec::new());
        }
        line.resize(length + PIECE, 0);
    }
}
