//! Gemini 3 at Google's endpoint in the form of chat completions: a tool call comes with a seal, and goes back with it.
//!
//! By ai.google.dev (gemini-api/docs/openai, thought-signatures, 2026-09), pydantic-ai-slim@2.68.0 (profiles/google.py, tried by
//! its makers on 2026-10-13), and by the sources of each rule.

use serde_json::{Value, json};

use super::rules::{Key, Rule, Rules, Test};
use super::voice::{Calls, Counts, PLAIN, Thought, Tokens, Voice};
use super::{errors, turns};

/// What was thought stands in the total alone.
fn usage(Tokens { input, output, thought }: Tokens) -> Value {
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output + thought})
}

pub(super) const RULES: Rules = Rules {
    name: "Gemini 3, OpenAI-compatible",
    host: "generativelanguage.googleapis.com",
    path: "/v1beta/openai/chat/completions",
    key: Key {
        header: "authorization",
        before: "Bearer ",
        status: 401,
        says: "Request is missing required authentication credential.",
    },
    models: ["gemini-3.8-flash", "gemini-3.7-flash"],
    no_model: Rule::new(
        Test::Has(&["/model"]),
        "models/{model} is not found for API version v1main, or is not supported for generateContent.",
        r#"{"model": "gemini-1"}"#,
        "long known",
    )
    .status(404),
    errors: errors::gemini,
    good: r#"{"model": "gemini-3.8-flash", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.2,
        "max_tokens": 4000, "reasoning_effort": "low",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
                "extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}},
                "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks",
            "parameters": {"type": "object", "additionalProperties": false}}}],
        "tool_choice": "required",
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"type": "object",
            "properties": {"a": {"type": "string"}}, "required": ["a"]}}}}"#,
    rules: &[
        Rule::new(
            Test::By(turns::unsealed_call),
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:{}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
            r#"{"messages": [{"role": "user", "content": "Look."},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}]}"#,
            "TokenRhythm/opensquilla#225, 2026-06; securo-finance/securo#884, 2026-09",
        ),
        Rule::new(
            Test::Not("/reasoning_effort", &["\"low\"", "\"medium\"", "\"high\""]),
            "Thinking level MINIMAL is not supported for this model. Please retry with other thinking level.",
            r#"{"reasoning_effort": "none"}"#,
            "agentjido/req_llm#971; BerriAI/litellm#37314, 2026-08",
        ),
    ],
    voice: Voice {
        thinks: 1500,
        unasked: true,
        thought: Thought::AtCall,
        calls: Calls::WholeWithoutIndex,
        // So it is streamed; in one piece it says `tool_calls` (googleapis/python-genai#2868, 2026-08).
        called: "stop",
        usage,
        counts: Counts::WithTheLast,
        ..PLAIN
    },
};
