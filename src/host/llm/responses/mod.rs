//! OpenAI's Responses API. Nothing is stored there: what the model thought comes back sealed, and goes back with the next
//! request.

mod parts;
mod reply;
mod request;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub(super) use reply::Reply;
pub(super) use request::body;

/// The path that is appended to the base URL.
pub(super) const PATH: &str = "responses";

/// One item of a model's turn, in the order in which it came. Together they are what the model wants back.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Item {
    /// Kept whole, and sent back as it came: sealed thinking, and texts beside a structured reply.
    Whole(Map<String, Value>),
    /// A message: which part of the reply's text it is, and the members that go back beside that.
    Text { from: usize, to: usize, beside: Map<String, Value> },
    /// The next tool call, and the members that go back beside it.
    Call { beside: Map<String, Value> },
}

/// Returns a message of the model as an item, with what goes back beside its text.
fn message(beside: Map<String, Value>, text: &str) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("type".to_owned(), "message".into());
    members.insert("role".to_owned(), "assistant".into());
    members.extend(beside);
    members.insert("content".to_owned(), json!([{"type": "output_text", "text": text, "annotations": []}]));
    members
}
