//! The catalogue of models, `catalogue.json`: what they cost, how much they take and write, from where on their prompts are
//! cached, and when they are switched off. A script makes the file from public lists (`.ci/catalogue`).
//!
//! It holds for a provider's own address; what stands at another one may be anything.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use chrono::NaiveDate;
use serde::{Deserialize, Deserializer};

use super::provider::Provider;
use crate::model::budget::{LongPrice, Price};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    as_of: String,
    #[serde(rename = "sources")]
    _sources: Vec<String>,
    #[serde(rename = "about")]
    _about: String,
    models: BTreeMap<String, Row>,
}

/// What is known of one model, or, where it has no price, of all whose names begin so.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Row {
    input: Option<f64>,
    output: Option<f64>,
    cached: Option<f64>,
    cache_write: Option<f64>,
    long: Option<LongPrice>,
    later: Option<LaterPrice>,
    window: Option<u64>,
    largest_output: Option<u32>,
    cache_minimum: Option<u64>,
    #[serde(deserialize_with = "some_day")]
    retires: Option<NaiveDate>,
}

/// A price that holds from a day on.
#[derive(Deserialize)]
struct LaterPrice {
    #[serde(deserialize_with = "day")]
    from: NaiveDate,
    #[serde(flatten)]
    price: Price,
}

fn day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NaiveDate, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

fn some_day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NaiveDate>, D::Error> {
    day(deserializer).map(Some)
}

impl Row {
    fn price(&self, today: NaiveDate) -> Option<Price> {
        if let Some(later) = self.later.as_ref().filter(|later| later.from <= today) {
            return Some(later.price);
        }
        let &Row { cached, cache_write, long, .. } = self;
        Some(Price { input: self.input?, output: self.output?, cached, cache_write, long })
    }
}

fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    CATALOGUE.get_or_init(|| {
        serde_json::from_str(include_str!("catalogue.json")).expect("a test of this module reads the file")
    })
}

/// Returns the day of the catalogue's facts, as `2026-11-23`.
pub fn as_of() -> &'static str {
    &catalogue().as_of
}

/// Returns what `provider/model` costs on a day, if that is known of exactly this model or of its snapshots.
pub(super) fn price(model: &str, today: NaiveDate) -> Option<Price> {
    exact(model)?.price(today)
}

/// Returns the day on which `provider/model` is switched off, if that is known.
pub(super) fn retires(model: &str) -> Option<NaiveDate> {
    exact(model)?.retires
}

/// Returns a limit of tokens for a reply, no larger than what a provider takes for this model, at its own address. More is
/// refused, although nobody is served by it.
pub(super) fn within_output(provider: &Provider, model: &str, limit: u32) -> u32 {
    let row = || exact(&format!("{}/{model}", provider.name));
    let largest = if provider.moved { None } else { row().and_then(|row| row.largest_output) };
    largest.map_or(limit, |largest| limit.min(largest))
}

/// Returns how many tokens a prompt of `provider/model` must have to be cached, as far as its line of models is known.
pub(super) fn cache_minimum(model: &str) -> Option<u64> {
    of_line(model, |row| row.cache_minimum)
}

/// Returns how many tokens `provider/model` takes in one call, request and reply together; `None` if unknown. The user's
/// own word goes before the catalogue's.
pub fn window(user_windows: &BTreeMap<String, u64>, model: &str) -> Option<u64> {
    user_windows.get(model).copied().or_else(|| of_line(model, |row| row.window))
}

fn exact(model: &str) -> Option<&'static Row> {
    let models = &catalogue().models;
    models.get(model).or_else(|| models.get(undated(model)))
}

/// Returns a fact of the longest name that `model` begins with and of which the fact is known.
fn of_line<T>(model: &str, fact: impl Fn(&Row) -> Option<T>) -> Option<T> {
    let provider = model.split_inclusive('/').next()?;
    let near = catalogue().models.range(provider.to_owned()..=model.to_owned());
    // Of all names that a text begins with, the longest is the last in their order.
    near.rev().filter(|(name, _)| model.starts_with(name.as_str())).find_map(|(_, row)| fact(row))
}

