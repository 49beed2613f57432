//! What a model thought and wants back with the message that it made. It is kept as a text that nobody else reads: the
//! flow hands it on, the journal keeps it with the reply, and it goes to that model alone.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::attempt_error::CallContext;
use super::refusal::RequestPart;
use crate::model::chat::{ChatRequest, Message};

#[derive(Serialize, Deserialize)]
struct ModelState {
    /// The model that made it, as `provider/model`.
    by: String,
    /// As the wire of that model has it.
    what: Value,
}

/// Returns the text that is kept.
pub(super) fn keep(context: CallContext<'_>, what: &Value) -> String {
    json!({ "by": name(context), "what": what }).to_string()
}

/// Returns what was kept with a message, if this model made it.
pub(super) fn of<T: DeserializeOwned>(context: CallContext<'_>, message: &Message) -> Option<T> {
    if context.profile.refuses(RequestPart::State) {
        return None;
    }
    let kept: ModelState = serde_json::from_str(message.state.as_deref()?).ok()?;
    (kept.by == name(context)).then(|| serde_json::from_value(kept.what).ok())?
}

/// Tells whether something of what was kept goes back with this request.
pub(super) fn goes_back(context: CallContext<'_>, request: &ChatRequest) -> bool {
    request.messages.iter().any(|message| of::<Value>(context, message).is_some())
}

fn name(context: CallContext<'_>) -> String {
    format!("{}/{}", context.provider.name, context.model)
}
