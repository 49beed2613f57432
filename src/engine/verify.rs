//! What a journal says was written, held against what is there: documents by their digests, rows by their places.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::error::Result;
use crate::journal::entries;
use crate::journal::reader::Whole;

/// How many rows of one file are named that are not where they were.
const NAMED: usize = 10;

/// What a run wrote, as its journal says.
#[derive(Default)]
pub struct Written {
    /// By path below the workspace: the digest of the last save with its line, or the line of the deletion.
    documents: BTreeMap<String, (u64, Option<String>)>,
    /// By path, in the order in which they were appended.
    rows: BTreeMap<String, Vec<Row>>,
    /// Effects by key: what was asked for.
    asked: BTreeMap<String, (String, Value)>,
    pub whole: Whole,
}

/// A row that was appended.
struct Row {
    /// The line of the journal.
    line: u64,
    /// The offset in its file, in bytes.
    at: u64,
    row: Value,
}

/// How many documents and rows were looked at, and what does not agree.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub documents: usize,
    pub rows: usize,
    pub differences: Vec<String>,
}

impl Written {
    /// Reads a journal, and checks its chain on the way.
    pub fn read(path: &Path) -> Result<Written> {
        let mut written = Written::default();
        written.whole = entries::read(path, |entry| written.take(&entry))?;
        Ok(written)
    }

    fn take(&mut self, entry: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (line, key) = (entry["seq"].as_u64().unwrap_or_default(), text(&entry["key"]));
        if entry["type"] == "intent" && matches!(entry["kind"].as_str(), Some("save" | "append" | "delete")) {
            self.asked.insert(key, (text(&entry["kind"]), entry["request"].clone()));
            return;
        }
        let (Some((kind, request)), Some(ok)) = (self.asked.get(&key), entry.get("ok")) else { return };
        let path = text(&ok["path"]);
        match kind.as_str() {
            "save" => _ = self.documents.insert(path, (line, ok["digest"].as_str().map(str::to_owned))),
            "append" => {
                let row = Row { line, at: ok["at"].as_u64().unwrap_or_default(), row: request["row"].clone() };
                self.rows.entry(path).or_default().push(row);
            }
            // The outcome does not say the path: it is that of the document with the same name.
            _ => {
                let same = |(kind, saved): &&(String, Value)| {
                    kind == "save" && saved["collection"] == request["collection"] && saved["key"] == request["key"]
                };
                if self.asked.values().any(|asked| same(&asked)) {
                    let gone = self.named(request);
                    gone.into_iter().for_each(|path| _ = self.documents.insert(path, (line, None)));
                }
            }
        }
    }

    /// Returns the path of the document that a request names, if this run saved it.
    fn named(&self, request: &Value) -> Option<String> {
        let holes = request["key"].as_object()?;
        let has = |path: &String| holes.values().filter_map(Value::as_str).all(|hole| path.contains(hole));
        let mut found = self.documents.keys().filter(|path| has(path));
        found.next().filter(|_| found.next().is_none()).cloned()
    }

    /// Compares with what is there; `read` returns the bytes of a file, or nothing where there is none.
    pub fn compared(&self, mut read: impl FnMut(&str) -> Result<Option<Vec<u8>>>) -> Result<Verdict> {
        let mut verdict = Verdict { documents: self.documents.len(), ..Verdict::default() };
        for (path, (line, digest)) in &self.documents {
            let found = read(path)?.map(|bytes| blake3::hash(&bytes).to_hex().to_string());
            match (digest, found) {
                (Some(digest), Some(found)) if *digest == found => {}
                (None, None) => {}
                (Some(_), Some(_)) => verdict.differs(path, &format!("is not as line {line} saved it")),
                (Some(_), None) => verdict.differs(path, &format!("is gone; line {line} saved it")),
                (None, Some(_)) => verdict.differs(path, &format!("is there; line {line} deleted it")),
            }
        }
        for (path, rows) in &self.rows {
            verdict.rows += rows.len();
            match read(path)? {
                Some(bytes) => verdict.hold(path, rows, &bytes),
                None => verdict.differs(path, &format!("is gone, with {} rows of this run", rows.len())),
            }
        }
        Ok(verdict)
    }
}

impl Verdict {
    fn differs(&mut self, path: &str, what: &str) {
        self.differences.push(format!("{path}: {what}"));
    }

    /// Holds the rows of a file against those that were appended to it. Others may have written between them.
    fn hold(&mut self, path: &str, rows: &[Row], bytes: &[u8]) {
        let mut there: Vec<Found> = Vec::new();
        let mut at = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            there.push(Found { at, row: serde_json::from_slice(line).unwrap_or_default(), used: false });
            at += line.len() as u64;
        }
        let mut told = Vec::new();
        let mut displaced = Vec::new();
        for row in rows {
            match there.iter_mut().find(|found| found.at == row.at && !found.used && same(&found.row, &row.row)) {
                Some(found) => found.used = true,
                None => displaced.push(row),
            }
        }
        // Those that stand elsewhere first: what is left in a row's place then is that row, changed.
        displaced.retain(|row| {
            let elsewhere = there.iter().position(|found| !found.used && same(&found.row, &row.row));
            if let Some(index) = elsewhere {
                there[index].used = true;
                told.push(format!("line {} was written elsewhere (line {} of the journal)", index + 1, row.line));
            }
            elsewhere.is_none()
        });
        for row in displaced {
            let place = there.iter().position(|found| found.at == row.at && !found.used);
            told.push(match place {
                Some(index) => {
                    there[index].used = true;
                    format!("line {} was changed (line {} of the journal)", index + 1, row.line)
                }
                None => format!("a row is missing (line {} of the journal)", row.line),
            });
        }
        for (index, found) in there.iter().enumerate().filter(|(_, found)| !found.used) {
            if rows.iter().any(|row| same(&found.row, &row.row)) {
                told.push(format!("line {} stands there twice", index + 1));
            }
        }
        let more = told.len().saturating_sub(NAMED);
        told.truncate(NAMED);
        told.iter().for_each(|what| self.differs(path, what));
        if more > 0 {
            self.differs(path, &format!("and {more} more"));
        }
    }
}

/// A row that is there.
struct Found {
    at: u64,
    row: Value,
    used: bool,
}

/// Tells whether a row is the one that was asked for: it was brought into the form of its schema before it was written.
fn same(there: &Value, asked: &Value) -> bool {
    match (there, asked) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| same(one, other)))
        }
        (Value::Array(empty), Value::Object(members)) | (Value::Object(members), Value::Array(empty)) => {
            empty.is_empty() && members.is_empty()
        }
        (one, other) => one == other,
    }
}
