//! What a flow declares about a kind of document: where it lives, in which format, and what is valid.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::canonical;
use crate::model::digest::Digest;

/// The documents of one kind, as the flow's manifest declares them.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    /// `sessions` in `collections = { sessions = … }`.
    pub name: String,
    /// Path below the workspace with `{field}` holes: `.project/sessions/{slug}.yaml`.
    pub path: String,
    pub format: Format,
    /// The JSON Schema (2020-12) of a document, or of a row where the format is JSONL.
    pub schema: Value,
    /// How versions are told apart; without it, documents have no version.
    pub version: Option<Version>,
    /// For each hole of `path`, the JSON pointer where a document carries that field.
    pub keys: BTreeMap<String, String>,
    /// What of its documents can be asked in SQL.
    pub index: Vec<IndexTable>,
    /// What its documents usually are.
    pub expects: Vec<Expectation>,
}

/// What usually holds for a document. Where it does not, `nietz check` says so, and nothing else does: such a document is
/// loaded and saved. Places are JSON pointers in which `*` is every item of a list; in a collection of rows they are
/// places in a row, and go through all rows of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The numbers there count from 1 without a gap: in each list, or in each group of items that agree in `within`.
    Numbered { at: String, within: Vec<String> },
    /// The numbers or times there never go back from one item to the next, in each list or group.
    Rising { at: String, within: Vec<String> },
    /// The second number or time is not below the first.
    Ordered { first: String, second: String },
    /// A row has no earlier time there than the rows that it refers to.
    Follows { at: String },
}

impl Collection {
    /// Returns the digest of what makes a document of this collection another one, or invalid: its schema, its
    /// version, its format and where it is.
    pub fn digest(&self) -> Digest {
        let version = self.version.as_ref().map(|version| (&version.field, &version.current));
        let keys: Value = self.keys.iter().map(|(hole, pointer)| (hole.clone(), json!(pointer))).collect();
        // Tables of Lua have no order.
        let mut text = Vec::new();
        canonical::write(&json!([self.path, self.format, version, keys, self.schema]), &mut text);
        Digest::of(&text)
    }
}

/// A table that is kept beside the documents of a collection: a row for each document, or for each item of its lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexTable {
    pub name: String,
    /// The fields that lead to the items, through objects and lists; empty where each document is a row.
    pub each: Vec<String>,
    /// Each column with the fields that lead to its value, from the item on.
    pub columns: Vec<(String, Vec<String>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Yaml,
    Json,
    /// Rows, one JSON object a line, only ever appended to.
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

    /// Returns the format that a path's ending says.
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

#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// JSON pointer of the field that holds the version: `/format_version`.
    pub field: String,
    /// The version that is written, as it stands in the document: `"1.2"` or `1`.
    pub current: Value,
    /// Older versions that can be migrated, oldest first, as their text: `["1.0"]`. An absent field
    /// counts as the text `""`.
    pub migrates: Vec<String>,
    /// Whether a newer document may be read as far as it is known (it is never saved over).
    pub read_newer: bool,
}

/// The values that fill the holes of a collection's path: `{ slug = "checkout" }`.
pub type DocumentKey = BTreeMap<String, String>;
