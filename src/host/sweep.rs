//! Cleans up folders that a command may have left without any access rights or nested deeper than the longest path. They
//! are made usable and removed entry by entry, never through a link, in a time linear in the number of entries.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RawMode, RenameFlags};
use rustix::io::Errno;

use crate::error::{Failure, Result};

/// How long a git process that nobody waits for any more may take to end.
const LEFT_BEHIND: Duration = Duration::from_secs(10);
/// The rights that the owner needs to a folder and to a file.
const OF_FOLDER: RawMode = 0o700;
const OF_FILE: RawMode = 0o400;

/// Removes a folder with all its contents, without following links; a missing folder is no error.
///
/// A git process that outlived its parent may still write there, but it ends soon: so this tries again for a while.
pub(super) fn remove_folder(folder: &Path) -> Result<()> {
    let failed = |error: Errno| Failure::io(folder, "remove", &error.into());
    let until = Instant::now() + LEFT_BEHIND;
    loop {
        match open_usable(CWD, folder) {
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(failed(error)),
            Ok(top) => empty_opened(&top, &[]).map_err(failed)?,
        }
        match rustix::fs::unlinkat(CWD, folder, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::NOTEMPTY) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Removes a folder in an opened one with all its contents, without following links.
pub(super) fn remove_below(above: &impl AsFd, name: &str) -> rustix::io::Result<()> {
    let top = open_usable(above, name)?;
    empty_opened(&top, &[])?;
    rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR)
}

/// Removes all entries of a folder except those with these names.
pub(super) fn empty(folder: &Path, except: &[&str]) -> Result<()> {
    let top = open_usable(CWD, folder);
    top.and_then(|top| empty_opened(&top, except)).map_err(|error| Failure::io(folder, "empty", &error.into()))
}

/// Creates a folder, with those above it, that only its owner may enter. An existing folder of ours is made private.
pub(super) fn make_private(folder: &Path) -> Result<()> {
    let failed = |error: std::io::Error| Failure::io(folder, "create", &error);
    let created = std::fs::DirBuilder::new().recursive(true).mode(OF_FOLDER).create(folder);
    created.map_err(failed)?;
    let metadata = std::fs::metadata(folder).map_err(failed)?;
    let ours = std::os::unix::fs::MetadataExt::uid(&metadata) == rustix::process::geteuid().as_raw();
    if ours && metadata.permissions().mode() & 0o077 != 0 {
        let mode = metadata.permissions().mode() & 0o7700 | OF_FOLDER;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).map_err(failed)?;
    }
    Ok(())
}

/// Removes all entries of a folder except its `.git`, the files of a list (each ends with a zero byte), and the folders
/// above these files. A folder in the place of a listed file is only emptied.
pub(super) fn remove_unlisted(folder: &Path, list: &[u8]) -> Result<()> {
    let listed: BTreeSet<&[u8]> = list.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
    let top = open_usable(CWD, folder);
    top.and_then(|top| remove_unknown(top, &listed)).map_err(|error| Failure::io(folder, "clean", &error.into()))
}

fn remove_unknown(top: OwnedFd, listed: &BTreeSet<&[u8]>) -> rustix::io::Result<()> {
    // Open folders wait only as deep as the listed paths go.
    let mut waiting = vec![(top, Vec::new())];
    while let Some((folder, path)) = waiting.pop() {
        for (name, kind) in entries(&folder)? {
            if path.is_empty() && name.as_bytes() == b".git" {
                continue;
            }
            let itself = [&path, name.as_bytes()].concat();
            let inside = [itself.as_slice(), b"/"].concat();
            let above = listed.range(inside.as_slice()..).next().is_some_and(|next| next.starts_with(&inside));
            match (listed.contains(itself.as_slice()), kind == FileType::Directory) {
                (true, false) => {}
                (true, true) => empty_opened(&open_usable(&folder, name.as_c_str())?, &[])?,
                (false, true) if above => waiting.push((open_usable(&folder, name.as_c_str())?, inside)),
                (false, true) => {
                    empty_opened(&open_usable(&folder, name.as_c_str())?, &[])?;
                    ignore_missing(rustix::fs::unlinkat(&folder, name.as_c_str(), AtFlags::REMOVEDIR))?;
                }
                (false, false) => ignore_missing(rustix::fs::unlinkat(&folder, name.as_c_str(), AtFlags::empty()))?,
            }
        }
    }
    Ok(())
}

