//! Images and PDFs as blocks of the Messages API.

use serde::Serialize;

use crate::model::attachment::Attachment;
use crate::model::media;

/// A block with a file.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum FileBlock<'a> {
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        /// The API knows no file names; the title is shown to the model.
        title: &'a str,
    },
}

/// The bytes of a file.
#[derive(Serialize)]
pub(super) struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: String,
}

/// Returns the block of an attachment.
pub(super) fn block(attachment: &Attachment) -> FileBlock<'_> {
    let source = Source { r#type: "base64", media_type: &attachment.media_type, data: attachment.base64() };
    match attachment.media_type.as_str() {
        media::PDF => FileBlock::Document { source, title: &attachment.name },
        _ => FileBlock::Image { source },
    }
}
