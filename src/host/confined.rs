//! A confined directory: files are opened below it and nowhere else. The kernel refuses every way out, including links
//! and `..`, even if another process replaces folders by links at that very moment.

use std::fs::File;
use std::io::{Error, Read, Write};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::error::{Code, Failure, Result};
use crate::host::sweep;
use crate::model::git::is_reserved;
use crate::model::text::excerpt;

/// The name of a file while it is written. Writes to one worktree happen one after another.
const TEMPORARY: &str = ".nietz-write";

/// A folder that is held open.
pub(super) struct ConfinedDir(std::os::fd::OwnedFd);

/// The purpose for which a file or folder is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    List,
    /// Opens a folder to write in it; no part of its path may be a link.
    Write,
}

impl ConfinedDir {
    pub(super) fn open(folder: &Path) -> Result<ConfinedDir> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::PATH;
        let opened = rustix::fs::openat(CWD, folder, flags, Mode::empty());
        opened.map(ConfinedDir).map_err(|error| Failure::io(folder, "open", &error.into()))
    }

    #[cfg(target_os = "linux")]
    pub(super) fn file(&self, path: &str, access: Access) -> Result<File> {
        use rustix::fs::ResolveFlags;
        check(path)?;
        let (flags, mode, links) = match access {
            Access::Read => (OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty(), ResolveFlags::empty()),
            Access::List => (OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty(), ResolveFlags::empty()),
            Access::Write => (OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty(), ResolveFlags::NO_SYMLINKS),
        };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | links;
        for _ in 0..100 {
            match rustix::fs::openat2(&self.0, path, flags | OFlags::CLOEXEC, mode, resolve) {
                Ok(file) => {
                    let file = File::from(file);
                    // A link that stays below the folder may still lead into `.git`.
                    return match self.path_of(&file) {
                        Some(real) if is_of_git(&real) => Err(refused(path, "leads to what belongs to git")),
                        _ => Ok(file),
                    };
                }
                // Something was renamed meanwhile, so the kernel could not be sure: try again.
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(open_failure(path, error)),
            }
        }
        Err(open_failure(path, Errno::AGAIN))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn file(&self, path: &str, _: Access) -> Result<File> {
        check(path)?;
        Err(refused(path, "cannot be kept inside of its worktree on this system"))
    }

    /// Returns the path of an opened file relative to the folder, with links resolved.
    pub(super) fn path_of(&self, file: &File) -> Option<String> {
        let fd_path = |fd: std::os::fd::RawFd| std::fs::read_link(format!("/proc/self/fd/{fd}")).ok();
        let folder = fd_path(std::os::fd::AsRawFd::as_raw_fd(&self.0))?;
        fd_path(std::os::fd::AsRawFd::as_raw_fd(file))?.strip_prefix(folder).ok()?.to_str().map(str::to_owned)
    }

    /// Creates the folders above a file.
    pub(super) fn make_folders(&self, path: &str) -> Result<()> {
        check_written(path)?;
        for (end, _) in path.match_indices('/') {
            let folder = &path[..end];
            let parent = folder.rfind('/').map_or(".", |at| &folder[..at]);
            let name = &folder[folder.rfind('/').map_or(0, |at| at + 1)..];
            let above = self.file(parent, Access::Write)?;
            match rustix::fs::mkdirat(&above, name, Mode::from(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(open_failure(folder, error)),
            }
        }
        Ok(())
    }

    /// Replaces a file atomically: a crash leaves the old file or the new one.
    pub(super) fn put(&self, path: &str, bytes: &[u8]) -> Result<()> {
        check_written(path)?;
        let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
        let above = self.file(parent, Access::Write)?;
        let mode = match rustix::fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Some(Mode::from_raw_mode(stat.st_mode)),
                FileType::Symlink => return Err(open_failure(path, Errno::LOOP)),
                FileType::Directory => return Err(open_failure(path, Errno::ISDIR)),
                _ => return Err(open_failure(path, Errno::NXIO)),
            },
            Err(Errno::NOENT) => None,
            Err(error) => return Err(open_failure(path, error)),
        };
        // A temporary file that a crash left may be removed: the same write is made again.
        match rustix::fs::unlinkat(&above, TEMPORARY, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(open_failure(path, error)),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let created = rustix::fs::openat(&above, TEMPORARY, flags, Mode::from(0o666))
            .map_err(|error| open_failure(path, error))?;
        let mut file = File::from(created);
        let failed = |error: Error| Failure::new(Code::DiskFailed, format!("cannot write {}: {error}", excerpt(path)));
        file.write_all(bytes).and_then(|()| file.sync_data()).map_err(failed)?;
        if let Some(mode) = mode {
            rustix::fs::fchmod(&file, mode).map_err(|error| open_failure(path, error))?;
        }
        rustix::fs::renameat(&above, TEMPORARY, &above, name).map_err(|error| open_failure(path, error))
    }

    /// Deletes a file; a missing file is no error.
    pub(super) fn delete(&self, path: &str) -> Result<()> {
        check(path)?;
        let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
        let above = match self.file(parent, Access::Write) {
            Ok(above) => above,
            Err(failure) if failure.code == Code::RequestInvalid => return Ok(()),
            Err(failure) => return Err(failure),
        };
        match rustix::fs::unlinkat(&above, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(open_failure(path, error)),
        }
    }

    /// Deletes a file, a link or a folder with all that is in it. What is missing is no error only if it may be.
    pub(super) fn remove(&self, path: &str, may_be_missing: bool) -> Result<()> {
        check_written(path)?;
        let path = path.trim_end_matches('/');
        let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
        if matches!(name, "" | ".") {
            return Err(refused(path, "is the worktree itself"));
        }
        let above = match self.file(parent, Access::Write) {
            Err(failure) if failure.code == Code::RequestInvalid && may_be_missing => return Ok(()),
            above => above?,
        };
        match rustix::fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                sweep::remove_below(&above, name).map_err(|error| open_failure(path, error))
            }
            Ok(_) => rustix::fs::unlinkat(&above, name, AtFlags::empty()).map_err(|error| open_failure(path, error)),
            Err(Errno::NOENT) if may_be_missing => Ok(()),
            Err(error) => Err(open_failure(path, error)),
        }
    }

    /// Moves a file or a folder to a place where nothing is, and makes the folders above it. Where it may have been moved
    /// already, it is no error that it is there and no longer here.
    pub(super) fn rename(&self, from: &str, to: &str, may_be_done: bool) -> Result<()> {
        check_written(from)?;
        let (from, to) = (from.trim_end_matches('/'), to.trim_end_matches('/'));
        self.make_folders(to)?;
        let (old_parent, old_name) = from.rsplit_once('/').unwrap_or((".", from));
        let (new_parent, new_name) = to.rsplit_once('/').unwrap_or((".", to));
        let (old, new) = (self.file(old_parent, Access::Write), self.file(new_parent, Access::Write)?);
        let is_at = |folder: &File, name: &str| rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if may_be_done && is_at(&new, new_name) && !old.as_ref().is_ok_and(|old| is_at(old, old_name)) {
            return Ok(());
        }
        match rustix::fs::renameat_with(&old?, old_name, &new, new_name, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(invalid(to, "is there already").hint("delete it first, or choose another place")),
            Err(Errno::INVAL) => Err(invalid(to, "is in what is moved")),
            Err(error) => Err(open_failure(from, error)),
        }
    }
}

