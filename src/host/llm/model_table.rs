//! What is known of models by their names: the data files beside this one, in one form.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A data file: what it says of `provider/model`, since when, and in which unit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelTable<T> {
    /// Year and month of what it says.
    pub(super) as_of: String,
    #[serde(rename = "unit")]
    _unit: String,
    pub(super) models: BTreeMap<String, T>,
}

impl<T: DeserializeOwned> ModelTable<T> {
    /// Reads a file that is part of the program.
    pub(super) fn read(text: &str) -> ModelTable<T> {
        serde_json::from_str(text).expect("each data file is read by a test of its module")
    }

    /// Returns what is said of the longest known name that this one begins with.
    pub(super) fn find_by_prefix(&self, model: &str) -> Option<&T> {
        let known = self.models.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        known.max_by_key(|(name, _)| name.len()).map(|(_, said)| said)
    }
}
