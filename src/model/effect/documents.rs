//! Effects on documents. They need no permission, because a flow can name only documents of the collections that its
//! manifest declares.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Dependencies, EffectFacts, Recovery, ReplayClass};
use crate::model::collection::DocumentKey;
use crate::model::document::{Expect, MigratedDocument};
use crate::model::redact::Cleaner;

/// What a flow asks of a collection.
#[derive(Clone, Debug, PartialEq)]
pub enum DocumentOp {
    Load {
        collection: String,
        key: DocumentKey,
    },
    Save {
        collection: String,
        key: DocumentKey,
        value: Value,
        expect: Expect,
        /// The older version that this document was migrated from; the old file is kept until the new one is safe.
        migrated: Option<String>,
    },
    List {
        collection: String,
    },
    /// One page of a collection's documents, in the order of their paths.
    Scan {
        collection: String,
        /// The parts of each document to return, by name; `None` for whole documents.
        fields: Option<BTreeMap<String, String>>,
        /// The path behind which the page begins.
        after: Option<String>,
        /// The folder of the user's whose documents they are, if it is another one than the workspace.
        folder: Option<String>,
    },
    /// Where documents like a collection's are, beside the workspace.
    Folders {
        collection: String,
    },
    Append {
        collection: String,
        key: DocumentKey,
        row: Value,
    },
    Rows {
        collection: String,
        key: DocumentKey,
    },
    Delete {
        collection: String,
        key: DocumentKey,
        expect: Expect,
    },
    /// An SQL query over collections of rows.
    Query {
        sql: String,
        bind: Vec<Value>,
        collections: Vec<String>,
        key: DocumentKey,
        /// What older documents are once they are brought up to date, in memory.
        migrated: Vec<MigratedDocument>,
    },
}

