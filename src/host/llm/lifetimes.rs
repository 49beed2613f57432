//! What users are told of a model once in a process: that it is switched off soon, that another one has answered, and that it is a
//! small one on this machine.
//!
//! The first two hold for a provider's own address. A gateway or a server of one's own may name models as it likes.

use std::cell::RefCell;
use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::catalogue;
use super::provider::Provider;
use crate::model::text::excerpt;

/// How many days before a model is switched off users are told.
const DAYS: i64 = 30;

/// What was told.
#[derive(Default)]
pub(super) struct Told(RefCell<BTreeSet<(String, String)>>);

impl Told {
    /// Returns the notice that `provider/model` is switched off soon, or was to be, if there is reason to tell.
    pub(super) fn retirement(&self, provider: &Provider, model: &str, today: NaiveDate) -> Option<String> {
        if provider.moved {
            return None;
        }
        let day = catalogue::retires(model)?;
        let days = (day - today).num_days();
        let as_of = catalogue::as_of();
        let what = match days {
            ..=0 => format!("{model} was to be switched off on {day}: another model may answer, or none"),
            1..=DAYS => format!("{model} is switched off on {day}, in {days} day{}", if days == 1 { "" } else { "s" }),
            _ => return None,
        };
        let notice = format!("{what} (known as of {as_of}); --model names another one");
        self.once(model, "retirement").then_some(notice)
    }

    /// Returns the notice that another model answered than `provider/model`, if there is reason to tell.
    pub(super) fn other(&self, provider: &Provider, model: &str, answered: &str) -> Option<String> {
        let (_, asked) = model.split_once('/')?;
        if provider.moved || is_same(asked, answered) || !self.once(model, answered) {
            return None;
        }
        Some(format!("{} was asked for, and {} answered: {model} may not be served any more", asked, excerpt(answered)))
    }

    /// Returns the notice that a model of this machine answers, if it was not told yet.
    pub(super) fn small(&self, model: &str) -> Option<String> {
        self.once(model, "small").then(|| {
            format!(
                "{model} is a small model on this machine: free and private, and not clever. For a better one set \
                 OPENAI_API_KEY or ANTHROPIC_API_KEY, or see `nietz models`."
            )
        })
    }

    fn once(&self, model: &str, what: &str) -> bool {
        self.0.borrow_mut().insert((model.to_owned(), what.to_owned()))
    }
}

/// Tells whether the name by which a server answered may mean the model that was asked for. Servers answer with the date of a
/// snapshot, with or without a publisher, and with the parts of a name in another order; an alias of the latest model says
/// itself that it may be any.
fn is_same(asked: &str, answered: &str) -> bool {
    if asked.split([':', '@']).next().is_some_and(|name| name == "latest" || name.ends_with("-latest")) {
        return true;
    }
    let (asked, mut answered) = (words(asked), words(answered));
    let mut missing: Vec<String> = Vec::new();
    for word in asked {
        match answered.iter().position(|other| *other == word) {
            Some(at) => drop(answered.swap_remove(at)),
            None => missing.push(word),
        }
    }
    missing.iter().chain(&answered).all(|word| is_version(word))
}

/// Returns the parts of a model's name, without its publisher, its variant and the date of its snapshot.
fn words(model: &str) -> Vec<String> {
    let name = model.rsplit('/').next().unwrap_or_default().to_lowercase();
    let name = name.split([':', '@']).next().unwrap_or_default();
    let parts = catalogue::undated(name).split(['-', '_']).filter(|part| !part.is_empty());
    // `5.5` is `5-5` elsewhere; `v4.1` is one word.
    let apart = |part: &'_ str| -> Vec<String> {
        if is_version(part) { vec![part.to_owned()] } else { part.split('.').map(str::to_owned).collect() }
    };
    parts.flat_map(apart).collect()
}

