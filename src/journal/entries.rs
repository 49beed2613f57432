//! A journal's lines as plain objects, with long texts put back where they are used: for whatever shows, compares
//! or explains what a run did.

use std::path::Path;

use serde_json::{Value, json};

use crate::error::{Code, Failure, Result};
use crate::journal::expander::TextExpander;
use crate::journal::lines::ReadRecord;
use crate::journal::reader::{self, IntactPrefix};

/// Reads a journal and gives each line that says something to `each`. The object has `seq` and `type`: `open`,
/// `resume`, `intent`, `outcome`, `effect`, `given` or `end`.
pub fn read(path: &Path, mut each: impl FnMut(Value)) -> Result<IntactPrefix> {
    let bytes = reader::read_bytes(path)?;
    let mut unfold = TextExpander::default();
    reader::read(path, &bytes, |line, record| {
        let seq = line.seq;
        let entry = entry(record, &mut unfold)
            .map_err(|why| Failure::new(Code::JournalBroken, format!("{}:{seq}: {why}", path.display())))?;
        if let Some(mut entry) = entry {
            entry["seq"] = json!(seq);
            each(entry);
        }
        Ok(())
    })
}

/// Returns a line of the journal as one object; a long text is learnt, and is no entry of its own.
fn entry(record: ReadRecord<'_>, unfold: &mut TextExpander) -> Result<Option<Value>, String> {
    let mut value = |raw: &serde_json::value::RawValue| -> Result<Value, String> {
        let value = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
        unfold.expand(value)
    };
    Ok(Some(match record {
        ReadRecord::Text(text) => {
            text.add_to(unfold)?;
            return Ok(None);
        }
        ReadRecord::Open(open) => json!({ "type": "open", "open": *open }),
        ReadRecord::Resume(resume) => json!({ "type": "resume", "resume": resume }),
        ReadRecord::Intent(intent) => json!({
            "type": "intent", "key": intent.key, "kind": intent.kind, "scope": intent.scope, "at": intent.at,
            "request": value(intent.request)?,
        }),
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
