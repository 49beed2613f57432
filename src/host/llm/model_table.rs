//! The format of the data files beside this one, which list facts about models by name.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A data file: a value for each `provider/model`, with its date and unit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelTable<T> {
    /// Year and month of the values.
    #[serde(rename = "as_of")]
    _as_of: String,
    #[serde(rename = "unit")]
    _unit: String,
    pub(super) models: BTreeMap<String, T>,
}

impl<T: DeserializeOwned> ModelTable<T> {
    /// Parses a file that is compiled into the program.
    pub(super) fn read(text: &str) -> ModelTable<T> {
        serde_json::from_str(text).expect("each data file is read by a test of its module")
    }

    /// Returns the value of the longest known name that `model` begins with.
    pub(super) fn find_by_prefix(&self, model: &str) -> Option<&T> {
        let known = self.models.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        known.max_by_key(|(name, _)| name.len()).map(|(_, value)| value)
    }
}
