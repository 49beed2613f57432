//! Lists every document of a collection; a broken one is listed with what is wrong with it.

use super::Store;
use crate::error::Result;
use crate::model::collection::{Collection, DocumentKey};
use crate::model::document::ListedDocument;
use crate::model::path_template::PathTemplate;

/// A file whose path makes it a document of a collection.
pub(super) struct DocumentFile {
    pub(super) key: DocumentKey,
    /// Below the workspace, with `/`.
    pub(super) path: String,
    /// It is another one once the file changes; empty where that cannot be told.
    pub(super) stamp: String,
}

impl Store {
    /// Returns all documents of a collection, sorted by path.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the folder cannot be listed, `path-refused` if it leads out of the workspace. A document that cannot
    /// be loaded is listed with its failure.
    pub fn list(&self, collection: &Collection) -> Result<Vec<ListedDocument>> {
        let mut listed = Vec::new();
        for DocumentFile { key, path, .. } in self.files(collection)? {
            match self.load(collection, &key) {
                Ok(Some(loaded)) => listed.push(ListedDocument { key, path, loaded: Some(loaded), failure: None }),
                Ok(None) => {}
                Err(failure) => listed.push(ListedDocument { key, path, loaded: None, failure: Some(failure) }),
            }
        }
        Ok(listed)
    }

    /// Returns the paths of a collection's documents, in order, without opening them.
    ///
    /// # Errors
    ///
    /// As [`Store::list`].
    pub fn paths(&self, collection: &Collection) -> Result<Vec<String>> {
        Ok(self.files(collection)?.into_iter().map(|file| file.path).collect())
    }

    /// Returns the files of a collection's documents, sorted by path, without opening them.
    pub(super) fn files(&self, collection: &Collection) -> Result<Vec<DocumentFile>> {
        let pattern = PathTemplate::of(collection)?;
        let mut found = Vec::new();
        self.place.walk(collection.shared, &pattern, &mut |path, stamp| {
            if let Some(key) = pattern.matches(path) {
                found.push(DocumentFile { key, path: path.to_owned(), stamp: stamp() });
            }
        })?;
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::testing::{collection, key, slug, store};
    use crate::error::Code;

    #[test]
    fn broken_documents_are_listed_with_what_is_wrong() {
        let (folder, store) = store();
        let collection = collection(".data/notes/{slug}.yaml");
        assert_eq!(store.list(&collection).unwrap(), []);
        let notes = folder.path().join(".data/notes");
        fs::create_dir_all(notes.join("c.yaml")).unwrap();
        for (name, text) in [
            ("b.yaml", "slug: [\n"),
            ("a.yaml", "slug: a\n"),
            ("a.yaml.v1.0.bak", "x"),
            (".a.yaml.lock", ""),
            ("a.yml", "x"),
            ("c.yaml/d.yaml", "x"),
        ] {
            fs::write(notes.join(name), text).unwrap();
        }
        let listed = store.list(&collection).unwrap();
        let paths: Vec<&str> = listed.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, [".data/notes/a.yaml", ".data/notes/b.yaml"]);
        assert!(listed[0].key == slug("a") && listed[0].loaded.is_some());
        assert_eq!(listed[1].failure.as_ref().unwrap().code, Code::DocumentUnreadable);
    }

    #[test]
    fn keys_in_folders_are_found() {
        let (folder, store) = store();
        for path in ["g2/n/a.yaml", "g1/n/b.yaml", "g1/x/b.yaml", "c.yaml"] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "slug: a\n").unwrap();
        }
        let listed = store.list(&collection("{group}/n/{slug}.yaml")).unwrap();
        let keys: Vec<_> = listed.iter().map(|one| one.key.clone()).collect();
        assert_eq!(keys, [key(&[("group", "g1"), ("slug", "b")]), key(&[("group", "g2"), ("slug", "a")])]);
    }
}