/// Returns a model's name without the date of its snapshot: `-2025-04-14` or `-20250929`.
pub(super) fn undated(model: &str) -> &str {
    let cut = |length: usize| model.len().checked_sub(length).and_then(|at| model.split_at_checked(at));
    for length in [11, 9] {
        if let Some((name, date)) = cut(length)
            && date.bytes().enumerate().all(|(at, byte)| match byte {
                b'-' => at == 0 || (length == 11 && (at == 5 || at == 8)),
                byte => byte.is_ascii_digit() && at > 0,
            })
        {
            return name;
        }
    }
    model
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::llm::provider_defaults;

    #[test]
    fn the_catalogue_names_known_providers_and_prices_that_can_be() {
        let known = |name: &str| name == "local" || provider_defaults::ALL.iter().any(|one| one.name == name);
        let today = as_of().parse().expect("it is of a day");
        for (name, row) in &catalogue().models {
            assert!(name.split_once('/').is_some_and(|(provider, _)| known(provider)), "{name}");
            assert!(row.price(today).is_none_or(|price| price.problem().is_none()), "{name}");
            assert!(row.later.as_ref().is_none_or(|later| later.price.problem().is_none()), "{name}");
            assert!(row.price(today).is_some() || row.window.is_some(), "{name}: a row that says nothing");
        }
    }

    #[test]
    fn the_reference_tells_the_date_of_the_catalogue() {
        let told = format!("[catalogue](../host/llm/catalogue.json) of {}", as_of());
        assert!(include_str!("../../docs/limits.md").contains(&told), "the page of limits does not say {told}");
    }

    #[test]
    fn each_default_model_has_a_price_and_a_window_and_stays_for_a_while() {
        let today: NaiveDate = as_of().parse().expect("it is of a day");
        for one in provider_defaults::ALL {
            let Some(model) = one.model.map(|model| format!("{}/{model}", one.name)) else { continue };
            assert!(price(&model, today).is_some(), "{model} is what people get who choose nothing, and has no price");
            assert!(window(&BTreeMap::new(), &model).is_some(), "{model} has no window");
            assert!(retires(&model).is_none_or(|day| day > today + chrono::Days::new(90)), "{model} goes soon");
        }
    }

    #[test]
    fn a_window_is_the_users_word_or_that_of_the_longest_known_name_and_never_a_guess() {
        let user_windows = BTreeMap::from([("lab/qwen".to_owned(), 4096), ("openai/gpt-4o".to_owned(), 7)]);
        let window = |model: &str| window(&user_windows, model);
        assert_eq!((window("lab/qwen"), window("openai/gpt-4o")), (Some(4096), Some(7)));
        assert_eq!((window("openai/gpt-4o-mini"), window("openai/gpt-4o-mini-else")), (Some(128_000), Some(128_000)));
        assert_eq!(window("anthropic/claude-sonnet-4-5"), Some(200_000));
        assert_eq!(
            (window("anthropic/claude-new-9"), window("anthropic/claude-mythos-5")),
            (Some(200_000), Some(1_000_000))
        );
        assert_eq!(window("anthropic/claude-sonnet-5-5"), Some(1_000_000));
        assert_eq!((window("openai/test"), window("lab/gpt-6-luna"), window("gpt-6-luna")), (None, None, None));
        assert_eq!((cache_minimum("anthropic/claude-sonnet-5-5"), cache_minimum("anthropic/new")), (Some(512), None));
    }

    #[test]
    fn a_price_that_changes_is_the_one_of_its_day() {
        let input = |model: &str, day: &str| price(model, day.parse().unwrap()).map(|price| price.input);
        assert_eq!(
            (input("openai/gpt-4.1", "2026-11-23"), input("openai/gpt-4.1-2025-04-14", "2026-11-23")),
            (Some(2.0), Some(2.0))
        );
        assert_eq!(input("openai/gpt-4.1-surprise", "2026-11-23"), None);
        let changing = catalogue().models.iter().find_map(|(name, row)| Some((name, row.later.as_ref()?)));
        if let Some((name, later)) = changing {
            let before = later.from.pred_opt().unwrap();
            assert_ne!(price(name, before), price(name, later.from), "{name}");
        }
    }
}
