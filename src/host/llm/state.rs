//! The thinking that a model wants back with its message. It is kept as an opaque text: the flow passes it on, the journal
//! keeps it with the reply, and only the model that made it gets it back.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::attempt_error::CallContext;
use super::refusal::RequestPart;
use crate::model::chat::{ChatRequest, Message};

#[derive(Serialize, Deserialize)]
struct ModelState {
    /// The model that made the state, as `provider/model`.
    by: String,
    /// The state, in the form of that model's API.
    what: Value,
}

/// Returns the state as the text that is kept.
pub(super) fn keep(context: CallContext<'_>, what: &Value) -> String {
    json!({ "by": name(context), "what": what }).to_string()
}

/// Returns the state that was kept with a message, if this model made it.
pub(super) fn of<T: DeserializeOwned>(context: CallContext<'_>, message: &Message) -> Option<T> {
    if context.profile.refuses(RequestPart::State) {
        return None;
    }
    let model_state: ModelState = serde_json::from_str(message.state.as_deref()?).ok()?;
    (model_state.by == name(context)).then(|| serde_json::from_value(model_state.what).ok())?
}

/// Tells whether this request sends any state back.
pub(super) fn goes_back(context: CallContext<'_>, request: &ChatRequest) -> bool {
    request.messages.iter().any(|message| of::<Value>(context, message).is_some())
}

fn name(context: CallContext<'_>) -> String {
    format!("{}/{}", context.provider.name, context.model)
}
