//! Ollama under `/v1`, with a model that thinks. Nearly all that it does not know it passes over.
//!
//! By its source (ollama/ollama fb30760, 2026-08: openai/openai.go, middleware/openai.go, server/routes.go).

use serde_json::Value;

use super::rules::{Key, Rule, Rules, Test};
use super::voice::{Calls, PLAIN, Thought, Voice, bare_usage};
use super::{errors, list, schemas, turns};

const SOURCE: &str = "ollama/ollama fb30760 openai/openai.go, 2026-08";

fn contentless(body: &Value) -> Option<String> {
    let mut bare = list(&body["messages"]).iter().filter(|one| one["content"].is_null() && one["tool_calls"].is_null());
    bare.next().map(|_| String::new())
}

fn empty(body: &Value) -> Option<String> {
    list(&body["messages"]).is_empty().then(String::new)
}

fn linked_image(body: &Value) -> Option<String> {
    let parts = list(&body["messages"]).iter().flat_map(|message| list(&message["content"]));
    let mut urls = parts.filter_map(|part| part["image_url"]["url"].as_str().or(part["image_url"].as_str()));
    urls.find(|url| url.starts_with("http")).map(str::to_owned)
}

pub(super) const RULES: Rules = Rules {
    name: "Ollama",
    host: "",
    path: "/v1/chat/completions",
    key: Key { header: "", before: "", status: 401, says: "" },
    models: ["qwen3:8b", "gpt-oss:20b"],
    no_model: Rule::new(
        Test::Has(&["/model"]),
        "model '{model}' not found",
        r#"{"model": "llama3"}"#,
        "ollama/ollama fb30760 server/routes.go, 2026-08",
    )
    .status(404),
    errors: errors::ollama,
    good: r#"{"model": "qwen3:8b", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.2, "max_tokens": 4000,
        "stop": ["END"], "seed": 1, "reasoning_effort": "none", "tool_choice": "required", "top_k": 3,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"type": "object",
            "properties": {"a": {"type": "string", "maxLength": 9}}, "required": ["a"]}}}}"#,
    rules: &[
        Rule::new(Test::By(empty), "[] is too short - 'messages'", r#"{"messages": []}"#, SOURCE),
        Rule::new(
            Test::By(contentless),
            "invalid message content type: <nil>",
            r#"{"messages": [{"role": "user", "content": "Look."}, {"role": "assistant", "content": null}]}"#,
            SOURCE,
        ),
        Rule::new(
            Test::By(turns::torn_arguments),
            "invalid tool call arguments",
            r#"{"messages": [{"role": "user", "content": "Look."},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{\"a\":"}}]},
                {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}]}"#,
            SOURCE,
        ),
        Rule::new(
            Test::Not(
                "/reasoning_effort",
                &["\"none\"", "\"minimal\"", "\"low\"", "\"medium\"", "\"high\"", "\"xhigh\"", "\"ultra\"", "\"max\""],
            ),
            "invalid reasoning value: \"{}\" (must be \"none\", \"minimal\", \"low\", \"medium\", \"high\", \"xhigh\", \"ultra\", or \"max\")",
            r#"{"reasoning_effort": "auto"}"#,
            SOURCE,
        ),
        Rule::new(
            Test::By(linked_image),
            "image URLs are not currently supported, please use base64 encoded data instead",
            r#"{"messages": [{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "https://pictures.example/a.png"}}]}]}"#,
            SOURCE,
        ),
        Rule::new(
            Test::By(schemas::no_grammar),
            "Failed to initialize samplers: failed to parse grammar",
            r#"{"response_format": {"json_schema": {"schema": {"properties": {"a": {"maxLength": 20000}}}}}}"#,
            "ggml-org/llama.cpp#22396; QwenLM/qwen-code#10435, 2026-08: its grammars are those of llama.cpp",
        ),
    ],
    voice: Voice {
        thinks: 300,
        unasked: true,
        thought: Thought::Beside("reasoning"),
        calls: Calls::Whole,
        id: ("call_", 8),
        usage: bare_usage,
        ..PLAIN
    },
};
