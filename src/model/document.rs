//! Results of reading and writing documents.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A document that was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadedDocument {
    pub value: Value,
    /// BLAKE3 of the file's bytes, in hex; a later save expects to find the same.
    pub digest: String,
    /// The path below the workspace, with `/`.
    pub path: String,
    pub standing: VersionStatus,
}

/// How a document's version compares to the collection's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionStatus {
    /// The document has the current version and is valid by the schema.
    #[default]
    Current,
    /// The document is older and not validated yet. The text is its version, empty if the field is absent.
    Older(String),
    /// The document is newer than this flow knows. It is read as far as it is known, and must not be overwritten.
    Newer(String),
}

impl VersionStatus {
    fn is_current(&self) -> bool {
        *self == VersionStatus::Current
    }
}

/// A document that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedDocument {
    pub digest: String,
    pub path: String,
}

/// One document of a listing: its key, and the document or why it cannot be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedDocument {
    pub key: std::collections::BTreeMap<String, String>,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<LoadedDocument>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<crate::error::Failure>,
}

/// One document of a page: its wanted parts, or why it cannot be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScannedDocument {
    pub path: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub value: Value,
    #[serde(default, skip_serializing_if = "VersionStatus::is_current")]
    pub standing: VersionStatus,
    /// The version of a document of today, where only parts of it are here: a later flow cannot migrate them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<crate::error::Failure>,
}

/// A page of a collection's documents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    pub entries: Vec<ScannedDocument>,
    /// The path behind which the next page begins; `None` on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Page {
    /// Returns the page as plain data. Moves the documents instead of copying them: there may be a thousand.
    pub fn into_value(self) -> Value {
        let entries = self.entries.into_iter().map(|mut scanned| {
            let value = scanned.value.take();
            let mut entry = serde_json::to_value(&scanned).expect("it is plain data");
            if !value.is_null() {
                entry["value"] = value;
            }
            entry
        });
        let mut page = serde_json::Map::from_iter([("entries".to_owned(), entries.collect())]);
        page.extend(self.next.map(|next| ("next".to_owned(), Value::String(next))));
        Value::Object(page)
    }
}

/// An older document that a query is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OlderDocument {
    pub collection: String,
    pub path: String,
    pub version: String,
    pub value: Value,
}

/// What an older document is once it is brought up to date, or why it cannot be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigratedDocument {
    pub collection: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What a save expects to find at the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// No file, or exactly the bytes that are about to be written.
    Absent,
    /// The file with this digest, or exactly the bytes that are about to be written.
    Digest(String),
    /// Anything: the user said so.
    Anything,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_moved_reads_like_one_that_is_written() {
        let scanned = |path: &str, value, failure| ScannedDocument {
            path: path.to_owned(),
            value,
            standing: VersionStatus::default(),
            version: None,
            failure,
        };
        let page = Page {
            entries: vec![
                scanned("a.json", serde_json::json!({"id": [1, null]}), None),
                scanned("b.json", Value::Null, None),
                scanned(
                    "c.json",
                    Value::Null,
                    Some(crate::error::Failure::new(crate::error::Code::DocumentInvalid, "no")),
                ),
            ],
            next: Some("c.json".to_owned()),
        };
        assert_eq!(page.clone().into_value(), serde_json::to_value(&page).expect("plain data"));
    }
}
