//! Runs in a folder of the workspace: `.nietz/runs/<run>/` with the journal, which is the file that is locked.
//!
//! Anything in a workspace may have come with a checkout, so no part of the path from it to a journal may be a link.

mod folder;
mod index;
mod list;

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::Mode;

use super::summary::RunSummary;
use super::tags::TagFile;
use super::{HeldRun, ListedRun, LockedRun, RunStore, check_name};
use crate::disk::{is_at, temp_file};
use crate::engine::run_records::{Origin, RunLocation, RunRecords};
use crate::error::{Code, Failure, Result};
use crate::host::attachments::{self, AttachmentStore};
use crate::host::ui::mailbox::{AnswerFolder, AnswerStore};
use crate::journal::fault_injection::InjectedFault;
use crate::journal::lines::{EndRecord, OpenRecord};
use crate::journal::reader;
use crate::journal::writer::{JournalTail, JournalWriter};
use folder::OpenFolder;
use index::{JournalState, RunIndex};

/// The folder of runs below a workspace.
const RUNS: &str = ".nietz/runs";
const JOURNAL: &str = "journal.jsonl";
const IGNORE: &str = ".gitignore";
/// How the folder of a run is called while it is removed.
const REMOVED: &str = ".removed-";
/// Other users of the workspace have runs in the shared folders. A run's own folder and journal are for its user alone,
/// because journals hold what people said.
const OPEN_TO_ALL: Mode = Mode::from_raw_mode(0o777);
const PRIVATE_FOLDER: Mode = Mode::from_raw_mode(0o700);
const PRIVATE_FILE: Mode = Mode::from_raw_mode(0o600);
/// How often locking is tried again when the journal is replaced at the same moment.
const TRIES: usize = 100;
/// How often and how long a locked journal is waited for.
const MOMENTS: usize = 5;
const MOMENT: Duration = Duration::from_millis(2);

/// The runs in a folder of one workspace.
pub(super) struct RunFolder {
    workspace: PathBuf,
    folder: PathBuf,
    records: RunRecords,
    /// Where summaries of runs are kept, if anywhere.
    indexes: Option<PathBuf>,
    tags: TagFile,
}

/// A run's journal that this process has locked, as long as this file is open.
struct LockedJournal {
    path: PathBuf,
    file: File,
    end: EndNote,
}

/// Where it is noted how a run ended.
struct EndNote {
    run: String,
    workspace: PathBuf,
    indexes: Option<PathBuf>,
}

impl RunFolder {
    pub(super) fn new(workspace: &Path, records: RunRecords, indexes: Option<PathBuf>) -> RunFolder {
        let tags = TagFile::new(&records.tags(), workspace);
        RunFolder { workspace: workspace.to_owned(), folder: workspace.join(RUNS), records, indexes, tags }
    }

    /// Removes `.nietz` if it has nothing but its own `.gitignore`.
    fn remove_own_folder(&self) {
        let Some(own) = self.folder.parent() else { return };
        let names = std::fs::read_dir(own).map(|entries| entries.flatten().map(|entry| entry.file_name()).collect());
        let names: Vec<std::ffi::OsString> = names.unwrap_or_default();
        if names.iter().all(|name| name == IGNORE) {
            let _ = std::fs::remove_file(own.join(IGNORE));
            let _ = std::fs::remove_dir(own);
        }
    }

    /// Locks the journal itself: somebody who cleans up could remove a separate lock file, and a second process would then
    /// lock a new one.
    fn lock_journal(&self, id: &str, folder: &OpenFolder, make: bool) -> Result<LockedJournal> {
        folder.refuse_links()?;
        let path = self.path(id);
        let mut looked = 0;
        for _ in 0..TRIES {
            let file = folder.journal(make)?;
            match file.try_lock() {
                // The file may have been moved or replaced between opening and locking.
                Ok(()) if is_at(&file, &path) => return Ok(LockedJournal { path, file, end: self.end_of(id) }),
                Ok(()) => {}
                // Who lists runs holds each lock for a moment.
                Err(TryLockError::WouldBlock) if looked < MOMENTS => {
                    looked += 1;
                    std::thread::sleep(MOMENT);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(Failure::new(Code::RunBusy, format!("another process is at run {id}"))
                        .hint("wait for it or end it; two processes never write one journal"));
                }
                Err(TryLockError::Error(error)) => return Err(Failure::io(&path, "lock", &error)),
            }
        }
        let message = format!("{} is moved or replaced again and again", path.display());
        Err(Failure::new(Code::RunBusy, message).hint("end whatever does that"))
    }

