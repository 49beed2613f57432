//! Reads a collection page by page, for a listing of thousands of documents of which a flow wants a few fields each.
//!
//! Memory does not grow with the collection: a scan keeps at most [`LISTED`] paths, and of each document only the fields
//! that the flow wants. Several threads read the documents of a page.

use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use serde_json::Value;

use super::place::{At, DocumentPlace};
use super::{Store, validation};
use crate::error::{Code, Failure, Result};
use crate::model::collection::{Collection, Format, version_text};
use crate::model::document::{Page, ScannedDocument, VersionStatus};
use crate::model::path_template::PathTemplate;
use crate::model::pointer::Projection;
use crate::schema::{Schema, source};

/// The most documents on a page.
const PAGE: usize = 1000;
/// The most paths kept from one listing of a folder. A listing for each page would take as long as reading the page.
const LISTED: usize = 10 * PAGE;
/// The most reading threads.
const THREADS: usize = 4;

/// A page that a thread reads while the flow still works on the page before.
#[derive(Debug)]
pub(super) struct Prefetch {
    collection: Collection,
    fields: Option<BTreeMap<String, String>>,
    after: String,
    page: JoinHandle<Result<(Page, PendingPaths)>>,
}

/// The paths after a page, as far as they were listed.
#[derive(Debug, Default)]
struct PendingPaths {
    paths: VecDeque<String>,
    /// Whether these are the last paths of the collection.
    complete: bool,
}

/// Reads pages of one collection. Independent of the store, so that it can move to a thread of its own.
#[derive(Clone)]
struct PageReader {
    place: Arc<dyn DocumentPlace>,
    collection: Collection,
    schema: Arc<Schema>,
    parts: Option<Projection>,
}

impl Store {
    /// Returns the documents whose paths come next after `after`, with these fields only, or complete.
    ///
    /// A document of the current version is valid by its schema; older ones, which the flow has to migrate, are complete.
    /// A thread reads the next page meanwhile.
    ///
    /// # Errors
    ///
    /// `request-invalid` for a collection of rows. A document that cannot be read is returned with its failure.
    pub fn scan(
        &self,
        collection: &Collection,
        fields: Option<&BTreeMap<String, String>>,
        after: Option<&str>,
    ) -> Result<Page> {
        let reader = self.page_reader(collection, fields)?;
        let mut prefetch = self.prefetch.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = |prefetch: &Prefetch| {
            Some(prefetch.after.as_str()) == after
                && prefetch.collection == *collection
                && prefetch.fields.as_ref() == fields
        };
        let read_now = || reader.page(after, PendingPaths::default());
        let (page, listed) = match prefetch.take() {
            Some(ready) if wanted(&ready) => ready.page.join().unwrap_or_else(|_| read_now())?,
            _ => read_now()?,
        };
        if let Some(next) = page.next.clone() {
            let (fields, after) = (fields.cloned(), next.clone());
            let page = std::thread::spawn(move || reader.page(Some(&next), listed));
            *prefetch = Some(Prefetch { collection: collection.clone(), fields, after, page });
        }
        Ok(page)
    }

    /// As [`Store::scan`], without reading ahead.
    pub(super) fn scan_page(
        &self,
        collection: &Collection,
        fields: Option<&BTreeMap<String, String>>,
        after: Option<&str>,
    ) -> Result<Page> {
        Ok(self.page_reader(collection, fields)?.page(after, PendingPaths::default())?.0)
    }

    fn page_reader(&self, collection: &Collection, fields: Option<&BTreeMap<String, String>>) -> Result<PageReader> {
        if collection.format == Format::Jsonl {
            let message = format!("the collection `{}` holds rows, not documents", collection.name);
            return Err(Failure::new(Code::RequestInvalid, message).hint("ask for its `rows`"));
        }
        Ok(PageReader {
            place: Arc::clone(&self.place),
            collection: collection.clone(),
            schema: self.schema_for_reading(collection)?,
            parts: fields.map(Projection::new),
        })
    }
}

impl PageReader {
    /// Returns the page after `after`, and the paths after that page. `listed` begins with the page's paths, or is empty.
    fn page(&self, after: Option<&str>, mut listed: PendingPaths) -> Result<(Page, PendingPaths)> {
        if listed.paths.is_empty() && !listed.complete {
            listed = self.list(after)?;
        }
        let paths: Vec<String> = listed.paths.drain(..listed.paths.len().min(PAGE)).collect();
        let last = listed.paths.is_empty() && listed.complete;
        let next = if last { None } else { paths.last().cloned() };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        let share = paths.len().div_ceil(threads).max(1);
        let entries = std::thread::scope(|scope| {
            let workers: Vec<_> = paths
                .chunks(share)
                .map(|share| {
                    scope.spawn(|| share.iter().filter_map(|path| self.scan_document(path)).collect::<Vec<_>>())
                })
                .collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
        });
        Ok((Page { entries, next }, listed))
    }

