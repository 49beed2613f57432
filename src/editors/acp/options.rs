//! What a session can be set to beside its mode: the params of the mode's flow that are one of a few words, such as who asks.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{SessionConfigOption, SessionConfigSelectOption};
use serde_json::{Map, Value};

use crate::editors::offer::Offer;
use crate::model::text::{clean, excerpt};

/// What stands for a param that is left to its flow.
const LEFT: &str = "(default)";

/// What was chosen: by flow and param, the word.
pub(super) type Chosen = BTreeMap<(String, String), String>;

/// Returns the options of a flow, with what is chosen.
pub(super) fn of(offer: &Offer, chosen: &Chosen) -> Vec<SessionConfigOption> {
    let options = offer.main.params.iter().filter_map(|(name, param)| {
        let words = words(offer, name)?;
        let default =
            param.default.as_ref().and_then(Value::as_str).filter(|default| words.iter().any(|word| word == default));
        let left = default.is_none().then_some(LEFT);
        let all = left.into_iter().chain(words.iter().map(String::as_str));
        let values: Vec<SessionConfigSelectOption> =
            all.map(|word| SessionConfigSelectOption::new(word.to_owned(), clean(word))).collect();
        let now = chosen.get(&(offer.name.clone(), name.clone())).map(String::as_str).or(default).unwrap_or(LEFT);
        let option = SessionConfigOption::select(name.clone(), name.replace('_', " "), now.to_owned(), values);
        Some(option.description(excerpt(&clean(&param.help))))
    });
    options.collect()
}

/// Chooses a word.
///
/// # Errors
///
/// Says what there is to choose from.
pub(super) fn choose(offer: &Offer, chosen: &mut Chosen, name: &str, word: &str) -> Result<(), String> {
    let words = words(offer, name).ok_or_else(|| format!("{} has no option `{}`", offer.name, excerpt(name)))?;
    let key = (offer.name.clone(), name.to_owned());
    if word == LEFT {
        chosen.remove(&key);
        return Ok(());
    }
    if !words.iter().any(|known| known == word) {
        return Err(format!("`{}` is none of {}", excerpt(word), words.join(", ")));
    }
    chosen.insert(key, word.to_owned());
    Ok(())
}

/// Adds what is chosen to arguments that do not say it.
pub(super) fn add(offer: &Offer, chosen: &Chosen, arguments: &mut Map<String, Value>) {
    let is_main = offer.command_member().is_none_or(|member| !arguments.contains_key(member));
    for ((flow, name), word) in chosen.iter().filter(|_| is_main) {
        if *flow == offer.name && !arguments.contains_key(name) {
            arguments.insert(name.clone(), Value::from(word.as_str()));
        }
    }
}

/// Returns what a param can be, where that is one of a few words and no command.
fn words<'o>(offer: &'o Offer, name: &str) -> Option<&'o [String]> {
    let param = offer.main.params.get(name).filter(|param| !param.many && !offer.typed.contains(name))?;
    let words = if param.choices.is_empty() { offer.personas.get(name)? } else { &param.choices };
    (!words.is_empty()).then_some(words.as_slice())
}
