//! Loads documents. A flow gets only validated documents, and a refusal names every violation.

use serde_json::Value;

use super::{Store, at, disk, rows, validation};
use crate::error::Result;
use crate::model::collection::{Collection, DocumentKey, Format};
use crate::model::document::{LoadedDocument, VersionStatus};
use crate::schema::report::LocatedViolation;
use crate::schema::source;

impl Store {
    /// Loads a document; returns `None` if there is none.
    ///
    /// A document of the current version is valid. An older one that the flow migrates, and a newer one that
    /// it may read, are returned unchecked with their version status. A collection of rows returns a list of them.
    ///
    /// # Errors
    ///
    /// `document-invalid` with every violation, `document-version` if the flow cannot read the version, `path-refused`
    /// if the path leads out of the workspace.
    pub fn load(&self, collection: &Collection, key: &DocumentKey) -> Result<Option<LoadedDocument>> {
        let relative = self.locate(collection, key)?;
        let Some(bytes) = self.place.read(at(collection, &relative))? else { return Ok(None) };
        let text = source::decode(&bytes, &relative)?;
        let digest = disk::digest(&bytes);
        let (value, standing) = match collection.format {
            Format::Jsonl => (Value::Array(self.parse_rows(collection, text, &relative)?), VersionStatus::Current),
            format => {
                let value = source::parse(text, format, &relative)?;
                let schema = self.schema_for_reading(collection)?;
                let standing = validation::validate_document(collection, &schema, &value, text, &relative, Some(key))?;
                (value, standing)
            }
        };
        if !matches!(standing, VersionStatus::Newer(_)) {
            self.remember_digest(&digest);
        }
        Ok(Some(LoadedDocument { value, digest, path: relative, standing }))
    }

    /// Returns the text of a document as it stands, valid or not; `None` if there is none.
    ///
    /// # Errors
    ///
    /// `path-refused` if the path leads out of the workspace, `document-unreadable` if it is no text.
    pub fn text(&self, collection: &Collection, key: &DocumentKey) -> Result<Option<String>> {
        let relative = self.locate(collection, key)?;
        let bytes = self.place.read(at(collection, &relative))?;
        bytes.map(|bytes| source::decode(&bytes, &relative).map(str::to_owned)).transpose()
    }

