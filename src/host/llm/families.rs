//! How models are asked: what they refuse and how they get their schemas, according to `families.json` and to what
//! servers say during a run. None of this is part of a flow's request, and so none of it is part of a content key.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

use super::model_table::ModelTable;
use super::refusal::RequestPart;
use crate::model::chat::ChatRequest;

/// How one model is asked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ModelProfile {
    /// The parts of a request that are left out or written in another way.
    pub(super) refuses: BTreeSet<RequestPart>,
    /// Whether Anthropic's API enforces a schema for this model (`output_config.format`); other models must call a tool.
    pub(super) native_schema: bool,
    /// The `reasoning_effort` of requests with tools.
    pub(super) effort_with_tools: Option<String>,
    /// How many tokens the model may spend on thinking, on top of the reply's limit.
    pub(super) thinks: u32,
    /// The media types of files that the model takes, `image/*` for all images; absent if that is not known.
    pub(super) files: Option<Vec<String>>,
}

impl ModelProfile {
    pub(super) fn refuses(&self, part: RequestPart) -> bool {
        self.refuses.contains(&part)
    }

    /// Tells whether the model takes files of this type, or `None` if that is not known.
    pub(super) fn takes_file(&self, media_type: &str) -> Option<bool> {
        let is_taken = |taken: &String| match taken.strip_suffix('*') {
            Some(start) => media_type.starts_with(start),
            None => taken == media_type,
        };
        self.files.as_ref().map(|files| files.iter().any(is_taken))
    }

    /// Tells whether requests may have `top_p`: models that take no temperature take that neither.
    pub(super) fn takes_top_p(&self) -> bool {
        !self.refuses(RequestPart::Temperature) && !self.refuses(RequestPart::TopP)
    }

    /// Returns the provider options of a request, without what the server refused.
    pub(super) fn options<'r>(&self, request: &'r ChatRequest) -> BTreeMap<&'r str, &'r Value> {
        let refused: Vec<&str> = self.refuses.iter().filter_map(|part| part.names().first().copied()).collect();
        let options = request.provider_options.iter().map(|(name, value)| (name.as_str(), value));
        options.filter(|(name, _)| !refused.contains(name)).collect()
    }

    /// Adapts the profile to a part that a server refused.
    pub(super) fn learn(&mut self, part: RequestPart) {
        match part {
            RequestPart::Thinking => self.effort_with_tools = Some("none".to_owned()),
            part => {
                self.refuses.insert(part);
            }
        }
    }
}

fn file() -> &'static ModelTable<ModelProfile> {
    static FILE: OnceLock<ModelTable<ModelProfile>> = OnceLock::new();
    FILE.get_or_init(|| ModelTable::read(include_str!("families.json")))
}

/// Returns the built-in profile of `provider/model`.
pub(super) fn profile(model: &str) -> ModelProfile {
    file().find_by_prefix(model).cloned().unwrap_or_default()
}

/// The profiles, with what servers have refused in this run.
#[derive(Default)]
pub(super) struct LearnedProfiles {
    profiles: RefCell<BTreeMap<String, ModelProfile>>,
    reported: RefCell<BTreeSet<(String, RequestPart)>>,
}

impl LearnedProfiles {
    /// Returns the current profile of `provider/model`.
    pub(super) fn profile(&self, model: &str) -> ModelProfile {
        self.profiles.borrow().get(model).cloned().unwrap_or_else(|| profile(model))
    }

    /// Keeps a refused part for all later calls, and returns whether it is new. A refused `State` concerns one
    /// conversation only, so it is reported but not kept.
    pub(super) fn learn(&self, model: &str, part: RequestPart) -> bool {
        if part != RequestPart::State {
            let mut all = self.profiles.borrow_mut();
            all.entry(model.to_owned()).or_insert_with(|| profile(model)).learn(part);
        }
        self.reported.borrow_mut().insert((model.to_owned(), part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::llm::provider_defaults;

    #[test]
    fn the_longest_name_counts_alone_and_a_stranger_refuses_nothing() {
        let refuses = |model: &str| profile(model).refuses.into_iter().collect::<Vec<_>>();
        assert_eq!(refuses("anthropic/claude-sonnet-5-5"), [RequestPart::Temperature, RequestPart::ToolChoice]);
        assert_eq!(refuses("anthropic/claude-sonnet-5"), [RequestPart::Temperature]);
        assert_eq!(refuses("anthropic/claude-sonnet-4-6"), []);
        assert_eq!(
            (refuses("openai/gpt-5-mini"), refuses("openai/gpt-5-chat-latest")),
            (vec![RequestPart::Temperature, RequestPart::MaxTokens], vec![])
        );
        assert_eq!(profile("openai/gpt-6-luna").effort_with_tools.as_deref(), Some("none"));
        let takes = |model: &str, kind: &str| profile(model).takes_file(kind);
        assert_eq!(takes("xai/grok-4.20", "image/jpeg"), Some(true));
        assert_eq!(
            (takes("xai/grok-4.20", "application/pdf"), takes("groq/openai/gpt-oss-20b", "image/png")),
            (Some(false), Some(false))
        );
        assert_eq!(takes("lab/gpt-6-luna", "image/png"), None);
        assert_eq!(profile("lab/gpt-6-luna"), ModelProfile::default());
        for name in file().models.keys() {
            let provider = name.split('/').next().unwrap_or_default();
            assert!(provider_defaults::ALL.iter().any(|defaults| defaults.name == provider), "{name}");
        }
    }
}
