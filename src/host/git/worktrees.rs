//! Makes worktrees outside of the repository, finds them, and removes them if nothing is lost by it.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Repository;
use super::names::check_own;
use super::stage;
use super::worktree::Worktree;
use crate::error::{Code, Failure, Result};
use crate::host::sweep::{self, remove_folder};
use crate::model::effect::git::NewWorktree;
use crate::model::text::excerpt;

/// The folder of git-crypt's keys in a git folder.
const KEYS: &str = "git-crypt";
/// Sparse-checkout patterns that include every file.
const EVERYTHING: &str = "/*\n";

/// How git lists a submodule.
const SUBMODULE: &[u8] = b"160000 ";

impl Repository {
    /// Makes a worktree on a branch. With `again`, the remains of an unfinished try are removed first.
    pub(super) fn worktree(&self, name: &str, branch: &str, again: bool) -> Result<NewWorktree> {
        check_own(branch)?;
        self.check_moved(branch)?;
        let commit = self.need_commit_of(branch)?;
        let (folder, git_dir) = self.place(name)?;
        // Git holds the lock as well, since git may go on for a moment after its run was killed.
        let lock = self.lock_worktrees()?;
        if again {
            remove_folder(&folder)?;
            remove_folder(&git_dir)?;
        } else if folder.exists() || git_dir.exists() {
            let message = format!("there is a worktree `{name}` of this run already");
            return Err(Failure::new(Code::GitFailed, message).hint("give each worktree a name of its own"));
        }
        if let Err(mut failure) = self.make(name, branch, &lock) {
            // Nothing of the try is left behind, so that the next try starts clean.
            for left in [&folder, &git_dir] {
                if let Err(other) = remove_folder(left) {
                    failure = failure.because(other.message);
                }
            }
            return Err(failure);
        }
        Ok(NewWorktree { path: folder, branch: branch.to_owned(), commit })
    }

    fn make(&self, name: &str, branch: &str, lock: &File) -> Result<()> {
        let (folder, git_dir) = self.place(name)?;
        // The configuration can depend on the new git folder, so it is read between adding the worktree and writing files.
        let add = self.call()?.args(["worktree", "add", "--quiet", "--no-checkout", "--"]).path(&folder).args([branch]);
        add.holding(lock)?.bytes()?;
        sweep::make_private(&folder)?;
        self.share_keys(&git_dir)?;
        let tree = self.tree(name)?;
        tree.fill(lock)?;
        self.tell_filters(&git_dir, &folder, || tree.call())?;
        tree.tell_submodules()
    }

    /// Links the keys of an unlocked repository for git-crypt, which looks for them in the worktree's own git folder.
    fn share_keys(&self, git_dir: &Path) -> Result<()> {
        let has_keys =
            std::fs::symlink_metadata(self.git_folders()?.common.join(KEYS)).is_ok_and(|found| found.is_dir());
        let link = git_dir.join(KEYS);
        if !has_keys || link.is_symlink() || link.exists() {
            return Ok(());
        }
        std::os::unix::fs::symlink(Path::new("../..").join(KEYS), &link)
            .map_err(|error| Failure::io(&link, "link", &error))
    }

    /// Finishes a removal that a crash has interrupted. Returns whether the worktree's folder is gone.
    pub(super) fn finish_removal(&self, name: &str) -> Result<bool> {
        let (folder, git_dir) = self.place(name)?;
        if folder.exists() {
            return Ok(false);
        }
        let _lock = self.lock_worktrees()?;
        remove_folder(&removal_folder(&folder))?;
        remove_folder(&builds_folder(&folder))?;
        remove_folder(&written_folder(&folder))?;
        remove_folder(&git_dir)?;
        Ok(true)
    }

    /// Waits until no other run of this repository makes, lists or removes a worktree: git does not expect a half-made
    /// worktree. The lock lasts as long as the file is open.
    pub(super) fn lock_worktrees(&self) -> Result<File> {
        let failed = |error| Failure::io(&self.worktrees, "lock", &error);
        sweep::make_private(&self.worktrees)?;
        let file = File::options().create(true).truncate(false).write(true).open(self.worktrees.join(".lock"));
        let file = file.map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }

    /// Returns the folder of a worktree, and its git folder.
    pub(super) fn place(&self, name: &str) -> Result<(PathBuf, PathBuf)> {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 60 || !name.chars().all(fine) || name.starts_with('-') {
            let shown = excerpt(name);
            let message =
                format!("`{shown}` is not a valid name for a worktree: letters, digits, `-` and `_`, up to 60");
            return Err(Failure::new(Code::RequestInvalid, message));
        }
        let id = format!("{}-{name}", self.run);
        Ok((self.worktrees.join(&id), self.git_folders()?.common.join("worktrees").join(&id)))
    }

