//! What the user trusts: what a folder may do, by its path, and what an installed pack may do, by its content.
//!
//! All of it stands in one file of the user's own, out of reach of what a checkout brings and of what a model writes.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::disk::{self, owner};
use crate::error::{Code, Failure, Result};
use crate::model::text::excerpt;
use crate::pack::lock;
use crate::pack::permission_items::{FILTER, Items, ItemsByFlow, is_granted};
use crate::schema::builtin;

const VERSION: u32 = 1;
/// How long to wait for another process that changes the file, which takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);
const HEAD: &str = "# What you trust: folders by their path, packs by their content. `nietz trust` changes it.\n";
/// The item that stands for all that a folder asks for, now and later.
pub const ALL: &str = "*";

/// What the user trusts.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    version: u32,
    /// What each folder may do, by its path with links resolved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub folders: BTreeMap<String, Items>,
    /// The id of the user who owned each folder when it was trusted, by its path. A folder that somebody else makes there
    /// later is another folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    owners: BTreeMap<String, u32>,
    /// What each pack may do, by the SHA-256 of its installed tree.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub packs: BTreeMap<String, TrustedPack>,
}

/// What the flows of one version of a pack may do.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedPack {
    pub pack: String,
    pub flows: ItemsByFlow,
}

/// The content of the older file, which held packs alone, up to 2026-11.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LegacyGrants {
    #[serde(default)]
    trees: BTreeMap<String, TrustedPack>,
}

/// The file that keeps what the user trusts.
#[derive(Clone, Debug)]
pub struct TrustFile {
    pub path: PathBuf,
    /// The older file, which is read if the file at `path` does not exist.
    pub legacy: PathBuf,
}

impl TrustFile {
    /// Reads what the user trusts; nothing if there is no file yet.
    ///
    /// # Errors
    ///
    /// `config-invalid` if a file is wrong, or if others can write it.
    pub fn read(&self) -> Result<Trust> {
        // A file that others could have written does not say what the user trusts.
        let read = |path: &Path| owner::read(path, disk::SETTINGS);
        if let Some(bytes) = read(&self.path)?
            && let Some(trust) = lock::parse(&self.path, &bytes, &builtin::TRUST)?
        {
            return Ok(trust);
        }
        let legacy =
            read(&self.legacy)?.map(|bytes| lock::parse::<LegacyGrants>(&self.legacy, &bytes, &builtin::GRANTS));
        let legacy = legacy.transpose()?.flatten().unwrap_or_default();
        Ok(Trust { version: VERSION, folders: BTreeMap::new(), owners: BTreeMap::new(), packs: legacy.trees })
    }

    /// Changes the file, under a lock against other processes of this user.
    ///
    /// # Errors
    ///
    /// `document-busy` if another process holds the lock too long, and those of [`TrustFile::read`].
    pub fn change(&self, change: impl FnOnce(&mut Trust)) -> Result<()> {
        let _held = owner::lock(&self.path.with_extension("lock"), PATIENCE)?;
        let mut trust = self.read()?;
        change(&mut trust);
        lock::write(&self.path, HEAD, &trust, 0o600)
    }
}

impl Trust {
    /// Returns what a team trusts: of one folder, and of packs by the SHA-256 of their trees.
    pub fn of_team(folder: &str, items: Items, packs: BTreeMap<String, TrustedPack>) -> Trust {
        Trust { version: VERSION, folders: [(folder.to_owned(), items)].into(), owners: BTreeMap::new(), packs }
    }

    /// Returns what is granted to the flows of a pack's tree.
    pub fn of_pack(&self, sha256: &str) -> ItemsByFlow {
        self.packs.get(sha256).map(|trusted| trusted.flows.clone()).unwrap_or_default()
    }

    /// Returns what a folder may do: nothing, if its owner is not the one whom it had when it was trusted.
    pub fn of_folder(&self, folder: &str) -> Items {
        let granted = if self.is_same(folder) { self.folders.get(folder) } else { None };
        granted.cloned().unwrap_or_default()
    }

    /// Returns those of these items that a folder may not do.
    pub fn missing(&self, folder: &str, items: &Items) -> Items {
        let granted = self.of_folder(folder);
        let is_missing = |item: &&String| !granted.contains(ALL) && !is_granted(&granted, item);
        items.iter().filter(is_missing).cloned().collect()
    }

    /// Returns the items for git's filters that may run in a folder's repository: each filter is trusted on its own.
    pub fn filters(&self, folder: &str) -> Items {
        self.of_folder(folder).into_iter().filter(|item| item.starts_with(FILTER)).collect()
    }

