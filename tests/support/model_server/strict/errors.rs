//! How providers write down that they refuse a request.

use serde_json::{Value, json};

use super::Refusal;

/// Null where there is nothing to say.
fn or_null(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { json!(text) }
}

/// OpenAI's, on both wires (pydantic-ai-slim@2.68.0 tests/cassettes, 2026-08).
pub(super) fn openai(refusal: &Refusal) -> Value {
    let kind = if refusal.status == 401 { "authentication_error" } else { "invalid_request_error" };
    json!({"error": {"message": refusal.message, "type": kind,
        "param": or_null(&refusal.param), "code": or_null(&refusal.code)}})
}

/// Anthropic's (anthropic@2.12.0 types/shared/error_response.py, 2026-11).
pub(super) fn anthropic(refusal: &Refusal) -> Value {
    let kind = match refusal.status {
        401 => "authentication_error",
        404 => "not_found_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": refusal.message}, "request_id": "req_011CX"})
}

/// Google's, which is a list with one object (securo-finance/securo#884, 2026-09).
pub(super) fn gemini(refusal: &Refusal) -> Value {
    let status = match refusal.status {
        401 => "UNAUTHENTICATED",
        404 => "NOT_FOUND",
        _ => "INVALID_ARGUMENT",
    };
    json!([{"error": {"code": refusal.status, "message": refusal.message, "status": status}}])
}

/// DeepSeek's: the code is the type once more (anomalyco/opencode#24083, 2026-04).
pub(super) fn deepseek(refusal: &Refusal) -> Value {
    let kind = if refusal.status == 401 { "authentication_error" } else { "invalid_request_error" };
    json!({"error": {"message": refusal.message, "type": kind, "param": null, "code": "invalid_request_error"}})
}

/// xAI's: the message is the error (chenyme/grok2api#814, 2026-07).
pub(super) fn xai(refusal: &Refusal) -> Value {
    let code = if refusal.status == 404 { "not-found" } else { "invalid-argument" };
    json!({"code": code, "error": refusal.message})
}

/// Groq's: what is not known is left out (groq@1.7.0, 2026-11).
pub(super) fn groq(refusal: &Refusal) -> Value {
    let mut error = json!({"message": refusal.message, "type": "invalid_request_error"});
    for (name, value) in [("param", &refusal.param), ("code", &refusal.code)] {
        if !value.is_empty() {
            error[name] = json!(value);
        }
    }
    json!({"error": error})
}

/// OpenRouter's: its own in plain words; those of the provider behind it as a text within (openrouter@1.3.84, 2026-11).
pub(super) fn openrouter(refusal: &Refusal) -> Value {
    let code = refusal.status;
    if refusal.code != "upstream" {
        return json!({"error": {"message": refusal.message, "code": code}, "user_id": "user_1"});
    }
    let raw = anthropic(&Refusal { code: String::new(), ..refusal.clone() }).to_string();
    let metadata = json!({"raw": raw, "provider_name": "Anthropic", "error_type": "invalid_request"});
    json!({"error": {"message": "Provider returned error", "code": code, "metadata": metadata}, "user_id": "user_1"})
}

/// Mistral's: where a body has members that it may not have, the message is an object (editor-code-assistant/eca#231, 2026-02).
pub(super) fn mistral(refusal: &Refusal) -> Value {
    match refusal.status {
        401 => json!({"detail": refusal.message}),
        422 => {
            let place: Vec<&str> = std::iter::once("body").chain(refusal.param.split('.')).collect();
            let detail = json!({"type": "extra_forbidden", "loc": place, "msg": refusal.message, "input": null});
            json!({"object": "error", "message": {"detail": [detail]}, "type": "invalid_request_error", "param": null,
                "code": null})
        }
        _ => {
            let order = if refusal.code == "3230" { "invalid_request_message_order" } else { "invalid_request_error" };
            json!({"object": "error", "message": refusal.message, "type": order, "param": null,
                "code": or_null(&refusal.code)})
        }
    }
}

/// Ollama's under `/v1` (ollama/ollama fb30760 middleware/openai.go, 2026-08).
pub(super) fn ollama(refusal: &Refusal) -> Value {
    let kind = if refusal.status == 404 { "not_found_error" } else { "invalid_request_error" };
    json!({"error": {"message": refusal.message, "type": kind, "param": null, "code": null}})
}

/// llama.cpp's (ggml-org/llama.cpp server-common.cpp, 2026).
pub(super) fn llama_cpp(refusal: &Refusal) -> Value {
    let kind = match refusal.status {
        401 => "authentication_error",
        404 => "not_found_error",
        500 => "server_error",
        _ => "invalid_request_error",
    };
    json!({"error": {"code": refusal.status, "message": refusal.message, "type": kind}})
}

/// Azure's: OpenAI's, and for what is Azure's own a code that is a text (learn.microsoft.com, 2026).
pub(super) fn azure(refusal: &Refusal) -> Value {
    match refusal.status {
        401 => json!({"error": {"code": "401", "message": refusal.message}}),
        404 => json!({"error": {"code": "DeploymentNotFound", "message": refusal.message}}),
        _ => openai(refusal),
    }
}

/// Bedrock's on OpenAI's wire, and that of its door: 403, with a capital letter (docs.aws.amazon.com, 2026).
pub(super) fn bedrock(refusal: &Refusal) -> Value {
    match refusal.status {
        403 => json!({"Message": refusal.message}),
        _ => json!({"error": {"code": "validation_error", "message": refusal.message, "param": or_null(&refusal.param),
            "type": "invalid_request_error"}}),
    }
}

/// Bedrock's on Anthropic's wire.
pub(super) fn bedrock_claude(refusal: &Refusal) -> Value {
    if refusal.status == 403 { bedrock(refusal) } else { anthropic(refusal) }
}
