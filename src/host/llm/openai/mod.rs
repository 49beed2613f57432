//! OpenAI's Chat Completions API, which most providers speak.

mod parts;
mod reply;
mod request;

use reply::{Thought, details};

pub(super) use reply::Reply;
pub(super) use request::{BEGIN, body};

/// The path that is appended to the base URL.
pub(super) const PATH: &str = "chat/completions";
