//! Reads, writes, edits and lists files of a worktree.

use rustix::fs::{Dir, FileType};

use super::worktree::Worktree;
use crate::error::{Code, Failure, Result};
use crate::host::confined::{Access, ConfinedDir, SizeLimit, invalid};
use crate::model::digest::Digest;
use crate::model::effect::worktree::{Entries, TreeBefore, TreeEntry};
use crate::model::text::excerpt;

/// The largest file that a flow can read.
const LARGEST: SizeLimit = SizeLimit { megabytes: 1, hint: Some("look for what you need with `grep`") };
/// The most entries of a folder that a flow gets.
const MOST_ENTRIES: usize = 2000;

pub(super) fn read(tree: &Worktree<'_>, path: &str) -> Result<String> {
    text(&ConfinedDir::open(tree.folder())?, path)
}

fn text(folder: &ConfinedDir, path: &str) -> Result<String> {
    String::from_utf8(bytes(folder, path)?).map_err(|_| invalid(path, "is not UTF-8 text"))
}

pub(super) fn bytes(folder: &ConfinedDir, path: &str) -> Result<Vec<u8>> {
    LARGEST.contents(folder.file(path, Access::Read)?, path, |error| failed(path, &error))
}

pub(super) fn write(tree: &Worktree<'_>, path: &str, text: &str) -> Result<usize> {
    put(&ConfinedDir::open(tree.folder())?, path, text)?;
    Ok(text.len())
}

fn put(folder: &ConfinedDir, path: &str, text: &str) -> Result<()> {
    folder.make_folders(path)?;
    folder.put(path, text.as_bytes())
}

/// Returns the text before and after its only occurrence of `old` is replaced.
fn replaced(folder: &ConfinedDir, path: &str, old: &str, new: &str) -> Result<(String, String)> {
    if old.is_empty() {
        return Err(invalid(path, "cannot be searched for an empty text"));
    }
    let before = text(folder, path)?;
    let count = before.matches(old).count();
    if count != 1 {
        let why = format!("has the text {count} times, and it must be there exactly once");
        let hint = if count == 0 {
            "read the file again: spaces and line ends count"
        } else {
            "give more of the text around it"
        };
        return Err(invalid(path, &why).hint(hint));
    }
    let after = before.replacen(old, new, 1);
    Ok((before, after))
}

/// Replaces a text in a file. Returns the line, from 1, in which the replaced text begins.
pub(super) fn replace(tree: &Worktree<'_>, path: &str, old: &str, new: &str) -> Result<usize> {
    let folder = ConfinedDir::open(tree.folder())?;
    let (before, after) = replaced(&folder, path, old, new)?;
    put(&folder, path, &after)?;
    Ok(line_of(&before, old))
}

fn line_of(text: &str, part: &str) -> usize {
    text.find(part).map_or(0, |at| text[..at].matches('\n').count() + 1)
}

pub(super) fn prepare_replace(tree: &Worktree<'_>, path: &str, old: &str, new: &str) -> Result<TreeBefore> {
    let (before, after) = replaced(&ConfinedDir::open(tree.folder())?, path, old, new)?;
    Ok(TreeBefore::Replace { after: Digest::of(after.as_bytes()).to_string(), line: line_of(&before, old) })
}

/// Returns the line if the replacement happened: if the file has just the intended content.
pub(super) fn probe_replace(tree: &Worktree<'_>, path: &str, before: &TreeBefore) -> Option<usize> {
    let TreeBefore::Replace { after, line } = before else { return None };
    let now = bytes(&ConfinedDir::open(tree.folder()).ok()?, path).ok()?;
    (*after == Digest::of(&now).to_string()).then_some(*line)
}

pub(super) fn list(tree: &Worktree<'_>, path: &str) -> Result<Entries> {
    let folder = ConfinedDir::open(tree.folder())?.file(if path.is_empty() { "." } else { path }, Access::List)?;
    let mut entries: Vec<TreeEntry> = Vec::new();
    for entry in Dir::read_from(&folder).map_err(|error| failed(path, &error.into()))? {
        let entry = entry.map_err(|error| failed(path, &error.into()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if matches!(name.as_str(), "." | ".." | ".git") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Directory => "folder",
            FileType::RegularFile => "file",
            FileType::Symlink => "link",
            _ => "other",
        };
        entries.push(TreeEntry { name, kind });
    }
    entries.sort();
    let cut = entries.len() > MOST_ENTRIES;
    entries.truncate(MOST_ENTRIES);
    Ok(Entries { entries, cut })
}

fn failed(path: &str, error: &std::io::Error) -> Failure {
    Failure::new(Code::DiskFailed, format!("cannot use {}: {error}", excerpt(path)))
}
