//! The list of runs: each with how it began and how far it came, without reading all journals.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::SystemTime;

use super::folder::OpenFolder;
use super::index::{JournalState, RunIndex};
use super::{RUNS, RunFolder};
use crate::engine::run_records::{OpenRecords, Origin};
use crate::engine::runs::ListedRun;
use crate::engine::runs::summary::RunSummary;
use crate::error::{Failure, Result};
use crate::journal::reader;

/// The pieces in which a journal is read to find its first line, in bytes, and the longest first line.
const PIECE: usize = 4 << 10;
const LONGEST_FIRST_LINE: usize = 1 << 20;

impl RunFolder {
    /// Tells whether a process is at a run now.
    pub(super) fn is_locked(&self, id: &str) -> bool {
        let folder = OpenFolder::open(&self.workspace)
            .and_then(|workspace| RUNS.split('/').chain([id]).try_fold(workspace, |at, name| at.enter(name, None)));
        let journal = folder.and_then(|folder| folder.journal_to_read());
        journal.is_ok_and(|journal| matches!(journal.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Returns these runs, oldest first: by the time in the first line, and within a second by when the folder was made.
    /// Names need not begin with a time.
    pub(super) fn look_at(&self, ids: Vec<String>) -> Vec<ListedRun> {
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
                stored: None,
                began_by: None,
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
        let journal = || self.path(id).symlink_metadata().and_then(|found| found.modified());
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
        let path = self.path(id);
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
        Ok(ListedRun {
            id: id.to_owned(),
            summary,
            busy,
            origin,
            tags: BTreeSet::new(),
            stored: None,
            began_by: None,
            failure,
        })
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
