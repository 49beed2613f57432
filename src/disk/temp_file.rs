//! A file that is written beside the one that it will replace, so that there is always a whole one.
//!
//! Whoever writes a draft holds a lock on it. A draft without one was left by a process that was killed:
//! [`remove_stale`] removes it, and never one of a process that lives.

use std::fs::{File, Metadata, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::is_at;
use crate::error::{Failure, Result};

const PREFIX: &str = ".nietz-";
const SUFFIX: &str = ".tmp";
/// How often a draft is begun anew that somebody took for a left one before it was locked.
const TRIES: usize = 100;

/// A whole file that has not its name yet. Dropped, it is gone.
pub struct TempFile(tempfile::NamedTempFile);

impl TempFile {
    /// Writes the bytes beside a path; the disk begins with them while the caller does something else.
    pub fn write(path: &Path, bytes: &[u8]) -> Result<TempFile> {
        // The mode that any new file gets.
        TempFile::with_mode(path, bytes, 0o666)
    }

    /// The same, with the mode that it has where there is no old file, as far as the user's `umask` lets it.
    pub fn with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<TempFile> {
        let failed = |error: std::io::Error| Failure::io(path, "write", &error);
        let mut file = new(parent_folder(path), mode).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        // Linux begins to write at this advice. Where it does not, the sync does all of the work.
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(file.as_file(), 0, None, rustix::fs::Advice::DontNeed);
        Ok(TempFile(file))
    }

    /// Puts the file in place of the old one, with its mode; it is on the disk when this returns.
    pub fn publish(self, path: &Path) -> Result<()> {
        let failed = |error: std::io::Error| Failure::io(path, "write", &error);
        let file = self.0;
        if let (Ok(old), Ok(new)) = (std::fs::symlink_metadata(path), file.as_file().metadata())
            && old.is_file()
            && mode(&old) != mode(&new)
        {
            file.as_file().set_permissions(old.permissions()).map_err(failed)?;
        }
        file.as_file().sync_all().map_err(failed)?;
        // Dropped on any failure, the draft is removed and the old file stays as it is.
        file.persist(path).map_err(|error| failed(error.error))?;
        sync_folder(parent_folder(path))
    }
}

fn mode(file: &Metadata) -> u32 {
    file.permissions().mode()
}

/// Makes a draft and locks it.
fn new(folder: &Path, mode: u32) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    builder.permissions(PermissionsExt::from_mode(mode));
    for _ in 0..TRIES {
        let file = builder.tempfile_in(folder)?;
        match file.as_file().try_lock() {
            // Between its making and its lock it looked as one that was left.
            Ok(()) if !is_at(file.as_file(), file.path()) => {}
            Err(TryLockError::WouldBlock) => {}
            // Where files cannot be locked, none is taken for a left one.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
    Err(std::io::ErrorKind::ResourceBusy.into())
}

/// Removes drafts of processes that were killed. What cannot be removed stays for the next time.
pub fn remove_stale(folder: &Path) {
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

/// Makes a new name or a removal in a folder durable.
pub fn sync_folder(folder: &Path) -> Result<()> {
    // Other systems cannot open a folder, and make names durable on their own.
    #[cfg(unix)]
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| Failure::io(folder, "sync", &error))?;
    Ok(())
}

/// Returns the folder that a path is in.
pub fn parent_folder(path: &Path) -> &Path {
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
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::SeqCst) {
                    remove_stale(folder.path());
                }
            });
            for round in 0..300 {
                let path = folder.path().join(format!("d{}", round % 7));
                TempFile::write(&path, b"x").unwrap().publish(&path).unwrap();
            }
            over.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        assert_eq!(names(folder.path()), ["d0", "d1", "d2", "d3", "d4", "d5", "d6"]);
    }
}
