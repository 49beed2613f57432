//! The documents that a run wrote, each with what changed from save to save.

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

use super::history::RunHistory;
use super::readable;
use crate::model::difference::differences;

/// The most changes of one document that are shown with their differences: the latest.
const CHANGES: usize = 50;

/// A file that the run saved or appended rows to.
#[derive(Debug, Default, Serialize)]
pub(super) struct Document {
    pub path: String,
    pub collection: String,
    /// How often it was saved, or how many rows it was given.
    pub writes: usize,
    pub rows: bool,
    pub deleted: bool,
    /// What it holds at the end; of rows, the last that this run wrote.
    #[serde(skip)]
    pub content: String,
    pub changes: Vec<Change>,
    #[serde(skip)]
    latest: Value,
}

/// One save, and what it changed.
#[derive(Debug, Serialize)]
pub(super) struct Change {
    /// The line of the effect.
    pub line: u64,
    /// `-` is before, `+` is after.
    pub lines: Vec<String>,
}

/// Returns them in the order in which they were first written.
pub(super) fn of(run: &RunHistory) -> Vec<Document> {
    let mut documents: IndexMap<String, Document> = IndexMap::new();
    // A deletion names the document and not its path.
    let mut paths: IndexMap<String, String> = IndexMap::new();
    let written = run.effects.iter().filter(|effect| matches!(effect.kind.as_str(), "save" | "append" | "delete"));
    for effect in written.filter(|effect| effect.failure.is_null() && effect.ended.is_some()) {
        let collection = effect.request["collection"].as_str().unwrap_or_default().to_owned();
        let name = format!("{collection} {}", effect.request["key"]);
        if effect.kind == "delete" {
            if let Some(document) = paths.get(&name).and_then(|path| documents.get_mut(path)) {
                document.deleted = true;
            }
            continue;
        }
        let path = effect.outcome["path"].as_str().unwrap_or_default().to_owned();
        paths.insert(name, path.clone());
        let new = || Document { path: path.clone(), collection, ..Document::default() };
        let document = documents.entry(path.clone()).or_insert_with(new);
        document.writes += 1;
        document.deleted = false;
        if effect.kind == "append" {
            document.rows = true;
            document.latest = effect.request["row"].clone();
            continue;
        }
        let value = effect.request["value"].clone();
        if !document.latest.is_null() {
            let lines = differences(&document.latest, &value);
            document.changes.push(Change { line: effect.line, lines });
        }
        document.latest = value;
    }
    let mut documents: Vec<Document> = documents.into_values().collect();
    for document in &mut documents {
        document.content = readable(&document.latest);
        let early = document.changes.len().saturating_sub(CHANGES);
        document.changes.drain(..early);
    }
    documents
}
