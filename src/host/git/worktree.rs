//! One worktree of a run: its folders, git calls in it, and its uncommitted files.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Repository;
use super::call::{GitCall, paths};
use super::process::failure;
use super::stage;
use super::user_config::GitSettings;
use crate::error::{Code, Failure, Result};
use crate::host::sweep;
use crate::model::git::is_reserved;
use crate::model::text::excerpt;

/// One worktree of this run. Its repository is never looked up from files in the worktree.
pub(super) struct Worktree<'r> {
    pub(super) repository: &'r Repository,
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) git_dir: PathBuf,
}

impl Worktree<'_> {
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn call(&self) -> Result<GitCall> {
        Ok(self.repository.call_at(&self.git_dir)?.work_tree(&self.folder))
    }

    /// Returns a git command that only reads objects, references and names.
    pub(super) fn read_only_call(&self) -> GitCall {
        self.repository.git().repository(&self.git_dir).work_tree(&self.folder)
    }

    pub(super) fn patterns(&self) -> Result<&GitSettings> {
        self.repository.patterns()
    }

    pub(super) fn head(&self) -> Result<String> {
        self.read_only_call().args(["rev-parse", "--verify", "-q", "HEAD^{commit}"]).line()
    }

    /// Returns the paths that differ from the last commit and are not ignored. A repository within the worktree is left
    /// out: git should not look into a repository that a command has made. So are files of nietz itself, which would be
    /// merged with the rest.
    pub(super) fn uncommitted_paths(&self) -> Result<BTreeSet<OsString>> {
        self.recheck_racy_files()?;
        let list = || self.call()?.args(["ls-files", "-z", "-m", "-d", "-o", "--exclude-standard"]).output();
        let mut listed = list()?;
        if !listed.stderr.is_empty() {
            // Git skips folders that it cannot read, with a warning.
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
                stage::summarize_names(left_out.iter().map(|path| format!("`{}`", excerpt(&path.to_string_lossy())))),
            );
            self.repository
                .remark(format!("not committed from the worktree `{name}`, as it belongs to nietz itself: {named}"));
        }
        Ok(changed.into_iter().map(OsStr::to_owned).collect())
    }

    /// Has git compare files that may have changed without a trace: git takes a file for unchanged if its size is the same
    /// and its times are within the same second, and a program can set the modification time at will.
    pub(super) fn recheck_racy_files(&self) -> Result<()> {
        let listed = self.read_only_call().args(["ls-files", "-s", "-z", "--debug"]).bytes()?;
        let racy = racy_entries(&listed, &self.folder)
            .ok_or_else(|| Failure::new(Code::GitFailed, "git lists what it knows of its files in an unknown form"))?;
        if !racy.is_empty() {
            // An entry from `--index-info` has no times, so that git compares the file.
            self.call()?.args(["update-index", "-z", "--index-info"]).input(racy).bytes()?;
        }
        Ok(())
    }
}

/// Returns the files in a list of git's. A path that ends in `/` is another repository.
pub(super) fn files(list: &[u8]) -> impl Iterator<Item = &OsStr> {
    paths(list).filter(|path| !path.as_bytes().ends_with(b"/"))
}

/// Returns the index entries, as git reads them, of files that changed within the second in which git last looked at them.
/// `None` if the listing has an unknown form.
fn racy_entries(listing: &[u8], folder: &Path) -> Option<Vec<u8>> {
    let mut racy = Vec::new();
    let mut parts = listing.split(|byte| *byte == 0);
    let mut entry = parts.next()?;
    // Five lines of data follow each name, then the next entry.
    for part in parts {
        let ends: Vec<usize> = memchr::memchr_iter(b'\n', part).take(5).collect();
        let (first, last) = (*ends.first()?, *ends.get(4)?);
        let known = std::str::from_utf8(&part[..first]).ok()?.trim().strip_prefix("ctime: ")?;
        let (second, nano) = known.split_once(':')?;
        let (second, nano): (i64, i64) = (second.parse().ok()?, nano.parse().ok()?);
        let path = Path::new(OsStr::from_bytes(&entry[memchr::memchr(b'\t', entry)? + 1..]));
        let now = std::fs::symlink_metadata(folder.join(path)).ok();
        // A file system without fractions of seconds has zero for them.
        let same = |found: &Metadata| found.ctime_nsec() == nano && nano != 0;
        // Git stores 32 bits of a time.
        if now.is_some_and(|found| found.ctime() & 0xffff_ffff == second && !same(&found)) {
            racy.extend_from_slice(entry);
            racy.push(0);
        }
        entry = &part[last + 1..];
    }
    entry.is_empty().then_some(racy)
}
