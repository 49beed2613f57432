//! `pack.yaml`: what a pack is, and what each of its flows may do.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::{Code, Failure, Result};
use crate::pack::permission_items::{DeclaredPermissions, ItemsByFlow, declared_items};
use crate::pack::tree::PackTree;
use crate::schema::builtin;

/// The version of the host API that this program has: it grows when something is taken away or changes its meaning.
pub(crate) const HOST_API: u64 = 2;

/// The file's name.
pub(crate) const FILE: &str = "pack.yaml";

/// What a pack says of itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PackManifest {
    pub name: String,
    pub version: String,
    pub summary: String,
    pub licence: String,
    pub host_api: u64,
    /// The version of nietz with which its tests passed for its author, by their word.
    #[serde(default)]
    pub tested: Option<String>,
    #[serde(default)]
    permissions: BTreeMap<String, DeclaredPermissions>,
}

impl PackManifest {
    /// Reads the `pack.yaml` of a pack.
    ///
    /// # Errors
    ///
    /// `pack-invalid` if the file is missing, needs a newer host API, or breaks its schema; all violations are listed.
    pub(crate) fn read(tree: &PackTree) -> Result<PackManifest> {
        let file = tree.display(FILE);
        let text = tree.text(FILE)?.ok_or_else(|| {
            Failure::new(Code::PackInvalid, format!("there is no {FILE}: this is not a pack"))
                .hint("`nietz new pack NAME` writes one")
        })?;
        let value = builtin::read(&builtin::PACK, &text, &file)?;
        let manifest: PackManifest = serde_json::from_value(value)
            .map_err(|error| Failure::new(Code::PackInvalid, format!("{file}: {error}")))?;
        if manifest.host_api > HOST_API {
            let message =
                format!("{file}: it needs version {} of the host API; this nietz has {HOST_API}", manifest.host_api);
            return Err(Failure::new(Code::PackInvalid, message).hint("use a newer nietz"));
        }
        Ok(manifest)
    }

    /// Returns what each flow asks for.
    pub(crate) fn items_by_flow(&self) -> ItemsByFlow {
        self.permissions.iter().map(|(flow, declared)| (flow.clone(), declared_items(declared))).collect()
    }
}
