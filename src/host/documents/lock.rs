//! One writer at a time for each document, across processes.
//!
//! The lock is a file of its own beside the document (`.<name>.lock`): the document itself is replaced
//! by every save, and a lock on a file that is no longer there protects nothing. It lies beside, and
//! not in some folder of ours, because two processes must meet at it even if their workspaces differ.
//!
//! So that no such files are left lying around, the holder removes it again, while it still holds the
//! lock. That is safe because whoever gets the lock afterwards looks whether the file that it locked is
//! still the one at that path, and begins anew if not. A process that dies leaves the file, and the
//! system takes its lock away; the next holder removes it.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::disk;
use crate::error::{Code, Failure, Result};

/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(5);

pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Waits for the lock of a document, whose folder must exist.
    pub(super) fn take(document: &Path, patience: Duration) -> Result<Lock> {
        let name = document.file_name().unwrap_or_default().to_string_lossy();
        let path = disk::folder(document).join(format!(".{name}.lock"));
        let deadline = Instant::now() + patience;
        loop {
            if disk::kind(&path)? == disk::Kind::Link {
                let message = format!("{} is a link, where a lock has to be", path.display());
                return Err(Failure::new(Code::PathRefused, message).hint("remove the link"));
            }
            let file = File::options().create(true).truncate(false).write(true).open(&path);
            let file = file.map_err(|error| Failure::io(&path, "make the lock", &error))?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => return Ok(Lock { path, _file: file }),
                // The one before us removed this file: there is a new one, or none.
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let message = format!("{} is being written by another process", document.display());
                    return Err(
                        Failure::new(Code::DocumentBusy, message).hint("try again when the other run has saved")
                    );
                }
                Err(TryLockError::Error(error)) => return Err(Failure::io(&path, "lock", &error)),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Only where the check of `take` exists is it safe to remove the file. If removing fails, an
        // empty file stays behind, and locks as well as before.
        #[cfg(unix)]
        let _ = fs::remove_file(&self.path);
    }
}

/// Tells whether the path still leads to this very file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(named)) => (held.dev(), held.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_busy_and_a_freed_one_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let document = folder.path().join("a.yaml");
        let held = Lock::take(&document, Duration::ZERO).unwrap();
        assert_eq!(Lock::take(&document, Duration::ZERO).err().unwrap().code, Code::DocumentBusy);
        drop(held);
        drop(Lock::take(&document, Duration::ZERO).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_lock_of_a_dead_process_does_not_hold() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".a.yaml.lock"), "").unwrap();
        assert!(Lock::take(&folder.path().join("a.yaml"), Duration::ZERO).is_ok());
    }

    #[test]
    fn only_one_thread_at_a_time_holds_it() {
        use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
        let folder = tempfile::tempdir().unwrap();
        let document = folder.path().join("a.yaml");
        let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _lock = Lock::take(&document, Duration::from_secs(30)).unwrap();
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
