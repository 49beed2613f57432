//! Collections: where documents of a kind are, in which format, and which are valid, as a flow declares it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::canonical;
use crate::model::digest::Digest;
use crate::model::pointer::Pointer;

/// A collection of documents, as the flow's manifest declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    /// `sessions` in `collections = { sessions = … }`.
    pub name: String,
    /// Path below the workspace with `{field}` placeholders: `.project/sessions/{slug}.yaml`.
    pub path: String,
    pub format: Format,
    /// The JSON Schema (2020-12) of a document, or of a row if the format is JSONL.
    pub schema: Value,
    /// Where documents have their version; `None` if they have none.
    pub version: Option<Version>,
    /// For each placeholder of `path`, the JSON pointer where a document holds that field.
    pub keys: BTreeMap<String, String>,
    /// Tables of its documents for SQL queries.
    pub index: Vec<IndexTable>,
    /// What usually holds for its documents.
    pub expects: Vec<Expectation>,
    /// Whether the flow may read its documents in the user's other folders, too.
    pub everywhere: bool,
    /// Whether all runs of a workspace see its documents where a team keeps them on a server. In files, all do.
    pub shared: bool,
}

/// What usually holds for a document. Only `nietz check` reports violations; such a document is still loaded and saved.
/// Places are JSON pointers in which `*` stands for every item of a list; in a collection of rows they are places in a
/// row, and are checked across all rows of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The numbers count from 1 without a gap, in each list or in each group of items that agree in `within`.
    Numbered { at: String, within: Vec<String> },
    /// The numbers or times never decrease from one item to the next, in each list or group.
    Rising { at: String, within: Vec<String> },
    /// The second number or time is not less than the first.
    Ordered { first: String, second: String },
    /// A row's time is not before those of the rows that it refers to.
    Follows { at: String },
}

impl Collection {
    /// Returns the digest of what decides where and in which form a document is saved, and whether it is valid: path, format,
    /// version, keys and schema.
    pub fn digest(&self) -> Digest {
        let version = self.version.as_ref().map(|version| match &version.own {
            Some(own) => json!([version.field, version.current, own.field, own.current]),
            None => json!([version.field, version.current]),
        });
        let keys: Value = self.keys.iter().map(|(hole, pointer)| (hole.clone(), json!(pointer))).collect();
        // Canonical, because Lua tables have no order.
        let mut text = Vec::new();
        canonical::write(&json!([self.path, self.format, version, keys, self.schema]), &mut text);
        Digest::of(&text)
    }
}

/// A table that is built from the documents of a collection: a row for each document, or for each item of its lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexTable {
    pub name: String,
    /// Where the items are.
    pub each: IndexPath,
    /// Each column, and where its value is in the item.
    pub columns: Vec<(String, IndexPath)>,
}

/// Where something of an index is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexPath {
    Pointer(Pointer),
    /// The old spelling, `rounds.votes`: names of members, which lead through lists, too; none for the place itself.
    Names(Vec<String>),
}

impl IndexPath {
    /// Reads a JSON pointer, or names with dots between them.
    pub fn parse(text: &str) -> IndexPath {
        match text.starts_with('/') {
            true => IndexPath::Pointer(Pointer::new(text)),
            false => IndexPath::Names(text.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect()),
        }
    }
}

/// The format of a collection's documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Yaml,
    Json,
    /// Rows, one JSON object per line; only appended to.
    Jsonl,
    /// Plain text, such as Markdown: the document is one string.
    Text,
}

impl Format {
    /// Returns the format with this name.
    pub fn parse(name: &str) -> Option<Format> {
        match name {
            "yaml" => Some(Format::Yaml),
            "json" => Some(Format::Json),
            "jsonl" => Some(Format::Jsonl),
            "text" => Some(Format::Text),
            _ => None,
        }
    }

    /// Returns the format for a path's extension.
    pub fn of_path(path: &str) -> Option<Format> {
        match path.rsplit_once('.')?.1 {
            "yaml" | "yml" => Some(Format::Yaml),
            "json" => Some(Format::Json),
            "jsonl" => Some(Format::Jsonl),
            "md" | "txt" => Some(Format::Text),
            _ => None,
        }
    }
}

/// How a collection's documents say their version.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// JSON pointer of the field that holds the version: `/format_version`.
    pub field: String,
    /// The version that is written, as the document holds it: `"1.2"` or `1`.
    pub current: Value,
    /// Older versions that can be migrated, oldest first, as their text: `["1.0"]`. An absent field
    /// counts as the text `""`.
    pub migrates: Vec<String>,
    /// Whether a newer document may be read as far as it is known (it is never overwritten).
    pub read_newer: bool,
    /// JSON pointers of fields that only documents of before the first version have: where a document has none of them, an
    /// absent version is no older one. Empty if an absent version is always one.
    pub formerly: Vec<String>,
    /// The version of a part of its own that a flow adds to documents of somebody else's format.
    pub own: Option<OwnVersion>,
}

/// How the part that a flow adds to documents of somebody else's format says its version. In the migrations it stands
/// behind the document's: `1+` is version 1 with a part that has no version yet, `1+1` one of version 1.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnVersion {
    /// JSON pointer of the field that holds the version: `/nietz/version`.
    pub field: String,
    /// The version that is written.
    pub current: Value,
    /// As in [`Version::formerly`]: documents without the part are as good as those with it.
    pub formerly: Vec<String>,
}

impl Version {
    /// Returns the version of a document by the name of its migration, if it is an older one that can be migrated.
    pub fn older(&self, document: &Value) -> Option<String> {
        let mut found = version_at(document, &self.field)?;
        let current = version_text(&self.current);
        if found == current {
            let own = self.own.as_ref()?;
            let part = version_at(document, &own.field)?;
            if part == version_text(&own.current) || part.is_empty() && !has_any(document, &own.formerly) {
                return None;
            }
            found = format!("{current}+{part}");
        } else if found.is_empty() && self.is_foreign(document) {
            return None;
        }
        self.migrates.contains(&found).then_some(found)
    }

    /// Whether a document without a version was never one of before the first version, but of another program.
    pub fn is_foreign(&self, document: &Value) -> bool {
        !self.formerly.is_empty()
            && version_at(document, &self.field).is_some_and(|found| found.is_empty())
            && !has_any(document, &self.formerly)
    }
}

/// Returns a version as text: `1.2` for `"1.2"`, `1` for `1`.
pub fn version_text(version: &Value) -> String {
    version.as_str().map_or_else(|| version.to_string(), str::to_owned)
}

/// Returns the version at a place of a document as text, empty if there is none; `None` if what is there is no version.
pub fn version_at(document: &Value, field: &str) -> Option<String> {
    match document.pointer(field) {
        None | Some(Value::Null) => Some(String::new()),
        Some(version @ (Value::String(_) | Value::Number(_))) => Some(version_text(version)),
        Some(_) => None,
    }
}

fn has_any(document: &Value, places: &[String]) -> bool {
    places.iter().any(|place| document.pointer(place).is_some())
}

/// The values for the placeholders of a collection's path: `{ slug = "checkout" }`.
pub type DocumentKey = BTreeMap<String, String>;
