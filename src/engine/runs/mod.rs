//! Creates, locks, finds and lists the runs of a workspace: `.nietz/runs/<run>/` with the journal, which is the file that
//! is locked.
//!
//! Anything in a workspace may have come with a checkout, so no part of the path from it to a journal may be a link.

mod folder;
mod index;
mod list;
mod summary;
mod tags;

pub use list::ListedRun;
pub use summary::RunSummary;

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Mode;

use crate::disk::{is_at, temp_file};
use crate::engine::history::History;
use crate::engine::run_records::{Origin, RunLocation, RunRecords};
use crate::error::{Code, Failure, Result, nearest};
use crate::host::attachments::{self, AttachmentStore};
use crate::journal::fault_injection::InjectedFault;
use crate::journal::reader;
use crate::journal::writer::{JournalTail, JournalWriter};
use crate::model::text::excerpt;
use folder::OpenFolder;
use tags::TagFile;

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
/// How many runs a message names.
const NAMED: usize = 5;
/// The longest name of a run, in bytes.
const LONGEST_NAME: usize = 100;

/// The runs of one workspace.
pub struct Runs {
    workspace: PathBuf,
    folder: PathBuf,
    records: RunRecords,
    /// Where summaries of runs are kept, if anywhere.
    indexes: Option<PathBuf>,
    tags: TagFile,
}

/// A run that this process has locked, until this value is dropped.
pub struct LockedRun {
    pub id: String,
    pub journal: PathBuf,
    /// The journal, locked as long as this file is open.
    file: File,
}

impl Runs {
    /// Expects `workspace` as an absolute path without links; `records` are those of the user's own runs.
    pub fn new(workspace: &Path, records: RunRecords) -> Runs {
        let tags = TagFile::new(&records.tags(), workspace);
        Runs { workspace: workspace.to_owned(), folder: workspace.join(RUNS), records, indexes: None, tags }
    }

    /// Keeps summaries of runs in this folder of the user's cache.
    #[must_use]
    pub fn with_indexes(self, folder: PathBuf) -> Runs {
        Runs { indexes: Some(folder), ..self }
    }

