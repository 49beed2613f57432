//! The wire of Anthropic's messages.

mod reply;
mod request;

pub(super) use reply::Reply;
pub(super) use request::body;

/// What is added to the base URL.
pub(super) const PATH: &str = "v1/messages";

/// The version of the wire that is spoken here.
pub(super) const VERSION: &str = "2023-06-01";

/// The tool by which a structured reply is given: the wire has no older and surer way than to make
/// the model call a tool whose arguments are the reply.
const REPLY_TOOL: &str = "nietz_reply";

/// Tells whether a request gets its structured reply by the tool. Arguments are always an object, so
/// a schema of anything else is spelled out in the system prompt instead.
fn replies_by_tool(request: &crate::model::chat::ChatRequest) -> bool {
    request.schema.as_ref().is_some_and(super::schema::has_object_root)
}
