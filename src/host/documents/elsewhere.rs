//! Documents in the other folders of the user: only read, page by page, and only those of a collection that is declared to be read
//! everywhere, in folders where a run of a flow with such a collection was begun.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::Store;
use crate::error::{Code, Failure, Result};
use crate::model::collection::Collection;
use crate::model::document::Page;

/// Returns the folders in which documents with this path may be. They may be gone.
pub(crate) type FindFolders = dyn Fn(&str) -> BTreeSet<PathBuf> + Send + Sync;

/// How the store of one workspace finds the others.
#[derive(Clone)]
pub(super) struct Elsewhere(Arc<FindFolders>);

impl fmt::Debug for Elsewhere {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Elsewhere")
    }
}

impl Default for Elsewhere {
    fn default() -> Elsewhere {
        Elsewhere(Arc::new(|_| BTreeSet::new()))
    }
}

/// A folder of the user's, beside the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OtherFolder {
    pub path: String,
    /// Whether there is no such folder any more, or none that this user can look into.
    pub gone: bool,
}

impl Store {
    /// Sets how the other folders of the user are found. By default there are none.
    pub fn with_folders(mut self, find: Arc<FindFolders>) -> Store {
        self.elsewhere = Elsewhere(find);
        self
    }

    /// Returns the folders in which documents like a collection's may be, but for the workspace, in the order of their paths.
    ///
    /// # Errors
    ///
    /// `permission-refused` if the collection is not declared to be read everywhere.
    pub(super) fn other_folders(&self, collection: &Collection) -> Result<Vec<OtherFolder>> {
        check_declared(collection)?;
        let others = (self.elsewhere.0)(&collection.path).into_iter().filter(|folder| *folder != self.root.root);
        let named = others.filter_map(|folder| {
            let gone = std::fs::read_dir(&folder).is_err();
            folder.into_os_string().into_string().ok().map(|path| OtherFolder { path, gone })
        });
        Ok(named.collect())
    }

    /// Returns a page of a collection's documents in another folder, as [`Store::scan`] does in the workspace.
    ///
    /// # Errors
    ///
    /// `permission-refused` if the collection is not declared to be read everywhere, or if the folder is none of
    /// [`Store::other_folders`]; else those of [`Store::scan`].
    pub(super) fn scan_elsewhere(
        &self,
        collection: &Collection,
        folder: &Path,
        fields: Option<&BTreeMap<String, String>>,
        after: Option<&str>,
    ) -> Result<Page> {
        check_declared(collection)?;
        if !(self.elsewhere.0)(&collection.path).contains(folder) {
            let message =
                format!("no run with documents like those of `{}` was begun in {}", collection.name, folder.display());
            return Err(Failure::new(Code::PermissionRefused, message));
        }
        Store::new(folder)?.without(&self.own_folders).scan_page(collection, fields, after)
    }
}

fn check_declared(collection: &Collection) -> Result<()> {
    if collection.everywhere {
        return Ok(());
    }
    let message = format!("the collection `{}` is read in this folder alone", collection.name);
    Err(Failure::new(Code::PermissionRefused, message).hint("declare it: everywhere = true"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{collection, store};
    use super::*;

    #[test]
    fn documents_of_another_folder_are_read_where_that_is_declared_and_known_and_nowhere_else() {
        let (here, store) = store();
        let (there, unknown) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let there = there.path().canonicalize().unwrap();
        for folder in [here.path(), &there, unknown.path()] {
            std::fs::create_dir_all(folder.join("notes")).unwrap();
            std::fs::write(folder.join("notes/a.yaml"), "slug: a\n").unwrap();
        }
        std::fs::write(there.join("notes/b.yaml"), "slug: [\n").unwrap();
        std::os::unix::fs::symlink(unknown.path().join("notes/a.yaml"), there.join("notes/c.yaml")).unwrap();
        let known = [here.path().canonicalize().unwrap(), there.clone(), PathBuf::from("/gone/away")];
        let store = store.with_folders(Arc::new(move |path| match path {
            "notes/{slug}.yaml" => known.clone().into(),
            _ => BTreeSet::new(),
        }));
        let everywhere = Collection { everywhere: true, ..collection("notes/{slug}.yaml") };
        let found: Vec<_> = store
            .other_folders(&everywhere)
            .unwrap()
            .into_iter()
            .map(|one| (PathBuf::from(one.path), one.gone))
            .collect();
        let mut expected = [(PathBuf::from("/gone/away"), true), (there.clone(), false)];
        expected.sort();
        assert_eq!(found, expected);
        let page = store.scan_elsewhere(&everywhere, &there, None, None).unwrap();
        let read: Vec<_> =
            page.entries.iter().map(|one| (&*one.path, one.failure.as_ref().map(|failure| failure.code))).collect();
        let expected = [
            ("notes/a.yaml", None),
            ("notes/b.yaml", Some(Code::DocumentUnreadable)),
            ("notes/c.yaml", Some(Code::PathRefused)),
        ];
        assert_eq!(read, expected);
        assert_eq!(std::fs::read_dir(&there).unwrap().count(), 1, "nothing is written there");

        let refused = |collection: &Collection, folder: &Path| {
            store.scan_elsewhere(collection, folder, None, None).unwrap_err().code == Code::PermissionRefused
        };
        assert!(refused(&everywhere, unknown.path()));
        let plain = collection("notes/{slug}.yaml");
        assert!(refused(&plain, &there) && store.other_folders(&plain).is_err());
        assert!(refused(&Collection { everywhere: true, ..collection("other/{slug}.yaml") }, &there));
    }
}
