//! What was read of flows before, kept in the user's cache by the digests of all files that each flow reached: a list of
//! flows loads none that is as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk::temp_file::TempFile;
use crate::disk::{self, Links};
use crate::error::{Failure, Result};
use crate::model::digest::Digest;
use crate::model::effect::Sources;
use crate::pack::resolve::ResolvedFlow;
use crate::run::machine::Machine;

/// The largest file of a cache, in bytes.
const LARGEST: u64 = 32 << 20;
/// With more flows than this, those that were not asked for are forgotten.
const MOST: usize = 1_000;

/// One file of the cache, with a `T` for each flow.
pub(crate) struct FlowCache<T> {
    path: PathBuf,
    kept: KeptFlows<T>,
    asked: BTreeSet<String>,
    changed: bool,
}

#[derive(Serialize, Deserialize)]
struct KeptFlows<T> {
    /// The build of the program that wrote it: another may read flows otherwise.
    version: String,
    flows: BTreeMap<String, KeptFlow<T>>,
}

#[derive(Serialize, Deserialize)]
struct KeptFlow<T> {
    sources: Sources,
    known: T,
}

impl<T: Clone + Serialize + DeserializeOwned> FlowCache<T> {
    /// Opens the file of this name. One that is not there, cannot be read, or was written by another build is empty.
    pub(crate) fn open(machine: &Machine, name: &str) -> FlowCache<T> {
        let path = machine.cache_file(name);
        let version = format!("{} {}", Machine::version(), built(machine));
        let kept = read(&path).filter(|kept: &KeptFlows<T>| kept.version == version);
        let kept = kept.unwrap_or(KeptFlows { version, flows: BTreeMap::new() });
        FlowCache { path, kept, asked: BTreeSet::new(), changed: false }
    }

    /// Returns what is known of a flow, which `load` finds out if the flow is new or one of its files has changed.
    ///
    /// # Errors
    ///
    /// Those of `load`.
    pub(crate) fn of(&mut self, located: &ResolvedFlow, load: impl FnOnce(ResolvedFlow) -> Result<T>) -> Result<T> {
        let source = located.source();
        self.asked.insert(source.clone());
        if let Some(kept) = self.kept.flows.get(&source).filter(|kept| is_same(located, &kept.sources)) {
            return Ok(kept.known.clone());
        }
        let known = load(ResolvedFlow { tree: located.tree.clone(), path: located.path.clone() })?;
        self.kept.flows.insert(source, KeptFlow { sources: located.tree.digests(), known: known.clone() });
        self.changed = true;
        Ok(known)
    }

    /// Writes what has changed. Without a cache, flows are read again next time.
    pub(crate) fn keep(mut self) {
        if self.kept.flows.len() > MOST {
            self.kept.flows.retain(|source, _| self.asked.contains(source));
        }
        if self.changed {
            let _ = serde_json::to_vec(&self.kept).map(|bytes| write(&self.path, &bytes));
        }
    }
}

fn is_same(located: &ResolvedFlow, sources: &Sources) -> bool {
    sources.iter().all(|(path, digest)| {
        let text = located.tree.text(path).ok().flatten();
        text.is_some_and(|text| Digest::of(text.as_bytes()).to_string() == *digest)
    })
}

/// Returns what tells one build of this program from another.
fn built(machine: &Machine) -> String {
    let metadata = machine.program.as_ref().and_then(|path| path.metadata().ok());
    let made = metadata.as_ref().and_then(|found| found.modified().ok());
    let since = made.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    format!("{}-{}", metadata.map_or(0, |found| found.len()), since.as_nanos())
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<KeptFlows<T>> {
    let bytes = disk::read(path, Links::NotLast, LARGEST).ok().flatten()?;
    serde_json::from_slice(&bytes).ok()
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder, "make", &error))?;
    }
    TempFile::with_mode(path, bytes, 0o600)?.publish(path)
}
