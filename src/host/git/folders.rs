//! Checks that the git folder belongs to the workspace, and that no reference in it leads out of it through a link. A
//! checkout from an archive brings a `.git` of its own, which may contain links.

use std::path::{Path, PathBuf};

use super::Repository;
use crate::disk::{self, Links};
use crate::error::{Code, Failure, Result};
use crate::host::path::resolved;
use crate::model::text::excerpt;

/// The files and folders in which git keeps references and worktrees.
const WAYS: &[&str] = &[HEAD, "packed-refs", "refs", BRANCHES, "logs", "logs/HEAD", "logs/refs", LOGS, "worktrees"];
const HEAD: &str = "HEAD";
const BRANCHES: &str = "refs/heads";
const LOGS: &str = "logs/refs/heads";
/// Files that git reads to their end; it would wait forever if one were a pipe.
const READ: &[&str] = &[
    HEAD,
    "config",
    "config.worktree",
    "commondir",
    "packed-refs",
    "shallow",
    "index",
    "info/exclude",
    "info/attributes",
    "info/sparse-checkout",
    "objects/info/alternates",
];
/// The longest file, in bytes, that names a folder.
const LONGEST: u64 = 64 << 10;

impl Repository {
    /// Refuses a git folder that is not the workspace's own. A git folder outside the workspace must name the workspace
    /// itself, because a `.git` file that leads to somebody else's repository may have come with the other files.
    pub(super) fn check_whose(&self, own: &Path, common: &Path) -> Result<()> {
        let (own, common) = (resolved(own), resolved(common));
        let alone = own == common;
        if alone && own.starts_with(&self.workspace)
            || self.is_worktree(&own, &common)
            || alone && self.leads_back(&own)?
        {
            return [&own, &common]
                .into_iter()
                .try_for_each(|folder| check_plain(folder).and_then(|()| check_ways(folder)));
        }
        let (place, shown) = (self.workspace.display(), common.display());
        let message = format!("{place} names {shown} as its repository, which knows nothing of {place}");
        let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
        Err(Failure::new(Code::PermissionRefused, message).hint(match alone {
            true => format!(
                "if they belong together: git --git-dir={} config core.worktree {}",
                quoted(&own),
                quoted(&self.workspace)
            ),
            false => "if it is a worktree that was moved: `git worktree repair` in it".to_owned(),
        }))
    }

    /// Returns whether git made this git folder for a worktree that is the workspace.
    fn is_worktree(&self, own: &Path, common: &Path) -> bool {
        let back = disk::read(&own.join("gitdir"), Links::NotLast, LONGEST).ok().flatten();
        let back = back.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        own.parent().is_some_and(|above| above == common.join("worktrees"))
            && !back.is_empty()
            && resolved(&own.join(back.trim_end_matches('\n'))) == self.workspace.join(".git")
    }

    /// Returns whether the git folder's own configuration names the workspace as its worktree, as for submodules.
    fn leads_back(&self, own: &Path) -> Result<bool> {
        let output = self.git().repository(own).args(["config", "-z", "--get", "core.worktree"]).output()?;
        let value = String::from_utf8_lossy(&output.stdout).trim_end_matches('\0').to_owned();
        Ok(!value.is_empty() && resolved(&own.join(value)) == self.workspace)
    }

    /// Refuses to read a branch through a link that leads out of the git folder.
    pub(super) fn check_read(&self, branch: &str) -> Result<()> {
        self.check_reference(&format!("{BRANCHES}/{branch}"))
    }

    /// Does the same for any reference, by its full name.
    pub(super) fn check_reference(&self, full: &str) -> Result<()> {
        let common = &self.git_folders()?.common;
        parts("", full).try_for_each(|way| match leads_out(common, &way, true) {
            true => Err(through_a_link(&common.join(way))),
            false => Ok(()),
        })
    }

    /// Refuses to move a branch that is a symbolic reference, or that is reached through any link.
    pub(super) fn check_moved(&self, branch: &str) -> Result<()> {
        let common = &self.git_folders()?.common;
        for way in parts(BRANCHES, branch).chain(parts(LOGS, branch)) {
            if common.join(&way).is_symlink() {
                return Err(through_a_link(&common.join(way)));
            }
        }
        let full = format!("{BRANCHES}/{branch}");
        let leads = self.read_only_call()?.args(["symbolic-ref", "-q", &full]).output()?;
        if !leads.status.success() {
            return Ok(());
        }
        let to = excerpt(String::from_utf8_lossy(&leads.stdout).trim_end());
        let message = format!("the branch `{branch}` is not a branch of its own, but another name of `{to}`");
        Err(Failure::new(Code::PermissionRefused, message)
            .hint(format!("if nobody needs it: git symbolic-ref --delete '{full}'")))
    }
}

/// Refuses a git folder in which one of [`READ`] is not a plain file.
pub(super) fn check_plain(folder: &Path) -> Result<()> {
    let odd = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    let Some(path) = READ.iter().map(|name| folder.join(name)).find(odd) else { return Ok(()) };
    let message = format!("{} is not a plain file, and git would wait for it", path.display());
    Err(Failure::new(Code::GitFailed, message).hint("remove it, or clone the repository anew"))
}

fn check_ways(folder: &Path) -> Result<()> {
    let found = WAYS.iter().find(|way| leads_out(folder, Path::new(way), **way == HEAD));
    found.map_or(Ok(()), |way| Err(through_a_link(&folder.join(way))))
}

/// Returns whether a link leads out of a folder. A link that leads nowhere counts, too, unless it is only `read`.
fn leads_out(folder: &Path, way: &Path, read: bool) -> bool {
    let path = folder.join(way);
    path.is_symlink() && path.canonicalize().map_or(!read, |to| !to.starts_with(folder))
}

/// Returns the folders on the way to a branch, and the branch itself.
fn parts<'b>(below: &'b str, branch: &'b str) -> impl Iterator<Item = PathBuf> + 'b {
    let ends = branch.match_indices('/').map(|(end, _)| end).chain([branch.len()]);
    ends.map(move |end| Path::new(below).join(&branch[..end]))
}

fn through_a_link(path: &Path) -> Failure {
    let message = format!("{} is a link: a reference is neither read nor written elsewhere by it", path.display());
    Failure::new(Code::PermissionRefused, message)
        .hint("remove the link, or work in a clone or in a worktree of git's own: git worktree add FOLDER")
}