    /// Returns a worktree, if it exists and still belongs to this repository.
    pub(super) fn tree(&self, name: &str) -> Result<Worktree<'_>> {
        let (folder, git_dir) = self.place(name)?;
        let linked = std::fs::read_to_string(git_dir.join("gitdir")).unwrap_or_default();
        let found = std::fs::symlink_metadata(&folder).ok().filter(std::fs::Metadata::is_dir);
        if found.is_none() || Path::new(linked.trim_end()) != folder.join(".git") {
            let message = format!("there is no worktree `{name}` of this run in {}", folder.display());
            return Err(
                Failure::new(Code::GitFailed, message).hint("was it removed? `git worktree list` shows what is")
            );
        }
        if found.is_some_and(|found| found.permissions().mode() & 0o700 != 0o700) {
            sweep::make_usable(&folder)?;
        }
        Ok(Worktree { repository: self, name: name.to_owned(), folder, git_dir })
    }
}

impl Worktree<'_> {
    /// Tells the user which folders are empty because they are submodules.
    fn tell_submodules(&self) -> Result<()> {
        if std::fs::symlink_metadata(self.folder.join(".gitmodules")).is_err() {
            return Ok(());
        }
        let listed = self.read_only_call().args(["ls-files", "-s", "-z"]).bytes()?;
        let submodules = listed.split(|byte| *byte == 0).filter(|entry| entry.starts_with(SUBMODULE));
        let paths: Vec<String> = submodules
            .filter_map(|entry| Some(String::from_utf8_lossy(&entry[memchr::memchr(b'\t', entry)? + 1..]).into_owned()))
            .collect();
        if !paths.is_empty() {
            let named = stage::summarize_names(paths.iter().map(|path| format!("`{}`", excerpt(path))));
            self.repository.remark(format!(
                "submodules are not in worktrees, their folders are empty: {named}; what needs them runs with --no-sandbox \
                 alone, after `git submodule update --init` in the same command, which fetches them anew"
            ));
        }
        Ok(())
    }

    /// Writes the files of a new worktree: all of them, even if the user's own checkout is sparse, because commands should
    /// see what is committed. If a partial clone lacks files, the worktree is as sparse as the user's checkout.
    fn fill(&self, lock: &File) -> Result<()> {
        let read = || self.call()?.args(["read-tree", "--reset", "-u", "HEAD"]).holding(lock)?.bytes().map(drop);
        let file = self.git_dir.join("info/sparse-checkout");
        let Ok(patterns) = std::fs::read(&file) else { return read() };
        let write =
            |patterns: &[u8]| std::fs::write(&file, patterns).map_err(|error| Failure::io(&file, "write", &error));
        write(EVERYTHING.as_bytes())?;
        let Err(why) = read() else { return Ok(()) };
        write(&patterns)?;
        self.rebuild_from_head()?;
        let name = &self.name;
        self.repository.remark(format!("the worktree `{name}` is sparse, as this partial clone lacks files: {why}"));
        Ok(())
    }

    /// Removes the worktree, if its commit is on a branch and, without `discard`, if everything is committed.
    pub(super) fn remove(&self, discard: bool) -> Result<()> {
        let head = self.head()?;
        let on = self.call()?.args(["for-each-ref", "--count=1", "--contains", &head, "refs/heads"]).text()?;
        if on.is_empty() {
            let message = format!("the commit {head} of the worktree `{}` is on no branch", self.name);
            return Err(Failure::new(Code::GitFailed, message).hint("it would be lost: give it a branch"));
        }
        if !discard && let Some(path) = self.uncommitted_paths()?.first() {
            let shown = excerpt(&path.to_string_lossy());
            let message = format!("`{shown}` in the worktree `{}` is not committed", self.name);
            return Err(Failure::new(Code::GitFailed, message).hint("commit first, or give `discard = true`"));
        }
        // Once renamed, the worktree counts as removed, even if a crash interrupts the rest.
        let gone = removal_folder(&self.folder);
        remove_folder(&gone)?;
        std::fs::rename(&self.folder, &gone).map_err(|error| Failure::io(&self.folder, "remove", &error))?;
        {
            let _lock = self.repository.lock_worktrees()?;
            remove_folder(&self.git_dir)?;
        }
        remove_folder(&gone)?;
        remove_folder(&written_folder(&self.folder))?;
        remove_folder(&builds_folder(&self.folder))
    }
}

/// Returns the folder for what commands in a worktree build. It is beside the worktree, whose restoration spares it.
pub(super) fn builds_folder(folder: &Path) -> PathBuf {
    folder.with_extension("builds")
}

/// Returns the folder for what commands in a worktree have written to its dependencies. It is spared, too.
pub(super) fn written_folder(folder: &Path) -> PathBuf {
    folder.with_extension("written")
}

/// Returns the folder of a worktree during its removal.
pub(super) fn removal_folder(folder: &Path) -> PathBuf {
    folder.with_extension("gone")
}
