//! llama.cpp's server, with a model that thinks.
//!
//! By its README (00dc805, 2026-11) and its source (006639c server-common.cpp, 2026), and by the sources of each rule. What it does
//! not know it passes over.

use serde_json::Value;

use super::rules::{Key, Rule, Rules, Test};
use super::voice::{PLAIN, Thought, Voice};
use super::{errors, list, schemas, turns};

const SOURCE: &str = "ggml-org/llama.cpp 006639c server-common.cpp, 2026";

fn contentless(body: &Value) -> Option<String> {
    let mut others = list(&body["messages"]).iter().filter(|message| message["role"] != "assistant");
    others.find(|message| message["content"].is_null()).map(|_| String::new())
}

fn two_at_the_end(body: &Value) -> Option<String> {
    let messages = list(&body["messages"]);
    let last = &messages[messages.len().saturating_sub(2)..];
    (last.len() == 2 && last.iter().all(|message| message["role"] == "assistant")).then(String::new)
}

/// An assistant without a content, not even an empty one, and without calls.
fn silent(body: &Value) -> Option<String> {
    let mut assistants = list(&body["messages"]).iter().filter(|message| message["role"] == "assistant");
    assistants.find(|message| message["content"].is_null() && message["tool_calls"].is_null()).map(|_| String::new())
}

fn prefilled_while_thinking(body: &Value) -> Option<String> {
    turns::prefilled(body).filter(|_| body["reasoning_effort"] != "none")
}

pub(super) const RULES: Rules = Rules {
    name: "llama.cpp",
    host: "",
    path: "/v1/chat/completions",
    key: Key { header: "", before: "", status: 401, says: "" },
    models: ["qwen3", "gemma-4"],
    no_model: Rule::new(
        Test::Has(&["/model"]),
        "model '{model}' not found",
        r#"{"model": "llama3"}"#,
        "README 00dc805 (router mode), 2026-11: that there must be one of that name",
    )
    .status(404),
    errors: errors::llama_cpp,
    good: r#"{"model": "qwen3", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.2, "max_tokens": 4000,
        "stop": ["END"], "seed": 1, "reasoning_effort": "none", "tool_choice": "required", "top_k": 3,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks",
            "parameters": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-z]+$"}}}}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"type": "object",
            "properties": {"a": {"type": "string", "maxLength": 9}}, "required": ["a"]}}}}"#,
    rules: &[
        Rule::new(
            Test::By(contentless),
            "All non-assistant messages must contain 'content'",
            r#"{"messages": [{"role": "user"}]}"#,
            SOURCE,
        ),
        Rule::new(
            Test::By(silent),
            "Assistant message must contain either 'content' or 'tool_calls'!",
            r#"{"messages": [{"role": "user", "content": "Look."}, {"role": "assistant"}, {"role": "user", "content": "Well?"}]}"#,
            SOURCE,
        ),
        Rule::new(
            Test::By(two_at_the_end),
            "Cannot have 2 or more assistant messages at the end of the list.",
            r#"{"messages": [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "I"},
                {"role": "assistant", "content": "see"}]}"#,
            SOURCE,
        ),
        Rule::new(
            Test::By(prefilled_while_thinking),
            "Assistant response prefill is incompatible with enable_thinking.",
            r#"{"reasoning_effort": null, "messages": [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "I see"}]}"#,
            SOURCE,
        ),
        Rule::new(
            Test::Not("/response_format/type", &["\"text\"", "\"json_object\"", "\"json_schema\""]),
            "response_format type must be one of \"text\" or \"json_object\", but got: {}",
            r#"{"response_format": {"type": "grammar"}}"#,
            SOURCE,
        ),
        Rule::new(
            Test::By(schemas::no_grammar),
            "Failed to initialize samplers: failed to parse grammar",
            r#"{"response_format": {"json_schema": {"schema": {"properties": {"a": {"maxLength": 20000}}}}}}"#,
            "lidge-jun/opencodex#2135, 2026-08; QwenLM/qwen-code#10435, 2026-08; ggml-org/llama.cpp#22396",
        ),
        Rule::new(
            Test::By(schemas::no_grammar),
            "Failed to initialize samplers: failed to parse grammar",
            r#"{"tools": [{"type": "function", "function": {"name": "look", "description": "Looks",
                "parameters": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^\\d+$"}}}}}]}"#,
            "QwenLM/qwen-code#10530, 2026-08: schemas of tools as well",
        ),
    ],
    voice: Voice { thinks: 300, unasked: true, thought: Thought::Beside("reasoning_content"), id: ("", 32), ..PLAIN },
};
