//! Worktrees: made outside of the repository, committed, restored, and removed when nothing is lost by it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Repository;
use super::branches::{check_commit, check_own};
use super::call::{Call, failure, names, paths};
use super::own::Settings;
use super::search::globs;
use super::stage::{self, stage};
use crate::error::{Code, Failure, Result};
use crate::host::sweep::{self, clear};
use crate::model::git::{Protect, is_of_runs, is_reserved};
use crate::model::text::excerpt;

/// What is missing now was missing at the start: a partial clone has not all objects.
const WRITE_TREE: [&str; 2] = ["write-tree", "--missing-ok"];
/// Where git-crypt keeps the keys of a repository, in its git folder.
const KEYS: &str = "git-crypt";
/// Sparse patterns that leave nothing out.
const EVERYTHING: &str = "/*\n";

/// How git lists a submodule.
const SUBMODULE: &[u8] = b"160000 ";

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
        self.check_moved(branch)?;
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
        if let Err(mut failure) = self.make(name, branch, &alone) {
            // Whoever puts right what was in the way begins anew.
            for left in [&folder, &git_dir] {
                if let Err(other) = clear(left) {
                    failure = failure.because(other.message);
                }
            }
            return Err(failure);
        }
        Ok(json!({ "path": folder, "branch": branch, "commit": commit }))
    }

    fn make(&self, name: &str, branch: &str, alone: &File) -> Result<()> {
        let (folder, git_dir) = self.place(name)?;
        // What the configuration says can depend on the new git folder, so that it is looked at before any file is made.
        let add = self.call()?.args(["worktree", "add", "--quiet", "--no-checkout", "--"]).path(&folder).args([branch]);
        add.holding(alone)?.bytes()?;
        sweep::make_private(&folder)?;
        self.share_keys(&git_dir)?;
        let tree = self.tree(name)?;
        tree.fill(alone)?;
        self.tell_filters(&git_dir, &folder, || tree.call())?;
        tree.tell_submodules()
    }

    /// Has git-crypt find the keys of a repository that is unlocked: it looks for them in a worktree's own git folder.
    fn share_keys(&self, git_dir: &Path) -> Result<()> {
        let there = std::fs::symlink_metadata(self.found()?.common.join(KEYS)).is_ok_and(|found| found.is_dir());
        let link = git_dir.join(KEYS);
        if !there || link.is_symlink() || link.exists() {
            return Ok(());
        }
        std::os::unix::fs::symlink(Path::new("../..").join(KEYS), &link)
            .map_err(|error| Failure::io(&link, "link", &error))
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
        self.tell_filters(&own, &self.workspace, call)?;
        let list = call()?.args(["ls-files", "-z", "-m", "-d", "-o", "--exclude-standard"]).bytes()?;
        // What runs have left is no part of what the next one works on.
        let changed = files(&list).filter(|path| !is_of_runs(&path.to_string_lossy())).map(OsStr::to_owned).collect();
        let left = stage(&call, &self.workspace, &changed, false)?;
        if !left.is_empty() {
            self.remark(format!("left out of what the run works on: {}", stage::told(&left)));
        }
        let tree = call()?.args(WRITE_TREE).line()?;
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
        sweep::make_private(&self.worktrees)?;
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
        self.repository.git().repository(&self.git_dir).work_tree(&self.folder)
    }

    pub(super) fn patterns(&self) -> Result<&Settings> {
        self.repository.patterns()
    }

    /// Tells which folders are empty here that are submodules elsewhere.
    fn tell_submodules(&self) -> Result<()> {
        if std::fs::symlink_metadata(self.folder.join(".gitmodules")).is_err() {
            return Ok(());
        }
        let listed = self.reading().args(["ls-files", "-s", "-z"]).bytes()?;
        let submodules = listed.split(|byte| *byte == 0).filter(|entry| entry.starts_with(SUBMODULE));
        let paths: Vec<String> = submodules
            .filter_map(|entry| Some(String::from_utf8_lossy(&entry[memchr::memchr(b'\t', entry)? + 1..]).into_owned()))
            .collect();
        if !paths.is_empty() {
            let named = stage::named(paths.iter().map(|path| format!("`{}`", excerpt(path))));
            self.repository.remark(format!(
                "submodules are not in worktrees, their folders are empty: {named}; what needs them runs with --no-sandbox \
                 alone, after `git submodule update --init` in the same command, which fetches them anew"
            ));
        }
        Ok(())
    }

    fn head(&self) -> Result<String> {
        self.reading().args(["rev-parse", "--verify", "-q", "HEAD^{commit}"]).line()
    }

    /// Returns the paths that are not as in the last commit and not ignored. A repository within the worktree is left
    /// out: nothing good comes of git looking into what a command has made. So is what belongs to nietz: it would be
    /// merged with the rest.
    fn unclean(&self) -> Result<BTreeSet<OsString>> {
        self.doubt()?;
        let list = || self.call()?.args(["ls-files", "-z", "-m", "-d", "-o", "--exclude-standard"]).output();
        let mut listed = list()?;
        if !listed.stderr.is_empty() {
            // It passes over what it cannot look into, and says so.
            sweep::make_usable(&self.folder)?;
            listed = list()?;
        }
        if !listed.status.success() {
            return Err(failure("ls-files", &listed));
        }
        let (left_out, changed): (BTreeSet<&OsStr>, BTreeSet<&OsStr>) =
            files(&listed.stdout).partition(|path| is_reserved(&path.to_string_lossy()));
        if !left_out.is_empty() {
            let (name, named) = (
                &self.name,
                stage::named(left_out.iter().map(|path| format!("`{}`", excerpt(&path.to_string_lossy())))),
            );
            self.repository
                .remark(format!("not committed from the worktree `{name}`, as it belongs to nietz itself: {named}"));
        }
        Ok(changed.into_iter().map(OsStr::to_owned).collect())
    }

    /// Has git compare what may have changed although nothing tells it: it takes a file for unchanged whose size is the same,
    /// and whose times are within the same second, and one of the two can be set at will.
    fn doubt(&self) -> Result<()> {
        let listed = self.reading().args(["ls-files", "-s", "-z", "--debug"]).bytes()?;
        let doubted = doubted(&listed, &self.folder)
            .ok_or_else(|| Failure::new(Code::GitFailed, "git lists what it knows of its files in an unknown form"))?;
        if !doubted.is_empty() {
            // An entry that was put there by hand has no times.
            self.call()?.args(["update-index", "-z", "--index-info"]).input(doubted).bytes()?;
        }
        Ok(())
    }

    fn not_committed(&self, left: &[(String, String)]) {
        if !left.is_empty() {
            let (name, named) = (&self.name, stage::told(left));
            self.repository.remark(format!("not committed from the worktree `{name}`: {named}"));
        }
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
        self.repository.check_moved(branch)?;
        let on = self.call()?.args(["symbolic-ref", "-q", "--short", "HEAD"]).line()?;
        if on != branch {
            let message = format!("the worktree `{}` is on the branch `{on}`, not on `{branch}`", self.name);
            return Err(Failure::new(Code::GitFailed, message));
        }
        self.not_committed(&stage(&|| self.call(), &self.folder, &self.unclean()?, true)?);
        let tree = self.call()?.args(WRITE_TREE).line()?;
        let before = self.call()?.args(["rev-parse", "HEAD", "HEAD^{tree}"]).text()?;
        let (head, old) = before.trim_end().split_once('\n').unwrap_or_default();
        if tree == old {
            return Ok(json!({ "commit": head, "changed": false, "tree": tree }));
        }
        let commit = self.call()?.at(now).args(["commit-tree", &tree, "-p", head, "-m", message]).line()?;
        self.repository.move_branch(branch, &commit, head)?;
        Ok(json!({ "commit": commit, "changed": true, "tree": tree }))
    }

    /// Makes everything as in the last commit, ignored files included; then takes protected files from where they
    /// are protected. Returns the protected files that the commit has changed.
    pub(super) fn restore(&self, protect: Option<&Protect>) -> Result<Value> {
        self.as_committed()?;
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

    /// Makes everything as in the last commit, ignored files included.
    fn as_committed(&self) -> Result<()> {
        // What is not known goes first: a link may stand where a folder has to be.
        let by_git = self
            .call()?
            .args(["ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD"])
            .bytes()
            .and_then(|known| sweep::keep(&self.folder, &known))
            .and_then(|()| self.doubt())
            .and_then(|()| self.call()?.args(["read-tree", "--reset", "-u", "HEAD"]).bytes());
        by_git.map(drop).or_else(|_| self.anew())
    }

    /// Makes everything anew from the last commit, whatever is there.
    fn anew(&self) -> Result<()> {
        sweep::empty(&self.folder, &[".git"])?;
        let index = self.git_dir.join("index");
        match std::fs::remove_file(&index) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::io(&index, "remove", &error)),
            _ => self.call()?.args(["read-tree", "--reset", "-u", "HEAD"]).bytes().map(drop),
        }
    }

    /// Makes the files of a new worktree: all of them, also where the user's own checkout is sparse, because commands
    /// are to see what is committed. Files that a partial clone does not have are left out, as they are there.
    fn fill(&self, alone: &File) -> Result<()> {
        let read = || self.call()?.args(["read-tree", "--reset", "-u", "HEAD"]).holding(alone)?.bytes().map(drop);
        let file = self.git_dir.join("info/sparse-checkout");
        let Ok(patterns) = std::fs::read(&file) else { return read() };
        let write =
            |patterns: &[u8]| std::fs::write(&file, patterns).map_err(|error| Failure::io(&file, "write", &error));
        write(EVERYTHING.as_bytes())?;
        let Err(why) = read() else { return Ok(()) };
        write(&patterns)?;
        self.anew()?;
        let name = &self.name;
        self.repository.remark(format!("the worktree `{name}` is sparse, as this partial clone lacks files: {why}"));
        Ok(())
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
            let shown = excerpt(&path.to_string_lossy());
            let message = format!("`{shown}` in the worktree `{}` is not committed", self.name);
            return Err(Failure::new(Code::GitFailed, message).hint("commit first, or give `discard = true`"));
        }
        // From this instant on it counts as removed, wherever a crash ends the rest.
        let gone = gone(&self.folder);
        clear(&gone)?;
        std::fs::rename(&self.folder, &gone).map_err(|error| Failure::io(&self.folder, "remove", &error))?;
        {
            let _alone = self.repository.alone()?;
            clear(&self.git_dir)?;
        }
        clear(&gone)?;
        Ok(Value::Null)
    }
}

