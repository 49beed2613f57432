//! Temporary files: each is written beside the file that it will replace, so that there is always a complete file.
//!
//! The process that writes a temporary file holds a lock on it. One without a lock was left by a killed process:
//! [`remove_stale`] removes only those.

use std::fs::{File, Metadata, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::is_at;
use crate::error::{Failure, Result};

const PREFIX: &str = ".nietz-";
const SUFFIX: &str = ".tmp";
/// How often another temporary file is tried, if somebody took the last one for a stale file before it was locked.
const TRIES: usize = 100;

/// A complete file that is not at its path yet. Dropping this removes it.
pub(crate) struct TempFile(tempfile::NamedTempFile);

impl TempFile {
    /// Writes the bytes to a temporary file beside `path`; the disk starts writing them while the caller goes on.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the file cannot be made or written.
    pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<TempFile> {
        // The usual mode of a new file.
        TempFile::with_mode(path, bytes, 0o666)
    }

    /// Like [`TempFile::write`]; `mode`, less the user's `umask`, counts only if no old file is replaced.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the file cannot be made or written.
    pub(crate) fn with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<TempFile> {
        let failed = |error: std::io::Error| Failure::io(path, "write", &error);
        let mut file = new(parent_folder(path), mode).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        // This advice makes Linux start writing. If it does not, the sync does all of the work.
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(file.as_file(), 0, None, rustix::fs::Advice::DontNeed);
        Ok(TempFile(file))
    }

    /// Replaces the old file, keeping that file's mode. The new file is on the disk when this returns.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the file cannot be synced or renamed, or its folder cannot be synced.
    pub(crate) fn publish(self, path: &Path) -> Result<()> {
        let failed = |error: std::io::Error| Failure::io(path, "write", &error);
        let file = self.0;
        if let (Ok(old), Ok(new)) = (std::fs::symlink_metadata(path), file.as_file().metadata())
            && old.is_file()
            && mode(&old) != mode(&new)
        {
            file.as_file().set_permissions(old.permissions()).map_err(failed)?;
        }
        file.as_file().sync_all().map_err(failed)?;
        // On failure the temporary file is dropped, and so removed; the old file stays as it is.
        file.persist(path).map_err(|error| failed(error.error))?;
        sync_folder(parent_folder(path))
    }
}

fn mode(file: &Metadata) -> u32 {
    file.permissions().mode()
}

/// Makes a temporary file and locks it.
fn new(folder: &Path, mode: u32) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    builder.permissions(PermissionsExt::from_mode(mode));
    for _ in 0..TRIES {
        let file = builder.tempfile_in(folder)?;
        match file.as_file().try_lock() {
            // Before it was locked, it looked stale to another process, which removed it.
            Ok(()) if !is_at(file.as_file(), file.path()) => {}
            Err(TryLockError::WouldBlock) => {}
            // If files cannot be locked here, `remove_stale` cannot lock them either and removes none.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
    Err(std::io::ErrorKind::ResourceBusy.into())
}

/// Removes temporary files of killed processes. A file that cannot be removed is left for the next time.
pub(crate) fn remove_stale(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if !name.starts_with(PREFIX.as_bytes()) || !name.ends_with(SUFFIX.as_bytes()) {
            continue;
        }
        let Ok(Some(file)) = super::open(&entry.path(), super::Links::NotLast) else { continue };
        if file.try_lock().is_ok() && is_at(&file, &entry.path()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Makes new and removed names in a folder durable.
///
/// # Errors
///
/// `disk-failed` if the folder cannot be synced.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    // Other systems cannot open a folder, and make names durable by themselves.
    #[cfg(unix)]
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| Failure::io(folder, "sync", &error))?;
    Ok(())
}

/// Returns the folder that a path is in.
pub(crate) fn parent_folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_left_draft_is_cleared_and_neither_a_living_one_nor_anything_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        std::fs::write(folder.path().join(".nietz-left00.tmp"), "half").unwrap();
        std::fs::write(folder.path().join(".nietz-mine"), "").unwrap();
        std::fs::create_dir(folder.path().join(".nietz-folder.tmp")).unwrap();
        std::os::unix::fs::symlink(&path, folder.path().join(".nietz-link.tmp")).unwrap();
        let living = TempFile::write(&path, b"new").unwrap();
        remove_stale(folder.path());
        assert_eq!(names(folder.path()).len(), 4, "{:?}", names(folder.path()));
        living.publish(&path).unwrap();
        assert_eq!(names(folder.path()), [".nietz-folder.tmp", ".nietz-link.tmp", ".nietz-mine", "a.yaml"]);
    }

    #[test]
    fn no_draft_is_lost_to_those_who_clear() {
        let folder = tempfile::tempdir().unwrap();
        let finished = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !finished.load(std::sync::atomic::Ordering::SeqCst) {
                    remove_stale(folder.path());
                }
            });
            for round in 0..300 {
                let path = folder.path().join(format!("d{}", round % 7));
                TempFile::write(&path, b"x").unwrap().publish(&path).unwrap();
            }
            finished.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        assert_eq!(names(folder.path()), ["d0", "d1", "d2", "d3", "d4", "d5", "d6"]);
    }
}
