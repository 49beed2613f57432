//! The wire that most providers speak: chat completions as OpenAI has them.

mod reply;
mod request;

use reply::Thought;

pub(super) use reply::Reply;
pub(super) use request::body;

/// What is added to the base URL.
pub(super) const PATH: &str = "chat/completions";
