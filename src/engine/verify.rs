//! Compares what a journal says was written with the files on disk: documents by their digests, rows by their offsets.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::Path;

use serde_json::Value;

use crate::error::Result;
use crate::journal::entries;
use crate::journal::reader::IntactPrefix;
use crate::model::digest::Digest;

/// How many differing rows of one file are named.
const NAMED: usize = 10;

/// What a run wrote, according to its journal.
#[derive(Default)]
pub(crate) struct RunWrites {
    /// By path below the workspace: the last save or deletion.
    documents: BTreeMap<String, LastWrite>,
    /// By path, in the order in which they were appended.
    rows: BTreeMap<String, Vec<AppendedRow>>,
    /// Kind and request of each writing effect, by key.
    asked: HashMap<String, (String, Value)>,
    /// The path of each saved document, by the digest of its collection and key.
    paths: HashMap<Digest, String>,
    pub whole: IntactPrefix,
}

/// The last thing that the run did with a document.
struct LastWrite {
    /// The line of the journal.
    line: u64,
    /// The digest of what was saved; `None` if it was deleted.
    digest: Option<String>,
    /// The key of the effect.
    key: String,
}

/// A row that the run appended.
struct AppendedRow {
    /// The line of the journal.
    line: u64,
    /// The offset in the file, in bytes; journals of before say none for a row that was found again after a kill.
    at: Option<u64>,
    row: Digest,
}

/// How many documents and rows were compared, and how they differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub documents: usize,
    pub rows: usize,
    pub differences: Vec<String>,
    /// The documents that are otherwise only because a migration has brought them up to date.
    pub brought_up: Vec<String>,
}

impl RunWrites {
    /// Reads what a run wrote from its journal, whose digest chain is checked on the way.
    ///
    /// # Errors
    ///
    /// As [`entries::read`].
    pub(crate) fn read(path: &Path) -> Result<RunWrites> {
        let mut writes = RunWrites::default();
        writes.whole = entries::read(path, |entry| writes.take(&entry))?;
        Ok(writes)
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
            "save" => {
                self.paths.insert(name(request), path.clone());
                self.documents.insert(path, LastWrite { line, digest: ok["digest"].as_str().map(str::to_owned), key });
            }
            "append" => {
                let row = AppendedRow { line, at: ok["at"].as_u64(), row: form(&request["row"]) };
                self.rows.entry(path).or_default().push(row);
            }
            // The outcome of a deletion has no path: it is that of the document with the same name.
            _ => {
                if let Some(path) = self.paths.get(&name(request)) {
                    self.documents.insert(path.clone(), LastWrite { line, digest: None, key });
                }
            }
        }
    }

    /// Compares with the files on disk; `read` returns the bytes of a file, or `None` if there is no such file, and
    /// `is_migrated` tells whether a file is what a migration makes of what a request saved. Rows in a folder of the run's own
    /// name (`run`) are the run's alone: any other row there is a difference.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub(crate) fn compare_with(
        &self,
        run: &str,
        mut read: impl FnMut(&str) -> Result<Option<Vec<u8>>>,
        mut is_migrated: impl FnMut(&Value, &[u8]) -> bool,
    ) -> Result<Verdict> {
        let mut verdict = Verdict { documents: self.documents.len(), ..Verdict::default() };
        for (path, LastWrite { line, digest, key }) in &self.documents {
            let found = read(path)?;
            let actual = found.as_ref().map(|bytes| blake3::hash(bytes).to_hex().to_string());
            let mut is_brought_up = || {
                let saved = self.asked.get(key).map(|(_, request)| request);
                saved.zip(found.as_ref()).is_some_and(|(request, bytes)| is_migrated(request, bytes))
            };
            match (digest, actual) {
                (Some(digest), Some(actual)) if *digest == actual => {}
                (None, None) => {}
                (Some(_), Some(_)) if is_brought_up() => verdict.brought_up.push(path.clone()),
                (Some(_), Some(_)) => verdict.differs(path, &format!("is not as line {line} saved it")),
                (Some(_), None) => verdict.differs(path, &format!("is gone; line {line} saved it")),
                (None, Some(_)) => verdict.differs(path, &format!("is there; line {line} deleted it")),
            }
        }
        for (path, rows) in &self.rows {
            verdict.rows += rows.len();
            match read(path)? {
                Some(bytes) => verdict.check_rows(path, rows, &bytes, is_of_run(path, run)),
                None => verdict.differs(path, &format!("is gone, with {} rows of this run", rows.len())),
            }
        }
        Ok(verdict)
    }
}

impl Verdict {
    /// Adds the files that stand beside rows of the run, in a folder of its own name, and that it did not write.
    ///
    /// # Errors
    ///
    /// Those of `list`, which returns the names in a folder.
    pub(crate) fn add_strangers(
        &mut self,
        written: &RunWrites,
        run: &str,
        list: impl Fn(&Path) -> Result<Vec<String>>,
    ) -> Result<()> {
        let own = written.rows.keys().filter(|path| is_of_run(path, run));
        let folders: BTreeSet<&Path> = own.filter_map(|path| Path::new(path).parent()).collect();
        for folder in folders {
            for name in list(folder)? {
                let path = folder.join(&name).display().to_string();
                if !written.rows.contains_key(&path) && !written.documents.contains_key(&path) {
                    self.differs(&path, "was not written by this run");
                }
            }
        }
        Ok(())
    }

