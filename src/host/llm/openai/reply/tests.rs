//! Tests servers that deviate from OpenAI's Chat Completions API.

use serde_json::json;

use super::*;
use crate::host::llm::families::ModelProfile;
use crate::host::llm::{ClientSettings, ModelsConfig};
use crate::host::secret::Secret;
use crate::model::chat::Tool;

/// Assembles a reply from these chunks, and returns what was shown of the model's thinking.
fn assemble_with_thought(chunks: &[serde_json::Value]) -> Result<(ChatReply, String), AttemptError> {
    let settings = ClientSettings::from_environment(&Default::default(), &ModelsConfig::default()).unwrap();
    let key = Secret::new("k");
    let context = CallContext {
        provider: &settings.providers[0],
        model: "m",
        key: key.as_ref(),
        profile: &ModelProfile::default(),
        marks: Default::default(),
        wants_thoughts: false,
    };
    let mut request = crate::host::llm::tests::request("openai/m", "x");
    request.tools.extend(serde_json::from_value::<Tool>(json!({"name": "look", "parameters": {}})));
    let mut reply = Box::new(Reply::new(context, &request));
    let mut thought = String::new();
    let mut on_piece = |piece: ReplyPiece<'_>| {
        if let ReplyPiece::Thought(text) = piece {
            thought.push_str(text);
        }
    };
    for chunk in chunks {
        reply.push_event(&chunk.to_string(), &mut on_piece)?;
    }
    reply.push_event("[DONE]", &mut on_piece)?;
    reply.into_reply().map(|reply| (reply, thought))
}

fn assemble(chunks: &[serde_json::Value]) -> Result<ChatReply, AttemptError> {
    assemble_with_thought(chunks).map(|(reply, _)| reply)
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

/// Most servers count what was thought in the reply's tokens, xAI beside them, Gemini in the total alone.
#[test]
fn what_was_thought_is_a_part_of_what_came_wherever_it_is_counted() {
    let usage = |counts: serde_json::Value| {
        let reply = assemble(&[delta(json!({"content": "x"}), Some("stop")), json!({"choices": [], "usage": counts})]);
        let usage = reply.unwrap().usage;
        (usage.input, usage.output, usage.reasoning)
    };
    let counts = |completion: u64, total: u64, reasoning: Option<u64>| {
        json!({"prompt_tokens": 35, "completion_tokens": completion, "total_tokens": total,
            "completion_tokens_details": reasoning.map(|tokens| json!({"reasoning_tokens": tokens}))})
    };
    assert_eq!(usage(counts(40, 75, Some(28))), (35, 40, 28));
    assert_eq!(usage(counts(12, 75, Some(28))), (35, 40, 28), "xAI");
    assert_eq!(usage(counts(12, 109, None)), (35, 74, 62), "Gemini");
    assert_eq!(usage(counts(12, 47, None)), (35, 12, 0));
    assert_eq!(usage(json!({"prompt_tokens": 35, "completion_tokens": 12})), (35, 12, 0));
    // A total that has the cached tokens once more, and one that cannot be.
    let twice =
        json!({"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 67, "prompt_cache_hit_tokens": 20});
    assert_eq!(usage(twice), (35, 12, 0));
    assert_eq!(usage(counts(12, 0, Some(28))), (35, 12, 12));
}

#[test]
fn what_is_thought_is_shown_once_by_whatever_name_it_comes() {
    let shown = |deltas: &[serde_json::Value]| {
        let chunks: Vec<_> = deltas.iter().map(|one| delta(one.clone(), None)).collect();
        let (reply, thought) =
            assemble_with_thought(&[&chunks[..], &[delta(json!({"content": "x"}), Some("stop"))]].concat()).unwrap();
        assert_eq!(reply.text, "x");
        (thought, reply.state.unwrap_or_default())
    };
    let (thought, state) = shown(&[json!({"reasoning_content": "let "}), json!({"reasoning_content": "me"})]);
    assert_eq!((thought.as_str(), state.contains("let me")), ("let me", true));
    let (thought, state) = shown(&[json!({"reasoning": "let "}), json!({"reasoning": "me"})]);
    assert_eq!((thought.as_str(), state.as_str()), ("let me", ""), "who calls it so does not want it back");
    let (thought, _) = shown(&[json!({"reasoning": "let me", "reasoning_content": "let me"})]);
    assert_eq!(thought, "let me");
    let detail = |text: &str| json!([{"type": "reasoning.text", "index": 0, "text": text}]);
    let (thought, state) = shown(&[
        json!({"reasoning": "let ", "reasoning_details": detail("let ")}),
        json!({"reasoning_details": detail("me")}),
        json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "sealed", "index": 0}]}),
    ]);
    assert_eq!(thought, "let me");
    assert!(
        state.contains(r#"{"type":"reasoning.text","index":0,"text":"let me"}"#) && state.contains("sealed"),
        "{state}"
    );
}

/// A search among all calls follows each piece, so a reply of a million calls would take hours.
#[test]
fn a_reply_has_a_thousand_tool_calls_and_no_more() {
    let named =
        |index: u64| json!({"index": index, "id": format!("c{index}"), "function": {"name": "f", "arguments": "{}"}});
    let of = |count: u64| assemble(&[delta(json!({"tool_calls": (0..count).map(named).collect::<Vec<_>>()}), None)]);
    assert_eq!(of(1000).map_err(|_| ()).unwrap().tool_calls.len(), 1000);
    assert!(of(20_000).is_err());
    let details: Vec<_> =
        (0..20_000).map(|index| json!({"type": "reasoning.text", "index": index, "text": "x"})).collect();
    assert!(assemble(&[delta(json!({"reasoning_details": details}), None)]).is_err());
}
