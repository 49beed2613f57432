//! Anthropic's Messages with Claude 4.5, which thinks if it is asked to, by a budget.
//!
//! By the types of anthropic@2.12.0 (types/message_create_params.py, 2026-11), pydantic-ai-slim@2.68.0 (profiles/anthropic.py,
//! each model tried by its makers, 2026-07 to 2026-10), and by the sources of each rule.

use super::rules::{Key, Rule, Rules, Test};
use super::voice::{Counts, PLAIN, Thought, Voice};
use super::{errors, schemas, turns};

pub(super) const MEMBERS: &[&str] = &[
    "model",
    "messages",
    "max_tokens",
    "cache_control",
    "container",
    "context_management",
    "inference_geo",
    "mcp_servers",
    "metadata",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

pub(super) const KEY: Key = Key { header: "x-api-key", before: "", status: 401, says: "x-api-key header is required" };

pub(super) const NO_MODEL: Rule = Rule::new(
    Test::Has(&["/model"]),
    "model: {model}",
    r#"{"model": "claude-2"}"#,
    "pydantic-ai-slim@2.68.0 models/anthropic/_errors.py, 2026-11",
)
.status(404);

pub(super) const STRANGE: Rule = Rule::new(
    Test::Strange(MEMBERS),
    "{}: Extra inputs are not permitted",
    r#"{"max_completion_tokens": 4000}"#,
    "pydantic-ai-slim@2.68.0 models/anthropic/__init__.py, 2026-11",
);

pub(super) const NO_LIMIT: Rule = Rule::new(
    Test::Lacks("/max_tokens"),
    "{}: Field required",
    r#"{"max_tokens": null}"#,
    "anthropic@2.12.0 types/message_create_params.py, 2026-11",
);

pub(super) const UNANSWERED: Rule = Rule::new(
    Test::By(turns::unanswered_use),
    "{}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    r#"{"messages": [{"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]},
        {"role": "user", "content": "Well?"}]}"#,
    "anthropics/claude-code#1800",
);

pub(super) const FORMAT: Rule = Rule::new(
    Test::By(schemas::claude_format),
    "output_config.format.schema: {}",
    r#"{"output_config": {"format": {"schema": {"properties": {"a": {"maxLength": 9}}}}}}"#,
    "litellm@1.109.1 llms/anthropic/chat/transformation.py:855, 2026-11",
);

pub(super) const OPEN_FORMAT: Rule = Rule::new(
    Test::By(schemas::claude_format),
    "output_config.format.schema: {}",
    r#"{"output_config": {"format": {"schema": {"additionalProperties": null}}}}"#,
    "litellm@1.109.1 llms/anthropic/chat/transformation.py:855, 2026-11",
);

pub(super) const UNSIGNED: Rule = Rule::new(
    Test::By(turns::unsigned_thought),
    "{}.thinking.signature: Field required",
    r#"{"messages": [{"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": "a ledger"}]},
        {"role": "user", "content": "Well?"}]}"#,
    "JohnnyZ93/oai-compatible-copilot#217, 2026-04",
);

pub(super) const FOREIGN: Rule = Rule::new(
    Test::By(turns::foreign_thought),
    "{}: Invalid `signature` in `thinking` block",
    r#"{"messages": [{"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "so", "signature": "x"},
            {"type": "text", "text": "a ledger"}]},
        {"role": "user", "content": "Well?"}]}"#,
    "anthropics/anthropic-sdk-python#1598, 2026-05",
);

pub(super) const TOO_MANY_MARKS: Rule = Rule::new(
    Test::By(turns::too_many_marks),
    "A maximum of 4 blocks with cache_control may be provided. Found {}.",
    r#"{"system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "c", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "d", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "e", "cache_control": {"type": "ephemeral"}}]}"#,
    "anthropics/skills prompt-caching.md, 2026: that there may be four",
);

pub(super) const PREFILL: Rule = Rule::new(
    Test::By(turns::prefilled),
    "This model does not support assistant message prefill. The conversation must end with a user message.",
    r#"{"messages": [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "I see"}]}"#,
    "strands-agents/sdk-python#1694; jobrunr/JavaClaw#36",
);

/// A request with all that these models take.
const GOOD: &str = r#"{"model": "claude-haiku-4-5", "stream": true, "max_tokens": 4000, "temperature": 0.2,
    "system": "Be brief.", "stop_sequences": ["END"],
    "messages": [{"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a ledger"}]}],
    "tools": [{"name": "look", "description": "Looks", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "any"},
    "output_config": {"format": {"type": "json_schema", "schema": {"type": "object",
        "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}}}}"#;

pub(super) const VOICE: Voice = Voice {
    thinks: 1024,
    thought: Thought::Block { words: true, bound: false },
    id: ("toolu_", 24),
    counts: Counts::WithTheLast,
    ..PLAIN
};

pub(super) const RULES: Rules = Rules {
    name: "Anthropic, Claude 4.5",
    host: "api.anthropic.com",
    path: "/v1/messages",
    key: KEY,
    models: ["claude-haiku-4-5", "claude-opus-4-5"],
    no_model: NO_MODEL,
    errors: errors::anthropic,
    good: GOOD,
    rules: &[
        NO_LIMIT,
        Rule::new(
            Test::Beyond("/max_tokens", 64_000),
            "max_tokens: {} > 64000, which is the maximum allowed number of output tokens for {model}",
            r#"{"max_tokens": 128000}"#,
            "pydantic-ai-slim@2.68.0 models/_anthropic_max_tokens.py, 2026-11",
        ),
        STRANGE,
        Rule::new(
            Test::Both(&Test::Has(&["/temperature"]), &Test::Has(&["/top_p"])),
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            r#"{"top_p": 0.5}"#,
            "anthropics/skills model-migration.md, 2026-07: that it is refused",
        ),
        Rule::new(
            Test::Not("/thinking/type", &["\"enabled\"", "\"disabled\""]),
            "adaptive thinking is not supported on this model",
            r#"{"thinking": {"type": "adaptive"}}"#,
            "pydantic-ai-slim@2.68.0 profiles/anthropic.py, 2026-10: that it is refused",
        ),
        Rule::new(
            Test::Both(&Test::Has(&["/output_config/effort"]), &Test::Not("/model", &["\"claude-opus-4-5\""])),
            "This model does not support the effort parameter.",
            r#"{"output_config": {"effort": "low"}}"#,
            "pydantic-ai-slim@2.68.0 profiles/anthropic.py, 2026-10: that it is refused",
        ),
        Rule::new(
            Test::Both(
                &Test::Not("/tool_choice/type", &["\"auto\"", "\"none\""]),
                &Test::Both(&Test::Has(&["/thinking"]), &Test::Not("/thinking/type", &["\"disabled\""])),
            ),
            "Thinking may not be enabled when tool_choice forces tool use.",
            r#"{"thinking": {"type": "enabled", "budget_tokens": 2000}, "temperature": null}"#,
            "long known",
        ),
        Rule::new(
            Test::By(turns::no_thought_first),
            "{}. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).",
            r#"{"thinking": {"type": "enabled", "budget_tokens": 2000}, "tool_choice": {"type": "auto"}}"#,
            "RooCodeInc/Roo-Code#10351",
        ),
        UNANSWERED,
        UNSIGNED,
        FOREIGN,
        FORMAT,
        OPEN_FORMAT,
        TOO_MANY_MARKS,
    ],
    voice: VOICE,
};
