//! Keeps every path inside of the workspace: a link must not lead a save to somebody's home.
//!
//! The check is made when a document is opened. It does not stop somebody who swaps folders for links
//! in that very moment; whoever can do that can write to the workspace anyway.

use std::path::{Path, PathBuf};

use super::disk::{self, Kind};
use crate::error::{Code, Failure, Result};

/// Returns the real place of a path below the workspace, whether it exists or not.
pub(super) fn resolve(root: &Path, relative: &str) -> Result<PathBuf> {
    let mut path = root.to_owned();
    let mut names = relative.split('/').peekable();
    while let Some(name) = names.next() {
        path.push(name);
        let last = names.peek().is_none();
        match disk::kind(&path)? {
            Kind::Absent => {
                // What does not exist is no link either.
                path.extend(names);
                break;
            }
            Kind::Link if last => return Err(refused(relative, "is a link; documents must be plain files")),
            Kind::Link => {
                path = disk::canonical(&path)?;
                if !path.starts_with(root) {
                    return Err(refused(relative, "leads out of the workspace through a link"));
                }
            }
            Kind::File if !last => return Err(refused(relative, "has a file where it needs a folder")),
            Kind::Folder if last => return Err(refused(relative, "is a folder")),
            Kind::Other => return Err(refused(relative, "is neither a plain file nor a folder")),
            Kind::File | Kind::Folder => {}
        }
    }
    Ok(path)
}

fn refused(relative: &str, reason: &str) -> Failure {
    Failure::new(Code::PathRefused, format!("{relative} {reason}"))
}
