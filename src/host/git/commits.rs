//! Commits a worktree or the workspace, and restores a worktree to its last commit.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use super::Repository;
use super::call::{NewCommit, names};
use super::names::{check_commit, check_own};
use super::stage::{self, stage};
use super::worktree::{Worktree, files};
use crate::error::{Code, Failure, Result};
use crate::host::confined::ConfinedDir;
use crate::host::globs::globs;
use crate::host::sweep;
use crate::model::effect::git::Committed;
use crate::model::effect::worktree::{Protect, TreeBefore};
use crate::model::git::is_of_runs;

/// Writes a tree even if objects are missing: a partial clone has not all of them.
pub(super) const WRITE_TREE: [&str; 2] = ["write-tree", "--missing-ok"];

impl Repository {
    /// Makes a commit of the workspace as it is now, uncommitted files included and ignored files excluded. A separate
    /// index leaves the user's own untouched. Returns the checked-out commit if nothing has changed.
    pub(super) fn snapshot(&self, now: u64) -> Result<Committed> {
        let head = self.head()?.commit;
        let _alone = self.lock_worktrees()?;
        let folder =
            tempfile::tempdir_in(&self.worktrees).map_err(|error| Failure::io(&self.worktrees, "use", &error))?;
        let index = folder.path().join("index");
        let own = self.git_folders()?.own.clone();
        let call = || Ok(self.call_at(&own)?.work_tree(&self.workspace).index(&index));
        call()?.args(["read-tree", &head]).bytes()?;
        self.tell_filters(&own, &self.workspace, call)?;
        let list = call()?.args(["ls-files", "-z", "-m", "-d", "-o", "--exclude-standard"]).bytes()?;
        // Files that earlier runs have left are no part of what this run works on.
        let changed = files(&list).filter(|path| !is_of_runs(&path.to_string_lossy())).map(OsStr::to_owned).collect();
        let left = stage(&call, &self.workspace, &changed, false)?;
        if !left.is_empty() {
            self.remark(format!("left out of what the run works on: {}", stage::describe_left_out(&left)));
        }
        let tree = call()?.args(WRITE_TREE).line()?;
        let before = call()?.args(["rev-parse", "--verify", "-q", &format!("{head}^{{tree}}")]).line()?;
        if tree == before {
            return Ok(Committed { commit: head, changed: false, tree: None });
        }
        let message = "The workspace as it was";
        let commit = call()?.at(now).args(["commit-tree", &tree, "-p", &head, "-m", message]).line()?;
        Ok(Committed { commit, changed: true, tree: None })
    }
}