/// Returns the files in a list of git's: what ends in `/` is another repository.
fn files(list: &[u8]) -> impl Iterator<Item = &OsStr> {
    paths(list).filter(|path| !path.as_bytes().ends_with(b"/"))
}

/// Returns where a worktree lies while it is removed.
fn gone(folder: &Path) -> PathBuf {
    folder.with_extension("gone")
}

/// Returns the entries, as git takes them, of files that were changed within the second in which git has looked at them. Nothing
/// where the listing is not understood.
fn doubted(listing: &[u8], folder: &Path) -> Option<Vec<u8>> {
    let mut doubted = Vec::new();
    let mut parts = listing.split(|byte| *byte == 0);
    let mut entry = parts.next()?;
    // What git knows stands behind each name, in five lines; the next entry follows on them.
    for part in parts {
        let ends: Vec<usize> = memchr::memchr_iter(b'\n', part).take(5).collect();
        let (first, last) = (*ends.first()?, *ends.get(4)?);
        let known = std::str::from_utf8(&part[..first]).ok()?.trim().strip_prefix("ctime: ")?;
        let (second, nano) = known.split_once(':')?;
        let (second, nano): (i64, i64) = (second.parse().ok()?, nano.parse().ok()?);
        let path = Path::new(OsStr::from_bytes(&entry[memchr::memchr(b'\t', entry)? + 1..]));
        let now = std::fs::symlink_metadata(folder.join(path)).ok();
        // A disk that knows no parts of seconds has zero for them.
        let same = |found: &Metadata| found.ctime_nsec() == nano && nano != 0;
        // Git keeps 32 bits of a time.
        if now.is_some_and(|found| found.ctime() & 0xffff_ffff == second && !same(&found)) {
            doubted.extend_from_slice(entry);
            doubted.push(0);
        }
        entry = &part[last + 1..];
    }
    entry.is_empty().then_some(doubted)
}
