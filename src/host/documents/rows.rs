//! Rows: files of JSON lines that only ever grow, and that a crash cannot tear.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lock::Lock;
use super::version::{self, Judged};
use super::{Store, disk, read, save};
use crate::error::{Code, Failure, Result};
use crate::model::collection::{Collection, Format, Key};
use crate::model::document::Standing;
use crate::model::text::excerpt;
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
        let present = disk::read(&path)?.unwrap_or_default();
        if let Some(at) = at {
            if let Some(start) = find(&present, &line, at) {
                return Ok(Appended { at: start, path: relative, torn: None });
            }
            if at > length(&present) {
                let message =
                    format!("{relative} is shorter than it was: it held {at} bytes, and now {}", present.len());
                return Err(
                    Failure::new(Code::DocumentChanged, message).hint("somebody else cut rows off; look at the file")
                );
            }
        }
        let tail = Tail::of(&present);
        let (keep, torn, mut bytes) = match tail {
            Tail::Whole => (present.len(), None, Vec::new()),
            // A last row that only lacks its line end is complete, whoever wrote it.
            Tail::Unended => (present.len(), None, vec![b'\n']),
            Tail::Torn(start) => (start, Some(excerpt(&String::from_utf8_lossy(&present[start..]))), Vec::new()),
        };
        let start = keep + bytes.len();
        bytes.extend_from_slice(line.as_bytes());
        if length(&present) + length(&bytes) > MAX_BYTES {
            let message = format!("{relative} would become larger than {} MB", MAX_BYTES / 1024 / 1024);
            return Err(Failure::new(Code::DiskFailed, message).hint("start a new file of rows"));
        }
        extend(&path, keep, &bytes, present.is_empty()).map_err(|error| Failure::io(&path, "append to", &error))?;
        Ok(Appended { at: u64::try_from(start).unwrap_or(u64::MAX), path: relative, torn })
    }

    /// Tells whether this row was written at or after a byte, for a run that was killed while appending.
    pub fn append_settled(&self, collection: &Collection, key: &Key, row: &Value, at: u64) -> Result<bool> {
        let (path, relative) = self.locate_rows(collection, key)?;
        let line = self.line(collection, key, row, &relative)?;
        let present = disk::read(&path)?.unwrap_or_default();
        Ok(find(&present, &line, at).is_some())
    }

    /// Returns the byte at which the next row will start, to be noted before it is appended.
    pub fn rows_end(&self, collection: &Collection, key: &Key) -> Result<u64> {
        let (path, _) = self.locate_rows(collection, key)?;
        let present = disk::read(&path)?.unwrap_or_default();
        Ok(match Tail::of(&present) {
            Tail::Whole => length(&present),
            Tail::Unended => length(&present) + 1,
            Tail::Torn(start) => u64::try_from(start).unwrap_or(u64::MAX),
        })
    }

    /// Returns all rows; none if there is no file. A torn last line does not count.
    pub fn rows(&self, collection: &Collection, key: &Key) -> Result<Vec<Value>> {
        let (path, relative) = self.locate_rows(collection, key)?;
        let bytes = disk::read(&path)?.unwrap_or_default();
        let whole = match Tail::of(&bytes) {
            Tail::Torn(start) => &bytes[..start],
            Tail::Whole | Tail::Unended => &bytes,
        };
        self.parse_rows(collection, source::decode(whole, &relative)?, &relative)
    }

    /// Reads the rows of a text, or fails with the faults of all of them.
    pub(super) fn parse_rows(&self, collection: &Collection, text: &str, file: &str) -> Result<Vec<Value>> {
        let schema = self.schema_for_reading(collection)?;
        let whole = match Tail::of(text.as_bytes()) {
            Tail::Torn(start) => &text[..start],
            Tail::Whole | Tail::Unended => text,
        };
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

/// How a file of rows ends.
enum Tail {
    Whole,
    /// With a whole row that lacks its line end.
    Unended,
    /// With a piece of a row, which starts at this byte.
    Torn(usize),
}

impl Tail {
    fn of(bytes: &[u8]) -> Tail {
        let start = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
        let last = &bytes[start..];
        let is_row = || {
            std::str::from_utf8(last)
                .is_ok_and(|line| source::read(line, Format::Jsonl).is_ok_and(|row| row.is_object()))
        };
        match last {
            [] => Tail::Whole,
            _ if is_row() => Tail::Unended,
            _ => Tail::Torn(start),
        }
    }
}

/// Returns where a line stands at or after a byte. The line end of the last one may be missing.
fn find(bytes: &[u8], line: &str, at: u64) -> Option<u64> {
    let row = line.trim_end().as_bytes();
    let mut start = 0;
    for found in bytes.split(|byte| *byte == b'\n') {
        if start >= at && found.strip_suffix(b"\r").unwrap_or(found) == row {
            return Some(start);
        }
        start += length(found) + 1;
    }
    None
}

/// Cuts a file to what is kept of it, and appends with one write.
fn extend(path: &Path, keep: usize, bytes: &[u8], is_new: bool) -> std::io::Result<()> {
    let mut file = File::options().create(true).truncate(false).write(true).open(path)?;
    let keep = u64::try_from(keep).unwrap_or(u64::MAX);
    file.set_len(keep)?;
    file.seek(SeekFrom::Start(keep))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_data());
    if written.is_err() {
        // Half a row is worse than none; if even this fails, the next append cuts it off.
        let _ = file.set_len(keep);
    }
    written?;
    match is_new {
        true => disk::sync_folder(disk::folder(path)).map_err(std::io::Error::other),
        false => Ok(()),
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
