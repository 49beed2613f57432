//! Files of a worktree: read, written, replaced, listed.

use std::io::Read;

use rustix::fs::{Dir, FileType};
use serde_json::{Value, json};

use super::beneath::{Beneath, For};
use super::worktrees::Tree;
use crate::error::{Code, Failure, Result};
use crate::model::digest::Digest;
use crate::model::text::excerpt;

/// The largest file that a flow can read.
pub(super) const LARGEST: u64 = 1 << 20;
/// The most entries of a folder that a flow gets.
const MOST_ENTRIES: usize = 2000;

pub(super) fn read(tree: &Tree<'_>, path: &str) -> Result<Value> {
    text(&Beneath::open(tree.folder())?, path).map(Value::from)
}

fn text(beneath: &Beneath, path: &str) -> Result<String> {
    String::from_utf8(bytes(beneath, path)?).map_err(|_| invalid(path, "is not UTF-8 text"))
}

pub(super) fn bytes(beneath: &Beneath, path: &str) -> Result<Vec<u8>> {
    let file = beneath.file(path, For::Reading)?;
    let found = file.metadata().map_err(|error| failed(path, &error))?;
    if found.is_dir() {
        return Err(invalid(path, "is a folder"));
    }
    if !found.is_file() {
        return Err(invalid(path, "is no plain file"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| failed(path, &error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(invalid(path, "is larger than 1 MB").hint("look for what you need with `grep`"));
    }
    Ok(bytes)
}

pub(super) fn write(tree: &Tree<'_>, path: &str, text: &str) -> Result<Value> {
    put(&Beneath::open(tree.folder())?, path, text)?;
    Ok(json!({ "bytes": text.len() }))
}

fn put(beneath: &Beneath, path: &str, text: &str) -> Result<()> {
    beneath.make_folders(path)?;
    beneath.put(path, text.as_bytes())
}

/// Returns the text with the one place replaced.
fn replaced(beneath: &Beneath, path: &str, old: &str, new: &str) -> Result<(String, String)> {
    if old.is_empty() {
        return Err(invalid(path, "cannot be searched for an empty text"));
    }
    let before = text(beneath, path)?;
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

pub(super) fn replace(tree: &Tree<'_>, path: &str, old: &str, new: &str) -> Result<Value> {
    let beneath = Beneath::open(tree.folder())?;
    let (before, after) = replaced(&beneath, path, old, new)?;
    put(&beneath, path, &after)?;
    let line = before.find(old).map_or(0, |at| before[..at].matches('\n').count() + 1);
    Ok(json!({ "line": line }))
}

pub(super) fn prepare_replace(tree: &Tree<'_>, path: &str, old: &str, new: &str) -> Result<Value> {
    let (before, after) = replaced(&Beneath::open(tree.folder())?, path, old, new)?;
    let line = before.find(old).map_or(0, |at| before[..at].matches('\n').count() + 1);
    Ok(json!({ "after": Digest::of(after.as_bytes()).to_string(), "line": line }))
}

/// It happened if the file is just as it was to become.
pub(super) fn look_replace(tree: &Tree<'_>, path: &str, before: &Value) -> Option<Result<Value>> {
    let now = bytes(&Beneath::open(tree.folder()).ok()?, path).ok()?;
    let happened = before["after"].as_str() == Some(Digest::of(&now).to_string().as_str());
    happened.then(|| Ok(json!({ "line": before["line"] })))
}

pub(super) fn list(tree: &Tree<'_>, path: &str) -> Result<Value> {
    let folder = Beneath::open(tree.folder())?.file(if path.is_empty() { "." } else { path }, For::Listing)?;
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

/// Deletes a file; one that is not there is fine.
pub(super) fn delete(tree: &Tree<'_>, path: &str) -> Result<()> {
    Beneath::open(tree.folder())?.delete(path)
}

fn invalid(path: &str, why: &str) -> Failure {
    Failure::new(Code::RequestInvalid, format!("`{}` {why}", excerpt(path)))
}

fn failed(path: &str, error: &std::io::Error) -> Failure {
    Failure::new(Code::DiskFailed, format!("cannot use {}: {error}", excerpt(path)))
}