impl EffectFacts for DocumentOp {
    fn kind(&self) -> &'static str {
        match self {
            DocumentOp::Load { .. } => "load",
            DocumentOp::Save { .. } => "save",
            DocumentOp::List { .. } => "list",
            DocumentOp::Scan { .. } => "scan",
            DocumentOp::Folders { .. } => "folders",
            DocumentOp::Append { .. } => "append",
            DocumentOp::Rows { .. } => "rows",
            DocumentOp::Delete { .. } => "delete",
            DocumentOp::Query { .. } => "query",
        }
    }

    /// Saves and deletes go by content, so that repeating one changes nothing. A synced intent shows that a save is repeated:
    /// without an intent, an identical file is somebody else's.
    fn recovery(&self) -> Recovery {
        match self {
            DocumentOp::Load { .. }
            | DocumentOp::Save { .. }
            | DocumentOp::List { .. }
            | DocumentOp::Scan { .. }
            | DocumentOp::Folders { .. }
            | DocumentOp::Rows { .. }
            | DocumentOp::Delete { .. }
            | DocumentOp::Query { .. } => Recovery::Retry,
            DocumentOp::Append { .. } => Recovery::Probe,
        }
    }

    fn only_looks(&self) -> bool {
        match self {
            DocumentOp::Load { .. }
            | DocumentOp::List { .. }
            | DocumentOp::Scan { .. }
            | DocumentOp::Folders { .. }
            | DocumentOp::Rows { .. }
            | DocumentOp::Query { .. } => true,
            DocumentOp::Save { .. } | DocumentOp::Append { .. } | DocumentOp::Delete { .. } => false,
        }
    }

    fn replay_class(&self) -> ReplayClass {
        ReplayClass::Documents
    }

    fn needs_intent(&self) -> bool {
        self.recovery() == Recovery::Probe || matches!(self, DocumentOp::Save { .. })
    }

    /// A change of a document also changes the list of its collection.
    fn dependencies(&self) -> Dependencies {
        let document = |collection: &str, key: &DocumentKey| {
            let key: Vec<String> = key.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{collection} {}", key.join(" "))
        };
        match self {
            DocumentOp::Load { collection, key } | DocumentOp::Rows { collection, key } => {
                Dependencies { reads: vec![document(collection, key)], writes: Vec::new() }
            }
            DocumentOp::List { collection }
            | DocumentOp::Scan { collection, .. }
            | DocumentOp::Folders { collection } => {
                Dependencies { reads: vec![collection.clone()], writes: Vec::new() }
            }
            // A query depends on whole collections, whatever the placeholders of their paths are.
            DocumentOp::Query { collections, .. } => Dependencies { reads: collections.clone(), writes: Vec::new() },
            DocumentOp::Save { collection, key, .. }
            | DocumentOp::Append { collection, key, .. }
            | DocumentOp::Delete { collection, key, .. } => {
                let document = document(collection, key);
                Dependencies { reads: vec![document.clone()], writes: vec![document, collection.clone()] }
            }
        }
    }

    fn writes_into(&self) -> Option<&str> {
        match self {
            DocumentOp::Save { collection, .. } | DocumentOp::Append { collection, .. } => Some(collection),
            DocumentOp::Load { .. }
            | DocumentOp::List { .. }
            | DocumentOp::Scan { .. }
            | DocumentOp::Folders { .. }
            | DocumentOp::Rows { .. }
            | DocumentOp::Delete { .. }
            | DocumentOp::Query { .. } => None,
        }
    }

    fn written_value(&self) -> Option<&Value> {
        match self {
            DocumentOp::Save { value, .. } | DocumentOp::Append { row: value, .. } => Some(value),
            DocumentOp::Load { .. }
            | DocumentOp::List { .. }
            | DocumentOp::Scan { .. }
            | DocumentOp::Folders { .. }
            | DocumentOp::Rows { .. }
            | DocumentOp::Delete { .. }
            | DocumentOp::Query { .. } => None,
        }
    }

    fn request(&self) -> Value {
        match self {
            DocumentOp::Load { collection, key } => json!({ "collection": collection, "key": key }),
            DocumentOp::Save { collection, key, value, expect, migrated } => {
                let mut request = json!({ "collection": collection, "key": key, "value": value, "expect": expect });
                if let Some(version) = migrated {
                    request["migrated"] = json!(version);
                }
                request
            }
            DocumentOp::List { collection } => json!({ "collection": collection }),
            DocumentOp::Scan { collection, fields, after, folder } => {
                let mut request = json!({ "collection": collection, "fields": fields, "after": after });
                if let Some(folder) = folder {
                    request["folder"] = json!(folder);
                }
                request
            }
            DocumentOp::Folders { collection } => json!({ "collection": collection }),
            DocumentOp::Append { collection, key, row } => json!({ "collection": collection, "key": key, "row": row }),
            DocumentOp::Rows { collection, key } => json!({ "collection": collection, "key": key }),
            DocumentOp::Delete { collection, key, expect } => {
                json!({ "collection": collection, "key": key, "expect": expect })
            }
            DocumentOp::Query { sql, bind, collections, key, migrated } => {
                let mut request = json!({ "sql": sql, "bind": bind, "collections": collections, "key": key });
                if !migrated.is_empty() {
                    request["migrated"] = json!(migrated);
                }
                request
            }
        }
    }

    fn redact(&mut self, cleaner: &Cleaner) {
        // A redacted key is no valid file name, so the path is refused.
        let clean_key = |key: &mut DocumentKey| key.values_mut().for_each(|value| cleaner.text(value));
        match self {
            DocumentOp::Save { key, value, .. } | DocumentOp::Append { key, row: value, .. } => {
                clean_key(key);
                cleaner.value(value);
            }
            DocumentOp::Load { key, .. } | DocumentOp::Rows { key, .. } | DocumentOp::Delete { key, .. } => {
                clean_key(key)
            }
            DocumentOp::Query { sql, bind, migrated, .. } => {
                cleaner.text(sql);
                bind.iter_mut().for_each(|value| cleaner.value(value));
                for document in migrated {
                    document.value.iter_mut().for_each(|value| cleaner.value(value));
                    document.problem.iter_mut().for_each(|problem| cleaner.text(problem));
                }
            }
            // They hold names of collections, and the path of a folder, which has to be found again as it is.
            DocumentOp::List { .. } | DocumentOp::Scan { .. } | DocumentOp::Folders { .. } => {}
        }
    }
}
