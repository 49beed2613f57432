//! Anthropic's Messages API.

mod parts;
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

/// The path that is appended to the base URL.
pub(super) const PATH: &str = "v1/messages";

/// The version of the API that this module speaks.
pub(super) const VERSION: &str = "2023-06-01";

/// The tool that gets a structured reply out of older models: they must call it, and its arguments are the reply.
const REPLY_TOOL: &str = "nietz_reply";

/// How a structured reply is obtained.
enum ReplyMethod {
    /// By `REPLY_TOOL`, whose arguments are always an object.
    Tool,
    /// By the API's own output format, with the given schema.
    Format(Value),
    /// By an instruction in the system prompt.
    Prompt,
}

/// Returns how a request gets its structured reply; `None` if it has no schema.
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
