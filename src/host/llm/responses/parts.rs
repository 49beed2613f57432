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
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    InputText { text: &'a str },
    InputImage { image_url: String },
    InputFile { filename: &'a str, file_data: String },
}

impl<'a> Content<'a> {
    /// Returns the content of a message.
    pub(super) fn of(message: &'a Message) -> Content<'a> {
        if message.attachments.is_empty() {
            return Content::Text(&message.content);
        }
        let files = message.attachments.iter().map(part);
        let text = (!message.content.is_empty()).then_some(Part::InputText { text: &message.content });
        // What is asked about the files stands behind them, as on the other wires.
        Content::Parts(files.chain(text).collect())
    }
}

fn part(attachment: &Attachment) -> Part<'_> {
    match attachment.media_type.as_str() {
        media::PDF => Part::InputFile { filename: &attachment.name, file_data: attachment.data_url() },
        _ => Part::InputImage { image_url: attachment.data_url() },
    }
}
