//! Anthropic's Messages API.

mod parts;
mod reply;
mod request;

use serde_json::Value;

use super::families::{ModelProfile, NativeSchema};
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

/// Tells whether a model is ever made to call a tool. One that is held to schemas by the API is not: to change the tool choice
/// within a conversation would void what is cached of it, and the newest models refuse to be forced.
fn is_forced(profile: &ModelProfile) -> bool {
    profile.native_schema.is_none() && !profile.refuses(RequestPart::ToolChoice)
}

/// Returns how a request gets its structured reply; `None` if it has no schema.
fn reply_method(profile: &ModelProfile, request: &ChatRequest) -> Option<ReplyMethod> {
    let schema = request.schema.as_ref()?;
    let object = schema::has_object_root(schema);
    let format =
        (object && profile.native_schema == Some(NativeSchema::Closed) && !profile.refuses(RequestPart::OutputConfig))
            .then(|| schema::closed_schema(schema));
    Some(match format.flatten() {
        Some(format) => ReplyMethod::Format(format),
        None if object && is_forced(profile) => ReplyMethod::Tool,
        None => ReplyMethod::Prompt,
    })
}
