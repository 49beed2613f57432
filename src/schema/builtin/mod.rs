//! The schemas of nietz's own files: those that people write by hand (personas, quotes, packs, configuration) and those
//! that nietz keeps (locks, grants, records of runs, journals). `nietz check` and all readers check files by them, and
//! `nietz types` gives them to editors.

use serde_json::Value;

use crate::error::{Code, Failure, Result};
use crate::model::collection::Format;
use crate::schema::report::{self, LocatedViolation, Severity};
use crate::schema::{Schema, source};

/// The schema of one kind of file.
pub struct BuiltinSchema {
    /// The kind of file, in one word; also the name of the schema's file.
    pub name: &'static str,
    /// The files that the schema is for, as patterns for editors.
    pub files: &'static [&'static str],
    pub format: Format,
    /// The code of the failure for a file that is not valid.
    pub code: Code,
    pub text: &'static str,
}

/// A persona's front matter.
pub const PERSONA: BuiltinSchema = BuiltinSchema {
    name: "persona",
    files: &[],
    format: Format::Yaml,
    code: Code::DocumentInvalid,
    text: include_str!("persona.schema.json"),
};
/// A file of quotes.
pub const QUOTES: BuiltinSchema = BuiltinSchema {
    name: "quotes",
    files: &["quotes/*.yaml"],
    format: Format::Yaml,
    code: Code::DocumentInvalid,
    text: include_str!("quotes.schema.json"),
};
/// What a pack says of itself.
pub const PACK: BuiltinSchema = BuiltinSchema {
    name: "pack",
    files: &["pack.yaml"],
    format: Format::Yaml,
    code: Code::PackInvalid,
    text: include_str!("pack.schema.json"),
};
/// The user's configuration.
pub const CONFIG: BuiltinSchema = BuiltinSchema {
    name: "config",
    files: &["nietz/config.yaml"],
    format: Format::Yaml,
    code: Code::ConfigInvalid,
    text: include_str!("config.schema.json"),
};
/// A project's configuration.
pub const PROJECT: BuiltinSchema = BuiltinSchema {
    name: "project",
    files: &["nietz.yaml"],
    format: Format::Yaml,
    code: Code::ConfigInvalid,
    text: include_str!("project.schema.json"),
};
/// The lock of a project's packs.
pub const LOCK: BuiltinSchema = BuiltinSchema {
    name: "lock",
    files: &["nietz.lock"],
    format: Format::Yaml,
    code: Code::ConfigInvalid,
    text: include_str!("lock.schema.json"),
};
/// One pack of an index of packs.
pub const INDEX: BuiltinSchema = BuiltinSchema {
    name: "index",
    files: &[],
    format: Format::Yaml,
    code: Code::ConfigInvalid,
    text: include_str!("index.schema.json"),
};
/// The originals of a project's overriding files.
pub const EJECTED: BuiltinSchema = BuiltinSchema {
    name: "ejected",
    files: &["flows/.ejected.yaml"],
    format: Format::Yaml,
    code: Code::ConfigInvalid,
    text: include_str!("ejected.schema.json"),
};
/// The file that kept the grants of packs up to 2026-11.
pub const GRANTS: BuiltinSchema = BuiltinSchema {
    name: "grants",
    files: &["nietz/grants.yaml"],
    format: Format::Yaml,
    code: Code::ConfigInvalid,
    text: include_str!("grants.schema.json"),
};
/// What the user trusts.
pub const TRUST: BuiltinSchema = BuiltinSchema {
    name: "trust",
    files: &["nietz/trust.yaml"],
    format: Format::Yaml,
    code: Code::ConfigInvalid,
    text: include_str!("trust.schema.json"),
};
/// The keys that the user gave to nietz to keep.
pub const KEYS: BuiltinSchema = BuiltinSchema {
    name: "keys",
    files: &["nietz/keys.yaml"],
    format: Format::Yaml,
    code: Code::ConfigInvalid,
    text: include_str!("keys.schema.json"),
};
/// The record that a run is the user's own.
pub const RECORD: BuiltinSchema = BuiltinSchema {
    name: "record",
    files: &[],
    format: Format::Json,
    code: Code::ConfigInvalid,
    text: include_str!("record.schema.json"),
};
/// What a program or a webhook gets when a flow notifies its user.
pub const NOTIFICATION: BuiltinSchema = BuiltinSchema {
    name: "notification",
    files: &[],
    format: Format::Json,
    code: Code::DocumentInvalid,
    text: include_str!("notification.schema.json"),
};
/// A line of a journal of format 1.
pub const JOURNAL_V1: BuiltinSchema = BuiltinSchema {
    name: "journal.v1",
    files: &[],
    format: Format::Jsonl,
    code: Code::JournalBroken,
    text: include_str!("journal.v1.schema.json"),
};

