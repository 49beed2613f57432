//! Opens, reads and writes nietz's own files: configuration, locks, journals, personas, documents.
//!
//! A checkout, an archive or another process may have put anything at their paths: a link into somebody's home, a pipe
//! that nobody writes to, an endless device. [`read`] opens them all in one way: it follows no link out of the folder that
//! the caller names, never waits, and reads no more than the caller allows. [`temp_file`] writes a new file beside the old
//! one, which stays until the new one is complete. [`owner`] checks that nobody but the user can have written a file.

pub(crate) mod temp_file;
pub(crate) mod owner;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Code, Failure, Result};

/// The limit for small files, in bytes: configuration, locks and grants, as people and `nietz pack` write them.
pub(crate) const SETTINGS: u64 = 4 << 20;

/// Which links are followed when a file is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Links<'a> {
    /// All links: the user named the file, or keeps it in a folder of their own.
    All,
    /// Links that stay below this folder, with which the path begins.
    Below(&'a Path),
    /// No link as the last part of the path; the parts before are known to be none.
    NotLast,
}

/// Returns the bytes of a file, or `None` if there is no file.
///
/// # Errors
///
/// As [`open`], and `document-unreadable` if the file has more than `most` bytes.
pub(crate) fn read(path: &Path, links: Links<'_>, most: u64) -> Result<Option<Vec<u8>>> {
    open(path, links)?.map(|file| read_open(file, path, most)).transpose()
}

/// Returns the bytes of an open file, unless there are more than allowed.
fn read_open(file: File, path: &Path, most: u64) -> Result<Vec<u8>> {
    let length = file.metadata().map_or(0, |found| found.len().min(most));
    // One spare byte, so that the read which finds the end of the file does not grow the buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    // Reading one byte more than allowed detects a file that is too large, even while it grows.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| Failure::io(path, "read", &error))?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= most => Ok(bytes),
        _ => Err(Failure::new(
            Code::DocumentUnreadable,
            format!("{} is larger than {} and is not read", path.display(), size(most)),
        )
        .hint("files of this kind are small; this one is probably something else, or has grown by mistake")),
    }
}

/// Opens a plain file for reading; returns `None` if there is no file.
///
/// # Errors
///
/// `path-refused` if it is no plain file, or a link that must not be followed; `disk-failed` if it cannot be opened.
pub(crate) fn open(path: &Path, links: Links<'_>) -> Result<Option<File>> {
    // Without these flags, opening a pipe would wait for a writer, and a terminal could become the controlling one.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = match links {
        Links::All => rustix::fs::openat(CWD, path, flags, Mode::empty()),
        Links::NotLast => rustix::fs::openat(CWD, path, flags | OFlags::NOFOLLOW, Mode::empty()),
        Links::Below(folder) => below(folder, path, flags),
    };
    match opened.map(File::from) {
        Ok(file) => require_plain_file(&file, path).map(|()| Some(file)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP | Errno::XDEV) => Err(refused(path, "is a link that leads elsewhere")),
        Err(Errno::NXIO) => Err(refused(path, "is a socket or a device")),
        Err(error) => Err(Failure::io(path, "open", &error.into())),
    }
}

/// Writes a plain file in place, which is only for files that can easily be made again.
///
/// # Errors
///
/// `path-refused` if the path is a link or no plain file, `disk-failed` if it cannot be written.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let failed = |error: std::io::Error| Failure::io(path, "write", &error);
    let mut file = match rustix::fs::openat(CWD, path, flags, Mode::from_raw_mode(0o666)) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => return Err(refused(path, "is a link")),
        Err(error) => return Err(failed(error.into())),
    };
    require_plain_file(&file, path)?;
    file.set_len(0).and_then(|()| file.write_all(bytes)).map_err(failed)
}

/// Makes a folder below a root that the user works in, with all folders between them.
///
/// # Errors
///
/// `path-refused` if a link between them leads out of the root or into a `.git` folder, `disk-failed` if a folder cannot
/// be made.
pub(crate) fn make_folder(root: &Path, folder: &Path) -> Result<()> {
    let below = folder.strip_prefix(root).map_err(|_| refused(folder, "is outside"))?;
    let top = root.canonicalize().map_err(|error| Failure::io(root, "find", &error))?;
    let mut path = root.to_owned();
    for part in below.components() {
        path.push(part);
        match std::fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Failure::io(&path, "create", &error)),
        }
        let real = path.canonicalize().map_err(|error| Failure::io(&path, "find", &error))?;
        let is_of_git = |real: &Path| real.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
        match real.strip_prefix(&top) {
            Ok(real) if !is_of_git(real) => {}
            _ => return Err(refused(&path, "is a link that leads elsewhere")),
        }
    }
    Ok(())
}

