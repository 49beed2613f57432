//! Checking journals and cassettes: each line by the schema of its format, all of them by the chain that holds them together.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cli::check::FileReport;
use crate::error::{Code, Failure, Result};
use crate::journal::{entries, reader};
use crate::model::collection::Format;
use crate::schema::report::{self, LocatedViolation, Severity};
use crate::schema::{Schema, TextPosition, Violation, builtin, source};

/// Tells whether a text begins as journals do: a copy of one may have any name.
pub(super) fn is_journal(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("{\"v\":") && first.contains("\"is\":{\"open\":")
}

/// Checks a journal. What the chain says counts where the schema has nothing to say of that line.
pub(super) fn check(file: &Path, name: &str) -> Result<FileReport> {
    let bytes = reader::read_bytes(file)?;
    let text = source::decode(&bytes, name)?.to_owned();
    let mut schemas = JournalSchemas::default();
    let mut located = Vec::new();
    for (index, line) in whole_lines(&text).lines().enumerate() {
        for mut fault in schemas.faults(line, name)? {
            fault.line = index + 1;
            located.push(fault);
        }
    }
    match entries::read(file, |_| ()) {
        Ok(whole) if whole.torn > 0 => {
            let place = TextPosition { line: text.lines().count(), column: 1 };
            let message = format!(
                "{} bytes of a line that was not written to its end: the run was ended in that moment, and `nietz resume` \
                 goes on before it",
                whole.torn
            );
            let mut torn = LocatedViolation::unreadable(name, place, message);
            torn.severity = Severity::Note;
            located.push(torn);
        }
        Ok(_) => {}
        Err(failure) if failure.code == Code::JournalBroken => {
            let broken = locate_broken_line(file, name, failure)?;
            if located.iter().all(|fault: &LocatedViolation| fault.line != broken.line) {
                located.push(broken);
            }
        }
        Err(failure) => return Err(failure),
    }
    located.sort_by_key(|fault| (fault.line, fault.column));
    Ok(FileReport { text, located, code: Code::JournalBroken })
}

/// Returns the part of a text that ends with whole lines.
fn whole_lines(text: &str) -> &str {
    text.rfind('\n').map_or("", |end| &text[..=end])
}

/// Finds the line that a failure of the reader names: `FILE:LINE: why`.
fn locate_broken_line(file: &Path, name: &str, failure: Failure) -> Result<LocatedViolation> {
    let rest = failure.message.strip_prefix(&file.display().to_string()).and_then(|rest| rest.strip_prefix(':'));
    let Some((line, why)) = rest.and_then(|rest| {
        let (line, why) = rest.split_once(": ")?;
        Some((line.parse().ok()?, why.to_owned()))
    }) else {
        return Err(failure);
    };
    let message = match failure.hint {
        Some(hint) => format!("{why}; {hint}"),
        None => why,
    };
    let mut located = LocatedViolation::unreadable(name, TextPosition { line, column: 1 }, message);
    failure.code.name().clone_into(&mut located.keyword);
    Ok(located)
}

/// The schemas of the formats that were met, compiled.
#[derive(Default)]
struct JournalSchemas(BTreeMap<u64, Schema>);

impl JournalSchemas {
    /// Returns what is wrong with a line by itself. One of a format that is not known is the reader's to tell.
    fn faults(&mut self, line: &str, name: &str) -> Result<Vec<LocatedViolation>> {
        let value = match source::read(line, Format::Jsonl) {
            Ok(value) => value,
            Err((place, reason)) => return Ok(vec![LocatedViolation::unreadable(name, place, reason)]),
        };
        let known = builtin::JOURNALS.iter().find(|(format, _)| value["v"] == *format);
        let Some((format, own)) = known else {
            return Ok(match value["v"].is_u64() {
                true => Vec::new(),
                false => {
                    let fault = Violation::new("/v", "type", "must be the number of the journal's format");
                    report::locate(vec![fault], Severity::Error, line, Format::Jsonl, name)
                }
            });
        };
        if !self.0.contains_key(format) {
            self.0.insert(*format, Schema::compile(&own.schema()?)?);
        }
        Ok(report::locate(self.0[format].violations(&value), Severity::Error, line, Format::Jsonl, name))
    }
}
