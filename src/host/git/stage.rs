//! Puts the changed files of a folder into an index. Files that git cannot add, which a command may have left behind, do
//! not keep the others out of the commit.

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

/// How many left-out paths a message names.
const NAMED: usize = 5;

/// The most bytes of holes (parts that were never written) in the files of one commit.
const MOST_HOLES: u64 = 100 << 20;
/// Holes count only in files of at least this size, in bytes.
const COUNTS: u64 = 64 << 10;

/// The state of a changed path.
enum PathState {
    There,
    /// A sparse file, with so many bytes that were never written.
    Sparse(u64),
    /// Deleted, or one of its folders was replaced by a link or a file.
    Gone,
    /// Nothing that git can store, such as a pipe.
    Other,
}

/// Stages the paths. `call` makes a command for the index; `folder` holds the files. If they are `ours`, unreadable files
/// are made readable for their owner. Returns the paths that are left out, each with its reason.
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
    // If all files can be read, git failed for another reason.
    if there.len() == count {
        return Err(failure);
    }
    add(&there)?;
    Ok(left)
}

/// Returns a text that says which paths are not committed, and why.
pub(super) fn describe_left_out(left: &[(String, String)]) -> String {
    summarize_names(left.iter().map(|(path, why)| format!("`{}` ({})", excerpt(path), excerpt(why))))
}

/// Returns the first few of the names, and how many more there are.
pub(super) fn summarize_names(mut all: impl Iterator<Item = String>) -> String {
    let mut named: Vec<String> = all.by_ref().take(NAMED).collect();
    let more = all.count();
    named.extend((more > 0).then(|| format!("{more} more")));
    named.join(", ")
}

/// Returns the state of a path. `folders` caches whether the folders above it are real ones.
fn path_state<'p>(folder: &Path, path: &'p OsStr, folders: &mut HashMap<&'p OsStr, bool>) -> PathState {
    for end in memchr::memchr_iter(b'/', path.as_bytes()) {
        let above = OsStr::from_bytes(&path.as_bytes()[..end]);
        let real = *folders.entry(above).or_insert_with(|| {
            let found = std::fs::symlink_metadata(folder.join(above));
            // A folder that may not be read exists.
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

/// Returns how many bytes of a file are holes. Fewer blocks than bytes may also mean that the disk compresses; then seeking
/// a hole finds none.
fn holes(path: &Path, found: &Metadata) -> u64 {
    let missing = found.len().saturating_sub(found.blocks().saturating_mul(512));
    if found.len() < COUNTS || missing == 0 {
        return 0;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let first = rustix::fs::open(path, flags, Mode::empty())
        .and_then(|file| rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(0)));
    // Git cannot read a file that cannot be opened, so its holes cost no time.
    first.map_or(0, |first| if first < found.len() { missing } else { 0 })
}

fn list(paths: &[&OsStr]) -> Vec<u8> {
    paths.iter().flat_map(|path| path.as_bytes().iter().copied().chain(std::iter::once(0))).collect()
}
