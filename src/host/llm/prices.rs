//! The prices of calls: what the catalogue knows, the user's own, which replace them, and what a provider itself says.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::Deserialize;
use serde_json::Value;

use super::catalogue;
use super::provider::{LOCAL, Provider};
use crate::model::budget::Price;

/// Returns the price of `provider/model` on a day, if it is known.
///
/// Models on the user's own machine are free. A provider at an address other than its own may cost
/// anything, so only the user can give its price.
pub(super) fn price(
    user_prices: &BTreeMap<String, Price>,
    providers: &[Provider],
    model: &str,
    today: NaiveDate,
) -> Option<Price> {
    if let Some(price) = user_prices.get(model) {
        return Some(*price);
    }
    let (name, _) = model.split_once('/')?;
    if name == LOCAL {
        return Some(Price::FREE);
    }
    let provider = providers.iter().find(|provider| provider.name == name)?;
    // A server that lists its models runs on the user's machine, unless it wants a key.
    if provider.models_path.is_some() && !provider.key.has_key() {
        return Some(Price::FREE);
    }
    if provider.moved { None } else { catalogue::price(model, today) }
}

/// The members of a reply's counts by which a provider says what the call cost. Each may have any form, because other
/// servers use the same names for other things.
#[derive(Default, Deserialize)]
pub(super) struct ToldCost {
    /// OpenRouter: US dollars.
    cost: Option<Value>,
    /// OpenRouter: whether the user has a contract with the model's provider, who is paid besides.
    is_byok: Option<Value>,
    cost_details: Option<Value>,
    /// xAI.
    cost_in_usd_ticks: Option<Value>,
}

/// How many of xAI's ticks are a US dollar.
const TICKS: f64 = 1e10;

impl ToldCost {
    /// Returns the cost in US dollars that a provider told, if it is one that tells it, at its own address.
    pub(super) fn dollars(&self, provider: &Provider) -> Option<f64> {
        let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_f64);
        let cost = match provider.name.as_str() {
            _ if provider.moved => None,
            "openrouter" if self.is_byok == Some(Value::Bool(true)) => {
                let details = self.cost_details.as_ref();
                let upstream = details.and_then(|details| details["upstream_inference_cost"].as_f64());
                Some(number(&self.cost)? + upstream?)
            }
            "openrouter" => number(&self.cost),
            "xai" => number(&self.cost_in_usd_ticks).map(|ticks| ticks / TICKS),
            _ => None,
        };
        cost.filter(|cost| cost.is_finite() && *cost >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::super::config::ModelsConfig;
    use super::super::settings::ClientSettings;
    use super::ToldCost;
    use crate::model::budget::Price;

    fn settings(variables: &[(&str, &str)], config: &str) -> ClientSettings {
        let config: ModelsConfig = serde_yaml::from_str(config).expect("the test's configuration is valid");
        let variables: BTreeMap<String, String> =
            variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        ClientSettings::from_environment(&variables, &config).expect("the test's settings are valid")
    }

    #[test]
    fn a_price_is_known_or_said_to_be_unknown_and_never_guessed() {
        let plain = settings(&[], "{}");
        let input = |settings: &ClientSettings, model: &str| settings.price(model).map(|price| price.input);
        assert_eq!(input(&plain, "openai/gpt-4.1"), Some(2.0));
        assert_eq!(input(&plain, "openai/gpt-4.1-2025-04-14"), Some(2.0));
        assert_eq!(input(&plain, "anthropic/claude-sonnet-4-5-20250929"), Some(3.0));
        assert_eq!(input(&plain, "openai/gpt-4.1-surprise"), None);
        assert_eq!((input(&plain, "local/any"), input(&plain, "ollama/any")), (Some(0.0), Some(0.0)));
        let moved = settings(&[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")], "{}");
        assert_eq!(input(&moved, "openai/gpt-4.1"), None);
        let own = settings(
            &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")],
            "prices: {openai/gpt-4.1: {input: 7, output: 9}, lab/qwen: {input: 0.1, output: 0.2, cache_write: 0.3}}",
        );
        assert_eq!((input(&own, "openai/gpt-4.1"), input(&own, "lab/qwen")), (Some(7.0), Some(0.1)));
        assert_eq!(own.price("lab/qwen").and_then(|price| price.cache_write), Some(0.3));
        assert_eq!(plain.price("local/any"), Some(Price::FREE));
    }

    #[test]
    fn what_a_provider_says_that_a_call_cost_counts_at_its_own_address_alone() {
        let told = |name: &str, moved: &[(&str, &str)], counts: serde_json::Value| {
            let settings = settings(moved, "{}");
            let provider = settings.providers.iter().find(|one| one.name == name).expect("it is known");
            serde_json::from_value::<ToldCost>(counts).expect("it has any form").dollars(provider)
        };
        assert_eq!(told("openrouter", &[], json!({"cost": 0.25, "is_byok": false})), Some(0.25));
        let byok = json!({"cost": 0.25, "is_byok": true, "cost_details": {"upstream_inference_cost": 0.5}});
        assert_eq!(told("openrouter", &[], byok), Some(0.75));
        assert_eq!(told("openrouter", &[], json!({"cost": 0.25, "is_byok": true})), None);
        assert_eq!(
            told("xai", &[], json!({"cost_in_usd_ticks": 2_500_000_000u64, "cost": {"any": "form"}})),
            Some(0.25)
        );
        for odd in [json!({}), json!({"cost": -1}), json!({"cost": "1"}), json!({"cost": [1]})] {
            assert_eq!(told("openrouter", &[], odd), None);
        }
        let elsewhere = ("OPENROUTER_BASE_URL", "http://127.0.0.1:1/v1");
        assert_eq!(told("openrouter", &[elsewhere], json!({"cost": 0.25})), None);
        assert_eq!(told("openai", &[], json!({"cost": 0.25})), None);
    }
}
