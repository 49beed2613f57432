//! Documents as files of a workspace.

use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use walkdir::WalkDir;

use super::disk;
use super::lock::DocumentLock;
use super::paths::DocumentRoot;
use super::place::{At, Change, DocumentPlace, NewRow, Seen, Staged};
use super::tail::{self, RowsTail};
use crate::error::{Code, Failure, Result};
use crate::model::path_template::PathTemplate;

/// A file that changed less than this ago may change again without a new change time.
const FRESH: Duration = Duration::from_millis(100);

/// The documents below a folder.
#[derive(Debug)]
pub(super) struct FolderPlace {
    root: DocumentRoot,
    patience: Duration,
    /// Folders in which this process has removed the temporary files of killed saves.
    cleared: Mutex<HashSet<PathBuf>>,
}

impl FolderPlace {
    /// Waits for so long for another process that holds the lock of a document.
    pub(super) fn new(root: DocumentRoot, patience: Duration) -> FolderPlace {
        FolderPlace { root, patience, cleared: Mutex::default() }
    }

    /// Removes the temporary files of killed saves: once per folder, since every other process does so, too.
    fn clear_folder(&self, folder: &Path) {
        if self.cleared.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned()) {
            disk::remove_stale(folder);
        }
    }
}

impl DocumentPlace for FolderPlace {
    fn check(&self, at: At<'_>) -> Result<()> {
        self.root.resolve(at.path).map(drop)
    }

    fn read(&self, at: At<'_>) -> Result<Option<Vec<u8>>> {
        disk::read(&self.root.resolve(at.path)?)
    }

    fn walk(&self, _: bool, pattern: &PathTemplate, seen: &mut Seen<'_>) -> Result<()> {
        walk(&self.root, pattern, |path, place| {
            seen(path, &|| std::fs::symlink_metadata(place).map(|found| stamp(&found)).unwrap_or_default());
        })
    }

