//! OpenAI's chat completions with GPT-5.6 and later, which think unless they are told not to.
//!
//! Read on 2026-11-23; the sources of each rule stand beside it.

use super::errors;
use super::openai_4_1::{
    KEY, NO_MODEL, OPEN_SCHEMA, OPENAI, OPTIONAL, SCHEMA, SILENT, STRANGE, STRANGE_THOUGHT, TOOL_SCHEMA, UNANSWERED,
    UNCALLED,
};
use super::rules::{Rule, Rules, Test};
use super::voice::Voice;

/// The sampling that a model refuses that thinks.
const SAMPLING: Test =
    Test::Has(&["/top_p", "/presence_penalty", "/frequency_penalty", "/logit_bias", "/logprobs", "/top_logprobs"]);

pub(super) const TEMPERATURE: Rule = Rule::new(
    Test::Not("/temperature", &["1"]),
    "Unsupported value: 'temperature' does not support {} with this model. Only the default (1) value is supported.",
    r#"{"temperature": 0.2}"#,
    "nashsu/llm_wiki#670, 2026-08",
)
.param("temperature")
.code("unsupported_value");

pub(super) const NO_SAMPLING: Rule = Rule::new(
    SAMPLING,
    "Unsupported parameter: '{}' is not supported with this model.",
    r#"{"top_p": 0.5}"#,
    "pydantic-ai-slim@2.68.0 profiles/openai.py, 2026-10",
)
.param("{}")
.code("unsupported_parameter");

pub(super) const MAX_TOKENS: Rule = Rule::new(
    Test::Has(&["/max_tokens"]),
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    r#"{"max_tokens": 4000}"#,
    "caozhiyuan/copilot-api#164, 2026-04",
)
.param("max_tokens")
.code("unsupported_parameter");

pub(super) const STOP: Rule = Rule::new(
    Test::Has(&["/stop"]),
    "Unsupported parameter: 'stop' is not supported with this model.",
    r#"{"stop": ["END"]}"#,
    "bolna-ai/bolna#1019, 2026-09: that it is refused",
)
.param("stop")
.code("unsupported_parameter");

pub(super) const EFFORT: Rule = Rule::new(
    Test::Not("/reasoning_effort", &["\"none\"", "\"low\"", "\"medium\"", "\"high\"", "\"xhigh\""]),
    "Unsupported value: 'reasoning_effort' does not support '{}' with this model. Supported values are: 'none', 'low', 'medium', 'high', and 'xhigh'.",
    r#"{"reasoning_effort": "minimal"}"#,
    "genkit-ai/genkit#6303, 2026-09; `max` is for Responses alone (pydantic-ai-slim@2.68.0 profiles/openai.py)",
)
.param("reasoning_effort")
.code("unsupported_value");

pub(super) const TOOLS: Rule = Rule::new(
    Test::Both(&Test::Has(&["/tools"]), &Test::By(thinks)),
    "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
    r#"{"reasoning_effort": null}"#,
    "GEMISIS/leviath#333, 2026-08; tools alone: BerriAI/litellm#34569, 2026-07",
)
.param("reasoning_effort");

fn thinks(body: &serde_json::Value) -> Option<String> {
    (body["reasoning_effort"] != "none").then(String::new)
}

pub(super) const GOOD: &str = r#"{"model": "gpt-6.1-terra", "stream": true, "stream_options": {"include_usage": true},
    "temperature": 1.0, "max_completion_tokens": 4000, "reasoning_effort": "none",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}],
    "tools": [{"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}}}],
    "tool_choice": "required",
    "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "strict": true, "schema": {"type": "object",
        "properties": {"a": {"type": "string", "maxLength": 9}}, "required": ["a"], "additionalProperties": false}}}}"#;

pub(super) const VOICE: Voice = Voice { thinks: 1500, unasked: true, ..OPENAI };

pub(super) const RULES: Rules = Rules {
    name: "OpenAI, gpt-5.6 and later, chat completions",
    host: "api.openai.com",
    path: "/v1/chat/completions",
    key: KEY,
    models: ["gpt-6.1-terra", "gpt-6-luna"],
    no_model: NO_MODEL,
    errors: errors::openai,
    good: GOOD,
    rules: &[
        TEMPERATURE,
        NO_SAMPLING,
        MAX_TOKENS,
        STOP,
        EFFORT,
        TOOLS,
        STRANGE,
        STRANGE_THOUGHT,
        UNANSWERED,
        UNCALLED,
        SILENT,
        SCHEMA,
        OPEN_SCHEMA,
        OPTIONAL,
        TOOL_SCHEMA,
    ],
    voice: VOICE,
};
