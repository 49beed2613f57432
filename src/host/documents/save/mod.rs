//! Saves a document: shape it, write a temporary file, validate, lock, compare, then replace the old file in one step.

use serde_json::Value;

use super::place::Change;
use super::version::{self, VersionCheck};
use super::{Store, at, disk, validation};
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
        let relative = self.locate(collection, key)?;
        self.place.change(at(collection, &relative), None, &[], &mut |present| match present {
            None => Ok(Change::Nothing),
            Some(bytes) if !matches_expected(expect, Some(&disk::digest(bytes))) => {
                Err(changed_failure(&relative, present))
            }
            Some(_) => Ok(Change::Remove),
        })
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
        let relative = self.locate(collection, key)?;
        let place = at(collection, &relative);
        shape::shape(&mut value, &collection.schema);
        let text = text::to_text(&value, collection.format);
        let staged = self.place.stage(place, text.as_bytes())?;
        let violations = self.violations_to_save(collection, Some(key), &value)?;
        if !violations.is_empty() {
            return Err(validation::invalid(&relative, &violations));
        }
        drop(value);
        let wanted = disk::digest(text.as_bytes());
        let backups = if mode == SaveMode::Migrated { backups(collection, &relative) } else { Vec::new() };
        self.place.change(place, Some((text.as_bytes(), staged)), &backups, &mut |present| {
            let digest = present.map(disk::digest);
            // Two runs may both count a number up from 1 to 2. So an identical file does not mean that this save is done,
            // unless it is repeated after a crash. (A migration yields the same file however often it runs.)
            let may_be_done = mode != SaveMode::First || matches_expected(expect, digest.as_deref());
            if may_be_done && digest.as_ref() == Some(&wanted) {
                return Ok(Change::Nothing);
            }
            if let (Some(bytes), Some(digest)) = (present, &digest) {
                self.refuse_newer(collection, bytes, digest, &relative)?;
            }
            if !matches_expected(expect, digest.as_deref()) {
                return Err(changed_failure(&relative, present));
            }
            let backup = present.filter(|_| mode == SaveMode::Migrated);
            Ok(Change::Write { backup: backup.map(|bytes| backup_of(&relative, collection, bytes)) })
        })?;
        self.remember_digest(&wanted);
        Ok(SavedDocument { digest: wanted, path: relative })
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
        let relative = self.locate(collection, key)?;
        self.place.clear(at(collection, &relative), &backups(collection, &relative))
    }
}

/// Returns the names of the backups of this migration and of earlier tries that were killed.
fn backups(collection: &Collection, relative: &str) -> Vec<String> {
    collection
        .version
        .iter()
        .flat_map(|version| &version.migrates)
        .map(|version| backup_name(relative, version))
        .collect()
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

/// Returns the name of the backup of the old file during a migration.
fn backup_of(relative: &str, collection: &Collection, bytes: &[u8]) -> String {
    let status = source::decode(bytes, "")
        .and_then(|text| source::parse(text, collection.format, ""))
        .and_then(|value| version::check_version(collection, &value, ""));
    match status {
        Ok(VersionCheck::Known(VersionStatus::Older(version))) => backup_name(relative, &version),
        _ => backup_name(relative, ""),
    }
}

/// Returns the name of the backup for a version. The version comes from a manifest, so only characters safe in a name are kept.
fn backup_name(relative: &str, version: &str) -> String {
    let version: String =
        version.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')).collect();
    let version = if version.is_empty() { "0" } else { &version };
    let name = relative.rsplit('/').next().unwrap_or_default();
    format!("{name}.v{version}.bak")
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
