//! The few ways in which documents touch the disk, each of which leaves either the old file or the new one.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::disk::Links;
pub(super) use crate::disk::temp_file::{TempFile, parent_folder, remove_stale, sync_folder};
use crate::error::{Failure, Result};
use crate::schema::source::MAX_BYTES;

/// The kind of entry at a path; links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathKind {
    Absent,
    File,
    Folder,
    Link,
    Other,
}

pub(super) fn kind(path: &Path) -> Result<PathKind> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Ok(PathKind::Link),
        Ok(found) if found.is_dir() => Ok(PathKind::Folder),
        Ok(found) if found.is_file() => Ok(PathKind::File),
        Ok(_) => Ok(PathKind::Other),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(PathKind::Absent),
        Err(error) => Err(Failure::io(path, "look at", &error)),
    }
}

pub(super) fn canonical(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(|error| Failure::io(path, "find", &error))
}

/// Returns the bytes of a document, or `None` if there is none. The path is already resolved, so a last name that has
/// become a link since then is refused.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    crate::disk::read(path, Links::NotLast, MAX_BYTES)
}

/// Puts a file in place of the old one: whole or not at all, and on the disk when this returns.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    TempFile::write(path, bytes)?.publish(path)
}

/// Makes the missing folders above a file and syncs their names to the disk.
pub(super) fn make_folders(path: &Path) -> Result<()> {
    let folder = parent_folder(path);
    if kind(folder)? == PathKind::Absent {
        make_folders(folder)?;
        match fs::create_dir(folder) {
            Ok(()) => sync_folder(self::parent_folder(folder))?,
            // Another process made the folder in the meantime.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Failure::io(folder, "make the folder", &error)),
        }
    }
    Ok(())
}

/// Removes a file. Returns whether there was one.
pub(super) fn remove(path: &Path) -> Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => sync_folder(parent_folder(path)).map(|()| true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::io(path, "remove", &error)),
    }
}

/// Returns the digest by which a later save recognizes the file.
pub(super) fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
