//! OpenAI's Responses with GPT-5.6 and later.
//!
//! By the types of openai@3.54.0 (responses/response_create_params.py, 2026-11) and by the sources of each rule. What a model
//! thought is not refused when it does not come back; that it did not is noted (`Seen::wrong`).

use serde_json::Value;

use super::openai_4_1::KEY;
use super::openai_chat::VOICE;
use super::rules::{Rule, Rules, Test};
use super::voice::{Thought, Voice, seal};
use super::{at, errors, list, schemas};

const MEMBERS: &[&str] = &[
    "model",
    "input",
    "instructions",
    "max_output_tokens",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "include",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "top_logprobs",
    "truncation",
    "previous_response_id",
    "conversation",
    "metadata",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "background",
    "max_tool_calls",
    "context_management",
    "user",
];

/// What a reasoning item says of itself, sealed for this model.
fn unverified(body: &Value) -> Option<String> {
    let mut thoughts = list(&body["input"]).iter().filter(|item| item["type"] == "reasoning");
    let foreign =
        |item: &&Value| !item["encrypted_content"].is_null() && item["encrypted_content"] != seal(body, &item["id"]);
    thoughts.find(foreign).map(|item| item["id"].as_str().unwrap_or_default().to_owned())
}

/// A reasoning item without what it stands for.
fn not_kept(body: &Value) -> Option<String> {
    let mut thoughts = list(&body["input"]).iter().filter(|item| item["type"] == "reasoning");
    let bare = thoughts.find(|item| body["store"] == false && item["encrypted_content"].is_null())?;
    Some(bare["id"].as_str().unwrap_or_default().to_owned())
}

/// A reasoning item behind which nothing of the model's stands.
fn alone(body: &Value) -> Option<String> {
    let input = list(&body["input"]);
    let (_, item) = input.iter().enumerate().find(|(index, item)| {
        let next = input.get(index + 1).unwrap_or(&Value::Null);
        let follows = ["function_call", "message", "reasoning"].iter().any(|kind| next["type"] == *kind);
        item["type"] == "reasoning" && !follows && next["role"] != "assistant"
    })?;
    Some(item["id"].as_str().unwrap_or_default().to_owned())
}

