//! The prices of models: those of `prices.json`, and the user's own, which replace them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::model_table::ModelTable;
use super::provider::{LOCAL, Provider};
use crate::model::budget::Price;

fn file() -> &'static ModelTable<Price> {
    static FILE: OnceLock<ModelTable<Price>> = OnceLock::new();
    FILE.get_or_init(|| ModelTable::read(include_str!("prices.json")))
}

/// Returns year and month of the built-in prices.
pub fn as_of() -> &'static str {
    &file().as_of
}

/// Returns the price of `provider/model`, if it is known.
///
/// Models on the user's own machine are free. A provider at an address other than its own may cost
/// anything, so only the user can give its price.
pub(super) fn price(user_prices: &BTreeMap<String, Price>, providers: &[Provider], model: &str) -> Option<Price> {
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
    if provider.moved { None } else { file().models.get(undated(model)).copied() }
}

/// Returns a model's name without the date of its snapshot: `-2025-04-14` or `-20250929`.
fn undated(model: &str) -> &str {
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
    use std::collections::BTreeMap;

    use super::super::config::ModelsConfig;
    use super::super::settings::ClientSettings;
    use super::{file, undated};
    use crate::model::budget::Price;

    fn settings(variables: &[(&str, &str)], config: &str) -> ClientSettings {
        let config: ModelsConfig = serde_yaml::from_str(config).expect("the test's configuration is valid");
        let variables: BTreeMap<String, String> =
            variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        ClientSettings::from_environment(&variables, &config).expect("the test's settings are valid")
    }

    #[test]
    fn the_file_of_prices_names_known_providers_and_every_default_model() {
        for (model, price) in &file().models {
            let (provider, _) = model.split_once('/').expect("a model has a provider");
            assert!(super::super::provider_defaults::ALL.iter().any(|defaults| defaults.name == provider), "{model}");
            assert_eq!(price.problem(), None, "{model}");
            assert_eq!(undated(model), model);
        }
        for defaults in super::super::provider_defaults::ALL {
            let Some(model) = defaults.model.map(|model| format!("{}/{model}", defaults.name)) else { continue };
            assert!(
                file().models.contains_key(&model),
                "{model} is what people get who choose nothing, and has no price"
            );
            assert!(super::super::window(&BTreeMap::new(), &model).is_some(), "{model} has no window");
        }
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
            "prices: {openai/gpt-4.1: {input: 7, output: 9}, lab/qwen: {input: 0.1, output: 0.2}}",
        );
        assert_eq!((input(&own, "openai/gpt-4.1"), input(&own, "lab/qwen")), (Some(7.0), Some(0.1)));
        assert_eq!(plain.price("local/any"), Some(Price::FREE));
    }
}
