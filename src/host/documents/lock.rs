//! One writer at a time in each folder of documents, across processes.
//!
//! A save takes the system's lock of the folder, not of the document: every save replaces the document, and a lock on
//! a replaced file protects nothing. Two processes share the folder even if their workspaces differ, no lock file is
//! left behind, and the system frees the lock of a process that dies. Saves take milliseconds, so it does not matter
//! that saves of two documents in one folder wait for each other.
//!
//! Some network file systems lock only files that are open for writing, and so no folders. There the lock is a file
//! beside the document (`.<name>.lock`). The holder removes the file while it still holds the lock. That is safe
//! because the next holder checks whether the file that it locked is still the one at that path, and tries again if
//! not. All processes do the same on the same file system, so they exclude each other.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::disk;
use crate::disk::is_at;
use crate::error::{Code, Failure, Result};

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(5);

pub(super) struct DocumentLock {
    _file: File,
    /// The lock file beside the document, where the folder cannot be locked.
    beside: Option<PathBuf>,
}

impl DocumentLock {
    /// Waits for the lock of a document, whose folder must exist.
    pub(super) fn take(document: &Path, patience: Duration) -> Result<DocumentLock> {
        let deadline = Instant::now() + patience;
        let folder = disk::parent_folder(document);
        let file = File::open(folder).map_err(|error| Failure::io(folder, "open", &error))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(DocumentLock { _file: file, beside: None }),
                Err(TryLockError::WouldBlock) => wait(document, deadline)?,
                Err(TryLockError::Error(error)) if locks_no_folder(&error) => {
                    return DocumentLock::beside(document, deadline);
                }
                Err(TryLockError::Error(error)) => return Err(Failure::io(folder, "lock", &error)),
            }
        }
    }

    fn beside(document: &Path, deadline: Instant) -> Result<DocumentLock> {
        let name = document.file_name().unwrap_or_default().to_string_lossy();
        let path = disk::parent_folder(document).join(format!(".{name}.lock"));
        loop {
            if disk::kind(&path)? == disk::PathKind::Link {
                let message = format!("{} is a link, where a lock has to be", path.display());
                return Err(Failure::new(Code::PathRefused, message).hint("remove the link"));
            }
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
            let file = File::options().create(true).truncate(false).write(true).custom_flags(flags).open(&path);
            let file = file.map_err(|error| Failure::io(&path, "make the lock", &error))?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => return Ok(DocumentLock { _file: file, beside: Some(path) }),
                // The last holder removed this file: at the path is a new file, or none.
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => wait(document, deadline)?,
                Err(TryLockError::Error(error)) => return Err(Failure::io(&path, "lock", &error)),
            }
        }
    }
}

impl Drop for DocumentLock {
    fn drop(&mut self) {
        if let Some(path) = &self.beside {
            // If removing fails, an empty file stays behind, which the next save can lock.
            let _ = fs::remove_file(path);
        }
    }
}

/// Pauses before the next try, or gives up.
fn wait(document: &Path, deadline: Instant) -> Result<()> {
    if Instant::now() < deadline {
        std::thread::sleep(PAUSE);
        return Ok(());
    }
    let message = format!("{} is being written by another process", document.display());
    Err(Failure::new(Code::DocumentBusy, message).hint("try again when the other run has saved"))
}

/// Returns whether the error means that the file system cannot lock folders.
fn locks_no_folder(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let known = [Errno::BADF, Errno::INVAL, Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS];
    error.raw_os_error().is_some_and(|code| known.iter().any(|errno| errno.raw_os_error() == code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_busy_and_a_freed_one_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let document = folder.path().join("a.yaml");
        let held = DocumentLock::take(&document, Duration::ZERO).unwrap();
        assert_eq!(DocumentLock::take(&document, Duration::ZERO).err().unwrap().code, Code::DocumentBusy);
        drop(held);
        drop(DocumentLock::take(&document, Duration::ZERO).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_locks_where_folders_cannot() {
        let folder = tempfile::tempdir().unwrap();
        let document = folder.path().join("a.yaml");
        // A lock file of a process that died does not block.
        fs::write(folder.path().join(".a.yaml.lock"), "").unwrap();
        let held = DocumentLock::beside(&document, Instant::now()).unwrap();
        assert_eq!(DocumentLock::beside(&document, Instant::now()).err().unwrap().code, Code::DocumentBusy);
        drop(held);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_one_thread_at_a_time_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let document = folder.path().join("a.yaml");
        let far = || Instant::now() + Duration::from_secs(30);
        one_at_a_time(&|| DocumentLock::take(&document, Duration::from_secs(30)).unwrap());
        one_at_a_time(&|| DocumentLock::beside(&document, far()).unwrap());
    }

    fn one_at_a_time(take: &(dyn Fn() -> DocumentLock + Sync)) {
        use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
        let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _lock = take();
                        most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
    }
}
