//! Makes, compares and merges branches without a worktree.

use std::borrow::Cow;
use std::ffi::OsStr;

use super::Repository;
use super::call::{GitCall, NewCommit, names, paths};
use super::names::{check_branch, check_commit, check_own};
use super::process::failure;
use crate::error::{Code, Failure, Result};
use crate::host::globs::{globs, limit_files};
use crate::model::effect::files::FoundFiles;
use crate::model::effect::git::{Conflicts, GitBefore, Head, Merged, NewBranch, Patch};
use crate::model::git::{PREFIX, is_reserved};
use crate::model::text::{excerpt, shell};

/// The longest patch, in bytes, that a flow gets; the commits hold the complete change.
pub(super) const MOST_PATCH: usize = 256 << 10;

/// The options of a patch: no program of the repository's configuration makes it.
pub(super) const AS_PATCH: [&str; 5] = ["-p", "-M", "--no-ext-diff", "--no-textconv", "--no-color"];

/// Where git keeps which branch is the usual one of the remote `origin`, and what its branches begin with.
const DEFAULT: &str = "refs/remotes/origin/HEAD";
const ORIGIN: &str = "refs/remotes/origin/";
/// What that branch is called where nobody says it.
const USUAL_BRANCHES: &[&str] = &["main", "master"];

/// The command that lists the paths that differ.
const CHANGED: [&str; 5] = ["diff-tree", "-r", "-z", "--name-only", "--no-renames"];

/// Returns the patch that git writes, up to the limit that it is given, with whether it was cut.
pub(super) fn patch_of(write: impl FnOnce(usize) -> Result<Vec<u8>>) -> Result<Patch> {
    let bytes = write(MOST_PATCH + 1)?;
    let cut = bytes.len() > MOST_PATCH;
    let patch = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_PATCH)]).into_owned();
    Ok(Patch { patch, cut })
}

/// Returns the texts of the messages about conflicts. Each message is a count of paths, the paths, a kind and a text. The
/// paths have to be skipped by their count, since a path may look like any other part.
fn conflict_messages<'a>(mut parts: impl Iterator<Item = Cow<'a, str>>) -> Vec<String> {
    let mut messages = Vec::new();
    while let Some(paths) = parts.next().and_then(|count| count.parse::<usize>().ok()) {
        if let Some(text) = parts.nth(paths.saturating_add(1)).filter(|text| text.starts_with("CONFLICT")) {
            messages.push(text.trim_end().to_owned());
        }
    }
    messages
}

impl Repository {
    /// Returns the top folder of the repository, and the commit and branch that are checked out.
    pub(super) fn head(&self) -> Result<Head> {
        let own = || Ok::<_, Failure>(self.git().repository(&self.git_folders()?.own));
        let commit = own()?.args(["rev-parse", "--verify", "-q", "HEAD^{commit}"]).output()?;
        if !commit.status.success() {
            return Err(Failure::new(Code::GitMissing, "the repository has no commit to start from")
                .hint("commit something first"));
        }
        let branch = own()?.args(["symbolic-ref", "-q", "--short", "HEAD"]).output()?;
        let line = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        let mut head =
            Head { top: self.workspace.clone(), commit: line(&commit.stdout), branch: None, default_branch: None };
        if branch.status.success() {
            let branch = line(&branch.stdout);
            self.check_read(&branch)?;
            head.branch = Some(branch);
        } else {
            head.default_branch = self.default_branch()?;
        }
        Ok(head)
    }

    /// Returns the branch that the remote `origin` calls its own, or else `main` or `master`, if there is one.
    fn default_branch(&self) -> Result<Option<String>> {
        self.check_reference(DEFAULT)?;
        let named = self.read_only_call()?.args(["symbolic-ref", "-q", DEFAULT]).output()?;
        if named.status.success()
            && let Some(branch) = String::from_utf8_lossy(&named.stdout).trim_end().strip_prefix(ORIGIN)
        {
            return Ok(Some(branch.to_owned()));
        }
        for usual in USUAL_BRANCHES {
            if self.commit_of(usual)?.is_some() {
                return Ok(Some((*usual).to_owned()));
            }
        }
        Ok(None)
    }

