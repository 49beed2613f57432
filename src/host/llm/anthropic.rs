//! The wire of Anthropic's messages.

mod reply;
mod request;

use serde_json::Value;

use super::families::Manner;
use super::refusal::Part;
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
enum By {
    /// By the tool, whose arguments are always an object.
    Tool,
    /// By the wire itself, with a schema of the kind that it takes.
    Format(Value),
    /// By what the system prompt says.
    Words,
}

/// Returns how a request gets its structured reply; nothing where it wants none.
fn replies_by(manner: &Manner, request: &ChatRequest) -> Option<By> {
    let schema = request.schema.as_ref()?;
    let object = schema::has_object_root(schema);
    let format =
        (object && manner.native_schema && !manner.refuses(Part::OutputConfig)).then(|| schema::closed(schema));
    Some(match format.flatten() {
        Some(format) => By::Format(format),
        None if object && !manner.refuses(Part::ToolChoice) => By::Tool,
        None => By::Words,
    })
}
