//! Saving: shaped, drafted, validated in that very form, locked, compared, and then replaced in one step.

use std::path::Path;
use std::sync::PoisonError;

use serde_json::Value;

use super::lock::DocumentLock;
use super::version::{self, VersionCheck};
use super::{Store, disk, validation};
use crate::error::{Code, Failure, Result};
use crate::model::collection::{Collection, DocumentKey, Format};
use crate::model::document::{Expect, SavedDocument, VersionStatus};
use crate::schema::{shape, source, text};

impl Store {
    /// Saves a document, if it is valid and if what stands at its path is what is expected.
    pub fn save(
        &self,
        collection: &Collection,
        key: &DocumentKey,
        value: Value,
        expect: &Expect,
    ) -> Result<SavedDocument> {
        self.write(collection, key, value, expect, SaveMode::First)
    }

    /// Saves a document once more, after a crash that left it unknown whether it was saved: where it was,
    /// nothing is done.
    pub fn save_again(
        &self,
        collection: &Collection,
        key: &DocumentKey,
        value: Value,
        expect: &Expect,
    ) -> Result<SavedDocument> {
        self.write(collection, key, value, expect, SaveMode::Again)
    }

    /// Saves a document that was migrated. Until the new file is safely written, the old one is kept
    /// beside it as `<file>.v<version>.bak`.
    pub fn save_migrated(
        &self,
        collection: &Collection,
        key: &DocumentKey,
        value: Value,
        expect: &Expect,
    ) -> Result<SavedDocument> {
        self.write(collection, key, value, expect, SaveMode::Migrated)
    }

    /// Deletes a document; tells whether there was one.
    pub fn delete(&self, collection: &Collection, key: &DocumentKey, expect: &Expect) -> Result<bool> {
        let (path, relative) = self.locate(collection, key)?;
        if disk::kind(disk::parent_folder(&path))? == disk::PathKind::Absent {
            return Ok(false);
        }
        let _lock = DocumentLock::take(&path, self.patience)?;
        let Some(present) = disk::read(&path)? else { return Ok(false) };
        if !matches_expected(expect, Some(&disk::digest(&present))) {
            return Err(changed_failure(&relative, Some(&present)));
        }
        disk::remove(&path)
    }

    fn write(
        &self,
        collection: &Collection,
        key: &DocumentKey,
        mut value: Value,
        expect: &Expect,
        time: SaveMode,
    ) -> Result<SavedDocument> {
        if collection.format == Format::Jsonl {
            let message = format!("the collection {} holds rows; they are appended, not saved", collection.name);
            return Err(Failure::new(Code::RequestInvalid, message));
        }
        let (path, relative) = self.locate(collection, key)?;
        shape::shape(&mut value, &collection.schema);
        let text = text::to_text(&value, collection.format);
        // The disk works on the draft while the value is judged. It gets its name only when that went well.
        let draft = match disk::kind(disk::parent_folder(&path))? {
            disk::PathKind::Folder => {
                self.clear(disk::parent_folder(&path));
                Some(disk::TempFile::write(&path, text.as_bytes())?)
            }
            _ => None,
        };
        let faults = self.violations_to_save(collection, key, &value)?;
        if !faults.is_empty() {
            return Err(validation::invalid(&relative, &faults));
        }
        drop(value);
        let draft = match draft {
            Some(draft) => draft,
            None => {
                disk::make_folders(&path)?;
                disk::TempFile::write(&path, text.as_bytes())?
            }
        };
        let saved = SavedDocument { digest: disk::digest(text.as_bytes()), path: relative };

        let _lock = DocumentLock::take(&path, self.patience)?;
        let present = disk::read(&path)?;
        let digest = present.as_deref().map(disk::digest);
        // Two runs may count the same number up: a file that is just as this save would make it is not this
        // save's, unless it is one that was done before. (Any number of migrations make the same of a file.)
        let may_be_done = time != SaveMode::First || matches_expected(expect, digest.as_deref());
        if may_be_done && digest.as_ref() == Some(&saved.digest) {
            // Written before, perhaps by a run that was killed then: only its name may not be durable yet.
            disk::sync_folder(disk::parent_folder(&path))?;
        } else {
            if let (Some(bytes), Some(digest)) = (&present, &digest) {
                self.refuse_newer(collection, bytes, digest, &saved.path)?;
            }
            if !matches_expected(expect, digest.as_deref()) {
                return Err(changed_failure(&saved.path, present.as_deref()));
            }
            if let (Some(bytes), SaveMode::Migrated) = (&present, time) {
                disk::replace(&backup(&path, collection, bytes), bytes)?;
            }
            draft.publish(&path)?;
        }
        if time == SaveMode::Migrated {
            self.remove_backups(collection, &path)?;
        }
        self.remember_digest(&saved.digest);
        Ok(saved)
    }

    /// Removes what a save left that was killed: once in each folder, since every other process does so, too.
    fn clear(&self, folder: &Path) {
        if self.cleared.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned()) {
            disk::remove_stale(folder);
        }
    }

    /// Refuses to write over a file that a newer flow wrote: what this one does not know would be lost.
    fn refuse_newer(&self, collection: &Collection, bytes: &[u8], digest: &str, file: &str) -> Result<()> {
        let Some(version) = collection.version.as_ref().filter(|_| !self.is_known_digest(digest)) else {
            return Ok(());
        };
        // A file that cannot be read has no version; whether it may be replaced is the caller's word.
        let value = source::decode(bytes, file).and_then(|text| source::parse(text, collection.format, file));
        match value.ok().and_then(|value| version::newer_than(collection, &value)) {
            Some(found) => Err(version::newer_failure(file, &found, &version::version_text(&version.current))
                .hint("it is not written over; save under another name, or update the flow")),
            None => Ok(()),
        }
    }

    /// Removes what an earlier try of a migration, which was killed, may have left too.
    fn remove_backups(&self, collection: &Collection, path: &Path) -> Result<()> {
        for version in collection.version.iter().flat_map(|version| &version.migrates) {
            disk::remove(&backup_path(path, version))?;
        }
        Ok(())
    }
}

/// Which save it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SaveMode {
    First,
    /// The first may have been done before a crash.
    Again,
    /// Of a document that was brought up to the current version.
    Migrated,
}

/// Returns where the old file is kept during a migration.
fn backup(path: &Path, collection: &Collection, bytes: &[u8]) -> std::path::PathBuf {
    let standing = source::decode(bytes, "")
        .and_then(|text| source::parse(text, collection.format, ""))
        .and_then(|value| version::check_version(collection, &value, ""));
    match standing {
        Ok(VersionCheck::Known(VersionStatus::Older(version))) => backup_path(path, &version),
        _ => backup_path(path, ""),
    }
}

/// The version comes from a manifest, so only what is safe in a name is taken of it.
fn backup_path(path: &Path, version: &str) -> std::path::PathBuf {
    let version: String =
        version.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')).collect();
    let version = if version.is_empty() { "0" } else { &version };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.v{version}.bak"))
}

fn matches_expected(expect: &Expect, digest: Option<&str>) -> bool {
    match expect {
        Expect::Anything => true,
        Expect::Absent => digest.is_none(),
        Expect::Digest(wanted) => digest == Some(wanted),
    }
}

fn changed_failure(file: &str, present: Option<&[u8]>) -> Failure {
    let message = match present {
        Some(_) => format!("{file} was changed by somebody else since it was read"),
        None => format!("{file} was removed by somebody else since it was read"),
    };
    Failure::new(Code::DocumentChanged, message)
        .hint("nothing was written: save the version in memory under another name, or load the file again")
}

#[cfg(test)]
mod tests;