/// Gives the owner the rights to enter all folders and to read all files. What cannot be changed stays as it is:
/// whoever needs it will report it.
pub(super) fn make_usable(folder: &Path) -> Result<()> {
    let top = open_usable(CWD, folder).map_err(|error| Failure::io(folder, "open", &error.into()))?;
    // Waiting entries hold their parent folder open, so the number of open folders grows with the depth alone.
    let mut waiting = vec![(Rc::new(top), CString::from(c"."))];
    while let Some((above, name)) = waiting.pop() {
        let Ok(folder) = open_usable(&*above, name.as_c_str()).map(Rc::new) else { continue };
        for (name, kind) in entries(&folder).unwrap_or_default() {
            match kind {
                FileType::Directory => waiting.push((Rc::clone(&folder), name)),
                FileType::RegularFile => allow(&*folder, name.as_c_str(), OFlags::empty(), OF_FILE),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Empties a folder. Nested folders are first moved to the top, so that none is too deep to be reached. A folder that
/// another process still writes to is left.
fn empty_opened(top: &OwnedFd, except: &[&str]) -> rustix::io::Result<()> {
    let mut waiting = Vec::new();
    for (name, kind) in entries(top)? {
        match kind {
            _ if except.iter().any(|kept| kept.as_bytes() == name.as_bytes()) => {}
            FileType::Directory => waiting.push(name),
            _ => ignore_missing(rustix::fs::unlinkat(top, name.as_c_str(), AtFlags::empty()))?,
        }
    }
    let mut count = 0_u64;
    while let Some(name) = waiting.pop() {
        let folder = open_usable(top, name.as_c_str())?;
        for (below, kind) in entries(&folder)? {
            if kind != FileType::Directory {
                ignore_missing(rustix::fs::unlinkat(&folder, below.as_c_str(), AtFlags::empty()))?;
                continue;
            }
            // Moving a folder also needs the right to write to it, because its `..` changes.
            open_usable(&folder, below.as_c_str())?;
            waiting.push(loop {
                let free = CString::new(format!(".gone-{count}")).unwrap_or_default();
                count += 1;
                match rustix::fs::renameat_with(&folder, below.as_c_str(), top, free.as_c_str(), RenameFlags::NOREPLACE)
                {
                    Ok(()) => break free,
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error),
                }
            });
        }
        match rustix::fs::unlinkat(top, name.as_c_str(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn ignore_missing(removed: rustix::io::Result<()>) -> rustix::io::Result<()> {
    removed.or_else(|error| if error == Errno::NOENT { Ok(()) } else { Err(error) })
}

/// Opens a folder, and gives its owner all rights to it.
fn open_usable(above: impl AsFd, name: impl rustix::path::Arg + Copy) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(&above, name, OFlags::RDONLY | flags, Mode::empty()) {
        Ok(folder) => {
            allow_opened(&folder, OF_FOLDER);
            Ok(folder)
        }
        Err(Errno::ACCESS) => {
            allow(&above, name, OFlags::DIRECTORY, OF_FOLDER);
            rustix::fs::openat(&above, name, OFlags::RDONLY | flags, Mode::empty())
        }
        Err(error) => Err(error),
    }
}

/// Adds rights to the entry of this name, if it lacks them, but never to the target of a link.
fn allow(above: impl AsFd, name: impl rustix::path::Arg, what: OFlags, rights: RawMode) {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC | what;
    if let Ok(opened) = rustix::fs::openat(above, name, flags, Mode::empty()) {
        allow_opened(&opened, rights);
    }
}

fn allow_opened(opened: &OwnedFd, rights: RawMode) {
    let Ok(stat) = rustix::fs::fstat(opened) else { return };
    if stat.st_mode & rights != rights {
        // This path leads to the opened entry, even if another entry has its name by now. An error shows at the next step.
        let itself = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777 | rights);
        let _ = rustix::fs::chmodat(CWD, itself, mode, AtFlags::empty());
    }
}

fn entries(folder: &OwnedFd) -> rustix::io::Result<Vec<(CString, FileType)>> {
    let mut all = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            kind => kind,
        };
        all.push((name.to_owned(), kind));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::{empty, make_private, make_usable, remove_folder, remove_unlisted};

    #[test]
    fn a_folder_goes_however_deep_it_is_and_whatever_is_in_it() {
        let home = tempfile::tempdir().expect("a temporary folder can be made");
        let (folder, other) = (home.path().join("folder"), home.path().join("other"));
        fs::create_dir_all(other.join("kept")).expect("a folder can be made");
        let mut at =
            rustix::fs::openat(rustix::fs::CWD, home.path(), rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty())
                .expect("it is there");
        for name in std::iter::once("folder").chain(std::iter::repeat_n("deep", 3000)) {
            rustix::fs::mkdirat(&at, name, rustix::fs::Mode::from(0o777)).expect("a folder can be made");
            at = rustix::fs::openat(&at, name, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty())
                .expect("it is there");
        }
        symlink(&other, folder.join("link")).expect("a link can be made");
        fs::create_dir_all(folder.join(".gone-0/x")).expect("a folder can be made");
        fs::write(folder.join(".gone-1"), "").expect("a file can be written");
        remove_folder(&folder).expect("it can be removed");
        assert!(!folder.exists() && other.join("kept").exists());
        remove_folder(&folder).expect("it is gone already");
    }

    #[test]
    fn what_is_known_stays_and_all_else_goes() {
        let home = tempfile::tempdir().expect("a temporary folder can be made");
        let path = |name: &str| home.path().join(name);
        for folder in [".git/x", "src/new", "src/old.c/in", "other/deep/er", "sub/module/left"] {
            fs::create_dir_all(path(folder)).expect("a folder can be made");
        }
        for file in ["src/a.c", "src/a.c.orig", "other/deep/f", "top", "sub/module/left/f"] {
            fs::write(path(file), "").expect("a file can be written");
        }
        symlink(path("src"), path("lib")).expect("a link can be made");
        remove_unlisted(home.path(), b"src/a.c\0src/old.c\0lib/b.c\0sub/module\0").expect("it can be cleaned");
        let mut left: Vec<_> = walkdir::WalkDir::new(home.path()).min_depth(1).into_iter().flatten().collect();
        left.sort_by_key(|entry| entry.path().to_owned());
        let left: Vec<_> = left.iter().map(|entry| entry.path().strip_prefix(home.path()).expect("below")).collect();
        let expected = [".git", ".git/x", "src", "src/a.c", "src/old.c", "sub", "sub/module"];
        assert_eq!(left, expected.map(std::path::Path::new));
    }

    #[test]
    fn a_private_folder_is_entered_by_nobody_else() {
        let home = tempfile::tempdir().expect("a temporary folder can be made");
        let folder = home.path().join("a/b");
        for _ in 0..2 {
            make_private(&folder).expect("it can be made");
            let mode = fs::metadata(&folder).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
    }

    #[test]
    fn what_is_to_stay_stays() {
        let home = tempfile::tempdir().expect("a temporary folder can be made");
        fs::create_dir_all(home.path().join("a/.git/b")).expect("a folder can be made");
        fs::write(home.path().join(".git"), "gitdir: x\n").expect("a file can be written");
        empty(home.path(), &[".git"]).expect("it can be emptied");
        let left: Vec<_> =
            fs::read_dir(home.path()).expect("it is there").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, [".git"]);
    }

    #[test]
    fn rights_are_given_back_and_none_to_what_a_link_leads_to() {
        let home = tempfile::tempdir().expect("a temporary folder can be made");
        let path = |name: &str| home.path().join(name);
        let mode = |name: &str| fs::metadata(path(name)).expect("it is there").permissions().mode() & 0o777;
        fs::create_dir_all(path("in/a/b")).expect("a folder can be made");
        for file in ["in/a/b/file", "in/run.sh", "outside"] {
            fs::write(path(file), "").expect("a file can be written");
        }
        symlink(path("outside"), path("in/link")).expect("a link can be made");
        let modes =
            [("in/a/b/file", 0o000), ("in/run.sh", 0o111), ("outside", 0o000), ("in/a/b", 0o000), ("in/a", 0o000)];
        for (name, mode) in modes {
            fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).expect("it is ours");
        }
        make_usable(&path("in")).expect("it is there");
        assert_eq!(
            ["in/a", "in/a/b", "in/a/b/file", "in/run.sh", "outside"].map(mode),
            [0o700, 0o700, 0o400, 0o511, 0]
        );
    }
}
