//! Tests servers that deviate from OpenAI's Chat Completions API.

use serde_json::json;

use super::*;
use crate::host::llm::families::ModelProfile;
use crate::host::llm::{ClientSettings, ModelsConfig};
use crate::host::secret::Secret;

/// Assembles a reply from these chunks.
fn assemble(chunks: &[serde_json::Value]) -> Result<ChatReply, AttemptError> {
    let settings = ClientSettings::from_environment(&Default::default(), &ModelsConfig::default()).unwrap();
    let key = Secret::new("k");
    let context = CallContext {
        provider: &settings.providers[0],
        model: "m",
        key: key.as_ref(),
        profile: &ModelProfile::default(),
        marks: Default::default(),
    };
    let request = crate::host::llm::tests::request("openai/m", "x");
    let mut reply = Box::new(Reply::new(context, &request));
    for chunk in chunks {
        reply.push_event(&chunk.to_string(), &mut |_| {})?;
    }
    reply.push_event("[DONE]", &mut |_| {})?;
    reply.into_reply()
}

fn delta(delta: serde_json::Value, finish: Option<&str>) -> serde_json::Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn piece(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> serde_json::Value {
    let function = json!({"name": name, "arguments": arguments});
    delta(json!({"tool_calls": [{"index": index, "id": id, "function": function}]}), None)
}

fn calls(reply: &ChatReply) -> Vec<(&str, &str, &str)> {
    reply.tool_calls.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())).collect()
}

#[test]
fn tool_calls_are_told_apart_with_and_without_an_index() {
    let expected = vec![("a", "read", "{\"p\":1}"), ("b", "list", "{}")];
    for (case, chunks) in [
        (
            "interleaved by index",
            vec![
                piece(Some(0), Some("a"), Some("read"), ""),
                piece(Some(1), Some("b"), Some("list"), ""),
                piece(Some(0), None, None, "{\"p\""),
                piece(Some(1), None, None, "{}"),
                piece(Some(0), Some(""), Some(""), ":1}"),
            ],
        ),
        (
            "index 0 for each",
            vec![
                piece(Some(0), Some("a"), Some("read"), "{\"p\":"),
                piece(Some(0), None, None, "1}"),
                piece(Some(0), Some("b"), Some("list"), "{}"),
            ],
        ),
        (
            "no index",
            vec![
                piece(None, Some("a"), Some("read"), "{\"p\":"),
                piece(None, None, None, "1}"),
                piece(None, Some("b"), Some("list"), ""),
            ],
        ),
        (
            "id and name with each piece",
            vec![
                piece(Some(3), Some("a"), Some("read"), "{\"p\":"),
                piece(Some(3), Some("a"), Some("read"), "1}"),
                piece(Some(4), Some("b"), Some("list"), "{}"),
            ],
        ),
    ] {
        let reply = assemble(&chunks).unwrap();
        assert_eq!((calls(&reply), reply.finish), (expected.clone(), FinishReason::ToolCalls), "{case}");
    }
}

#[test]
fn missing_ids_are_made_up_and_missing_names_are_not() {
    let reply = assemble(&[piece(Some(0), None, Some("read"), "{}"), delta(json!({}), Some("stop"))]).unwrap();
    assert_eq!((calls(&reply), reply.finish), (vec![("call_0", "read", "{}")], FinishReason::ToolCalls));
    assert!(assemble(&[piece(Some(0), Some("a"), None, "{}")]).is_err());
}

#[test]
fn counts_and_reasons_are_found_where_servers_put_them() {
    for counts in [
        json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}}),
        json!({"choices": null, "x_groq": {"usage": {"prompt_tokens": 9, "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 4}}}}),
    ] {
        let reply = assemble(&[delta(json!({"content": "x"}), Some("eos")), counts]).unwrap();
        assert_eq!(
            (reply.usage, reply.finish),
            (Usage { input: 9, output: 2, cached: 4, ..Usage::default() }, FinishReason::Stop)
        );
    }
    // The only sign of the end is [DONE].
    assert_eq!(assemble(&[delta(json!({"content": "x"}), None)]).unwrap().finish, FinishReason::Stop);
    for broken in [delta(json!({}), Some("error")), json!({"choices": 1}), json!({"error": {"message": "x"}})] {
        assert_eq!(assemble(&[broken]).unwrap_err().failure.code, crate::error::Code::ModelBroken);
    }
}

/// A search among all calls follows each piece, so a reply of a million calls would take hours.
#[test]
fn a_reply_has_a_thousand_tool_calls_and_no_more() {
    let named =
        |index: u64| json!({"index": index, "id": format!("c{index}"), "function": {"name": "f", "arguments": "{}"}});
    let of = |count: u64| assemble(&[delta(json!({"tool_calls": (0..count).map(named).collect::<Vec<_>>()}), None)]);
    assert_eq!(of(1000).map_err(|_| ()).unwrap().tool_calls.len(), 1000);
    assert!(of(20_000).is_err());
}
