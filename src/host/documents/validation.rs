//! What makes a document valid: its schema, its version, and the key in its path. What is loaded, saved and appended is
//! judged here alone.

use std::sync::Arc;

use serde_json::Value;

use super::Store;
use super::version::{self, VersionCheck};
use crate::error::{Code, Failure, Result};
use crate::model::collection::{Collection, DocumentKey, Format};
use crate::model::document::VersionStatus;
use crate::model::text::excerpt;
use crate::schema::report::{self, LocatedViolation, Severity};
use crate::schema::{FORMATS, Formats, Schema, Violation, notes, source};

impl Store {
    /// Returns all faults that would keep a value from being saved, key and folder aside.
    pub fn validate(&self, collection: &Collection, value: &Value) -> Result<Vec<Violation>> {
        Ok(self.schema_for_writing(collection)?.violations(value))
    }

    /// Tells whether a document is of a newer version that may be read all the same: nobody here knows what is valid.
    pub fn is_newer(&self, collection: &Collection, value: &Value) -> bool {
        matches!(version::check_version(collection, value, ""), Ok(VersionCheck::Known(VersionStatus::Newer(_))))
    }

    /// Returns what keeps a shaped value from being stored under this key.
    pub(super) fn violations_to_save(
        &self,
        collection: &Collection,
        key: &DocumentKey,
        value: &Value,
    ) -> Result<Vec<Violation>> {
        let mut faults = self.schema_for_writing(collection)?.violations(value);
        faults.extend(key_violations(collection, value, key));
        if let Some(version) = &collection.version
            && !matches!(
                version::check_version(collection, value, &collection.name),
                Ok(VersionCheck::Known(VersionStatus::Current))
            )
        {
            let message = format!("must be the current version {}", version.current);
            faults.push(Violation::new(version.field.as_str(), "version", message));
        }
        Ok(faults)
    }

    pub(super) fn schema_for_reading(&self, collection: &Collection) -> Result<Arc<Schema>> {
        let formats = match collection.schema.get(FORMATS).and_then(Value::as_str) {
            Some("on-save" | "never") => Formats::Annotations,
            _ => Formats::Asserted,
        };
        self.schemas.get(&collection.schema, formats)
    }

    pub(super) fn schema_for_writing(&self, collection: &Collection) -> Result<Arc<Schema>> {
        let formats = match collection.schema.get(FORMATS).and_then(Value::as_str) {
            Some("never") => Formats::Annotations,
            _ => Formats::Asserted,
        };
        self.schemas.get(&collection.schema, formats)
    }
}

/// Judges a value that was read from a text by the collection's compiled schema.
pub(super) fn validate_document(
    collection: &Collection,
    schema: &Schema,
    value: &Value,
    text: &str,
    file: &str,
    key: Option<&DocumentKey>,
) -> Result<VersionStatus> {
    let judged = version::check_version(collection, value, file)?;
    if let VersionCheck::Known(standing @ (VersionStatus::Older(_) | VersionStatus::Newer(_))) = judged {
        return Ok(standing);
    }
    let faults = document_violations(collection, schema, value, judged, key);
    let located = report::locate(faults, Severity::Error, text, collection.format, file);
    match located.is_empty() {
        true => Ok(VersionStatus::Current),
        false => Err(report::failure(file, &located)),
    }
}

/// Returns every fault and every note of one document or one row.
pub(super) fn check(
    collection: &Collection,
    schema: &Schema,
    text: &str,
    format: Format,
    file: &str,
    key: Option<&DocumentKey>,
) -> Vec<LocatedViolation> {
    let value = match source::read(text, format) {
        Ok(value) => value,
        Err((place, reason)) => return vec![LocatedViolation::unreadable(file, place, reason)],
    };
    let judged = match version::check_version(collection, &value, file) {
        Ok(VersionCheck::Known(VersionStatus::Older(_))) => return Vec::new(),
        Ok(VersionCheck::Known(VersionStatus::Newer(found))) => {
            let version = collection.version.as_ref();
            let current = version.map(|version| version.current.to_string()).unwrap_or_default();
            let message = format!(
                "{found} is newer than {current}: what is known of it is loaded, nothing of it is checked, and it is never \
                 saved over"
            );
            let note = Violation::new(version.map_or("", |version| version.field.as_str()), "version", message);
            return report::locate(vec![note], Severity::Note, text, format, file);
        }
        Ok(judged) => judged,
        Err(failure) => {
            let field = collection.version.as_ref().map_or("", |version| version.field.as_str());
            let hint = failure.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            let fault = Violation::new(field, "version", format!("{}{hint}", failure.message));
            return report::locate(vec![fault], Severity::Error, text, format, file);
        }
    };
    let faults = document_violations(collection, schema, &value, judged, key);
    // What the schema forbids is a fault already, and not kept.
    let mut notes = notes::notes(&value, &collection.schema);
    notes.retain(|note| faults.iter().all(|fault| fault.pointer != note.pointer));
    let mut found = report::locate(faults, Severity::Error, text, format, file);
    found.extend(report::locate(notes, Severity::Note, text, format, file));
    found.sort_by_key(|fault| (fault.line, fault.column, fault.severity));
    found
}

fn document_violations(
    collection: &Collection,
    schema: &Schema,
    value: &Value,
    judged: VersionCheck,
    key: Option<&DocumentKey>,
) -> Vec<Violation> {
    let mut faults = schema.violations(value);
    // Where the schema itself asks for the version, it has said so already.
    if let VersionCheck::Missing(fault) = judged
        && !faults.iter().any(|other| other.pointer == fault.pointer)
    {
        faults.push(fault);
    }
    if let Some(key) = key {
        faults.extend(key_violations(collection, value, key));
    }
    faults
}

/// Returns a fault for each part of the key that the document does not carry.
fn key_violations(collection: &Collection, value: &Value, key: &DocumentKey) -> Vec<Violation> {
    let carries = |found: &Value, wanted: &str| match found {
        Value::String(text) => text == wanted,
        Value::Number(number) => number.to_string() == wanted,
        _ => false,
    };
    let mut faults = Vec::new();
    for (hole, pointer) in &collection.keys {
        let Some(wanted) = key.get(hole) else { continue };
        match value.pointer(pointer) {
            Some(found) if carries(found, wanted) => {}
            Some(found) => {
                let found = excerpt(&found.to_string());
                let message = format!("must be \"{wanted}\", as the file's name says; found {found}");
                faults.push(Violation::new(pointer.as_str(), "key", message));
            }
            None => {
                let message = format!("is missing, and must be \"{wanted}\", as the file's name says");
                faults.push(Violation::new(pointer.as_str(), "key", message));
            }
        }
    }
    faults
}

/// Returns the failure of a value that is not saved.
pub(super) fn invalid(file: &str, faults: &[Violation]) -> Failure {
    let message = match faults {
        [fault] => format!("{file} was not saved, because it would not be valid: {fault}"),
        faults => format!("{file} was not saved, because it would have {} faults", faults.len()),
    };
    let mut failure = Failure::new(Code::DocumentInvalid, message);
    failure.details = faults.iter().map(|fault| format!("{file}: {fault}")).collect();
    failure
}
