//! The content of a message of the Chat Completions API: a text, or parts, where images and PDFs go with it.

use serde::Serialize;

use crate::host::llm::attempt_error::CallContext;
use crate::host::llm::cache::{MARK, Mark};
use crate::model::attachment::Attachment;
use crate::model::chat::Message;
use crate::model::media;

/// Providers that take a PDF as `document_url`; all others that take one take it as OpenAI does, as `file`.
const BY_DOCUMENT_URL: &[&str] = &["mistral"];

/// The content of a message.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

/// A part of a content.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text {
        text: &'a str,
        /// The mark of what is to be cached, for models of Anthropic's behind a provider that passes it on.
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Mark>,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
    File {
        file: File<'a>,
    },
    DocumentUrl {
        document_url: String,
    },
}

/// An image, as a `data:` URL.
#[derive(Serialize)]
pub(super) struct ImageUrl {
    url: String,
}

/// A PDF, as a `data:` URL.
#[derive(Serialize)]
pub(super) struct File<'a> {
    filename: &'a str,
    file_data: String,
}

impl<'a> Content<'a> {
    /// Returns the content of a message, or `None` for an empty one beside tool calls: some servers refuse an empty text there.
    pub(super) fn of(context: CallContext<'_>, message: &'a Message) -> Option<Content<'a>> {
        if message.attachments.is_empty() {
            let text = Some(message.content.as_str());
            return text.filter(|text| !text.is_empty() || message.tool_calls.is_empty()).map(Content::Text);
        }
        let files = message.attachments.iter().map(|attachment| part(context, attachment));
        let text = (!message.content.is_empty()).then_some(Part::Text { text: &message.content, cache_control: None });
        // What is asked about the files stands behind them, as providers advise.
        Some(Content::Parts(files.chain(text).collect()))
    }

    /// Returns the size of its texts, in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Content::Text(text) => text.len(),
            Content::Parts(parts) => {
                parts.iter().map(|part| if let Part::Text { text, .. } = part { text.len() } else { 0 }).sum()
            }
        }
    }

    /// Marks the end of its text, if it has one.
    pub(super) fn mark(&mut self) {
        match self {
            Content::Text("") => {}
            Content::Text(text) => *self = Content::Parts(vec![Part::Text { text, cache_control: Some(MARK) }]),
            Content::Parts(parts) => {
                if let Some(Part::Text { cache_control, .. }) = parts.last_mut() {
                    *cache_control = Some(MARK);
                }
            }
        }
    }
}

fn part<'a>(context: CallContext<'_>, attachment: &'a Attachment) -> Part<'a> {
    let url = attachment.data_url();
    match attachment.media_type.as_str() {
        media::PDF if BY_DOCUMENT_URL.contains(&context.provider.name.as_str()) => {
            Part::DocumentUrl { document_url: url }
        }
        media::PDF => Part::File { file: File { filename: &attachment.name, file_data: url } },
        _ => Part::ImageUrl { image_url: ImageUrl { url } },
    }
}
