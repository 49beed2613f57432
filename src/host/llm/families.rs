//! How models are asked: by which wire, what they refuse, how they get their schemas and how much they can be made to think,
//! according to `families.json` and to what servers say during a run. None of this is part of a flow's request, and so none
//! of it is part of a content key.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::provider::{Provider, Wire};
use super::refusal::RequestPart;
use crate::model::chat::{ChatRequest, Effort};

/// How one model is asked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ModelProfile {
    /// Year and month since which the family is served so.
    #[serde(rename = "since")]
    _since: String,
    /// Whose word it is: a page of documentation, or a package in its version.
    #[serde(rename = "source")]
    _source: String,
    /// The wire that the family has at the provider's own address, if it is not the provider's usual one.
    pub(super) wire: Option<Wire>,
    /// The parts of a request that are left out or written in another way.
    pub(super) refuses: BTreeSet<RequestPart>,
    /// How the provider holds replies to a schema; if absent, what is known of the provider holds.
    pub(super) native_schema: Option<NativeSchema>,
    /// The steps of thinking that the model has, by their words on the wire; if absent, nobody knows.
    pub(super) efforts: Option<BTreeSet<Effort>>,
    /// The members of a body that go with each step but `none`.
    pub(super) thinking: Map<String, Value>,
    /// The members of a body that stand for the step `none`, where that is no word of the wire.
    pub(super) no_thinking: Map<String, Value>,
    /// The `reasoning_effort` of chat completions with tools.
    pub(super) effort_with_tools: Option<String>,
    /// Whether a turn with tool calls must have a field for what was thought, even an empty one.
    pub(super) keeps_thoughts: bool,
    /// The tag between which the server writes thoughts in front of the text.
    pub(super) thinks_in_text: Option<String>,
    /// How many tokens the model may spend on thinking, on top of the reply's limit.
    pub(super) thinks: u32,
    /// The media types of files that the model takes, `image/*` for all images; absent if that is not known.
    pub(super) files: Option<Vec<String>>,
    /// The most tokens of a reply: some servers refuse a higher limit.
    pub(super) largest_output: Option<u32>,
}

/// How a provider holds the replies of a family to a schema by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NativeSchema {
    /// It takes the author's schema.
    Plain,
    /// It takes a copy with closed objects that require each of their members (OpenAI's strict mode).
    Strict,
    /// It takes a copy with structure alone, closed objects, and bounds in words (Anthropic, Gemini).
    Closed,
    /// It does not: the prompt spells the schema out.
    Prompt,
}

impl ModelProfile {
    /// Returns the wire by which a provider is asked for the model.
    pub(super) fn wire_at(&self, provider: &Provider) -> Wire {
        self.wire.filter(|_| provider.wire_by_family).unwrap_or(provider.wire)
    }

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

    /// Returns a limit of a reply that the server does not refuse for being too high.
    pub(super) fn within_largest(&self, limit: u32) -> u32 {
        self.largest_output.map_or(limit, |largest| limit.min(largest))
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

/// The data file, with its date and unit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FamiliesFile {
    #[serde(rename = "as_of")]
    _as_of: String,
    #[serde(rename = "unit")]
    _unit: String,
    models: BTreeMap<String, ModelProfile>,
}

fn file() -> &'static FamiliesFile {
    static FILE: OnceLock<FamiliesFile> = OnceLock::new();
    FILE.get_or_init(|| {
        serde_json::from_str(include_str!("families.json")).expect("the file is read by a test of this module")
    })
}

/// Returns the built-in profile of a model. A model that nobody knows is asked with the care that the provider's newest
/// family needs, at the provider's own address; nothing is assumed of what is served elsewhere.
pub(super) fn profile(provider: &Provider, model: &str) -> ModelProfile {
    let name = format!("{}/{model}", provider.name);
    let at_home = provider.is_at_home();
    let known = file().models.iter().filter(|(known, _)| {
        let stands_for_strangers = known.strip_suffix('/') == Some(provider.name.as_str());
        name.starts_with(known.as_str()) && (at_home || !stands_for_strangers)
    });
    known.max_by_key(|(known, _)| known.len()).map(|(_, profile)| profile.clone()).unwrap_or_default()
}

