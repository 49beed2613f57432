//! What error bodies say, in the forms that providers have for them.

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
        let said = Said::read(body);
        assert_eq!((said.message.as_str(), said.kind.as_str()), (message, kind), "{body}");
    }
}
