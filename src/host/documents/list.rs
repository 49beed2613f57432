//! Listing: every document of a collection, the broken ones among them with what is wrong.

use walkdir::WalkDir;

use super::pattern::Pattern;
use super::{Store, disk, paths};
use crate::error::{Code, Failure, Result};
use crate::model::collection::Collection;
use crate::model::document::Listed;

impl Store {
    /// Returns all documents of a collection, sorted by path.
    pub fn list(&self, collection: &Collection) -> Result<Vec<Listed>> {
        let pattern = Pattern::of(collection)?;
        let folder = pattern.folder();
        let start = match folder.as_str() {
            "" => self.root.clone(),
            // A file inside is asked for, because the folder itself may be a link within the workspace.
            folder => match paths::resolve(&self.root, &format!("{folder}/x"))?.parent() {
                Some(start) => start.to_owned(),
                None => return Ok(Vec::new()),
            },
        };
        if disk::kind(&start)? == disk::Kind::Absent {
            return Ok(Vec::new());
        }
        let above = folder.split('/').filter(|name| !name.is_empty()).count();
        let mut listed = Vec::new();
        for entry in WalkDir::new(&start).max_depth(pattern.depth() - above).sort_by_file_name() {
            let entry = match entry {
                Ok(entry) => entry,
                // What vanished while we looked was deleted by somebody else.
                Err(error) if error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound) => {
                    continue;
                }
                Err(error) => {
                    let message = format!("cannot look through {}: {error}", start.display());
                    return Err(Failure::new(Code::DiskFailed, message));
                }
            };
            if entry.file_type().is_dir() {
                continue;
            }
            let Some(below) = entry.path().strip_prefix(&start).ok().and_then(|path| path.to_str()) else { continue };
            let path = if folder.is_empty() { below.to_owned() } else { format!("{folder}/{below}") };
            let Some(key) = pattern.matches(&path) else { continue };
            match self.load(collection, &key) {
                Ok(Some(loaded)) => listed.push(Listed { key, path, loaded: Some(loaded), failure: None }),
                Ok(None) => {}
                Err(failure) => listed.push(Listed { key, path, loaded: None, failure: Some(failure) }),
            }
        }
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listed)
    }
}
