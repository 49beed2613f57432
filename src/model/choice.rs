//! Which model is asked, and how much it is to think where a call says nothing of that.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::chat::Effort;

/// A model with the effort that comes with its name. In files it is a text, or `{ model: …, effort: … }`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "WrittenChoice")]
pub struct ModelChoice {
    /// `provider/model`, a provider, or an alias.
    pub model: String,
    pub effort: Option<Effort>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenChoice {
    Name(String),
    Both(WrittenBoth),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBoth {
    model: String,
    effort: Option<Effort>,
}

impl From<WrittenChoice> for ModelChoice {
    fn from(written: WrittenChoice) -> ModelChoice {
        match written {
            WrittenChoice::Name(model) => ModelChoice { model, effort: None },
            WrittenChoice::Both(WrittenBoth { model, effort }) => ModelChoice { model, effort },
        }
    }
}

impl std::fmt::Display for ModelChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.model)?;
        self.effort.iter().try_for_each(|effort| write!(f, ", effort {}", effort.name()))
    }
}

/// How much the models of a run are to think. Pinned when the run begins, as its models are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunEfforts {
    /// What the user asked for with `--effort`.
    pub run: Option<Effort>,
    /// What comes with the alias by which the run's own model was named.
    pub model: Option<Effort>,
    /// What comes with aliases that calls and personas may name.
    pub aliases: BTreeMap<String, Effort>,
    /// What the user's configuration says for all runs.
    pub default: Option<Effort>,
}

impl RunEfforts {
    /// Returns the effort of a call that names this model (without a name, the run's own) and says nothing of effort itself.
    /// An alias that the call names was named for this call; the run's own model is the one that `--effort` is about.
    pub fn of(&self, name: Option<&str>) -> Option<Effort> {
        match name {
            None => self.run.or(self.model),
            Some(name) => self.aliases.get(name).copied().or(self.run),
        }
        .or(self.default)
    }

    /// Tells whether nothing is said of effort.
    pub fn is_unset(&self) -> bool {
        *self == RunEfforts::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_alias_that_is_named_counts_more_than_the_run_and_the_run_more_than_its_models_alias() {
        let aliases = BTreeMap::from([("deep".to_owned(), Effort::High)]);
        let all = RunEfforts { run: Some(Effort::Low), model: Some(Effort::Max), aliases, default: Some(Effort::None) };
        assert_eq!(all.of(Some("deep")), Some(Effort::High));
        assert_eq!((all.of(Some("openai/x")), all.of(None)), (Some(Effort::Low), Some(Effort::Low)));
        let without = RunEfforts { run: None, ..all };
        assert_eq!((without.of(Some("openai/x")), without.of(None)), (Some(Effort::None), Some(Effort::Max)));
        let nothing = RunEfforts { model: None, default: None, ..without };
        assert_eq!((nothing.of(Some("openai/x")), nothing.of(None)), (None, None));
    }

    #[test]
    fn a_choice_is_a_text_or_has_both_and_nothing_else() {
        let read = |value| serde_json::from_value::<ModelChoice>(value).ok().map(|choice| choice.to_string());
        assert_eq!(read(json!("a/b")).as_deref(), Some("a/b"));
        assert_eq!(read(json!({"model": "a/b", "effort": "xhigh"})).as_deref(), Some("a/b, effort xhigh"));
        assert_eq!(read(json!({"model": "a/b"})).as_deref(), Some("a/b"));
        for wrong in
            [json!({"effort": "low"}), json!({"model": "a/b", "efort": "low"}), json!({"model": "a", "effort": "lo"})]
        {
            assert_eq!(read(wrong), None);
        }
    }
}
