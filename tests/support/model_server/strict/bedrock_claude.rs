//! Amazon Bedrock on Anthropic's wire with Claude 5.5: its rules, Bedrock's key, and models by their inference profiles.
//!
//! By docs.aws.amazon.com (inference-messages-api, 2026-11), anthropic@2.12.0 (lib/bedrock/_mantle.py, 2026-11), and by the sources
//! of each rule.

use super::anthropic_5_5::{RULES_OF_5_5, VOICE_OF_5_5};
use super::bedrock::KEY;
use super::errors;
use super::rules::{Rule, Rules, Test};

pub(super) const RULES: Rules = Rules {
    name: "Bedrock, Claude 5.5",
    host: "bedrock-runtime.us-east-1.amazonaws.com",
    path: "/anthropic/v1/messages",
    key: KEY,
    models: ["global.anthropic.claude-sonnet-5-5", "global.anthropic.claude-opus-5-5"],
    no_model: Rule::new(
        Test::Has(&["/model"]),
        "Invocation of model ID {model} with on-demand throughput isn't supported. Retry your request with the ID or ARN of an inference profile that contains this model.",
        r#"{"model": "anthropic.claude-sonnet-5-5"}"#,
        "FlowiseAI/Flowise#3513",
    ),
    errors: errors::bedrock_claude,
    good: r#"{"model": "global.anthropic.claude-sonnet-5-5", "stream": true, "max_tokens": 8000, "system": "Be brief.",
        "thinking": {"type": "adaptive"}, "messages": [{"role": "user", "content": "Look."}],
        "tools": [{"name": "look", "description": "Looks", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object",
            "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}}}}"#,
    rules: RULES_OF_5_5,
    voice: VOICE_OF_5_5,
};
