//! Anthropic's Messages with Claude 5.5: as Claude 5, and no tool can be forced, thinking cannot be turned off by `disabled`, and
//! what was thought is bound to the conversation before it.
//!
//! By pydantic-ai-slim@2.68.0 (profiles/anthropic.py, models/anthropic/_thinking_binding.py, 2026-10), and by the sources of each
//! rule.

use super::anthropic_4_5::{
    FORMAT, KEY, NO_LIMIT, NO_MODEL, OPEN_FORMAT, PREFILL, STRANGE, TOO_MANY_MARKS, UNANSWERED, UNSIGNED, VOICE,
};
use super::anthropic_5::{BEYOND, BUDGET, EFFORT, SAMPLING};
use super::rules::{Rule, Rules, Test};
use super::voice::{Thought, Voice};
use super::{errors, turns};

pub(super) const FORCED: Rule = Rule::new(
    Test::Not("/tool_choice/type", &["\"auto\"", "\"none\""]),
    "tool_choice: type \"tool\" and \"any\" are not supported for this model.",
    r#"{"tool_choice": {"type": "any"}}"#,
    "can1357/oh-my-pi#12939, 2026-09; BerriAI/litellm#39151",
);

pub(super) const DISABLED: Rule = Rule::new(
    Test::Both(
        &Test::Has(&["/thinking/type"]),
        &Test::Not("/thinking/type", &["\"adaptive\"", "\"enabled\"", "\"between_tools\""]),
    ),
    "\"thinking.type.disabled\" is not supported for this model. To turn thinking off on this model, send \"thinking\": {\"type\": \"between_tools\"}.",
    r#"{"thinking": {"type": "disabled"}}"#,
    "dev.to/persimmoq, 2026-10: the end of the message was not seen",
);

pub(super) const BOUND: Rule = Rule::new(
    Test::By(turns::unbound_thought),
    "{}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\". That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header. The `system` prompt differs from the one this block was created with.",
    r#"{"messages": [{"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "x"},
            {"type": "text", "text": "a ledger"}]},
        {"role": "user", "content": "Well?"}]}"#,
    "anomalyco/opencode#48637, 2026-09; kirodotdev/KiroCrew#11513, 2026-09",
);

/// A request with all that these models take.
const GOOD: &str = r#"{"model": "claude-sonnet-5-5", "stream": true, "max_tokens": 8000,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "thinking": {"type": "adaptive"},
    "messages": [{"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a ledger"}]}],
    "tools": [{"name": "look", "description": "Looks", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "auto"},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object",
        "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}}}}"#;

pub(super) const RULES: Rules = Rules {
    name: "Anthropic, Claude 5.5",
    host: "api.anthropic.com",
    path: "/v1/messages",
    key: KEY,
    models: ["claude-sonnet-5-5", "claude-opus-5-5"],
    no_model: NO_MODEL,
    errors: errors::anthropic,
    good: GOOD,
    rules: RULES_OF_5_5,
    voice: VOICE_OF_5_5,
};

/// What holds for these models wherever they are served.
pub(super) const RULES_OF_5_5: &[Rule] = &[
    SAMPLING,
    FORCED,
    NO_LIMIT,
    BEYOND,
    STRANGE,
    DISABLED,
    BUDGET,
    EFFORT,
    PREFILL,
    UNANSWERED,
    UNSIGNED,
    BOUND,
    FORMAT,
    OPEN_FORMAT,
    TOO_MANY_MARKS,
];

pub(super) const VOICE_OF_5_5: Voice =
    Voice { thinks: 1500, unasked: true, thought: Thought::Block { words: false, bound: true }, ..VOICE };
