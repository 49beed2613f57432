//! xAI's chat completions with Grok 4.7.
//!
//! By docs.x.ai (guides/reasoning, developers/debugging, 2026-10), @ai-sdk/xai 3.0.138, and by the sources of each rule. Any order
//! of roles is taken, and nothing has to come back.

use serde_json::{Value, json};

use super::errors;
use super::rules::{Key, Rule, Rules, Test};
use super::voice::{Calls, Counts, PLAIN, Tokens, Voice};

/// What was thought stands beside what was written, and not within it.
fn usage(Tokens { input, output, thought }: Tokens) -> Value {
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output + thought,
        "prompt_tokens_details": {"text_tokens": input, "audio_tokens": 0, "image_tokens": 0, "cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": thought}, "num_sources_used": 0, "cost_in_usd_ticks": 1_000_000})
}

const SOURCE: &str = "NativeTavern#83, 2026-09; reyamira/modelparams.dev#330 (stop), 2026-08";

pub(super) const RULES: Rules = Rules {
    name: "xAI, Grok 4.7",
    host: "api.x.ai",
    path: "/v1/chat/completions",
    key: Key { header: "authorization", before: "Bearer ", status: 400, says: "Incorrect API key provided." },
    models: ["grok-4.7", "grok-4.6"],
    no_model: Rule::new(
        Test::Has(&["/model"]),
        "The model {model} does not exist or your team does not have access to it.",
        r#"{"model": "grok-1"}"#,
        "docs.x.ai developers/debugging, 2026-10: that it is 404",
    )
    .status(404),
    errors: errors::xai,
    good: r#"{"model": "grok-4.7", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.2, "seed": 1,
        "max_tokens": 4000, "reasoning_effort": "low",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}}}],
        "tool_choice": "required",
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "strict": true, "schema": {"type": "object",
            "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}}}}"#,
    rules: &[
        Rule::new(
            Test::Has(&["/presence_penalty"]),
            "Model {model} does not support parameter presencePenalty.",
            r#"{"presence_penalty": 0}"#,
            SOURCE,
        ),
        Rule::new(
            Test::Has(&["/frequency_penalty"]),
            "Model {model} does not support parameter frequencyPenalty.",
            r#"{"frequency_penalty": 0}"#,
            SOURCE,
        ),
        Rule::new(
            Test::Has(&["/stop"]),
            "Model {model} does not support parameter stop.",
            r#"{"stop": ["END"]}"#,
            SOURCE,
        ),
        Rule::new(
            Test::Not("/reasoning_effort", &["\"low\"", "\"medium\"", "\"high\"", "\"xhigh\""]),
            "Model {model} does not support parameter reasoningEffort.",
            r#"{"reasoning_effort": "none"}"#,
            "chenyme/grok2api#814, 2026-07; pydantic-ai-slim@2.68.0 profiles/grok.py, 2026-11",
        ),
    ],
    voice: Voice {
        thinks: 1500,
        unasked: true,
        calls: Calls::Whole,
        // litellm@1.109.1 llms/xai/chat/transformation.py, 2026-11.
        called: "",
        usage,
        counts: Counts::Always,
        ..PLAIN
    },
};
