//! Saves a document: shape it, write a temporary file, validate, lock, compare, then replace the old file in one step.

use std::path::Path;
use std::sync::PoisonError;

use serde_json::Value;

use super::lock::DocumentLock;
use super::version::{self, VersionCheck};
use super::{Store, disk, validation};
use crate::error::{Code, Failure, Result};
use crate::model::collection::{Collection, DocumentKey, Format, version_text};
use crate::model::document::{Expect, SavedDocument, VersionStatus};
use crate::schema::{Violation, shape, source, text};

impl Store {
    /// Saves a document, if it is valid and the file at its path is as expected.
    ///
    /// # Errors
    ///
    /// `document-invalid` with every violation, `document-changed` if the file is not as expected, `document-version` if a
    /// newer flow wrote it, `document-busy` if another process holds the lock, `request-invalid` for a collection of rows.
    pub fn save(
        &self,
        collection: &Collection,
        key: &DocumentKey,
        value: Value,
        expect: &Expect,
    ) -> Result<SavedDocument> {
        self.write(collection, key, value, expect, SaveMode::First)
    }

    /// Saves a document after a crash that left it unknown whether it was saved. Does nothing if it was.
    ///
    /// # Errors
    ///
    /// As [`Store::save`].
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
    ///
    /// # Errors
    ///
    /// As [`Store::save`].
    pub fn save_migrated(
        &self,
        collection: &Collection,
        key: &DocumentKey,
        value: Value,
        expect: &Expect,
    ) -> Result<SavedDocument> {
        self.write(collection, key, value, expect, SaveMode::Migrated)
    }

    /// Gives a document the form in which it would be saved, and returns what keeps it from being saved. Writes nothing.
    ///
    /// # Errors
    ///
    /// Only if the collection's own schema is wrong.
    pub fn check_to_save(
        &self,
        collection: &Collection,
        key: Option<&DocumentKey>,
        value: &mut Value,
    ) -> Result<Vec<Violation>> {
        shape::shape(value, &collection.schema);
        self.violations_to_save(collection, key, value)
    }

    /// Deletes a document. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// `document-changed` if the file is not as expected, `document-busy` if another process holds the lock.
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
        mode: SaveMode,
    ) -> Result<SavedDocument> {
        if collection.format == Format::Jsonl {
            let message = format!("the collection {} holds rows; they are appended, not saved", collection.name);
            return Err(Failure::new(Code::RequestInvalid, message));
        }
        let (path, relative) = self.locate(collection, key)?;
        shape::shape(&mut value, &collection.schema);
        let text = text::to_text(&value, collection.format);
        // The disk writes the temporary file while the value is validated. Only a valid one is renamed to its place.
        let temp_file = match disk::kind(disk::parent_folder(&path))? {
            disk::PathKind::Folder => {
                self.clear(disk::parent_folder(&path));
                Some(disk::TempFile::write(&path, text.as_bytes())?)
            }
            _ => None,
        };
        let violations = self.violations_to_save(collection, Some(key), &value)?;
        if !violations.is_empty() {
            return Err(validation::invalid(&relative, &violations));
        }
        drop(value);
        let temp_file = match temp_file {
            Some(temp_file) => temp_file,
            None => {
                disk::make_folders(&path)?;
                disk::TempFile::write(&path, text.as_bytes())?
            }
        };
        let saved = SavedDocument { digest: disk::digest(text.as_bytes()), path: relative };

        let _lock = DocumentLock::take(&path, self.patience)?;
        let present = disk::read(&path)?;
        let digest = present.as_deref().map(disk::digest);
        // Two runs may both count a number up from 1 to 2. So an identical file does not mean that this save is done,
        // unless it is repeated after a crash. (A migration yields the same file however often it runs.)
        let may_be_done = mode != SaveMode::First || matches_expected(expect, digest.as_deref());
        if may_be_done && digest.as_ref() == Some(&saved.digest) {
            // The file was written before, perhaps by a run that was killed then; its name may not be durable yet.
            disk::sync_folder(disk::parent_folder(&path))?;
        } else {
            if let (Some(bytes), Some(digest)) = (&present, &digest) {
                self.refuse_newer(collection, bytes, digest, &saved.path)?;
            }
            if !matches_expected(expect, digest.as_deref()) {
                return Err(changed_failure(&saved.path, present.as_deref()));
            }
            if let (Some(bytes), SaveMode::Migrated) = (&present, mode) {
                disk::replace(&backup(&path, collection, bytes), bytes)?;
            }
            temp_file.publish(&path)?;
        }
        if mode == SaveMode::Migrated {
            self.remove_backups(collection, &path)?;
        }
        self.remember_digest(&saved.digest);
        Ok(saved)
    }

    /// Removes the temporary files of killed saves: once per folder, since every other process does so, too.
    fn clear(&self, folder: &Path) {
        if self.cleared.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned()) {
            disk::remove_stale(folder);
        }
    }

    /// Refuses to write over a file of a newer flow: fields that this flow does not know would be lost.
    fn refuse_newer(&self, collection: &Collection, bytes: &[u8], digest: &str, file: &str) -> Result<()> {
        let Some(version) = collection.version.as_ref().filter(|_| !self.is_known_digest(digest)) else {
            return Ok(());
        };
        // A file that cannot be read has no version; the caller's `expect` decides whether it may be replaced.
        let value = source::decode(bytes, file).and_then(|text| source::parse(text, collection.format, file));
        match value.ok().and_then(|value| version::newer_than(collection, &value)) {
            Some(found) => Err(version::newer_failure(file, &found, &version_text(&version.current))
                .hint("it is not written over; save under another name, or update the flow")),
            None => Ok(()),
        }
    }

    /// Removes what a migration left beside a document that was killed when the new file was written already.
    ///
    /// # Errors
    ///
    /// `disk-failed`, or `document-busy` if another process holds the lock.
    pub fn clear_backups(&self, collection: &Collection, key: &DocumentKey) -> Result<()> {
        let (path, _) = self.locate(collection, key)?;
        let left = collection.version.iter().flat_map(|version| &version.migrates);
        let mut left = left.map(|version| disk::kind(&backup_path(&path, version)));
        if left.any(|kind| kind.is_ok_and(|kind| kind != disk::PathKind::Absent)) {
            let _lock = DocumentLock::take(&path, self.patience)?;
            self.remove_backups(collection, &path)?;
        }
        Ok(())
    }

    /// Removes the backups of this migration and of earlier tries that were killed.
    fn remove_backups(&self, collection: &Collection, path: &Path) -> Result<()> {
        for version in collection.version.iter().flat_map(|version| &version.migrates) {
            disk::remove(&backup_path(path, version))?;
        }
        Ok(())
    }
}

/// How a document is saved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SaveMode {
    First,
    /// Repeats a save that may have happened before a crash.
    Again,
    /// Saves a document that was migrated to the current version.
    Migrated,
}

/// Returns the path of the backup of the old file during a migration.
fn backup(path: &Path, collection: &Collection, bytes: &[u8]) -> std::path::PathBuf {
    let status = source::decode(bytes, "")
        .and_then(|text| source::parse(text, collection.format, ""))
        .and_then(|value| version::check_version(collection, &value, ""));
    match status {
        Ok(VersionCheck::Known(VersionStatus::Older(version))) => backup_path(path, &version),
        _ => backup_path(path, ""),
    }
}

/// Returns the backup path for a version. The version comes from a manifest, so only characters safe in a name are kept.
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
