//! OpenAI's chat completions with gpt-4.1, which does not think.
//!
//! By the types and docstrings of openai@3.54.0 (chat/completion_create_params.py, 2026-11) and by the sources of each rule.

use super::rules::{Key, Rule, Rules, Test};
use super::voice::{PLAIN, Voice};
use super::{errors, schemas, turns};

/// What a body of chat completions may have.
pub(super) const MEMBERS: &[&str] = &[
    "model",
    "messages",
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// What the message of an assistant may have.
pub(super) const ASSISTANT: &[&str] = &["role", "content", "refusal", "name", "tool_calls", "audio", "function_call"];

pub(super) const KEY: Key = Key {
    header: "authorization",
    before: "Bearer ",
    status: 401,
    says: "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth.",
};

pub(super) const NO_MODEL: Rule = Rule::new(
    Test::Has(&["/model"]),
    "The model `{model}` does not exist or you do not have access to it.",
    r#"{"model": "gpt-3"}"#,
    "pydantic-ai-slim@2.68.0 tests/cassettes/test_model_name_suggestions, 2026",
)
.status(404)
.code("model_not_found");

/// A request with all that these models take: tools, a strict schema, a call and its result.
pub(super) const GOOD: &str = r#"{"model": "gpt-4.1", "stream": true, "stream_options": {"include_usage": true},
    "temperature": 0.2, "stop": ["END"], "max_completion_tokens": 4000,
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}],
    "tools": [{"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}}}],
    "tool_choice": "required",
    "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "strict": true, "schema": {"type": "object",
        "properties": {"a": {"type": "string", "maxLength": 9}}, "required": ["a"], "additionalProperties": false}}}}"#;

pub(super) const STRANGE: Rule = Rule::new(
    Test::Strange(MEMBERS),
    "Unknown parameter: '{}'.",
    r#"{"top_k": 3}"#,
    "long known; the members are those of openai@3.54.0, 2026-11",
)
.param("{}")
.code("unknown_parameter");

pub(super) const STRANGE_THOUGHT: Rule = Rule::new(
    Test::StrangeInMessage("assistant", ASSISTANT),
    "Unknown parameter: 'messages[{index}].{name}'.",
    r#"{"messages": [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "x", "reasoning_content": "y"}]}"#,
    "openai@3.54.0 chat/chat_completion_assistant_message_param.py, 2026-11",
)
.param("messages[{index}].{name}")
.code("unknown_parameter");

pub(super) const UNANSWERED: Rule = Rule::new(
    Test::By(turns::unanswered),
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
    r#"{"messages": [{"role": "user", "content": "Look."}, {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}]}"#,
    "long known",
)
.param("messages");

pub(super) const UNCALLED: Rule = Rule::new(
    Test::By(turns::uncalled),
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    r#"{"messages": [{"role": "user", "content": "Look."}, {"role": "tool", "tool_call_id": "call_1", "content": "x"}]}"#,
    "long known",
)
.param("messages.[{}].role");

pub(super) const SILENT: Rule = Rule::new(
    Test::By(turns::silent),
    "Invalid value for 'content': expected a string, got null.",
    r#"{"messages": [{"role": "user", "content": "Look."}, {"role": "assistant", "content": null}]}"#,
    "pydantic-ai-slim@2.68.0 models/openai/_chat_model.py, 2026-11",
)
.param("messages.[{}].content");

pub(super) const SCHEMA: Rule = Rule::new(
    Test::By(schemas::strict_reply),
    "Invalid schema for response_format 'reply': {}",
    r#"{"response_format": {"json_schema": {"schema": {"properties": {"a": {"maxLength": null, "default": "x"}}}}}}"#,
    "moeru-ai/xsai#202, agentscope-ai/agentscope-java#2548, 2026-08",
)
.param("response_format");

pub(super) const OPEN_SCHEMA: Rule = Rule::new(
    Test::By(schemas::strict_reply),
    "Invalid schema for response_format 'reply': {}",
    r#"{"response_format": {"json_schema": {"schema": {"additionalProperties": null}}}}"#,
    "moeru-ai/xsai#202, 2026-08",
)
.param("response_format");

pub(super) const OPTIONAL: Rule = Rule::new(
    Test::By(schemas::strict_reply),
    "Invalid schema for response_format 'reply': {}",
    r#"{"response_format": {"json_schema": {"schema": {"required": []}}}}"#,
    "agentscope-ai/agentscope-java#2548, 2026-08",
)
.param("response_format");

pub(super) const TOOL_SCHEMA: Rule = Rule::new(
    Test::By(schemas::strict_function),
    "Invalid schema for function {}",
    r#"{"tools": [{"type": "function", "function": {"name": "look", "description": "Looks", "strict": true,
        "parameters": {"type": "object"}}}]}"#,
    "lastmile-ai/openai-agents-mcp#2",
)
.param("tools[0].function.parameters")
.code("invalid_function_parameters");

/// OpenAI's pieces have letters of any number, so that their lengths tell nothing.
pub(super) const OPENAI: Voice =
    Voice { beside: r#"{"service_tier": "default", "system_fingerprint": "fp_1", "obfuscation": "Xf3q"}"#, ..PLAIN };

pub(super) const RULES: Rules = Rules {
    name: "OpenAI, gpt-4.1",
    host: "api.openai.com",
    path: "/v1/chat/completions",
    key: KEY,
    models: ["gpt-4.1", "gpt-4.1-mini"],
    no_model: NO_MODEL,
    errors: errors::openai,
    good: GOOD,
    rules: &[
        Rule::new(
            Test::Has(&["/reasoning_effort"]),
            "Unrecognized request argument supplied: reasoning_effort",
            r#"{"reasoning_effort": "low"}"#,
            "pydantic-ai-slim@2.68.0 profiles/openai.py, 2026-10",
        ),
        Rule::new(
            Test::Beyond("/max_completion_tokens", 32_768),
            "max_tokens is too large: {}. This model supports at most 32768 completion tokens, whereas you provided {}.",
            r#"{"max_completion_tokens": 40000}"#,
            "long known; the number is that of genai-prices@0.2.3, 2026-11",
        )
        .param("max_tokens")
        .code("invalid_value"),
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
    voice: OPENAI,
};
