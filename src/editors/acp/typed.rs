//! What a prompt says: a slash command with its options, or plain words; and what goes with it, which is never a command.

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource};
use serde_json::{Map, Value, json};

use crate::editors::offer::{Offer, OfferedCommand};
use crate::error::{Code, Failure};
use crate::model::param::Param;
use crate::model::text::excerpt;

/// A prompt.
#[derive(Default)]
pub(super) struct Prompted {
    /// What the person has typed, with the paths of files that they named.
    pub typed: String,
    /// The texts that go with it.
    pub shown: String,
}

impl Prompted {
    pub(super) fn of(prompt: &[ContentBlock]) -> Prompted {
        let (mut typed, mut shown) = (Vec::new(), Vec::new());
        for block in prompt {
            match block {
                ContentBlock::Text(text) => typed.push(text.text.as_str()),
                ContentBlock::ResourceLink(link) => {
                    let path = link.uri.strip_prefix("file://").unwrap_or(&link.uri);
                    // It stands among words, and begins no option; what begins a prompt is typed.
                    let is_plain = !typed.is_empty() && !path.starts_with('-') && !path.contains(char::is_whitespace);
                    if is_plain { typed.push(path) } else { shown.push(path) }
                }
                ContentBlock::Resource(embedded) => {
                    if let EmbeddedResourceResource::TextResourceContents(text) = &embedded.resource {
                        shown.push(text.text.as_str());
                    }
                }
                _ => {}
            }
        }
        Prompted { typed: typed.join(" ").trim().to_owned(), shown: shown.join("\n\n").trim().to_owned() }
    }

    /// Returns a part of what was typed, with what goes with it behind it.
    pub(super) fn with_shown(&self, typed: &str) -> String {
        [typed, &self.shown].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}

/// Returns the arguments that stand behind a slash command: `--name=value` and `--name` first, then the text.
///
/// # Errors
///
/// `usage` if there is no such option, or a value is none of its param's.
pub(super) fn arguments(offer: &Offer, text: &str, prompted: &Prompted) -> Result<Map<String, Value>, Failure> {
    let wrong = |why: String| Failure::new(Code::Usage, why);
    let mut arguments = Map::new();
    let (mut rest, mut own): (&str, &OfferedCommand) = (text.trim(), &offer.main);
    let first = rest.split_whitespace().next().unwrap_or_default();
    if let (Some(member), Some(command)) = (offer.command_member(), offer.commands.get(first)) {
        arguments.insert(member.to_owned(), first.into());
        (rest, own) = (rest[first.len()..].trim_start(), command);
    }
    while let Some(option) = rest.strip_prefix("--") {
        let (name, value, behind) = option_in(option);
        rest = behind.trim_start();
        let (is_no, (name, param)) =
            match (param_of(own, name), name.strip_prefix("no-").and_then(|name| param_of(own, name))) {
                (Some(found), _) => (false, found),
                (None, Some(found)) => (true, found),
                (None, None) => return Err(wrong(format!("{} takes no --{}", offer.name, excerpt(name)))),
            };
        let value = match value {
            Some(value) => param.parse(value).map_err(|why| wrong(format!("--{name} {why}")))?,
            None => match &param.alone {
                Some(alone) => param.parse(alone).map_err(|why| wrong(format!("--{name} {why}")))?,
                None => Value::from(!is_no),
            },
        };
        match (param.many, arguments.get_mut(name)) {
            (true, Some(Value::Array(items))) => items.push(value),
            (true, _) => drop(arguments.insert(name.clone(), json!([value]))),
            (false, _) => drop(arguments.insert(name.clone(), value)),
        }
    }
    let positional = own.params.iter().filter(|(_, param)| param.positional);
    let first = positional.min_by(|a, b| a.1.order.unwrap_or(f64::MAX).total_cmp(&b.1.order.unwrap_or(f64::MAX)));
    let whole = prompted.with_shown(rest);
    match first {
        _ if whole.is_empty() => {}
        Some((name, param)) => {
            let items = || rest.split_whitespace().map(Value::from).collect();
            arguments.insert(name.clone(), if param.many { Value::Array(items()) } else { Value::from(whole) });
        }
        None if rest.is_empty() => {}
        None => return Err(wrong(format!("{} takes no text: {}", offer.name, excerpt(rest)))),
    }
    Ok(arguments)
}

/// Returns the param whose option this is.
fn param_of<'o>(own: &'o OfferedCommand, option: &str) -> Option<(&'o String, &'o Param)> {
    own.params.iter().find(|(name, _)| name.replace('_', "-") == option)
}

/// Splits what begins with an option: its name, its value, which may stand in double quotes, and what is behind it.
fn option_in(text: &str) -> (&str, Option<&str>, &str) {
    let end = text.find(|letter: char| letter == '=' || letter.is_whitespace()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let Some(value) = rest.strip_prefix('=') else { return (name, None, rest) };
    if let Some((quoted, behind)) = value.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
        return (name, Some(quoted), behind);
    }
    let end = value.find(char::is_whitespace).unwrap_or(value.len());
    (name, Some(&value[..end]), &value[end..])
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::ContentBlock;
    use serde_json::json;

    use super::{Prompted, option_in};

    #[test]
    fn an_option_s_value_is_a_word_or_stands_in_quotes() {
        for (text, split) in [
            ("quick tea", ("quick", None, " tea")),
            ("quick", ("quick", None, "")),
            ("who=ada tea", ("who", Some("ada"), " tea")),
            ("test=\"cargo test\" tea", ("test", Some("cargo test"), " tea")),
            ("test=\"open tea", ("test", Some("\"open"), " tea")),
            ("x= tea", ("x", Some(""), " tea")),
        ] {
            assert_eq!(option_in(text), split, "{text}");
        }
    }

    #[test]
    fn what_goes_with_a_prompt_is_no_part_of_what_was_typed() {
        let file = |text: &str| json!({ "type": "resource", "resource": { "uri": "file:///x", "text": text } });
        let link = |uri: &str| json!({ "type": "resource_link", "uri": uri, "name": "x" });
        let typed = |text: &str| json!({ "type": "text", "text": text });
        for (blocks, expected) in [
            (json!([typed("/talk"), file("--test=evil")]), ("/talk", "--test=evil")),
            (json!([file("/talk --test=evil"), typed("hello")]), ("hello", "/talk --test=evil")),
            (json!([typed("look at"), link("file:///a.rs"), typed("now")]), ("look at /a.rs now", "")),
            (json!([typed("/talk"), link("--test=evil")]), ("/talk", "--test=evil")),
            (json!([link("file:///talk"), typed("hello")]), ("hello", "/talk")),
        ] {
            let blocks: Vec<ContentBlock> = serde_json::from_value(blocks).expect("they are blocks");
            let prompted = Prompted::of(&blocks);
            assert_eq!((prompted.typed.as_str(), prompted.shown.as_str()), expected);
        }
    }
}