    fn differs(&mut self, path: &str, what: &str) {
        self.differences.push(format!("{path}: {what}"));
    }

    /// Compares the rows of a file with those that the run appended to it. Others may have written rows between them, if the
    /// file is not the run's `alone`.
    fn check_rows(&mut self, path: &str, rows: &[AppendedRow], bytes: &[u8], alone: bool) {
        let mut existing: Vec<ExistingRow> = Vec::new();
        // The index of a line by its offset and by its content, so that each row needs one lookup.
        let mut by_offset: HashMap<u64, usize> = HashMap::new();
        let mut by_content: HashMap<Digest, VecDeque<usize>> = HashMap::new();
        let mut at = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let row = form(&serde_json::from_slice(line).unwrap_or_default());
            by_offset.insert(at, existing.len());
            by_content.entry(row).or_default().push_back(existing.len());
            existing.push(ExistingRow { row, used: false });
            at += line.len() as u64;
        }
        let mut messages = Vec::new();
        let mut displaced = Vec::new();
        for row in rows {
            match row.at.and_then(|at| by_offset.get(&at)).map(|index| &mut existing[*index]) {
                Some(found) if !found.used && found.row == row.row => found.used = true,
                _ => displaced.push(row),
            }
        }
        // First the rows that moved: a line that is then left at a row's offset is that row, changed.
        displaced.retain(|row| {
            let same = by_content.get_mut(&row.row);
            let elsewhere =
                same.and_then(|same| std::iter::from_fn(|| same.pop_front()).find(|index| !existing[*index].used));
            if let Some(index) = elsewhere {
                existing[index].used = true;
                if row.at.is_some() {
                    messages.push(format!(
                        "line {} was written elsewhere (line {} of the journal)",
                        index + 1,
                        row.line
                    ));
                }
            }
            elsewhere.is_none()
        });
        for row in displaced {
            let place = row.at.and_then(|at| by_offset.get(&at)).copied().filter(|index| !existing[*index].used);
            messages.push(match place {
                Some(index) => {
                    existing[index].used = true;
                    format!("line {} was changed (line {} of the journal)", index + 1, row.line)
                }
                None => format!("a row is missing (line {} of the journal)", row.line),
            });
        }
        let appended: HashSet<Digest> = rows.iter().map(|row| row.row).collect();
        for (index, found) in existing.iter().enumerate().filter(|(_, found)| !found.used) {
            match appended.contains(&found.row) {
                true => messages.push(format!("line {} stands there twice", index + 1)),
                false if alone => messages.push(format!("line {} was not written by this run", index + 1)),
                false => {}
            }
        }
        let more = messages.len().saturating_sub(NAMED);
        messages.truncate(NAMED);
        messages.iter().for_each(|what| self.differs(path, what));
        if more > 0 {
            self.differs(path, &format!("and {more} more"));
        }
    }
}

/// Tells whether a file is in a folder that has the run's name.
fn is_of_run(path: &str, run: &str) -> bool {
    Path::new(path).parent().is_some_and(|folder| folder.file_name().is_some_and(|name| name == run))
}

/// A row that is in the file.
struct ExistingRow {
    row: Digest,
    used: bool,
}

/// Returns the digest of the collection and key that a request names.
fn name(request: &Value) -> Digest {
    form(&Value::Array(vec![request["collection"].clone(), request["key"].clone()]))
}

/// Tells whether two values say the same, in whatever form they were written.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    form(one) == form(other)
}

/// Returns a digest of a row's content that does not depend on its form, because the schema decides the form that is
/// written: equal numbers are equal however they are written, members have no order, and an empty list equals an empty
/// map (Lua has only the empty table).
fn form(value: &Value) -> Digest {
    let mut bytes = Vec::new();
    write_form(value, &mut bytes);
    Digest::of(&bytes)
}

fn write_form(value: &Value, into: &mut Vec<u8>) {
    match value {
        Value::Number(number) => {
            // Zero and minus zero are equal.
            let number = number.as_f64().unwrap_or_default() + 0.0;
            into.push(b'n');
            into.extend_from_slice(&number.to_bits().to_le_bytes());
        }
        Value::Array(items) if items.is_empty() => into.push(b'e'),
        Value::Object(members) if members.is_empty() => into.push(b'e'),
        Value::Array(items) => {
            into.push(b'a');
            into.extend_from_slice(&items.len().to_le_bytes());
            items.iter().for_each(|item| write_form(item, into));
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            into.push(b'o');
            into.extend_from_slice(&sorted.len().to_le_bytes());
            for (name, member) in sorted {
                write_form(&Value::String(name.clone()), into);
                write_form(member, into);
            }
        }
        Value::String(text) => {
            into.push(b's');
            into.extend_from_slice(&text.len().to_le_bytes());
            into.extend_from_slice(text.as_bytes());
        }
        Value::Null => into.push(b'0'),
        Value::Bool(value) => into.push(if *value { b't' } else { b'f' }),
    }
}