    /// Tells whether a folder has the owner whom it had when it was trusted. If no owner was recorded, as up to 2026-11,
    /// the owner must be the user or root.
    pub fn is_same(&self, folder: &str) -> bool {
        let is_own = |owner| owner == 0 || owner == rustix::process::geteuid().as_raw();
        match (owner(folder), self.owners.get(folder)) {
            (Some(now), Some(&then)) => now == then,
            (Some(now), None) => is_own(now),
            (None, _) => false,
        }
    }

    /// Adds to what a folder may do, after dropping what was granted while the folder had another owner.
    pub fn add_folder(&mut self, folder: &str, items: Items) {
        if !self.is_same(folder) {
            self.folders.remove(folder);
        }
        self.owners.extend(owner(folder).map(|owner| (folder.to_owned(), owner)));
        self.folders.entry(folder.to_owned()).or_default().extend(items);
    }

    /// Sets what the flows of a pack are granted; nothing at all forgets the pack.
    pub fn set_pack(&mut self, pack: &str, sha256: &str, flows: ItemsByFlow) {
        match flows.values().all(Items::is_empty) {
            true => self.packs.remove(sha256),
            false => self.packs.insert(sha256.to_owned(), TrustedPack { pack: pack.to_owned(), flows }),
        };
    }

    /// Takes back everything that a folder may do.
    pub fn revoke_folder(&mut self, folder: &str) -> bool {
        self.owners.remove(folder);
        self.folders.remove(folder).is_some()
    }

    /// Takes back everything that a pack may do, in all of its versions.
    pub fn revoke_pack(&mut self, pack: &str) -> bool {
        let before = self.packs.len();
        self.packs.retain(|_, trusted| trusted.pack != pack);
        self.packs.len() < before
    }
}

/// Returns the id of the user who owns a folder.
fn owner(folder: &str) -> Option<u32> {
    std::fs::metadata(folder).ok().map(|found| found.uid())
}

/// Returns the name that a folder is trusted by.
///
/// # Errors
///
/// `folder-untrusted` if the folder's path is not UTF-8; `disk-failed` if the folder cannot be found.
pub fn folder_name(folder: &Path) -> Result<String> {
    let path = folder.canonicalize().map_err(|error| Failure::io(folder, "find", &error))?;
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let shown = excerpt(&path.to_string_lossy());
        Failure::new(Code::FolderUntrusted, format!("the path of {shown} is not UTF-8: it cannot be trusted by it"))
            .hint("rename the folder")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(names: &[&str]) -> Items {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_trusted_is_kept_and_what_was_kept_before_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = TrustFile { path: folder.path().join("s/trust.yaml"), legacy: folder.path().join("grants.yaml") };
        let sha256 = "a".repeat(64);
        std::fs::write(&file.legacy, format!("trees:\n  {sha256}: {{pack: p, flows: {{f: [llm]}}}}\n")).unwrap();
        assert_eq!(file.read().unwrap().of_pack(&sha256)["f"], items(&["llm"]));
        let place = folder.path().to_str().unwrap();
        file.change(|trust| trust.add_folder(place, items(&["git"]))).unwrap();
        file.change(|trust| trust.add_folder(place, items(&["files"]))).unwrap();
        std::fs::remove_file(&file.legacy).unwrap();
        let trust = file.read().unwrap();
        assert_eq!(trust.of_pack(&sha256)["f"], items(&["llm"]));
        assert_eq!(trust.missing(place, &items(&["git", "files", "exec=sh"])), items(&["exec=sh"]));
        assert_eq!(trust.missing(&format!("{place}/s"), &items(&["git"])), items(&["git"]));
        file.change(|trust| trust.add_folder(place, items(&[ALL]))).unwrap();
        assert_eq!(file.read().unwrap().missing(place, &items(&["exec=sh"])), Items::new());
        file.change(|trust| assert!(trust.revoke_folder(place) && trust.revoke_pack("p"))).unwrap();
        let trust = file.read().unwrap();
        assert_eq!((trust.folders.len(), trust.packs.len()), (0, 0));
    }

    #[test]
    fn a_folder_that_was_made_anew_by_somebody_else_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap();
        let mut trust =
            Trust { version: VERSION, folders: BTreeMap::new(), owners: BTreeMap::new(), packs: BTreeMap::new() };
        trust.add_folder(place, items(&["git", "filter=x"]));
        assert_eq!(trust.filters(place), items(&["filter=x"]));
        let now = trust.owners[place];
        trust.owners.insert(place.to_owned(), now + 1);
        assert_eq!((trust.missing(place, &items(&["git"])), trust.filters(place)), (items(&["git"]), Items::new()));
        trust.add_folder(place, items(&["files"]));
        assert_eq!((trust.of_folder(place), trust.owners[place]), (items(&["files"]), now));
        trust.owners.clear();
        assert_eq!(trust.of_folder(place), items(&["files"]), "kept before owners were: the user's own");
    }
}