/// A line of a journal of format 2.
pub const JOURNAL_V2: BuiltinSchema = BuiltinSchema {
    name: "journal.v2",
    files: &[],
    format: Format::Jsonl,
    code: Code::JournalBroken,
    text: include_str!("journal.v2.schema.json"),
};
/// What a run did, as `nietz report --json` writes it.
pub const REPORT: BuiltinSchema = BuiltinSchema {
    name: "report",
    files: &[],
    format: Format::Json,
    code: Code::DocumentInvalid,
    text: include_str!("report.schema.json"),
};

/// All kinds of files.
pub const ALL: &[&BuiltinSchema] = &[
    &PERSONA,
    &QUOTES,
    &PACK,
    &CONFIG,
    &PROJECT,
    &LOCK,
    &INDEX,
    &EJECTED,
    &GRANTS,
    &TRUST,
    &KEYS,
    &RECORD,
    &NOTIFICATION,
    &JOURNAL_V1,
    &JOURNAL_V2,
    &REPORT,
];

/// The formats of a journal's lines, by the `v` that each line begins with: a new format needs a schema and a row here.
pub const JOURNALS: &[(u64, &BuiltinSchema)] = &[(1, &JOURNAL_V1), (2, &JOURNAL_V2)];

impl BuiltinSchema {
    /// Returns the schema as a value.
    ///
    /// # Errors
    ///
    /// `internal` if it is not JSON.
    pub fn schema(&self) -> Result<Value> {
        serde_json::from_str(self.text).map_err(|error| Failure::new(Code::Internal, format!("{}: {error}", self.name)))
    }
}

/// Returns the value of a text, and every violation with its place. A text that cannot be read is one violation.
///
/// # Errors
///
/// The schema itself is wrong.
pub fn check(builtin: &BuiltinSchema, text: &str, file: &str) -> Result<(Value, Vec<LocatedViolation>)> {
    let value = match source::read(text, builtin.format) {
        Ok(value) => value,
        Err((place, reason)) => return Ok((Value::Null, vec![LocatedViolation::unreadable(file, place, reason)])),
    };
    let violations = Schema::compile(&builtin.schema()?)?.violations(&value);
    let located = report::locate(violations, Severity::Error, text, builtin.format, file);
    Ok((value, located))
}

/// Returns the value of a valid text.
///
/// # Errors
///
/// The schema's [`code`](BuiltinSchema::code), with all violations.
pub fn read(builtin: &BuiltinSchema, text: &str, file: &str) -> Result<Value> {
    let (value, located) = check(builtin, text, file)?;
    if located.is_empty() { Ok(value) } else { Err(Failure { code: builtin.code, ..report::failure(file, &located) }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::permission::Permission;

    #[test]
    fn a_pack_can_tell_of_every_permission() {
        let schema = PACK.schema().unwrap();
        let known = &schema["properties"]["permissions"]["additionalProperties"]["properties"];
        let mut names: Vec<&str> = known.as_object().unwrap().keys().map(String::as_str).collect();
        let mut all: Vec<&str> = Permission::ALL.iter().map(|permission| permission.member()).collect();
        all.extend(["documents", "everywhere"]);
        names.sort_unstable();
        all.sort_unstable();
        all.dedup();
        assert_eq!(names, all);
    }

    #[test]
    fn every_schema_compiles_and_says_what_it_is_for() {
        for builtin in ALL {
            let schema = builtin.schema().unwrap();
            Schema::compile(&schema).unwrap();
            assert!(schema["description"].is_string(), "{}", builtin.name);
        }
    }
}
