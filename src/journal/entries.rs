//! Reads a journal's lines as plain objects, with long texts put back where they are used, for code that shows, compares
//! or explains what a run did.

use std::path::Path;

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
pub fn read(path: &Path, mut each: impl FnMut(Value)) -> Result<IntactPrefix> {
    let bytes = reader::read_bytes(path)?;
    let mut expander = TextExpander::default();
    reader::read(path, &bytes, |line, record| {
        let seq = line.seq;
        let entry = entry(record, &mut expander)
            .map_err(|why| Failure::new(Code::JournalBroken, format!("{}:{seq}: {why}", path.display())))?;
        if let Some(mut entry) = entry {
            entry["seq"] = json!(seq);
            each(entry);
        }
        Ok(())
    })
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
                json!({ "type": "outcome", "key": outcome.key, "at": outcome.at, "held": outcome.held, "ok": value(ok)? })
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
