//! Amazon Bedrock on OpenAI's wire with gpt-oss, which thinks within its text.
//!
//! By docs.aws.amazon.com (bedrock/latest/userguide/apis, structured-output, 2026), litellm@1.109.1 (bedrock_mantle, 2026-11), and by
//! the sources of each rule.

use super::errors;
use super::rules::{Key, Rule, Rules, Test};
use super::voice::{PLAIN, Thought, Voice};

pub(super) const KEY: Key = Key {
    header: "authorization",
    before: "Bearer ",
    status: 403,
    says: "Authentication failed: Please make sure your API Key is valid.",
};

pub(super) const RULES: Rules = Rules {
    name: "Bedrock, gpt-oss",
    host: "bedrock-runtime.us-east-1.amazonaws.com",
    path: "/openai/v1/chat/completions",
    key: KEY,
    models: ["openai.gpt-oss-120b-1:0", "openai.gpt-oss-20b-1:0"],
    no_model: Rule::new(
        Test::Has(&["/model"]),
        "The provided model identifier is invalid.",
        r#"{"model": "gpt-oss-120b"}"#,
        "long known",
    ),
    errors: errors::bedrock,
    good: r#"{"model": "openai.gpt-oss-120b-1:0", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.2,
        "max_tokens": 4000, "reasoning_effort": "low", "tool_choice": "required",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}}}]}"#,
    rules: &[
        Rule::new(
            Test::Not("/n", &["1"]),
            "n must be 1",
            r#"{"n": 2}"#,
            "litellm@1.109.1 llms/bedrock_mantle/chat, 2026-11: that it is refused",
        )
        .param("n"),
        Rule::new(
            Test::Not("/reasoning_effort", &["\"low\"", "\"medium\"", "\"high\""]),
            "reasoning_effort must be one of low, medium, high",
            r#"{"reasoning_effort": "none"}"#,
            "groq@1.7.0, 2026-11: what the model takes",
        )
        .param("reasoning_effort"),
    ],
    voice: Voice { thinks: 300, unasked: true, thought: Thought::InText, id: ("chatcmpl-tool-", 24), ..PLAIN },
};
