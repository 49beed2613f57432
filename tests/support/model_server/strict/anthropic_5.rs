//! Anthropic's Messages with Claude Opus 4.7 to 5 and Sonnet 5: no sampling, no budgets of thoughts, no prefill.
//!
//! By pydantic-ai-slim@2.68.0 (profiles/anthropic.py, each model tried by its makers, 2026-07 to 2026-10), and by the sources of
//! each rule.

use super::anthropic_4_5::{
    FOREIGN, FORMAT, KEY, NO_LIMIT, NO_MODEL, OPEN_FORMAT, PREFILL, STRANGE, TOO_MANY_MARKS, UNANSWERED, UNSIGNED,
    VOICE,
};
use super::errors;
use super::rules::{Rule, Rules, Test};
use super::voice::{Thought, Voice};

pub(super) const SAMPLING: Rule = Rule::new(
    Test::Has(&["/temperature", "/top_p", "/top_k"]),
    "`{}` is deprecated for this model.",
    r#"{"temperature": 0.2}"#,
    "github/app#2574, 2026-08; altic-dev/FluidVoice#285, 2026-04",
);

pub(super) const BEYOND: Rule = Rule::new(
    Test::Beyond("/max_tokens", 128_000),
    "max_tokens: {} > 128000, which is the maximum allowed number of output tokens for {model}",
    r#"{"max_tokens": 200000}"#,
    "pydantic-ai-slim@2.68.0 models/_anthropic_max_tokens.py, 2026-11",
);

pub(super) const BUDGET: Rule = Rule::new(
    Test::Both(
        &Test::Has(&["/thinking/type"]),
        &Test::Not("/thinking/type", &["\"adaptive\"", "\"disabled\"", "\"between_tools\""]),
    ),
    "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.",
    r#"{"thinking": {"type": "enabled", "budget_tokens": 2000}}"#,
    "AAClause/nvda-OpenAI#126, 2026-07",
);

pub(super) const EFFORT: Rule = Rule::new(
    Test::Not("/output_config/effort", &["\"low\"", "\"medium\"", "\"high\"", "\"xhigh\"", "\"max\""]),
    "This model does not support effort level '{}'. Supported levels: high, low, max, medium, xhigh.",
    r#"{"output_config": {"effort": "minimal"}}"#,
    "pydantic-ai-slim@2.68.0 tests/cassettes, 2026",
);

/// A request with all that these models take.
pub(super) const GOOD: &str = r#"{"model": "claude-sonnet-5", "stream": true, "max_tokens": 8000,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "thinking": {"type": "adaptive"},
    "messages": [{"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a ledger"}]}],
    "tools": [{"name": "look", "description": "Looks", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "any"},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object",
        "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}}}}"#;

pub(super) const RULES: Rules = Rules {
    name: "Anthropic, Claude 4.7 to 5",
    host: "api.anthropic.com",
    path: "/v1/messages",
    key: KEY,
    models: ["claude-sonnet-5", "claude-opus-4-8"],
    no_model: NO_MODEL,
    errors: errors::anthropic,
    good: GOOD,
    rules: &[
        SAMPLING,
        NO_LIMIT,
        BEYOND,
        STRANGE,
        BUDGET,
        EFFORT,
        PREFILL,
        UNANSWERED,
        UNSIGNED,
        FOREIGN,
        FORMAT,
        OPEN_FORMAT,
        TOO_MANY_MARKS,
    ],
    // Opus 4.8 thinks only where it is asked to; this is Sonnet's way, which takes more room.
    voice: Voice { thinks: 1500, unasked: true, thought: Thought::Block { words: false, bound: false }, ..VOICE },
};
