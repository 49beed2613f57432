//! An index of packs: a git repository, or a folder, of YAML files, one for each pack. Any team can have one. It says where a
//! pack is and which content is meant; whoever adds the pack looks at it all the same, and is asked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Code, Failure, Result};
use crate::model::collection::Format;
use crate::pack::permission_items::ItemsByFlow;
use crate::schema::{builtin, text};

/// One pack of an index.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IndexEntry {
    pub name: String,
    pub version: String,
    pub summary: String,
    pub licence: String,
    /// What `nietz pack add` takes.
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The digest of the tree, as in `nietz.lock`.
    pub sha256: String,
    /// The version of nietz with which its tests passed when it was entered.
    pub tested: String,
    /// How many tests of its own it has.
    pub tests: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What each of its flows asks for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asks: ItemsByFlow,
}

impl IndexEntry {
    /// Reads one file of an index.
    ///
    /// # Errors
    ///
    /// `config-invalid` with all that is wrong with it.
    pub(crate) fn parse(content: &str, file: &str) -> Result<IndexEntry> {
        let value = builtin::read(&builtin::INDEX, content, file)?;
        serde_json::from_value(value).map_err(|error| Failure::new(Code::ConfigInvalid, format!("{file}: {error}")))
    }

    /// Returns the entry as its file has it.
    ///
    /// # Errors
    ///
    /// `internal` if it is no JSON.
    pub(crate) fn yaml(&self) -> Result<String> {
        let value = serde_json::to_value(self).map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        Ok(text::to_text(&value, Format::Yaml))
    }

    /// Tells whether each of these words stands in its name, its summary, its tags or the names of its flows.
    pub(crate) fn has(&self, words: &[String]) -> bool {
        let flows = self.asks.keys().map(String::as_str);
        let tags = self.tags.iter().map(String::as_str);
        let all: Vec<&str> = [self.name.as_str(), self.summary.as_str()].into_iter().chain(tags).chain(flows).collect();
        let all = all.join("\n").to_lowercase();
        words.iter().all(|word| all.contains(&word.to_lowercase()))
    }
}
