//! Worktrees: made outside of the repository, committed, restored, and removed when nothing is lost by it.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Repository;
use super::branches::{check_commit, check_own};
use super::call::{Call, names};
use super::search::globs;
use crate::error::{Code, Failure, Result};
use crate::model::git::{Protect, is_of_runs, is_reserved};
use crate::model::text::excerpt;

/// How many files that are left out of a commit are named.
const NAMED: usize = 5;
/// How long a git that nobody waits for may take to its end.
const LEFT_BEHIND: Duration = Duration::from_secs(10);

/// One worktree of this run. Where its repository is, is known from the repository's side alone.
pub(super) struct Tree<'r> {
    repository: &'r Repository,
    name: String,
    folder: PathBuf,
    git_dir: PathBuf,
}

impl Repository {
    /// Makes a worktree on a branch. What an unfinished try has left is removed.
    pub(super) fn worktree(&self, name: &str, branch: &str, again: bool) -> Result<Value> {
        check_own(branch)?;
        let commit = self.need_commit_of(branch)?;
        let (folder, git_dir) = self.place(name)?;
        // Held by git as well: one that outlives a killed run goes on for a moment.
        let alone = self.alone()?;
        if again {
            clear(&folder)?;
            clear(&git_dir)?;
        } else if folder.exists() || git_dir.exists() {
            let message = format!("there is a worktree `{name}` of this run already");
            return Err(Failure::new(Code::GitFailed, message).hint("give each worktree a name of its own"));
        }
        // What the configuration says can depend on the new git folder, so that it is looked at before any file is made.
        let add = self.call()?.args(["worktree", "add", "--quiet", "--no-checkout", "--"]).path(&folder).args([branch]);
        add.holding(&alone)?.bytes()?;
        let tree = self.tree(name)?;
        tree.call()?.args(["read-tree", "--reset", "-u", "HEAD"]).holding(&alone)?.bytes()?;
        self.tell_filters(&git_dir, || tree.call())?;
        Ok(json!({ "path": folder, "branch": branch, "commit": commit }))
    }

    /// Makes a commit of the workspace as it is now, with what is not committed and not ignored, by way of an index of
    /// its own. Nothing of the user's moves; where nothing is changed, it is the commit that is checked out.
    pub(super) fn snapshot(&self, now: u64) -> Result<Value> {
        let head = self.head()?;
        let head = head["commit"].as_str().unwrap_or_default();
        let _alone = self.alone()?;
        let folder =
            tempfile::tempdir_in(&self.worktrees).map_err(|error| Failure::io(&self.worktrees, "use", &error))?;
        let index = folder.path().join("index");
        let own = self.found()?.own.clone();
        let call = || Ok(self.call_at(&own)?.work_tree(&self.workspace).index(&index));
        call()?.args(["read-tree", head]).bytes()?;
        self.tell_filters(&own, call)?;
        let list = call()?.args(["ls-files", "-z", "-m", "-d", "-o", "--exclude-standard"]).bytes()?;
        let mut changed = Vec::new();
        // What runs have left is no part of what the next one works on.
        for path in names(&list).filter(|path| !path.ends_with('/') && !is_of_runs(path)) {
            changed.extend_from_slice(path.as_bytes());
            changed.push(0);
        }
        call()?.args(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]).input(changed).bytes()?;
        let tree = call()?.args(["write-tree"]).line()?;
        let before = call()?.args(["rev-parse", "--verify", "-q", &format!("{head}^{{tree}}")]).line()?;
        if tree == before {
            return Ok(json!({ "commit": head, "changed": false }));
        }
        let message = "The workspace as it was";
        let commit = call()?.at(now).args(["commit-tree", &tree, "-p", head, "-m", message]).line()?;
        Ok(json!({ "commit": commit, "changed": true }))
    }

    /// Finishes a removal that a crash has interrupted; tells whether there was one.
    pub(super) fn finish_removal(&self, name: &str) -> Result<bool> {
        let (folder, git_dir) = self.place(name)?;
        if folder.exists() {
            return Ok(false);
        }
        let _alone = self.alone()?;
        clear(&gone(&folder))?;
        clear(&git_dir)?;
        Ok(true)
    }

    /// Waits until no other run of this repository makes, lists or removes a worktree: git is not prepared to find
    /// one that is half there. The lock goes with the file.
    pub(super) fn alone(&self) -> Result<File> {
        let failed = |error| Failure::io(&self.worktrees, "lock", &error);
        std::fs::create_dir_all(&self.worktrees).map_err(failed)?;
        let file = File::options().create(true).truncate(false).write(true).open(self.worktrees.join(".lock"));
        let file = file.map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }

    /// Returns where a worktree is, and where git keeps what it knows of it.
    fn place(&self, name: &str) -> Result<(PathBuf, PathBuf)> {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 60 || !name.chars().all(fine) || name.starts_with('-') {
            let shown = excerpt(name);
            let message = format!("`{shown}` is no name of a worktree: letters, digits, `-` and `_`, up to 60");
            return Err(Failure::new(Code::RequestInvalid, message));
        }
        let id = format!("{}-{name}", self.run);
        Ok((self.worktrees.join(&id), self.found()?.common.join("worktrees").join(&id)))
    }

    /// Returns a worktree that is there, and is still that of this repository.
    pub(super) fn tree(&self, name: &str) -> Result<Tree<'_>> {
        let (folder, git_dir) = self.place(name)?;
        let linked = std::fs::read_to_string(git_dir.join("gitdir")).unwrap_or_default();
        let is_folder = std::fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir());
        if !is_folder || Path::new(linked.trim_end()) != folder.join(".git") {
            let message = format!("there is no worktree `{name}` of this run in {}", folder.display());
            return Err(
                Failure::new(Code::GitFailed, message).hint("was it removed? `git worktree list` shows what is")
            );
        }
        Ok(Tree { repository: self, name: name.to_owned(), folder, git_dir })
    }
}

