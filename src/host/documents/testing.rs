//! What the tests of this folder share: plain collections, keys, and a store in a fresh folder.

use serde_json::json;
use tempfile::TempDir;

use super::Store;
use crate::model::collection::{Collection, DocumentKey, Format, Version};

pub(super) fn collection(path: &str) -> Collection {
    Collection {
        name: "notes".to_owned(),
        path: path.to_owned(),
        format: Format::Yaml,
        schema: json!({
            "type": "object",
            "required": ["slug"],
            "properties": {
                "format_version": {"type": "string"},
                "slug": {"type": "string"},
                "score": {"type": "integer", "minimum": 0, "maximum": 100},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        }),
        version: None,
        keys: [("slug".to_owned(), "/slug".to_owned())].into(),
        index: Vec::new(),
        expects: Vec::new(),
        everywhere: false,
        shared: false,
    }
}

/// Returns a collection at version 1.2 that migrates 1.0. A version 1.1 never existed.
pub(super) fn versioned() -> Collection {
    let version = Version {
        field: "/format_version".to_owned(),
        current: json!("1.2"),
        migrates: vec!["1.0".to_owned()],
        read_newer: false,
        formerly: Vec::new(),
        own: None,
    };
    Collection { version: Some(version), ..collection("data/{slug}.yaml") }
}

pub(super) fn rows() -> Collection {
    Collection { format: Format::Jsonl, keys: Default::default(), ..collection("rows/{slug}.jsonl") }
}

pub(super) fn key(pairs: &[(&str, &str)]) -> DocumentKey {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub(super) fn slug(slug: &str) -> DocumentKey {
    key(&[("slug", slug)])
}

pub(super) fn store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path()).unwrap();
    (folder, store)
}