    fn canonical_folder(&self, id: &str) -> std::io::Result<PathBuf> {
        self.folder.join(id).canonicalize()
    }

    fn location<'a>(&'a self, run: &'a str, folder: &'a Path) -> RunLocation<'a> {
        RunLocation { workspace: &self.workspace, folder, run }
    }

    /// Tells whether a folder with a journal has this name, and neither is a link.
    fn is_run(&self, name: &str) -> bool {
        let kind_of = |path: &Path| path.symlink_metadata().map(|metadata| metadata.file_type());
        let folder = self.folder.join(name);
        kind_of(&folder).is_ok_and(|kind| kind.is_dir())
            && kind_of(&folder.join(JOURNAL)).is_ok_and(|kind| kind.is_file())
    }

    /// Returns the path of a run's journal.
    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(id).join(JOURNAL)
    }

    fn end_of(&self, id: &str) -> EndNote {
        EndNote { run: id.to_owned(), workspace: self.workspace.clone(), indexes: self.indexes.clone() }
    }
}

impl RunStore for RunFolder {
    fn create(&self, id: &str) -> Result<LockedRun> {
        check_name(id)?;
        let mut at = OpenFolder::open(&self.workspace)?;
        for (depth, name) in RUNS.split('/').enumerate() {
            at = at.enter(name, Some(OPEN_TO_ALL))?;
            if depth == 0 {
                at.ignore_all()?;
            }
        }
        let folder = at.enter(id, Some(PRIVATE_FOLDER))?;
        // A folder from a checkout may be open to all. Another user's folder cannot be changed; its journal is theirs.
        let _ = rustix::fs::fchmod(&folder.folder, PRIVATE_FOLDER);
        let locked = self.lock_journal(id, &folder, true)?;
        match locked.file.metadata() {
            Ok(found) if found.len() > 0 => Err(Failure::new(Code::Usage, format!("there is a run {id} already"))
                .hint(format!("go on with it: nietz resume {id}"))),
            _ => Ok(locked.run(id)),
        }
    }

    fn discard(&self, run: LockedRun) {
        self.records.remove(&self.location(&run.id, &self.folder.join(&run.id)));
        // What cannot be removed, or holds more than this run left, stays and is listed.
        let folder = self.folder.join(&run.id);
        let removed = attachments::remove(&folder)
            .and_then(|()| std::fs::remove_file(self.path(&run.id)))
            .and_then(|()| std::fs::remove_dir(&folder));
        if removed.is_ok() && std::fs::remove_dir(&self.folder).is_ok() {
            self.remove_own_folder();
        }
    }

    fn remove(&self, id: &str) -> Result<()> {
        let locked = self.lock(id)?;
        let folder = self.folder.join(id);
        let canonical = self.canonical_folder(id).unwrap_or_else(|_| folder.clone());
        // A folder of another name is no run: one that a kill leaves half removed is none either.
        let gone = self.folder.join(format!("{REMOVED}{id}"));
        let failed = |error: std::io::Error| Failure::io(&folder, "remove", &error);
        std::fs::rename(&folder, &gone).map_err(failed)?;
        self.records.remove(&self.location(id, &canonical));
        self.tags.forget(id);
        drop(locked);
        std::fs::remove_dir_all(&gone).map_err(failed)
    }

