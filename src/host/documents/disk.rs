//! The few ways in which documents touch the disk, each of which leaves either the old file or the new one.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::error::{Code, Failure, Result};
use crate::schema::source::MAX_BYTES;

/// What stands at a path, links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Absent,
    File,
    Folder,
    Link,
    Other,
}

pub(super) fn kind(path: &Path) -> Result<Kind> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Ok(Kind::Link),
        Ok(found) if found.is_dir() => Ok(Kind::Folder),
        Ok(found) if found.is_file() => Ok(Kind::File),
        Ok(_) => Ok(Kind::Other),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Kind::Absent),
        Err(error) => Err(Failure::io(path, "look at", &error)),
    }
}

pub(super) fn canonical(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(|error| Failure::io(path, "find", &error))
}

/// Returns the bytes of a file, or nothing if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::io(path, "open", &error)),
    };
    let length = file.metadata().map_or(0, |found| found.len().min(MAX_BYTES));
    // Room for one more byte, so that the read which finds the end needs no more.
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    // One byte more than allowed tells too large from just large enough, even while the file grows.
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| Failure::io(path, "read", &error))?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MAX_BYTES => Ok(Some(bytes)),
        _ => Err(Failure::new(
            Code::DocumentUnreadable,
            format!("{} is larger than {} MB and is not read", path.display(), MAX_BYTES / 1024 / 1024),
        )
        .hint("a document is small; this file is probably something else, or has grown by mistake")),
    }
}

/// Puts a file in place of the old one: whole or not at all, and on the disk when this returns.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    Draft::write(path, bytes)?.publish(path)
}

/// A file that was written beside the one that it will replace. Dropped, it is gone.
pub(super) struct Draft(tempfile::NamedTempFile);

impl Draft {
    /// Writes the bytes; the disk begins with them while the caller does something else.
    pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<Draft> {
        let folder = folder(path);
        let failed = |error: &std::io::Error| Failure::io(path, "write", error);
        let mut builder = tempfile::Builder::new();
        builder.prefix(".nietz-").suffix(".tmp");
        // A temporary file is private by default; a document gets the mode that any new file gets.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(folder).map_err(|error| failed(&error))?;
        file.write_all(bytes).map_err(|error| failed(&error))?;
        // Linux begins to write at this advice. Where it does not, the sync does all of the work.
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(file.as_file(), 0, None, rustix::fs::Advice::DontNeed);
        Ok(Draft(file))
    }

    /// Puts the file in place of the old one; it is on the disk when this returns.
    pub(super) fn publish(self, path: &Path) -> Result<()> {
        let failed = |error: &std::io::Error| Failure::io(path, "write", error);
        let file = self.0;
        if let (Ok(old), Ok(new)) = (fs::metadata(path), file.as_file().metadata())
            && old.permissions() != new.permissions()
        {
            file.as_file().set_permissions(old.permissions()).map_err(|error| failed(&error))?;
        }
        file.as_file().sync_all().map_err(|error| failed(&error))?;
        // Dropped on any failure, the temporary file is removed and the old one stays as it is.
        file.persist(path).map_err(|error| failed(&error.error))?;
        sync_folder(folder(path))
    }
}

/// Makes the folders on the way to a file, and their names durable.
pub(super) fn make_folders(path: &Path) -> Result<()> {
    let folder = folder(path);
    if kind(folder)? == Kind::Absent {
        make_folders(folder)?;
        match fs::create_dir(folder) {
            Ok(()) => sync_folder(self::folder(folder))?,
            // Somebody else made it in the meantime.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Failure::io(folder, "make the folder", &error)),
        }
    }
    Ok(())
}

/// Removes a file; tells whether there was one.
pub(super) fn remove(path: &Path) -> Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => sync_folder(folder(path)).map(|()| true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::io(path, "remove", &error)),
    }
}

/// Makes a rename or a removal in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    // Other systems cannot open a folder, and make names durable on their own.
    #[cfg(unix)]
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| Failure::io(folder, "sync", &error))?;
    Ok(())
}

pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Returns the digest by which a later save knows the file again.
pub(super) fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
