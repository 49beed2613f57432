//! Rows: files of JSON lines that only grow, and whose complete rows survive a crash.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::place::NewRow;
use super::tail::RowsTail;
use super::version::{self, VersionCheck};
use super::{Store, at, validation};
use crate::error::{Code, Failure, Result};
use crate::model::collection::{Collection, DocumentKey, Format};
use crate::model::document::VersionStatus;
use crate::schema::report::{self, LocatedViolation};
use crate::schema::source::MAX_BYTES;
use crate::schema::{Schema, Violation, shape, source, text};

/// A row that was appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Appended {
    /// The byte at which the row starts.
    pub at: u64,
    pub path: String,
    /// The start of a torn last line, left by a killed process, that the append cut off first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torn: Option<String>,
}

impl Store {
    /// Appends a row, if it is valid. The row is on the disk when this returns.
    ///
    /// With `at_before`, this is the second try of an append that may have happened: if the same row is found
    /// at or after that byte, nothing is written.
    ///
    /// # Errors
    ///
    /// `document-invalid` with every violation, `document-busy` if another process holds the lock, `document-changed` if
    /// the file ends before `at_before`, `disk-failed` if the file would become too large.
    pub fn append(
        &self,
        collection: &Collection,
        key: &DocumentKey,
        row: &Value,
        at_before: Option<u64>,
    ) -> Result<Appended> {
        let relative = self.locate_rows(collection, key)?;
        let line = self.line(collection, key, row, &relative)?;
        let NewRow { at, torn } = self.place.append(at(collection, &relative), &line, at_before, MAX_BYTES)?;
        Ok(Appended { at, path: relative, torn })
    }

    /// Returns this row as it was appended at or after a byte, for a run that was killed while appending; `None` if it was not.
    ///
    /// # Errors
    ///
    /// `document-invalid` if the row is not valid, `disk-failed` if the file cannot be read.
    pub fn append_settled(
        &self,
        collection: &Collection,
        key: &DocumentKey,
        row: &Value,
        at: u64,
    ) -> Result<Option<Appended>> {
        let relative = self.locate_rows(collection, key)?;
        let line = self.line(collection, key, row, &relative)?;
        let found = self.place.find(super::at(collection, &relative), &line, at)?;
        Ok(found.map(|at| Appended { at, path: relative, torn: None }))
    }

    /// Returns the byte at which the next row will start, to be recorded before the append.
    ///
    /// # Errors
    ///
    /// `request-invalid` if the collection holds documents, `disk-failed` if the file cannot be read.
    pub fn rows_end(&self, collection: &Collection, key: &DocumentKey) -> Result<u64> {
        let relative = self.locate_rows(collection, key)?;
        self.place.rows_end(at(collection, &relative))
    }

    /// Returns all rows; none if there is no file. A torn last line is ignored.
    ///
    /// # Errors
    ///
    /// `request-invalid` if the collection holds documents, `document-invalid` with the violations of all rows.
    pub fn rows(&self, collection: &Collection, key: &DocumentKey) -> Result<Vec<Value>> {
        let relative = self.locate_rows(collection, key)?;
        let bytes = self.place.read(at(collection, &relative))?.unwrap_or_default();
        let complete = &bytes[..complete_length(&bytes)];
        self.parse_rows(collection, source::decode(complete, &relative)?, &relative)
    }

    /// Parses the rows of a text; fails with the violations of all of them.
    pub(super) fn parse_rows(&self, collection: &Collection, text: &str, file: &str) -> Result<Vec<Value>> {
        let schema = self.schema_for_reading(collection)?;
        let complete = &text[..complete_length(text.as_bytes())];
        let mut rows = Vec::new();
        let mut is_sound = true;
        for line in complete.lines() {
            match source::read(line, Format::Jsonl) {
                Ok(row) if is_sound && is_readable(collection, &schema, &row) => rows.push(row),
                _ => is_sound = false,
            }
        }
        if is_sound {
            return Ok(rows);
        }
        let violations: Vec<LocatedViolation> = check(collection, &schema, complete, file)
            .into_iter()
            .filter(|found| found.severity == report::Severity::Error)
            .collect();
        Err(report::failure(file, &violations))
    }

    fn locate_rows(&self, collection: &Collection, key: &DocumentKey) -> Result<String> {
        if collection.format != Format::Jsonl {
            let message = format!("the collection {} holds documents, not rows", collection.name);
            return Err(Failure::new(Code::RequestInvalid, message));
        }
        self.locate(collection, key)
    }

    /// Returns the line of a row. The same row always has the same line, so that `tail::find` can find it.
    fn line(&self, collection: &Collection, key: &DocumentKey, row: &Value, file: &str) -> Result<String> {
        let mut row = row.clone();
        shape::shape(&mut row, &collection.schema);
        let mut violations = self.violations_to_save(collection, Some(key), &row)?;
        if !row.is_object() && violations.is_empty() {
            violations.push(Violation::new("", "type", "must be an object"));
        }
        match violations.is_empty() {
            true => Ok(text::to_text(&row, Format::Jsonl)),
            false => Err(validation::invalid(file, &violations)),
        }
    }
}

/// Returns the violations and notes of every row, with their lines in the file.
pub(super) fn check(collection: &Collection, schema: &Schema, text: &str, file: &str) -> Vec<LocatedViolation> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for mut located in validation::check(collection, schema, line, Format::Jsonl, file, None) {
            located.line = index + 1;
            found.push(located);
        }
    }
    found
}

fn is_readable(collection: &Collection, schema: &Schema, row: &Value) -> bool {
    match version::check_version(collection, row, "") {
        Ok(VersionCheck::Known(VersionStatus::Current)) => schema.is_valid(row),
        Ok(VersionCheck::Known(VersionStatus::Older(_) | VersionStatus::Newer(_))) => true,
        Ok(VersionCheck::Missing(_)) | Err(_) => false,
    }
}