/// Writes a file below a root that the user works in, as [`write()`] does, and makes the folders that it needs.
///
/// # Errors
///
/// As [`make_folder`] and [`write()`].
pub(crate) fn write_below(root: &Path, path: &Path, bytes: &[u8]) -> Result<()> {
    make_folder(root, temp_file::parent_folder(path))?;
    write(path, bytes)
}

/// Tells whether a folder exists below another, after following links.
pub(crate) fn is_below(root: &Path, folder: &Path) -> bool {
    matches!((root.canonicalize(), folder.canonicalize()), (Ok(root), Ok(folder)) if folder.starts_with(&root))
}

/// Refuses anything but a plain file.
///
/// # Errors
///
/// `path-refused` if the open file is a folder, a pipe or a device.
pub(crate) fn require_plain_file(file: &File, path: &Path) -> Result<()> {
    let kind = file.metadata().map_err(|error| Failure::io(path, "look at", &error))?.file_type();
    let what = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => "is a folder",
        _ if kind.is_fifo() => "is a pipe",
        _ => "is a device",
    };
    Err(refused(path, what))
}

/// Tells whether the path names this very open file; a link at its end is not followed.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(held), Ok(named)) => (held.dev(), held.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Returns the failure for a path of nietz's own that is not a plain file or folder.
pub(crate) fn refused(path: &Path, what: &str) -> Failure {
    Failure::new(Code::PathRefused, format!("{} {what}, where nietz keeps a file of its own", path.display()))
        .hint("look at what it is and who put it there; then remove it, or put the file itself in its place")
}

/// Opens a file below a folder without following a link out of it.
fn below(folder: &Path, path: &Path, flags: OFlags) -> Result<std::os::fd::OwnedFd, Errno> {
    let Ok(part) = path.strip_prefix(folder) else { return Err(Errno::XDEV) };
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let root = rustix::fs::openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..100 {
            match rustix::fs::openat2(&root, part, flags, Mode::empty(), resolve) {
                // A rename happened meanwhile, so that the kernel could not be sure.
                Err(Errno::AGAIN) => {}
                // Some sandboxes do not know the call.
                Err(Errno::NOSYS) => break,
                opened => return opened,
            }
        }
    }
    let root = folder.canonicalize().map_err(errno)?;
    let real = root.join(part).canonicalize().map_err(errno)?;
    match real.starts_with(&root) {
        true => rustix::fs::openat(CWD, &real, flags | OFlags::NOFOLLOW, Mode::empty()),
        false => Err(Errno::XDEV),
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{bytes} bytes"),
        _ => format!("{} MB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_plain_below_its_limit_and_in_its_folder_or_it_is_not_read() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("root");
        std::fs::create_dir_all(root.join("inner")).unwrap();
        std::fs::write(root.join("a"), "four").unwrap();
        std::fs::write(top.path().join("outside"), "secret").unwrap();
        symlink("a", root.join("to-a")).unwrap();
        symlink("../outside", root.join("out")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("/dev/zero", root.join("zero")).unwrap();
        rustix::fs::mkfifoat(CWD, root.join("pipe"), Mode::from(0o600)).unwrap();
        std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        let get = |name: &str, links: Links<'_>| read(&root.join(name), links, 4).map_err(|failure| failure.code);
        let below = Links::Below(&root);
        for links in [Links::All, below, Links::NotLast] {
            assert_eq!(get("a", links), Ok(Some(b"four".to_vec())), "{links:?}");
            assert_eq!(get("none", links), Ok(None), "{links:?}");
            for name in ["inner", "pipe", "zero", "socket"] {
                assert_eq!(get(name, links), Err(Code::PathRefused), "{name} {links:?}");
            }
            assert_eq!(read(&root.join("a"), links, 3).unwrap_err().code, Code::DocumentUnreadable);
        }
        assert_eq!(get("to-a", below), Ok(Some(b"four".to_vec())));
        assert_eq!(get("to-a", Links::NotLast), Err(Code::PathRefused));
        for name in ["out", "up/outside", "../outside"] {
            assert_eq!(get(name, below), Err(Code::PathRefused), "{name}");
        }
        assert!(read(&root.join("out"), Links::All, 100).unwrap().is_some());
    }
}
