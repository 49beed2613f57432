//! Checks journals and cassettes: each line against the schema of its format, and all lines against their chain of digests.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cli::check::FileReport;
use crate::error::{Code, Failure, Result};
use crate::journal::{entries, reader};
use crate::model::collection::Format;
use crate::schema::report::{self, LocatedViolation, Severity};
use crate::schema::{Schema, TextPosition, Violation, builtin, source};

/// Tells whether a text begins like a journal. The file's name does not count, because a copy may have any name.
pub(super) fn is_journal(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("{\"v\":") && first.contains("\"is\":{\"open\":")
}

/// Checks a journal. A break of the chain is reported only if the schema finds nothing wrong with that line.
pub(super) fn check(file: &Path, name: &str) -> Result<FileReport> {
    let bytes = reader::read_bytes(file)?;
    let text = source::decode(&bytes, name)?.to_owned();
    let mut schemas = JournalSchemas::default();
    let mut located = Vec::new();
    for (index, line) in whole_lines(&text).lines().enumerate() {
        for mut violation in schemas.violations(line, name)? {
            violation.line = index + 1;
            located.push(violation);
        }
    }
    match entries::read(file, |_| ()) {
        Ok(intact) if intact.torn > 0 => {
            let place = TextPosition { line: text.lines().count(), column: 1 };
            let message = format!(
                "{} bytes of a line that was not written to its end: the run was ended in that moment, and `nietz resume` \
                 goes on before it",
                intact.torn
            );
            let mut torn = LocatedViolation::unreadable(name, place, message);
            torn.severity = Severity::Note;
            located.push(torn);
        }
        Ok(_) => {}
        Err(failure) if failure.code == Code::JournalBroken => {
            let broken = locate_broken_line(file, name, failure)?;
            if located.iter().all(|violation: &LocatedViolation| violation.line != broken.line) {
                located.push(broken);
            }
        }
        Err(failure) => return Err(failure),
    }
    located.sort_by_key(|violation| (violation.line, violation.column));
    Ok(FileReport { text, located, code: Code::JournalBroken })
}

/// Returns a text without its unfinished last line.
fn whole_lines(text: &str) -> &str {
    text.rfind('\n').map_or("", |end| &text[..=end])
}

/// Locates the line that a failure of the reader names, as in `FILE:LINE: why`.
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

/// The compiled schemas of the formats that occurred so far.
#[derive(Default)]
struct JournalSchemas(BTreeMap<u64, Schema>);

impl JournalSchemas {
    /// Returns the violations of a line by itself. A line in an unknown format has none here: the reader reports it.
    fn violations(&mut self, line: &str, name: &str) -> Result<Vec<LocatedViolation>> {
        let value = match source::read(line, Format::Jsonl) {
            Ok(value) => value,
            Err((place, reason)) => return Ok(vec![LocatedViolation::unreadable(name, place, reason)]),
        };
        let known = builtin::JOURNALS.iter().find(|(format, _)| value["v"] == *format);
        let Some((format, own)) = known else {
            return Ok(match value["v"].is_u64() {
                true => Vec::new(),
                false => {
                    let violation = Violation::new("/v", "type", "must be the number of the journal's format");
                    report::locate(vec![violation], Severity::Error, line, Format::Jsonl, name)
                }
            });
        };
        if !self.0.contains_key(format) {
            self.0.insert(*format, Schema::compile(&own.schema()?)?);
        }
        Ok(report::locate(self.0[format].violations(&value), Severity::Error, line, Format::Jsonl, name))
    }
}
