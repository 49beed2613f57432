//! One effect that a journal records, found by its line or by its key.

use std::path::Path;

use serde_json::Value;

use crate::error::{Code, Failure, Result};
use crate::journal::entries;
use crate::journal::key::EffectKey;
use crate::model::text::excerpt;

/// An effect that a journal records.
pub(super) struct RecordedEffect {
    pub(super) seq: u64,
    pub(super) key: EffectKey,
    pub(super) kind: String,
    pub(super) scope: String,
    pub(super) request: Value,
    /// How often the effect was begun.
    pub(super) begun: usize,
    /// Its last outcome.
    pub(super) outcome: Option<Value>,
    /// Its last intent: the whole line.
    pub(super) intent: Value,
    /// Whether the run was resumed.
    pub(super) resumed: bool,
}

impl RecordedEffect {
    /// Finds an effect by the line of its intent or outcome, or by the beginning of its key.
    pub(super) fn find(journal: &Path, wanted: &str) -> Result<RecordedEffect> {
        let unknown = || {
            Failure::new(Code::Usage, format!("the run has no effect `{}`", excerpt(wanted)))
                .hint("`nietz log RUN` shows the lines and keys of all")
        };
        let mut key_text = None;
        entries::read(journal, |entry| {
            let key = entry["key"].as_str().unwrap_or_default();
            let is_line = entry["seq"].as_u64() == wanted.parse().ok();
            if key_text.is_none() && !key.is_empty() && (is_line || wanted.len() >= 6 && key.starts_with(wanted)) {
                key_text = Some(key.to_owned());
            }
        })?;
        let key_text = key_text.ok_or_else(unknown)?;
        let key = EffectKey::parse(&key_text).ok_or_else(unknown)?;
        let (mut first, mut begun, mut outcome, mut resumed) = (None, 0, None, false);
        entries::read(journal, |entry| {
            let entry_type = entry["type"].as_str().unwrap_or_default();
            resumed |= entry_type == "resume";
            if entry["key"] != key_text.as_str() {
                return;
            }
            if matches!(entry_type, "intent" | "effect") {
                begun += 1;
                first.get_or_insert_with(|| entry.clone());
            }
            if matches!(entry_type, "outcome" | "effect") {
                outcome = Some(entry);
            }
        })?;
        let first = first.ok_or_else(unknown)?;
        Ok(RecordedEffect {
            seq: first["seq"].as_u64().unwrap_or_default(),
            key,
            kind: first["kind"].as_str().unwrap_or_default().to_owned(),
            scope: first["scope"].as_str().unwrap_or_default().to_owned(),
            request: first["request"].clone(),
            begun,
            intent: first,
            outcome,
            resumed,
        })
    }
}