    /// Returns the commit of any branch, the run's or the user's; `None` if there is no such branch.
    pub(super) fn commit_of(&self, branch: &str) -> Result<Option<String>> {
        check_branch(branch)?;
        self.check_read(branch)?;
        let full = format!("refs/heads/{branch}^{{commit}}");
        let output = self.read_only_call()?.args(["rev-parse", "--verify", "-q", &full]).output()?;
        Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned()))
    }

    pub(super) fn need_commit_of(&self, branch: &str) -> Result<String> {
        self.commit_of(branch)?
            .ok_or_else(|| Failure::new(Code::GitFailed, format!("there is no branch `{}`", excerpt(branch))))
    }

    pub(super) fn branch(&self, name: &str, commit: &str) -> Result<NewBranch> {
        check_own(name)?;
        check_commit(commit)?;
        self.check_room(name)?;
        self.check_moved(name)?;
        // An old value of zeros makes git fail if the branch exists already.
        self.move_branch(name, commit, &"0".repeat(commit.len())).map_err(|failure| match self.commit_of(name) {
            Ok(Some(at)) => Failure::new(Code::GitFailed, format!("there is a branch `{name}` already, at {at}"))
                .hint("delete it, or have the flow use another name"),
            _ => failure,
        })?;
        Ok(NewBranch { name: name.to_owned(), commit: commit.to_owned() })
    }

    /// Moves a run's branch from one commit to another; never a reference that the branch points to
    /// ([`Repository::check_moved`]).
    pub(super) fn move_branch(&self, name: &str, to: &str, from: &str) -> Result<()> {
        check_own(name)?;
        let full = format!("refs/heads/{name}");
        self.call()?.args(["update-ref", "--no-deref", &full, to, from]).bytes().map(drop)
    }

    /// Refuses a name such as `a/b` where a branch `a` exists: git keeps branches as files, which cannot be folders, too.
    fn check_room(&self, name: &str) -> Result<()> {
        for (end, _) in name.match_indices('/') {
            let above = &name[..end];
            if self.commit_of(above)?.is_some() {
                let message = format!("there is a branch `{above}`, and beside it git makes none called `{above}/…`");
                return Err(Failure::new(Code::GitFailed, message)
                    .hint(format!("rename it: git branch -m {} ANOTHER", shell(above))));
            }
        }
        Ok(())
    }

    /// Deletes a run's branch, if it exists.
    pub(super) fn delete_branch(&self, name: &str) -> Result<()> {
        check_own(name)?;
        self.check_moved(name)?;
        if self.commit_of(name)?.is_some() {
            self.call()?.args(["update-ref", "--no-deref", "-d", &format!("refs/heads/{name}")]).bytes()?;
        }
        Ok(())
    }

    pub(super) fn diff(&self, from: &str, to: &str, path: Option<&str>) -> Result<Patch> {
        let (from, to) = (self.need_commit(from)?, self.need_commit(to)?);
        let call = || Ok::<_, Failure>(self.read_only_call()?.args(["diff-tree", "-r"]).args(AS_PATCH));
        patch_of(|limit| match call()?.args([from.as_str(), &to]).only(path).limit_output(limit).bytes() {
            Ok(bytes) => Ok(bytes),
            Err(_) => self.diff_by_path(&from, &to, path),
        })
    }

    /// Returns a patch made path by path, for a partial clone that lacks objects for the complete patch.
    fn diff_by_path(&self, from: &str, to: &str, only: Option<&str>) -> Result<Vec<u8>> {
        let mut patch = Vec::new();
        let listed = self.read_only_call()?.args(CHANGED).args([from, to]).only(only).bytes()?;
        for path in names(&listed) {
            let call = self.read_only_call()?.args(["diff-tree", "-r"]).args(AS_PATCH).args(["--no-renames", from, to]);
            match call.only(Some(path)).limit_output(MOST_PATCH + 1).bytes() {
                Ok(bytes) => patch.extend(bytes),
                Err(failure) => patch.extend(format!("diff --git a/{path} b/{path}\n[{failure}]\n").into_bytes()),
            }
            if patch.len() > MOST_PATCH {
                break;
            }
        }
        Ok(patch)
    }

    pub(super) fn changed(&self, from: &str, to: &str) -> Result<Vec<String>> {
        let (from, to) = (self.need_commit(from)?, self.need_commit(to)?);
        self.read_only_call()?.changed_paths(&from, &to)
    }

    pub(super) fn files(&self, commit: &str, glob: &str) -> Result<FoundFiles> {
        // With a `/` at its end, it is for folders.
        let folders = glob.strip_suffix('/');
        let matcher = globs(&[folders.unwrap_or(glob).to_owned()])?;
        let commit = self.need_commit(commit)?;
        let call = self.read_only_call()?.args(["ls-tree", "-r", "-z", "--name-only", "--full-tree"]);
        let bytes = call.args(folders.map(|_| "-d")).args([commit.as_str()]).bytes()?;
        let end = if folders.is_some() { "/" } else { "" };
        let found = names(&bytes).filter(|path| matcher.is_match(path)).map(|path| format!("{path}{end}"));
        Ok(limit_files(found.collect()))
    }

    /// Merges in memory. The branch is moved only if there is no conflict and nobody else has moved it meanwhile.
    /// `squash` makes one commit of what the branch brings, without it as a parent.
    pub(super) fn merge(&self, from: &str, into: &str, squash: bool, new: &NewCommit<'_>) -> Result<Merged> {
        check_own(into)?;
        self.check_moved(into)?;
        let (theirs, ours) = (self.need_commit_of(from)?, self.need_commit_of(into)?);
        let merged_as = |commit: Option<String>, conflicts: Option<Conflicts>| Merged {
            commit,
            from: theirs.clone(),
            into: ours.clone(),
            conflicts,
        };
        let contained = self.call()?.args(["merge-base", "--is-ancestor", &theirs, &ours]).output()?;
        if contained.status.success() {
            return Ok(merged_as(Some(ours.clone()), None));
        }
        self.check_not_checked_out(into)?;
        // Git makes the files for a merge driver in its current folder.
        let scratch =
            tempfile::tempdir_in(&self.worktrees).map_err(|error| Failure::io(&self.worktrees, "use", &error))?;
        let merge = ["merge-tree", "--write-tree", "-z", "--name-only", &ours, &theirs];
        let merged = self.call()?.scratch(scratch.path()).args(merge).output()?;
        let mut parts = merged.stdout.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        match merged.status.code() {
            Some(0) => {}
            Some(1) => {
                // The output is the tree, the names of the conflicts, an empty name, then the messages.
                let paths: Vec<String> =
                    parts.by_ref().skip(1).take_while(|name| !name.is_empty()).map(|name| name.into_owned()).collect();
                let messages = conflict_messages(parts);
                return Ok(merged_as(None, Some(Conflicts { conflicts: paths, messages })));
            }
            _ => return Err(failure("merge-tree", &merged)),
        }
        let tree = parts.next().unwrap_or_default().into_owned();
        self.check_not_ours(from, &ours, &tree)?;
        if from.starts_with(PREFIX) {
            self.tell_brought(into, &ours, &tree)?;
        }
        let parents: &[&str] = if squash { &["-p", &ours] } else { &["-p", &ours, "-p", &theirs] };
        let call = self.call()?.committing(new)?.args(["commit-tree", &tree]).args(parents.iter().copied());
        let commit = call.args(["-m", new.message]).line()?;
        self.move_branch(into, &commit, &ours)?;
        Ok(merged_as(Some(commit.clone()), None))
    }

    pub(super) fn prepare_merge(&self, from: &str, into: &str) -> Result<GitBefore> {
        check_own(into)?;
        Ok(GitBefore::Merge { from: self.need_commit_of(from)?, into: self.need_commit_of(into)? })
    }

    /// Returns the merge if it happened: if the branch has moved to a merge of just those two commits.
    pub(super) fn probe_merge(&self, into: &str, squash: bool, before: &GitBefore) -> Option<Merged> {
        let GitBefore::Merge { from: theirs, into: ours } = before else { return None };
        let now = self.commit_of(into).ok()??;
        let line = self.read_only_call().ok()?.args(["rev-list", "--parents", "-n", "1", &now]).line().ok()?;
        let parents: Vec<&str> = line.split(' ').skip(1).collect();
        let merged = Merged { commit: Some(now.clone()), from: theirs.clone(), into: ours.clone(), conflicts: None };
        let expected: &[&String] = if squash { &[ours] } else { &[ours, theirs] };
        parents.iter().eq(expected).then_some(merged)
    }

    /// Refuses a run's branch that changes files of nietz itself, since the user merges the result in the end.
    fn check_not_ours(&self, from: &str, ours: &str, tree: &str) -> Result<()> {
        if !from.starts_with(PREFIX) {
            return Ok(());
        }
        let changed = self.call()?.args(CHANGED).args([ours, tree]).bytes()?;
        let mut shown = paths(&changed).map(OsStr::to_string_lossy);
        let Some(path) = shown.find(|path| is_reserved(path)) else { return Ok(()) };
        let message = format!("the branch `{from}` changes `{}`, which belongs to nietz", excerpt(&path));
        Err(Failure::new(Code::PathRefused, message).hint("take that out of the branch, or merge it yourself"))
    }

    /// Refuses a branch that is checked out somewhere: its worktree would no longer match it.
    fn check_not_checked_out(&self, branch: &str) -> Result<()> {
        let list = {
            let _alone = self.lock_worktrees()?;
            self.call()?.args(["worktree", "list", "--porcelain", "-z"]).bytes()?
        };
        let full = format!("branch refs/heads/{branch}");
        if names(&list).any(|line| line == full) {
            let message = format!("the branch `{branch}` is checked out in a worktree, and cannot be moved");
            return Err(Failure::new(Code::GitFailed, message).hint("remove that worktree: git worktree list"));
        }
        Ok(())
    }
}

impl GitCall {
    /// Compares this file or folder alone. Behind this come no more options.
    pub(super) fn only(self, path: Option<&str>) -> GitCall {
        self.args(path.into_iter().flat_map(|path| ["--", path]))
    }

    /// Returns the paths that differ between two commits, as far as they are UTF-8.
    pub(super) fn changed_paths(self, from: &str, to: &str) -> Result<Vec<String>> {
        let bytes = self.args(CHANGED).args([from, to]).bytes()?;
        Ok(names(&bytes).map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_looks_like_a_message_is_none() {
        let parts = "2\0CONFLICT (content): x/a\0CONFLICT (content): x/b\0Auto-merging\0Auto-merging CONFLICT\n\0\
                    1\0CONFLICT (content): x/a\0CONFLICT (contents)\0CONFLICT (content): Merge conflict in CONFLICT (content): x/a\n\0";
        let messages = conflict_messages(parts.split('\0').map(Cow::Borrowed));
        assert_eq!(messages, ["CONFLICT (content): Merge conflict in CONFLICT (content): x/a"]);
        assert_eq!(conflict_messages(["9", "a"].into_iter().map(Cow::Borrowed)), [""; 0]);
    }
}
