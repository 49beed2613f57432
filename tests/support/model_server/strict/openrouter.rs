//! OpenRouter with Claude Sonnet 5.5: what a model does not take is dropped there, and what it thought goes back as it came.
//!
//! By openrouter@1.3.84 (components/chatrequest.py, reasoningdetail*.py, 2026-11), openrouter.ai/docs (api/errors, 2026-11),
//! pydantic-ai-slim@2.68.0 (providers/openrouter.py, tried by its makers on 2026-11-05), and by the sources of each rule.

use serde_json::{Value, json};

use super::rules::{Key, Rule, Rules, Test};
use super::voice::{Counts, PLAIN, Thought, Tokens, Voice, openai_usage, seal};
use super::{at, errors, list};

fn usage(tokens: Tokens) -> Value {
    let mut usage = openai_usage(tokens);
    usage["cost"] = json!(0.0012);
    usage["is_byok"] = json!(false);
    usage["cost_details"] = json!({"upstream_inference_cost": null});
    usage
}

fn details(body: &Value) -> impl Iterator<Item = (usize, &[Value])> {
    let messages = list(&body["messages"]).iter().enumerate();
    messages.map(|(index, message)| (index, list(&message["reasoning_details"]))).filter(|(_, all)| !all.is_empty())
}

/// Thoughts whose words have no signature, or that of other words: pieces of one index are one thought.
fn unsigned(body: &Value) -> Option<String> {
    details(body).find_map(|(index, all)| {
        let text: String = all.iter().filter_map(|one| one["text"].as_str()).collect();
        let signature = all.iter().find_map(|one| one["signature"].as_str()).unwrap_or_default();
        (signature != seal(body, &json!(text))).then(|| index.to_string())
    })
}

/// Two ways of saying how much to think that do not say the same.
fn two_efforts(body: &Value) -> Option<String> {
    let (one, other) = (at(body, "/reasoning/effort"), &body["reasoning_effort"]);
    (!one.is_null() && !other.is_null() && one != other).then(|| one.to_string())
}

pub(super) const RULES: Rules = Rules {
    name: "OpenRouter, Claude Sonnet 5.5",
    host: "openrouter.ai",
    path: "/api/v1/chat/completions",
    key: Key { header: "authorization", before: "Bearer ", status: 401, says: "No auth credentials found" },
    models: ["anthropic/claude-sonnet-5.5", "anthropic/claude-opus-5.5"],
    no_model: Rule::new(
        Test::Has(&["/model"]),
        "{model} is not a valid model ID",
        r#"{"model": "anthropic/claude-sonnet-5-5"}"#,
        "pydantic-ai-slim@2.68.0 providers/openrouter.py, 2026-11: names have dots there",
    ),
    errors: errors::openrouter,
    good: r#"{"model": "anthropic/claude-sonnet-5.5", "stream": true, "temperature": 0.2, "max_tokens": 4000,
        "reasoning": {"effort": "low"},
        "messages": [{"role": "system", "content": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]},
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}}}],
        "tool_choice": "auto"}"#,
    rules: &[
        Rule::new(
            Test::Not("/tool_choice", &["\"auto\"", "\"none\""]),
            "No endpoints found that support the provided 'tool_choice' value. To learn more about provider routing, visit: https://openrouter.ai/docs/guides/routing/provider-selection",
            r#"{"tool_choice": "required"}"#,
            "Routstr#554, 2026-06; that these models are meant: likely, their provider refuses it",
        )
        .status(404),
        Rule::new(
            Test::Both(&Test::Has(&["/reasoning"]), &Test::By(silenced)),
            "Reasoning is mandatory for this endpoint and cannot be disabled",
            r#"{"reasoning": {"effort": "none"}}"#,
            "pydantic-ai-slim@2.68.0 providers/openrouter.py, 2026-11-05",
        ),
        Rule::new(
            Test::By(two_efforts),
            "Only one of 'reasoning.effort' and 'reasoning_effort' may be given",
            r#"{"reasoning_effort": "high"}"#,
            "openrouter@1.3.84 components/chatrequest.py, 2026-11: that it is 400",
        ),
        Rule::new(
            Test::Both(&Test::Has(&["/reasoning/effort"]), &Test::Has(&["/reasoning/max_tokens"])),
            "Only one of \"reasoning.effort\" and \"reasoning.max_tokens\" may be specified",
            r#"{"reasoning": {"max_tokens": 2000}}"#,
            "openrouter@1.3.84 components/chatrequest.py, 2026-11: that it is 400",
        ),
        Rule::new(
            Test::By(unsigned),
            "messages.{}.content.0: Invalid `signature` in `thinking` block",
            r#"{"messages": [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "a ledger",
                "reasoning_details": [{"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, "text": "So."}]},
                {"role": "user", "content": "Well?"}]}"#,
            "@openrouter/ai-sdk-provider@2.10.0 dist/index.mjs:3026, 2026-11",
        )
        .code("upstream"),
    ],
    voice: Voice {
        thinks: 1500,
        unasked: true,
        thought: Thought::Details,
        id: ("toolu_", 24),
        usage,
        counts: Counts::Always,
        waits: "OPENROUTER PROCESSING",
        beside: r#"{"provider": "Anthropic"}"#,
        ..PLAIN
    },
};

fn silenced(body: &Value) -> Option<String> {
    (at(body, "/reasoning/effort") == "none").then(String::new)
}