impl Tree<'_> {
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn call(&self) -> Result<Call> {
        Ok(self.repository.call_at(&self.git_dir)?.work_tree(&self.folder))
    }

    /// One that reads objects, references and names alone.
    pub(super) fn reading(&self) -> Call {
        Call::new(&self.repository.path).repository(&self.git_dir).work_tree(&self.folder)
    }

    fn head(&self) -> Result<String> {
        self.reading().args(["rev-parse", "--verify", "-q", "HEAD^{commit}"]).line()
    }

    /// Returns the paths that are not as in the last commit and not ignored. A repository within the worktree is left
    /// out: nothing good comes of git looking into what a command has made. So is what belongs to nietz: it would be
    /// merged with the rest.
    fn unclean(&self) -> Result<BTreeSet<String>> {
        let list = self.call()?.args(["ls-files", "-z", "-m", "-d", "-o", "--exclude-standard"]).bytes()?;
        let all = names(&list).filter(|path| !path.ends_with('/'));
        let (left_out, changed): (BTreeSet<&str>, BTreeSet<&str>) = all.partition(|path| is_reserved(path));
        if !left_out.is_empty() {
            let mut named: Vec<String> =
                left_out.iter().take(NAMED).map(|path| format!("`{}`", excerpt(path))).collect();
            let more = left_out.len() - named.len();
            named.extend((more > 0).then(|| format!("{more} more")));
            let (named, name) = (named.join(", "), &self.name);
            self.repository
                .remark(format!("not committed from the worktree `{name}`, as it belongs to nietz itself: {named}"));
        }
        Ok(changed.into_iter().map(str::to_owned).collect())
    }

    pub(super) fn prepare_commit(&self) -> Result<Value> {
        Ok(json!({ "head": self.head()? }))
    }

    /// It happened if there is one more commit than there was.
    pub(super) fn look_commit(&self, before: &Value) -> Option<Result<Value>> {
        let head = self.head().ok()?;
        let parent = self.reading().args(["rev-parse", "--verify", "-q", "HEAD^1"]).line().ok()?;
        let tree = self.reading().args(["rev-parse", "--verify", "-q", "HEAD^{tree}"]).line().ok()?;
        let happened = Some(parent.as_str()) == before["head"].as_str();
        happened.then(|| Ok(json!({ "commit": head, "changed": true, "tree": tree })))
    }

    /// Commits everything that is not ignored, step by step, so that nothing in the worktree is run or asked.
    pub(super) fn commit(&self, branch: &str, message: &str, now: u64) -> Result<Value> {
        check_own(branch)?;
        let on = self.call()?.args(["symbolic-ref", "-q", "--short", "HEAD"]).line()?;
        if on != branch {
            let message = format!("the worktree `{}` is on the branch `{on}`, not on `{branch}`", self.name);
            return Err(Failure::new(Code::GitFailed, message));
        }
        let list = self.unclean()?.into_iter().fold(Vec::new(), |mut list, path| {
            list.extend_from_slice(path.as_bytes());
            list.push(0);
            list
        });
        if !list.is_empty() {
            self.call()?
                .args(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"])
                .input(list)
                .bytes()?;
        }
        let tree = self.call()?.args(["write-tree"]).line()?;
        let before = self.call()?.args(["rev-parse", "HEAD", "HEAD^{tree}"]).text()?;
        let (head, old) = before.trim_end().split_once('\n').unwrap_or_default();
        if tree == old {
            return Ok(json!({ "commit": head, "changed": false, "tree": tree }));
        }
        let commit = self.call()?.at(now).args(["commit-tree", &tree, "-p", head, "-m", message]).line()?;
        self.call()?.args(["update-ref", "-m", "commit", "HEAD", &commit, head]).bytes()?;
        Ok(json!({ "commit": commit, "changed": true, "tree": tree }))
    }

    /// Makes everything as in the last commit, ignored files included; then takes protected files from where they
    /// are protected. Returns the protected files that the commit has changed.
    pub(super) fn restore(&self, protect: Option<&Protect>) -> Result<Value> {
        self.call()?.args(["read-tree", "--reset", "-u", "HEAD"]).bytes()?;
        self.call()?.args(["clean", "-ffdxq"]).bytes()?;
        let Some(Protect { from, globs: patterns }) = protect else { return Ok(json!({ "touched": [] })) };
        check_commit(from)?;
        let globs = globs(patterns)?;
        let changed = self.call()?.changed_paths(from, &self.head()?)?;
        let touched: Vec<String> = changed.into_iter().filter(|path| globs.is_match(path)).collect();
        if touched.is_empty() {
            return Ok(json!({ "touched": [] }));
        }
        let there = self.call()?.args(["ls-tree", "-r", "-z", "--name-only", "--full-tree", from]).bytes()?;
        let there: BTreeSet<&str> = names(&there).collect();
        // What is not in that commit goes first: a file may stand where a folder has to be.
        for path in touched.iter().filter(|path| !there.contains(path.as_str())) {
            super::files::delete(self, path)?;
        }
        let list: Vec<u8> = touched
            .iter()
            .filter(|path| there.contains(path.as_str()))
            .flat_map(|path| path.bytes().chain(std::iter::once(0)))
            .collect();
        if !list.is_empty() {
            let source = format!("--source={from}");
            let restore = ["restore", &source, "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul"];
            self.call()?.args(restore).input(list).bytes()?;
        }
        Ok(json!({ "touched": touched }))
    }

    /// Removes the worktree, if its commit is on a branch and, without `discard`, if everything is committed.
    pub(super) fn remove(&self, discard: bool) -> Result<Value> {
        let head = self.head()?;
        let on = self.call()?.args(["for-each-ref", "--count=1", "--contains", &head, "refs/heads"]).text()?;
        if on.is_empty() {
            let message = format!("the commit {head} of the worktree `{}` is on no branch", self.name);
            return Err(Failure::new(Code::GitFailed, message).hint("it would be lost: give it a branch"));
        }
        if !discard && let Some(path) = self.unclean()?.first() {
            let message = format!("`{path}` in the worktree `{}` is not committed", self.name);
            return Err(Failure::new(Code::GitFailed, message).hint("commit first, or give `discard = true`"));
        }
        // From this instant on it counts as removed, wherever a crash ends the rest.
        let gone = gone(&self.folder);
        std::fs::rename(&self.folder, &gone).map_err(|error| Failure::io(&self.folder, "remove", &error))?;
        {
            let _alone = self.repository.alone()?;
            clear(&self.git_dir)?;
        }
        clear(&gone)?;
        Ok(Value::Null)
    }
}

/// Returns where a worktree lies while it is removed.
fn gone(folder: &Path) -> PathBuf {
    folder.with_extension("gone")
}

/// Removes a folder with all that is in it, links not followed; one that is not there is fine.
///
/// A git that outlived the process which started it may still write there; it comes to its end soon.
fn clear(folder: &Path) -> Result<()> {
    let until = Instant::now() + LEFT_BEHIND;
    loop {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::io(folder, "remove", &error));
            }
            _ => return Ok(()),
        }
    }
}