    fn stage(&self, at: At<'_>, text: &[u8]) -> Result<Staged> {
        let path = self.root.resolve(at.path)?;
        // The disk writes the temporary file while the value is validated. Only a valid one is renamed to its place.
        match disk::kind(disk::parent_folder(&path))? {
            disk::PathKind::Folder => {
                self.clear_folder(disk::parent_folder(&path));
                disk::TempFile::write(&path, text).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn change(
        &self,
        at: At<'_>,
        text: Option<(&[u8], Staged)>,
        backups: &[String],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Result<Change>,
    ) -> Result<bool> {
        let path = self.root.resolve(at.path)?;
        let temp_file = match text {
            Some((_, Some(temp_file))) => Some(temp_file),
            Some((text, None)) => {
                disk::make_folders(&path)?;
                Some(disk::TempFile::write(&path, text)?)
            }
            None if disk::kind(disk::parent_folder(&path))? == disk::PathKind::Absent => return Ok(false),
            None => None,
        };
        let _lock = DocumentLock::take(&path, self.patience)?;
        let present = disk::read(&path)?;
        match decide(present.as_deref())? {
            // The file was written before, perhaps by a run that was killed then; its name may not be durable yet.
            Change::Nothing if present.is_some() => disk::sync_folder(disk::parent_folder(&path))?,
            Change::Nothing => {}
            Change::Write { backup } => {
                if let (Some(bytes), Some(name)) = (&present, backup) {
                    disk::replace(&path.with_file_name(name), bytes)?;
                }
                temp_file.map_or(Ok(()), |temp_file| temp_file.publish(&path))?;
            }
            Change::Remove => drop(disk::remove(&path)?),
        }
        backups.iter().try_for_each(|name| disk::remove(&path.with_file_name(name)).map(drop))?;
        Ok(present.is_some())
    }

    fn clear(&self, at: At<'_>, backups: &[String]) -> Result<()> {
        let path = self.root.resolve(at.path)?;
        let mut left = backups.iter().map(|name| disk::kind(&path.with_file_name(name)));
        if left.any(|kind| kind.is_ok_and(|kind| kind != disk::PathKind::Absent)) {
            let _lock = DocumentLock::take(&path, self.patience)?;
            backups.iter().try_for_each(|name| disk::remove(&path.with_file_name(name)).map(drop))?;
        }
        Ok(())
    }

    fn append(&self, at: At<'_>, line: &str, from: Option<u64>, most: u64) -> Result<NewRow> {
        let path = self.root.resolve(at.path)?;
        disk::make_folders(&path)?;
        let _lock = DocumentLock::take(&path, self.patience)?;
        let failed = |error| Failure::io(&path, "append to", &error);
        let tail = RowsTail::of_file(&path).map_err(failed)?;
        if let Some(from) = from {
            if let Some(at) = tail::find(&path, line, from).map_err(failed)? {
                return Ok(NewRow { at, torn: None });
            }
            if from > tail.length + 1 {
                let message = format!("{} is shorter than it was: it held {from} bytes, now {}", at.path, tail.length);
                let hint = "somebody else cut rows off; look at the file";
                return Err(Failure::new(Code::DocumentChanged, message).hint(hint));
            }
        }
        if tail.length + line.len() as u64 > most {
            let message = format!("{} would become larger than {} MB", at.path, most / 1024 / 1024);
            return Err(Failure::new(Code::DiskFailed, message).hint("start a new file of rows"));
        }
        tail.extend(&path, line).map_err(failed)?;
        if tail.length == 0 {
            disk::sync_folder(disk::parent_folder(&path))?;
        }
        Ok(NewRow { at: tail.next(), torn: tail.torn })
    }

    fn find(&self, at: At<'_>, line: &str, from: u64) -> Result<Option<u64>> {
        let path = self.root.resolve(at.path)?;
        tail::find(&path, line, from).map_err(|error| Failure::io(&path, "read", &error))
    }

    fn rows_end(&self, at: At<'_>) -> Result<u64> {
        let path = self.root.resolve(at.path)?;
        Ok(RowsTail::of_file(&path).map_err(|error| Failure::io(&path, "read", &error))?.next())
    }
}

/// Returns a stamp that differs once the file changes; empty if the last change is too fresh to be sure.
fn stamp(found: &Metadata) -> String {
    let changed = Duration::new(found.ctime().try_into().unwrap_or(0), found.ctime_nsec().try_into().unwrap_or(0));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    if now < changed + FRESH {
        return String::new();
    }
    format!("{} {} {}", changed.as_nanos(), found.size(), found.ino())
}

/// Goes through the files of the template's folder, in no order. Calls `seen` with each file's path below the workspace,
/// with `/`, and its full path.
fn walk(place: &DocumentRoot, pattern: &PathTemplate, mut seen: impl FnMut(&str, &Path)) -> Result<()> {
    let folder = pattern.folder();
    let start = match folder.as_str() {
        "" => place.root.clone(),
        // Resolves a file inside the folder, because the folder itself may be a link within the workspace.
        folder => match place.resolve(&format!("{folder}/x"))?.parent() {
            Some(start) => start.to_owned(),
            None => return Ok(()),
        },
    };
    if disk::kind(&start)? == disk::PathKind::Absent {
        return Ok(());
    }
    let above = folder.split('/').filter(|name| !name.is_empty()).count();
    let mut path = String::new();
    for entry in WalkDir::new(&start)
        .max_depth(pattern.depth() - above)
        .into_iter()
        .filter_entry(|entry| !place.is_excluded(entry.path()))
    {
        let entry = match entry {
            Ok(entry) => entry,
            // Somebody deleted the file during the walk.
            Err(error) if error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound) => {
                continue;
            }
            Err(error) => {
                let message = format!("cannot look through {}: {error}", start.display());
                return Err(Failure::new(Code::DiskFailed, message));
            }
        };
        if entry.file_type().is_dir() {
            continue;
        }
        let Some(below) = entry.path().strip_prefix(&start).ok().and_then(Path::to_str) else { continue };
        path.clear();
        if !folder.is_empty() {
            path.push_str(&folder);
            path.push('/');
        }
        path.push_str(below);
        seen(&path, entry.path());
    }
    Ok(())
}
