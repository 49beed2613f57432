//! Puts what has changed in a folder into an index, path by path, so that nothing which a command has left behind keeps
//! the rest out of a commit.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::call::GitCall;
use crate::error::Result;
use crate::host::sweep;
use crate::model::text::excerpt;

/// How many paths that are left out of a commit are named.
const NAMED: usize = 5;

/// How much of the files of one commit may never have been written, in bytes, and of which size a file counts for that.
const MOST_HOLES: u64 = 100 << 20;
const COUNTS: u64 = 64 << 10;

/// What a path that has changed is now.
enum PathState {
    There,
    /// It is a file whose content was never written, but for a part; so many bytes.
    Sparse(u64),
    /// It is not there any more, or a link or a file stands where its folder was.
    Gone,
    /// It is nothing that git can keep.
    Other,
}

/// Stages the paths. `call` makes a command for the index; `folder` holds the files, whose owner may be given the right
/// to read them if they are `ours`. Returns the paths that are left out, each with its reason.
pub(super) fn stage(
    call: &dyn Fn() -> Result<GitCall>,
    folder: &Path,
    paths: &BTreeSet<OsString>,
    ours: bool,
) -> Result<Vec<(String, String)>> {
    let (mut there, mut gone, mut left) = (Vec::new(), Vec::new(), Vec::new());
    let mut folders = HashMap::new();
    let mut holes = 0_u64;
    for path in paths {
        match path_state(folder, path, &mut folders) {
            PathState::Sparse(bytes) if holes.saturating_add(bytes) > MOST_HOLES => {
                left.push((
                    path.to_string_lossy().into_owned(),
                    format!("{} MB of it were never written", bytes >> 20),
                ));
            }
            PathState::Sparse(bytes) => {
                holes += bytes;
                there.push(path.as_os_str());
            }
            PathState::There => there.push(path.as_os_str()),
            PathState::Gone => gone.push(path.as_os_str()),
            PathState::Other => {
                gone.push(path.as_os_str());
                left.push((path.to_string_lossy().into_owned(), "is neither a file nor a link".to_owned()));
            }
        }
    }
    if !gone.is_empty() {
        call()?.args(["update-index", "--force-remove", "-z", "--stdin"]).input(list(&gone)).bytes()?;
    }
    let add = |paths: &[&OsStr]| -> Result<()> {
        if !paths.is_empty() {
            let add = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            call()?.args(add).input(list(paths)).bytes()?;
        }
        Ok(())
    };
    let Err(mut failure) = add(&there) else { return Ok(left) };
    if ours {
        sweep::make_usable(folder)?;
        match add(&there) {
            Ok(()) => return Ok(left),
            Err(again) => failure = again,
        }
    }
    let readable = |path: &&OsStr| match File::open(folder.join(path)) {
        Err(error) if !folder.join(path).is_symlink() => {
            left.push((path.to_string_lossy().into_owned(), error.to_string()));
            false
        }
        _ => true,
    };
    let count = there.len();
    there.retain(readable);
    // Where all can be read, the fault is another.
    if there.len() == count {
        return Err(failure);
    }
    add(&there)?;
    Ok(left)
}

/// Says which paths are not committed, and why.
pub(super) fn describe_left_out(left: &[(String, String)]) -> String {
    summarize_names(left.iter().map(|(path, why)| format!("`{}` ({})", excerpt(path), excerpt(why))))
}

/// Returns the first of many things, and how many there are besides.
pub(super) fn summarize_names(mut all: impl Iterator<Item = String>) -> String {
    let mut named: Vec<String> = all.by_ref().take(NAMED).collect();
    let more = all.count();
    named.extend((more > 0).then(|| format!("{more} more")));
    named.join(", ")
}

/// Returns what a path is, of whose folders these are known already.
fn path_state<'p>(folder: &Path, path: &'p OsStr, folders: &mut HashMap<&'p OsStr, bool>) -> PathState {
    for end in memchr::memchr_iter(b'/', path.as_bytes()) {
        let above = OsStr::from_bytes(&path.as_bytes()[..end]);
        let real = *folders.entry(above).or_insert_with(|| {
            let found = std::fs::symlink_metadata(folder.join(above));
            // One that cannot be looked at is there.
            found.map_or_else(|error| error.kind() == std::io::ErrorKind::PermissionDenied, |found| found.is_dir())
        });
        if !real {
            return PathState::Gone;
        }
    }
    match std::fs::symlink_metadata(folder.join(path)) {
        Ok(found) if found.is_file() => match holes(&folder.join(path), &found) {
            0 => PathState::There,
            bytes => PathState::Sparse(bytes),
        },
        Ok(found) if found.is_symlink() || found.is_dir() => PathState::There,
        Ok(_) => PathState::Other,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => PathState::Gone,
        Err(_) => PathState::There,
    }
}

/// Returns how much of a file is not on the disk because nobody has written it. A disk that compresses what it holds says so
/// where the holes are.
fn holes(path: &Path, found: &Metadata) -> u64 {
    let missing = found.len().saturating_sub(found.blocks().saturating_mul(512));
    if found.len() < COUNTS || missing == 0 {
        return 0;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let first = rustix::fs::open(path, flags, Mode::empty())
        .and_then(|file| rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(0)));
    // One that cannot be opened is no further work for git either.
    first.map_or(0, |first| if first < found.len() { missing } else { 0 })
}

fn list(paths: &[&OsStr]) -> Vec<u8> {
    paths.iter().flat_map(|path| path.as_bytes().iter().copied().chain(std::iter::once(0))).collect()
}
