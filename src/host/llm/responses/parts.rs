//! The content of a user's message of the Responses API: a text, or parts, where images and PDFs go with it.

use serde::Serialize;

use crate::model::attachment::Attachment;
use crate::model::chat::Message;
use crate::model::media;

/// The content of a message.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

/// A part of a content. Files are `data:` URLs.
#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum Part<'a> {
    #[serde(rename = "input_text")]
    Text { text: &'a str },
    #[serde(rename = "input_image")]
    Image { image_url: String },
    #[serde(rename = "input_file")]
    File { filename: &'a str, file_data: String },
}

impl<'a> Content<'a> {
    /// Returns the content of a message.
    pub(super) fn of(message: &'a Message) -> Content<'a> {
        if message.attachments.is_empty() {
            return Content::Text(&message.content);
        }
        let files = message.attachments.iter().map(part);
        let text = (!message.content.is_empty()).then_some(Part::Text { text: &message.content });
        // What is asked about the files stands behind them, as on the other wires.
        Content::Parts(files.chain(text).collect())
    }
}

fn part(attachment: &Attachment) -> Part<'_> {
    match attachment.media_type.as_str() {
        media::PDF => Part::File { filename: &attachment.name, file_data: attachment.data_url() },
        _ => Part::Image { image_url: attachment.data_url() },
    }
}