    /// Returns the [`LISTED`] smallest paths after `after`, in order.
    fn list(&self, after: Option<&str>) -> Result<PendingPaths> {
        let pattern = PathTemplate::of(&self.collection)?;
        let mut smallest: BinaryHeap<String> = BinaryHeap::new();
        self.place.walk(self.collection.shared, &pattern, &mut |path, _| {
            let is_after = after.is_none_or(|after| path > after);
            let too_far = smallest.len() == LISTED && smallest.peek().is_some_and(|largest| path >= largest.as_str());
            if !is_after || too_far || pattern.matches(path).is_none() {
                return;
            }
            smallest.push(path.to_owned());
            if smallest.len() > LISTED {
                smallest.pop();
            }
        })?;
        let paths = VecDeque::from(smallest.into_sorted_vec());
        Ok(PendingPaths { complete: paths.len() < LISTED, paths })
    }

    /// Returns one document; `None` if it has vanished.
    fn scan_document(&self, path: &str) -> Option<ScannedDocument> {
        let path = path.to_owned();
        Some(match self.read(&path) {
            Ok(None) => return None,
            Ok(Some((value, standing))) => match &self.parts {
                Some(parts) if !matches!(standing, VersionStatus::Older(_)) => {
                    let declared = self.collection.version.as_ref().filter(|_| standing == VersionStatus::Current);
                    let version = declared.and_then(|version| value.pointer(&version.field)).map(version_text);
                    ScannedDocument { path, value: parts.of(&value), standing, version, failure: None }
                }
                _ => ScannedDocument { path, value, standing, version: None, failure: None },
            },
            Err(failure) => ScannedDocument {
                path,
                value: Value::Null,
                standing: VersionStatus::Current,
                version: None,
                failure: Some(failure),
            },
        })
    }

    fn read(&self, path: &str) -> Result<Option<(Value, VersionStatus)>> {
        let Some(bytes) = self.place.read(At { path, shared: self.collection.shared })? else { return Ok(None) };
        let text = source::decode(&bytes, path)?;
        let value = source::parse(text, self.collection.format, path)?;
        let key = PathTemplate::of(&self.collection)?.matches(path);
        let standing = validation::validate_document(&self.collection, &self.schema, &value, text, path, key.as_ref())?;
        Ok(Some((value, standing)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::super::testing::{collection, store};
    use super::*;

    #[test]
    fn a_folder_of_more_documents_than_are_listed_at_once_loses_none() {
        let (folder, store) = store();
        let collection = collection("notes/{slug}.yaml");
        let notes = folder.path().join("notes");
        fs::create_dir_all(&notes).unwrap();
        for number in 0..LISTED + PAGE {
            fs::write(notes.join(format!("n{number:05}.yaml")), format!("slug: n{number:05}\n")).unwrap();
        }
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = store.scan(&collection, None, after.as_deref()).unwrap();
            found.extend(page.entries.into_iter().map(|entry| entry.path));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let all: Vec<String> = (0..LISTED + PAGE).map(|number| format!("notes/n{number:05}.yaml")).collect();
        assert_eq!(found, all);
        let schema = store.schema_for_reading(&collection).unwrap();
        let reader = PageReader { place: Arc::clone(&store.place), collection, schema, parts: None };
        assert_eq!(reader.list(None).unwrap().paths.len(), LISTED, "those behind them are not kept");
    }

    #[test]
    fn pages_hold_every_document_once_in_order_with_what_is_wanted() {
        let (folder, store) = store();
        let collection = collection("notes/{slug}.yaml");
        assert_eq!(store.scan(&collection, None, None).unwrap(), Page { entries: Vec::new(), next: None });
        let notes = folder.path().join("notes");
        fs::create_dir_all(&notes).unwrap();
        for number in 0..PAGE + 5 {
            fs::write(
                notes.join(format!("n{number:05}.yaml")),
                format!("slug: n{number:05}\nmarks: [{{a: 1}}, {{a: 2}}]\n"),
            )
            .unwrap();
        }
        fs::write(notes.join("n00003.yaml"), "slug: [\n").unwrap();
        let fields = BTreeMap::from([
            ("slug".to_owned(), "/slug".to_owned()),
            ("all".to_owned(), "/marks/*/a".to_owned()),
            ("none".to_owned(), "/none".to_owned()),
        ]);
        let first = store.scan(&collection, Some(&fields), None).unwrap();
        assert_eq!((first.entries.len(), first.next.as_deref()), (PAGE, Some("notes/n00999.yaml")));
        assert_eq!(first.entries[2].value, json!({ "slug": "n00002", "all": [1, 2] }));
        assert_eq!(first.entries[3].failure.as_ref().unwrap().code, Code::DocumentUnreadable);
        let second = store.scan(&collection, None, first.next.as_deref()).unwrap();
        assert_eq!((second.entries.len(), second.next), (5, None));
        assert_eq!(second.entries[0].value["slug"], "n01000");
    }
}
