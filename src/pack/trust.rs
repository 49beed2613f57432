//! What the user trusts: what a folder may do, by its path, and what an installed pack may do, by its content.
//!
//! All of it stands in one file, the user's own, where nothing that a checkout brings and nothing that a model writes
//! reaches it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::disk::{self, Links};
use crate::error::{Code, Failure, Result};
use crate::model::text::excerpt;
use crate::pack::asks::{Asks, Items};
use crate::pack::lock;
use crate::schema::own;

const VERSION: u32 = 1;
/// How long another process may take to change it.
const PATIENCE: Duration = Duration::from_secs(5);
const HEAD: &str = "# What you trust: folders by their path, packs by their content. `nietz trust` changes it.\n";
/// In place of what a folder asks for: all of it, also what it asks for later.
pub const ALL: &str = "*";

/// What the user trusts.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    version: u32,
    /// By path, links resolved: what the folder may do.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub folders: BTreeMap<String, Items>,
    /// By the SHA-256 of the installed tree.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub packs: BTreeMap<String, TrustedPack>,
}

/// What the flows of one version of a pack may do.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedPack {
    pub pack: String,
    pub flows: Asks,
}

/// The file as it was up to 2026-11: packs alone.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Older {
    #[serde(default)]
    trees: BTreeMap<String, TrustedPack>,
}

/// Where the user's trust is kept.
#[derive(Clone, Debug)]
pub struct TrustFile {
    pub path: PathBuf,
    /// The file that it was kept in before; read where the other is not there.
    pub older: PathBuf,
}

impl TrustFile {
    pub fn read(&self) -> Result<Trust> {
        if let Some(trust) = lock::read(&self.path, Links::All, &own::TRUST)? {
            return Ok(trust);
        }
        let older: Older = lock::read(&self.older, Links::All, &own::GRANTS)?.unwrap_or_default();
        Ok(Trust { version: VERSION, folders: BTreeMap::new(), packs: older.trees })
    }

    /// Changes it, while no other process of this user does.
    pub fn change(&self, change: impl FnOnce(&mut Trust)) -> Result<()> {
        let _held = self.hold()?;
        let mut trust = self.read()?;
        change(&mut trust);
        lock::write(&self.path, HEAD, &trust)
    }

    fn hold(&self) -> Result<File> {
        disk::lock(&self.path.with_extension("lock"), "what you trust", PATIENCE)
    }
}

impl Trust {
    /// Returns what is granted to the flows of a pack's tree.
    pub fn of_pack(&self, sha256: &str) -> Asks {
        self.packs.get(sha256).map(|trusted| trusted.flows.clone()).unwrap_or_default()
    }

    /// Returns what of these things a folder may not do.
    pub fn missing(&self, folder: &str, items: &Items) -> Items {
        let none = Items::new();
        let granted = self.folders.get(folder).unwrap_or(&none);
        if granted.contains(ALL) { Items::new() } else { items.difference(granted).cloned().collect() }
    }

    pub fn add_folder(&mut self, folder: &str, items: Items) {
        self.folders.entry(folder.to_owned()).or_default().extend(items);
    }

    pub fn set_pack(&mut self, pack: &str, sha256: &str, flows: Asks) {
        match flows.values().all(Items::is_empty) {
            true => self.packs.remove(sha256),
            false => self.packs.insert(sha256.to_owned(), TrustedPack { pack: pack.to_owned(), flows }),
        };
    }

    /// Takes back everything that a folder may do.
    pub fn revoke_folder(&mut self, folder: &str) -> bool {
        self.folders.remove(folder).is_some()
    }

    /// Takes back everything that a pack may do, in all of its versions.
    pub fn revoke_pack(&mut self, pack: &str) -> bool {
        let before = self.packs.len();
        self.packs.retain(|_, trusted| trusted.pack != pack);
        self.packs.len() < before
    }
}

/// Returns the name that a folder is trusted by.
pub fn folder_name(folder: &Path) -> Result<String> {
    let whole = folder.canonicalize().map_err(|error| Failure::io(folder, "find", &error))?;
    whole.to_str().map(str::to_owned).ok_or_else(|| {
        let shown = excerpt(&whole.to_string_lossy());
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
        let file = TrustFile { path: folder.path().join("s/trust.yaml"), older: folder.path().join("grants.yaml") };
        let sha256 = "a".repeat(64);
        std::fs::write(&file.older, format!("trees:\n  {sha256}: {{pack: p, flows: {{f: [llm]}}}}\n")).unwrap();
        assert_eq!(file.read().unwrap().of_pack(&sha256)["f"], items(&["llm"]));
        file.change(|trust| trust.add_folder("/w", items(&["git"]))).unwrap();
        file.change(|trust| trust.add_folder("/w", items(&["files"]))).unwrap();
        std::fs::remove_file(&file.older).unwrap();
        let trust = file.read().unwrap();
        assert_eq!(trust.of_pack(&sha256)["f"], items(&["llm"]));
        assert_eq!(trust.missing("/w", &items(&["git", "files", "exec=sh"])), items(&["exec=sh"]));
        assert_eq!(trust.missing("/w/below", &items(&["git"])), items(&["git"]));
        file.change(|trust| trust.add_folder("/w", items(&[ALL]))).unwrap();
        assert_eq!(file.read().unwrap().missing("/w", &items(&["exec=sh"])), Items::new());
        file.change(|trust| assert!(trust.revoke_folder("/w") && trust.revoke_pack("p"))).unwrap();
        let trust = file.read().unwrap();
        assert_eq!((trust.folders.len(), trust.packs.len()), (0, 0));
    }
}
