//! Validates documents by their schema, their version, and the key in their path. Loading, saving and appending all
//! validate here.

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
    /// Returns all violations of the schema that would keep a value from being saved. Key and version are not checked.
    ///
    /// # Errors
    ///
    /// Only if the collection's own schema is wrong.
    pub fn validate(&self, collection: &Collection, value: &Value) -> Result<Vec<Violation>> {
        Ok(self.schema_for_writing(collection)?.violations(value))
    }

    /// Returns whether a document is of today's version.
    pub fn is_current(&self, collection: &Collection, value: &Value) -> bool {
        let check = version::check_version(collection, value, &collection.name);
        matches!(check, Ok(VersionCheck::Known(VersionStatus::Current)))
    }

    /// Returns whether a document is of a newer version that the flow may read; such a document cannot be validated.
    pub fn is_newer(&self, collection: &Collection, value: &Value) -> bool {
        matches!(version::check_version(collection, value, ""), Ok(VersionCheck::Known(VersionStatus::Newer(_))))
    }

    /// Returns the violations that keep a shaped value from being stored under this key, or under any.
    pub(super) fn violations_to_save(
        &self,
        collection: &Collection,
        key: Option<&DocumentKey>,
        value: &Value,
    ) -> Result<Vec<Violation>> {
        let mut violations = self.schema_for_writing(collection)?.violations(value);
        violations.extend(key.into_iter().flat_map(|key| key_violations(collection, value, key)));
        if let Some(version) = &collection.version
            && !violations.iter().any(|violation| violation.pointer == version.field)
            && !self.is_current(collection, value)
        {
            let message = format!("must be the current version {}", version.current);
            violations.push(Violation::new(version.field.as_str(), "version", message));
        }
        Ok(violations)
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

/// Validates a value that was read from a text against the collection's compiled schema.
pub(super) fn validate_document(
    collection: &Collection,
    schema: &Schema,
    value: &Value,
    text: &str,
    file: &str,
    key: Option<&DocumentKey>,
) -> Result<VersionStatus> {
    let version_check = version::check_version(collection, value, file)?;
    if let VersionCheck::Known(status @ (VersionStatus::Older(_) | VersionStatus::Newer(_))) = version_check {
        return Ok(status);
    }
    let violations = document_violations(collection, schema, value, version_check, key);
    let located = report::locate(violations, Severity::Error, text, collection.format, file);
    match located.is_empty() {
        true => Ok(VersionStatus::Current),
        false => Err(report::failure(file, &located)),
    }
}

/// Returns every violation and every note of one document or one row.
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
    let version_check = match version::check_version(collection, &value, file) {
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
        Ok(version_check) => version_check,
        Err(failure) => {
            let field = collection.version.as_ref().map_or("", |version| version.field.as_str());
            let hint = failure.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            let violation = Violation::new(field, "version", format!("{}{hint}", failure.message));
            return report::locate(vec![violation], Severity::Error, text, format, file);
        }
    };
    let violations = document_violations(collection, schema, &value, version_check, key);
    // A note at the place of a violation would only repeat it.
    let mut notes = notes::notes(&value, &collection.schema);
    notes.retain(|note| violations.iter().all(|violation| violation.pointer != note.pointer));
    let mut found = report::locate(violations, Severity::Error, text, format, file);
    found.extend(report::locate(notes, Severity::Note, text, format, file));
    found.sort_by_key(|violation| (violation.line, violation.column, violation.severity));
    found
}

fn document_violations(
    collection: &Collection,
    schema: &Schema,
    value: &Value,
    version_check: VersionCheck,
    key: Option<&DocumentKey>,
) -> Vec<Violation> {
    let mut violations = schema.violations(value);
    // If the schema itself requires the version, it has reported the missing version already.
    if let VersionCheck::Missing(violation) = version_check
        && !violations.iter().any(|other| other.pointer == violation.pointer)
    {
        violations.push(violation);
    }
    if let Some(key) = key {
        violations.extend(key_violations(collection, value, key));
    }
    violations
}

/// Returns a violation for each part of the key that the document does not carry.
fn key_violations(collection: &Collection, value: &Value, key: &DocumentKey) -> Vec<Violation> {
    let carries = |found: &Value, wanted: &str| match found {
        Value::String(text) => text == wanted,
        Value::Number(number) => number.to_string() == wanted,
        _ => false,
    };
    let mut violations = Vec::new();
    for (placeholder, pointer) in &collection.keys {
        let Some(wanted) = key.get(placeholder) else { continue };
        match value.pointer(pointer) {
            Some(found) if carries(found, wanted) => {}
            Some(found) => {
                let found = excerpt(&found.to_string());
                let message = format!("must be \"{wanted}\", as the file's name says; found {found}");
                violations.push(Violation::new(pointer.as_str(), "key", message));
            }
            None => {
                let message = format!("is missing, and must be \"{wanted}\", as the file's name says");
                violations.push(Violation::new(pointer.as_str(), "key", message));
            }
        }
    }
    violations
}

/// Returns the failure for a value that was not saved because of violations.
pub(super) fn invalid(file: &str, violations: &[Violation]) -> Failure {
    let message = match violations {
        [violation] => format!("{file} was not saved, because it would not be valid: {violation}"),
        violations => format!("{file} was not saved, because it would have {} faults", violations.len()),
    };
    let mut failure = Failure::new(Code::DocumentInvalid, message);
    failure.details = violations.iter().map(|violation| format!("{file}: {violation}")).collect();
    failure
}
