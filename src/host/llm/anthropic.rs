//! The wire of Anthropic's messages.

mod reply;
mod request;

use serde_json::Value;

use super::families::ModelProfile;
use super::refusal::RequestPart;
use super::schema;
use crate::model::chat::ChatRequest;

use reply::Thought;

pub(super) use reply::Reply;
pub(super) use request::body;

/// What is added to the base URL.
pub(super) const PATH: &str = "v1/messages";

/// The version of the wire that is spoken here.
pub(super) const VERSION: &str = "2023-06-01";

/// The tool by which older models give a structured reply: they are made to call it, and its arguments are the reply.
const REPLY_TOOL: &str = "nietz_reply";

/// How a structured reply is had.
enum ReplyMethod {
    /// By the tool, whose arguments are always an object.
    Tool,
    /// By the wire itself, with a schema of the kind that it takes.
    Format(Value),
    /// By what the system prompt says.
    Prompt,
}

/// Returns how a request gets its structured reply; nothing where it wants none.
fn reply_method(profile: &ModelProfile, request: &ChatRequest) -> Option<ReplyMethod> {
    let schema = request.schema.as_ref()?;
    let object = schema::has_object_root(schema);
    let format = (object && profile.native_schema && !profile.refuses(RequestPart::OutputConfig))
        .then(|| schema::closed_schema(schema));
    Some(match format.flatten() {
        Some(format) => ReplyMethod::Format(format),
        None if object && !profile.refuses(RequestPart::ToolChoice) => ReplyMethod::Tool,
        None => ReplyMethod::Prompt,
    })
}
