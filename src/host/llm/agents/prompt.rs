//! What an agent is told: the whole conversation as one text, because a session begins with nothing, and what its reply becomes.

use crate::host::llm::schema;
use crate::model::chat::{ChatRequest, Message, Role};

/// An agent's trade is to work on files; here it is asked for words.
const MANNERS: &str = "A program asks you, and no person reads along. Answer at once and with nothing but your reply: \
                       use no tools, read and write no files, run nothing, and ask nothing back.";

/// Returns the prompt for a request.
pub(super) fn of(request: &ChatRequest) -> String {
    let mut parts = vec![MANNERS.to_owned()];
    parts.extend(match &request.schema {
        Some(schema) => Some(schema::prompt_with_schema(request.system.as_deref(), schema)),
        None => request.system.clone(),
    });
    match request.messages.as_slice() {
        [only] if only.role == Role::User => parts.push(only.content.clone()),
        all => {
            let mark = mark(all);
            parts.push(format!("What was said so far, each message behind a line of {mark}. Answer the last one."));
            parts.extend(all.iter().map(|message| format!("{mark} {}\n{}", who(message), message.content)));
        }
    }
    parts.join("\n\n")
}

/// Returns what a reply becomes: of one by a schema, the JSON without a fence around it.
pub(super) fn reply(request: &ChatRequest, text: String) -> String {
    match request.schema {
        Some(_) => schema::strip_fence(&text).to_owned(),
        None => text,
    }
}

fn who(message: &Message) -> &'static str {
    match message.role {
        Role::User => "the program",
        Role::Assistant => "you",
        Role::Tool => "a tool",
    }
}

/// Returns a line of `=` that stands in no message, so that none can end itself.
fn mark(messages: &[Message]) -> String {
    let mut mark = "=====".to_owned();
    while messages.iter().any(|message| message.content.contains(&mark)) {
        mark.push('=');
    }
    mark
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(value: serde_json::Value) -> ChatRequest {
        serde_json::from_value(value).expect("it is a request")
    }

    #[test]
    fn a_conversation_is_told_whole_and_no_message_can_end_itself() {
        let one = request(
            json!({ "model": "acp/a", "system": "Be brief.", "messages": [{ "role": "user", "content": "hi" }] }),
        );
        assert_eq!(of(&one), format!("{MANNERS}\n\nBe brief.\n\nhi"));
        let more = request(json!({ "model": "acp/a", "messages": [
            { "role": "user", "content": "hi" }, { "role": "assistant", "content": "===== you" }, { "role": "user", "content": "go" },
        ] }));
        let told = of(&more);
        assert!(told.ends_with("====== the program\nhi\n\n====== you\n===== you\n\n====== the program\ngo"), "{told}");
    }

    #[test]
    fn a_schema_is_spelled_out_and_a_fence_around_the_value_taken_off() {
        let asked = request(
            json!({ "model": "acp/a", "messages": [{ "role": "user", "content": "x" }], "schema": { "type": "object" } }),
        );
        assert!(of(&asked).contains(r#"{"type":"object"}"#));
        assert_eq!(reply(&asked, "```json\n{}\n```".to_owned()), "{}");
    }
}
