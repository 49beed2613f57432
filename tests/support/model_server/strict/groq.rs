//! Groq's chat completions with gpt-oss, which thinks in a member of its own.
//!
//! By console.groq.com (docs/reasoning, docs/structured-outputs, docs/openai, 2026), groq@1.7.0 (2026-11), and by the sources of
//! each rule.

use super::rules::{Key, Rule, Rules, Test};
use super::voice::{Counts, PLAIN, Thought, Voice};
use super::{errors, schemas};

const ASSISTANT: &[&str] = &["role", "content", "name", "tool_calls", "reasoning"];

pub(super) const RULES: Rules = Rules {
    name: "Groq, gpt-oss",
    host: "api.groq.com",
    path: "/openai/v1/chat/completions",
    key: Key { header: "authorization", before: "Bearer ", status: 401, says: "Invalid API Key" },
    models: ["openai/gpt-oss-120b", "openai/gpt-oss-20b"],
    no_model: Rule::new(
        Test::Has(&["/model"]),
        "The model `{model}` does not exist or you do not have access to it.",
        r#"{"model": "llama-3.3-70b-versatile"}"#,
        "long known; that model is off since 2026-08-16",
    )
    .status(404)
    .code("model_not_found"),
    errors: errors::groq,
    good: r#"{"model": "openai/gpt-oss-120b", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.2,
        "stop": ["END"], "seed": 1, "max_completion_tokens": 4000, "reasoning_effort": "low", "tool_choice": "required",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."},
            {"role": "assistant", "content": null, "reasoning": "So.", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}}}]}"#,
    rules: &[
        Rule::new(
            Test::StrangeInMessage("assistant", ASSISTANT),
            "'messages.{index}' : for 'role:assistant' the following must be satisfied[('messages.{index}' : property '{name}' is unsupported)]",
            r#"{"messages": [{"role": "user", "content": "Look."},
                {"role": "assistant", "content": "a ledger", "reasoning_content": "So."}]}"#,
            "freellmapi#1070, 2026-08; menloresearch/jan#8136",
        ),
        Rule::new(
            Test::Has(&["/logprobs", "/logit_bias", "/top_logprobs"]),
            "property '{}' is unsupported",
            r#"{"logit_bias": {}}"#,
            "console.groq.com/docs/openai, 2026: that it is 400",
        ),
        Rule::new(
            Test::Not("/n", &["1"]),
            "'n' : number must be at most 1",
            r#"{"n": 2}"#,
            "console.groq.com/docs/openai, 2026: that it is 400",
        ),
        Rule::new(
            Test::Not("/reasoning_effort", &["\"low\"", "\"medium\"", "\"high\""]),
            "`reasoning_effort` must be one of `low`, `medium`, or `high`",
            r#"{"reasoning_effort": "none"}"#,
            "pydantic-ai-slim@2.68.0 models/groq.py, 2026-11: that it is 400",
        ),
        Rule::new(
            Test::Both(&Test::Has(&["/response_format/json_schema"]), &Test::Has(&["/tools"])),
            "json mode cannot be combined with tool/function calling",
            r#"{"response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"type": "object"}}}}"#,
            "litellm@1.109.1 llms/groq/chat/transformation.py, 2026-11",
        ),
        Rule::new(
            Test::By(schemas::strict_reply),
            "invalid JSON schema for response_format: 'reply': {}",
            r#"{"tools": null, "tool_choice": null, "response_format": {"type": "json_schema", "json_schema": {"name": "reply",
                "strict": true, "schema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": []}}}}"#,
            "console.groq.com/docs/structured-outputs, 2026: that it is 400",
        ),
        Rule::new(
            Test::Not("/tool_choice", &["\"none\"", "\"auto\"", "\"required\""]),
            "Only allowed string values for 'tool_choice' are none, auto, and required",
            r#"{"tool_choice": "any"}"#,
            "brianpetro/obsidian-smart-connections#942",
        ),
    ],
    voice: Voice { thinks: 300, unasked: true, thought: Thought::Beside("reasoning"), counts: Counts::XGroq, ..PLAIN },
};
