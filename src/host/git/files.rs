//! Files of a worktree: read, written, replaced, listed.

use rustix::fs::{Dir, FileType};
use serde_json::{Value, json};

use super::worktree::Worktree;
use crate::error::{Code, Failure, Result};
use crate::host::confined::{Access, ConfinedDir, Largest, invalid};
use crate::model::digest::Digest;
use crate::model::text::excerpt;

/// The largest file that a flow can read.
const LARGEST: Largest = Largest { megabytes: 1, hint: Some("look for what you need with `grep`") };
/// The most entries of a folder that a flow gets.
const MOST_ENTRIES: usize = 2000;

pub(super) fn read(tree: &Worktree<'_>, path: &str) -> Result<Value> {
    text(&ConfinedDir::open(tree.folder())?, path).map(Value::from)
}

fn text(folder: &ConfinedDir, path: &str) -> Result<String> {
    String::from_utf8(bytes(folder, path)?).map_err(|_| invalid(path, "is not UTF-8 text"))
}

pub(super) fn bytes(folder: &ConfinedDir, path: &str) -> Result<Vec<u8>> {
    LARGEST.contents(folder.file(path, Access::Read)?, path, |error| failed(path, &error))
}

pub(super) fn write(tree: &Worktree<'_>, path: &str, text: &str) -> Result<Value> {
    put(&ConfinedDir::open(tree.folder())?, path, text)?;
    Ok(json!({ "bytes": text.len() }))
}

fn put(folder: &ConfinedDir, path: &str, text: &str) -> Result<()> {
    folder.make_folders(path)?;
    folder.put(path, text.as_bytes())
}

/// Returns the text with the one place replaced.
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

pub(super) fn replace(tree: &Worktree<'_>, path: &str, old: &str, new: &str) -> Result<Value> {
    let folder = ConfinedDir::open(tree.folder())?;
    let (before, after) = replaced(&folder, path, old, new)?;
    put(&folder, path, &after)?;
    let line = before.find(old).map_or(0, |at| before[..at].matches('\n').count() + 1);
    Ok(json!({ "line": line }))
}

pub(super) fn prepare_replace(tree: &Worktree<'_>, path: &str, old: &str, new: &str) -> Result<Value> {
    let (before, after) = replaced(&ConfinedDir::open(tree.folder())?, path, old, new)?;
    let line = before.find(old).map_or(0, |at| before[..at].matches('\n').count() + 1);
    Ok(json!({ "after": Digest::of(after.as_bytes()).to_string(), "line": line }))
}

/// It happened if the file is just as it was to become.
pub(super) fn look_replace(tree: &Worktree<'_>, path: &str, before: &Value) -> Option<Result<Value>> {
    let now = bytes(&ConfinedDir::open(tree.folder()).ok()?, path).ok()?;
    let happened = before["after"].as_str() == Some(Digest::of(&now).to_string().as_str());
    happened.then(|| Ok(json!({ "line": before["line"] })))
}

pub(super) fn list(tree: &Worktree<'_>, path: &str) -> Result<Value> {
    let folder = ConfinedDir::open(tree.folder())?.file(if path.is_empty() { "." } else { path }, Access::List)?;
    let mut entries: Vec<(String, &str)> = Vec::new();
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
        entries.push((name, kind));
    }
    entries.sort();
    let cut = entries.len() > MOST_ENTRIES;
    let entries: Vec<Value> =
        entries.into_iter().take(MOST_ENTRIES).map(|(name, kind)| json!({ "name": name, "kind": kind })).collect();
    Ok(json!({ "entries": entries, "cut": cut }))
}

fn failed(path: &str, error: &std::io::Error) -> Failure {
    Failure::new(Code::DiskFailed, format!("cannot use {}: {error}", excerpt(path)))
}
