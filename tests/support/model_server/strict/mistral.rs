//! Mistral's chat completions with Large 4, whose thoughts are parts of its content. What it does not know it refuses.
//!
//! By mistralai@3.7.0 (models/chatcompletionrequest.py, 2026-11), @ai-sdk/mistral 3.0.69, and by the sources of each rule.

use super::rules::{Key, Rule, Rules, Test};
use super::voice::{Calls, Counts, PLAIN, Thought, Voice};
use super::{errors, turns};

const MEMBERS: &[&str] = &[
    "model",
    "messages",
    "frequency_penalty",
    "guardrails",
    "max_tokens",
    "metadata",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_mode",
    "random_seed",
    "reasoning_effort",
    "response_format",
    "safe_prompt",
    "service_tier",
    "stop",
    "stream",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
];

const ASSISTANT: &[&str] = &["role", "content", "tool_calls", "prefix"];

pub(super) const RULES: Rules = Rules {
    name: "Mistral",
    host: "api.mistral.ai",
    path: "/v1/chat/completions",
    key: Key { header: "authorization", before: "Bearer ", status: 401, says: "Unauthorized" },
    models: ["mistral-large-4", "mistral-medium-latest"],
    no_model: Rule::new(
        Test::Has(&["/model"]),
        "Invalid model: {model}",
        r#"{"model": "mistral-large-2411"}"#,
        "models.dev, 2026-11: that it is 400",
    )
    .code("1500"),
    errors: errors::mistral,
    good: r#"{"model": "mistral-large-4", "stream": true, "temperature": 0.2, "max_tokens": 4000, "random_seed": 1,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "So."}]}], "tool_calls": [
                {"id": "abcdefgh1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "abcdefgh1", "content": "a ledger"}],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}}}],
        "tool_choice": "required",
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "strict": true, "schema": {"type": "object",
            "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}}}}"#,
    rules: &[
        Rule::new(
            Test::Strange(MEMBERS),
            "Extra inputs are not permitted",
            r#"{"max_completion_tokens": 32000}"#,
            "editor-code-assistant/eca#231, 2026-02; BerriAI/litellm#30835, 2026-06; stream_options: likely, the type has none",
        )
        .status(422)
        .param("{}"),
        Rule::new(
            Test::StrangeInMessage("assistant", ASSISTANT),
            "Extra inputs are not permitted",
            r#"{"messages": [{"role": "user", "content": "Look."},
                {"role": "assistant", "content": "a ledger", "reasoning_content": "So."}, {"role": "user", "content": "Well?"}]}"#,
            "php-mistral#76, 2025-11; BerriAI/litellm#30835, 2026-06",
        )
        .status(422)
        .param("messages.{}"),
        Rule::new(
            Test::By(turns::user_behind_tool),
            "Unexpected role 'user' after role 'tool'",
            r#"{"messages": [{"role": "user", "content": "Look."},
                {"role": "assistant", "content": "", "tool_calls": [
                    {"id": "abcdefgh1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "abcdefgh1", "content": "a ledger"}, {"role": "user", "content": "Well?"}]}"#,
            "datapizza-labs/datapizza-ai#98, 2025-12",
        )
        .code("3230"),
        Rule::new(
            Test::By(turns::prefilled),
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
            r#"{"messages": [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "I see"}]}"#,
            "0xPlaygrounds/rig#1130, 2025-12",
        )
        .code("3230"),
        Rule::new(
            Test::By(turns::unanswered),
            "Not the same number of function calls and responses",
            r#"{"messages": [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "", "tool_calls": [
                {"id": "abcdefgh1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
                {"role": "assistant", "content": "a ledger"}, {"role": "user", "content": "Well?"}]}"#,
            "mistralai/client-ts#106",
        )
        .code("3230"),
        Rule::new(
            Test::By(turns::silent),
            "Assistant message must have either content or tool_calls, but not none.",
            r#"{"messages": [{"role": "user", "content": "Look."}, {"role": "assistant", "content": ""},
                {"role": "user", "content": "Well?"}]}"#,
            "litellm@1.109.1 llms/mistral, 2026-11: likely",
        )
        .code("3240"),
        Rule::new(
            Test::By(turns::id_of_other_form),
            "Tool call id was {} but must be a-z, A-Z, 0-9, with a length of 9.",
            r#"{"messages": [{"role": "user", "content": "Look."},
                {"role": "assistant", "content": "", "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}]}"#,
            "pydantic-ai-slim@2.68.0 profiles/mistral.py (pydantic/pydantic-ai#9096), 2026-11",
        )
        .code("3280"),
    ],
    voice: Voice {
        thinks: 100,
        unasked: true,
        thought: Thought::Parts,
        calls: Calls::Whole,
        id: ("", 9),
        counts: Counts::WithTheLast,
        ..PLAIN
    },
};
