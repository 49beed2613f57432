//! The schemas of the files that people write by hand for nietz itself: personas, quotes, packs, configuration. `nietz
//! check` holds files to them, and `nietz types` gives them to editors.

use serde_json::Value;

use crate::error::{Code, Failure, Result};
use crate::model::collection::Format;
use crate::schema::report::{self, Located, Severity};
use crate::schema::{Schema, source};

/// One kind of file.
pub struct Own {
    /// What it is, in one word; also the name of its schema's file.
    pub name: &'static str,
    /// Which files it is for, as editors match them.
    pub files: &'static [&'static str],
    pub text: &'static str,
}

pub const PERSONA: Own = Own { name: "persona", files: &[], text: include_str!("own/persona.schema.json") };
pub const QUOTES: Own = Own { name: "quotes", files: &["quotes/*.yaml"], text: include_str!("own/quotes.schema.json") };
pub const PACK: Own = Own { name: "pack", files: &["pack.yaml"], text: include_str!("own/pack.schema.json") };
pub const CONFIG: Own =
    Own { name: "config", files: &["nietz/config.yaml"], text: include_str!("own/config.schema.json") };
pub const PROJECT: Own = Own { name: "project", files: &["nietz.yaml"], text: include_str!("own/project.schema.json") };

/// Every kind there is.
pub const ALL: &[&Own] = &[&PERSONA, &QUOTES, &PACK, &CONFIG, &PROJECT];

impl Own {
    pub fn schema(&self) -> Result<Value> {
        serde_json::from_str(self.text).map_err(|error| Failure::new(Code::Internal, format!("{}: {error}", self.name)))
    }
}

/// Returns the value of a YAML text, and every fault of it with its place.
pub fn check(own: &Own, text: &str, file: &str) -> Result<(Value, Vec<Located>)> {
    let value = match source::read(text, Format::Yaml) {
        Ok(value) => value,
        Err((place, reason)) => return Ok((Value::Null, vec![Located::unreadable(file, place, reason)])),
    };
    let faults = Schema::compile(&own.schema()?)?.faults(&value);
    let located = report::locate(faults, Severity::Error, text, Format::Yaml, file);
    Ok((value, located))
}

/// Returns the value of a valid YAML text, or a failure that lists all faults.
pub fn read(own: &Own, text: &str, file: &str) -> Result<Value> {
    let (value, located) = check(own, text, file)?;
    if located.is_empty() { Ok(value) } else { Err(report::failure(file, &located)) }
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
        let mut all: Vec<&str> = Permission::ALL.iter().map(|permission| permission.name()).collect();
        all.push("documents");
        names.sort_unstable();
        all.sort_unstable();
        assert_eq!(names, all);
    }

    #[test]
    fn every_schema_compiles_and_says_what_it_is_for() {
        for own in ALL {
            let schema = own.schema().unwrap();
            Schema::compile(&schema).unwrap();
            assert!(schema["description"].is_string(), "{}", own.name);
        }
    }
}
