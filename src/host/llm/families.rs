//! How models are asked: what they refuse and how they get their schemas, by `families.json`, and what servers say besides
//! while a run goes on. Nothing of this is part of a request as a flow makes it, and so of no key.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde::Deserialize;

use super::by_name::ByName;
use super::refusal::Part;

/// How one model is asked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Manner {
    /// What is left out, or put in another way.
    pub(super) refuses: BTreeSet<Part>,
    /// Whether Anthropic's wire holds its replies to a schema (`output_config.format`), where others are made to call a tool.
    pub(super) native_schema: bool,
    /// How hard it may think where it has tools (`reasoning_effort`).
    pub(super) effort_with_tools: Option<String>,
    /// How many tokens it may think, besides the reply that a limit is for.
    pub(super) thinks: u32,
}

impl Manner {
    pub(super) fn refuses(&self, part: Part) -> bool {
        self.refuses.contains(&part)
    }

    /// Changes it by what a server said.
    pub(super) fn learn(&mut self, part: Part) {
        match part {
            Part::Thinking => self.effort_with_tools = Some("none".to_owned()),
            part => {
                self.refuses.insert(part);
            }
        }
    }
}

fn file() -> &'static ByName<Manner> {
    static FILE: OnceLock<ByName<Manner>> = OnceLock::new();
    FILE.get_or_init(|| ByName::read(include_str!("families.json")))
}

/// Returns how `provider/model` is asked, before it has said anything.
pub(super) fn manner(model: &str) -> Manner {
    file().nearest(model).cloned().unwrap_or_default()
}

/// What servers said in this run.
#[derive(Default)]
pub(super) struct Learnt {
    manners: RefCell<BTreeMap<String, Manner>>,
    told: RefCell<BTreeSet<(String, Part)>>,
}

impl Learnt {
    /// Returns how `provider/model` is asked now.
    pub(super) fn manner(&self, model: &str) -> Manner {
        self.manners.borrow().get(model).cloned().unwrap_or_else(|| manner(model))
    }

    /// Keeps what a server said, for all calls that follow; returns whether it is new. What concerns one conversation is
    /// kept for none.
    pub(super) fn learn(&self, model: &str, part: Part) -> bool {
        if part != Part::State {
            let mut all = self.manners.borrow_mut();
            all.entry(model.to_owned()).or_insert_with(|| manner(model)).learn(part);
        }
        self.told.borrow_mut().insert((model.to_owned(), part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::llm::providers;

    #[test]
    fn the_longest_name_counts_alone_and_a_stranger_refuses_nothing() {
        let refuses = |model: &str| manner(model).refuses.into_iter().collect::<Vec<_>>();
        assert_eq!(refuses("anthropic/claude-sonnet-5-5"), [Part::Temperature, Part::ToolChoice]);
        assert_eq!(refuses("anthropic/claude-sonnet-5"), [Part::Temperature]);
        assert_eq!(refuses("anthropic/claude-sonnet-4-6"), []);
        assert_eq!(
            (refuses("openai/gpt-5-mini"), refuses("openai/gpt-5-chat-latest")),
            (vec![Part::Temperature, Part::MaxTokens], vec![])
        );
        assert_eq!(manner("openai/gpt-6-luna").effort_with_tools.as_deref(), Some("none"));
        assert_eq!(manner("lab/gpt-6-luna"), Manner::default());
        for name in file().models.keys() {
            let provider = name.split('/').next().unwrap_or_default();
            assert!(providers::ALL.iter().any(|facts| facts.name == provider), "{name}");
        }
    }
}