impl Worktree<'_> {
    fn not_committed(&self, left: &[(String, String)]) {
        if !left.is_empty() {
            let (name, named) = (&self.name, stage::describe_left_out(left));
            self.repository.remark(format!("not committed from the worktree `{name}`: {named}"));
        }
    }

    pub(super) fn prepare_commit(&self) -> Result<TreeBefore> {
        Ok(TreeBefore::Commit { head: self.head()? })
    }

    /// Returns the commit if it happened: if the parent of the head is the old head.
    pub(super) fn probe_commit(&self, before: &TreeBefore) -> Option<Committed> {
        let TreeBefore::Commit { head: before } = before else { return None };
        let commit = self.head().ok()?;
        let parent = self.read_only_call().args(["rev-parse", "--verify", "-q", "HEAD^1"]).line().ok()?;
        let tree = self.read_only_call().args(["rev-parse", "--verify", "-q", "HEAD^{tree}"]).line().ok()?;
        (parent == *before).then_some(Committed { commit, changed: true, tree: Some(tree) })
    }

    /// Commits everything that is not ignored, with low-level commands, so that git runs nothing in the worktree.
    pub(super) fn commit(&self, branch: &str, new: &NewCommit<'_>) -> Result<Committed> {
        self.check_branch(branch)?;
        self.not_committed(&stage(&|| self.call(), &self.folder, &self.uncommitted_paths()?, true)?);
        let tree = self.call()?.args(WRITE_TREE).line()?;
        let before = self.call()?.args(["rev-parse", "HEAD", "HEAD^{tree}"]).text()?;
        let (head, old) = before.trim_end().split_once('\n').unwrap_or_default();
        if tree == old {
            return Ok(Committed { commit: head.to_owned(), changed: false, tree: Some(tree) });
        }
        let commit =
            self.call()?.committing(new)?.args(["commit-tree", &tree, "-p", head, "-m", new.message]).line()?;
        self.repository.move_branch(branch, &commit, head)?;
        Ok(Committed { commit, changed: true, tree: Some(tree) })
    }

    /// Refuses a branch that is not the worktree's own.
    fn check_branch(&self, branch: &str) -> Result<()> {
        check_own(branch)?;
        self.repository.check_moved(branch)?;
        let on = self.call()?.args(["symbolic-ref", "-q", "--short", "HEAD"]).line()?;
        if on == branch {
            return Ok(());
        }
        let message = format!("the worktree `{}` is on the branch `{on}`, not on `{branch}`", self.name);
        Err(Failure::new(Code::GitFailed, message))
    }

    /// Moves the worktree's branch to a commit, and makes everything as it is there. Files that are the same in both keep their
    /// times, by which build tools tell what has changed.
    pub(super) fn move_to(&self, branch: &str, commit: &str) -> Result<()> {
        self.check_branch(branch)?;
        check_commit(commit)?;
        let to = self.read_only_call().args(["rev-parse", "--verify", "-q", &format!("{commit}^{{commit}}")]).line()?;
        let from = self.head()?;
        if from != to {
            self.repository.move_branch(branch, &to, &from)?;
        }
        self.reset_to_head()
    }

    /// Resets all files to the last commit, ignored files included, and then protected files to the commit that protects
    /// them. Returns the protected files that were changed since that commit.
    pub(super) fn restore(&self, protect: Option<&Protect>) -> Result<Vec<String>> {
        self.reset_to_head()?;
        let Some(Protect { from, globs: patterns }) = protect else { return Ok(Vec::new()) };
        check_commit(from)?;
        let globs = globs(patterns)?;
        let changed = self.call()?.changed_paths(from, &self.head()?)?;
        let touched: Vec<String> = changed.into_iter().filter(|path| globs.is_match(path)).collect();
        if touched.is_empty() {
            return Ok(Vec::new());
        }
        let protected = self.call()?.args(["ls-tree", "-r", "-z", "--name-only", "--full-tree", from]).bytes()?;
        let protected: BTreeSet<&str> = names(&protected).collect();
        // Files that are not in that commit are deleted first: one may be in the place of a folder.
        let folder = ConfinedDir::open(&self.folder)?;
        for path in touched.iter().filter(|path| !protected.contains(path.as_str())) {
            folder.delete(path)?;
        }
        let list: Vec<u8> = touched
            .iter()
            .filter(|path| protected.contains(path.as_str()))
            .flat_map(|path| path.bytes().chain(std::iter::once(0)))
            .collect();
        if !list.is_empty() {
            let source = format!("--source={from}");
            let restore = ["restore", &source, "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul"];
            self.call()?.args(restore).input(list).bytes()?;
        }
        Ok(touched)
    }

    /// Resets all files to the last commit, ignored files included.
    fn reset_to_head(&self) -> Result<()> {
        // Files that are not in the commit are deleted first: a link may be in the place of a folder.
        let by_git = self
            .call()?
            .args(["ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD"])
            .bytes()
            .and_then(|known| sweep::remove_unlisted(&self.folder, &known))
            .and_then(|()| self.recheck_racy_files())
            .and_then(|()| self.call()?.args(["read-tree", "--reset", "-u", "HEAD"]).bytes());
        by_git.map(drop).or_else(|_| self.rebuild_from_head())
    }

    /// Deletes all files and writes them anew from the last commit.
    pub(super) fn rebuild_from_head(&self) -> Result<()> {
        sweep::empty(&self.folder, &[".git"])?;
        let index = self.git_dir.join("index");
        match std::fs::remove_file(&index) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::io(&index, "remove", &error)),
            _ => self.call()?.args(["read-tree", "--reset", "-u", "HEAD"]).bytes().map(drop),
        }
    }
}
