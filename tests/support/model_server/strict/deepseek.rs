//! DeepSeek V4 on chat completions, which thinks unless `thinking` says otherwise, and wants its thoughts back beside calls.
//!
//! By api-docs.deepseek.com (guides/thinking_mode, guides/json_mode, 2026-10), @ai-sdk/deepseek 2.0.69, and by the sources of each
//! rule. What is not known is passed over, and so is `max_completion_tokens`.

use serde_json::{Value, json};

use super::rules::{Key, Rule, Rules, Test};
use super::voice::{PLAIN, Thought, Tokens, Voice};
use super::{errors, list, turns};

fn usage(Tokens { input, output, thought }: Tokens) -> Value {
    json!({"prompt_tokens": input, "completion_tokens": output + thought, "total_tokens": input + output + thought,
        "prompt_cache_hit_tokens": 0, "prompt_cache_miss_tokens": input, "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": thought}})
}

/// JSON that is asked for without a word of it.
fn no_word_of_json(body: &Value) -> Option<String> {
    let said =
        list(&body["messages"]).iter().any(|message| message["content"].to_string().to_lowercase().contains("json"));
    (body["response_format"]["type"] == "json_object" && !said).then(String::new)
}

pub(super) const RULES: Rules = Rules {
    name: "DeepSeek V4",
    host: "api.deepseek.com",
    path: "/v1/chat/completions",
    key: Key {
        header: "authorization",
        before: "Bearer ",
        status: 401,
        says: "Authentication Fails (auth header format should be Bearer sk-...)",
    },
    models: ["deepseek-flash", "deepseek-v4-pro"],
    no_model: Rule::new(
        Test::Has(&["/model"]),
        "Model Not Exist",
        r#"{"model": "deepseek-chat"}"#,
        "long known; deepseek-chat is off since 2026-07-24 (api-docs.deepseek.com/quick_start/pricing)",
    ),
    errors: errors::deepseek,
    good: r#"{"model": "deepseek-flash", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.2,
        "max_tokens": 4000, "reasoning_effort": "low",
        "messages": [{"role": "system", "content": "Reply in JSON."}, {"role": "user", "content": "Look."},
            {"role": "assistant", "content": null, "reasoning_content": "", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}}}],
        "tool_choice": "auto", "response_format": {"type": "json_object"}}"#,
    rules: &[
        Rule::new(
            Test::Both(&Test::Not("/tool_choice", &["\"auto\"", "\"none\""]), &Test::By(thinking)),
            "Thinking mode does not support this tool_choice",
            r#"{"tool_choice": "required"}"#,
            "deepseek-ai/DeepSeek-V3#1376, 2026-05; BerriAI/litellm#37470, 2026-08",
        ),
        Rule::new(
            Test::Not("/response_format/type", &["\"text\"", "\"json_object\""]),
            "This response_format type is unavailable now",
            r#"{"response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"type": "object"}}}}"#,
            "UKGovernmentBEIS/inspect_ai#4916, 2026-08",
        ),
        Rule::new(
            Test::By(no_word_of_json),
            "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'.",
            r#"{"messages": [{"role": "user", "content": "Look."}]}"#,
            "browserbase/stagehand#1204, 2025-10",
        ),
        Rule::new(
            Test::By(turns::no_reasoning_content),
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            r#"{"messages": [{"role": "user", "content": "Look, in JSON."},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "call_1", "content": "a ledger"}]}"#,
            "anomalyco/opencode#24083, 2026-04; chatboxai/chatbox#3692, 2026-08",
        ),
        Rule::new(
            Test::By(turns::unanswered),
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. (insufficient tool messages following tool_calls message)",
            r#"{"messages": [{"role": "user", "content": "Look, in JSON."},
                {"role": "assistant", "content": null, "reasoning_content": "", "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}]}"#,
            "TurixAI/TuriX-CUA#15, 2026-03",
        ),
        Rule::new(
            Test::Beyond("/max_tokens", 393_216),
            "Invalid max_tokens value, the valid range of max_tokens is [1, 393216]",
            r#"{"max_tokens": 400000}"#,
            "nof1.ai#29, 2025-11; the number is that of api-docs.deepseek.com, 2026-10",
        ),
    ],
    voice: Voice {
        thinks: 1500,
        unasked: true,
        thought: Thought::Beside("reasoning_content"),
        id: ("call_00_", 20),
        usage,
        waits: "keep-alive",
        ..PLAIN
    },
};

fn thinking(body: &Value) -> Option<String> {
    (body["thinking"]["type"] != "disabled").then(String::new)
}
