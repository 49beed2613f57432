//! The documents of an offered flow: its collections as plain data, which a cache can keep.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::collection::{Collection, Format};

/// A collection of an offered flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OfferedCollection {
    pub name: String,
    /// The path below the workspace, with its holes.
    pub path: String,
    pub format: Format,
    /// The JSON Schema of a document, or of a row.
    pub schema: Value,
    keys: BTreeMap<String, String>,
    shared: bool,
}

impl From<&Collection> for OfferedCollection {
    fn from(collection: &Collection) -> OfferedCollection {
        let Collection { name, path, format, schema, keys, shared, .. } = collection.clone();
        OfferedCollection { name, path, format, schema, keys, shared }
    }
}

impl OfferedCollection {
    /// Returns what documents are found by. It says nothing of their versions.
    pub(crate) fn collection(&self) -> Collection {
        let OfferedCollection { name, path, format, schema, keys, shared } = self.clone();
        let (version, index, expects, everywhere) = (None, Vec::new(), Vec::new(), false);
        Collection { name, path, format, schema, version, keys, index, expects, everywhere, shared }
    }

    /// Returns the media type of its documents.
    pub(crate) fn media_type(&self) -> &'static str {
        match self.format {
            Format::Yaml => "application/yaml",
            Format::Json => "application/json",
            Format::Jsonl => "application/jsonl",
            Format::Text if self.path.ends_with(".md") => "text/markdown",
            Format::Text => "text/plain",
        }
    }
}