/// Tells whether a part of a name only says which of its versions a model is: `v4.1`, `0813`, `preview`.
fn is_version(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_number = word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number || word.strip_prefix('v').is_some_and(digits) || ["preview", "latest", "exp", "beta"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::super::config::ModelsConfig;
    use super::super::settings::ClientSettings;
    use super::*;

    fn provider(name: &str, variables: &[(&str, &str)]) -> Provider {
        let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let settings = ClientSettings::from_environment(&variables, &ModelsConfig::default()).expect("they are valid");
        settings.providers.into_iter().find(|provider| provider.name == name).expect("it is known")
    }

    #[test]
    fn another_name_of_the_same_model_is_not_another_model() {
        for (asked, answered) in [
            ("gpt-6.1-terra", "gpt-6.1-terra"),
            ("gpt-6.1-terra", "gpt-6.1-terra-2026-10-20"),
            ("gpt-5-2025-08-07", "gpt-5"),
            ("claude-sonnet-5-5", "claude-sonnet-5-5-20260928"),
            ("anthropic/claude-sonnet-5.5", "anthropic/claude-5.5-sonnet-20260928"),
            ("openai/gpt-oss-120b:nitro", "gpt-oss-120b"),
            ("gemini-3.8-flash", "models/gemini-3.8-flash"),
            ("gemini-3.1-pro-preview", "gemini-3.1-pro"),
            ("gemini-flash-latest", "gemini-3.8-flash"),
            ("deepseek-flash", "DeepSeek-V4.1-Flash-1017"),
            ("grok-4.20-0309-reasoning", "grok-4.20-reasoning"),
        ] {
            assert!(is_same(asked, answered), "{asked} and {answered}");
        }
        for (asked, answered) in [
            ("gemini-2.5-pro", "gemini-3.8-flash"),
            ("gemini-3.5-flash", "gemini-3.8-flash"),
            ("gpt-5", "gpt-5-mini"),
            ("gpt-5.1", "gpt-5"),
            ("grok-3", "grok-4.3"),
        ] {
            assert!(!is_same(asked, answered), "{asked} and {answered}");
        }
    }

    #[test]
    fn it_is_told_once_and_of_a_providers_own_address_alone() {
        let (told, own) = (Told::default(), provider("gemini", &[]));
        let notice = told.other(&own, "gemini/gemini-2.5-pro", "models/gemini-3.8-flash").expect("it is another one");
        assert!(notice.starts_with("gemini-2.5-pro was asked for, and models/gemini-3.8-flash answered"), "{notice}");
        assert_eq!(told.other(&own, "gemini/gemini-2.5-pro", "models/gemini-3.8-flash"), None);
        let elsewhere = provider("gemini", &[("GEMINI_BASE_URL", "http://127.0.0.1:1/v1")]);
        assert_eq!(told.other(&elsewhere, "gemini/gemini-2.5-flash", "local-model"), None);
    }

    #[test]
    fn a_model_that_goes_is_told_of_in_its_last_month() {
        let openai = provider("openai", &[]);
        // Read from the catalogue, which is made anew from time to time.
        let (model, day) = ["openai/gpt-5", "openai/gpt-4.1", "openai/gpt-5.1"]
            .into_iter()
            .find_map(|model| Some((model, catalogue::retires(model)?)))
            .expect("the catalogue knows of one that goes");
        let told = |days: i64| Told::default().retirement(&openai, model, day - chrono::TimeDelta::days(days));
        assert_eq!(told(31), None);
        let notice = told(30).expect("it is the last month");
        assert!(
            notice.starts_with(&format!("{model} is switched off on {day}, in 30 days (known as of 20")),
            "{notice}"
        );
        assert!(told(1).is_some_and(|notice| notice.contains("in 1 day (")));
        assert!(told(-1).is_some_and(|notice| notice.contains("was to be switched off")));
        let twice = Told::default();
        assert!(twice.retirement(&openai, model, day).is_some() && twice.retirement(&openai, model, day).is_none());
        let elsewhere = provider("openai", &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")]);
        assert_eq!(Told::default().retirement(&elsewhere, model, day), None);
    }
}
