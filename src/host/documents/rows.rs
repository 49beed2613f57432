//! Rows: files of JSON lines that only ever grow, and that a crash cannot tear.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lock::Lock;
use super::tail::Tail;
use super::version::{self, Judged};
use super::{Store, disk, read, save, tail};
use crate::error::{Code, Failure, Result};
use crate::model::collection::{Collection, Format, Key};
use crate::model::document::Standing;
use crate::schema::report::{self, Located};
use crate::schema::source::MAX_BYTES;
use crate::schema::{Fault, Schema, shape, source, text};

/// A row that was appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Appended {
    /// The byte at which the row starts.
    pub at: u64,
    pub path: String,
    /// The start of a torn last line that was cut off before, left by a process that was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torn: Option<String>,
}

impl Store {
    /// Appends a row, if it is valid; it is on the disk when this returns.
    ///
    /// With `at`, this is the second try of an append that may have happened: if the same row stands
    /// at or after that byte, nothing is written.
    pub fn append(&self, collection: &Collection, key: &Key, row: &Value, at: Option<u64>) -> Result<Appended> {
        let (path, relative) = self.locate_rows(collection, key)?;
        let line = self.line(collection, key, row, &relative)?;
        disk::make_folders(&path)?;
        let _lock = Lock::take(&path, self.patience)?;
        let failed = |error| Failure::io(&path, "append to", &error);
        let tail = Tail::of_file(&path).map_err(failed)?;
        if let Some(at) = at {
            if let Some(at) = tail::find(&path, &line, at).map_err(failed)? {
                return Ok(Appended { at, path: relative, torn: None });
            }
            if at > tail.length + 1 {
                let message = format!("{relative} is shorter than it was: it held {at} bytes, now {}", tail.length);
                let hint = "somebody else cut rows off; look at the file";
                return Err(Failure::new(Code::DocumentChanged, message).hint(hint));
            }
        }
        if tail.length + line.len() as u64 > MAX_BYTES {
            let message = format!("{relative} would become larger than {} MB", MAX_BYTES / 1024 / 1024);
            return Err(Failure::new(Code::DiskFailed, message).hint("start a new file of rows"));
        }
        tail.extend(&path, &line).map_err(failed)?;
        if tail.length == 0 {
            disk::sync_folder(disk::folder(&path))?;
        }
        Ok(Appended { at: tail.next(), path: relative, torn: tail.torn })
    }

    /// Tells whether this row was written at or after a byte, for a run that was killed while appending.
    pub fn append_settled(&self, collection: &Collection, key: &Key, row: &Value, at: u64) -> Result<bool> {
        let (path, relative) = self.locate_rows(collection, key)?;
        let line = self.line(collection, key, row, &relative)?;
        let found = tail::find(&path, &line, at).map_err(|error| Failure::io(&path, "read", &error))?;
        Ok(found.is_some())
    }

    /// Returns the byte at which the next row will start, to be noted before it is appended.
    pub fn rows_end(&self, collection: &Collection, key: &Key) -> Result<u64> {
        let (path, _) = self.locate_rows(collection, key)?;
        Ok(Tail::of_file(&path).map_err(|error| Failure::io(&path, "read", &error))?.next())
    }

    /// Returns all rows; none if there is no file. A torn last line does not count.
    pub fn rows(&self, collection: &Collection, key: &Key) -> Result<Vec<Value>> {
        let (path, relative) = self.locate_rows(collection, key)?;
        let bytes = disk::read(&path)?.unwrap_or_default();
        let whole = &bytes[..whole(&bytes)];
        self.parse_rows(collection, source::decode(whole, &relative)?, &relative)
    }

    /// Reads the rows of a text, or fails with the faults of all of them.
    pub(super) fn parse_rows(&self, collection: &Collection, text: &str, file: &str) -> Result<Vec<Value>> {
        let schema = self.schema_for_reading(collection)?;
        let whole = &text[..whole(text.as_bytes())];
        let mut rows = Vec::new();
        let mut is_sound = true;
        for line in whole.lines() {
            match source::read(line, Format::Jsonl) {
                Ok(row) if is_sound && is_readable(collection, &schema, &row) => rows.push(row),
                _ => is_sound = false,
            }
        }
        if is_sound {
            return Ok(rows);
        }
        let faults: Vec<Located> = check(collection, &schema, whole, file)
            .into_iter()
            .filter(|found| found.severity == report::Severity::Error)
            .collect();
        Err(report::failure(file, &faults))
    }

    fn locate_rows(&self, collection: &Collection, key: &Key) -> Result<(std::path::PathBuf, String)> {
        if collection.format != Format::Jsonl {
            let message = format!("the collection {} holds documents, not rows", collection.name);
            return Err(Failure::new(Code::RequestInvalid, message));
        }
        self.locate(collection, key)
    }

    /// Returns the line of a row, which is the same for the same row each time.
    fn line(&self, collection: &Collection, key: &Key, row: &Value, file: &str) -> Result<String> {
        let mut row = row.clone();
        shape::shape(&mut row, &collection.schema);
        let mut faults = self.schema_for_writing(collection)?.faults(&row);
        if !row.is_object() && faults.is_empty() {
            faults.push(Fault::new("", "type", "must be an object"));
        }
        faults.extend(read::key_faults(collection, &row, key));
        match faults.is_empty() {
            true => Ok(text::to_text(&row, Format::Jsonl)),
            false => Err(save::invalid(file, &faults)),
        }
    }
}

/// Returns the faults and notes of every row, with the lines of the file.
pub(super) fn check(collection: &Collection, schema: &Schema, text: &str, file: &str) -> Vec<Located> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for mut located in read::check_one(collection, schema, line, Format::Jsonl, file, None) {
            located.line = index + 1;
            found.push(located);
        }
    }
    found
}

fn is_readable(collection: &Collection, schema: &Schema, row: &Value) -> bool {
    match version::judge(collection, row, "") {
        Ok(Judged::Known(Standing::Current)) => schema.is_valid(row),
        Ok(Judged::Known(Standing::Older(_) | Standing::Newer(_))) => true,
        Ok(Judged::Missing(_)) | Err(_) => false,
    }
}

/// Returns how many bytes are whole rows.
fn whole(bytes: &[u8]) -> usize {
    usize::try_from(Tail::of(bytes, 0).keep).unwrap_or(bytes.len())
}