/// The profiles, with what servers have refused in this run.
#[derive(Default)]
pub(super) struct LearnedProfiles {
    profiles: RefCell<BTreeMap<String, ModelProfile>>,
    reported: RefCell<BTreeSet<(String, RequestPart)>>,
}

impl LearnedProfiles {
    /// Returns the current profile of a model.
    pub(super) fn profile(&self, provider: &Provider, model: &str) -> ModelProfile {
        let name = format!("{}/{model}", provider.name);
        self.profiles.borrow().get(&name).cloned().unwrap_or_else(|| profile(provider, model))
    }

    /// Keeps a refused part for all later calls, and returns whether it is new. A refused `State` concerns one
    /// conversation only, so it is reported but not kept.
    pub(super) fn learn(&self, provider: &Provider, model: &str, part: RequestPart) -> bool {
        let name = format!("{}/{model}", provider.name);
        if part != RequestPart::State {
            let mut all = self.profiles.borrow_mut();
            all.entry(name.clone()).or_insert_with(|| profile(provider, model)).learn(part);
        }
        self.reported.borrow_mut().insert((name, part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::llm::{ClientSettings, ModelsConfig, provider_defaults};

    fn of(provider: &str, variables: &[(&str, &str)], model: &str) -> ModelProfile {
        let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let settings = ClientSettings::from_environment(&variables, &ModelsConfig::default()).unwrap();
        profile(settings.providers.iter().find(|one| one.name == provider).unwrap(), model)
    }

    #[test]
    fn the_longest_name_counts_alone_wherever_the_model_is_served() {
        for moved in
            [&[][..], &[("OPENAI_BASE_URL", "http://127.0.0.1:9"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")]]
        {
            let refuses =
                |provider: &str, model: &str| of(provider, moved, model).refuses.into_iter().collect::<Vec<_>>();
            assert_eq!(refuses("anthropic", "claude-sonnet-5-5"), [RequestPart::Temperature, RequestPart::ToolChoice]);
            assert_eq!(refuses("anthropic", "claude-sonnet-5"), [RequestPart::Temperature]);
            assert_eq!(refuses("anthropic", "claude-sonnet-4-6"), []);
            assert_eq!(refuses("openai", "gpt-5-chat-latest"), []);
            assert!(refuses("openai", "gpt-5-mini").contains(&RequestPart::Temperature));
            assert_eq!(of("openai", moved, "gpt-6-luna").effort_with_tools.as_deref(), Some("none"));
        }
    }

    #[test]
    fn a_stranger_is_asked_with_care_at_the_providers_own_address_and_nothing_is_assumed_elsewhere() {
        let stranger = of("openai", &[], "unheard-of");
        assert_eq!(stranger.wire, Some(Wire::Responses));
        assert!(stranger.refuses(RequestPart::Temperature) && stranger.refuses(RequestPart::Stop));
        assert_eq!(of("anthropic", &[], "claude-sonnet-9").native_schema, Some(NativeSchema::Closed));
        let moved = [("OPENAI_BASE_URL", "http://127.0.0.1:9"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")];
        assert_eq!(of("openai", &moved, "unheard-of"), ModelProfile::default());
        assert_eq!(of("anthropic", &moved, "unheard-of"), ModelProfile::default());
    }

    #[test]
    fn each_family_has_its_provider_its_date_and_its_source() {
        for (name, profile) in &file().models {
            let provider = name.split('/').next().unwrap_or_default();
            assert!(provider_defaults::ALL.iter().any(|defaults| defaults.name == provider), "{name}");
            assert!(profile._since.len() == 7 && profile._since.starts_with("202"), "{name}");
            assert!(!profile._source.is_empty(), "{name}");
        }
    }
}
