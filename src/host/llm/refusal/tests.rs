//! The words in which providers refuse a part of a request, and similar words that mean something else.

use serde_json::json;

use super::*;

fn part(wire: Wire, param: &str, message: &str) -> Option<RequestPart> {
    let body = match wire {
        Wire::OpenAi => json!({"model": "m", "messages": [], "temperature": 0.2, "max_tokens": 9, "tools": [{}],
            "tool_choice": "required", "response_format": {}, "stop": ["END"], "stream_options": {},
            "seed": 1}),
        Wire::Anthropic => json!({"model": "m", "messages": [], "max_tokens": 9, "temperature": 0.2, "tools": [{}],
            "tool_choice": {"type": "any"}, "output_config": {"format": {}, "effort": "xhigh"},
            "stop_sequences": ["END"]}),
        Wire::Responses => json!({"model": "m", "input": [], "max_output_tokens": 9, "temperature": 0.2, "tools": [{}],
            "tool_choice": "required", "text": {"format": {}}, "reasoning": {"effort": "none"}, "include": ["x"]}),
    };
    Refusal { message: message.to_owned(), param: param.to_owned() }.part(wire, body.to_string().as_bytes())
}

#[test]
fn the_part_is_the_one_that_the_server_names() {
    for (param, message, expected) in [
        (
            "temperature",
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
            RequestPart::Temperature,
        ),
        (
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            RequestPart::MaxTokens,
        ),
        (
            "",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            RequestPart::MaxTokens,
        ),
        (
            "reasoning_effort",
            "Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            RequestPart::Thinking,
        ),
        ("", "Thinking mode does not support this tool_choice", RequestPart::ToolChoice),
        ("", "Model grok-9 does not support parameter temperature.", RequestPart::Temperature),
        ("", "This response_format type is unavailable now", RequestPart::ResponseFormat),
        ("", "Failed to initialize samplers: failed to parse grammar", RequestPart::ResponseFormat),
        ("", "json mode cannot be combined with tool/function calling", RequestPart::SchemaWithTools),
        ("", "Model grok-4.6 does not support parameter stop.", RequestPart::Stop),
        ("stop", "Unsupported parameter: 'stop' is not supported with this model.", RequestPart::Stop),
        (
            "",
            "extra_forbidden body stream_options include_usage Extra inputs are not permitted",
            RequestPart::StreamOptions,
        ),
        ("", "extra_forbidden body seed Extra inputs are not permitted", RequestPart::Seed),
        ("", "This model does not support response format `json_schema`.", RequestPart::ResponseFormat),
    ] {
        assert_eq!(part(Wire::OpenAi, param, message), Some(expected), "{message}");
    }
    for (message, expected) in [
        ("`temperature` is deprecated for this model.", RequestPart::Temperature),
        ("temperature: Extra inputs are not permitted", RequestPart::Temperature),
        ("tool_choice: type \"tool\" and \"any\" are not supported for this model.", RequestPart::ToolChoice),
        ("tool_choice forces tool use is not compatible with this model", RequestPart::ToolChoice),
        ("Thinking may not be enabled when tool_choice forces tool use.", RequestPart::ToolChoice),
        ("output_config: Extra inputs are not permitted", RequestPart::OutputConfig),
        (
            "output_config.format.schema: For 'array' type, property 'maxItems' is not supported",
            RequestPart::OutputConfig,
        ),
        (
            "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
            RequestPart::ReasoningEffort,
        ),
    ] {
        assert_eq!(part(Wire::Anthropic, "", message), Some(expected), "{message}");
    }
    for (param, message, expected) in [
        (
            "temperature",
            "Unsupported parameter: 'temperature' is not supported with this model.",
            RequestPart::Temperature,
        ),
        (
            "text.format.schema",
            "Invalid schema for response_format 'reply': In context=(), 'default' is not permitted.",
            RequestPart::ResponseFormat,
        ),
        (
            "reasoning.effort",
            "Unsupported value: 'none' is not supported with the 'gpt-6-astra' model. Supported values are: 'low'.",
            RequestPart::ReasoningEffort,
        ),
        ("include", "Encrypted content is not supported with this model.", RequestPart::Include),
    ] {
        assert_eq!(part(Wire::Responses, param, message), Some(expected), "{message}");
    }
}

#[test]
fn a_wrong_value_and_what_was_not_sent_are_no_such_refusals() {
    for (param, message) in [
        ("max_tokens", "max_tokens is too large: 9. This model supports at most 4 completion tokens."),
        ("temperature", "Invalid 'temperature': decimal above maximum value. Expected a value <= 2."),
        ("top_p", "Unsupported parameter: 'top_p' is not supported with this model."),
        ("messages", "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
        ("", "The `reasoning_content` in the thinking mode must be passed back to the API."),
        ("", "no such model"),
    ] {
        assert_eq!(part(Wire::OpenAi, param, message), None, "{message}");
    }
    for (message, of_state) in [
        (
            "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
            true,
        ),
        (
            "messages.1.content.10: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
            true,
        ),
        ("Unable to submit request because Thought signature is not valid.", true),
        ("Function call is missing a thought_signature in functionCall parts.", false),
        (
            "The encrypted content gAAA…== could not be verified. Reason: Encrypted content could not be decrypted.",
            true,
        ),
        ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", true),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", false),
    ] {
        assert_eq!(Refusal { message: message.to_owned(), param: String::new() }.is_of_state(), of_state, "{message}");
    }
    let limit = "max_tokens: 9 > 4, which is the maximum allowed number of output tokens; more is not supported";
    assert_eq!(part(Wire::Anthropic, "", limit), None);
}
