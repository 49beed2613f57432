//! What a model thought and wants back with the message that it made. It is kept as a text that nobody else reads: the
//! flow hands it on, the journal keeps it with the reply, and it goes to that model alone.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fault::Subject;
use super::refusal::Part;
use crate::model::chat::{ChatRequest, Message};

#[derive(Serialize, Deserialize)]
struct Kept {
    /// The model that made it, as `provider/model`.
    by: String,
    /// As the wire of that model has it.
    what: Value,
}

/// Returns the text that is kept.
pub(super) fn keep(subject: Subject<'_>, what: &Value) -> String {
    json!({ "by": name(subject), "what": what }).to_string()
}

/// Returns what was kept with a message, if this model made it.
pub(super) fn of<T: DeserializeOwned>(subject: Subject<'_>, message: &Message) -> Option<T> {
    if subject.manner.refuses(Part::State) {
        return None;
    }
    let kept: Kept = serde_json::from_str(message.state.as_deref()?).ok()?;
    (kept.by == name(subject)).then(|| serde_json::from_value(kept.what).ok())?
}

/// Tells whether something of what was kept goes back with this request.
pub(super) fn goes_back(subject: Subject<'_>, request: &ChatRequest) -> bool {
    request.messages.iter().any(|message| of::<Value>(subject, message).is_some())
}

fn name(subject: Subject<'_>) -> String {
    format!("{}/{}", subject.provider.name, subject.model)
}
