//! OpenRouter's `reasoning_details`: what a model thought, in the form of the provider behind it. It comes in pieces, is put
//! together as it was, and goes back with its message.

use serde_json::{Map, Value};

/// The member of a kind of entry that is readable text, and comes in pieces.
fn text_member(entry: &Map<String, Value>) -> Option<&'static str> {
    match entry.get("type").and_then(Value::as_str) {
        Some("reasoning.text") => Some("text"),
        Some("reasoning.summary") => Some("summary"),
        // What is sealed comes whole, and other kinds are not known.
        _ => None,
    }
}

/// Returns the readable text of a piece.
pub(super) fn text(piece: &Map<String, Value>) -> Option<&str> {
    piece.get(text_member(piece)?)?.as_str().filter(|text| !text.is_empty())
}

/// Adds a piece: to the entry of its kind and index, if it is one of text, or else as an entry of its own.
pub(super) fn add(entries: &mut Vec<Map<String, Value>>, piece: Map<String, Value>) {
    let of_same = |entry: &&mut Map<String, Value>| {
        entry.get("type") == piece.get("type") && entry.get("index") == piece.get("index")
    };
    let member = text_member(&piece);
    let Some((member, entry)) = member.zip(entries.iter_mut().rev().find(of_same)) else {
        return entries.push(piece);
    };
    for (name, value) in piece {
        match (entry.get_mut(&name), value) {
            // A signature comes late, and pieces before it have none.
            (Some(_), Value::Null) => {}
            (Some(Value::String(so_far)), Value::String(more)) if name == member => so_far.push_str(&more),
            (_, value) => drop(entry.insert(name, value)),
        }
    }
}

/// Tells whether an entry can go back: the text of an Anthropic model is refused without its signature.
pub(in crate::host::llm::openai) fn goes_back(entry: &Map<String, Value>) -> bool {
    let is = |name: &str, text: &str| entry.get(name).and_then(Value::as_str) == Some(text);
    let is_signed = entry.get("signature").and_then(Value::as_str).is_some_and(|signature| !signature.is_empty());
    is_signed || !is("type", "reasoning.text") || !is("format", "anthropic-claude-v1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn together(pieces: Value) -> Value {
        let mut entries = Vec::new();
        for piece in pieces.as_array().expect("a list") {
            add(&mut entries, piece.as_object().expect("an object").clone());
        }
        json!(entries)
    }

    #[test]
    fn pieces_of_one_kind_and_index_are_one_entry_and_their_signature_comes_late() {
        let put_together = together(json!([
            {"type": "reasoning.text", "text": "The ", "index": 0, "format": "anthropic-claude-v1", "signature": null},
            {"type": "reasoning.text", "text": "ledger", "index": 0},
            {"type": "reasoning.encrypted", "data": "sealed", "index": 0, "id": "e"},
            {"type": "reasoning.text", "text": "", "signature": "s1", "index": 0, "id": null},
            {"type": "reasoning.text", "text": "Next", "index": 1},
            {"type": "reasoning.encrypted", "data": "sealed too", "index": 0},
            {"type": "reasoning.unheard_of", "index": 1, "x": [1]},
        ]));
        assert_eq!(
            put_together,
            json!([
                {"type": "reasoning.text", "text": "The ledger", "index": 0, "format": "anthropic-claude-v1", "signature": "s1", "id": null},
                {"type": "reasoning.encrypted", "data": "sealed", "index": 0, "id": "e"},
                {"type": "reasoning.text", "text": "Next", "index": 1},
                {"type": "reasoning.encrypted", "data": "sealed too", "index": 0},
                {"type": "reasoning.unheard_of", "index": 1, "x": [1]},
            ])
        );
    }

    #[test]
    fn unsigned_text_of_anthropic_alone_stays_here() {
        let entry = |format: &str, signature: Value| {
            let entry = json!({"type": "reasoning.text", "format": format, "text": "x", "signature": signature});
            entry.as_object().cloned().unwrap_or_default()
        };
        assert!(!goes_back(&entry("anthropic-claude-v1", Value::Null)));
        assert!(goes_back(&entry("anthropic-claude-v1", json!("s"))) && goes_back(&entry("unknown", Value::Null)));
    }
}
