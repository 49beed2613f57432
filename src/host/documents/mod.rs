//! The documents of a workspace: loaded only when valid, saved only when valid, never lost.
//!
//! A [`Store`] serves one workspace. Everything that a flow keeps goes through its store:
//!
//! - [`crate::model::path_template`] turns a key into a path and back, `paths` keeps that path inside the workspace;
//! - `validation` decides what makes a document valid, `version` tells old from new;
//! - `read` loads; `save` shapes and writes and `rows` appends at the `tail`, both under a `lock`;
//! - `scan` goes through a large collection page by page;
//! - `elsewhere` scans the user's other folders, for collections that are read everywhere;
//! - `references` finds rows that refer to nothing, `query` runs SQL over rows, `sql` prepares the text for SQLite;
//! - `index` keeps tables of the contents of documents, for queries over many of them;
//! - `place` is what documents need of where they are: `folder`, files of the workspace, or `server`;
//! - `disk` is the only module that touches files.
//!
//! This module knows neither Lua nor the journal, and no kind of document in particular.

mod disk;
pub(crate) mod elsewhere;
mod folder;
mod index;
mod validation;
mod list;
mod lock;
mod paths;
pub(crate) mod perform;
mod place;
mod query;
mod read;
mod references;
mod rows;
mod save;
mod scan;
#[cfg(feature = "postgres")]
mod server;
mod sql;
mod sqlite;
mod tail;
#[cfg(test)]
mod testing;
mod version;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use query::QueryResult;
pub use rows::Appended;

use self::folder::FolderPlace;
use self::paths::DocumentRoot;
use self::place::{At, DocumentPlace};
use crate::error::Result;
use crate::model::collection::{Collection, DocumentKey};
use crate::model::path_template::PathTemplate;
use crate::schema::SchemaCache;

/// How long a save waits for another process that holds the lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// The documents of one workspace.
#[derive(Debug)]
pub struct Store {
    root: DocumentRoot,
    place: Arc<dyn DocumentPlace>,
    /// The folder of the indexes of this workspace.
    indexes: PathBuf,
    /// Nietz's own folders, as they were given.
    own_folders: Vec<PathBuf>,
    elsewhere: elsewhere::Elsewhere,
    schemas: SchemaCache,
    patience: Duration,
    /// The page of a collection that a thread reads ahead for the next call of `scan`.
    prefetch: Mutex<Option<scan::Prefetch>>,
    /// Digests of files that are known not to be newer than their flow; they need not be parsed again before a save.
    known_digests: Mutex<HashSet<String>>,
}

impl Store {
    /// Opens the documents of a workspace.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the workspace does not exist.
    pub fn new(root: &Path) -> Result<Store> {
        let root = DocumentRoot::new(root)?;
        Ok(Store {
            indexes: root.root.join(".nietz/index"),
            place: Arc::new(FolderPlace::new(root.clone(), PATIENCE)),
            root,
            own_folders: Vec::new(),
            elsewhere: elsewhere::Elsewhere::default(),
            schemas: SchemaCache::default(),
            patience: PATIENCE,
            prefetch: Mutex::default(),
            known_digests: Mutex::default(),
        })
    }

    /// Sets nietz's own folders, which hold no documents, wherever they are.
    pub fn without(mut self, folders: &[PathBuf]) -> Store {
        self.root.exclude(folders);
        self.place = Arc::new(FolderPlace::new(self.root.clone(), self.patience));
        self.own_folders = folders.to_vec();
        self
    }

    /// Sets the folder for the indexes of all workspaces. By default, indexes are below the workspace.
    pub fn with_indexes(mut self, folder: &Path) -> Store {
        self.indexes = folder.join(&disk::digest(self.root.root.as_os_str().as_encoded_bytes())[..16]);
        self
    }

    /// Sets how long to wait for the lock of a document.
    pub fn with_patience(mut self, patience: Duration) -> Store {
        self.patience = patience;
        self.place = Arc::new(FolderPlace::new(self.root.clone(), patience));
        self
    }

    /// Keeps documents on a server, in place of files: those of collections that are not shared in this scope, as of this run. Indexes
    /// are of that place. Nothing else of this value may be set after it.
    #[cfg(feature = "postgres")]
    pub(crate) fn on_server(mut self, server: crate::store::postgres::Server, scope: &str, run: Option<i64>) -> Store {
        let name = format!("{}/{}/{scope}", server.connection.shown, server.name);
        self.indexes = self.indexes.with_file_name(&disk::digest(name.as_bytes())[..16]);
        self.place = Arc::new(server::ServerPlace::new(server, scope, run));
        self
    }

    /// Returns the path of a document below the workspace, with `/`. The document need not exist.
    ///
    /// # Errors
    ///
    /// `request-invalid` if the key does not fit the collection, `path-refused` if the path leads out of the workspace.
    pub fn path(&self, collection: &Collection, key: &DocumentKey) -> Result<String> {
        let relative = PathTemplate::of(collection)?.fill(key)?;
        self.place.check(at(collection, &relative))?;
        Ok(relative)
    }

    /// Returns the key of a file, if its path belongs to the collection.
    pub fn match_path(&self, collection: &Collection, path: &Path) -> Option<DocumentKey> {
        let path = path.strip_prefix(&self.root.root).unwrap_or(path);
        PathTemplate::of(collection).ok()?.matches(path.to_str()?)
    }

    fn locate(&self, collection: &Collection, key: &DocumentKey) -> Result<String> {
        let relative = PathTemplate::of(collection)?.fill(key)?;
        self.place.check(at(collection, &relative))?;
        Ok(relative)
    }

    fn is_known_digest(&self, digest: &str) -> bool {
        self.known_digests.lock().unwrap_or_else(PoisonError::into_inner).contains(digest)
    }

    fn remember_digest(&self, digest: &str) {
        let mut known = self.known_digests.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= 10_000 {
            known.clear();
        }
        known.insert(digest.to_owned());
    }
}

fn at<'a>(collection: &Collection, path: &'a str) -> At<'a> {
    At { path, shared: collection.shared }
}
