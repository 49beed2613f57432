//! Reads a journal's lines as plain objects, with long texts put back where they are used, for code that shows, compares
//! or explains what a run did.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::{Code, Failure, Result};
use crate::journal::expander::TextExpander;
use crate::journal::lines::ReadRecord;
use crate::journal::reader::{self, IntactPrefix};

/// Reads a journal and passes each line, except long texts, to `each` as an object with `seq` and `type`: `open`,
/// `resume`, `intent`, `outcome`, `effect`, `given` or `end`.
///
/// # Errors
///
/// As [`reader::read_bytes`] and [`reader::read`].
pub fn read(path: &Path, each: impl FnMut(Value)) -> Result<IntactPrefix> {
    let mut follower = Follower::new(path);
    follower.take(&reader::read_bytes(path)?, each)?;
    Ok(follower.intact)
}

/// Reads a journal as it grows.
pub struct Follower {
    path: PathBuf,
    expander: TextExpander,
    intact: IntactPrefix,
}

impl Follower {
    pub fn new(path: &Path) -> Follower {
        Follower { path: path.to_owned(), expander: TextExpander::default(), intact: IntactPrefix::default() }
    }

    /// Passes each line that was not read before to `each`, as [`read`] does.
    ///
    /// # Errors
    ///
    /// As [`read`].
    pub fn more(&mut self, each: impl FnMut(Value)) -> Result<()> {
        let added = reader::read_added(&self.path, self.intact.length)?;
        if added.is_empty() { Ok(()) } else { self.take(&added, each) }
    }

    /// Returns the number of the last line that was read.
    pub fn line(&self) -> u64 {
        self.intact.lines
    }

    fn take(&mut self, added: &[u8], mut each: impl FnMut(Value)) -> Result<()> {
        let Follower { path, expander, intact } = self;
        reader::read_more(path, added, intact, |line, record| {
            let seq = line.seq;
            let entry = entry(record, expander)
                .map_err(|why| Failure::new(Code::JournalBroken, format!("{}:{seq}: {why}", path.display())))?;
            if let Some(mut entry) = entry {
                entry["seq"] = json!(seq);
                each(entry);
            }
            Ok(())
        })
    }
}

/// Returns a line of the journal as one object. A long text is only remembered and is no entry of its own.
fn entry(record: ReadRecord<'_>, expander: &mut TextExpander) -> Result<Option<Value>, String> {
    let mut value = |raw: &serde_json::value::RawValue| -> Result<Value, String> {
        let value = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
        expander.expand(value)
    };
    Ok(Some(match record {
        ReadRecord::Text(text) => {
            text.add_to(expander)?;
            return Ok(None);
        }
        ReadRecord::Open(open) => json!({ "type": "open", "open": *open }),
        ReadRecord::Resume(resume) => json!({ "type": "resume", "resume": resume }),
        ReadRecord::Intent(intent) => {
            let mut entry = json!({
                "type": "intent", "key": intent.key, "kind": intent.kind, "scope": intent.scope, "at": intent.at,
                "request": value(intent.request)?,
            });
            if intent.anew {
                entry["anew"] = Value::from(true);
            }
            if let Some(label) = intent.label {
                entry["label"] = Value::from(label);
            }
            if intent.shown {
                entry["shown"] = Value::from(true);
            }
            entry
        }
        ReadRecord::Outcome(outcome) => match (outcome.ok, outcome.failure) {
            (Some(ok), _) => {
                let mut entry = json!({
                    "type": "outcome", "key": outcome.key, "at": outcome.at, "held": outcome.held, "ok": value(ok)?,
                });
                if let Some(by) = outcome.by {
                    entry["by"] = Value::from(by);
                }
                entry
            }
            (None, failure) => json!({
                "type": "outcome", "key": outcome.key, "at": outcome.at, "held": outcome.held, "failure": failure,
            }),
        },
        ReadRecord::Effect(done) => json!({
            "type": "effect", "key": done.key, "kind": done.kind, "scope": done.scope, "at": done.at,
            "request": value(done.request)?, "ok": value(done.ok)?,
        }),
        ReadRecord::Given(given) => json!({ "type": "given", "keys": given.keys }),
        ReadRecord::End(end) => json!({ "type": "end", "end": *end }),
    }))
}
