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

/// The name of the commit that is checked out. Git has a second one.
pub(super) const HEAD: &str = "HEAD";
const SECOND_HEAD: &str = "@";

/// A revision: a name, and the steps from there to another commit, such as `~1^2`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Revision<'a> {
    pub(super) name: &'a str,
    pub(super) steps: &'a str,
}

impl<'a> Revision<'a> {
    /// The longest name with its steps, in bytes, and the most digits of one step.
    const LONGEST: usize = 250;
    const DIGITS: usize = 6;

    /// Reads what git calls a revision, as far as it names a commit for good: nothing that depends on the time, on what
    /// was checked out before, or on a search. It begins with no `-`.
    pub(super) fn parse(revision: &'a str) -> Result<Revision<'a>> {
        let (name, steps) = revision.split_at(revision.find(['~', '^']).unwrap_or(revision.len()));
        let step = |digits: &str| digits.len() <= Self::DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
        let fine = revision.len() <= Self::LONGEST && steps.split(['~', '^']).all(step);
        if fine && check_branch(name).is_ok() {
            let name = if name == SECOND_HEAD { HEAD } else { name };
            return Ok(Revision { name, steps });
        }
        let shown = excerpt(revision);
        Err(Failure::new(Code::RequestInvalid, format!("`{shown}` is not a revision"))
            .hint("give a branch, a tag, a branch of a remote, HEAD or a hash, and `~1` or `^2` behind it"))
    }

    /// Returns whether a name may be the beginning of a hash: git asks for four digits at least.
    pub(super) fn may_be_hash(name: &str) -> bool {
        (4..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

/// Returns whether these are all digits of a hash.
pub(super) fn is_hash(commit: &str) -> bool {
    matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) fn check_commit(commit: &str) -> Result<()> {
    if is_hash(commit) {
        return Ok(());
    }
    let shown = excerpt(commit);
    Err(Failure::new(Code::RequestInvalid, format!("`{shown}` is not a commit: give all of its hexadecimal digits"))
        .hint("git.resolve(REVISION) returns them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_a_name_with_steps_and_never_an_option() {
        let parsed = Revision::parse("origin/main~2^").expect("it is one");
        assert_eq!(parsed, Revision { name: "origin/main", steps: "~2^" });
        assert_eq!(Revision::parse("@~1"), Ok(Revision { name: "HEAD", steps: "~1" }));
        for fine in ["HEAD", "HEAD~1", "v1.0", "v1.0^2~3", "0123abc", "a-b"] {
            assert!(Revision::parse(fine).is_ok(), "{fine}");
        }
        for wrong in [
            "",
            "-v",
            "--all",
            "~1",
            "a..b",
            "a b",
            "HEAD@{1}",
            ":/fix",
            "HEAD:README",
            "HEAD^{/fix}",
            "HEAD~-1",
            "a\nb",
        ] {
            assert_eq!(Revision::parse(wrong).expect_err(wrong).code, Code::RequestInvalid, "{wrong}");
        }
    }
}
