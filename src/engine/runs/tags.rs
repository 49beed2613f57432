//! Tags: words of the user's own by which runs are found again. They stand in the user's folder for state, because a journal is what
//! a run did, and anybody may have written what stands in a workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk::temp_file::TempFile;
use crate::disk::{self, Links, owner};
use crate::error::{Code, Failure, Result};
use crate::model::digest::Digest;

/// The most tags that one run has.
const MOST: usize = 20;
/// The largest file that is read, in bytes.
const LARGEST: u64 = 16 << 20;
/// How long to wait for another process that changes the file, which takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// The tags of each run of a workspace.
pub(super) type Tags = BTreeMap<String, BTreeSet<String>>;

/// The file of one workspace.
pub(super) struct TagFile {
    path: PathBuf,
}

impl TagFile {
    /// Expects the folder for the tags of all workspaces.
    pub(super) fn new(folder: &Path, workspace: &Path) -> TagFile {
        TagFile { path: folder.join(format!("{}.json", Digest::of(workspace.as_os_str().as_encoded_bytes()))) }
    }

    /// Reads the tags of all runs.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the file cannot be read, `config-invalid` if it holds something else.
    pub(super) fn read(&self) -> Result<Tags> {
        let Some(bytes) = disk::read(&self.path, Links::NotLast, LARGEST)? else { return Ok(Tags::new()) };
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("{}: it holds no tags of runs: {error}", self.path.display());
            Failure::new(Code::ConfigInvalid, message).hint("move it away; runs have no tags then")
        })
    }

    /// Changes the tags of a run, and returns those that it has now.
    ///
    /// # Errors
    ///
    /// As [`TagFile::read`], and `document-busy` if another process changes them for too long.
    pub(super) fn change(&self, run: &str, more: &[String], less: &[String]) -> Result<BTreeSet<String>> {
        self.changed(run, |own| {
            own.extend(more.iter().cloned());
            own.retain(|tag| !less.contains(tag));
        })
    }

    fn changed(&self, run: &str, change: impl FnOnce(&mut BTreeSet<String>)) -> Result<BTreeSet<String>> {
        let _held = owner::lock(&self.path.with_extension("lock"), PATIENCE)?;
        let mut all = self.read()?;
        let mut own = all.remove(run).unwrap_or_default();
        change(&mut own);
        if own.len() > MOST {
            return Err(Failure::new(Code::Usage, format!("a run has at most {MOST} tags")));
        }
        if !own.is_empty() {
            all.insert(run.to_owned(), own.clone());
        }
        let text = serde_json::to_string(&all).expect("plain data with text keys");
        TempFile::with_mode(&self.path, text.as_bytes(), 0o600)?.publish(&self.path)?;
        Ok(own)
    }

    /// Forgets the tags of a run that is removed.
    pub(super) fn forget(&self, run: &str) {
        if self.read().is_ok_and(|all| all.contains_key(run)) {
            // What cannot be changed names a run that is not there any more.
            let _ = self.changed(run, BTreeSet::clear);
        }
    }
}
