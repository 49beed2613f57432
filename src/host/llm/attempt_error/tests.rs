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
