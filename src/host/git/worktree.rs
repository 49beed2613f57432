//! One worktree of a run: where it is, how git is called in it, and what in it is not committed.

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

/// One worktree of this run. Where its repository is, is known from the repository's side alone.
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

    /// One that reads objects, references and names alone.
    pub(super) fn read_only_call(&self) -> GitCall {
        self.repository.git().repository(&self.git_dir).work_tree(&self.folder)
    }

    pub(super) fn patterns(&self) -> Result<&GitSettings> {
        self.repository.patterns()
    }

    pub(super) fn head(&self) -> Result<String> {
        self.read_only_call().args(["rev-parse", "--verify", "-q", "HEAD^{commit}"]).line()
    }

    /// Returns the paths that are not as in the last commit and not ignored. A repository within the worktree is left
    /// out: nothing good comes of git looking into what a command has made. So is what belongs to nietz: it would be
    /// merged with the rest.
    pub(super) fn uncommitted_paths(&self) -> Result<BTreeSet<OsString>> {
        self.recheck_racy_files()?;
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
                stage::summarize_names(left_out.iter().map(|path| format!("`{}`", excerpt(&path.to_string_lossy())))),
            );
            self.repository
                .remark(format!("not committed from the worktree `{name}`, as it belongs to nietz itself: {named}"));
        }
        Ok(changed.into_iter().map(OsStr::to_owned).collect())
    }

    /// Has git compare what may have changed although nothing tells it: it takes a file for unchanged whose size is the same,
    /// and whose times are within the same second, and one of the two can be set at will.
    pub(super) fn recheck_racy_files(&self) -> Result<()> {
        let listed = self.read_only_call().args(["ls-files", "-s", "-z", "--debug"]).bytes()?;
        let doubted = racy_entries(&listed, &self.folder)
            .ok_or_else(|| Failure::new(Code::GitFailed, "git lists what it knows of its files in an unknown form"))?;
        if !doubted.is_empty() {
            // An entry that was put there by hand has no times.
            self.call()?.args(["update-index", "-z", "--index-info"]).input(doubted).bytes()?;
        }
        Ok(())
    }
}

/// Returns the files in a list of git's: what ends in `/` is another repository.
pub(super) fn files(list: &[u8]) -> impl Iterator<Item = &OsStr> {
    paths(list).filter(|path| !path.as_bytes().ends_with(b"/"))
}

/// Returns the entries, as git takes them, of files that were changed within the second in which git has looked at them. Nothing
/// where the listing is not understood.
fn racy_entries(listing: &[u8], folder: &Path) -> Option<Vec<u8>> {
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
