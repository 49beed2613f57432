//! Keeps every path inside the workspace: a link must not lead a save to somebody's home, nor to files of git or of
//! nietz.
//!
//! The check happens when a document is opened. It does not stop somebody who replaces a folder by a link
//! at that very moment; such a person can write to the workspace anyway.

use std::path::{Path, PathBuf};

use super::disk::{self, PathKind};
use crate::error::{Code, Failure, Result};
use crate::model::path_template;

/// The folder of all documents: the workspace, without the folders that nietz keeps for itself.
#[derive(Clone, Debug)]
pub(super) struct DocumentRoot {
    /// The workspace, with every link on the way to it resolved.
    pub root: PathBuf,
    /// nietz's own folders, which can lie below a workspace.
    excluded: Vec<PathBuf>,
}

impl DocumentRoot {
    pub(super) fn new(root: &Path) -> Result<DocumentRoot> {
        Ok(DocumentRoot { root: disk::canonical(root)?, excluded: Vec::new() })
    }

    /// Sets the folders that hold no documents. They need not exist yet.
    pub(super) fn exclude(&mut self, folders: &[PathBuf]) {
        self.excluded = crate::host::path::below(&self.root, folders);
    }

    /// Returns whether a resolved path is in one of nietz's own folders.
    pub(super) fn is_excluded(&self, path: &Path) -> bool {
        self.excluded.iter().any(|folder| path.starts_with(folder))
    }

    /// Returns the real path, links resolved, of a path below the workspace. Nothing need exist there.
    pub(super) fn resolve(&self, relative: &str) -> Result<PathBuf> {
        let path = follow(&self.root, relative)?;
        let below = path.strip_prefix(&self.root).unwrap_or(&path).to_string_lossy();
        if path_template::is_of_others(&below) || self.is_excluded(&path) {
            return Err(refused(relative, "leads to files of the repository or of nietz itself"));
        }
        Ok(path)
    }
}

fn follow(root: &Path, relative: &str) -> Result<PathBuf> {
    let mut path = root.to_owned();
    let mut names = relative.split('/').peekable();
    while let Some(name) = names.next() {
        path.push(name);
        let last = names.peek().is_none();
        match disk::kind(&path)? {
            PathKind::Absent => {
                // The rest of the path does not exist, so it contains no links.
                path.extend(names);
                break;
            }
            PathKind::Link if last => return Err(refused(relative, "is a link; documents must be plain files")),
            PathKind::Link => {
                path = disk::canonical(&path)?;
                if !path.starts_with(root) {
                    return Err(refused(relative, "leads out of the workspace through a link"));
                }
            }
            PathKind::File if !last => return Err(refused(relative, "has a file where it needs a folder")),
            PathKind::Folder if last => return Err(refused(relative, "is a folder")),
            PathKind::Other => return Err(refused(relative, "is neither a plain file nor a folder")),
            PathKind::File | PathKind::Folder => {}
        }
    }
    Ok(path)
}

fn refused(relative: &str, reason: &str) -> Failure {
    Failure::new(Code::PathRefused, format!("{relative} {reason}"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::super::testing::{collection, slug, store};
    use super::*;
    use crate::model::document::Expect;

    #[test]
    fn links_may_not_lead_out_and_documents_may_not_be_links() {
        let (folder, store) = store();
        let outside = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("real")).unwrap();
        std::fs::write(outside.path().join("a.yaml"), "slug: a\n").unwrap();
        symlink(outside.path(), root.join("out")).unwrap();
        symlink("real", root.join("in")).unwrap();
        symlink("../real", root.join("real/up")).unwrap();
        symlink(outside.path().join("a.yaml"), root.join("real/a.yaml")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        let refused = |path: &str| {
            let collection = collection(path);
            let value = json!({"slug": "a"});
            let loaded = store.load(&collection, &slug("a")).map(|_| ());
            let saved = store.save(&collection, &slug("a"), value.clone(), &Expect::Anything).map(|_| ());
            (loaded.map_err(|failure| failure.code), saved.map_err(|failure| failure.code))
        };
        for path in ["out/{slug}.yaml", "out/new/{slug}.yaml", "real/{slug}.yaml"] {
            assert_eq!(refused(path), (Err(Code::PathRefused), Err(Code::PathRefused)), "{path}");
        }
        assert!(matches!(refused("dangling/{slug}.yaml"), (Err(_), Err(_))));
        assert_eq!(std::fs::read_to_string(outside.path().join("a.yaml")).unwrap(), "slug: a\n");
        let inside = collection("in/up/new/{slug}.yaml");
        store.save(&inside, &slug("a"), json!({"slug": "a"}), &Expect::Absent).unwrap();
        assert!(root.join("real/new/a.yaml").is_file());
    }

    #[test]
    fn files_and_folders_in_the_wrong_place_are_named() {
        let (folder, store) = store();
        std::fs::create_dir_all(folder.path().join("a.yaml")).unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        for path in ["{slug}.yaml", "file/{slug}.yaml"] {
            assert_eq!(store.load(&collection(path), &slug("a")).unwrap_err().code, Code::PathRefused);
        }
    }
}
