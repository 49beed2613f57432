//! Folders on the path to a run, opened one by one, so that no link on the way is followed.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{IGNORE, JOURNAL, PRIVATE_FILE};
use crate::disk;
use crate::error::{Failure, Result};

/// How each folder on the path to a run is opened.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A folder on the path to a run, held open.
pub(super) struct OpenFolder {
    pub(super) folder: OwnedFd,
    path: PathBuf,
}

impl OpenFolder {
    pub(super) fn open(path: &Path) -> Result<OpenFolder> {
        let folder = rustix::fs::openat(CWD, path, FOLDER, Mode::empty());
        let folder = folder.map_err(|error| Failure::io(path, "open", &error.into()))?;
        Ok(OpenFolder { folder, path: path.to_owned() })
    }

    /// Opens a folder in this one; with a mode, a missing folder is created.
    pub(super) fn enter(&self, name: &str, make: Option<Mode>) -> Result<OpenFolder> {
        let path = self.path.join(name);
        if let Some(mode) = make {
            match rustix::fs::mkdirat(&self.folder, name, mode) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(Failure::io(&path, "create", &error.into())),
            }
        }
        match rustix::fs::openat(&self.folder, name, FOLDER, Mode::empty()) {
            Ok(folder) => Ok(OpenFolder { folder, path }),
            // For a link that must not be followed, the system may also report that it is not a folder.
            Err(Errno::LOOP | Errno::NOTDIR) if self.has(name, FileType::Symlink) => {
                Err(disk::refused(&path, "is a link"))
            }
            Err(error) => Err(Failure::io(&path, if make.is_some() { "create" } else { "open" }, &error.into())),
        }
    }

    fn has(&self, name: &str, kind: FileType) -> bool {
        rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == kind)
    }

    /// Refuses links in the folder of a run, because the output of commands is kept there as well.
    pub(super) fn refuse_links(&self) -> Result<()> {
        let failed = |error: Errno| Failure::io(&self.path, "list", &error.into());
        for entry in rustix::fs::Dir::read_from(&self.folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            if self.has(&name, FileType::Symlink) {
                return Err(disk::refused(&self.path.join(name), "is a link"));
            }
        }
        Ok(())
    }

    /// Writes a `.gitignore` for all that is here: journals hold what people said and must not be committed by accident.
    pub(super) fn ignore_all(&self) -> Result<()> {
        let path = self.path.join(IGNORE);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if self.has(IGNORE, FileType::RegularFile)
            && rustix::fs::statat(&self.folder, IGNORE, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|found| found.st_size > 0)
        {
            return Ok(());
        }
        let file = match rustix::fs::openat(&self.folder, IGNORE, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => File::from(file),
            Err(Errno::LOOP) => return Err(disk::refused(&path, "is a link")),
            Err(error) => return Err(Failure::io(&path, "write", &error.into())),
        };
        disk::require_plain_file(&file, &path)?;
        std::io::Write::write_all(&mut &file, b"*\n").map_err(|error| Failure::io(&path, "write", &error))
    }

    pub(super) fn journal(&self, make: bool) -> Result<File> {
        let path = self.path.join(JOURNAL);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let flags = if make { flags | OFlags::CREATE } else { flags };
        match rustix::fs::openat(&self.folder, JOURNAL, flags, PRIVATE_FILE) {
            Ok(file) => {
                let file = File::from(file);
                disk::require_plain_file(&file, &path).map(|()| file)
            }
            Err(Errno::LOOP) => Err(disk::refused(&path, "is a link")),
            Err(error) => Err(Failure::io(&path, "open", &error.into())),
        }
    }

    /// Opens the journal of a run to read it.
    pub(super) fn journal_to_read(&self) -> Result<File> {
        let path = self.path.join(JOURNAL);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.folder, JOURNAL, flags, Mode::empty()) {
            Ok(file) => {
                let file = File::from(file);
                disk::require_plain_file(&file, &path).map(|()| file)
            }
            Err(Errno::LOOP) => Err(disk::refused(&path, "is a link")),
            Err(error) => Err(Failure::io(&path, "open", &error.into())),
        }
    }
}