    /// Returns every violation and every note of a file's text, sorted by position, as `nietz check` shows them.
    ///
    /// `file` is the file's path below the workspace. If it belongs to the collection, the document must carry its key.
    ///
    /// # Errors
    ///
    /// Only if the collection's own schema is wrong.
    pub fn check_text(&self, collection: &Collection, text: &str, file: &str) -> Result<Vec<LocatedViolation>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let schema = self.schema_for_reading(collection)?;
        if collection.format == Format::Jsonl {
            return Ok(rows::check(collection, &schema, text, file));
        }
        let key = self.match_path(collection, std::path::Path::new(file));
        Ok(validation::check(collection, &schema, text, collection.format, file, key.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::super::testing::{collection, slug, store, versioned};
    use super::*;
    use crate::error::Code;

    fn load(text: &str) -> Result<Option<LoadedDocument>> {
        let (folder, store) = store();
        fs::create_dir(folder.path().join("data")).unwrap();
        fs::write(folder.path().join("data/a.yaml"), text).unwrap();
        store.load(&versioned(), &slug("a"))
    }

    #[test]
    fn a_valid_document_comes_back_and_an_absent_one_does_not() {
        let (_folder, store) = store();
        assert_eq!(store.load(&versioned(), &slug("a")).unwrap(), None);
        let loaded = load("format_version: '1.2'\nslug: a\nextra: kept\n").unwrap().unwrap();
        assert_eq!(loaded.value, json!({"format_version": "1.2", "slug": "a", "extra": "kept"}));
        assert_eq!((loaded.standing, loaded.path.as_str()), (VersionStatus::Current, "data/a.yaml"));
        assert_eq!(loaded.digest.len(), 64);
    }

    #[test]
    fn every_fault_is_listed_with_its_place() {
        let failure = load("format_version: 1.2\nslug: b\nscore: 120\ntags:\n  - x\n  - 3\n").unwrap_err();
        assert_eq!(failure.code, Code::DocumentInvalid);
        assert_eq!(failure.message, "data/a.yaml is not valid: it has 4 faults");
        assert_eq!(
            failure.details,
            [
                "data/a.yaml:1:17: /format_version: must be text; found 1.2, which is a number; put it in quotes",
                "data/a.yaml:2:7: /slug: must be \"a\", as the file's name says; found \"b\"",
                "data/a.yaml:3:8: /score: must be an integer from 0 to 100; found 120",
                "data/a.yaml:6:5: /tags/1: must be text; found 3, which is a number; put it in quotes",
            ]
        );
    }

    #[test]
    fn versions_decide_how_a_document_is_read() {
        let old = load("format_version: '1.0'\nscore: many\n").unwrap().unwrap();
        assert_eq!(old.standing, VersionStatus::Older("1.0".to_owned()));
        assert_eq!(load("format_version: '1.1'\nslug: a\n").unwrap_err().code, Code::DocumentVersion);
        assert_eq!(load("format_version: '1.3'\nslug: a\n").unwrap_err().code, Code::DocumentVersion);
        let missing = load("slug: a\n").unwrap_err();
        assert_eq!(missing.details, ["data/a.yaml:1:1: is missing its version \"format_version\""]);
        assert_eq!(load("slug: [a\n").unwrap_err().code, Code::DocumentUnreadable);
        assert_eq!(load("- a\n").unwrap_err().code, Code::DocumentInvalid);
        assert_eq!(load("").unwrap_err().code, Code::DocumentUnreadable);
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let (folder, store) = store();
        let file = fs::File::create(folder.path().join("a.yaml")).unwrap();
        file.set_len(source::MAX_BYTES + 1).unwrap();
        let failure = store.load(&collection("{slug}.yaml"), &slug("a")).unwrap_err();
        assert!(failure.code == Code::DocumentUnreadable && failure.message.contains("larger than 64 MB"), "{failure}");
    }

    #[test]
    fn formats_may_bind_only_what_is_written() {
        let (folder, store) = store();
        let mut collection = collection("{slug}.yaml");
        collection.schema["properties"]["id"] = json!({"format": "uuid"});
        fs::write(folder.path().join("a.yaml"), "slug: a\nid: x\n").unwrap();
        assert!(store.load(&collection, &slug("a")).is_err());
        collection.schema["x-formats"] = json!("on-save");
        assert!(store.load(&collection, &slug("a")).is_ok());
        assert_eq!(store.validate(&collection, &json!({"slug": "a", "id": "x"})).unwrap().len(), 1);
    }

    #[test]
    fn check_shows_faults_and_notes_in_the_order_of_the_file() {
        let (_folder, store) = store();
        let text = "format_version: '1.2'\nscroe: 3\nslug: b\nscore: x\n";
        let found = store.check_text(&versioned(), text, "data/a.yaml").unwrap();
        let lines: Vec<String> = found.iter().map(LocatedViolation::to_string).collect();
        assert_eq!(
            lines,
            [
                "data/a.yaml:2:1: /scroe: note: \"scroe\" is not a known field and is kept as it is; did you mean \"score\"?",
                "data/a.yaml:3:7: /slug: must be \"a\", as the file's name says; found \"b\"",
                "data/a.yaml:4:8: /score: must be an integer from 0 to 100; found \"x\"",
            ]
        );
        let check = |text: &str| store.check_text(&versioned(), text, "elsewhere.yaml").unwrap();
        assert_eq!(check("format_version: '1.0'\n"), []);
        assert!(
            check("slug: a\nformat_version: '1.1'\n")[0]
                .to_string()
                .starts_with("elsewhere.yaml:2:17: /format_version: ")
        );
        assert_eq!(check("slug: [\n")[0].to_string(), "elsewhere.yaml:1:7: unclosed bracket '['");
    }
}
