//! Checks the names that a flow gives to branches and commits.

use crate::error::{Code, Failure, Result};
use crate::model::git::PREFIX;
use crate::model::text::excerpt;

/// Refuses a branch that is not a run's own: only those are made and moved.
pub(super) fn check_own(branch: &str) -> Result<()> {
    check_branch(branch)?;
    if branch.starts_with(PREFIX) {
        return Ok(());
    }
    let message = format!("a flow may only make and move branches that begin with `{PREFIX}`, not `{branch}`");
    Err(Failure::new(Code::PermissionRefused, message).hint("put that in front of the name"))
}

pub(super) fn check_branch(branch: &str) -> Result<()> {
    let fine = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && !part.ends_with(['.'])
            && !part.ends_with(".lock")
            && !part.contains("..")
            && !part.contains("@{")
            && !part.contains(['~', '^', ':', '?', '*', '[', '\\', ' '])
            && !part.contains(char::is_control)
    };
    if branch.len() <= 200 && branch.split('/').all(fine) {
        return Ok(());
    }
    let shown = excerpt(branch);
    Err(Failure::new(Code::RequestInvalid, format!("`{shown}` is not a valid name for a branch")))
}

pub(super) fn check_commit(commit: &str) -> Result<()> {
    let fine = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if fine {
        return Ok(());
    }
    let shown = excerpt(commit);
    Err(Failure::new(Code::RequestInvalid, format!("`{shown}` is not a commit: give all of its hexadecimal digits"))
        .hint("git.commit_of(BRANCH) returns them"))
}
