//! Tests error bodies in the forms that providers use.

use super::*;

#[test]
fn each_form_of_an_error_body_is_read() {
    for (body, message, kind) in [
        (r#"{"error": {"message": "m", "type": "t", "code": null}}"#, "m", "t "),
        (r#"[{"error": {"code": 400, "message": "m", "status": "INVALID"}}]"#, "m", "400 INVALID "),
        (r#"{"type": "error", "error": {"type": "overloaded_error", "message": "m"}}"#, "m", "overloaded_error "),
        (r#"{"error": "model 'x' not found"}"#, "model 'x' not found", ""),
        (r#"{"object": "error", "message": "m"}"#, "m", ""),
        (r#"{"detail": "m"}"#, "m", ""),
        ("plain words\n", "plain words", ""),
        (" <html><body>", "", ""),
        ("", "", ""),
        ("[]", "", ""),
        ("17", "", ""),
    ] {
        let server_error = ServerError::read(body);
        assert_eq!((server_error.message.as_str(), server_error.kind.as_str()), (message, kind), "{body}");
    }
}

#[test]
fn what_a_refusal_names_is_found_wherever_it_stands() {
    for (body, words, param) in [
        (r#"{"error": {"message": "m: temperature", "param": "temperature"}}"#, "m: temperature", "temperature"),
        (
            r#"{"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}"#,
            "body seed Extra inputs are not permitted",
            "",
        ),
        (
            r#"{"object": "error", "message": {"detail": [{"loc": ["body", "tool_choice"], "msg": "not permitted"}]}}"#,
            "body tool_choice not permitted",
            "",
        ),
        (r#"{"error": {"message": "Provider returned error", "metadata": {"raw": "no seed"}}}"#, "no seed", ""),
    ] {
        let refusal = ServerError::read(body).refusal;
        assert!(refusal.message.contains(words), "{body}: {}", refusal.message);
        assert_eq!(refusal.param, param);
    }
}

#[test]
fn a_conversation_that_is_longer_than_the_window_is_known_by_the_words_of_each_server() {
    for body in [
        r#"{"error": {"message": "no", "type": "invalid_request_error", "code": "context_length_exceeded"}}"#,
        r#"{"error": {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."}}"#,
        r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit"}}"#,
        r#"[{"error": {"code": 400, "message": "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."}}]"#,
        r#"{"error": {"code": 400, "type": "exceed_context_size_error", "message": "the request exceeds the available context size"}}"#,
    ] {
        assert!(ServerError::read(body).is_about_the_window(), "{body}");
    }
    for body in [
        r#"{"error": {"message": "max_tokens is too large: 99999"}}"#,
        r#"{"error": {"message": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000", "code": "rate_limit_exceeded"}}"#,
        r#"{"error": {"message": "the prompt violates the policy"}}"#,
    ] {
        assert!(!ServerError::read(body).is_about_the_window(), "{body}");
    }
}
