//! Attachments: files that the user gives to a run, and what flows see of them. They are kept as the texts of params are.

use serde_json::{Value, json};

use crate::model::digest::Digest;
use crate::model::param::{Param, ParamKind};

/// The param that keeps them, and the option that gives them.
pub const ATTACH: &str = "attach";

/// Returns the param of a flow that takes attachments.
pub fn param() -> Param {
    Param {
        pattern: None,
        pattern_means: None,
        kind: ParamKind::Attachment,
        help: "Files that go with it: UTF-8 text, 50 MB in all; `-` is standard input".to_owned(),
        positional: false,
        required: false,
        order: None,
        many: true,
        default: None,
        choices: Vec::new(),
        min: None,
        max: None,
        min_items: None,
        max_items: None,
        short: None,
    }
}

/// Takes the attachments out of the params and their origins, and returns them as a flow sees them.
pub fn take(params: &mut Value, origins: &mut Value) -> Value {
    let without = |value: &mut Value| value.as_object_mut().and_then(|all| all.shift_remove(ATTACH));
    let (texts, origins) = (without(params).unwrap_or_default(), without(origins).unwrap_or_default());
    let texts = texts.as_array().into_iter().flatten().filter_map(Value::as_str).enumerate();
    let shown = texts.map(|(item, text)| {
        let name = origins[item]["name"].as_str().unwrap_or("standard input");
        json!({
            "name": name, "media_type": media_type(name), "text": text, "bytes": text.len(),
            "digest": Digest::of(text.as_bytes()).to_string(),
        })
    });
    shown.collect()
}

/// Returns the media type of a text, by its name.
fn media_type(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "md" | "markdown" => "text/markdown",
        "csv" => "text/csv",
        "tsv" => "text/tab-separated-values",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "xml" => "application/xml",
        "svg" => "image/svg+xml",
        "diff" | "patch" => "text/x-diff",
        _ => "text/plain",
    }
}

/// Returns what bytes that are no text seem to be, by how they begin.
pub fn binary_type(bytes: &[u8]) -> &'static str {
    const STARTS: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"%PDF-", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
        (b"\xff\xfe", "text in UTF-16"),
        (b"\xfe\xff", "text in UTF-16"),
    ];
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return "image/webp";
    }
    STARTS.iter().find(|(start, _)| bytes.starts_with(start)).map_or("application/octet-stream", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_sees_names_types_and_digests_and_no_param() {
        let mut params = json!({ "question": "why", "attach": ["# A", "b"] });
        let mut origins = json!({ "attach": [{ "kind": "file", "name": "docs/a.md" }, { "kind": "pipe" }] });
        let shown = take(&mut params, &mut origins);
        assert_eq!((&params, &origins), (&json!({ "question": "why" }), &json!({})));
        let digest = |text: &str| Digest::of(text.as_bytes()).to_string();
        let expected = json!([
            { "name": "docs/a.md", "media_type": "text/markdown", "text": "# A", "bytes": 3, "digest": digest("# A") },
            { "name": "standard input", "media_type": "text/plain", "text": "b", "bytes": 1, "digest": digest("b") },
        ]);
        assert_eq!(shown, expected);
        assert_eq!(take(&mut params, &mut origins), json!([]));
    }
}