    /// Makes the folder of a new run, for the user alone, and locks the run. An existing run is left as it is.
    ///
    /// # Errors
    ///
    /// `usage` if the name is invalid or the run exists, `path-refused` if a part of its path is a link, `run-busy` if
    /// another process has it locked, `disk-failed` otherwise.
    pub fn create(&self, id: &str) -> Result<LockedRun> {
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
            _ => Ok(locked),
        }
    }

    /// Removes a run that was refused before it did anything, and the folders that hold nothing else.
    pub fn discard(&self, run: LockedRun) {
        self.records.remove(&self.location(&run.id, &self.folder.join(&run.id)));
        // What cannot be removed, or holds more than this run left, stays and is listed.
        let folder = self.folder.join(&run.id);
        let removed = attachments::remove(&folder)
            .and_then(|()| std::fs::remove_file(&run.journal))
            .and_then(|()| std::fs::remove_dir(&folder));
        if removed.is_ok() && std::fs::remove_dir(&self.folder).is_ok() {
            self.remove_own_folder();
        }
    }

    /// Removes a run with all that is kept of it beside its journal; documents, branches and worktrees stay.
    ///
    /// # Errors
    ///
    /// Those of [`Runs::lock`], and `disk-failed` if it cannot be removed.
    pub fn remove(&self, id: &str) -> Result<()> {
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

    /// Gives a run tags, takes some away, and returns those that it has now.
    ///
    /// # Errors
    ///
    /// `usage` if one of them is no tag, `run-not-found` if there is no such run, and those of the file that keeps them.
    pub fn tag(&self, id: &str, more: &[String], less: &[String]) -> Result<BTreeSet<String>> {
        more.iter().try_for_each(|tag| tags::check(tag))?;
        self.named(id)?;
        self.tags.change(id, |own| {
            own.extend(more.iter().cloned());
            own.retain(|tag| !less.contains(tag));
        })
    }

    /// Removes what removals left that were ended half-way.
    pub fn sweep(&self) {
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(REMOVED) {
                // What cannot be removed stays for the next time.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
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

    /// Locks an existing run.
    ///
    /// # Errors
    ///
    /// `usage` if the name is invalid, `path-refused` if a part of its path is a link, `run-busy` if another process has
    /// it locked, `disk-failed` otherwise.
    pub fn lock(&self, id: &str) -> Result<LockedRun> {
        check_name(id)?;
        let mut at = OpenFolder::open(&self.workspace)?;
        for name in RUNS.split('/').chain([id]) {
            at = at.enter(name, None)?;
        }
        self.lock_journal(id, &at, false)
    }

    /// Locks the journal itself: somebody who cleans up could remove a separate lock file, and a second process would then
    /// lock a new one.
    fn lock_journal(&self, id: &str, folder: &OpenFolder, make: bool) -> Result<LockedRun> {
        folder.refuse_links()?;
        let path = self.journal(id);
        let mut looked = 0;
        for _ in 0..TRIES {
            let file = folder.journal(make)?;
            match file.try_lock() {
                // The file may have been moved or replaced between opening and locking.
                Ok(()) if is_at(&file, &path) => return Ok(LockedRun { id: id.to_owned(), journal: path, file }),
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

    /// Records that the user begins this run here, with this first line, of a flow that reads the documents at these paths everywhere.
    /// The run's folder must exist.
    ///
    /// # Errors
    ///
    /// As [`RunRecords::add`].
    pub fn note_own(&self, id: &str, first_line: &[u8], everywhere: &[&str]) -> Result<File> {
        let folder = self.canonical_folder(id).map_err(|error| Failure::io(&self.folder.join(id), "find", &error))?;
        self.records.add(&self.location(id, &folder), first_line, everywhere)
    }

    /// Tells whether the user began the run whose journal has this first line.
    pub fn origin(&self, id: &str, first_line: &[u8]) -> Origin {
        match self.canonical_folder(id) {
            Ok(folder) => self.records.origin(&self.location(id, &folder), first_line),
            Err(error) => Origin::Foreign(format!("its folder cannot be found: {error}")),
        }
    }

    fn canonical_folder(&self, id: &str) -> std::io::Result<PathBuf> {
        self.folder.join(id).canonicalize()
    }

    fn location<'a>(&'a self, run: &'a str, folder: &'a Path) -> RunLocation<'a> {
        RunLocation { workspace: &self.workspace, folder, run }
    }

    /// Returns the id of the run that `wanted` names, by its whole name or by a part that no other has; without a name the
    /// user's latest run that can be resumed.
    ///
    /// # Errors
    ///
    /// `run-not-found` if no run fits or several do.
    pub fn find(&self, wanted: Option<&str>) -> Result<String> {
        match wanted {
            Some(wanted) => Runs::match_name(&self.ids(), wanted),
            None => self.latest(),
        }
    }

    /// Returns the id of the run that `wanted` names: any run by its whole name, the user's own also by a part.
    ///
    /// # Errors
    ///
    /// `run-not-found` if no run fits or several do.
    pub fn find_own(&self, wanted: &str) -> Result<String> {
        let mut ids = self.ids();
        ids.retain(|id| id.contains(wanted));
        let listed = self.listed(ids.clone());
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

    /// Returns the user's latest run that can be resumed, preferably one that no process has locked. Foreign runs are only
    /// listed in the failure.
    fn latest(&self) -> Result<String> {
        let (mut foreign, mut busy) = (Vec::new(), None);
        for run in self.list().into_iter().rev() {
            if run.summary.is_over() {
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

    /// Returns the ids of all runs, by name.
    pub fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = std::fs::read_dir(&self.folder)
            .map(|entries| {
                entries
                    .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                    .filter(|name| !name.starts_with('.') && self.is_run(name))
                    .collect()
            })
            .unwrap_or_default();
        ids.sort();
        ids
    }

    /// Tells whether a folder with a journal has this name, and neither is a link.
    fn is_run(&self, name: &str) -> bool {
        let kind_of = |path: &Path| path.symlink_metadata().map(|metadata| metadata.file_type());
        let folder = self.folder.join(name);
        kind_of(&folder).is_ok_and(|kind| kind.is_dir())
            && kind_of(&folder.join(JOURNAL)).is_ok_and(|kind| kind.is_file())
    }

    /// Returns the folder of all runs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder of a run: its journal, and its images and PDFs.
    pub fn folder_of(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    /// Returns the folder for answers to a run's questions that are given elsewhere.
    pub fn answers(&self, id: &str) -> PathBuf {
        let folder = self.canonical_folder(id).unwrap_or_else(|_| self.folder.join(id));
        self.records.answers(&self.location(id, &folder))
    }

    /// Returns the path of a run's journal.
    pub fn journal(&self, id: &str) -> PathBuf {
        self.folder.join(id).join(JOURNAL)
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

impl LockedRun {
    /// Returns where the run keeps its images and PDFs.
    pub fn attachments(&self) -> AttachmentStore {
        AttachmentStore::in_run(temp_file::parent_folder(&self.journal))
    }

    /// Returns a writer that continues the journal behind `tail`.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the journal cannot be cut to the length of the tail.
    pub fn writer(&self, tail: JournalTail, fault: Option<InjectedFault>) -> Result<JournalWriter> {
        let file = self.file.try_clone().map_err(|error| Failure::io(&self.journal, "open", &error))?;
        JournalWriter::from_file(&self.journal, file, tail, fault)
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
                self.keep_whole_part()?;
                History::read(&self.journal)?
            }
            other => other?,
        };
        history.truncated = self.broken_path(1).exists();
        Ok((history, tail))
    }

    /// Returns where a broken journal is kept.
    fn broken_path(&self, number: u32) -> PathBuf {
        self.journal.with_file_name(format!("journal.broken-{number}.jsonl"))
    }

    fn keep_whole_part(&self) -> Result<()> {
        let bytes = reader::read_bytes(&self.journal)?;
        let length = reader::intact_prefix(&self.journal, &bytes).length;
        // The locked file must stay at its path, so it is copied and then cut.
        let (mut copy, path) = self.create_broken_file()?;
        let failed = |error: std::io::Error| Failure::io(&path, "write", &error);
        std::io::Write::write_all(&mut copy, &bytes).and_then(|()| copy.sync_all()).map_err(failed)?;
        let cut = self.file.set_len(length).and_then(|()| self.file.sync_all());
        cut.map_err(|error| Failure::io(&self.journal, "cut", &error))
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