/// Returns how many of the bytes are complete rows.
fn complete_length(bytes: &[u8]) -> usize {
    usize::try_from(RowsTail::of(bytes, 0).complete_length).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::super::testing::{collection, rows, slug, store};
    use super::*;

    #[test]
    fn rows_are_appended_and_read_back() {
        let (folder, store) = store();
        let (rows, key) = (rows(), slug("a"));
        assert_eq!(store.rows(&rows, &key).unwrap(), Vec::<Value>::new());
        let first = store.append(&rows, &key, &json!({"tags": {}, "score": 3.0, "slug": "x"}), None).unwrap();
        assert_eq!(first, Appended { at: 0, path: "rows/a.jsonl".to_owned(), torn: None });
        let second = store.append(&rows, &key, &json!({"slug": "y\nz"}), None).unwrap();
        let text = fs::read_to_string(folder.path().join("rows/a.jsonl")).unwrap();
        assert_eq!(text, "{\"slug\":\"x\",\"score\":3,\"tags\":[]}\n{\"slug\":\"y\\nz\"}\n");
        assert_eq!(&text[usize::try_from(second.at).unwrap()..], "{\"slug\":\"y\\nz\"}\n");
        assert_eq!(store.rows(&rows, &key).unwrap()[1], json!({"slug": "y\nz"}));
        assert_eq!(store.load(&rows, &key).unwrap().unwrap().value.as_array().unwrap().len(), 2);
        assert_eq!(fs::read_dir(folder.path().join("rows")).unwrap().count(), 1);
    }

    #[test]
    fn an_invalid_row_is_not_written() {
        let (folder, store) = store();
        let failure = store.append(&rows(), &slug("a"), &json!({"score": 200}), None).unwrap_err();
        assert!(failure.code == Code::DocumentInvalid && failure.details.len() == 2, "{failure:?}");
        assert!(!folder.path().join("rows").exists());
        let refused = store.append(&collection("a.yaml"), &DocumentKey::new(), &json!({}), None);
        assert_eq!(refused.unwrap_err().code, Code::RequestInvalid);
    }

    #[test]
    fn a_torn_row_is_cut_off_and_reported_and_a_whole_one_kept() {
        let (folder, store) = store();
        fs::create_dir(folder.path().join("rows")).unwrap();
        let path = folder.path().join("rows/a.jsonl");
        for (left, kept, torn) in [
            ("{\"slug\":\"a\"}\n{\"slug\":\"b", 1, Some("{\"slug\":\"b")),
            ("{\"slug\":\"a\"}\n{\"slug\":\"b\"}", 2, None),
            ("{\"sl", 0, Some("{\"sl")),
            ("{\"slug\":\"longer than the next", 0, Some("{\"slug\":\"longer than the next")),
        ] {
            fs::write(&path, left).unwrap();
            assert_eq!(store.rows(&rows(), &slug("a")).unwrap().len(), kept);
            let end = store.rows_end(&rows(), &slug("a")).unwrap();
            let appended = store.append(&rows(), &slug("a"), &json!({"slug": "c"}), None).unwrap();
            assert_eq!((appended.at, appended.torn.as_deref()), (end, torn));
            assert_eq!(store.rows(&rows(), &slug("a")).unwrap().len(), kept + 1);
            assert!(
                fs::read_to_string(&path).unwrap().ends_with("{\"slug\":\"c\"}\n"),
                "nothing of {left} is behind it"
            );
        }
    }

    #[test]
    fn a_repeated_append_is_settled_wherever_the_first_was_killed() {
        let (folder, store) = store();
        let (rows, key, row) = (rows(), slug("a"), json!({"slug": "x"}));
        let path = folder.path().join("rows/a.jsonl");
        store.append(&rows, &key, &row, None).unwrap();
        let at = store.rows_end(&rows, &key).unwrap();
        let before = fs::read(&path).unwrap();
        let line = b"{\"slug\":\"x\"}\n";
        for written in 0..=line.len() {
            fs::write(&path, [&before, &line[..written]].concat()).unwrap();
            let settled = written >= line.len() - 1;
            let found = store.append_settled(&rows, &key, &row, at).unwrap();
            assert_eq!(found.map(|found| found.at), settled.then_some(at), "{written}");
            assert_eq!(store.append(&rows, &key, &row, Some(at)).unwrap().at, at);
            assert_eq!(store.rows(&rows, &key).unwrap().len(), 2, "{written}");
        }
        fs::write(&path, "").unwrap();
        assert_eq!(store.append(&rows, &key, &row, Some(at)).unwrap_err().code, Code::DocumentChanged);
    }

    #[test]
    fn all_faults_of_all_rows_have_their_lines() {
        let (folder, store) = store();
        fs::create_dir(folder.path().join("rows")).unwrap();
        let text =
            "{\"slug\":\"a\"}\r\n{\"slug\":1}\n\n{\"slug\":\"a\",\"slug\":\"b\"}\n{\"slug\":\"a\",\"score\":101}\n";
        fs::write(folder.path().join("rows/a.jsonl"), text).unwrap();
        let failure = store.rows(&rows(), &slug("a")).unwrap_err();
        assert_eq!(
            failure.details,
            [
                "rows/a.jsonl:2:9: /slug: must be text; found 1, which is a number; put it in quotes",
                "rows/a.jsonl:3:1: the line is empty",
                "rows/a.jsonl:4:13: the key \"slug\" is given twice",
                "rows/a.jsonl:5:21: /score: must be an integer from 0 to 100; found 101",
            ]
        );
    }
}