/// A call with an id of its own, whose reasoning item is missing.
fn without_thought(body: &Value) -> Option<String> {
    let input = list(&body["input"]);
    let mut thought = false;
    for item in input {
        match item["type"].as_str() {
            Some("reasoning") => thought = true,
            Some("function_call_output") => thought = false,
            Some("function_call") if !thought && !item["id"].is_null() => {
                return Some(item["id"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }
    None
}

fn calls_of<'b>(body: &'b Value, kind: &'static str) -> impl Iterator<Item = &'b Value> {
    list(&body["input"]).iter().filter(move |item| item["type"] == kind).map(|item| &item["call_id"])
}

fn unanswered(body: &Value) -> Option<String> {
    let open =
        calls_of(body, "function_call").find(|id| calls_of(body, "function_call_output").all(|one| one != *id))?;
    Some(open.as_str().unwrap_or_default().to_owned())
}

fn uncalled(body: &Value) -> Option<String> {
    let stray =
        calls_of(body, "function_call_output").find(|id| calls_of(body, "function_call").all(|one| one != *id))?;
    Some(stray.as_str().unwrap_or_default().to_owned())
}

/// A tool in the form of chat completions.
fn nested(body: &Value) -> Option<String> {
    let tools = list(&body["tools"]).iter().enumerate();
    tools
        .filter(|(_, tool)| tool["type"] == "function")
        .find(|(_, tool)| tool["name"].is_null())
        .map(|(index, _)| index.to_string())
}

/// A format of the text in the form of chat completions, or without its name.
fn nameless(body: &Value) -> Option<String> {
    let format = at(body, "/text/format");
    let name = format["name"].as_str().unwrap_or_default();
    let fits = (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    (format["type"] == "json_schema" && !fits).then(|| "text.format.name".to_owned())
}

fn empty(body: &Value) -> Option<String> {
    (list(&body["input"]).is_empty() && body["input"].as_str().unwrap_or_default().is_empty()).then(String::new)
}

/// A message that an assistant is to have said in the words of a user.
fn wrong_part(body: &Value) -> Option<String> {
    let said = |item: &Value, kind: &str| list(&item["content"]).iter().any(|part| part["type"] == kind);
    let input = list(&body["input"]).iter().enumerate();
    let mut wrong = input.filter(|(_, item)| item["role"] == "assistant" && said(item, "input_text"));
    wrong.next().map(|(index, _)| index.to_string())
}

fn undeclared(body: &Value) -> Option<String> {
    let name = at(body, "/tool_choice/name").as_str()?;
    list(&body["tools"]).iter().all(|tool| tool["name"] != name).then(|| name.to_owned())
}

pub(super) const TEMPERATURE: Rule = Rule::new(
    Test::Has(&["/temperature", "/top_p", "/top_logprobs"]),
    "Unsupported parameter: '{}' is not supported with this model.",
    r#"{"temperature": 0.2}"#,
    "OpenHands/software-agent-sdk#1837, 2026-01; can1357/oh-my-pi#5606, 2026-07",
)
.param("{}");

pub(super) const RULES: Rules = Rules {
    name: "OpenAI, gpt-5.6 and later, Responses",
    host: "api.openai.com",
    path: "/v1/responses",
    key: KEY,
    models: ["gpt-6.1-terra", "gpt-6-luna"],
    no_model: Rule::new(
        Test::Has(&["/model"]),
        "The requested model '{model}' does not exist.",
        r#"{"model": "gpt-3"}"#,
        "pydantic-ai-slim@2.68.0 tests/cassettes/test_model_name_suggestions, 2026",
    )
    .param("model")
    .code("model_not_found"),
    errors: errors::openai,
    good: GOOD,
    rules: RULES_OF_RESPONSES,
    voice: SEALED,
};

/// A request with all that these models take.
pub(super) const GOOD: &str = r#"{"model": "gpt-6.1-terra", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.", "max_output_tokens": 4000, "reasoning": {"effort": "low"},
        "input": [{"role": "user", "content": "Look."},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "a ledger"}],
        "tools": [{"type": "function", "name": "look", "description": "Looks", "strict": false,
            "parameters": {"type": "object"}}],
        "tool_choice": "required",
        "text": {"format": {"type": "json_schema", "name": "reply", "strict": true, "schema": {"type": "object",
            "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}}}}"#;

/// What holds for these models wherever they are served.
pub(super) const RULES_OF_RESPONSES: &[Rule] = &[
        TEMPERATURE,
        Rule::new(
            Test::Strange(MEMBERS),
            "Unknown parameter: '{}'.",
            r#"{"stop": ["END"]}"#,
            "openai@3.54.0 responses/response_create_params.py, 2026-11: no stop, seed, n, penalties",
        )
        .param("{}")
        .code("unknown_parameter"),
        Rule::new(
            Test::Not("/reasoning/effort", &["\"none\"", "\"low\"", "\"medium\"", "\"high\"", "\"xhigh\"", "\"max\""]),
            "Unsupported value: '{}' is not supported with the '{model}' model. Supported values are: 'none', 'low', 'medium', 'high', 'xhigh', and 'max'.",
            r#"{"reasoning": {"effort": "minimal"}}"#,
            "pydantic-ai-slim@2.68.0 profiles/openai.py, 2026-10",
        )
        .param("reasoning.effort")
        .code("unsupported_value"),
        Rule::new(
            Test::By(nested),
            "Missing required parameter: 'tools[{}].name'.",
            r#"{"tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]}"#,
            "openai@3.54.0 responses/function_tool_param.py, 2026-11",
        )
        .param("tools[{}].name")
        .code("missing_required_parameter"),
        Rule::new(
            Test::By(nameless),
            "Missing required parameter: '{}'.",
            r#"{"text": {"format": {"name": null}}}"#,
            "openai@3.54.0 responses/response_format_text_json_schema_config_param.py, 2026-11",
        )
        .param("{}")
        .code("missing_required_parameter"),
        Rule::new(
            Test::By(schemas::strict_text),
            "Invalid schema for response_format 'reply': {}",
            r#"{"text": {"format": {"schema": {"required": []}}}}"#,
            "bingoYB/ham_home#16, 2026-09",
        )
        .param("text.format.schema")
        .code("invalid_json_schema"),
        Rule::new(
            Test::By(schemas::strict_tool),
            "Invalid schema for function {}",
            r#"{"tools": [{"type": "function", "name": "look", "strict": true, "parameters": {"type": "object"}}]}"#,
            "lastmile-ai/openai-agents-mcp#2",
        )
        .param("tools[0].parameters")
        .code("invalid_function_parameters"),
        Rule::new(
            Test::By(undeclared),
            "Tool choice '{}' not found in 'tools' parameter.",
            r#"{"tool_choice": {"type": "function", "name": "jump"}}"#,
            "pydantic-ai-slim@2.68.0 models/openai/_responses_model.py, 2026-11",
        )
        .param("tool_choice"),
        Rule::new(
            Test::By(empty),
            "Invalid 'input': expected a text or a list of items, but got none.",
            r#"{"input": []}"#,
            "pydantic-ai-slim@2.68.0 models/openai/_responses_model.py, 2026-11: that it is refused",
        )
        .param("input"),
        Rule::new(
            Test::By(wrong_part),
            "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
            r#"{"input": [{"role": "user", "content": "Look."},
                {"role": "assistant", "content": [{"type": "input_text", "text": "a ledger"}]}]}"#,
            "openai@3.54.0 responses/response_output_message_param.py, 2026-11",
        )
        .param("input[{}].content[0]")
        .code("invalid_value"),
        Rule::new(
            Test::By(not_kept),
            "Item with id '{}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
            r#"{"input": [{"role": "user", "content": "Look."}, {"type": "reasoning", "id": "rs_1", "summary": []},
                {"role": "assistant", "content": "a ledger"}]}"#,
            "openai/openai-agents-python#919; earendil-works/pi#5059, 2026-05",
        )
        .status(404)
        .param("input"),
        Rule::new(
            Test::By(unverified),
            "The encrypted content for item {} could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
            r#"{"input": [{"role": "user", "content": "Look."},
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "another's"},
                {"role": "assistant", "content": "a ledger"}]}"#,
            "pydantic/pydantic-ai#4608; Wei-Shaw/sub2api#2863, 2026-05",
        )
        .code("invalid_encrypted_content"),
        Rule::new(
            Test::By(alone),
            "Item '{}' of type 'reasoning' was provided without its required following item.",
            r#"{"store": true, "input": [{"type": "reasoning", "id": "rs_1", "summary": []},
                {"role": "user", "content": "Look."}]}"#,
            "pydantic-ai-slim@2.68.0 tests/cassettes, 2025-09",
        )
        .param("input"),
        Rule::new(
            Test::By(without_thought),
            "Item '{}' of type 'function_call' was provided without its required 'reasoning' item.",
            r#"{"input": [{"role": "user", "content": "Look."},
                {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "a ledger"}]}"#,
            "facts of 2026-11-23: likely",
        )
        .param("input"),
        Rule::new(
            Test::By(unanswered),
            "No tool output found for function call {}.",
            r#"{"input": [{"role": "user", "content": "Look."},
                {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}]}"#,
            "long known",
        )
        .param("input"),
        Rule::new(
            Test::By(uncalled),
            "No tool call found for function call output with call_id {}.",
            r#"{"input": [{"role": "user", "content": "Look."},
                {"type": "function_call_output", "call_id": "call_1", "output": "a ledger"}]}"#,
            "long known",
        )
        .param("input"),
    ];

/// What was thought is an item of its own, sealed.
pub(super) const SEALED: Voice = Voice { thought: Thought::Item, ..VOICE };
