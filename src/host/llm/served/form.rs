//! Reads the forms in which providers list their models. All are alike: an array of objects with a name, with facts under
//! names of each provider's own.
//!
//! | who | array | name | facts |
//! |---|---|---|---|
//! | OpenAI, xAI, DeepSeek, Azure | `data` | `id` | |
//! | Anthropic | `data` | `id` | `max_input_tokens`, `retires_at`, `lifecycle`; pages: `has_more`, `last_id` |
//! | Gemini | `data` | `id`, with `models/` before it | |
//! | OpenRouter | `data` | `id` | `context_length`, `pricing` in US dollars a token, as texts; `expiration_date` |
//! | Groq | `data` | `id` | `context_window`, `active` |
//! | Mistral | `data` | `id` | `max_context_length`, `deprecation` |
//! | vLLM | `data` | `id` | `max_model_len` |
//! | llama.cpp | `data` | `id` | `meta.n_ctx_train` |
//! | Ollama | `models` | `name` | |
//! | Together | the whole answer | `id` | `context_length` |

use serde_json::Value;

use super::ServedModel;
use crate::model::budget::Price;
use crate::model::text::line;

/// The longest name of a model, in bytes.
const LONGEST_NAME: usize = 200;

/// The largest window that is believed, in tokens.
const LARGEST_WINDOW: u64 = 1_000_000_000;

/// The members that may hold a window, and those that may hold the day on which a model ends.
const WINDOWS: &[&str] = &[
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/max_input_tokens",
    "/max_model_len",
    "/meta/n_ctx_train",
];
const ENDS: &[&str] = &["retires_at", "deprecation", "expiration_date"];

/// One page of a list.
pub(super) struct Page {
    pub(super) models: Vec<ServedModel>,
    /// The name after which the next page begins.
    pub(super) next: Option<String>,
}

/// Returns what a body lists; `None` if it is no list.
pub(super) fn read(body: &[u8]) -> Option<Page> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let listed = match &answer {
        Value::Array(listed) => listed,
        _ => ["data", "models"].iter().find_map(|name| answer.get(name)?.as_array())?,
    };
    let next = match answer.get("has_more") {
        Some(Value::Bool(true)) => answer.get("last_id").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    Some(Page { models: listed.iter().filter_map(model).collect(), next })
}

fn model(entry: &Value) -> Option<ServedModel> {
    if entry.get("active") == Some(&Value::Bool(false))
        || entry.get("lifecycle").is_some_and(|cycle| cycle == "retired")
    {
        return None;
    }
    let name = ["id", "name"].iter().find_map(|member| entry.get(member)?.as_str())?;
    let name = name.strip_prefix("models/").unwrap_or(name);
    // Such a name was made to be shown and not to be called.
    if name.is_empty() || name.len() > LONGEST_NAME || name != name.trim() || line(name) != name {
        return None;
    }
    let window = WINDOWS.iter().find_map(|member| entry.pointer(member)?.as_u64());
    let day = |text: &str| chrono::NaiveDate::parse_from_str(text.get(..10)?, "%Y-%m-%d").ok();
    let retires = ENDS.iter().find_map(|member| day(entry.get(member)?.as_str()?));
    Some(ServedModel {
        name: name.to_owned(),
        window: window.filter(|window| (1..=LARGEST_WINDOW).contains(window)),
        price: entry.get("pricing").and_then(price),
        retires: retires.map(|day| day.to_string()),
    })
}

/// Returns a price that is told in US dollars a token, as texts; numbers mean something else at each provider.
fn price(pricing: &Value) -> Option<Price> {
    let each = |member: &str| pricing.get(member)?.as_str()?.parse::<f64>().ok();
    // What is given a token is shown a million, to nine places: 0.00000055 is 0.55.
    let million = |member: &str| each(member).map(|dollars| (dollars * 1e15).round() / 1e9);
    let (input, output) = (million("prompt")?, million("completion")?);
    let price = Price { input, output, cached: million("input_cache_read"), ..Price::FREE };
    price.problem().is_none().then_some(price)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(body: &str) -> Vec<ServedModel> {
        read(body.as_bytes()).expect("it is a list").models
    }

    #[test]
    fn each_provider_s_form_is_read() {
        let plain = |name: &str| ServedModel { name: name.to_owned(), window: None, price: None, retires: None };
        let wide = |name: &str, window| ServedModel { window: Some(window), ..plain(name) };
        for (body, expected) in [
            (r#"{"object":"list","data":[{"id":"gpt-6.1-terra","object":"model"}]}"#, vec![plain("gpt-6.1-terra")]),
            (r#"{"data":[{"id":"models/gemini-3.8-flash"}]}"#, vec![plain("gemini-3.8-flash")]),
            (r#"{"models":[{"name":"qwen3:4b","size":1}]}"#, vec![plain("qwen3:4b")]),
            (
                r#"{"data":[{"id":"a","context_window":131072,"active":true},{"id":"b","active":false}]}"#,
                vec![wide("a", 131_072)],
            ),
            (r#"{"data":[{"id":"/m.gguf","meta":{"n_ctx_train":32768}}]}"#, vec![wide("/m.gguf", 32_768)]),
            (r#"[{"id":"t","context_length":9}]"#, vec![wide("t", 9)]),
            (
                r#"{"data":[{"id":"claude-old","max_input_tokens":200000,"lifecycle":"deprecated","retires_at":"2026-11-30T00:00:00Z"},
                    {"id":"claude-gone","lifecycle":"retired"}]}"#,
                vec![ServedModel { retires: Some("2026-11-30".to_owned()), ..wide("claude-old", 200_000) }],
            ),
        ] {
            assert_eq!(models(body), expected, "{body}");
        }
        let body = r#"{"data":[{"id":"a/b","pricing":{"prompt":"0.00000055","completion":"0.000002","input_cache_read":"0.00000005"}}]}"#;
        assert_eq!(models(body)[0].price, Some(Price { input: 0.55, output: 2.0, cached: Some(0.05), ..Price::FREE }));
    }

    #[test]
    fn what_is_hostile_or_odd_is_left_out() {
        let body = r#"{"data":[{"id":"a\u001b[31m"},{"id":"\u202eb"},{"id":""},{"id":7},{},null,{"id":" c"},{"id":"d\ne"},
            {"id":"ok","context_length":0,"pricing":{"prompt":"-1","completion":"-1"},"deprecation":"soon\u001b"},
            {"id":"also","context_length":18446744073709551615,"pricing":{"prompt":"NaN","completion":"1e999"}}]}"#;
        let found = models(body);
        assert_eq!(found.iter().map(|model| model.name.as_str()).collect::<Vec<_>>(), ["ok", "also"]);
        assert!(found.iter().all(|model| model.window.is_none() && model.price.is_none() && model.retires.is_none()));
        assert!(models(&format!(r#"{{"data":[{{"id":"{}"}}]}}"#, "x".repeat(201))).is_empty());
        for body in ["", "17", "{}", "<html>", r#"{"data":{}}"#, &"[".repeat(10_000)] {
            assert!(read(body.as_bytes()).is_none(), "{body:.20}");
        }
    }
}