    fn sweep(&self) {
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(REMOVED) {
                // What cannot be removed stays for the next time.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    fn lock(&self, id: &str) -> Result<LockedRun> {
        check_name(id)?;
        let mut at = OpenFolder::open(&self.workspace)?;
        for name in RUNS.split('/').chain([id]) {
            at = at.enter(name, None)?;
        }
        Ok(self.lock_journal(id, &at, false)?.run(id))
    }

    fn note_own(&self, id: &str, first_line: &[u8], everywhere: &[&str]) -> Result<Option<File>> {
        let folder = self.canonical_folder(id).map_err(|error| Failure::io(&self.folder.join(id), "find", &error))?;
        self.records.add(&self.location(id, &folder), first_line, everywhere).map(Some)
    }

    fn origin(&self, id: &str, first_line: &[u8]) -> Origin {
        match self.canonical_folder(id) {
            Ok(folder) => self.records.origin(&self.location(id, &folder), first_line),
            Err(error) => Origin::Foreign(format!("its folder cannot be found: {error}")),
        }
    }

    fn ids(&self) -> Result<Vec<String>> {
        let mut ids: Vec<String> = std::fs::read_dir(&self.folder)
            .map(|entries| {
                entries
                    .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                    .filter(|name| !name.starts_with('.') && self.is_run(name))
                    .collect()
            })
            .unwrap_or_default();
        ids.sort();
        Ok(ids)
    }

    fn tag(&self, id: &str, more: &[String], less: &[String]) -> Result<BTreeSet<String>> {
        self.tags.change(id, more, less)
    }

    fn import(&self, id: &str, lines: &[u8], own: bool) -> Result<()> {
        let LockedRun { journal, held, .. } = self.create(id)?;
        let failed = |error: std::io::Error| Failure::io(&journal, "write", &error);
        let written = std::fs::write(&journal, lines).and_then(|()| std::fs::File::open(&journal)?.sync_all());
        written.map_err(failed)?;
        if own {
            self.note_own(id, reader::first_line(lines), &[])?;
        }
        drop(held);
        Ok(())
    }

    fn has(&self, id: &str) -> Result<bool> {
        Ok(self.is_run(id))
    }

    fn is_busy(&self, id: &str) -> Result<bool> {
        Ok(self.is_locked(id))
    }

    fn listed(&self, ids: Vec<String>) -> Result<Vec<ListedRun>> {
        Ok(self.look_at(ids))
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn journal(&self, id: &str) -> Result<PathBuf> {
        Ok(self.path(id))
    }

    fn attachments(&self, id: &str) -> AttachmentStore {
        AttachmentStore::in_run(&self.folder.join(id))
    }

    fn answers(&self, id: &str) -> Arc<dyn AnswerStore> {
        let folder = self.canonical_folder(id).unwrap_or_else(|_| self.folder.join(id));
        Arc::new(AnswerFolder::new(self.records.answers(&self.location(id, &folder))))
    }
}

impl LockedJournal {
    fn run(self, id: &str) -> LockedRun {
        LockedRun { id: id.to_owned(), journal: self.path.clone(), held: Box::new(self) }
    }

    /// Returns where a broken journal is kept.
    fn broken_path(&self, number: u32) -> PathBuf {
        self.path.with_file_name(format!("journal.broken-{number}.jsonl"))
    }

    /// Cuts the journal before its first broken line, and keeps a copy of the broken file beside it.
    fn cut_broken(&self) -> Result<()> {
        let bytes = reader::read_bytes(&self.path)?;
        let length = reader::intact_prefix(&self.path, &bytes).length;
        // The locked file must stay at its path, so it is copied and then cut.
        let (mut copy, path) = self.create_broken_file()?;
        let failed = |error: std::io::Error| Failure::io(&path, "write", &error);
        std::io::Write::write_all(&mut copy, &bytes).and_then(|()| copy.sync_all()).map_err(failed)?;
        let cut = self.file.set_len(length).and_then(|()| self.file.sync_all());
        cut.map_err(|error| Failure::io(&self.path, "cut", &error))
    }

    /// Creates a new file for the copy of a broken journal.
    fn create_broken_file(&self) -> Result<(File, PathBuf)> {
        let mut number = 1;
        loop {
            let path = self.broken_path(number);
            match File::options().write(true).create_new(true).mode(PRIVATE_FILE.as_raw_mode()).open(&path) {
                Ok(file) => return Ok((file, path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(Failure::io(&path, "write", &error)),
            }
        }
    }
}

impl HeldRun for LockedJournal {
    fn writer(&self, tail: JournalTail, fault: Option<InjectedFault>) -> Result<JournalWriter> {
        let file = self.file.try_clone().map_err(|error| Failure::io(&self.path, "open", &error))?;
        JournalWriter::from_file(&self.path, file, tail, fault)
    }

    fn keep_whole_part(&self) -> Result<()> {
        self.cut_broken()
    }

    fn was_cut(&self) -> bool {
        self.broken_path(1).exists()
    }

    fn attachments(&self) -> AttachmentStore {
        AttachmentStore::in_run(temp_file::parent_folder(&self.path))
    }

    /// Keeps the summary of a run whose last line this process has just written.
    fn note_end(&self, open: &OpenRecord, end: &EndRecord) {
        // A time of its own, finer than what a clock gives to files, so that a later change is seen whenever it comes.
        let _ = self.file.set_modified(SystemTime::now());
        if let Ok(state) = JournalState::of(&self.file) {
            let EndNote { run, workspace, indexes } = &self.end;
            RunIndex::append(indexes.as_deref(), workspace, (run, state, RunSummary::at_end(open, end)));
        }
    }
}