/// The size limit of files that are read.
pub(super) struct SizeLimit {
    pub(super) megabytes: u64,
    pub(super) hint: Option<&'static str>,
}

impl SizeLimit {
    /// Returns the contents of an opened file, if it is a regular file within the limit. Messages call the file `path`, and
    /// `failed` makes the failure of an IO error.
    pub(super) fn contents(&self, file: File, path: &str, failed: impl Fn(Error) -> Failure) -> Result<Vec<u8>> {
        let metadata = file.metadata().map_err(&failed)?;
        if !metadata.is_file() {
            return Err(invalid(path, if metadata.is_dir() { "is a folder" } else { "is not a plain file" }));
        }
        let limit = self.megabytes << 20;
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes).map_err(&failed)?;
        if bytes.len() as u64 > limit {
            let failure = invalid(path, &format!("is larger than {} MB", self.megabytes));
            return Err(Failure { hint: self.hint.map(str::to_owned), ..failure });
        }
        Ok(bytes)
    }
}

pub(super) fn invalid(path: &str, why: &str) -> Failure {
    Failure::new(Code::RequestInvalid, format!("`{}` {why}", excerpt(path)))
}

/// Refuses what the path alone shows to be wrong. The kernel refuses the rest.
fn check(path: &str) -> Result<()> {
    if path.is_empty() || path.len() > 4096 || path.contains('\0') {
        return Err(refused(path, "is not a valid path"));
    }
    if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return Err(refused(path, "leads out of the worktree"));
    }
    if is_of_git(path) {
        return Err(refused(path, "belongs to git"));
    }
    Ok(())
}

fn is_of_git(path: &str) -> bool {
    path.split('/').any(|part| part.eq_ignore_ascii_case(".git"))
}

/// Checks a path to be written. Flows must not write nietz's own files: their changes are merged in the end, and only
/// the user decides how nietz behaves.
pub(super) fn check_written(path: &str) -> Result<()> {
    check(path)?;
    if is_reserved(path) {
        let message = format!("`{}` belongs to nietz itself, and is not written by a flow", excerpt(path));
        return Err(Failure::new(Code::PathRefused, message).hint("choose another path"));
    }
    Ok(())
}

fn open_failure(path: &str, error: Errno) -> Failure {
    let invalid = |why: &str| invalid(path, why);
    match error {
        Errno::XDEV => refused(path, "leads out of the worktree"),
        Errno::LOOP => refused(path, "leads through a link"),
        Errno::NOENT => invalid("does not exist").hint("look which files there are: paths begin at the top folder"),
        Errno::NOTDIR => invalid("has a file where it needs a folder"),
        Errno::ISDIR => invalid("is a folder"),
        Errno::NXIO => invalid("is not a plain file"),
        error => Failure::new(Code::DiskFailed, format!("cannot open {}: {error}", excerpt(path))),
    }
}

fn refused(path: &str, why: &str) -> Failure {
    Failure::new(Code::PathRefused, format!("`{}` {why}", excerpt(path)))
        .hint("paths are relative to the worktree, with `/`")
}
