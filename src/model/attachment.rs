//! Attachments: files that go with a run or with a message, and what flows see of them. Texts are kept as the texts of params
//! are; of images and PDFs params, messages and journals have the digest, and the run's folder has the bytes.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::model::digest::Digest;
use crate::model::media;
use crate::model::param::{Param, ParamKind};

/// The param that keeps them, and the option that gives them.
pub const ATTACH: &str = "attach";

/// Returns the param of a flow that takes attachments.
pub fn param() -> Param {
    Param {
        pattern: None,
        pattern_means: None,
        alone: None,
        kind: ParamKind::Attachment,
        help: "Files that go with it: UTF-8 text, images and PDF, 50 MB in all; `-` is standard input".to_owned(),
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

/// The most images and PDFs of one message.
pub const MOST: usize = 100;

/// An image or a PDF that goes with a message. Flows, requests, keys and journals know it by its digest; its bytes are kept
/// beside the journal, and are there only while a call is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    // The fields are in the order of their names, so that the canonical form needs no sorting.
    pub bytes: u64,
    pub digest: String,
    pub media_type: String,
    pub name: String,
    /// How many pages a PDF has, if they could be counted. It follows from the bytes, so it is no part of a key.
    #[serde(default, skip_serializing)]
    pub pages: Option<u64>,
    #[serde(skip)]
    pub data: Option<FileBytes>,
}

/// The bytes of a file.
#[derive(Clone, PartialEq)]
pub struct FileBytes(pub Arc<[u8]>);

impl std::fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Attachment {
    /// Returns what is wrong with it as it came from a flow.
    pub fn problem(&self) -> Option<String> {
        if Digest::parse(&self.digest).is_none() {
            return Some(
                "the digest of an attachment is 32 hex digits, as `ctx.attachments` and replies have it".into(),
            );
        }
        let is_taken = media::TAKEN.contains(&self.media_type.as_str());
        (!is_taken).then(|| format!("models take {}, and text as text", media::TAKEN.join(", ")))
    }

    /// Returns an upper bound of the tokens that it counts as.
    pub fn most_tokens(&self) -> u64 {
        media::most_tokens(&self.media_type, self.bytes, self.pages)
    }

    /// Returns the bytes as base64; empty if they are not there.
    pub fn base64(&self) -> String {
        self.data.as_ref().map(|data| BASE64.encode(&data.0)).unwrap_or_default()
    }

    /// Returns it as the `data:` URL that providers take in place of an address.
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.base64())
    }
}

/// A file as flows see it: a text with its text, an image or a PDF by its digest alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AttachedFile {
    pub name: String,
    pub media_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    pub bytes: u64,
    pub digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
}

impl AttachedFile {
    /// Returns a text as flows see it.
    pub fn of_text(name: &str, text: &str) -> AttachedFile {
        AttachedFile {
            name: name.to_owned(),
            media_type: media_type(name).to_owned(),
            text: Some(text.to_owned()),
            bytes: text.len() as u64,
            digest: Digest::of(text.as_bytes()).to_string(),
            pages: None,
        }
    }

    /// Returns an image or a PDF as flows see it, or `None` for all else.
    pub fn of_media(name: &str, bytes: &[u8]) -> Option<AttachedFile> {
        let media_type = media::taken_type(bytes)?;
        Some(AttachedFile {
            name: name.to_owned(),
            media_type: media_type.to_owned(),
            text: None,
            bytes: bytes.len() as u64,
            digest: Digest::of(bytes).to_string(),
            pages: (media_type == media::PDF).then(|| media::pages(bytes)).flatten(),
        })
    }

    /// Returns an image or a PDF as a param keeps it: where it came from stands beside the params.
    pub fn as_param(&self) -> Value {
        let mut kept = json!({ "bytes": self.bytes, "digest": self.digest, "media_type": self.media_type });
        if let Some(pages) = self.pages {
            kept["pages"] = pages.into();
        }
        kept
    }
}

/// Takes the attachments out of the params and their origins, and returns them as a flow sees them.
pub fn take(params: &mut Value, origins: &mut Value) -> Vec<Value> {
    let without = |value: &mut Value| value.as_object_mut().and_then(|all| all.shift_remove(ATTACH));
    let (given, origins) = (without(params).unwrap_or_default(), without(origins).unwrap_or_default());
    let shown = given.as_array().into_iter().flatten().enumerate().filter_map(|(item, given)| {
        let name = origins[item]["name"].as_str().unwrap_or("standard input");
        match given {
            Value::String(text) => serde_json::to_value(AttachedFile::of_text(name, text)).ok(),
            Value::Object(kept) => {
                let mut shown = Map::from_iter([("name".to_owned(), Value::from(name))]);
                shown.extend(kept.clone());
                Some(Value::Object(shown))
            }
            _ => None,
        }
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
        assert_eq!(Value::from(shown), expected);
        assert!(take(&mut params, &mut origins).is_empty());
    }

    #[test]
    fn an_image_is_kept_and_shown_by_its_digest() {
        let file = AttachedFile::of_media("a.txt", b"\x89PNG\r\n\x1a\n\0").unwrap();
        let mut params = json!({ "attach": [file.as_param()] });
        let mut origins = json!({ "attach": [{ "kind": "file", "name": "a.txt" }] });
        let shown = take(&mut params, &mut origins);
        assert_eq!(shown, [serde_json::to_value(&file).unwrap()]);
        let sent: Attachment = serde_json::from_value(shown[0].clone()).unwrap();
        assert_eq!((sent.problem(), sent.media_type.as_str(), sent.data), (None, "image/png", None));
        assert_eq!(AttachedFile::of_media("a.png", b"plain"), None);
    }
}
